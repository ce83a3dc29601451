//! About how many machine instructions an operation becomes.
//!
//! Nothing more than an estimate for limits (*assumed*, from the sequences in `docs/lowering.md`): what it says of a
//! whole loop is within a third of what selection makes of the kernels under `filetests/kernels`.

use super::shape::words;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::ir::{Function, Inst, Opcode};

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
