//! Which barriers of the block lanes may still come to.
//!
//! A barrier of the block counts all lanes that have not ended. So lanes of a kernel that go where no barrier follows,
//! while others may come to one, must not wait for those: they end, and only then is the barrier complete. On such an
//! edge lanes *leave*, however much they still do. But if they come to an operation that acts on the active lanes, they
//! meet the others before it: there lanes that wait are counted by the barrier, and the program has to see to it that
//! all lanes come to it or none. So it is outside of loops: a barrier in one arm of a branch is the program's mistake,
//! and a fault says so.

use super::calls::Callees;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function};

/// Where operations are that count all lanes, and what lies ahead of each block, itself included.
#[derive(Default)]
pub(super) struct Barriers {
    /// Blocks with an operation that counts all lanes, or may.
    counting: SecondaryMap<Block, bool>,
    /// Such an operation is ahead.
    ahead: SecondaryMap<Block, bool>,
    /// In a kernel: an operation is ahead for which lanes come together.
    convergent: SecondaryMap<Block, bool>,
    /// Lanes may leave: it is a kernel with a barrier.
    may_leave: bool,
}

impl Barriers {
    /// Looks at the reachable blocks `rpo`. `may_leave`: it is a kernel, and its cycles have headers.
    pub fn find(
        &mut self,
        func: &Function,
        (cfg, rpo): (&ControlFlowGraph, &[Block]),
        may_leave: bool,
        callees: &Callees,
    ) {
        for marks in [&mut self.counting, &mut self.ahead, &mut self.convergent] {
            marks.clear();
        }
        self.may_leave = false;
        if !callees.any_counts_all(func) {
            return;
        }
        let (mut counting, mut convergent) = (Vec::new(), Vec::new());
        for &block in rpo {
            let insts = func.layout.block_insts(block);
            for call in insts.filter_map(|inst| callees.call(func, inst)) {
                counting.extend(call.summary.counts_all.then_some(block));
                convergent.extend(call.summary.convergent.then_some(block));
                self.counting[block] |= call.summary.counts_all;
            }
        }
        self.may_leave = may_leave && !counting.is_empty();
        behind(cfg, counting, &mut self.ahead);
        if self.may_leave {
            behind(cfg, convergent, &mut self.convergent);
        }
    }

    /// Whether the block has a barrier.
    pub fn are_in(&self, block: Block) -> bool {
        self.counting[block]
    }

    /// Whether a barrier can be reached from the start of `block`.
    pub fn are_ahead(&self, block: Block) -> bool {
        self.ahead[block]
    }

    /// Whether lanes leave that go to `to`, one of the `ways` at a branch.
    pub fn leaves(&self, to: Block, mut ways: impl Iterator<Item = Block>) -> bool {
        self.may_leave && !self.convergent[to] && ways.any(|way| self.ahead[way])
    }
}

/// Marks the blocks from which one of `work` can be reached.
fn behind(cfg: &ControlFlowGraph, mut work: Vec<Block>, marked: &mut SecondaryMap<Block, bool>) {
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut marked[block], true) {
            work.extend(cfg.pred_iter(block).map(|pred| pred.block));
        }
    }
}
