//! A view that outlives the launch.

use thisgpu_gpu::*;

#[kernel]
pub fn k(y: DisjointMut<'static, u32>) {
    drop(y);
}

fn main() {}
