//! Shared memory gives values, not places.

use thisgpu_gpu::*;

#[kernel]
pub fn k() {
    let tile = shared!([u32; 64]);
    let first: &mut u32 = &mut tile[0];
    *first = thread::index_x();
}

fn main() {}
