//! Which values the colouring gives registers.
//!
//! All of them where it is the allocation. Where regalloc2 allocates, only those that have to be side by side or where
//! another value was, for which regalloc2 has no constraint of its own: values of pairs and quads, guarded results and
//! what they keep, addresses that are called or returned to; with them what the calling convention places, which stands
//! in their way, and what copies on edges join to either. The rest is left to regalloc2.

use super::convention::hints;
use super::liveness::edge_arguments;
use crate::isa::VReg;
use crate::vcode::{Block, Callee, Terminator, VCode};

/// How often the edges are walked for what copies join (*assumed*: a value that goes through more parameters costs a
/// copy at worst).
const ROUNDS: usize = 3;

/// How much of a function is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// What has to be in registers that only a colouring can choose.
    Fixed,
    /// Every value.
    All,
}

/// The set; kept between functions.
#[derive(Debug, Default)]
pub(super) struct Coloured {
    /// Whether all are.
    all: bool,
    /// By value, if not all are.
    fixed: Vec<bool>,
}

impl Coloured {
    /// Finds the values of `code`.
    pub fn find(&mut self, code: &VCode<VReg>, extent: Extent) {
        self.all = extent == Extent::All;
        self.fixed.clear();
        if self.all {
            return;
        }
        self.fixed.resize(code.vreg_count as usize, false);
        for (block, data) in code.blocks.iter() {
            for entry in code.block_insts(block) {
                if entry.inst.info().wide {
                    let wide = entry.inst.operands().filter(|o| o.regs.len() > 1);
                    wide.for_each(|o| self.add(o.regs.iter().copied().flatten()));
                }
                if entry.attachment.is_some() {
                    let kept = entry.inst.definitions().zip(code.else_values(entry));
                    kept.filter_map(|(v, kept)| Some([v, (*kept)?]))
                        .for_each(|both| self.add(both));
                }
            }
            match &data.terminator {
                Terminator::Return { address, .. }
                | Terminator::TailCall {
                    callee: Callee::Registers(address),
                    ..
                } => self.add(*address),
                _ => {}
            }
        }
        hints(code, |v, _, _| self.fixed[v.index()] = true);
        // What a copy joins to them, so that loops do not copy.
        for _ in 0..ROUNDS {
            for block in code.blocks.keys() {
                for (a, b) in edge_arguments(code, block) {
                    if self.fixed[a.index()] || self.fixed[b.index()] {
                        self.add([a, b]);
                    }
                }
            }
        }
    }

    fn add(&mut self, values: impl IntoIterator<Item = VReg>) {
        values
            .into_iter()
            .for_each(|v| self.fixed[v.index()] = true);
    }

    /// Whether `v` is one of them.
    #[inline]
    pub fn contains(&self, v: VReg) -> bool {
        self.all || self.fixed[v.index()]
    }

    /// How much of the function they are.
    pub fn extent(&self) -> Extent {
        if self.all { Extent::All } else { Extent::Fixed }
    }

    /// Whether every value is one.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The arguments that a block passes from coloured values to coloured parameters.
    pub fn edge_arguments<'a>(
        &'a self,
        code: &'a VCode<VReg>,
        block: Block,
    ) -> impl Iterator<Item = (VReg, VReg)> + 'a {
        edge_arguments(code, block).filter(|(a, b)| self.contains(*a) && self.contains(*b))
    }
}
