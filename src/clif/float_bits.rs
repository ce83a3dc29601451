//! Bitwise operations on floats, as operations on integers between casts.
//!
//! Takes a verified function; leaves no `band`, `bor`, `bxor`, `bnot` or `bitselect` on floats or vectors of them. CLIF allows them, but
//! rules of Cranelift's mid-end that make constants (`bxor v1, v1` is one) fail on their types. The casts cost nothing.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, types,
};

/// Rewrites the bitwise operations on floats of `func`.
pub fn expand(func: &mut Function) {
    let found: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .filter(|&inst| is_on_floats(func, inst))
        .collect();
    for inst in found {
        replace(func, inst);
    }
}

fn is_on_floats(func: &Function, inst: Inst) -> bool {
    matches!(
        func.dfg.insts[inst].opcode(),
        Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot | Opcode::Bitselect
    ) && {
        let lane = func.dfg.ctrl_typevar(inst).lane_type();
        lane.is_float() && lane != types::F128
    }
}

/// The integer type, or vector of them, of the same shape.
fn integers(ty: Type) -> Type {
    match ty.is_vector() {
        true => ty.as_int(),
        false => Type::int(ty.bits() as u16).expect("a float has the width of an integer"),
    }
}

fn replace(func: &mut Function, inst: Inst) {
    let data = func.dfg.insts[inst];
    let old = func.dfg.first_result(inst);
    let ty = func.dfg.value_type(old);
    let location = func.srcloc(inst);
    let args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
    let mut pos = FuncCursor::new(func).at_inst(inst);
    pos.set_srcloc(location);
    let bits = integers(ty);
    let args: Vec<Value> = args
        .into_iter()
        .map(|arg| pos.ins().bitcast(bits, MemFlagsData::new(), arg))
        .collect();
    let ins = pos.ins();
    let (operation, _) = match (data, &args[..]) {
        (InstructionData::Unary { opcode, .. }, &[x]) => ins.Unary(opcode, bits, x),
        (InstructionData::Binary { opcode, .. }, &[x, y]) => ins.Binary(opcode, bits, x, y),
        (InstructionData::Ternary { opcode, .. }, &[x, y, z]) => ins.Ternary(opcode, bits, x, y, z),
        (other, _) => unreachable!("{} is not bitwise", other.opcode()),
    };
    let result = pos.func.dfg.first_result(operation);
    let new = pos.ins().bitcast(ty, MemFlagsData::new(), result);
    func.dfg.clear_results(inst);
    func.layout.remove_inst(inst);
    func.dfg.change_to_alias(old, new);
}
