//! What this target does not do, each with its reason. Everything else has to be in a run file.

use crate::case::{Case, Variant};
use cranelift_codegen::ir::{Endianness, Opcode, types};

/// Why a case is unsupported; none if it is supported.
pub fn reason(case: &Case) -> Option<&'static str> {
    let (from, to) = (case.free.first().copied(), case.ty);
    match case.opcode {
        Opcode::DynamicStackAddr => Some("dynamic vectors"),
        Opcode::TryCall | Opcode::TryCallIndirect | Opcode::GetExceptionHandlerAddress => {
            Some("exceptions: nothing unwinds on the machine")
        }
        Opcode::GetPinnedReg | Opcode::SetPinnedReg => Some("no register can be reserved"),
        Opcode::GetFramePointer | Opcode::GetReturnAddress => {
            Some("Cranelift's verifier wants an ISA with frame pointers for them")
        }
        Opcode::StackSwitch => Some("a lane has one stack"),
        Opcode::TlsValue => Some("threads have local memory instead"),
        Opcode::Debugtrap => Some("there is no debugger to stop for; use trap"),
        Opcode::F128const => Some("f128"),
        Opcode::X86Cvtt2dq => Some("what x86 does with numbers out of range; use fcvt_to_sint_sat"),
        Opcode::FuncAddr
        | Opcode::CallIndirect
        | Opcode::ReturnCallIndirect
        | Opcode::StackAddr
        | Opcode::GetStackPointer
            if to == types::I32 =>
        {
            Some(
                "addresses of code and of the stack have 64 bits; 32 bits are offsets in shared memory",
            )
        }
        Opcode::SymbolValue if to != types::I32 && to != types::I64 => {
            Some("not the type of an address")
        }
        Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::AtomicLoad | Opcode::AtomicStore => {
            if to == types::I128 {
                Some("the machine's atomics have at most 64 bits")
            } else if case.variant == Variant::Order(Endianness::Big) {
                Some("the machine's atomics are little-endian")
            } else {
                None
            }
        }
        Opcode::FcvtFromSint
        | Opcode::FcvtFromUint
        | Opcode::FcvtToSint
        | Opcode::FcvtToUint
        | Opcode::FcvtToSintSat
        | Opcode::FcvtToUintSat
            if from.is_some_and(|from| from.lane_count() != to.lane_count()) =>
        {
            Some("a conversion between different numbers of lanes has no meaning")
        }
        _ => None,
    }
}
