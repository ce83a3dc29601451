//! The calls that threads are in: for faults and debuggers.
//!
//! Code keeps its return addresses where it likes, so nothing in registers or memory says reliably where calls came
//! from. The simulator notes the place of each call that a thread makes, and forgets it with the next return. Jumps to
//! other functions are no calls. A debugger also wants to know what a caller had in the registers that it finds again
//! when the call returns.

use crate::abi::{CALLEE_SAVED, STACK_POINTER};
use crate::launch::{Frame, Image};
use crate::sim::decode::program::WORD_BYTES;
use crate::sim::warp::registers::{LANES, Registers, lanes};

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
    /// Whether registers are kept.
    keeps: bool,
}

/// Registers that are as they were when a call returns.
const FOUND_AGAIN: usize = (*CALLEE_SAVED.end() - *CALLEE_SAVED.start()) as usize + 1;

/// What a thread had in registers when it called, and has again when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::sim) struct Kept {
    frame: u32,
    registers: [u32; FOUND_AGAIN],
}

impl Kept {
    fn of(registers: &Registers, lane: usize) -> Kept {
        let word = |number: u8| registers.column(number.into())[lane];
        Kept {
            frame: word(STACK_POINTER.number()),
            registers: std::array::from_fn(|index| word(CALLEE_SAVED.start() + index as u8)),
        }
    }

    /// A general register; none of those that may be overwritten meanwhile.
    pub(in crate::sim) fn register(&self, number: u8) -> Option<u32> {
        if number == STACK_POINTER.number() {
            return Some(self.frame);
        }
        let index = number.checked_sub(*CALLEE_SAVED.start())?;
        self.registers.get(usize::from(index)).copied()
    }
}

#[derive(Clone, Debug, Default, Hash)]
struct Thread {
    /// Instruction of each call, the outermost first, at most [`KEPT`].
    calls: Vec<u32>,
    /// By call, if that is wanted.
    kept: Vec<Kept>,
    /// All calls that the thread is in.
    depth: usize,
}

impl Calls {
    /// Forgets everything.
    pub fn clear(&mut self) {
        for thread in &mut self.lanes {
            thread.calls.clear();
            thread.kept.clear();
            thread.depth = 0;
        }
    }

    /// Keeps registers of callers from now on.
    pub(in crate::sim) fn keep_registers(&mut self) {
        self.keeps = true;
    }

    /// Bytes of the registers that are kept.
    pub(in crate::sim) fn bytes(&self) -> usize {
        let kept = self.lanes.iter().map(|thread| thread.kept.len());
        kept.sum::<usize>() * size_of::<Kept>()
    }

    /// The lanes of `mask` call by the instruction `pc`.
    pub(in crate::sim) fn enter(&mut self, mask: u32, pc: u32, registers: &Registers) {
        if self.lanes.is_empty() {
            self.lanes.resize_with(LANES, Thread::default);
        }
        for lane in lanes(mask) {
            let thread = &mut self.lanes[lane];
            if thread.depth < KEPT {
                thread.calls.push(pc);
                if self.keeps {
                    thread.kept.push(Kept::of(registers, lane));
                }
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
            thread.kept.truncate(thread.depth);
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

    /// The instruction of a call that a lane is in, 0 is the innermost, and what it finds in registers behind it.
    pub(in crate::sim) fn call(&self, lane: usize, number: usize) -> Option<(u32, &Kept)> {
        let thread = self.lanes.get(lane).filter(|_| number < TOLD)?;
        let index = thread.depth.checked_sub(number + 1)?;
        Some((*thread.calls.get(index)?, thread.kept.get(index)?))
    }
}
