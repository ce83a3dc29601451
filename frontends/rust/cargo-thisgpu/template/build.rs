fn main() {
    thisgpu_build::Kernels::new().crate_dir("kernels").build_script();
}
