//! Which values are the same for all active lanes of a warp, which branches divide it, and which blocks may run with only
//! part of it.
//!
//! A value is *uniform* if, whenever its instruction executes, all lanes that execute it together get the same. Divergence
//! starts at thread and lane ids, atomics, shuffles, local and generic loads, loads at divergent addresses, and at the
//! parameters and call results of device functions. It spreads
//!
//! - along data: a result is divergent if an operand is;
//! - through joins (*sync dependence*): when the lanes that a divergent branch parts meet again, the parameters of the
//!   block where they meet are divergent. The meeting points are found by sending a label along each edge of the branch
//!   until its post-dominator; a block that two different labels reach is one. This is the reaching-definition form of the
//!   disjoint-paths criterion (Rosemann, Moll, Hack: "An Abstract Interpretation for SPMD Divergence on Reducible Control
//!   Flow Graphs");
//! - through time (*temporal divergence*): of two lanes that a branch parts, one may run through a cycle again before they
//!   meet, and then they hold values of different rounds. That concerns every block between the branch and the meeting
//!   point that also dominates the meeting point, so that its values are live there, and every block of a loop that lanes leave on
//!   the way, whose values may be passed along the edges out of it. Their uses are divergent, except
//!   those in the largest loop that contains the block but not the meeting point (or in the block itself if there is
//!   none): whoever comes back into that loop computes the value anew. The common case is a loop whose lanes leave it in
//!   different rounds: inside, its values may be uniform, outside they count as divergent.
//!
//! A block is *divergent* if it can be reached from a divergent branch before its lanes meet ([`super::meeting`]): then it
//! may run while lanes of the same warp wait elsewhere, and must not write uniform registers. A guarded return at the head of
//! a kernel divides nothing. Lanes that end elsewhere, in blocks that still compute ([`ControlFlow::ends_lanes`]), leave the others together, but
//! those must not overwrite what the first ones may still read.
//!
//! The work per divergent branch is the size of its region; when nested or unstructured regions make that exceed a
//! constant times the size of the function, the rest is done once for all branches and coarsely (every join in reach is
//! divergent), so the whole stays linear. Functions with irreducible cycles take the coarse way from the start.
//!
//! Lanes come back together from a call, unless [`Meetings::call`] says that they meet later: then the call parts them like
//! a branch. Where lanes meet later than their ways come together, everything is divergent that is computed in between.

use super::control_flow::ControlFlow;
use super::meeting::{Meeting, Meetings};
use super::provenance::{Provenance, Space};
use super::uses::Users;
use crate::clif::intrinsics::Uniformity as ResultUniformity;
use crate::clif::resolve::{GpuSymbol, Intrinsics};
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::loop_analysis::Loop;
use std::collections::BTreeSet;

/// How many block visits the precise search may take, per block of the function (assumed: generous for nested code).
const VISITS_PER_BLOCK: usize = 16;

/// A function and what the analysis rests on.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The function.
    pub func: &'a Function,
    /// Its control flow.
    pub flow: &'a ControlFlow,
    /// Where its lanes meet.
    pub meetings: &'a Meetings,
    /// Which of its calls are intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// Where its addresses point.
    pub provenance: &'a Provenance,
    /// Who reads each of its values.
    pub users: &'a Users,
    /// In a kernel the parameters are uniform, in other functions divergent.
    pub kernel: bool,
}

/// The result of the analysis.
#[derive(Default)]
pub struct Uniformity {
    divergent: SecondaryMap<Value, bool>,
    escaping: SecondaryMap<Value, bool>,
    divergent_branches: SecondaryMap<Inst, bool>,
    divergent_blocks: SecondaryMap<Block, bool>,
    divergent_exits: SecondaryMap<Loop, bool>,
}

impl Uniformity {
    /// Analyses a function.
    pub fn compute(given: &Given<'_>) -> Self {
        let mut found = Self::default();
        found.recompute(given);
        found
    }

    /// The same in the memory of the function before.
    pub fn recompute(&mut self, given: &Given<'_>) {
        self.clear(given.func);
        let mut analysis = Analysis::new(given, std::mem::take(self));
        analysis.seed();
        analysis.propagate();
        *self = analysis.result;
    }

    /// Everything is uniform, in as much memory as `func` needs.
    fn clear(&mut self, func: &Function) {
        self.divergent.clear();
        self.divergent.resize(func.dfg.num_values());
        self.escaping.clear();
        self.divergent_branches.clear();
        self.divergent_blocks.clear();
        self.divergent_blocks.resize(func.dfg.num_blocks());
        self.divergent_exits.clear();
    }

    /// True if all active lanes have the same `value`, wherever it is used.
    pub fn uniform(&self, value: Value) -> bool {
        !self.divergent[value] && !self.escaping[value]
    }

    /// True if all active lanes have the same `value` where it is defined, and within the loop it is defined in; a use
    /// outside that loop may see values of different rounds. Only for questions about that very place.
    pub fn uniform_at_definition(&self, value: Value) -> bool {
        !self.divergent[value]
    }

    /// True if lanes may leave the block of this branch in different directions.
    pub fn divergent_branch(&self, inst: Inst) -> bool {
        self.divergent_branches[inst]
    }

    /// True if the block may run with only part of the warp's live lanes.
    pub fn divergent_block(&self, block: Block) -> bool {
        self.divergent_blocks[block]
    }

    /// True if lanes may leave the loop in different rounds.
    pub fn divergent_exit(&self, lp: Loop) -> bool {
        self.divergent_exits[lp]
    }
}

/// What the label of a block stands for: the edge or join through which lanes come, counted from a divergent branch.
type Label = u32;

struct Analysis<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    meetings: &'a Meetings,
    intrinsics: &'a Intrinsics,
    provenance: &'a Provenance,
    kernel: bool,
    users: &'a Users,
    result: Uniformity,
    /// Divergent values whose users have not been looked at.
    work: Vec<Value>,
    /// Divergent branches whose region has not been looked at.
    branches: Vec<Inst>,
    search: Search,
    coarse: Coarse,
    /// Divergent blocks for whose ended lanes nothing has been done.
    parted: Vec<Block>,
    /// Blocks that lanes which leave the others for good have been followed to.
    ended: SecondaryMap<Block, bool>,
    /// Blocks that the others have been followed to.
    behind_end: SecondaryMap<Block, bool>,
    /// By loop that lanes leave in different rounds: one around it such that this is so of all in between; none if of all around it.
    left: SecondaryMap<Loop, Option<Loop>>,
    /// Blocks outside of which nothing that they define is uniform.
    apart: SecondaryMap<Block, bool>,
    /// Loop depth of the smallest scope outside of which the values of a block are divergent; [`BLOCK_SCOPE`] for the
    /// block itself, 0 for none.
    scopes: SecondaryMap<Block, usize>,
}

/// Depth in [`Analysis::scopes`] of a scope that is a single block.
const BLOCK_SCOPE: usize = usize::MAX;

/// Memory of the precise search, reused from branch to branch.
struct Search {
    labels: SecondaryMap<Block, Option<Label>>,
    labelled: Vec<Block>,
    /// Number of the last walk over a region.
    walk: u32,
    /// The last walk that came to each block.
    walked: SecondaryMap<Block, u32>,
    visits_left: usize,
}

/// Memory of the coarse search.
#[derive(Default)]
struct Coarse {
    reached: SecondaryMap<Block, bool>,
    reached_apart: SecondaryMap<Block, bool>,
    components: Option<Components>,
}

/// The cyclic strongly connected components.
struct Components {
    /// By block: the number of its component, from 1; 0 for blocks in no cycle.
    numbers: SecondaryMap<Block, u32>,
    /// By number: the blocks in reverse postorder, until the component has been looked at.
    members: Vec<Vec<Block>>,
}

impl Components {
    fn of(flow: &ControlFlow) -> Self {
        let numbers = cyclic_components(flow);
        let mut members: Vec<Vec<Block>> = Vec::new();
        for &block in flow.reverse_postorder() {
            let number = numbers[block] as usize;
            if members.len() <= number {
                members.resize(number + 1, Vec::new());
            }
            members[number].push(block);
        }
        Components { numbers, members }
    }
}

impl<'a> Analysis<'a> {
    /// Before anything is marked; `result` is empty.
    fn new(given: &Given<'a>, result: Uniformity) -> Self {
        let Given {
            func,
            flow,
            meetings,
            intrinsics,
            provenance,
            users,
            kernel,
        } = *given;
        Self {
            func,
            flow,
            meetings,
            intrinsics,
            provenance,
            kernel,
            users,
            result,
            work: Vec::new(),
            branches: Vec::new(),
            search: Search {
                labels: SecondaryMap::new(),
                labelled: Vec::new(),
                walk: 0,
                walked: SecondaryMap::new(),
                visits_left: flow.reverse_postorder().len() * VISITS_PER_BLOCK,
            },
            coarse: Coarse::default(),
            parted: Vec::new(),
            ended: SecondaryMap::new(),
            behind_end: SecondaryMap::new(),
            left: SecondaryMap::new(),
            apart: SecondaryMap::new(),
            scopes: SecondaryMap::new(),
        }
    }

    /// Marks the values that are divergent whatever their operands are, and those computed from them. In this order who reads a value comes after it,
    /// and need not be looked for, unless it is passed around a cycle.
    fn seed(&mut self) {
        let (layout, dfg) = (&self.func.layout, &self.func.dfg);
        if let Some(entry) = layout.entry_block()
            && !self.kernel
        {
            self.set(dfg.block_params(entry));
        }
        for (order, &block) in self.flow.reverse_postorder().iter().enumerate() {
            for inst in layout.block_insts(block) {
                let results = dfg.inst_results(inst);
                let divergent = |value: &Value| self.result.divergent[*value];
                if !results.is_empty()
                    && match self.source(inst) {
                        Source::Uniform => false,
                        Source::Divergent => true,
                        Source::AsOperands => dfg.inst_args(inst).iter().any(divergent),
                    }
                {
                    self.set(results);
                }
            }
            if let Some(last) = layout.last_inst(block) {
                self.seed_targets(last, order);
            }
            if let Some(meeting) = self.meetings.call(block) {
                self.come_back_apart(block, meeting);
            }
        }
    }

    /// Marks what the branch at the end of a block divides, and what it passes on. The block is at `order` in reverse postorder.
    fn seed_targets(&mut self, branch: Inst, order: usize) {
        let dfg = &self.func.dfg;
        let calls = dfg.insts[branch].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
        if calls.is_empty() {
            return;
        }
        let try_call = matches!(
            dfg.insts[branch].opcode(),
            Opcode::TryCall | Opcode::TryCallIndirect
        );
        let mut decides = dfg.inst_fixed_args(branch).iter();
        if try_call || decides.any(|&value| self.result.divergent[value]) {
            self.mark_branch(branch);
        }
        for call in calls {
            let target = call.block(&dfg.value_lists);
            let is_later = self.flow.order(target).is_some_and(|target| target > order);
            for (arg, &param) in call.args(&dfg.value_lists).zip(dfg.block_params(target)) {
                if arg.as_value().is_some_and(|arg| self.result.divergent[arg]) {
                    match is_later {
                        true => self.set(&[param]),
                        false => self.mark(param),
                    }
                }
            }
        }
    }

    /// Marks values whose users are still to be looked at.
    fn set(&mut self, values: &[Value]) {
        for &value in values {
            self.result.divergent[value] = true;
        }
    }

    /// Spreads divergence until nothing changes.
    fn propagate(&mut self) {
        loop {
            while let Some(value) = self.work.pop() {
                for index in 0..self.users.of(value).len() {
                    self.taint(self.users.of(value)[index], value, |_| true);
                }
            }
            if let Some(branch) = self.branches.pop() {
                self.divide(branch);
            } else if let Some(block) = self.parted.pop() {
                self.end_apart(block);
            } else {
                return;
            }
        }
    }

    /// `value` is divergent as an operand of `user`, as far as it is read in or passed to blocks that satisfy `seen_by`.
    /// True if it is at all.
    fn taint(&mut self, user: Inst, value: Value, seen_by: impl Fn(Block) -> bool) -> bool {
        let Some(home) = self
            .func
            .layout
            .inst_block(user)
            .filter(|block| self.flow.is_reachable(*block))
        else {
            return false;
        };
        let dfg = &self.func.dfg;
        if !dfg.insts[user].opcode().is_branch() {
            let seen = seen_by(home);
            // All results are marked at once.
            if seen
                && let Some(&first) = dfg.inst_results(user).first()
                && !self.result.divergent[first]
                && self.source(user) == Source::AsOperands
            {
                self.mark_results(user);
            }
            return seen;
        }
        let mut passed = Vec::new();
        for call in dfg.insts[user].branch_destination(&dfg.jump_tables, &dfg.exception_tables) {
            let block = call.block(&dfg.value_lists);
            if seen_by(block) {
                let args = call.args(&dfg.value_lists).zip(dfg.block_params(block));
                passed.extend(
                    args.filter(|(arg, _)| arg.as_value() == Some(value))
                        .map(|(_, param)| *param),
                );
            }
        }
        let decides = dfg.inst_fixed_args(user).contains(&value) && seen_by(home);
        let seen = decides || !passed.is_empty();
        passed.into_iter().for_each(|param| self.mark(param));
        if decides {
            self.mark_branch(user);
        }
        seen
    }

    fn mark(&mut self, value: Value) {
        if !std::mem::replace(&mut self.result.divergent[value], true) {
            self.work.push(value);
        }
    }

    fn mark_results(&mut self, inst: Inst) {
        self.func
            .dfg
            .inst_results(inst)
            .iter()
            .for_each(|result| self.mark(*result));
    }

    fn mark_params(&mut self, block: Block) {
        self.func
            .dfg
            .block_params(block)
            .iter()
            .for_each(|param| self.mark(*param));
    }

    /// What decides over the results of `inst`.
    fn source(&self, inst: Inst) -> Source {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        if let Some(intrinsic) = self.intrinsics.of_call(self.func, inst) {
            return match intrinsic.uniformity {
                ResultUniformity::Uniform => Source::Uniform,
                ResultUniformity::Divergent => Source::Divergent,
                ResultUniformity::AsOperands => Source::AsOperands,
            };
        }
        match data.opcode() {
            opcode if opcode.is_call() => Source::Divergent,
            Opcode::AtomicRmw
            | Opcode::AtomicCas
            | Opcode::GetPinnedReg
            | Opcode::GetFramePointer
            | Opcode::GetStackPointer
            | Opcode::GetReturnAddress
            | Opcode::TlsValue
            | Opcode::DynamicStackAddr
            | Opcode::StackSwitch => Source::Divergent,
            // Lanes of one warp may stand at different depths of recursion.
            Opcode::StackAddr if !self.kernel => Source::Divergent,
            Opcode::SymbolValue => match self.intrinsics.of_symbol_value(self.func, inst) {
                Some(GpuSymbol::Special(row)) if row.uniformity == ResultUniformity::Divergent => {
                    Source::Divergent
                }
                _ => Source::Uniform,
            },
            opcode if opcode.can_load() => {
                let address = dfg.inst_args(inst).first().copied();
                match address.map(|address| self.provenance.space(self.func, address)) {
                    Some(Space::Global | Space::Shared | Space::Constant) => Source::AsOperands,
                    Some(Space::Local | Space::Generic) | None => Source::Divergent,
                }
            }
            _ => Source::AsOperands,
        }
    }

    fn mark_block(&mut self, block: Block) {
        if !std::mem::replace(&mut self.result.divergent_blocks[block], true) {
            self.parted.push(block);
        }
    }

    fn mark_branch(&mut self, branch: Inst) {
        if !std::mem::replace(&mut self.result.divergent_branches[branch], true) {
            self.branches.push(branch);
        }
    }

    /// `branch` has become divergent: finds where its lanes go and meet.
    fn divide(&mut self, branch: Inst) {
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
    fn come_back_apart(&mut self, block: Block, meeting: Meeting) {
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

    /// Some lanes go from `block` to blocks where they only end. They may do so at any later time: what they read must stay, so the others
    /// write no uniform register from here on, and what changes from round to round is not uniform for them.
    fn end_apart(&mut self, block: Block) {
        let mut stack: Vec<Block> = self
            .flow
            .successors(block)
            .filter(|succ| !self.flow.continues(block, *succ))
            .collect();
        let is_empty = |succ: &Block| {
            let layout = &self.func.layout;
            layout.first_inst(*succ) == layout.last_inst(*succ)
                && self.flow.successors(*succ).next().is_none()
        };
        if !stack.iter().all(is_empty) {
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

    /// Finds the joins of the lanes that `branch` parts, and marks the blocks on the way. False, with part of the marks
    /// set, if that would take too long.
    fn label_joins(&mut self, branch: Inst, block: Block, meeting: Option<Block>) -> bool {
        for labelled in std::mem::take(&mut self.search.labelled) {
            self.search.labels[labelled] = None;
        }
        let dfg = &self.func.dfg;
        let first_edge = dfg.num_blocks() as Label;
        let calls = dfg.insts[branch].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
        let lasting: Vec<Block> = self.flow.continuing_successors(block).collect();
        let edges: Vec<(Block, Label)> = calls
            .iter()
            .zip(first_edge..)
            .map(|(call, label)| (call.block(&dfg.value_lists), label))
            .filter(|(target, _)| lasting.contains(target))
            .collect();
        // Blocks wait for their turn in reverse postorder; those behind the current one belong to the next round of a loop.
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
    fn mark_repeated_targets(&mut self, branch: Inst) {
        let dfg = &self.func.dfg;
        let calls = dfg.insts[branch].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
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

    /// The coarse form of [`Self::label_joins`]: all blocks in reach are divergent and all joins among them too. If the lanes run `apart`
    /// where their ways come together, nothing that is computed there is uniform elsewhere: each group may read memory at another time.
    fn reach_joins(&mut self, block: Block, meeting: Option<Block>, apart: bool) {
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

    fn mark_if_join(&mut self, blocks: impl Iterator<Item = Block>) {
        for block in blocks {
            if self.flow.predecessors(block).nth(1).is_some() {
                self.mark_params(block);
            }
        }
    }

    /// Lanes that `block` parted and that meet at `meeting` may come from different rounds of the cycles just labelled.
    fn separate_rounds(&mut self, block: Block, meeting: Option<Block>) {
        // Only what lies in a cycle with the branch runs in several rounds before the lanes meet.
        let Some(outermost) = self.flow.outermost_loop_without(block, None) else {
            return;
        };
        let region = self.search.labelled.clone();
        self.search.visits_left = self.search.visits_left.saturating_sub(region.len());
        for block in region {
            if Some(block) == meeting || !self.flow.is_in_loop(block, outermost) {
                continue;
            }
            let scope = self.flow.outermost_loop_without(block, meeting);
            // Values are live at the meeting point if their block dominates it; out of a loop they may also be passed along an edge.
            let carried = meeting.is_none_or(|meeting| self.flow.dominates(block, meeting));
            if scope.is_none() && !carried {
                continue;
            }
            let depth = scope.map_or(BLOCK_SCOPE, |lp| self.flow.loop_nesting(lp));
            if depth <= self.scopes[block] {
                continue;
            }
            self.scopes[block] = depth;
            match scope {
                Some(lp) => self.taint_outside(block, |flow, user| !flow.is_in_loop(user, lp)),
                None => self.taint_outside(block, |_, user| user != block),
            }
        }
    }

    /// The coarse form of [`Self::separate_rounds`], for any kind of cycle: in the strongly connected component of the
    /// branch, no value is uniform in other blocks than its own.
    fn separate_component(&mut self, block: Block) {
        let flow = self.flow;
        let components = (self.coarse.components).get_or_insert_with(|| Components::of(flow));
        let number = components.numbers[block];
        if number == 0 {
            return;
        }
        let members = std::mem::take(&mut components.members[number as usize]);
        for home in members {
            self.taint_outside(home, |_, user| user != home);
        }
    }

    /// The values defined in `home` are divergent for users in blocks that are `outside`.
    fn taint_outside(&mut self, home: Block, outside: impl Fn(&ControlFlow, Block) -> bool) {
        let mut values: Vec<Value> = self.func.dfg.block_params(home).to_vec();
        for inst in self.func.layout.block_insts(home) {
            values.extend_from_slice(self.func.dfg.inst_results(inst));
        }
        values.retain(|value| !self.is_the_same_in_every_round(*value));
        for value in values {
            for index in 0..self.users.of(value).len() {
                let flow = self.flow;
                if self.taint(self.users.of(value)[index], value, |block| {
                    outside(flow, block)
                }) {
                    self.result.escaping[value] = true;
                }
            }
        }
    }

    /// True for values that do not depend on the round of any loop: constants and launch values.
    fn is_the_same_in_every_round(&self, value: Value) -> bool {
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else {
            return false;
        };
        matches!(
            self.func.dfg.insts[inst],
            InstructionData::UnaryImm { .. }
                | InstructionData::UnaryIeee16 { .. }
                | InstructionData::UnaryIeee32 { .. }
                | InstructionData::UnaryIeee64 { .. }
                | InstructionData::UnaryConst { .. }
                | InstructionData::UnaryGlobalValue {
                    opcode: Opcode::SymbolValue,
                    ..
                }
                | InstructionData::FuncAddr { .. }
                | InstructionData::StackAddr { .. }
        )
    }
}

/// What decides whether a result is uniform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Uniform,
    Divergent,
    AsOperands,
}

/// Numbers the strongly connected components that have a cycle, from 1; blocks in no cycle have 0. Iterative Tarjan.
fn cyclic_components(flow: &ControlFlow) -> SecondaryMap<Block, u32> {
    let mut component: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut number: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut low: SecondaryMap<Block, u32> = SecondaryMap::new();
    let mut open: SecondaryMap<Block, bool> = SecondaryMap::new();
    let (mut path, mut next, mut found) = (Vec::new(), 0, 0);
    let Some(&entry) = flow.reverse_postorder().first() else {
        return component;
    };
    let mut stack: Vec<(Block, Vec<Block>)> = Vec::new();
    let enter = |block: Block, next: &mut u32, path: &mut Vec<Block>| {
        *next += 1;
        path.push(block);
        (*next, flow.successors(block).collect::<Vec<_>>())
    };
    let (n, succs) = enter(entry, &mut next, &mut path);
    (number[entry], low[entry], open[entry]) = (n, n, true);
    stack.push((entry, succs));
    while let Some((block, succs)) = stack.last_mut() {
        let block = *block;
        if let Some(succ) = succs.pop() {
            if number[succ] == 0 {
                let (n, succs) = enter(succ, &mut next, &mut path);
                (number[succ], low[succ], open[succ]) = (n, n, true);
                stack.push((succ, succs));
            } else if open[succ] {
                low[block] = low[block].min(number[succ]);
            }
            continue;
        }
        stack.pop();
        if let Some((parent, _)) = stack.last() {
            low[*parent] = low[*parent].min(low[block]);
        }
        if low[block] == number[block] {
            let start = path
                .iter()
                .rposition(|b| *b == block)
                .expect("a block is on the path until it is closed");
            let members = path.split_off(start);
            let cyclic = members.len() > 1 || flow.successors(block).any(|succ| succ == block);
            found += u32::from(cyclic);
            for member in members {
                open[member] = false;
                component[member] = if cyclic { found } else { 0 };
            }
        }
    }
    component
}

#[cfg(test)]
#[path = "uniformity_tests.rs"]
mod tests;
