//! What a lane is, where the vector was put together in sight.
//!
//! Operations on lanes take vectors apart that the operation before has put together, and constants that are the same
//! in every lane. Looking through both leaves fewer instructions to lower, and constants where instructions can have
//! them as immediates.

use cranelift_codegen::ir::{Endianness, Function, InstructionData, Opcode, Type, Value, ValueDef};

/// Most `insertlane`s that are looked through: a vector has at most 16 lanes.
const LONGEST: usize = 16;

fn def(func: &Function, value: Value) -> Option<InstructionData> {
    match func.dfg.value_def(value) {
        ValueDef::Result(inst, _) => Some(func.dfg.insts[inst]),
        _ => None,
    }
}

/// The scalar that every lane of `vector` is.
pub(super) fn repeated(func: &Function, vector: Value) -> Option<Value> {
    match def(func, vector)? {
        InstructionData::Unary {
            opcode: Opcode::Splat,
            arg,
        } => Some(func.dfg.resolve_aliases(arg)),
        _ => None,
    }
}

/// The value that lane `index` of `vector` is.
pub(super) fn lane(func: &Function, vector: Value, index: u8) -> Option<Value> {
    let ty = func.dfg.value_type(vector);
    let mut at = vector;
    for _ in 0..=LONGEST {
        at = match def(func, at)? {
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                args: [rest, lane],
                imm,
            } => {
                if imm == index {
                    return Some(func.dfg.resolve_aliases(lane));
                }
                rest
            }
            InstructionData::Unary {
                opcode: Opcode::ScalarToVector,
                arg,
            } => return (index == 0).then(|| func.dfg.resolve_aliases(arg)),
            InstructionData::Unary {
                opcode: Opcode::Splat,
                arg,
            } => return Some(func.dfg.resolve_aliases(arg)),
            // There and back.
            _ => bits_of(func, recast(func, at)?, ty)?,
        };
    }
    None
}

/// The value of type `ty` of which `value` has the bits, if it was made from one.
pub(super) fn bits_of(func: &Function, value: Value, ty: Type) -> Option<Value> {
    recast(func, value).filter(|&before| func.dfg.value_type(before) == ty)
}

/// What `value` is a little-endian `bitcast` of.
fn recast(func: &Function, value: Value) -> Option<Value> {
    match def(func, value)? {
        InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            flags,
            arg,
        } if func.dfg.mem_flags[flags].endianness(Endianness::Little) == Endianness::Little => {
            Some(func.dfg.resolve_aliases(arg))
        }
        _ => None,
    }
}
