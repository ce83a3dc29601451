//! The calls that threads are in: for faults.
//!
//! Code keeps its return addresses where it likes, so nothing in registers or memory says reliably where calls came
//! from. The simulator notes the place of each call that a thread makes, and forgets it with the next return. Jumps to
//! other functions are no calls.

use crate::launch::{Frame, Image};
use crate::sim::decode::program::WORD_BYTES;
use crate::sim::warp::registers::{LANES, lanes};

/// Calls of a thread that are kept (*assumed*: a stack of the usual size has no room for more); of deeper ones only how
/// many there are.
const KEPT: usize = 1 << 14;
/// Calls that a fault has (*assumed*: of a deeper recursion the rest is alike).
const TOLD: usize = 256;

/// The calls of a warp's threads.
#[derive(Clone, Debug, Default, Hash)]
pub struct Calls {
    /// By lane; empty before the first call.
    lanes: Vec<Thread>,
}

#[derive(Clone, Debug, Default, Hash)]
struct Thread {
    /// Instruction of each call, the outermost first, at most [`KEPT`].
    calls: Vec<u32>,
    /// All calls that the thread is in.
    depth: usize,
}

impl Calls {
    /// Forgets everything.
    pub fn clear(&mut self) {
        for thread in &mut self.lanes {
            thread.calls.clear();
            thread.depth = 0;
        }
    }

    /// The lanes of `mask` call by the instruction `pc`.
    pub fn enter(&mut self, mask: u32, pc: u32) {
        if self.lanes.is_empty() {
            self.lanes.resize_with(LANES, Thread::default);
        }
        for lane in lanes(mask) {
            let thread = &mut self.lanes[lane];
            if thread.depth < KEPT {
                thread.calls.push(pc);
            }
            thread.depth += 1;
        }
    }

    /// The lanes of `mask` return.
    pub fn leave(&mut self, mask: u32) {
        if self.lanes.is_empty() {
            return;
        }
        for lane in lanes(mask) {
            let thread = &mut self.lanes[lane];
            thread.depth = thread.depth.saturating_sub(1);
            thread.calls.truncate(thread.depth);
        }
    }

    /// How many calls all threads are in together.
    pub fn count(&self) -> u64 {
        self.lanes.iter().map(|thread| thread.depth as u64).sum()
    }

    /// The calls of a lane, the innermost first, at most [`TOLD`].
    pub fn frames(&self, lane: usize, image: &Image) -> Vec<Frame> {
        let calls = self.lanes.get(lane).map_or(&[][..], |t| &t.calls);
        let frame = |pc: &u32| Frame::at(pc * WORD_BYTES as u32, image);
        calls.iter().rev().take(TOLD).map(frame).collect()
    }

    /// How many calls a lane is in.
    pub fn depth(&self, lane: usize) -> usize {
        self.lanes.get(lane).map_or(0, |thread| thread.depth)
    }
}
