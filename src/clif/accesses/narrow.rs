//! Generic addresses of shared memory become offsets in it: words instead of pairs of words.
//!
//! The shared window begins at a multiple of 2^32, so the offset is the low word of the address; and the low word of
//! sums, differences, products and shifts by less than 32 is the same operation on low words. The symbol's own is a
//! constant, which ends up in the offset of the access.
//!
//! An address outside of the window faults, and its low word may be an offset inside. So an address is narrowed only if
//! [`window`] shows that this cannot be. For that an index of which nothing is known is capped, by one `umin`: elements
//! behind the cap fault as those before it do. What cannot be shown stays generic.

use crate::analysis::control_flow::ControlFlow;
use crate::analysis::provenance::{Provenance, Space};
use crate::analysis::window::{self, Cap, Passed, Surroundings};
use crate::constants::{definition, integer};
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics, symbol_offset};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef,
};
use hashbrown::HashMap;

/// How deep an address is looked into (*assumed*: more than the trees of real addresses).
const DEPTH: u32 = 8;

/// Whether a function reads the generic address of shared memory.
pub(super) fn concerns(func: &Function, intrinsics: &Intrinsics) -> bool {
    let shared = |gv| matches!(intrinsics.symbol(gv), Some(GpuSymbol::Shared));
    func.global_values.keys().any(shared)
}

/// Narrows the addresses of accesses that `provenance` knows to be in shared memory; whether there were any.
pub(super) fn narrow(
    func: &mut Function,
    intrinsics: &Intrinsics,
    flow: &ControlFlow,
    provenance: &Provenance,
) -> bool {
    let mut accesses: Vec<(Inst, Value)> = Vec::new();
    let mut words = Words {
        intrinsics,
        caps: HashMap::new(),
        found: HashMap::new(),
    };
    let mut passed = Passed::default();
    for &block in flow.reverse_postorder() {
        for inst in func.layout.block_insts(block) {
            let Some((address, offset)) = address_of(func, inst) else {
                passed.note(func, block, inst);
                continue;
            };
            if func.dfg.value_type(address) != I64
                || provenance.space(func, address) != Space::Shared
            {
                continue;
            }
            let around = Surroundings {
                func,
                intrinsics,
                at: Some((flow, block)),
                passed: &passed,
            };
            let extent = window::extent(&around, address, true);
            if let Some(extent) = extent.filter(|extent| extent.stays_inside(offset)) {
                words
                    .caps
                    .extend(extent.caps().iter().map(|cap| (cap.place, *cap)));
                accesses.push((inst, address));
            }
        }
    }
    for &(inst, address) in &accesses {
        let word = words.of(func, address, DEPTH);
        *address_mut(func, inst) = word;
    }
    !accesses.is_empty()
}

/// The address operand of an access, and the offset beside it.
fn address_of(func: &Function, inst: Inst) -> Option<(Value, i64)> {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, offset, .. } => Some((arg, i32::from(offset).into())),
        InstructionData::Store { args, offset, .. } => Some((args[1], i32::from(offset).into())),
        InstructionData::LoadNoOffset {
            opcode: Opcode::AtomicLoad,
            arg,
            ..
        } => Some((arg, 0)),
        InstructionData::StoreNoOffset {
            opcode: Opcode::AtomicStore,
            args,
            ..
        } => Some((args[1], 0)),
        InstructionData::AtomicRmw { args, .. } => Some((args[0], 0)),
        InstructionData::AtomicCas { .. } => Some((func.dfg.inst_args(inst)[0], 0)),
        _ => None,
    }
}

/// The place of the same operand.
fn address_mut(func: &mut Function, inst: Inst) -> &mut Value {
    let number = match func.dfg.insts[inst].opcode() {
        Opcode::AtomicStore => 1,
        opcode if opcode.can_store() && !opcode.can_load() => 1,
        _ => 0,
    };
    &mut func.dfg.inst_args_mut(inst)[number]
}

/// The low words of values, each computed behind its value.
struct Words<'a> {
    intrinsics: &'a Intrinsics,
    /// What is capped, by its place.
    caps: HashMap<Value, Cap>,
    found: HashMap<Value, Value>,
}

impl Words<'_> {
    fn of(&mut self, func: &mut Function, value: Value, depth: u32) -> Value {
        if let Some(&found) = self.found.get(&value) {
            return found;
        }
        let word = self.make(func, value, depth);
        self.found.insert(value, word);
        word
    }

    fn make(&mut self, func: &mut Function, value: Value, depth: u32) -> Value {
        if let Some(cap) = self.caps.get(&value) {
            return capped(func, cap);
        }
        match definition(func, value) {
            Some(InstructionData::UnaryImm { imm, .. }) => {
                let word = i64::from(imm.bits() as u32);
                behind(func, value).ins().iconst(I32, word)
            }
            Some(InstructionData::UnaryGlobalValue { global_value, .. })
                if matches!(
                    self.intrinsics.symbol(global_value),
                    Some(GpuSymbol::Shared)
                ) =>
            {
                let offset = i64::from(symbol_offset(func, global_value) as u32);
                behind(func, value).ins().iconst(I32, offset)
            }
            Some(InstructionData::Unary {
                opcode: Opcode::Uextend | Opcode::Sextend,
                arg,
            }) if func.dfg.value_type(arg) == I32 => arg,
            Some(InstructionData::Binary {
                opcode: opcode @ (Opcode::Iadd | Opcode::Isub | Opcode::Imul),
                args,
            }) if depth > 0 => {
                let [a, b] = args.map(|arg| self.of(func, arg, depth - 1));
                let mut pos = behind(func, value);
                match opcode {
                    Opcode::Iadd => pos.ins().iadd(a, b),
                    Opcode::Isub => pos.ins().isub(a, b),
                    _ => pos.ins().imul(a, b),
                }
            }
            Some(InstructionData::Binary {
                opcode: Opcode::Ishl,
                args: [a, amount],
            }) if depth > 0 && integer(func, amount).is_some_and(|amount| amount & 63 < 32) => {
                let bits = integer(func, amount).unwrap_or(0) & 63;
                let a = self.of(func, a, depth - 1);
                let mut pos = behind(func, value);
                let amount = pos.ins().iconst(I32, bits);
                pos.ins().ishl(a, amount)
            }
            _ => behind(func, value).ins().ireduce(I32, value),
        }
    }
}

/// The low word of a capped place.
fn capped(func: &mut Function, cap: &Cap) -> Value {
    let second = match definition(func, cap.place) {
        Some(InstructionData::Binary {
            opcode: opcode @ (Opcode::Imul | Opcode::Ishl),
            args: [_, b],
        }) => integer(func, b).map(|constant| (opcode, constant)),
        _ => None,
    };
    let mut pos = behind(func, cap.place);
    let most = pos.ins().iconst(I32, i64::from(cap.most));
    let word = pos.ins().umin(cap.word, most);
    let Some((opcode, constant)) = second else {
        return word;
    };
    let constant = pos.ins().iconst(I32, constant);
    match opcode {
        Opcode::Imul => pos.ins().imul(word, constant),
        _ => pos.ins().ishl(word, constant),
    }
}

/// Where a value has just been computed.
fn behind(func: &mut Function, value: Value) -> FuncCursor<'_> {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => {
            let location = func.srcloc(inst);
            FuncCursor::new(func).after_inst(inst).with_srcloc(location)
        }
        ValueDef::Param(block, _) => FuncCursor::new(func).at_first_insertion_point(block),
        ValueDef::Union(..) => unreachable!("there are none outside of the mid-end"),
    }
}
