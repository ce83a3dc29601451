//! Shared memory.

use thisgpu_gpu::*;

/// The sums of the first elements, in blocks of 256.
#[kernel(max_threads = 256)]
pub fn prefix_sum(x: &[u32], mut out: DisjointMut<u32>) {
    let sums = shared!([u32; 256]);
    // A block has so many threads.
    let thread = thread::index_x() as usize & 255;
    let Some((x, out)) = thread::own((x, &mut out)) else {
        return;
    };
    let mut sum = *x;
    sums.set(thread, sum);
    let mut distance = 1;
    while distance < 256 {
        thread::barrier();
        let below = if thread >= distance {
            sums.get(thread - distance)
        } else {
            0
        };
        thread::barrier();
        sum = sum.wrapping_add(below);
        sums.set(thread, sum);
        distance *= 2;
    }
    *out = sum;
}

/// The product of two matrices of n · n, n a multiple of 8 and not 0, by tiles in blocks of (8, 8).
#[kernel(max_threads = 64)]
pub fn matmul8(n: u32, a: View2<f32>, b: View2<f32>, mut out: DisjointMut<f32, Plane>) {
    let (left, right) = (shared!([[f32; 8]; 8]), shared!([[f32; 8]; 8]));
    // A block has 8 threads each way.
    let (x, y) = (
        thread::index_x() as usize & 7,
        thread::index_y() as usize & 7,
    );
    let own = thread::index2();
    let (mut first, mut sum) = (0, 0.0f32);
    loop {
        let k = first as usize;
        left.row(y)
            .set(x, a.get(k + x, own.y()).copied().unwrap_or(0.0));
        right
            .row(y)
            .set(x, b.get(own.x(), k + y).copied().unwrap_or(0.0));
        thread::barrier();
        for k in 0..8 {
            sum = left.row(y).get(k).mul_add(right.row(k).get(x), sum);
        }
        thread::barrier();
        first += 8;
        if first >= n {
            break;
        }
    }
    if let Some(out) = out.get_mut(&own) {
        *out = sum;
    }
}
