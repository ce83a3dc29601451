//! The same by an index.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let index = thread::index1();
    let first = y.get_mut(&index);
    let second = y.get_mut(&index);
    drop((first, second));
}

fn main() {}
