//! What the passes ask of a loop.

use cranelift_codegen::Context;
use cranelift_codegen::ir::{
    Block, Function, Inst, InstructionData, Opcode, Type, Value, ValueDef,
};
use cranelift_codegen::loop_analysis::Loop;

/// The integer that `value` is, if it is a constant, as Cranelift keeps it: sign-extended.
pub(super) fn integer(func: &Function, value: Value) -> Option<i64> {
    let ValueDef::Result(inst, _) = func.dfg.value_def(value) else {
        return None;
    };
    match func.dfg.insts[inst] {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } => Some(imm.bits()),
        _ => None,
    }
}

/// Whether `inst` makes a constant.
pub(super) fn is_constant(func: &Function, inst: Inst) -> bool {
    matches!(
        func.dfg.insts[inst].opcode(),
        Opcode::Iconst | Opcode::F16const | Opcode::F32const | Opcode::F64const
    )
}

/// Registers that a value of the type fills.
pub(super) fn words(ty: Type) -> u32 {
    ty.bits().div_ceil(32)
}

/// The block that is entered last before `lp`, whichever way it is entered, if it lies in no other loop: what stands at its end is
/// computed once for all turns.
pub(super) fn preheader(context: &Context, lp: Loop) -> Option<Block> {
    let loops = &context.loop_analysis;
    let before = context.domtree.idom(loops.loop_header(lp))?;
    (loops.innermost_loop(before) == loops.loop_parent(lp)).then_some(before)
}
