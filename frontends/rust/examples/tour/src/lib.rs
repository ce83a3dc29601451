//! Each part of `thisgpu-gpu` in a kernel.

#![no_std]

extern crate alloc;

pub mod heap;

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use thisgpu_gpu::*;

/// Sums in blocks of 256: shared memory and barriers.
#[kernel(max_threads = 256)]
pub fn block_sums(x: &[f32], mut out: DisjointMut<f32, Blocks>) {
    let tile = shared!([f32; 256]);
    let t = thread::index_x() as usize;
    tile.set(t, thread::grid_stride(x.len()).map(|i| x[i]).sum());
    thread::barrier();
    let mut half = 128;
    while half > 0 {
        if t < half {
            tile.set(t, tile.get(t) + tile.get(t + half));
        }
        thread::barrier();
        half /= 2;
    }
    if let Some(out) = out.thread_mut() {
        *out = tile.get(0);
    }
}

/// How often each byte occurs: atomics in shared and in global memory.
#[kernel]
pub fn histogram(bytes: &[u8], counts: &[AtomicU32]) {
    let own = shared!([AtomicU32; 256]).atomics();
    let t = thread::index_x() as usize;
    let threads = thread::block_dim_x() as usize;
    for bin in (t..256).step_by(threads) {
        own[bin].store(0, Relaxed);
    }
    thread::barrier();
    for i in thread::grid_stride(bytes.len()) {
        own[bytes[i] as usize].fetch_add(1, Relaxed);
    }
    thread::barrier();
    for bin in (t..256).step_by(threads) {
        counts[bin].fetch_add(own[bin].load(Relaxed), Relaxed);
    }
}

/// What the lanes of a warp have together.
#[kernel]
pub fn warps(x: &[u32], mut out: DisjointMut<[u32; 4]>) {
    let value = x[thread::global_id()];
    let before = warp::scan(value, |a, b| a.wrapping_add(b));
    let neighbour = warp::shuffle(value, (warp::lane() + 1) % warp::LANES);
    let found = [
        warp::sum(value),
        before,
        neighbour,
        warp::ballot(value % 2 == 1),
    ];
    if let Some(out) = out.thread_mut() {
        *out = found;
    }
}

/// A structure of the host's.
#[derive(Clone, Copy, Element)]
#[repr(C)]
pub struct Particle {
    position: [f32; 3],
    kind: u32,
}

/// Structures, a reference to one value, a bool.
#[kernel]
pub fn step(time: f32, wrap: bool, speed: &[f32; 3], mut particles: DisjointMut<Particle>) {
    let Some(particle) = particles.thread_mut() else {
        return;
    };
    for (x, v) in particle.position.iter_mut().zip(speed) {
        *x = v.mul_add(time, *x);
        if wrap {
            *x -= x.floor();
        }
    }
    particle.kind += 1;
}

/// Dynamic shared memory: the block's elements the other way round.
#[kernel]
pub fn reverse(mut x: DisjointMut<u32>) {
    let (tile, t) = (dynamic_shared::<u32>(), thread::index_x() as usize);
    let own = x.thread_mut();
    if let Some(own) = &own {
        tile.set(t, **own);
    }
    thread::barrier();
    if let Some(own) = own {
        *own = tile.get(thread::block_dim_x() as usize - 1 - t);
    }
}

/// Functions of mathematics, and halves.
#[kernel]
pub fn mathematics(mut x: DisjointMut<f32>) {
    if let Some(x) = x.thread_mut() {
        let half = F16::from_f32(*x) * F16::from_f32(0.5);
        *x = (*x * *x + x.sin().powi(2) + x.cos().powi(2)).sqrt() + half.to_f32();
    }
}

/// Output of several kinds.
#[kernel]
pub fn report(x: &[f32]) {
    let i = thread::global_id();
    let last = i + 1 == x.len();
    println!("{i}: {:>7.2} {last} {:#06x}", x[i], i * 100);
}

/// Adds to one float.
#[kernel]
pub fn total(x: &[f32], sum: &AtomicF32) {
    if let Some(x) = x.get(thread::global_id()) {
        sum.fetch_add(*x, Relaxed);
    }
}

/// Panics of several kinds, each at a line of its own.
#[kernel]
pub fn panics(which: u32, x: &[u32]) {
    match which {
        0 => panic!("on purpose"),
        1 => assert_eq!(x[0], 7),
        2 => assert!(x[x.len()] > 0),
        3 => assert!(x.first().map(|x| x.checked_sub(100)).unwrap().is_some()),
        4 => {
            let _ = x.iter().find(|x| **x > 1000).unwrap();
        }
        5 => debug_assert!(x[0] > 1000),
        _ => dynamic_shared::<u32>().set(0, x[0] + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[kernel_test]
    fn a_thread_is_alone() {
        assert_eq!(thread::global_id(), 0);
        assert_eq!(thread::grid_stride(3).count(), 3);
    }

    #[kernel_test(threads = 64)]
    fn warps_have_32_lanes() {
        let lane = warp::lane();
        assert_eq!(lane, thread::index_x() % 32);
        assert_eq!(
            warp::reduce(lane, u32::max),
            if ON_DEVICE { 31 } else { lane }
        );
        println!("lane {lane}");
    }

    #[kernel_test]
    #[should_panic]
    fn an_index_out_of_bounds_panics() {
        let x = [1, 2, 3];
        let index = thread::block_dim_x() as usize + 2;
        assert_ne!(x[index], 0);
    }

    #[kernel_test]
    fn overflow_is_found_where_it_is_asked_for() {
        assert!(cfg!(debug_assertions));
    }

    #[test]
    fn the_host_has_tests_of_its_own() {
        let mut x = [1.0, 2.0];
        mathematics(DisjointMut::from_slice(&mut x));
        assert!((x[0] - (2.0f32.sqrt() + 0.5)).abs() < 1e-6);
    }
}
