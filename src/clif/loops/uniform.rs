//! What is certainly the same in all threads of a block, read off a value's definition: the analysis proper
//! (`analysis/uniformity.rs`) runs on the finished function.

use super::LoopContext;
use crate::intrinsics::resolve::GpuSymbol;
use crate::intrinsics::{Lowering, Uniformity};
use crate::isa::generated::SReg;
use cranelift_codegen::ir::{Function, InstructionData, Value};

/// Longest chain of operations that is followed (*assumed*).
const DEPTH: u32 = 6;

/// Whether all threads of a block have the same `value`.
pub(super) fn is_uniform(func: &Function, given: &LoopContext<'_>, value: Value) -> bool {
    within(func, given, value, DEPTH)
}

fn within(func: &Function, given: &LoopContext<'_>, value: Value, depth: u32) -> bool {
    let def = func.dfg.value_def(value);
    let Some(inst) = def.inst() else {
        // Lanes may pass a device function what they like.
        return given.kernel && func.layout.entry_block() == Some(def.unwrap_block());
    };
    if let Some(symbol) = given.intrinsics.of_symbol_value(func, inst) {
        return match symbol {
            // The number of a warp is not that of another one, which waits at the same barriers.
            GpuSymbol::Special(row) => {
                row.uniformity == Uniformity::Uniform
                    && row.lowering != Lowering::Special(SReg::SrWarpid)
            }
            GpuSymbol::Shared => true,
        };
    }
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm { .. } => true,
        InstructionData::Unary { .. } | InstructionData::Binary { .. } => {
            depth > 0
                && (func.dfg.inst_args(inst).iter()).all(|&arg| within(func, given, arg, depth - 1))
        }
        _ => false,
    }
}
