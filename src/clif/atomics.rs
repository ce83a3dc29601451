//! Atomic operations that the machine lacks become loops around its compare-and-swap.
//!
//! The machine has no `nand`, and on one and two bytes no signed order. This pass takes a function with any CLIF
//! atomics up to 64 bits and leaves `atomic_rmw` without `nand`, and without `smin` and `smax` of i8 and i16. All
//! others, loads, stores and compare-and-swaps of every size are single accesses and stay.
//!
//! The loop reads, makes the new value, swaps if nobody was faster, else again with what was found. Lanes of a warp
//! that hit the same place take turns: some lane's swap succeeds in every round, so the loop ends without any lane
//! waiting for another. The swap has the order of the operation.

use super::contents::Contents;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode,
    Type, Value,
};

/// Expands the atomics of `func` that the machine lacks. True if the graph has changed.
pub fn expand(func: &mut Function, contents: &Contents) -> bool {
    if !contents.has(&[Opcode::AtomicRmw]) {
        return false;
    }
    let found: Vec<(Inst, Operation)> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .filter_map(|inst| Operation::of(func, inst).map(|operation| (inst, operation)))
        .collect();
    for (inst, operation) in &found {
        replace(func, *inst, *operation);
    }
    !found.is_empty()
}

/// An operation to expand.
#[derive(Clone, Copy, Debug)]
struct Operation {
    op: AtomicRmwOp,
    ty: Type,
    address: Value,
    operand: Value,
    /// It takes no place in the order of other accesses.
    relaxed: bool,
}

impl Operation {
    fn of(func: &Function, inst: Inst) -> Option<Self> {
        let dfg = &func.dfg;
        let InstructionData::AtomicRmw {
            op,
            flags,
            args: [address, operand],
            ..
        } = dfg.insts[inst]
        else {
            return None;
        };
        let flags = dfg.mem_flags[flags];
        // Another byte order is reported when the operation is lowered.
        if flags.endianness(Endianness::Little) == Endianness::Big {
            return None;
        }
        let ty = dfg.value_type(dfg.first_result(inst));
        let lacking = match op {
            AtomicRmwOp::Nand => ty.bits() <= 64,
            AtomicRmwOp::Smin | AtomicRmwOp::Smax => ty.bits() < 32,
            _ => false,
        };
        lacking.then_some(Self {
            op,
            ty,
            address,
            operand,
            relaxed: flags.can_move(),
        })
    }
}

fn replace(func: &mut Function, inst: Inst, operation: Operation) {
    let Operation {
        op,
        ty,
        address,
        operand,
        ..
    } = operation;
    let location = func.srcloc(inst);
    let body = func.dfg.make_block();
    let rest = func.dfg.make_block();
    func.layout.split_block(rest, inst);
    func.layout.insert_block(body, rest);
    let before = func
        .layout
        .prev_block(body)
        .expect("the block that held the instruction");

    let result = func.dfg.first_result(inst);
    func.dfg.detach_inst_results(inst);
    func.dfg.attach_block_param(rest, result);
    func.layout.remove_inst(inst);

    let mut cursor = FuncCursor::new(func).at_bottom(before);
    cursor.set_srcloc(location);
    let pos = &mut cursor;
    // The swap that follows confirms what is read here, so the read needs no place in the order of other accesses.
    let relaxed = MemFlagsData::trusted().with_can_move();
    let flags = match operation.relaxed {
        true => relaxed,
        false => MemFlagsData::trusted(),
    };
    let first = pos.ins().atomic_load(ty, relaxed, address);
    pos.ins().jump(body, &[first.into()]);

    let old = pos.func.dfg.append_block_param(body, ty);
    pos.goto_bottom(body);
    let new = modified(pos, op, old, operand);
    let found = pos.ins().atomic_cas(flags, address, old, new);
    let swapped = pos.ins().icmp(IntCC::Equal, found, old);
    pos.ins()
        .brif(swapped, rest, &[old.into()], body, &[found.into()]);
}

/// What the operation stores.
fn modified(pos: &mut FuncCursor, op: AtomicRmwOp, old: Value, operand: Value) -> Value {
    match op {
        AtomicRmwOp::Nand => {
            let both = pos.ins().band(old, operand);
            pos.ins().bnot(both)
        }
        AtomicRmwOp::Smin => pos.ins().smin(old, operand),
        AtomicRmwOp::Smax => pos.ins().smax(old, operand),
        other => unreachable!("the machine has {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types;

    /// All operations of the machine's own sizes stay, all others go, and the result verifies.
    #[test]
    fn only_operations_of_the_machine_are_left() {
        let mut text = String::from(
            "function %f(i64, i8, i16, i32, i64) -> i8, i16, i32, i64 \
             {\nblock0(v0: i64, v1: i8, v2: i16, v3: i32, v4: i64):\n",
        );
        let operations = [
            "add", "sub", "and", "nand", "or", "xor", "xchg", "umin", "umax", "smin", "smax",
        ];
        let mut next = 10;
        for (ty, value) in [("i8", "v1"), ("i16", "v2"), ("i32", "v3"), ("i64", "v4")] {
            for op in operations {
                text += &format!("    v{next} = atomic_rmw.{ty} {op} v0, {value}\n");
                next += 1;
            }
            text += &format!("    v{next} = atomic_cas.{ty} v0, {value}, {value}\n");
            next += 1;
        }
        text += "    return v10, v23, v36, v49\n}\n";
        let mut func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
        let contents = Contents::of(&func);
        assert!(expand(&mut func, &contents));
        crate::clif::verify(&func).unwrap();
        let (mut left, mut swaps) = (Vec::new(), Vec::new());
        for inst in func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
        {
            let ty = |i: Inst| func.dfg.value_type(func.dfg.first_result(i));
            match func.dfg.insts[inst] {
                InstructionData::AtomicRmw { .. } => left.push(inst),
                InstructionData::AtomicCas { .. } => swaps.push(ty(inst)),
                InstructionData::Load { .. } => panic!("other threads may write what this reads"),
                _ => {}
            }
        }
        let stay = |ty: Type| operations.len() - if ty.bits() < 32 { 3 } else { 1 };
        for ty in [types::I8, types::I16, types::I32, types::I64] {
            let of = |inst: &&Inst| func.dfg.value_type(func.dfg.first_result(**inst)) == ty;
            assert_eq!(left.iter().filter(of).count(), stay(ty), "{ty}");
            let loops = operations.len() - stay(ty);
            let swaps = swaps.iter().filter(|swapped| **swapped == ty).count();
            assert_eq!(swaps, loops + 1, "{ty}: its loops and the swap itself");
        }
        let contents = Contents::of(&func);
        assert!(!expand(&mut func, &contents), "nothing is left to do");
    }
}
