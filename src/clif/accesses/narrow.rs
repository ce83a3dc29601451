//! Generic addresses of shared memory become offsets in it: words instead of pairs of words.
//!
//! The shared window begins at a multiple of 2^32, so the offset is the low word of the address; and the low word of sums, differences, products and
//! shifts by less than 32 is the same operation on low words. The symbol's own is a constant, which ends up in the offset of the access.

use super::address::{address_of, set_address};
use crate::analysis::provenance::{Provenance, Space};
use crate::constants::{definition, integer};
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics, symbol_offset};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::immediates::Offset32;
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

/// Narrows the addresses of loads and stores that `provenance` knows to be in shared memory; whether there were any.
pub(super) fn narrow(
    func: &mut Function,
    intrinsics: &Intrinsics,
    provenance: &Provenance,
) -> bool {
    let mut accesses: Vec<(Inst, Value, Offset32)> = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            if let Some((address, offset)) = address_of(func, inst)
                && func.dfg.value_type(address) == I64
                && provenance.space(func, address) == Space::Shared
            {
                accesses.push((inst, address, offset));
            }
        }
    }
    let mut words = Words {
        intrinsics,
        found: HashMap::new(),
    };
    for &(inst, address, offset) in &accesses {
        let word = words.of(func, address, DEPTH);
        set_address(func, inst, word, offset);
    }
    !accesses.is_empty()
}

/// The low words of values, each computed behind its value.
struct Words<'a> {
    intrinsics: &'a Intrinsics,
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
