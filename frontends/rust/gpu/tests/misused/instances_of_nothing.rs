use thisgpu_gpu::*;

#[kernel(instances(f32, f64))]
pub fn k(x: &[f32]) {
    drop(x.len());
}

fn main() {}
