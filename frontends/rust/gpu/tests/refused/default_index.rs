//! No index comes from nothing.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    if let Some(y) = y.get_mut(&Default::default()) {
        *y = thread::index_x();
    }
}

fn main() {}
