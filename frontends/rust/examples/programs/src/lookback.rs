//! Prefix sums of a whole array in one pass: blocks look back at those before them.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use thisgpu_gpu::*;

const NOTHING: u64 = 0;
const SUM: u64 = 1 << 32;
const PREFIX: u64 = 2 << 32;

#[kernel(max_threads = 128)]
pub fn scan(x: &[u32], ticket: &AtomicU32, states: &[AtomicU64], out: &[AtomicU32]) {
    let is_first = thread::index_x() == 0;
    // Blocks that have begun have the lowest numbers, whatever order they begin in.
    let mine = if is_first {
        ticket.fetch_add(1, Ordering::Relaxed)
    } else {
        0
    };
    let tile = block::broadcast(mine, 0) as usize;
    let at = tile * thread::block_dim_x() as usize + thread::index_x() as usize;
    let value = x.get(at).copied().unwrap_or(0);
    let upto = block::scan(value, u32::wrapping_add);
    let total = block::broadcast(upto, thread::block_dim_x() - 1);
    let mut before = 0u32;
    if is_first && tile > 0 {
        states[tile].store(SUM | u64::from(total), Ordering::Release);
        let mut look = tile - 1;
        loop {
            let state = states[look].load(Ordering::Acquire);
            match state & !0xFFFF_FFFF {
                NOTHING => continue,
                SUM => {
                    before = before.wrapping_add(state as u32);
                    look -= 1;
                }
                _ => {
                    before = before.wrapping_add(state as u32);
                    break;
                }
            }
        }
    }
    if is_first {
        states[tile].store(
            PREFIX | u64::from(before.wrapping_add(total)),
            Ordering::Release,
        );
    }
    let before = block::broadcast(before, 0);
    if let Some(out) = out.get(at) {
        out.store(before.wrapping_add(upto), Ordering::Relaxed);
    }
}
