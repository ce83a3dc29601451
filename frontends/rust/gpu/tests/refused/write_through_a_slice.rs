//! What all threads read nobody writes.

use thisgpu_gpu::*;

#[kernel]
pub fn k(x: &[u32]) {
    x[0] = thread::index_x();
}

fn main() {}
