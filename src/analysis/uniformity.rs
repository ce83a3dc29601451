//! Which values are the same for all active lanes of a warp, which branches divide it, and which blocks may run with
//! only part of it.
//!
//! A value is *uniform* if, whenever its instruction executes, all lanes that execute it together get the same.
//! Divergence starts at thread and lane ids, atomics, shuffles, local and generic loads, loads at divergent addresses,
//! and at the parameters and call results of device functions. It spreads
//!
//! - along data: a result is divergent if an operand is;
//! - through joins (*sync dependence*): when the lanes that a divergent branch parts meet again, the parameters of the
//!   block where they meet are divergent. The meeting points are found by sending a label along each edge of the branch
//!   until its post-dominator; a block that two different labels reach is one. This is the reaching-definition form of
//!   the disjoint-paths criterion (Rosemann, Moll, Hack: "An Abstract Interpretation for SPMD Divergence on Reducible
//!   Control Flow Graphs");
//! - through time (*temporal divergence*): of two lanes that a branch parts, one may run through a cycle again before
//!   they meet, and then they hold values of different rounds. That concerns every block between the branch and the
//!   meeting point that also dominates the meeting point, so that its values are live there, and every block of a loop
//!   that lanes leave on the way, whose values may be passed along the edges out of it. Their uses are divergent,
//!   except those in the largest loop that contains the block but not the meeting point (or in the block itself if
//!   there is none): whoever comes back into that loop computes the value anew. The common case is a loop whose lanes
//!   leave it in different rounds: inside, its values may be uniform, outside they count as divergent.
//!
//! A block is *divergent* if it can be reached from a divergent branch before its lanes meet ([`super::meeting`]): then
//! it may run while lanes of the same warp wait elsewhere, and must not write uniform registers. A guarded return at
//! the head of a kernel divides nothing. Lanes that end elsewhere, in blocks that still compute
//! ([`ControlFlow::ends_some_later`]), leave the others together, but those must not overwrite what the first ones may
//! still read.
//!
//! The work per divergent branch is the size of its region; when nested or unstructured regions make that exceed a
//! constant times the size of the function, the rest is done once for all branches and coarsely (every join in reach is
//! divergent), so the whole stays linear. Functions with irreducible cycles take the coarse way from the start.
//!
//! Lanes come back together from a call, unless [`Meetings::call`] says that they meet later: then the call parts them
//! like a branch. Where lanes meet later than their ways come together, everything is divergent that is computed in
//! between.

mod joins;
mod parting;
mod rounds;

use super::control_flow::{ControlFlow, destinations};
use super::meeting::Meetings;
use super::provenance::{Provenance, Space};
use super::uses::Users;
use crate::intrinsics::Uniformity as ResultUniformity;
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Value};
use cranelift_codegen::loop_analysis::Loop;
use rounds::Components;

/// How many block visits the precise search may take, per block of the function (assumed: generous for nested code).
const VISITS_PER_BLOCK: usize = 16;

/// A function and what the analysis rests on.
#[derive(Clone, Copy)]
pub struct UniformityInput<'a> {
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
    pub fn compute(given: &UniformityInput<'_>) -> Self {
        let mut found = Self::default();
        found.recompute(given);
        found
    }

    /// The same in the memory of the function before.
    pub fn recompute(&mut self, given: &UniformityInput<'_>) {
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
    /// By loop that lanes leave in different rounds: one around it such that this is so of all in between; none if of
    /// all around it.
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

impl<'a> Analysis<'a> {
    /// Before anything is marked; `result` is empty.
    fn new(given: &UniformityInput<'a>, result: Uniformity) -> Self {
        let UniformityInput {
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

    /// Marks the values that are divergent whatever their operands are, and those computed from them. In this order who
    /// reads a value comes after it, and need not be looked for, unless it is passed around a cycle.
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
                        ResultUniformity::Uniform => false,
                        ResultUniformity::Divergent => true,
                        ResultUniformity::AsOperands => dfg.inst_args(inst).iter().any(divergent),
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

    /// Marks what the branch at the end of a block divides, and what it passes on. The block is at `order` in reverse
    /// postorder.
    fn seed_targets(&mut self, branch: Inst, order: usize) {
        let dfg = &self.func.dfg;
        let calls = destinations(self.func, branch);
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

    /// `value` is divergent as an operand of `user`, as far as it is read in or passed to blocks that satisfy
    /// `seen_by`. True if it is at all.
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
                && self.source(user) == ResultUniformity::AsOperands
            {
                self.mark_results(user);
            }
            return seen;
        }
        let mut passed = Vec::new();
        for call in destinations(self.func, user) {
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
    fn source(&self, inst: Inst) -> ResultUniformity {
        let dfg = &self.func.dfg;
        let data = &dfg.insts[inst];
        if let Some(intrinsic) = self.intrinsics.of_call(self.func, inst) {
            return intrinsic.uniformity;
        }
        match data.opcode() {
            opcode if opcode.is_call() => ResultUniformity::Divergent,
            // Lanes read one after another, and other threads may write in between.
            Opcode::AtomicLoad
            | Opcode::AtomicRmw
            | Opcode::AtomicCas
            | Opcode::GetPinnedReg
            | Opcode::GetFramePointer
            | Opcode::GetStackPointer
            | Opcode::GetReturnAddress
            | Opcode::TlsValue
            | Opcode::DynamicStackAddr
            | Opcode::StackSwitch => ResultUniformity::Divergent,
            // Lanes of one warp may stand at different depths of recursion.
            Opcode::StackAddr if !self.kernel => ResultUniformity::Divergent,
            Opcode::SymbolValue => match self.intrinsics.of_symbol_value(self.func, inst) {
                Some(GpuSymbol::Special(row)) if row.uniformity == ResultUniformity::Divergent => {
                    ResultUniformity::Divergent
                }
                _ => ResultUniformity::Uniform,
            },
            opcode if opcode.can_load() => {
                let address = dfg.inst_args(inst).first().copied();
                match address.map(|address| self.provenance.space(self.func, address)) {
                    Some(Space::Global | Space::Shared) => ResultUniformity::AsOperands,
                    Some(Space::Local | Space::Generic) | None => ResultUniformity::Divergent,
                }
            }
            _ => ResultUniformity::AsOperands,
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
}

#[cfg(test)]
#[path = "uniformity_tests.rs"]
mod tests;
