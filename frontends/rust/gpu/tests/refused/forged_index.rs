//! An index out of the author's head.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let zero = Index1 { get: 0 };
    if let Some(y) = y.get_mut(&zero) {
        *y = thread::index_x();
    }
}

fn main() {}
