//! Each thread wants a chunk as long as its number.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let length = thread::index_x() as usize;
    if let Some(chunk) = y.thread_chunk_mut(length) {
        chunk[0] = 1;
    }
}

fn main() {}
