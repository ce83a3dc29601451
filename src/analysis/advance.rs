//! Edges on which a turn of a loop surely got somewhere: who comes back over one of them does not wait for other
//! threads.
//!
//! There are two kinds, in a component of the graph:
//!
//! - the *failure edge* of a compare-and-swap that expects what was read from its place since, by a load or as what
//!   the swap found when it failed last, where this thread writes nothing there in between. When it fails another
//!   thread has written: that one went on.
//! - the *counting edge* of a branch that compares, by order, what an atomic addition of a constant gave with
//!   something that the component does not change: to go on while a counter that only goes up is below a bound. Each
//!   turn adds again, and the counter comes to the bound before it comes round: the step is 1, or not larger than the
//!   distance from the bound to the end of the type. What was masked, multiplied or shortened, and what is compared
//!   by equality, comes round again, and other threads have to stop it at the right place.
//!
//! Both are proved from the function alone. What cannot be proved is no such edge: its lanes wait apart, which costs
//! time and nothing else.

use super::control_flow::ControlFlow;
use super::taint::Accesses;
use crate::constants::integer;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{
    AtomicRmwOp, Block, Function, Inst, InstructionData, Opcode, Value, ValueDef,
};
use std::collections::BTreeSet;

/// How many operations deep values are looked at (*assumed*: the mid-end computes an address anew in each block that
/// uses it).
const DEPTH: u32 = 6;

/// Looks for the edges in one component.
pub(super) struct Advance<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    accesses: &'a dyn Accesses,
    within: &'a EntitySet<Block>,
}

/// A comparison of what an atomic operation counts.
struct Counted {
    /// The operation.
    inst: Inst,
    /// How the old value compares with the bound when the branch's condition is true.
    cond: IntCC,
    bound: Value,
    extended: Extended,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extended {
    No,
    Unsigned,
    Signed,
}

impl<'a> Advance<'a> {
    pub(super) fn new(
        func: &'a Function,
        flow: &'a ControlFlow,
        accesses: &'a dyn Accesses,
        within: &'a EntitySet<Block>,
    ) -> Self {
        Advance {
            func,
            flow,
            accesses,
            within,
        }
    }

    /// The edges in the component, whose blocks are `members`.
    pub(super) fn edges(&self, members: &[Block]) -> BTreeSet<(Block, Block)> {
        let mut found = BTreeSet::new();
        for &block in members {
            for inst in self.func.layout.block_insts(block) {
                let edge = match self.func.dfg.insts[inst].opcode() {
                    Opcode::AtomicCas => self
                        .failure_edge(inst)
                        .filter(|edge| self.reads_anew(inst, *edge)),
                    Opcode::Brif => self.counting_edge(block, inst),
                    _ => None,
                };
                let inside = |edge: &(Block, Block)| {
                    self.within.contains(edge.0) && self.within.contains(edge.1)
                };
                found.extend(edge.filter(inside));
            }
        }
        found
    }

    /// The edge on which lanes leave whose compare-and-swap failed: out of a `brif` on whether its result is what it
    /// expected.
    fn failure_edge(&self, cas: Inst) -> Option<(Block, Block)> {
        let dfg = &self.func.dfg;
        let [_, expected, _] = *dfg.inst_args(cas) else {
            return None;
        };
        let result = dfg.first_result(cas);
        let home = self.func.layout.inst_block(cas)?;
        // The branch may stand behind blocks that only pass on.
        let mut block = home;
        let branch = loop {
            let last = self.func.layout.last_inst(block)?;
            match dfg.insts[last] {
                InstructionData::Brif { .. } => break last,
                InstructionData::Jump { destination, .. } => {
                    let next = destination.block(&dfg.value_lists);
                    if self.flow.predecessors(next).count() != 1 || next == home {
                        return None;
                    }
                    block = next;
                }
                _ => return None,
            }
        };
        let InstructionData::Brif { arg, blocks, .. } = dfg.insts[branch] else {
            return None;
        };
        let equal = self.compares(arg, result, expected)?;
        let [then, otherwise] = blocks.map(|call| call.block(&dfg.value_lists));
        let failure = if equal { otherwise } else { then };
        (then != otherwise).then_some((block, failure))
    }

    /// Whether `condition` is true when the two are equal, or when they differ; none if it says neither.
    fn compares(&self, condition: Value, result: Value, expected: Value) -> Option<bool> {
        let dfg = &self.func.dfg;
        let ValueDef::Result(inst, _) = dfg.value_def(condition) else {
            return None;
        };
        let pair =
            |a: Value, b: Value| (a == result && b == expected) || (a == expected && b == result);
        match dfg.insts[inst] {
            InstructionData::IntCompare { cond, args, .. } if pair(args[0], args[1]) => {
                match cond {
                    IntCC::Equal => Some(true),
                    IntCC::NotEqual => Some(false),
                    _ => None,
                }
            }
            InstructionData::Binary {
                opcode: Opcode::Bxor | Opcode::Isub,
                args,
            } if pair(args[0], args[1]) => Some(false),
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => self.compares(arg, result, expected),
            _ => None,
        }
    }

    /// Whether every turn that comes back over the failure edge of `cas` expects what was read from its place since,
    /// and not written by this thread.
    fn reads_anew(&self, cas: Inst, edge: (Block, Block)) -> bool {
        let dfg = &self.func.dfg;
        let [place, expected, _] = *dfg.inst_args(cas) else {
            return false;
        };
        let ty = dfg.value_type(expected);
        let reading = |value: Value| match dfg.value_def(value) {
            ValueDef::Result(inst, _) => {
                let home = self.func.layout.inst_block(inst);
                let reads = inst == cas
                    || read_from(self.func, inst)
                        .is_some_and(|from| is_same(self.func, from, place, DEPTH));
                home.is_some_and(|home| self.within.contains(home))
                    && reads
                    && dfg.value_type(value) == ty
                    && self.is_kept(inst, cas, edge.1)
            }
            _ => false,
        };
        let fresh = match dfg.value_def(expected) {
            ValueDef::Result(inst, _) if reading(expected) => self.func.layout.inst_block(inst),
            ValueDef::Param(block, index) if self.within.contains(block) => {
                let mut arguments = self.flow.arguments(self.func, block, index);
                let passed = arguments.all(|(from, argument)| {
                    !self.within.contains(from) || argument.is_some_and(reading)
                });
                passed.then_some(block)
            }
            _ => None,
        };
        fresh.is_some_and(|fresh| !self.leads_back(edge, fresh))
    }

    /// Whether the component leads over `edge` back to where it begins without coming through `over`.
    fn leads_back(&self, edge: (Block, Block), over: Block) -> bool {
        let (from, to) = edge;
        let mut seen: EntitySet<Block> = EntitySet::new();
        let mut stack = vec![to];
        while let Some(block) = stack.pop() {
            if block == over || !self.within.contains(block) || !seen.insert(block) {
                continue;
            }
            if block == from {
                return true;
            }
            stack.extend(self.flow.successors(block));
        }
        false
    }

    /// Whether nothing between `read` and the next time that `cas` is come to may change what `cas` works on. What
    /// `cas` itself read comes back over the edge to `failed`.
    fn is_kept(&self, read: Inst, cas: Inst, failed: Block) -> bool {
        let layout = &self.func.layout;
        let (Some(begin), Some(end)) = (layout.inst_block(read), layout.inst_block(cas)) else {
            return false;
        };
        let writes = |inst: Inst| self.accesses.overwrites(inst, cas);
        let behind = || layout.block_insts(begin).skip_while(|i| *i != read).skip(1);
        if begin == end && read != cas && behind().any(|inst| inst == cas) {
            return !behind().take_while(|inst| *inst != cas).any(writes);
        }
        let before = layout.block_insts(end).take_while(|inst| *inst != cas);
        if behind().any(writes) || before.into_iter().any(writes) {
            return false;
        }
        let between = |next: &dyn Fn(Block) -> Vec<Block>, mut stack: Vec<Block>| {
            let mut seen: EntitySet<Block> = EntitySet::new();
            while let Some(block) = stack.pop() {
                let inside = block != begin && block != end && self.within.contains(block);
                if inside && seen.insert(block) {
                    stack.extend(next(block));
                }
            }
            seen
        };
        let predecessors = |block| self.flow.predecessors(block).collect();
        let successors = |block| self.flow.successors(block).collect();
        let before = between(&predecessors, predecessors(end));
        let after = match read == cas {
            true => vec![failed],
            false => successors(begin),
        };
        let after = between(&successors, after);
        let mut both = before.iter().filter(|block| after.contains(*block));
        !both.any(|block| layout.block_insts(block).any(writes))
    }

    /// The edge out of `block`, which ends in the `branch`, on which threads stay whose counter has not come to its
    /// bound.
    fn counting_edge(&self, block: Block, branch: Inst) -> Option<(Block, Block)> {
        let dfg = &self.func.dfg;
        let InstructionData::Brif { arg, blocks, .. } = dfg.insts[branch] else {
            return None;
        };
        let counted = self.counted(arg, DEPTH)?;
        if !self.accesses.counts_up(counted.inst) || !self.is_fixed(counted.bound, DEPTH) {
            return None;
        }
        let step = step(self.func, counted.inst)?;
        let below = matches!(
            counted.cond.without_equal(),
            IntCC::SignedLessThan | IntCC::UnsignedLessThan
        );
        let [then, otherwise] = blocks.map(|call| call.block(&dfg.value_lists));
        // While the condition holds, or while it does not: then the comparison of those who stay is the opposite one.
        let (stay, cond) = match below == (step > 0) {
            true => (then, counted.cond),
            false => (otherwise, counted.cond.complement()),
        };
        let edge = (block, stay);
        let anew = self.func.layout.inst_block(counted.inst)?;
        let arrives = step.unsigned_abs() == 1
            || self.room(&counted, cond, step) >= Some(step.unsigned_abs());
        (then != otherwise && arrives && !self.leads_back(edge, anew)).then_some(edge)
    }

    /// What `condition` compares, if that is by order what an atomic operation of the component gave, unchanged.
    fn counted(&self, condition: Value, depth: u32) -> Option<Counted> {
        let dfg = &self.func.dfg;
        let inst = dfg.value_def(condition).inst()?;
        let (cond, args) = match dfg.insts[inst] {
            InstructionData::IntCompare { cond, args, .. } => (cond, args),
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } if depth > 0 => return self.counted(arg, depth - 1),
            _ => return None,
        };
        if matches!(cond, IntCC::Equal | IntCC::NotEqual) {
            return None;
        }
        let signed = cond != cond.unsigned();
        let counter = |value: Value| {
            let inst = dfg.value_def(value).inst()?;
            let (inst, extended) = match dfg.insts[inst] {
                InstructionData::Unary {
                    opcode: Opcode::Uextend,
                    arg,
                } => (dfg.value_def(arg).inst()?, Extended::Unsigned),
                InstructionData::Unary {
                    opcode: Opcode::Sextend,
                    arg,
                } => (dfg.value_def(arg).inst()?, Extended::Signed),
                _ => (inst, Extended::No),
            };
            // Sign-extended values are not in the order of unsigned numbers.
            let ordered = signed || extended != Extended::Signed;
            let home = self.func.layout.inst_block(inst)?;
            let counts = dfg.insts[inst].opcode() == Opcode::AtomicRmw;
            (counts && ordered && self.within.contains(home)).then_some((inst, extended))
        };
        let of = |(inst, extended), cond, bound| Counted {
            inst,
            cond,
            bound,
            extended,
        };
        match (counter(args[0]), counter(args[1])) {
            (Some(found), None) => Some(of(found, cond, args[1])),
            (None, Some(found)) => Some(of(found, cond.swap_args(), args[0])),
            _ => None,
        }
    }

    /// Whether no turn of the component changes a value.
    fn is_fixed(&self, value: Value, depth: u32) -> bool {
        let dfg = &self.func.dfg;
        match dfg.value_def(value) {
            ValueDef::Param(block, _) => !self.within.contains(block),
            ValueDef::Result(inst, _) => {
                let opcode = dfg.insts[inst].opcode();
                let home = self.func.layout.inst_block(inst);
                let outside = home.is_some_and(|home| !self.within.contains(home));
                let computes = !opcode.can_load()
                    && !opcode.can_store()
                    && !opcode.is_call()
                    && !opcode.other_side_effects();
                let args = dfg.inst_args(inst);
                outside
                    || (depth > 0
                        && computes
                        && args.iter().all(|arg| self.is_fixed(*arg, depth - 1)))
            }
            ValueDef::Union(..) => false,
        }
    }

    /// How many values of the counter's type are on the far side of the bound, where those stay for whom `cond`
    /// holds; none if that is not known.
    fn room(&self, counted: &Counted, cond: IntCC, step: i128) -> Option<u128> {
        let dfg = &self.func.dfg;
        let bits = dfg.value_type(dfg.first_result(counted.inst)).bits();
        let wide = dfg.value_type(counted.bound).bits();
        if bits > 64 || wide > 64 {
            return None;
        }
        let bound = i128::from(integer(self.func, counted.bound)?);
        let signed = cond != cond.unsigned() && counted.extended != Extended::Unsigned;
        let bound = match cond != cond.unsigned() {
            true => signed_number(bound, wide),
            false => bound & ((1 << wide) - 1),
        };
        let (least, most) = match signed {
            true => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
            false => (0, (1_i128 << bits) - 1),
        };
        // Whoever is at the bound itself stays, or has arrived.
        let stays = i128::from(cond != cond.without_equal());
        let room = match step > 0 {
            true => most - bound.max(least) + 1 - stays,
            false => bound.min(most) - least + 1 - stays,
        };
        u128::try_from(room).ok()
    }
}

/// The number that the lower bits of a constant are.
fn signed_number(constant: i128, bits: u32) -> i128 {
    let unused = i128::BITS - bits;
    constant << unused >> unused
}

/// What an atomic addition or subtraction of a constant that is not zero adds.
fn step(func: &Function, inst: Inst) -> Option<i128> {
    let InstructionData::AtomicRmw { op, args, .. } = func.dfg.insts[inst] else {
        return None;
    };
    let bits = func.dfg.value_type(args[1]).bits();
    let amount = signed_number(i128::from(integer(func, args[1])?), bits);
    let step = match op {
        AtomicRmwOp::Add => amount,
        AtomicRmwOp::Sub => -amount,
        _ => 0,
    };
    (step != 0).then_some(step)
}

/// In which direction `inst` moves what it reads: 1 or -1 for an atomic addition or subtraction of a constant that is
/// not zero.
pub fn counting(func: &Function, inst: Inst) -> Option<i64> {
    step(func, inst).map(|step| if step > 0 { 1 } else { -1 })
}

/// The address that `inst` reads and does not write, without an offset.
fn read_from(func: &Function, inst: Inst) -> Option<Value> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } if i32::from(offset) == 0 => Some(arg),
        InstructionData::LoadNoOffset { arg, .. } => Some(arg),
        _ => None,
    }
}

/// Whether two values are computed in the same way.
fn is_same(func: &Function, a: Value, b: Value, depth: u32) -> bool {
    if a == b {
        return true;
    }
    let dfg = &func.dfg;
    let (ValueDef::Result(a, _), ValueDef::Result(b, _)) = (dfg.value_def(a), dfg.value_def(b))
    else {
        return false;
    };
    if depth == 0 {
        return false;
    }
    match (dfg.insts[a], dfg.insts[b]) {
        (
            InstructionData::UnaryImm { opcode: a, imm: x },
            InstructionData::UnaryImm { opcode: b, imm: y },
        ) => a == b && x == y,
        (
            InstructionData::Unary { opcode: a, arg: x },
            InstructionData::Unary { opcode: b, arg: y },
        ) => a == b && is_same(func, x, y, depth - 1),
        (
            InstructionData::Binary { opcode: a, args: x },
            InstructionData::Binary { opcode: b, args: y },
        ) => a == b && (0..2).all(|i| is_same(func, x[i], y[i], depth - 1)),
        (
            InstructionData::UnaryGlobalValue {
                opcode: a,
                global_value: x,
            },
            InstructionData::UnaryGlobalValue {
                opcode: b,
                global_value: y,
            },
        ) => a == b && x == y,
        _ => false,
    }
}
