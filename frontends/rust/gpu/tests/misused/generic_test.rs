use thisgpu_gpu::*;

#[kernel_test]
fn t<T>() {}

fn main() {}
