//! One buffer in both places of `own`.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut y: DisjointMut<u32>) {
    if let Some((a, b)) = thread::own((&mut y, &mut y)) {
        core::mem::swap(a, b);
    }
}

fn main() {}
