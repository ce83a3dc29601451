use thisgpu_gpu::*;

#[derive(Clone, Copy, Element)]
struct Pair(u32, u32);

fn main() {}
