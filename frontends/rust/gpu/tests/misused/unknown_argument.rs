use thisgpu_gpu::*;

#[kernel(dimensions = 2)]
pub fn k(x: &[f32]) {
    drop(x.len());
}

fn main() {}
