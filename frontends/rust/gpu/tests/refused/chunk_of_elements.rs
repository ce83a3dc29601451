//! Some threads take chunks, the others elements.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    if thread::index_x() == 0 {
        let chunk: Option<&mut [u32; 4]> = y.thread_mut();
        drop(chunk);
    } else {
        let element: Option<&mut u32> = y.thread_mut();
        drop(element);
    }
}

fn main() {}
