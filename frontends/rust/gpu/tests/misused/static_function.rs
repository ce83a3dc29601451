use thisgpu_gpu::*;

#[device_static]
fn f() {}

fn main() {}
