use thisgpu_gpu::*;

#[device_static]
static mut X: [f32; 4];

fn main() {}
