//! An index for the whole block.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let shared = shared!(Index1);
    shared.write(thread::index1());
    thread::barrier();
    drop(y.get_mut(&shared.read()));
}

fn main() {}
