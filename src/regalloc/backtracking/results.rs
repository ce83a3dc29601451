//! Results of the function that a loop makes.
//!
//! A value that must be in a register at the return is in that register for as long as regalloc2 can have it there. If
//! it goes round a loop in which the register holds something else, as an address pair of the colouring, the two take
//! turns in every iteration. So what a loop makes may be anywhere at the return, and copies behind regalloc2's take it
//! to its place.

use crate::isa::{PReg, VReg};
use crate::regalloc::allocation::{Allocation, ProgramPoint};
use crate::regalloc::parallel::{Copy, CopyStep, sequence};
use crate::regalloc::registers::RegisterSet;
use crate::vcode::{Terminator, VCode};

/// The results at the returns of a function that are taken to their places behind regalloc2; kept between functions.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// By value whether a loop makes it; empty if no loop makes a result.
    looped: Vec<bool>,
    /// Number of the return, regalloc2's operand, the place.
    moved: Vec<(u32, u32, PReg)>,
    /// Registers that stay as they are at a return, by its number.
    kept: Vec<(u32, PReg)>,
    sequence: Vec<CopyStep>,
}

impl Results {
    /// Finds what the loops of `code` make, if it returns anything.
    pub fn find(&mut self, code: &VCode<VReg>) {
        self.moved.clear();
        self.kept.clear();
        self.looped.clear();
        let returns = |t: &Terminator<VReg>| matches!(t, Terminator::Return { values, .. } if !values.is_empty());
        let mut blocks = code.blocks.values();
        if blocks.all(|b| b.loop_depth == 0)
            || !code.blocks.values().any(|b| returns(&b.terminator))
        {
            return;
        }
        self.looped.resize(code.vreg_count as usize, false);
        for (block, data) in code.blocks.iter().filter(|(_, b)| b.loop_depth > 0) {
            let insts = code.block_insts(block).iter();
            let made = insts.flat_map(|entry| code.definitions(entry));
            for v in made.chain(data.params.iter().copied()) {
                self.looped[v.index()] = true;
            }
        }
    }

    /// Whether `v` may be anywhere when it is returned.
    pub fn is_made_in_a_loop(&self, v: VReg) -> bool {
        self.looped.get(v.index()).is_some_and(|looped| *looped)
    }

    /// At the return with this number an operand goes to `place`.
    pub fn take(&mut self, number: u32, operand: u32, place: PReg) {
        self.moved.push((number, operand, place));
    }

    /// At the return with this number `register` has what it has to.
    pub fn keep(&mut self, number: u32, register: PReg) {
        self.kept.push((number, register));
    }

    /// Adds the copies to `out`, whose steps are in order; `register` says where an operand is.
    pub fn add(&mut self, register: impl Fn(u32) -> PReg, out: &mut Allocation) {
        if self.moved.is_empty() {
            return;
        }
        let nothing = RegisterSet::default();
        for group in self.moved.chunk_by(|a, b| a.0 == b.0) {
            let number = group[0].0;
            let copies: Vec<Copy> = group
                .iter()
                .map(|&(_, operand, to)| Copy {
                    from: register(operand),
                    to,
                })
                .collect();
            let mut busy = RegisterSet::default();
            let kept = self.kept.iter().filter(|(at, _)| *at == number);
            kept.for_each(|(_, r)| busy.insert(*r));
            self.sequence.clear();
            sequence(&copies, &busy, &nothing, &mut self.sequence);
            let point = ProgramPoint::before(number);
            out.steps
                .extend(self.sequence.iter().map(|step| (point, *step)));
        }
        // Those of one point stay in the order in which they were added: behind regalloc2's.
        out.steps.sort_by_key(|(point, _)| *point);
    }
}
