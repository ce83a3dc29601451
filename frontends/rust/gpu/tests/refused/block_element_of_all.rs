//! The element of a block is its first thread's.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut sums: DisjointMut<u32, Blocks>) {
    if let Some(sum) = sums.get_mut(&thread::index1()) {
        *sum = 1;
    }
}

fn main() {}
