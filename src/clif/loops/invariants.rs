//! Moves what every turn of a loop would compute again in front of it.
//!
//! Cranelift's mid-end has moved most of it. It leaves, and this pass takes:
//!
//! - thread ids, which it copies into each block that reads them, and which S2R reads slowly. One read serves the
//!   function from where it stands;
//! - calls of pure intrinsics, which it takes for calls of anything;
//! - additions of constants and logic with them, which it repeats in every block. They stay where they cost nothing: as
//!   addresses, in other logic;
//! - what is computed from these;
//! - the shift of a sum, one part of which is the same in every turn ([`shifted_sums`]).
//!
//! Operations that may trap, loads, and convergent ones stay. Constants do as well, since they become immediates; those
//! that a moved operation reads are made again in front of it. An operation goes out of as many loops as its operands
//! allow, to the end of the block that dominates the loop's header, perhaps before a branch around the loop. Each loop
//! takes as many registers as its limit says ([`limit`]).

mod shifted_sums;

use super::LoopContext;
use super::shape::{is_constant, preheader, words};
use crate::analysis::uses::Users;
use crate::constants::integer;
use crate::intrinsics::Intrinsic;
use crate::intrinsics::resolve::GpuSymbol;
use cranelift_codegen::Context;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    Block, FuncRef, Function, GlobalValue, Inst, InstructionData, Opcode, Type, Value,
};
use cranelift_codegen::loop_analysis::Loop;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Most registers that values take which are moved in front of one loop (*assumed*).
const MOST: u32 = 16;
/// Most loops that an operation leaves; those around them would be asked in vain mostly (*assumed*).
const DEPTH: usize = 8;

/// Moves what is worth it.
pub(super) fn hoist(context: &mut Context, given: &LoopContext<'_>) {
    let mut pass = Hoisting {
        given,
        users: None,
        room: SecondaryMap::new(),
        known: HashMap::new(),
        aliases: false,
        context,
    };
    pass.run();
    if pass.aliases {
        given.tracking.resolve(&mut context.func);
    }
}

/// Registers that values may take which are moved in front of a loop that hands `carried` registers from turn to turn:
/// a third of the file is for them and those together.
pub(super) fn limit(registers: u8, carried: u32) -> u32 {
    (u32::from(registers) / 3).saturating_sub(carried).min(MOST)
}

/// Most equal operations that are remembered (*assumed*): the mid-end makes one a block.
const EQUALS: usize = 4;

/// What an operation computes.
type Key = (Computation, SmallVec<[Operand; 4]>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Computation {
    /// The opcode, its controlling type, and that of the result.
    Operation(Opcode, Type, Type),
    /// Of this intrinsic.
    Call(FuncRef),
    /// A thread id.
    Symbol(GlobalValue),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Operand {
    Value(Value),
    Integer(Type, i64),
}

struct Hoisting<'a> {
    context: &'a mut Context,
    given: &'a LoopContext<'a>,
    users: Option<Users>,
    /// By loop, registers that are left, once it was asked for.
    room: SecondaryMap<Loop, Option<u32>>,
    /// What stands outside loops, or was moved.
    known: HashMap<Key, SmallVec<[Inst; EQUALS]>>,
    aliases: bool,
}

impl Hoisting<'_> {
    fn run(&mut self) {
        let blocks: Vec<Block> = self.context.domtree.cfg_rpo().copied().collect();
        for block in blocks {
            let innermost = self.context.loop_analysis.innermost_loop(block);
            let mut next = self.context.func.layout.first_inst(block);
            while let Some(inst) = next {
                next = self.context.func.layout.next_inst(inst);
                if let Some(lp) = innermost {
                    self.spread_shift(inst, lp);
                }
                if let Some(key) = self.key(inst) {
                    match innermost {
                        Some(lp) => self.visit(inst, key, lp),
                        None => self.remember(inst, key),
                    }
                }
            }
        }
    }

    /// Moves `inst`, which computes `key` in `innermost`, if that is worth it.
    fn visit(&mut self, inst: Inst, key: Key, innermost: Loop) {
        let args = self.context.func.dfg.inst_args(inst);
        let Some((lp, to)) = self.outermost(args, innermost) else {
            return;
        };
        if !self.costs(inst) {
            return;
        }
        if let Some(same) = self.known_at(&key, to) {
            self.replace(inst, same);
            return;
        }
        let dfg = &self.context.func.dfg;
        let needed = match dfg.insts[inst].opcode() {
            // Parts of what they read, or zeros beside it.
            Opcode::Ireduce | Opcode::Uextend | Opcode::Bitcast => 0,
            _ => words(dfg.value_type(dfg.first_result(inst))),
        };
        let room = self.room(lp);
        if *room < needed {
            return;
        }
        *room -= needed;
        self.move_to(inst, to);
        self.remember(inst, key);
    }

    /// What `inst` computes, if that is something to move: it depends on operands only, and the mid-end has not moved
    /// it.
    fn key(&self, inst: Inst) -> Option<Key> {
        let func = &self.context.func;
        let intrinsics = self.given.intrinsics;
        let &[result] = func.dfg.inst_results(inst) else {
            return None;
        };
        let result = func.dfg.value_type(result);
        let computation = match func.dfg.insts[inst] {
            InstructionData::Binary { opcode, .. }
            | InstructionData::Unary { opcode, .. }
            | InstructionData::Ternary { opcode, .. }
                if depends_on_operands_only(opcode) =>
            {
                Computation::Operation(opcode, func.dfg.ctrl_typevar(inst), result)
            }
            InstructionData::Call { func_ref, .. }
                if intrinsics
                    .of_call(func, inst)
                    .is_some_and(Intrinsic::is_pure) =>
            {
                Computation::Call(func_ref)
            }
            InstructionData::UnaryGlobalValue { global_value, .. } => {
                match intrinsics.of_symbol_value(func, inst) {
                    Some(GpuSymbol::Special(row)) if row.launch_offset().is_none() => {
                        Computation::Symbol(global_value)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        let operand = |&value: &Value| match integer(func, value) {
            Some(constant) => Operand::Integer(func.dfg.value_type(value), constant),
            None => Operand::Value(func.dfg.resolve_aliases(value)),
        };
        let operands = func.dfg.inst_args(inst).iter().map(operand).collect();
        Some((computation, operands))
    }

    fn remember(&mut self, inst: Inst, key: Key) {
        let equal = self.known.entry(key).or_default();
        if equal.len() < EQUALS {
            equal.push(inst);
        }
    }

    /// What has computed `key` at the end of `block`, whichever way is taken.
    fn known_at(&self, key: &Key, block: Block) -> Option<Inst> {
        let (func, domtree) = (&self.context.func, &self.context.domtree);
        let before = |inst: &&Inst| {
            (func.layout.inst_block(**inst))
                .is_some_and(|home| domtree.block_dominates(home, block))
        };
        self.known.get(key)?.iter().find(before).copied()
    }

    /// Whether `inst` costs an instruction where it stands: not if it only offsets addresses, or is part of more logic.
    fn costs(&mut self, inst: Inst) -> bool {
        let func = &self.context.func;
        let opcode = func.dfg.insts[inst].opcode();
        if matches!(opcode, Opcode::Call | Opcode::SymbolValue) {
            return true;
        }
        let result = func.dfg.first_result(inst);
        let users = self.users.get_or_insert_with(|| Users::compute(func));
        let logic = matches!(opcode, Opcode::Band | Opcode::Bor | Opcode::Bxor);
        let free = |&user: &Inst| {
            let data = &func.dfg.insts[user];
            let takes = data.opcode();
            match logic {
                true => matches!(
                    takes,
                    Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot
                ),
                false => {
                    (takes.can_load() || takes.can_store()) && address(func, user) == Some(result)
                }
            }
        };
        // Values made after the users were counted have none: they are never looked at again.
        !users.of(result).iter().all(free)
    }

    /// The outermost loop in whose turns these operands are the same, and the block in front of it.
    fn outermost(&self, operands: &[Value], innermost: Loop) -> Option<(Loop, Block)> {
        let (func, loops) = (&self.context.func, &self.context.loop_analysis);
        let mut found = None;
        let mut lp = Some(innermost);
        for _ in 0..DEPTH {
            let Some(current) = lp else { break };
            let outside = |&value: &Value| match func.dfg.value_def(value).inst() {
                Some(def) if is_constant(func, def) => true,
                Some(def) => (func.layout.inst_block(def))
                    .is_none_or(|block| !loops.is_in_loop(block, current)),
                None => !loops.is_in_loop(func.dfg.value_def(value).unwrap_block(), current),
            };
            if !operands.iter().all(outside) {
                break;
            }
            if let Some(before) = preheader(self.context, current) {
                found = Some((current, before));
            }
            lp = loops.loop_parent(current);
        }
        found
    }

    /// The registers that are left for `lp`.
    fn room(&mut self, lp: Loop) -> &mut u32 {
        let dfg = &self.context.func.dfg;
        let header = self.context.loop_analysis.loop_header(lp);
        let registers = self.given.registers;
        self.room[lp].get_or_insert_with(|| {
            let carried = dfg.block_param_types(header).map(words).sum();
            limit(registers, carried)
        })
    }

    fn replace(&mut self, inst: Inst, by: Inst) {
        let func = &mut self.context.func;
        func.dfg.replace_with_aliases(inst, by);
        func.layout.remove_inst(inst);
        self.aliases = true;
    }

    /// Moves `inst` to the end of `to`, and makes the constants that it reads there.
    fn move_to(&mut self, inst: Inst, to: Block) {
        let func = &mut self.context.func;
        let Some(last) = func.layout.last_inst(to) else {
            return;
        };
        for index in 0..func.dfg.inst_args(inst).len() {
            let value = func.dfg.inst_args(inst)[index];
            if let Some(constant) = func.dfg.value_def(value).inst()
                && is_constant(func, constant)
            {
                let made = copy_of(func, constant, last);
                func.dfg.inst_args_mut(inst)[index] = made;
            }
        }
        func.layout.remove_inst(inst);
        func.layout.insert_inst(inst, last);
    }
}

/// Whether what the operation computes may be computed elsewhere, and earlier.
fn depends_on_operands_only(opcode: Opcode) -> bool {
    !(opcode.can_trap() || opcode.can_load() || opcode.can_store() || opcode.other_side_effects())
}

/// A copy of what makes a constant, before `at`.
fn copy_of(func: &mut Function, constant: Inst, at: Inst) -> Value {
    let copy = func.dfg.clone_inst(constant);
    func.layout.insert_inst(copy, at);
    func.dfg.first_result(copy)
}

/// The address of an access to memory.
fn address(func: &Function, inst: Inst) -> Option<Value> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, .. } => Some(arg),
        InstructionData::Store { args, .. } => Some(args[1]),
        InstructionData::LoadNoOffset { arg, .. } => Some(arg),
        InstructionData::StoreNoOffset { args, .. } => Some(args[1]),
        InstructionData::AtomicRmw { args, .. } => Some(args[0]),
        InstructionData::AtomicCas { .. } => func.dfg.inst_args(inst).first().copied(),
        _ => None,
    }
}
