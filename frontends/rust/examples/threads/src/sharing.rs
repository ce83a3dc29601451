//! How buffers are shared out among threads.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};
use thisgpu_gpu::*;

/// Each pair turned around, as many as there are whole ones; more pairs than threads are taken in turns.
#[kernel]
pub fn turn_pairs(mut pairs: DisjointMut<u32, Chunks<2>>) {
    for [a, b] in pairs.strided_mut() {
        core::mem::swap(a, b);
    }
}

/// y = a · x + y with fewer threads than elements.
#[kernel]
pub fn saxpy_strided(a: f32, x: &[f32], mut y: DisjointMut<f32>) {
    for (x, y) in thread::strided((x, &mut y)) {
        *y = a.mul_add(*x, *y);
    }
}

/// Sorts each row.
#[kernel]
pub fn sort_rows(mut rows: DisjointMut<u32, Rows>) {
    if let Some(row) = rows.thread_mut() {
        row.sort_unstable();
    }
}

/// Sums of rows by the threads of one dimension, beside what is read in two.
#[kernel]
pub fn row_sums(x: View2<u32>, mut sums: DisjointMut<u32>) {
    let index = thread::index1();
    if let (true, Some(sum)) = (index.get() < x.height(), sums.get_mut(&index)) {
        *sum = x.row(index.get()).iter().sum();
    }
}

/// The mirror image of a plane, and the number of threads that had a part of it.
#[kernel]
pub fn transpose(x: View2<u32>, mut out: DisjointMut<u32, Plane>, parts: &AtomicU32) {
    let index = thread::index2();
    if let Some(out) = out.get_mut(&index) {
        *out = *x.at(index.y(), index.x());
        parts.fetch_add(1, Relaxed);
    }
}

/// The sum of two planes.
#[kernel]
pub fn add_planes(a: View2<f32>, b: View2<f32>, mut sum: DisjointMut<f32, Plane>) {
    if let Some((a, b, sum)) = thread::own((a, b, &mut sum)) {
        *sum = a + b;
    }
}

/// The same with nothing but the check that no thread goes past the end, on the author's word.
#[kernel]
pub fn add_planes_by_hand(
    width: u32,
    height: u32,
    a: &[f32],
    b: &[f32],
    sum: DisjointMut<f32, Plane>,
) {
    let (x, y) = (thread::global_id() as u32, thread::global_id_y() as u32);
    if (x < width) & (y < height) {
        let number = y.wrapping_mul(width).wrapping_add(x) as usize;
        // SAFETY: the host passes three planes of this size, and no other thread has this place.
        unsafe { sum.set_unchecked(number, a.get_unchecked(number) + b.get_unchecked(number)) };
    }
}

/// Each element and its neighbours along x, y and z; what is outside counts as 0.
#[kernel]
pub fn seven_points(x: View3<u32>, mut out: DisjointMut<u32, Volume>) {
    let index = thread::index3();
    let Some(out) = out.get_mut(&index) else {
        return;
    };
    let (i, j, k) = (index.x(), index.y(), index.z());
    let around = [
        (i, j, k),
        (i.wrapping_sub(1), j, k),
        (i + 1, j, k),
        (i, j.wrapping_sub(1), k),
        (i, j + 1, k),
        (i, j, k.wrapping_sub(1)),
        (i, j, k + 1),
    ];
    *out = around
        .into_iter()
        .filter_map(|(i, j, k)| x.get(i, j, k))
        .sum();
}

/// How many threads each block has: one element a block.
#[kernel]
pub fn count_threads(mut counts: DisjointMut<u32, Blocks>) {
    let count = shared!(AtomicU32).atomics();
    if thread::is_first_of_block() {
        count.store(0, Relaxed);
    }
    thread::barrier();
    count.fetch_add(1, Relaxed);
    thread::barrier();
    if let Some(own) = counts.thread_mut() {
        *own = count.load(Relaxed);
    }
}

/// Two buffers that are written.
#[kernel]
pub fn swap_all(mut a: DisjointMut<u32>, mut b: DisjointMut<u32>) {
    if let Some((a, b)) = thread::own((&mut a, &mut b)) {
        core::mem::swap(a, b);
    }
}

/// What is read, what is written, and what is changed by atomics of two sizes.
#[kernel]
pub fn of_each_kind(
    read: &[u32],
    mut written: DisjointMut<u32>,
    words: &[AtomicU32],
    floats: &[AtomicF32],
    bytes: &[AtomicU8],
) {
    if let Some((read, written)) = thread::own((read, &mut written)) {
        *written = *read;
        if let Some(word) = words.first() {
            word.fetch_add(1, Relaxed);
        }
        if let Some(float) = floats.last() {
            float.fetch_add(1.0, Relaxed);
        }
        if let Some(byte) = bytes.first() {
            byte.fetch_max(7, Relaxed);
        }
    }
}
