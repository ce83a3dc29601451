use thisgpu_gpu::*;

#[kernel]
pub fn k<'a>(x: &'a [f32]) {
    drop(x.len());
}

fn main() {}
