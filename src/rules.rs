//! What both sets of ISLE rules, those that rewrite CLIF and those that select instructions, see of CLIF in the same
//! way.

use cranelift_codegen::ir::{BlockCall, Function, Inst, Value, types};

/// With the feature `trace-rules`: says which instruction the rules are asked about, with its controlling type. Which
/// rules fire is said by what Cranelift's compiler of ISLE makes.
pub(crate) fn trace(stage: &str, func: &Function, inst: Inst) {
    if cfg!(feature = "trace-rules") {
        let opcode = func.dfg.insts[inst].opcode();
        match func.dfg.ctrl_typevar(inst) {
            types::INVALID => log::debug!("{stage} {opcode} untyped"),
            ty => log::debug!("{stage} {opcode} {ty}"),
        }
    }
}

/// Operands of an instruction with two.
pub type ValueArray2 = [Value; 2];
/// Operands of an instruction with three.
pub type ValueArray3 = [Value; 3];
/// The targets of a branch with two.
pub type BlockArray2 = [BlockCall; 2];

// What the contexts of rules do with arrays of operands. They call these functions by their names.

/// The elements of two values.
pub(crate) fn unpack_value_array_2(array: &ValueArray2) -> (Value, Value) {
    (array[0], array[1])
}

/// Two values.
pub(crate) fn pack_value_array_2(a: Value, b: Value) -> ValueArray2 {
    [a, b]
}

/// The elements of three values.
pub(crate) fn unpack_value_array_3(array: &ValueArray3) -> (Value, Value, Value) {
    (array[0], array[1], array[2])
}

/// Three values.
pub(crate) fn pack_value_array_3(a: Value, b: Value, c: Value) -> ValueArray3 {
    [a, b, c]
}

/// The elements of two targets.
pub(crate) fn unpack_block_array_2(array: &BlockArray2) -> (BlockCall, BlockCall) {
    (array[0], array[1])
}

/// Two targets.
pub(crate) fn pack_block_array_2(a: BlockCall, b: BlockCall) -> BlockArray2 {
    [a, b]
}
