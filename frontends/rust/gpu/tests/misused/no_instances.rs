use thisgpu_gpu::*;

#[kernel]
pub fn k<T: Element>(x: &[T]) {
    drop(x.len());
}

fn main() {}
