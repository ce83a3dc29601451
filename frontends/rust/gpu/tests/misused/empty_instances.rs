use thisgpu_gpu::*;

#[kernel(instances())]
pub fn k<T: Element>(x: &[T]) {
    drop(x.len());
}

fn main() {}
