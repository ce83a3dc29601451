//! Sums and differences that become those with a carry or a borrow, where a comparison says that it asks for it.
//!
//! A sum of unsigned numbers carries exactly if it is below either of them, and a difference borrows exactly if the
//! first number is below the second. The machine's adder says so by itself. Both instructions must be in one block,
//! since the carry is a predicate. What an address is computed from stays as it is: an access adds it up itself. So does
//! what is the same for all threads of a launch: the uniform datapath has no carries, but adds and compares in one
//! instruction each.

use super::context::Rewriter;
use crate::intrinsics::Uniformity;
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics};
use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{DataFlowGraph, Function, Inst, InstructionData, Opcode, Value, types};
use hashbrown::HashMap;

/// What is known of the block so far.
pub(super) struct Carries<'a> {
    intrinsics: &'a Intrinsics,
    /// Whether the parameters of the function are the same for all threads.
    is_kernel: bool,
    /// Differences, by what they are taken of.
    differences: HashMap<(Value, Value), Value>,
    /// Comparisons whether one is below the other.
    comparisons: HashMap<(Value, Value), Value>,
    /// Values that stay as they are, once somebody asked.
    kept: Option<EntitySet<Value>>,
}

impl<'a> Carries<'a> {
    pub(super) fn new(intrinsics: &'a Intrinsics, is_kernel: bool) -> Self {
        Carries {
            intrinsics,
            is_kernel,
            differences: HashMap::default(),
            comparisons: HashMap::default(),
            kept: None,
        }
    }

    pub(super) fn start_block(&mut self) {
        self.differences.clear();
        self.comparisons.clear();
    }

    /// Remembers an instruction that stays.
    pub(super) fn remember(&mut self, func: &Function, inst: Inst) {
        let result = func.dfg.first_result(inst);
        match func.dfg.insts[inst] {
            InstructionData::Binary {
                opcode: Opcode::Isub,
                args: [x, y],
            } => _ = self.differences.insert((x, y), result),
            InstructionData::IntCompare { cond, args, .. } => {
                let [x, y] = args;
                match cond {
                    IntCC::UnsignedLessThan => _ = self.comparisons.insert((x, y), result),
                    IntCC::UnsignedGreaterThan => _ = self.comparisons.insert((y, x), result),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn stays(&mut self, func: &Function, value: Value) -> bool {
        let (intrinsics, is_kernel) = (self.intrinsics, self.is_kernel);
        let kept = self.kept.get_or_insert_with(|| {
            let mut kept = addresses(func);
            add_uniform(func, intrinsics, is_kernel, &mut kept);
            kept
        });
        kept.contains(value)
    }
}

/// The values of 64 bits that addresses of accesses are computed from.
fn addresses(func: &Function) -> EntitySet<Value> {
    let mut found = EntitySet::with_capacity(func.dfg.num_values());
    let mut work = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let opcode = func.dfg.insts[inst].opcode();
            let args = func.dfg.inst_args(inst);
            match opcode {
                // What is stored stands in front of where.
                Opcode::Store | Opcode::Istore8 | Opcode::Istore16 | Opcode::Istore32 => {
                    work.push(args[1]);
                }
                _ if opcode.can_load() || opcode.can_store() || opcode.is_call() => {
                    work.extend(args);
                }
                _ => {}
            }
        }
    }
    while let Some(value) = work.pop() {
        let value = func.dfg.resolve_aliases(value);
        if func.dfg.value_type(value) != types::I64 || !found.insert(value) {
            continue;
        }
        if let Some(inst) = func.dfg.value_def(value).inst() {
            work.extend(func.dfg.inst_args(inst));
        }
    }
    found
}

/// Adds values that are surely the same for all threads: computed from constants, the parameters of a kernel and places
/// in the grid. Blocks come in the order of the layout; an operand that is defined later counts as different.
fn add_uniform(
    func: &Function,
    intrinsics: &Intrinsics,
    is_kernel: bool,
    kept: &mut EntitySet<Value>,
) {
    let mut uniform = EntitySet::with_capacity(func.dfg.num_values());
    if is_kernel && let Some(entry) = func.layout.entry_block() {
        uniform.extend(func.dfg.block_params(entry).iter().copied());
    }
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let opcode = func.dfg.insts[inst].opcode();
            let same = match opcode {
                Opcode::Call => (intrinsics.of_call(func, inst))
                    .is_some_and(|intrinsic| intrinsic.uniformity == Uniformity::Uniform),
                Opcode::SymbolValue => !matches!(
                    intrinsics.of_symbol_value(func, inst),
                    Some(GpuSymbol::Special(row)) if row.uniformity == Uniformity::Divergent
                ),
                Opcode::StackAddr => false,
                _ => !opcode.can_load() && !opcode.other_side_effects(),
            };
            let mut args = func.dfg.inst_args(inst).iter();
            if same && args.all(|&arg| uniform.contains(func.dfg.resolve_aliases(arg))) {
                uniform.extend(func.dfg.inst_results(inst).iter().copied());
            }
        }
    }
    kept.extend(uniform.iter());
}

impl Rewriter<'_, '_, '_> {
    /// Whether the definition of `value` may become one with a second result.
    fn may_carry(&mut self, value: Value) -> bool {
        let func = &*self.pos.func;
        let here = self.pos.current_inst();
        let def = func.dfg.value_def(value).inst();
        let block = |inst: Option<Inst>| inst.and_then(|inst| func.layout.inst_block(inst));
        block(def).is_some() && block(def) == block(here) && !self.block.carries.stays(func, value)
    }

    /// Whether `sum` is one with `part` that may become `uadd_overflow`.
    pub(super) fn is_summand(&mut self, sum: Value, part: Value) -> bool {
        match self.definition(sum) {
            Some((
                types::I32 | types::I64,
                InstructionData::Binary {
                    opcode: Opcode::Iadd,
                    args,
                },
            )) => {
                let args = args.map(|arg| self.pos.func.dfg.resolve_aliases(arg));
                args.contains(&part) && self.may_carry(sum)
            }
            // Another comparison has been there.
            None => self.overflowing(sum).is_some_and(|(opcode, args)| {
                opcode == Opcode::UaddOverflow && args.contains(&part)
            }),
            _ => false,
        }
    }

    /// The operation with two results that `value` is the first of, and its operands.
    fn overflowing(&self, value: Value) -> Option<(Opcode, [Value; 2])> {
        let dfg = &self.pos.func.dfg;
        let inst = dfg.value_def(value).inst()?;
        match dfg.insts[inst] {
            InstructionData::Binary { opcode, args } if dfg.inst_results(inst)[0] == value => {
                Some((opcode, args.map(|arg| dfg.resolve_aliases(arg))))
            }
            _ => None,
        }
    }

    /// The carry of a sum.
    pub(super) fn carry(&mut self, sum: Value) -> Value {
        self.second_result(sum, Opcode::UaddOverflow)
    }

    /// The borrow of a difference.
    pub(super) fn borrow(&mut self, difference: Value) -> Value {
        self.second_result(difference, Opcode::UsubOverflow)
    }

    /// The difference before, of the same values.
    pub(super) fn known_difference(&mut self, x: Value, y: Value) -> Option<Value> {
        let difference = *self.block.carries.differences.get(&(x, y))?;
        let difference = self.pos.func.dfg.resolve_aliases(difference);
        // Lanes have no borrows.
        let scalar = !self.pos.func.dfg.value_type(difference).is_vector();
        (scalar && self.may_carry(difference)).then_some(difference)
    }

    /// The comparison before, whether one of these values is below the other.
    pub(super) fn known_comparison(&mut self, x: Value, y: Value) -> Option<Value> {
        let current = self.pos.current_inst()?;
        let difference = self.pos.func.dfg.first_result(current);
        let comparison = *self.block.carries.comparisons.get(&(x, y))?;
        let stays = self.pos.func.dfg.resolve_aliases(comparison) == comparison;
        (stays && self.may_carry(comparison) && self.may_carry(difference)).then_some(comparison)
    }

    /// Makes a comparison the second result of a difference, which is the first.
    pub(super) fn difference_of_comparison(&mut self, comparison: Value) -> Value {
        let dfg = &mut self.pos.func.dfg;
        let inst = dfg.value_def(comparison).unwrap_inst();
        let (x, y) = match dfg.insts[inst] {
            InstructionData::IntCompare {
                cond: IntCC::UnsignedGreaterThan,
                args: [y, x],
                ..
            } => (x, y),
            _ => (dfg.inst_args(inst)[0], dfg.inst_args(inst)[1]),
        };
        let (difference, borrow) = with_overflow(dfg, inst, Opcode::UsubOverflow, [x, y]);
        dfg.change_to_alias(comparison, borrow);
        difference
    }

    /// Makes `first` the first result of an operation with two; the second.
    fn second_result(&mut self, first: Value, opcode: Opcode) -> Value {
        let dfg = &mut self.pos.func.dfg;
        let inst = dfg.value_def(first).unwrap_inst();
        if let [_, second] = *dfg.inst_results(inst) {
            return second;
        }
        let args = [dfg.inst_args(inst)[0], dfg.inst_args(inst)[1]];
        let (result, second) = with_overflow(dfg, inst, opcode, args);
        dfg.change_to_alias(first, result);
        second
    }
}

/// Makes an instruction one with two results; its results, the old ones are detached.
fn with_overflow(
    dfg: &mut DataFlowGraph,
    inst: Inst,
    opcode: Opcode,
    args: [Value; 2],
) -> (Value, Value) {
    let ty = dfg.value_type(args[0]);
    dfg.clear_results(inst);
    dfg.insts[inst] = InstructionData::Binary { opcode, args };
    dfg.make_inst_results(inst, ty);
    let results = dfg.inst_results(inst);
    (results[0], results[1])
}
