//! Which values of a kernel live in uniform registers: decided before lowering, for the function as a whole.
//!
//! A value may live there if it is the same for all lanes wherever it is used and is computed wholly on the uniform
//! datapath: from other such values, immediates, constant memory and special registers of the block. It is worth it
//! under this cost model:
//!
//! - every user can read a uniform register where it stands: on the uniform datapath, or as the one special operand
//!   that a vector instruction has. What a rule would fuse into its user (a product into IMAD, a shift into LEA) costs
//!   nothing there, so it stays there;
//! - a group of values that are computed from each other takes no more instructions than in general registers. 64-bit
//!   sums, shifts and selections are one instruction instead of two, and a copy for all lanes costs no general
//!   register;
//! - a result arrives after 6 cycles instead of 4 (latency.isa, *assumed*), so a chain of several that a loop carries
//!   from round to round must be hidden by the loop's other instructions. UISETP in turn gives its predicate after 6
//!   cycles, ISETP after 13.
//!
//! Parameters and immediates are better read from the bank and the instruction; they are loaded into uniform registers
//! only for what has no other operand kind. A value of a block that runs with part of the warp is computed in the block
//! above that does not ([`Plan::moved`]): its operands are there, and it cannot trap. Where the registers run out,
//! allocation turns users to their siblings that read general registers.
//!
//! Only kernels without calls have such values: across a call they would have to be made again, and in a device
//! function nothing says which lanes are together.

mod operations;
mod passing;
#[cfg(test)]
mod tests;
mod users;

use super::Input;
use crate::isa::generated::SReg;
use crate::vcode::FunctionKind;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, Inst, InstructionData, Type, Value, ValueDef, types};
use passing::{Passing, loop_sizes};
use smallvec::SmallVec;

/// Words of a block's parameters in uniform registers, of which there are 63: all are taken at once where they are
/// passed (*assumed*: half).
const PARAMETER_WORDS: u32 = 32;

/// The decision.
#[derive(Default)]
pub(super) struct Plan {
    chosen: EntitySet<Value>,
    moved: SecondaryMap<Block, SmallVec<[Inst; 2]>>,
    elsewhere: EntitySet<Inst>,
}

impl Plan {
    /// Whether the value lives in uniform registers.
    pub fn is_uniform(&self, value: Value) -> bool {
        self.chosen.contains(value)
    }

    /// Instructions of other blocks that are computed at the end of this one, in order.
    pub fn moved(&self, block: Block) -> &[Inst] {
        &self.moved[block]
    }

    /// Whether the instruction is computed in another block than its own.
    pub fn is_elsewhere(&self, inst: Inst) -> bool {
        self.elsewhere.contains(inst)
    }

    /// Decides for a function, in time that grows with its size.
    pub fn new(input: &Input<'_>, has_calls: bool) -> Plan {
        if has_calls || !matches!(input.kind, FunctionKind::Kernel(_)) {
            return Plan::default();
        }
        let mut search = Search::new(input);
        search.collect();
        if search.order.is_empty() {
            return Plan::default();
        }
        search.passing = Passing::new(input.func, input.facts.flow, &search.candidates);
        search.drop_not_computed();
        search.drop_not_hidden();
        search.drop_not_taken();
        search.drop_crowded_parameters();
        search.drop_losing_groups();
        search.finish()
    }
}

/// Whether a special register is the thread block's, the same for all lanes of a warp.
pub(super) fn is_of_block(register: SReg) -> bool {
    matches!(register, SReg::SrCtaidX | SReg::SrCtaidY | SReg::SrCtaidZ)
}

/// The search. Candidates are only ever removed. What one's removal means for those it is computed from and into is
/// looked at then, so that every operand and every argument is looked at a constant number of times; for all others it
/// leaves a slot free or changes nothing.
struct Search<'a> {
    input: &'a Input<'a>,
    /// Values that may still live in uniform registers.
    candidates: EntitySet<Value>,
    /// All that ever were, in an order in which operands stand before users but for loops.
    order: Vec<Value>,
    /// The block itself, or the nearest above that runs with the whole warp.
    together: SecondaryMap<Block, Option<Block>>,
    passing: Passing,
}

impl<'a> Search<'a> {
    fn new(input: &'a Input<'a>) -> Self {
        let facts = &input.facts;
        let mut together: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
        // Dominators stand first.
        for &block in facts.flow.reverse_postorder() {
            together[block] = if facts.uniformity.divergent_block(block) {
                (facts.flow.domtree().idom(block)).and_then(|above| together[above])
            } else {
                Some(block)
            };
        }
        Search {
            input,
            candidates: EntitySet::new(),
            order: Vec::new(),
            together,
            passing: Passing::default(),
        }
    }

    /// Everything whose operation exists and that is uniform, operands not asked yet.
    fn collect(&mut self) {
        let func = self.input.func;
        let flow = self.input.facts.flow;
        for &block in flow.reverse_postorder() {
            let is_together = |b: Block| self.together[b] == Some(b);
            let parameters = Some(block) != func.layout.entry_block()
                && is_together(block)
                && flow.predecessors(block).all(is_together);
            if parameters {
                for &value in func.dfg.block_params(block) {
                    self.consider(value);
                }
            }
            for inst in func.layout.block_insts(block) {
                if let [value] = *func.dfg.inst_results(inst)
                    && self.operation(value).is_some()
                {
                    self.consider(value);
                }
            }
        }
    }

    fn consider(&mut self, value: Value) {
        let fits = matches!(
            self.ty(value),
            types::I32 | types::I64 | types::F32 | types::F16X2
        );
        if fits && self.input.facts.uniformity.uniform(value) && self.place(value).is_some() {
            self.candidates.insert(value);
            self.order.push(value);
        }
    }

    fn ty(&self, value: Value) -> Type {
        self.input.func.dfg.value_type(value)
    }

    fn data(&self, value: Value) -> Option<InstructionData> {
        let inst = self.input.func.dfg.value_def(value).inst()?;
        Some(self.input.func.dfg.insts[inst])
    }

    /// The block of a value's definition.
    fn block(&self, value: Value) -> Option<Block> {
        match self.input.func.dfg.value_def(value) {
            ValueDef::Result(inst, _) => self.input.func.layout.inst_block(inst),
            ValueDef::Param(block, _) => Some(block),
            ValueDef::Union(..) => None,
        }
    }

    /// Where a value would be computed: its block, or the nearest above that runs with the whole warp.
    fn place(&self, value: Value) -> Option<Block> {
        self.together[self.block(value)?]
    }

    fn is_candidate(&self, value: Value) -> bool {
        self.candidates.contains(value)
    }

    fn users_of(&self, value: Value) -> &[Inst] {
        self.input.facts.users.of(value)
    }

    /// What a value is computed from, or is passed for it.
    fn sources(&self, value: Value) -> SmallVec<[Value; 3]> {
        match self.operation(value) {
            Some(operation) => operation.operands,
            None => SmallVec::from_slice(self.passing.arguments(value)),
        }
    }

    /// An immediate or parameter that can be loaded into a uniform register where it is defined.
    fn is_loadable(&self, value: Value) -> bool {
        self.is_leaf(value) && self.block(value).is_some() && self.place(value) == self.block(value)
    }

    /// Whether all that a value is computed from is there.
    fn is_computed(&self, value: Value) -> bool {
        match self.operation(value) {
            Some(operation) => {
                let mut operands = operation.operands.iter();
                operands.all(|&v| self.is_leaf(v) || self.is_candidate(v))
            }
            None => {
                let arguments = self.passing.arguments(value);
                let is_there = |&v: &Value| self.is_candidate(v) || self.is_loadable(v);
                !arguments.is_empty() && arguments.iter().all(is_there)
            }
        }
    }

    /// Whether all users of a value read it from a uniform register.
    fn is_taken(&self, value: Value) -> bool {
        let mut receivers = self.passing.receivers(value).iter();
        let mut users = self.users_of(value).iter();
        receivers.all(|&v| self.is_candidate(v)) && users.all(|&user| self.takes(user, value))
    }

    /// Removes a value, all that is computed from it, and if users are asked already, what it was computed from and
    /// nobody else takes.
    fn remove(&mut self, value: Value, asks_users: bool) {
        let mut work = vec![value];
        // By instruction, none for a parameter, what was to be read there. Asked last: what goes until then leaves
        // slots free.
        let mut reads: Vec<(Option<Inst>, Value)> = Vec::new();
        loop {
            while let Some(value) = work.pop() {
                if !self.candidates.remove(value) {
                    continue;
                }
                work.extend_from_slice(self.passing.receivers(value));
                for &user in self.users_of(value) {
                    if let [result] = *self.input.func.dfg.inst_results(user)
                        && self.is_candidate(result)
                        && !self.is_computed(result)
                    {
                        work.push(result);
                    }
                }
                if asks_users {
                    let definition = self.input.func.dfg.value_def(value).inst();
                    reads.extend(self.sources(value).into_iter().map(|v| (definition, v)));
                }
            }
            let Some((inst, source)) = reads.pop() else {
                return;
            };
            // Nobody takes what is passed for a parameter that lives elsewhere.
            let taken = inst.is_some_and(|inst| self.takes(inst, source));
            if self.is_candidate(source) && !taken {
                work.push(source);
            }
        }
    }

    /// What cannot be computed there at all goes first, so that it takes no slot from an operand beside it.
    fn drop_not_computed(&mut self) {
        for value in self.order.clone() {
            if self.is_candidate(value) && !self.is_computed(value) {
                self.remove(value, false);
            }
        }
    }

    /// Parameters of loops that would wait for their next value.
    fn drop_not_hidden(&mut self) {
        let parameters: Vec<Value> = (self.order.iter().copied())
            .filter(|&v| self.is_candidate(v) && !self.passing.arguments(v).is_empty())
            .collect();
        if parameters.is_empty() {
            return;
        }
        let sizes = loop_sizes(self.input.func, self.input.facts.flow);
        for value in parameters {
            if self.is_candidate(value) && !self.is_hidden(value, &sizes) {
                self.remove(value, false);
            }
        }
    }

    /// What somebody reads who has no slot for it. Users come before what they use.
    fn drop_not_taken(&mut self) {
        for value in self.order.clone().into_iter().rev() {
            if self.is_candidate(value) && !self.is_taken(value) {
                self.remove(value, true);
            }
        }
    }

    /// Parameters of a block beyond [`PARAMETER_WORDS`]: allocation cannot bring them elsewhere where they are passed.
    fn drop_crowded_parameters(&mut self) {
        let func = self.input.func;
        for &block in self.input.facts.flow.reverse_postorder() {
            let mut words = 0;
            for &value in func.dfg.block_params(block) {
                if self.is_candidate(value) {
                    words += self.ty(value).bits().div_ceil(32);
                    if words > PARAMETER_WORDS {
                        self.remove(value, true);
                    }
                }
            }
        }
    }

    /// Removes groups of values, computed from each other, that take more instructions than in general registers.
    fn drop_losing_groups(&mut self) {
        let mut group: SecondaryMap<Value, Option<usize>> = SecondaryMap::new();
        let mut losses: Vec<i32> = Vec::new();
        for &start in &self.order {
            if !self.is_candidate(start) || group[start].is_some() {
                continue;
            }
            let number = losses.len();
            let (mut loss, mut work) = (0, vec![start]);
            group[start] = Some(number);
            while let Some(value) = work.pop() {
                if let Some(operation) = self.operation(value) {
                    loss += operation.uniform - operation.general;
                }
                for next in self.neighbours(value) {
                    if self.is_candidate(next) && group[next].is_none() {
                        group[next] = Some(number);
                        work.push(next);
                    }
                }
            }
            losses.push(loss);
        }
        for &value in &self.order {
            if let Some(number) = group[value]
                && losses[number] > 0
            {
                self.candidates.remove(value);
            }
        }
    }

    /// Values that one is computed from, computed into, passed to, or read together with.
    fn neighbours(&self, value: Value) -> SmallVec<[Value; 8]> {
        let func = self.input.func;
        let mut list: SmallVec<[Value; 8]> = SmallVec::new();
        list.extend(self.sources(value));
        list.extend_from_slice(self.passing.receivers(value));
        for &user in self.users_of(value) {
            list.extend_from_slice(func.dfg.inst_results(user));
            list.extend_from_slice(func.dfg.inst_args(user));
        }
        list
    }

    fn finish(self) -> Plan {
        let mut plan = Plan::default();
        for &value in &self.order {
            if !self.is_candidate(value) {
                continue;
            }
            debug_assert!(self.is_computed(value), "{value} lacks an operand");
            if let Some(inst) = self.input.func.dfg.value_def(value).inst()
                && let Some(place) = self.place(value)
                && Some(place) != self.block(value)
            {
                plan.moved[place].push(inst);
                plan.elsewhere.insert(inst);
            }
        }
        plan.chosen = self.candidates;
        plan
    }
}
