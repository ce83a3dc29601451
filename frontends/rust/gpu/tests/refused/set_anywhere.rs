//! Any element by its number.

use thisgpu_gpu::*;

#[kernel]
pub fn k(y: DisjointMut<u32>) {
    y.set(0, thread::index_x());
}

fn main() {}
