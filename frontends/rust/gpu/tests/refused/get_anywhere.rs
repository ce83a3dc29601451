//! Any element by its number, to read it while its thread writes it.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    let neighbour = y.get(thread::global_id() + 1);
    if let Some(y) = y.thread_mut() {
        *y = neighbour;
    }
}

fn main() {}
