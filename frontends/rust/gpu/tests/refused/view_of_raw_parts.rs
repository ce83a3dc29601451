//! A second view of the same memory.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let slice: &mut [u32] = core::slice::from_raw_parts_mut(y.as_ptr(), y.len());
    let mut other: DisjointMut<u32> = DisjointMut::from_slice(slice);
    drop((y.thread_mut(), other.thread_mut()));
}

fn main() {}
