use thisgpu_gpu::*;

#[derive(Clone, Copy, Element)]
#[repr(C)]
struct Pair {
    a: u32,
    b: &'static u32,
}

fn main() {}
