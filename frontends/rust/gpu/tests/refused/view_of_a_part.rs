//! Each thread makes a view of its part, while it has the part.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32, Chunks<4>>) {
    let Some(chunk) = y.thread_mut() else { return };
    let mut view: DisjointMut<u32> = DisjointMut::from_slice(chunk);
    drop((chunk.first_mut(), view.thread_mut()));
}

fn main() {}
