//! A buffer cannot be parted in another way.

use thisgpu_gpu::*;

#[kernel]
pub fn k(y: DisjointMut<u32>) {
    let mut y: DisjointMut<u32, Chunks<2>> = y;
    drop(y.thread_mut());
}

fn main() {}
