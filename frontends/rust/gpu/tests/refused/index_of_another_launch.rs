//! The number along x does not tell the threads of two dimensions apart.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32, Plane>) {
    if let Some(y) = y.get_mut(&thread::index1()) {
        *y = thread::index_y();
    }
}

fn main() {}
