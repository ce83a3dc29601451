//! A view is not copied.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let mut other = y.clone();
    drop((y.thread_mut(), other.thread_mut()));
}

fn main() {}
