//! A number is no index.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    if let Some(y) = y.get_mut(&0) {
        *y = thread::index_x();
    }
}

fn main() {}
