//! The fast Fourier transform of 256 points a block.

use core::ops::{Add, Mul, Sub};
use thisgpu_gpu::*;

const POINTS: usize = 256;

/// A complex number.
#[derive(Clone, Copy, Element)]
#[repr(C)]
pub struct Complex {
    re: f32,
    im: f32,
}

impl Add for Complex {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Complex {
            re: self.re + o.re,
            im: self.im + o.im,
        }
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Complex {
            re: self.re - o.re,
            im: self.im - o.im,
        }
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        Complex {
            re: self.re * o.re - self.im * o.im,
            im: self.re * o.im + self.im * o.re,
        }
    }
}

#[kernel(max_threads = 128)]
pub fn transform(x: &[Complex], mut out: DisjointMut<Complex, Chunks<2>>) {
    let points = shared!([Complex; POINTS]);
    let t = thread::index_x() as usize;
    let first = thread::block_x() as usize * POINTS;
    for i in [t, t + POINTS / 2] {
        let turned = (i as u8).reverse_bits() as usize;
        points.set(turned, x[first + i]);
    }
    let mut half = 1;
    while half < POINTS {
        thread::barrier();
        let k = t % half;
        let low = (t / half) * 2 * half + k;
        let angle = -core::f32::consts::PI * k as f32 / half as f32;
        let (sin, cos) = angle.sin_cos();
        let a = points.get(low);
        let b = points.get(low + half) * Complex { re: cos, im: sin };
        points.set(low, a + b);
        points.set(low + half, a - b);
        half *= 2;
    }
    thread::barrier();
    if let Some(out) = out.thread_mut() {
        *out = [points.get(2 * t), points.get(2 * t + 1)];
    }
}
