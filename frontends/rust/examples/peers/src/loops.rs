//! Loops.

use thisgpu_gpu::*;

/// How many steps each number takes to 1.
#[kernel]
pub fn collatz(x: &[u32], mut out: DisjointMut<u32>) {
    if let Some((x, out)) = thread::own((x, &mut out)) {
        let next = |v: &u32| {
            (*v != 1).then(|| {
                if v % 2 == 1 {
                    v.wrapping_mul(3).wrapping_add(1)
                } else {
                    v / 2
                }
            })
        };
        *out = core::iter::successors(Some(*x), next).count() as u32 - 1;
    }
}

/// A row a thread: the product of signed bytes with a vector.
#[kernel]
pub fn dp4a_dot(a: &[u32], b: &[u32], mut out: DisjointMut<i32>) {
    let (Some(row), Some(out)) = (thread::own_chunk(a, b.len()), out.thread_mut()) else {
        return;
    };
    *out = row
        .iter()
        .zip(b)
        .fold(0, |sum, (a, b)| dot4_signed(*a, *b, sum));
}
