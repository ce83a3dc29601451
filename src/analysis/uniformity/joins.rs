//! Where the ways of parted lanes come together (sync dependence).
//!
//! Takes a divergent branch and where its lanes meet; marks the blocks on the way as divergent, and the parameters of
//! every block that lanes reach on two ways. Precisely by labels, or coarsely where that would take too long.

use super::{Analysis, Label};
use crate::analysis::control_flow::destinations;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Block, Inst};
use std::collections::BTreeSet;

impl Analysis<'_> {
    /// Finds the joins of the lanes that `branch` parts, and marks the blocks on the way. False, with part of the marks
    /// set, if that would take too long.
    pub(super) fn label_joins(
        &mut self,
        branch: Inst,
        block: Block,
        meeting: Option<Block>,
    ) -> bool {
        for labelled in std::mem::take(&mut self.search.labelled) {
            self.search.labels[labelled] = None;
        }
        let dfg = &self.func.dfg;
        let first_edge = dfg.num_blocks() as Label;
        let calls = destinations(self.func, branch);
        let lasting: Vec<Block> = self.flow.continuing_successors(block).collect();
        let edges: Vec<(Block, Label)> = calls
            .iter()
            .zip(first_edge..)
            .map(|(call, label)| (call.block(&dfg.value_lists), label))
            .filter(|(target, _)| lasting.contains(target))
            .collect();
        // Blocks wait for their turn in reverse postorder; those behind the current one belong to the next round of a
        // loop.
        let mut waiting: BTreeSet<usize> = BTreeSet::new();
        let mut next_round: BTreeSet<usize> = BTreeSet::new();
        for (target, label) in edges {
            self.send(label, target, meeting, &mut waiting);
        }
        loop {
            let Some(order) = waiting.pop_first() else {
                if next_round.is_empty() {
                    return true;
                }
                std::mem::swap(&mut waiting, &mut next_round);
                continue;
            };
            if self.search.visits_left == 0 {
                return false;
            }
            self.search.visits_left -= 1;
            let from = self.flow.reverse_postorder()[order];
            self.mark_block(from);
            // The branch itself parts the lanes anew, what comes out of it is labelled already.
            if from == block {
                continue;
            }
            let Some(label) = self.search.labels[from] else {
                continue;
            };
            let targets: Vec<Block> = self.flow.continuing_successors(from).collect();
            for target in targets {
                let behind = self
                    .flow
                    .order(target)
                    .is_some_and(|target| target <= order);
                let queue = if behind {
                    &mut next_round
                } else {
                    &mut waiting
                };
                self.send(label, target, meeting, queue);
            }
        }
    }

    /// Lanes with `label` reach `target`.
    fn send(
        &mut self,
        label: Label,
        target: Block,
        meeting: Option<Block>,
        queue: &mut BTreeSet<usize>,
    ) {
        let join = target.index() as Label;
        match self.search.labels[target] {
            Some(old) if old == label || old == join => return,
            None => {
                self.search.labels[target] = Some(label);
                self.search.labelled.push(target);
            }
            Some(_) => {
                self.search.labels[target] = Some(join);
                self.mark_params(target);
            }
        }
        if Some(target) != meeting
            && let Some(order) = self.flow.order(target)
        {
            queue.insert(order);
        }
    }

    /// Two edges of the branch itself may go to one block.
    pub(super) fn mark_repeated_targets(&mut self, branch: Inst) {
        let dfg = &self.func.dfg;
        let calls = destinations(self.func, branch);
        let mut targets: Vec<Block> = calls
            .iter()
            .map(|call| call.block(&dfg.value_lists))
            .collect();
        targets.sort();
        targets
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .for_each(|pair| self.mark_params(pair[0]));
    }

    /// The coarse form of [`Self::label_joins`]: all blocks in reach are divergent and all joins among them too. If the
    /// lanes run `apart` where their ways come together, nothing that is computed there is uniform elsewhere: each
    /// group may read memory at another time.
    pub(super) fn reach_joins(&mut self, block: Block, meeting: Option<Block>, apart: bool) {
        // Without a meeting point the reach of one branch is part of another's, and need not be walked again.
        let shared = meeting.is_none() || self.search.visits_left == 0;
        self.search.walk += 1;
        let mut stack: Vec<Block> = self.flow.continuing_successors(block).collect();
        self.mark_if_join(stack.iter().copied());
        while let Some(reach) = stack.pop() {
            if Some(reach) == meeting && !shared {
                continue;
            }
            let walk = self.search.walk;
            let reached = match shared {
                false => std::mem::replace(&mut self.search.walked[reach], walk) == walk,
                true if apart => std::mem::replace(&mut self.coarse.reached_apart[reach], true),
                true => std::mem::replace(&mut self.coarse.reached[reach], true),
            };
            if reached {
                continue;
            }
            self.search.visits_left = self.search.visits_left.saturating_sub(1);
            self.mark_block(reach);
            if apart && !std::mem::replace(&mut self.apart[reach], true) {
                self.taint_outside(reach, |_, user| user != reach);
            }
            let targets: Vec<Block> = self.flow.continuing_successors(reach).collect();
            self.mark_if_join(targets.iter().copied());
            stack.extend(targets);
        }
        if let Some(meeting) = meeting {
            self.mark_params(meeting);
        }
    }

    pub(super) fn mark_if_join(&mut self, blocks: impl Iterator<Item = Block>) {
        for block in blocks {
            if self.flow.predecessors(block).nth(1).is_some() {
                self.mark_params(block);
            }
        }
    }
}
