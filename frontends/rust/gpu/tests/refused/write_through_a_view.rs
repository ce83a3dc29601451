//! The same in two dimensions.

use thisgpu_gpu::*;

#[kernel]
pub fn k(x: View2<u32>) {
    *x.at(0, 0) = thread::index_x();
}

fn main() {}
