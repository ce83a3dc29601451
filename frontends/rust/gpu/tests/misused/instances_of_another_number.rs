use thisgpu_gpu::*;

#[kernel(instances(<f32, 4>, <f64>))]
pub fn k<T: Element, const N: usize>(x: &[[T; N]]) {
    drop(x.len());
}

fn main() {}
