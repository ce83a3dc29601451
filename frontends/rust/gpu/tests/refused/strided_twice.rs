//! Two walks over one buffer.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    for (a, b) in y.strided_mut().zip(y.strided_mut()) {
        core::mem::swap(a, b);
    }
}

fn main() {}
