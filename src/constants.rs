//! Scalar constants of CLIF, and what bits are as integers of a type.

use cranelift_codegen::ir::{Function, InstructionData, Opcode, Type, Value};

/// The instruction that computes a value; none for a parameter of a block.
pub fn definition(func: &Function, value: Value) -> Option<InstructionData> {
    Some(func.dfg.insts[func.dfg.value_def(value).inst()?])
}

/// The integer of at most 64 bits that a value is, if it is a constant, with its sign.
pub fn integer(func: &Function, value: Value) -> Option<i64> {
    match definition(func, value)? {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } => Some(signed(func.dfg.value_type(value), imm.bits())),
        _ => None,
    }
}

/// The bits of a constant integer or float of at most 64 bits; those above its type's are open.
pub fn bits(func: &Function, value: Value) -> Option<u64> {
    match definition(func, value)? {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } => Some(imm.bits() as u64),
        InstructionData::UnaryIeee16 { imm, .. } => Some(imm.bits().into()),
        InstructionData::UnaryIeee32 { imm, .. } => Some(imm.bits().into()),
        InstructionData::UnaryIeee64 { imm, .. } => Some(imm.bits()),
        _ => None,
    }
}

/// The low bits of an integer of the type, sign-extended.
pub fn signed(ty: Type, bits: i64) -> i64 {
    let unused = 64 - ty.bits();
    bits << unused >> unused
}

/// The same without sign, as CLIF wants constants.
pub fn unsigned(ty: Type, bits: i64) -> u64 {
    bits as u64 & (u64::MAX >> (64 - ty.bits()))
}
