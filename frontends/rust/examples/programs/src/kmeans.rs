//! Clusters: each point goes to the nearest centre, and centres go to the middle of their points.

use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use thisgpu_gpu::*;

/// Most clusters.
pub const MOST: usize = 16;

#[kernel(max_threads = 128)]
pub fn assign(
    points: &[[i32; 2]],
    centres: &[[i32; 2]],
    mut nearest: DisjointMut<u32>,
    sums: &[AtomicI32],
    counts: &[AtomicU32],
) {
    let own_sums = shared!([AtomicI32; 2 * MOST]).atomics();
    let own_counts = shared!([AtomicU32; MOST]).atomics();
    let t = thread::index_x() as usize;
    if t < MOST {
        own_counts[t].store(0, Relaxed);
        own_sums[2 * t].store(0, Relaxed);
        own_sums[2 * t + 1].store(0, Relaxed);
    }
    thread::barrier();
    if let Some((point, nearest)) = thread::own((points, &mut nearest)) {
        let distance = |centre: &[i32; 2]| {
            let d = [0, 1].map(|axis| i64::from(centre[axis] - point[axis]));
            d[0] * d[0] + d[1] * d[1]
        };
        let best = centres
            .iter()
            .enumerate()
            .min_by_key(|(_, centre)| distance(centre));
        let best = best.map_or(0, |(number, _)| number);
        *nearest = best as u32;
        own_counts[best].fetch_add(1, Relaxed);
        own_sums[2 * best].fetch_add(point[0], Relaxed);
        own_sums[2 * best + 1].fetch_add(point[1], Relaxed);
    }
    thread::barrier();
    if t < centres.len() {
        counts[t].fetch_add(own_counts[t].load(Relaxed), Relaxed);
        sums[2 * t].fetch_add(own_sums[2 * t].load(Relaxed), Relaxed);
        sums[2 * t + 1].fetch_add(own_sums[2 * t + 1].load(Relaxed), Relaxed);
    }
}

#[kernel]
pub fn settle(sums: &[[i32; 2]], counts: &[u32], mut centres: DisjointMut<[i32; 2]>) {
    let Some((sum, (count, centre))) = thread::own((sums, &mut centres))
        .map(|(sum, centre)| (sum, (counts[thread::global_id()], centre)))
    else {
        return;
    };
    if count > 0 {
        *centre = sum.map(|sum| sum.div_euclid(count as i32));
    }
}
