//! Places of two dimensions do not tell the threads of three apart.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32, Volume>) {
    if let Some(y) = y.get_mut(&thread::index2()) {
        *y = thread::index_z();
    }
}

fn main() {}
