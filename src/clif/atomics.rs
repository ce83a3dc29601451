//! Atomic operations that the machine lacks become loops around its compare-and-swap.
//!
//! The machine's atomics work on aligned words and pairs of words and have no `nand`. This pass takes a function with any CLIF atomics
//! up to 64 bits and leaves `atomic_rmw` on i32 and i64 without `nand`, and `atomic_cas` on i32 and i64. Loads and stores of every size
//! are single accesses and stay.
//!
//! A narrow operation works on the aligned word around its bytes: read the word, make the new word, swap if nobody was faster, else
//! again with what was found. Lanes of a warp that hit the same word take turns: some lane's swap succeeds in every round, so the loop
//! ends without any lane waiting for another. A narrow compare-and-swap leaves the loop as soon as its own bytes differ from what was expected;
//! neighbours that change only cost a round.

use super::contents::Contents;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AtomicRmwOp, Block, Endianness, Function, Inst, InstBuilder, InstructionData, MemFlagsData,
    Opcode, Type, Value, types,
};

/// Expands the atomics of `func` that the machine lacks. True if the graph has changed.
pub fn expand(func: &mut Function, contents: &Contents) -> bool {
    if !contents.has(&[Opcode::AtomicRmw, Opcode::AtomicCas]) {
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
    kind: Kind,
    ty: Type,
    address: Value,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Modify { op: AtomicRmwOp, operand: Value },
    Swap { expected: Value, new: Value },
}

impl Operation {
    fn of(func: &Function, inst: Inst) -> Option<Self> {
        let dfg = &func.dfg;
        let (kind, flags, address) = match dfg.insts[inst] {
            InstructionData::AtomicRmw {
                op, flags, args, ..
            } => (
                Kind::Modify {
                    op,
                    operand: args[1],
                },
                flags,
                args[0],
            ),
            InstructionData::AtomicCas { flags, args, .. } => (
                Kind::Swap {
                    expected: args[1],
                    new: args[2],
                },
                flags,
                args[0],
            ),
            _ => return None,
        };
        debug_assert!(matches!(
            dfg.insts[inst].opcode(),
            Opcode::AtomicRmw | Opcode::AtomicCas
        ));
        // Another byte order is reported when the operation is lowered.
        if dfg.mem_flags[flags].endianness(Endianness::Little) == Endianness::Big {
            return None;
        }
        let ty = dfg.value_type(dfg.first_result(inst));
        let narrow = ty.bits() < 32;
        let nand = matches!(
            kind,
            Kind::Modify {
                op: AtomicRmwOp::Nand,
                ..
            }
        ) && ty.bits() <= 64;
        (narrow || nand).then_some(Self { kind, ty, address })
    }
}

/// The word that the loop swaps, and where the operation's bytes are in it.
struct Word {
    ty: Type,
    address: Value,
    /// Bits below the bytes and a mask of the bytes; none when they are the whole word.
    part: Option<(Value, Value)>,
}

impl Word {
    fn locate(pos: &mut FuncCursor, ty: Type, address: Value) -> Self {
        if ty.bits() >= 32 {
            return Self {
                ty,
                address,
                part: None,
            };
        }
        let pointer = pos.func.dfg.value_type(address);
        let aligned = pos.ins().band_imm_s(address, -4);
        let byte = pos.ins().band_imm_u(address, 3);
        let byte = if pointer == types::I32 {
            byte
        } else {
            pos.ins().ireduce(types::I32, byte)
        };
        let shift = pos.ins().ishl_imm_u(byte, 3);
        let ones = pos.ins().iconst(types::I32, (1i64 << ty.bits()) - 1);
        let mask = pos.ins().ishl(ones, shift);
        Self {
            ty: types::I32,
            address: aligned,
            part: Some((shift, mask)),
        }
    }

    /// The operation's bytes of a word.
    fn extract(&self, pos: &mut FuncCursor, ty: Type, word: Value) -> Value {
        match self.part {
            None => word,
            Some((shift, _)) => {
                let low = pos.ins().ushr(word, shift);
                pos.ins().ireduce(ty, low)
            }
        }
    }

    /// `word` with the operation's bytes replaced.
    fn insert(&self, pos: &mut FuncCursor, word: Value, value: Value) -> Value {
        match self.part {
            None => value,
            Some((shift, mask)) => {
                let wide = pos.ins().uextend(types::I32, value);
                let moved = pos.ins().ishl(wide, shift);
                pos.ins().bitselect(mask, moved, word)
            }
        }
    }
}

fn replace(func: &mut Function, inst: Inst, operation: Operation) {
    let Operation { kind, ty, address } = operation;
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
    let word = Word::locate(pos, ty, address);
    let flags = MemFlagsData::trusted();
    // The swap that follows confirms what is read here, so the read needs no place in the order of other accesses.
    let relaxed = flags.with_can_move();
    let first = pos.ins().atomic_load(word.ty, relaxed, word.address);
    pos.ins().jump(body, &[first.into()]);

    let old = pos.func.dfg.append_block_param(body, word.ty);
    pos.goto_bottom(body);
    let value = word.extract(pos, ty, old);
    let new = match kind {
        Kind::Modify { op, operand } => modified(pos, op, value, operand),
        Kind::Swap { expected, new } => {
            let swap = pos.func.dfg.make_block();
            pos.func.layout.insert_block_after(swap, body);
            let same = pos.ins().icmp(IntCC::Equal, value, expected);
            pos.ins().brif(same, swap, &[], rest, &[value.into()]);
            pos.goto_bottom(swap);
            new
        }
    };
    let new_word = word.insert(pos, old, new);
    let found = pos.ins().atomic_cas(flags, word.address, old, new_word);
    let swapped = pos.ins().icmp(IntCC::Equal, found, old);
    // The bytes that were there are those of the round that succeeded.
    again_unless(pos, swapped, body, found, rest, value);
}

fn again_unless(
    pos: &mut FuncCursor,
    done: Value,
    body: Block,
    found: Value,
    rest: Block,
    value: Value,
) {
    pos.ins()
        .brif(done, rest, &[value.into()], body, &[found.into()]);
}

/// What the operation stores.
fn modified(pos: &mut FuncCursor, op: AtomicRmwOp, old: Value, operand: Value) -> Value {
    match op {
        AtomicRmwOp::Add => pos.ins().iadd(old, operand),
        AtomicRmwOp::Sub => pos.ins().isub(old, operand),
        AtomicRmwOp::And => pos.ins().band(old, operand),
        AtomicRmwOp::Nand => {
            let both = pos.ins().band(old, operand);
            pos.ins().bnot(both)
        }
        AtomicRmwOp::Or => pos.ins().bor(old, operand),
        AtomicRmwOp::Xor => pos.ins().bxor(old, operand),
        AtomicRmwOp::Xchg => operand,
        AtomicRmwOp::Umin => pos.ins().umin(old, operand),
        AtomicRmwOp::Umax => pos.ins().umax(old, operand),
        AtomicRmwOp::Smin => pos.ins().smin(old, operand),
        AtomicRmwOp::Smax => pos.ins().smax(old, operand),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All operations of the machine's own sizes stay, all others go, and the result verifies.
    #[test]
    fn only_operations_of_the_machine_are_left() {
        let mut text = String::from(
            "function %f(i64, i8, i16, i32, i64) -> i8, i16, i32, i64 {\nblock0(v0: i64, v1: i8, v2: i16, v3: i32, v4: i64):\n",
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
        let mut left = Vec::new();
        for inst in func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
        {
            let ty = |i: Inst| func.dfg.value_type(func.dfg.first_result(i));
            match func.dfg.insts[inst] {
                InstructionData::AtomicRmw { op, .. } => {
                    assert!(op != AtomicRmwOp::Nand && ty(inst).bits() >= 32);
                    left.push(inst);
                }
                InstructionData::AtomicCas { .. } => assert!(ty(inst).bits() >= 32),
                InstructionData::Load { .. } => panic!("other threads may write what this reads"),
                _ => {}
            }
        }
        assert_eq!(left.len(), 2 * (operations.len() - 1));
        let contents = Contents::of(&func);
        assert!(!expand(&mut func, &contents), "nothing is left to do");
    }
}
