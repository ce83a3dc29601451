//! Bodies that attract each other, in tiles of shared memory.

use thisgpu_gpu::*;

const TILE: usize = 64;

/// Accelerations; positions have their mass as the fourth number.
#[kernel(max_threads = 64)]
pub fn attract(bodies: &[[f32; 4]], mut out: DisjointMut<[f32; 3]>) {
    let tile = shared!([[f32; 4]; TILE]);
    let (i, t) = (thread::global_id(), thread::index_x() as usize);
    let own = bodies.get(i).copied().unwrap_or_default();
    let mut sum = [0.0f32; 3];
    for first in (0..bodies.len()).step_by(TILE) {
        tile.set(t, bodies.get(first + t).copied().unwrap_or_default());
        thread::barrier();
        for k in 0..TILE.min(bodies.len() - first) {
            let other = tile.get(k);
            let d: [f32; 3] = core::array::from_fn(|axis| other[axis] - own[axis]);
            let r2 = d.iter().map(|d| d * d).sum::<f32>() + 0.01;
            let inverse = 1.0 / r2.sqrt();
            let force = other[3] * inverse * inverse * inverse;
            for (sum, d) in sum.iter_mut().zip(d) {
                *sum += d * force;
            }
        }
        thread::barrier();
    }
    if let Some(out) = out.thread_mut() {
        *out = sum;
    }
}
