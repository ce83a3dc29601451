//! How far the next uses of values are.
//!
//! In instructions, along the nearest path; leaving a loop counts [`LOOP`] more, so that what a loop uses is nearer
//! than anything behind it (Braun and Hack, "Register spilling and live-range splitting for SSA-form programs", CC
//! 2009). An argument is used where the parameter is that it becomes. Kept for each block: the values of one class that
//! are alive at its entry, and its parameters.

use super::flow::Flow;
use crate::isa::{Register, VReg};
use crate::regalloc::liveness::{Liveness, edge_arguments};
use crate::vcode::{Block, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;

/// What leaving a loop adds: more than any function has instructions in a loop.
pub(in crate::regalloc) const LOOP: u32 = 1 << 22;

/// The farthest that a parameter of a loop's header can be: every round hands it on, whether the loop reads it or not.
const CARRIED: u32 = LOOP / 2;

/// Never.
pub(in crate::regalloc) const NEVER: u32 = u32::MAX;

/// A value at the entry of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub value: VReg,
    /// Distance to the first use in the block itself, or [`NEVER`].
    first: u32,
    /// Distance to the next use.
    pub distance: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Distances {
    /// Start of each block's entries, and of its parameters' entries, which follow; one more at the end.
    starts: Vec<(u32, u32)>,
    entries: Vec<Ahead>,
    /// By value: the distance from the end of the block at hand, [`NEVER`] outside of [`Distances::leave`].
    pub ahead: Vec<u32>,
    /// By value: the block in which it was seen, and the distance there.
    seen: Vec<(u32, u32)>,
}

/// `distance` steps further on.
fn further(distance: u32, by: u32) -> u32 {
    if distance == NEVER {
        return NEVER;
    }
    distance.saturating_add(by).min(NEVER - 1)
}

/// Steps from the entry of a block to its end; its terminator is a step.
pub(super) fn length<R: Register>(code: &VCode<R>, block: Block) -> u32 {
    code.blocks[block].insts.len() as u32 + 1
}

impl Distances {
    /// Computes the distances of all values for which `mine` holds.
    pub fn compute(
        &mut self,
        code: &VCode<VReg>,
        live: &Liveness,
        flow: &Flow,
        mine: impl Fn(&VReg) -> bool,
    ) {
        self.starts.clear();
        self.entries.clear();
        self.seen.clear();
        self.seen.resize(code.vreg_count as usize, (NEVER, 0));
        self.ahead.clear();
        self.ahead.resize(code.vreg_count as usize, NEVER);
        for (block, data) in code.blocks.iter() {
            let number = block.index() as u32;
            let end = length(code, block) - 1;
            if !matches!(data.terminator, Terminator::Jump { .. }) {
                for v in data.terminator.uses() {
                    self.seen[v.index()] = (number, end);
                }
            }
            for (i, entry) in code.block_insts(block).iter().enumerate().rev() {
                for v in code.uses(entry) {
                    self.seen[v.index()] = (number, i as u32);
                }
            }
            let values = self.entries.len() as u32;
            let seen = &self.seen;
            let ahead = |value: VReg| {
                let (block, at) = seen[value.index()];
                let first = if block == number { at } else { NEVER };
                Ahead {
                    value,
                    first,
                    distance: first,
                }
            };
            self.entries
                .extend(live.live_in(block).filter(&mine).map(ahead));
            self.starts.push((values, self.entries.len() as u32));
            let params = data.params.iter().copied();
            self.entries.extend(params.filter(&mine).map(ahead));
        }
        let end = self.entries.len() as u32;
        self.starts.push((end, end));
        loop {
            let mut changed = false;
            for block in code.blocks.keys().rev() {
                self.leave(code, flow, block);
                let length = length(code, block);
                let (values, _) = self.starts[block.index()];
                let (end, _) = self.starts[block.index() + 1];
                let most = if flow.is_header(block) {
                    CARRIED
                } else {
                    NEVER
                };
                let (_, params) = self.starts[block.index()];
                for (i, entry) in (values..).zip(&mut self.entries[values as usize..end as usize]) {
                    if entry.first == NEVER {
                        let mut new = further(self.ahead[entry.value.index()], length);
                        if i >= params && new != NEVER {
                            new = new.min(most);
                        }
                        changed |= new != entry.distance;
                        entry.distance = new;
                    }
                }
                self.forget(code, flow, block);
            }
            if !changed {
                return;
            }
        }
    }

    /// Values alive at the entry of a block, in an order that is the same for all blocks.
    pub fn live_in(&self, block: Block) -> &[Ahead] {
        let (start, end) = self.starts[block.index()];
        &self.entries[start as usize..end as usize]
    }

    /// The parameters of a block that are of the class.
    pub fn params(&self, block: Block) -> &[Ahead] {
        let (_, start) = self.starts[block.index()];
        let (end, _) = self.starts[block.index() + 1];
        &self.entries[start as usize..end as usize]
    }

    /// Fills [`Distances::ahead`] with the distances from the end of `block`.
    pub fn leave(&mut self, code: &VCode<VReg>, flow: &Flow, block: Block) {
        for successor in flow.successors(block) {
            let more = LOOP.saturating_mul(flow.loops_left(block, successor));
            let (start, params) = self.starts[successor.index()];
            for entry in &self.entries[start as usize..params as usize] {
                let place = &mut self.ahead[entry.value.index()];
                *place = (*place).min(further(entry.distance, more));
            }
            let (end, _) = self.starts[successor.index() + 1];
            let mut params = self.entries[params as usize..end as usize]
                .iter()
                .peekable();
            for (arg, param) in edge_arguments(code, block) {
                // Parameters of the class come in the order of all parameters.
                if let Some(entry) = params.next_if(|e| e.value == param) {
                    let place = &mut self.ahead[arg.index()];
                    *place = (*place).min(further(entry.distance, more));
                }
            }
        }
    }

    /// Undoes [`Distances::leave`].
    pub fn forget(&mut self, code: &VCode<VReg>, flow: &Flow, block: Block) {
        for successor in flow.successors(block) {
            let (start, params) = self.starts[successor.index()];
            for entry in &self.entries[start as usize..params as usize] {
                self.ahead[entry.value.index()] = NEVER;
            }
        }
        for (arg, _) in edge_arguments(code, block) {
            self.ahead[arg.index()] = NEVER;
        }
    }
}
