use thisgpu_gpu::*;

#[derive(Clone, Copy, Element)]
#[repr(C)]
enum Choice {
    One,
    Two,
}

fn main() {}
