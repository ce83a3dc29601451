//! What would save copies if it got the same register, or neighbouring ones.

use super::coloured::Coloured;
use crate::isa::VReg;
use crate::isa::table::Direction;
use crate::vcode::{Callee, Terminator, VCode};

/// Two values that want one register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    /// Depth of the loop that would copy.
    pub depth: u32,
    pub a: VReg,
    pub b: VReg,
}

/// Values that want an aligned run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuple {
    /// Depth of the loop.
    pub depth: u32,
    /// The values are results: they come into being side by side, whatever is preferred.
    pub results: bool,
    values: [Option<VReg>; 4],
}

impl Tuple {
    fn new(depth: u32, results: bool, regs: &[Option<VReg>]) -> Option<Tuple> {
        let mut values = [None; 4];
        for (i, r) in regs.iter().enumerate() {
            let r = (*r)?;
            if values[..i].contains(&Some(r)) {
                return None;
            }
            *values.get_mut(i)? = Some(r);
        }
        Some(Tuple {
            depth,
            results,
            values,
        })
    }

    /// The values, first to last.
    pub fn regs(&self) -> impl ExactSizeIterator<Item = VReg> + Clone + '_ {
        let width = self.values.iter().flatten().count();
        (0..width).map(|i| self.values[i].expect("the first are there"))
    }
}

impl Join {
    /// Whether this is granted before `tuple`.
    pub fn comes_before(&self, tuple: &Tuple) -> bool {
        !tuple.results && self.depth > tuple.depth
    }
}

/// The preferences of a function, in the order in which they are granted: those of the innermost loops first.
#[derive(Debug, Default)]
pub(super) struct Preferences {
    pub joins: Vec<Join>,
    /// Results before all.
    pub tuples: Vec<Tuple>,
}

impl Preferences {
    /// Finds them all; the value `pinned` takes part in nothing.
    pub fn collect(&mut self, code: &VCode<VReg>, coloured: &Coloured, pinned: Option<VReg>) {
        self.joins.clear();
        self.tuples.clear();
        for (block, data) in code.blocks.iter() {
            let depth = data.loop_depth;
            let edges = coloured.edge_arguments(code, block);
            self.joins.extend(edges.map(|(a, b)| Join { depth, a, b }));
            for entry in code.block_insts(block) {
                if entry.attachment.is_some() {
                    let kept = entry.inst.definitions().zip(code.else_values(entry));
                    self.joins
                        .extend(kept.filter_map(|(a, b)| b.map(|b| Join { depth, a, b })));
                    // Where bits are the registers' numbers one R2P brings several predicates back.
                    let bit = code.bit(entry).zip(entry.inst.definitions().next());
                    let bit = bit.filter(|(a, b)| coloured.contains(*a) && coloured.contains(*b));
                    self.joins.extend(bit.map(|(a, b)| Join { depth, a, b }));
                }
                if !entry.inst.info().wide {
                    continue;
                }
                for operand in entry.inst.operands().filter(|o| o.regs.len() > 1) {
                    let results = operand.info.direction == Direction::Out;
                    self.tuples.extend(Tuple::new(depth, results, operand.regs));
                }
            }
            if let Terminator::Return { address, .. }
            | Terminator::TailCall {
                callee: Callee::Registers(address),
                ..
            } = &data.terminator
            {
                let address = address.map(Some);
                self.tuples.extend(Tuple::new(depth, false, &address));
            }
        }
        if let Some(pinned) = pinned {
            self.joins.retain(|j| j.a != pinned && j.b != pinned);
            self.tuples.retain(|t| !t.values.contains(&Some(pinned)));
        }
        self.joins.sort_by_key(|j| std::cmp::Reverse(j.depth));
        self.tuples
            .sort_by_key(|t| (!t.results, std::cmp::Reverse(t.depth)));
    }
}
