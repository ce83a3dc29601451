//! A length that is part of the type cannot come from the thread.

use thisgpu_gpu::*;

#[kernel]
pub fn k(y: DisjointMut<u32, Chunks<{ thread::index_x() as usize }>>) {
    drop(y);
}

fn main() {}
