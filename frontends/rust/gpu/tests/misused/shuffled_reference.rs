use thisgpu_gpu::*;

#[kernel]
pub fn k(x: &[u32]) {
    drop(warp::shuffle(&x[0], 0));
}

fn main() {}
