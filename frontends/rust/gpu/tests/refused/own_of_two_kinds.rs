//! Arrays that tell threads apart in different ways.

use thisgpu_gpu::*;

#[kernel]
pub fn k(mut x: DisjointMut<u32>, mut y: DisjointMut<u32, Plane>) {
    if let Some((x, y)) = thread::own((&mut x, &mut y)) {
        *y = *x;
    }
}

fn main() {}
