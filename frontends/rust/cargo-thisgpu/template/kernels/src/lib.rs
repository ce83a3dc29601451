#![no_std]

use thisgpu_gpu::*;

/// y = a · x + y, an element a thread.
#[kernel(max_threads = 256)]
pub fn saxpy(a: f32, x: &[f32], mut y: DisjointMut<f32>) {
    let i = thread::global_id();
    if let (Some(x), Some(y)) = (x.get(i), y.thread_mut()) {
        *y = a.mul_add(*x, *y);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[kernel_test(threads = 32)]
    fn lanes_add_up() {
        assert_eq!(warp::sum(warp::lane()), 496);
    }
}
