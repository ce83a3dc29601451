use thisgpu_gpu::*;

#[device_static]
static X: &'static str = "";

fn main() {}
