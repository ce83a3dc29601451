//! Constants inside addresses move to the offsets of accesses: `base + ((i + 1) << 2)` is `base + (i << 2)` and 4.
//!
//! An address is a tree of sums, differences, and products and shifts by constants, all modulo 2^n, so a constant in it
//! can be taken out exactly. Behind an extension it can where the sum below does not wrap, which [`greatest`] has to
//! show. What is left is the *rest*. It is computed where the address was, before it, so that nothing moves into or out
//! of a loop, and rests that are equal are computed once: accesses to `a[i - 1]`, `a[i]` and `a[i + 1]` have one base.
//!
//! Addresses that others read, too, stay as they are: they would have to be computed beside the rest. So do those whose
//! constants instructions have no room for.

mod rests;

use super::AccessContext;
use crate::abi::OFFSETS;
use crate::analysis::bounds::greatest;
use crate::analysis::uses::for_each_operand;
use crate::clif::merge;
use crate::constants::{definition, integer};
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Type, Value};
use hashbrown::HashMap;

/// How deep an address is looked into (*assumed*: more than the trees of real addresses).
const DEPTH: u32 = 8;

/// An address that is used by accesses.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// Accesses whose address it is.
    accesses: u32,
    /// All uses.
    all: u32,
    /// The least and the greatest offset.
    least: i32,
    greatest: i32,
}

/// What is taken apart, and what it becomes.
struct Split<'a> {
    intrinsics: &'a Intrinsics,
    /// By value, the sum of the constants in it, and how deep it was looked into.
    constants: HashMap<Value, (i64, u32)>,
    /// Operations that were computed so far, by where their blocks are.
    known: HashMap<Operation, (Block, Value)>,
    /// Those that this pass has made.
    made: EntitySet<Value>,
}

/// What an operation computes: the opcode, the type of the result, the operands.
type Operation = (Opcode, Type, [Key; 2]);

/// An operand as far as equality goes: the mid-end copies constants into every block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Value(Value),
    Constant(i64),
}

/// Moves what can be moved; whether anything was.
pub(super) fn split(func: &mut Function, given: &AccessContext) -> bool {
    let mut split = Split {
        intrinsics: given.intrinsics,
        constants: HashMap::new(),
        known: HashMap::new(),
        made: EntitySet::new(),
    };
    let addresses = split.candidates(func);
    if addresses.is_empty() {
        return false;
    }
    let uses = uses(func, &addresses);
    let mut rests: HashMap<Value, (Value, i64)> = HashMap::new();
    for &block in given.flow.reverse_postorder() {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            if let &[result] = func.dfg.inst_results(inst)
                && addresses.contains(result)
                && uses[result].all == uses[result].accesses
            {
                let constant = split.constant(func, result, DEPTH);
                let [least, greatest] = [uses[result].least, uses[result].greatest]
                    .map(|at| constant.checked_add(at.into()));
                if [least, greatest]
                    .iter()
                    .all(|at| at.is_some_and(|at| OFFSETS.contains(&at)))
                {
                    let location = func.srcloc(inst);
                    let mut pos = FuncCursor::new(func).at_inst(inst).with_srcloc(location);
                    if let Some(rest) = split.rest(&mut pos, given, block, result) {
                        rests.insert(result, (rest, constant));
                        continue;
                    }
                }
            }
            split.remember(func, given, block, inst);
        }
    }
    if rests.is_empty() {
        return false;
    }
    given.tracking.resolve(func);
    rewrite(func, &rests);
    merge::drop_unused(func, given.intrinsics, given.flow.postorder());
    true
}

/// The address operand of an access that has an offset.
pub(super) fn address_of(func: &Function, inst: Inst) -> Option<(Value, Offset32)> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } => Some((arg, offset)),
        InstructionData::Store { args, offset, .. } => Some((args[1], offset)),
        _ => None,
    }
}

/// Gives an access with an offset another address.
pub(super) fn set_address(func: &mut Function, inst: Inst, address: Value, new: Offset32) {
    match &mut func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } => (*arg, *offset) = (address, new),
        InstructionData::Store { args, offset, .. } => (args[1], *offset) = (address, new),
        _ => {}
    }
}

/// How the addresses are used.
fn uses(func: &Function, addresses: &EntitySet<Value>) -> SecondaryMap<Value, Uses> {
    let mut uses: SecondaryMap<Value, Uses> = SecondaryMap::new();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            for_each_operand(func, inst, |value| {
                if addresses.contains(value) {
                    uses[value].all += 1;
                }
            });
            if let Some((address, offset)) = address_of(func, inst)
                && addresses.contains(address)
            {
                let uses = &mut uses[address];
                let offset = i32::from(offset);
                let first = uses.accesses == 0;
                uses.least = if first {
                    offset
                } else {
                    uses.least.min(offset)
                };
                uses.greatest = if first {
                    offset
                } else {
                    uses.greatest.max(offset)
                };
                uses.accesses += 1;
            }
        }
    }
    uses
}

/// Gives the accesses their new addresses.
fn rewrite(func: &mut Function, rests: &HashMap<Value, (Value, i64)>) {
    let mut pos = FuncCursor::new(func);
    while pos.next_block().is_some() {
        while let Some(inst) = pos.next_inst() {
            let Some((address, offset)) = address_of(pos.func, inst) else {
                continue;
            };
            let Some(&(rest, constant)) = rests.get(&address) else {
                continue;
            };
            let rest = pos.func.dfg.resolve_aliases(rest);
            let new = Offset32::new((i64::from(i32::from(offset)) + constant) as i32);
            set_address(pos.func, inst, rest, new);
        }
    }
}

impl Split<'_> {
    /// The addresses with constants that lowering does not find at the top.
    fn candidates(&mut self, func: &Function) -> EntitySet<Value> {
        let mut found = EntitySet::new();
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                if let Some((address, _)) = address_of(func, inst)
                    && !found.contains(address)
                    && self.constant(func, without_top(func, address), DEPTH) != 0
                {
                    found.insert(address);
                }
            }
        }
        found
    }

    /// The sum of the constants in `value`, as it counts in `value`, modulo 2^n and with its sign. What is said first
    /// of a value stays true: the rest is found by the same answers.
    fn constant(&mut self, func: &Function, value: Value, depth: u32) -> i64 {
        self.constant_and_depth(func, value, depth).0
    }

    fn constant_and_depth(&mut self, func: &Function, value: Value, depth: u32) -> (i64, u32) {
        if let Some(&known) = self.constants.get(&value) {
            return known;
        }
        let bits = func.dfg.value_type(value).bits();
        let mut deepest = 0;
        let mut sum = 0;
        if depth > 0 && matches!(bits, 32 | 64) {
            sum = self.sum(func, value, depth, &mut deepest);
        }
        let unused = 64 - bits.min(64);
        let found = match deepest {
            // Answers of before may make it deeper than it was looked into now.
            DEPTH.. => (0, 0),
            _ => (sum << unused >> unused, deepest + 1),
        };
        self.constants.insert(value, found);
        found
    }

    /// The sum of the constants in the operands of a value; `deepest` becomes how deep they were looked into.
    fn sum(&mut self, func: &Function, value: Value, depth: u32, deepest: &mut u32) -> i64 {
        let bits = func.dfg.value_type(value).bits();
        match definition(func, value) {
            Some(InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            }) => imm.bits(),
            Some(InstructionData::Binary {
                opcode,
                args: [a, b],
            }) => {
                let mut of = |value| {
                    let (sum, below) = self.constant_and_depth(func, value, depth - 1);
                    *deepest = below.max(*deepest);
                    sum
                };
                match opcode {
                    Opcode::Iadd => of(a).wrapping_add(of(b)),
                    Opcode::Isub => of(a).wrapping_sub(of(b)),
                    Opcode::Ishl => match integer(func, b) {
                        Some(amount) => of(a).wrapping_shl(amount as u32 & (bits - 1)),
                        None => 0,
                    },
                    Opcode::Imul => match integer(func, b) {
                        Some(factor) => of(a).wrapping_mul(factor),
                        None => 0,
                    },
                    _ => 0,
                }
            }
            Some(InstructionData::Unary {
                opcode: opcode @ (Opcode::Uextend | Opcode::Sextend),
                arg,
            }) => self.behind_extension(func, opcode, arg, depth),
            _ => 0,
        }
    }

    /// The constant in a word that is extended, if the sum is as it would be without bounds: zero or more, and below
    /// 2^32 or 2^31. The rest is below that anyway.
    fn behind_extension(
        &mut self,
        func: &Function,
        opcode: Opcode,
        word: Value,
        depth: u32,
    ) -> i64 {
        let Some(InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [a, b],
        }) = definition(func, word)
        else {
            return 0;
        };
        if func.dfg.value_type(word).bits() != 32 || integer(func, a).is_some() {
            return 0;
        }
        let Some(constant) = integer(func, b) else {
            return 0;
        };
        // The rest itself is taken as it is.
        if self.constant(func, a, depth - 1) != 0 {
            return 0;
        }
        let greatest = greatest(func, self.intrinsics, a) as i64;
        let fits = match opcode {
            Opcode::Uextend => constant >= 0 && greatest + constant <= u32::MAX.into(),
            _ => greatest <= i32::MAX.into() && greatest + constant <= i32::MAX.into(),
        };
        if fits { constant } else { 0 }
    }
}

fn operation(func: &Function, opcode: Opcode, ty: Type, a: Value, b: Option<Value>) -> Operation {
    let key = |value| match integer(func, value) {
        Some(constant) => Key::Constant(constant),
        None => Key::Value(func.dfg.resolve_aliases(value)),
    };
    let mut operands = [key(a), b.map_or(Key::Constant(0), key)];
    if matches!(opcode, Opcode::Iadd | Opcode::Imul) {
        operands.sort();
    }
    (opcode, ty, operands)
}

/// The address below the additions of constants at the top, which lowering takes into offsets itself.
fn without_top(func: &Function, address: Value) -> Value {
    let mut value = address;
    for _ in 0..DEPTH {
        let Some(InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [a, b],
        }) = definition(func, value)
        else {
            break;
        };
        value = match (integer(func, a), integer(func, b)) {
            (_, Some(_)) => a,
            (Some(_), None) => b,
            (None, None) => break,
        };
    }
    // A constant alone is an address, not a part of one.
    match integer(func, value) {
        Some(_) => address,
        None => value,
    }
}
