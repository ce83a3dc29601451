//! What follows when lanes part: at a divergent branch, at a call from which they come back apart, where some of them
//! leave for good.
//!
//! Takes the block at whose end they part; marks what is divergent on all their ways, by [`super::joins`] and
//! [`super::rounds`].

use super::super::meeting::Meeting;
use super::Analysis;
use cranelift_codegen::ir::{Block, Inst, Opcode, Value, ValueDef};

impl Analysis<'_> {
    /// `branch` has become divergent: finds where its lanes go and meet.
    pub(super) fn divide(&mut self, branch: Inst) {
        let block = self
            .func
            .layout
            .inst_block(branch)
            .expect("users are in the layout");
        let meeting = match self.meetings.branch(block) {
            Meeting::At(meeting) => Some(meeting),
            Meeting::Nowhere => None,
        };
        self.end_apart(block);
        self.leave_loops(block, meeting);
        if self.meetings.is_late(block) {
            self.mark_repeated_targets(branch);
            self.reach_joins(block, meeting, true);
            self.separate_component(block);
        } else if !self.flow.is_irreducible() && self.label_joins(branch, block, meeting) {
            self.separate_rounds(block, meeting);
        } else {
            self.mark_repeated_targets(branch);
            self.reach_joins(block, meeting, false);
            self.separate_component(block);
        }
    }

    /// The lanes that make the call at the end of `block` come back in groups that meet later, if they do.
    pub(super) fn come_back_apart(&mut self, block: Block, meeting: Meeting) {
        let meeting = match meeting {
            Meeting::At(meeting) => Some(meeting),
            Meeting::Nowhere => None,
        };
        self.leave_loops(block, meeting);
        self.reach_joins(block, meeting, true);
        self.separate_component(block);
    }

    /// Lanes that `block` parts leave the loops that they do not meet in in different rounds.
    fn leave_loops(&mut self, block: Block, meeting: Option<Block>) {
        let flow = self.flow;
        let Some(outermost) = flow.outermost_loop_without(block, meeting) else {
            return;
        };
        let mut next = flow.innermost_loop(block);
        let mut passed = Vec::new();
        while let Some(lp) = next.filter(|lp| flow.loop_contains(outermost, *lp)) {
            passed.push(lp);
            next = match std::mem::replace(&mut self.result.divergent_exits[lp], true) {
                true => self.left[lp],
                false => flow.loop_parent(lp),
            };
        }
        passed.into_iter().for_each(|lp| self.left[lp] = next);
    }

    /// Some lanes go from `block` to blocks where they only end. They may do so at any later time: what they read must
    /// stay, so the others write no uniform register from here on, and what changes from round to round is not uniform
    /// for them.
    pub(super) fn end_apart(&mut self, block: Block) {
        let mut stack: Vec<Block> = self
            .flow
            .successors(block)
            .filter(|succ| !self.flow.continues(block, *succ))
            .collect();
        // A guarded EXIT ends the lanes at once that a branch sends to a block that does nothing; a table has no
        // guards.
        let (layout, insts) = (&self.func.layout, &self.func.dfg.insts);
        let by_branch =
            (layout.last_inst(block)).is_some_and(|last| insts[last].opcode() == Opcode::Brif);
        let is_empty = |succ: &Block| {
            layout.first_inst(*succ) == layout.last_inst(*succ)
                && self.flow.successors(*succ).next().is_none()
        };
        if !stack.iter().all(|succ| by_branch && is_empty(succ)) {
            let mut others = vec![block];
            while let Some(other) = others.pop() {
                for next in self.flow.continuing_successors(other).collect::<Vec<_>>() {
                    if !std::mem::replace(&mut self.behind_end[next], true) {
                        self.mark_block(next);
                        others.push(next);
                    }
                }
            }
        }
        while let Some(ended) = stack.pop() {
            if std::mem::replace(&mut self.ended[ended], true) {
                continue;
            }
            self.mark_block(ended);
            self.mark_if_join([ended].into_iter());
            for inst in self.func.layout.block_insts(ended) {
                for value in self.func.dfg.inst_values(inst).collect::<Vec<_>>() {
                    self.read_late(inst, value, ended);
                }
            }
            let entering: Vec<Inst> = (self.flow.cfg().pred_iter(ended).map(|pred| pred.inst))
                .filter(|inst| {
                    let from = self.func.layout.inst_block(*inst);
                    from.is_some_and(|from| !self.flow.ends_lanes(from))
                })
                .collect();
            for inst in entering {
                for value in self.func.dfg.inst_values(inst).collect::<Vec<_>>() {
                    self.read_late(inst, value, ended);
                }
            }
            stack.extend(self.flow.successors(ended));
        }
    }

    /// `user` reads `value` for `reader`, when the lanes that did not go there may have computed it anew.
    fn read_late(&mut self, user: Inst, value: Value, reader: Block) {
        let home = match self.func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Union(..) => None,
        };
        let changes = home.is_some_and(|home| {
            !self.flow.ends_lanes(home)
                && (self.flow.is_irreducible() || self.flow.innermost_loop(home).is_some())
        });
        if changes
            && !self.is_the_same_in_every_round(value)
            && self.taint(user, value, |block| block == reader)
        {
            self.result.escaping[value] = true;
        }
    }
}
