//! A thread asks for its element while it has it.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let first = y.thread_mut();
    let second = y.thread_mut();
    drop((first, second));
}

fn main() {}
