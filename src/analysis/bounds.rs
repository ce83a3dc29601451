//! How large a word can be.
//!
//! Takes a value and what its definition is made of: masks, shifts, thread and launch values; gives a bound that holds
//! without knowing anything of memory or parameters.

use crate::abi::{self, bank0};
use crate::constants::{definition, integer};
use crate::intrinsics::Lowering;
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics};
use crate::isa::generated::SReg;
use cranelift_codegen::ir::{Function, InstructionData, Opcode, Value};

/// How far the operations of a number are followed (*assumed*).
const DEPTH: u32 = 8;

/// No value of the word `value`, read without sign, is greater.
pub fn greatest(func: &Function, intrinsics: &Intrinsics, value: Value) -> u64 {
    greatest_to(func, intrinsics, value, DEPTH)
}

/// The same, followed through so many operations.
fn greatest_to(func: &Function, intrinsics: &Intrinsics, value: Value, depth: u32) -> u64 {
    let most = u64::from(u32::MAX);
    let ty = func.dfg.value_type(value);
    if depth == 0 || !ty.is_int() || ty.bits() > 32 {
        return most;
    }
    let of = |value| greatest_to(func, intrinsics, value, depth - 1);
    let limit = most >> (32 - ty.bits());
    let found = match definition(func, value) {
        Some(InstructionData::UnaryImm { imm, .. }) => imm.bits() as u64 & limit,
        Some(InstructionData::UnaryGlobalValue { global_value, .. }) => {
            match intrinsics.symbol(global_value) {
                Some(GpuSymbol::Special(row)) => greatest_special(row.lowering),
                _ => most,
            }
        }
        Some(InstructionData::Unary {
            opcode: Opcode::Uextend,
            arg,
        }) => of(arg),
        Some(InstructionData::Binary {
            opcode,
            args: [a, b],
        }) => match (opcode, integer(func, b)) {
            (Opcode::Band, _) => of(a).min(of(b)),
            (Opcode::Iadd, _) => of(a) + of(b),
            (Opcode::Ishl, Some(amount)) => of(a) << (amount as u32 & (ty.bits() - 1)),
            (Opcode::Ushr, Some(amount)) => of(a) >> (amount as u32 & (ty.bits() - 1)),
            (Opcode::Imul, _) => of(a).saturating_mul(of(b)),
            (Opcode::Umin, _) => of(a).min(of(b)),
            _ => most,
        },
        // Bytes that are moved, with zeros above.
        Some(InstructionData::Call { .. }) => {
            let zeros = intrinsics.zero_bytes(func, value) << 28;
            most.checked_shr(8 * zeros.leading_ones()).unwrap_or(0)
        }
        _ => most,
    };
    // What may wrap may be anything.
    if found > limit { limit } else { found }
}

/// The greatest value of a thread or launch value.
fn greatest_special(lowering: Lowering) -> u64 {
    use SReg::*;
    match lowering {
        Lowering::Special(SrTidX | SrTidY | SrTidZ) => abi::MAX_THREADS - 1,
        Lowering::Special(SrNtidX | SrNtidY | SrNtidZ) => abi::MAX_THREADS,
        Lowering::Special(SrLaneid | SrWarpid) => 31,
        Lowering::LaunchConstant(bank0::DYNAMIC_SHARED) => u64::from(abi::MAX_SHARED),
        _ => u64::from(u32::MAX),
    }
}
