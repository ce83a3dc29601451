//! An index is not copied.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let index = thread::index1();
    let other = index.clone();
    drop((y.get_mut(&other), index));
}

fn main() {}
