//! About how many machine instructions an operation becomes.
//!
//! Nothing more than an estimate for limits (*assumed*, from the sequences in `docs/lowering.md`): what it says of a
//! whole loop is within a third of what selection makes of the kernels under `filetests/kernels`.

use super::shape::words;
use crate::constants::integer;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value, types};

/// The estimate for `inst`.
pub(super) fn size(func: &Function, intrinsics: &Intrinsics, inst: Inst) -> u32 {
    if intrinsics.of_call(func, inst).is_some() {
        return 1;
    }
    let data = &func.dfg.insts[inst];
    let opcode = data.opcode();
    let ty = func.dfg.ctrl_typevar(inst);
    let registers = words(ty).max(1);
    let wide = registers > 1;
    match opcode {
        // IMAD.WIDE is a product of extended words and the sum that it is part of.
        Opcode::Sextend | Opcode::Ishl | Opcode::Imul
            if is_part_of_product(func, func.dfg.first_result(inst)) =>
        {
            0
        }
        Opcode::Iadd
            if wide
                && func
                    .dfg
                    .inst_args(inst)
                    .iter()
                    .any(|&x| is_product(func, x)) =>
        {
            1
        }
        Opcode::Iconst | Opcode::F16const | Opcode::F32const | Opcode::F64const => 0,
        // Copies, and what operands carry as modifiers.
        Opcode::Nop
        | Opcode::Bitcast
        | Opcode::Ireduce
        | Opcode::Uextend
        | Opcode::Iconcat
        | Opcode::Isplit
        | Opcode::Fneg
        | Opcode::Fabs
        | Opcode::Splat
        | Opcode::Extractlane => 0,
        Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem if wide => 80,
        Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem => 20,
        Opcode::Fdiv | Opcode::Sqrt => 13 * registers,
        Opcode::Imul | Opcode::Umulhi | Opcode::Smulhi if wide => registers * registers + 1,
        Opcode::Rotl | Opcode::Rotr | Opcode::Ishl | Opcode::Ushr | Opcode::Sshr if wide => {
            2 * registers
        }
        // One access of up to 128 bits, or one operation of the double unit.
        _ if opcode.can_load() || opcode.can_store() => registers.div_ceil(4),
        _ if ty.is_float() && !ty.is_vector() => 1,
        Opcode::Jump | Opcode::Brif => 1,
        _ => registers,
    }
}

/// Whether `value` is a product of words that are extended to 64 bits, or such an extension of a word with its sign.
fn is_part_of_product(func: &Function, value: Value) -> bool {
    is_product(func, value) || extended(func, value) == Some(Opcode::Sextend)
}

/// Whether `value` is a product of words that are extended to 64 bits, both in the same way, or of one and a constant.
fn is_product(func: &Function, value: Value) -> bool {
    let Some(inst) = func.dfg.value_def(value).inst() else {
        return false;
    };
    match func.dfg.insts[inst] {
        InstructionData::Binary {
            opcode: Opcode::Ishl,
            args: [x, by],
        } => extended(func, x).is_some() && integer(func, by).is_some(),
        InstructionData::Binary {
            opcode: Opcode::Imul,
            args: [x, y],
        } => {
            let how = extended(func, x);
            how.is_some() && (integer(func, y).is_some() || extended(func, y) == how)
        }
        _ => false,
    }
}

/// How `value` is a word extended to 64 bits, if it is one.
fn extended(func: &Function, value: Value) -> Option<Opcode> {
    let inst = func.dfg.value_def(value).inst()?;
    match func.dfg.insts[inst] {
        InstructionData::Unary {
            opcode: opcode @ (Opcode::Uextend | Opcode::Sextend),
            arg,
        } => {
            let is_word = func.dfg.value_type(arg) == types::I32;
            (is_word && func.dfg.value_type(value) == types::I64).then_some(opcode)
        }
        _ => None,
    }
}
