//! Which barriers of the block lanes may still come to.
//!
//! A barrier of the block counts all lanes that have not ended, also those that wait elsewhere. In a loop of a kernel
//! some lanes may go where no barrier follows, while others may come to one, in this turn or a later one. The first
//! must not wait for the others: they *leave* and end, and only then is the barrier complete. Lanes do not leave
//!
//! - to where an operation acts on the active lanes, but for a call in front of a trap: they meet the others before it,
//!   and the program has to see to it that all lanes come to the barrier or none;
//! - outside of loops: a barrier in one arm of a branch is the program's mistake, and a fault says so.

use super::calls::Callees;
use super::endings::{Ending, extend_reaching};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function};

/// Where operations are that count all lanes, or may, and what lies ahead of each block, itself included.
#[derive(Default)]
pub(super) struct Barriers {
    any: bool,
    /// Blocks with an operation that counts all lanes.
    counting: SecondaryMap<Block, bool>,
    /// Such an operation is ahead.
    ahead: SecondaryMap<Block, bool>,
    /// An operation is ahead for which lanes come together.
    convergent: SecondaryMap<Block, bool>,
}

impl Barriers {
    /// Looks at the reachable blocks `rpo`.
    pub fn find(
        &mut self,
        func: &Function,
        (cfg, rpo): (&ControlFlowGraph, &[Block]),
        callees: &Callees,
        endings: &SecondaryMap<Block, Ending>,
    ) {
        for marks in [&mut self.counting, &mut self.ahead, &mut self.convergent] {
            marks.clear();
        }
        self.any = false;
        if !callees.any_counts_all(func) {
            return;
        }
        let (mut counting, mut convergent) = (Vec::new(), Vec::new());
        for &block in rpo {
            let insts = func.layout.block_insts(block);
            for call in insts.filter_map(|inst| callees.call(func, inst)) {
                let says_what_is_wrong = !call.intrinsic && endings[block] == Ending::Apart;
                let convergent_here = call.summary.convergent && !says_what_is_wrong;
                counting.extend(call.summary.counts_all.then_some(block));
                convergent.extend(convergent_here.then_some(block));
                self.counting[block] |= call.summary.counts_all;
            }
        }
        self.any = !counting.is_empty();
        extend_reaching(cfg, &counting, &mut self.ahead);
        extend_reaching(cfg, &convergent, &mut self.convergent);
    }

    /// Whether there are any.
    pub fn any(&self) -> bool {
        self.any
    }

    /// Whether the block has a barrier.
    pub fn are_in(&self, block: Block) -> bool {
        self.counting[block]
    }

    /// Whether a barrier can be reached from the start of `block`.
    pub fn are_ahead(&self, block: Block) -> bool {
        self.ahead[block]
    }

    /// Whether nothing can be reached from the start of `block` for which lanes come together.
    pub fn are_past(&self, block: Block) -> bool {
        !self.convergent[block]
    }
}
