//! A thread's element for the whole block.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let shared = shared!(Option<&'static mut u32>);
    shared.write(y.thread_mut());
}

fn main() {}
