//! Operations that the mid-end's rules must not see.
//!
//! Some rules answer with a constant of the operation's type: `x - x` is 0, `x == x` is true. Of vectors of integers
//! that have not 128 bits, and of f128, they cannot make one, and end the process. Others take a vector of 64 bits
//! for a number of 64 bits. So the operations that such rules begin with are hidden while the mid-end runs: each looks
//! like an `insertlane` into a lane that no vector has. That has the same type, is pure, and no rule names it, so equal
//! operations are still merged, and moved and dropped as others are; they are only not simplified.
//!
//! Takes any verified function. [`hide`] comes before the mid-end, [`reveal`] after it, and nothing between them but
//! the mid-end. The operations were found by reading the rules of cranelift-codegen 0.135.8 (`src/opts/*.isle`): those
//! that make a constant without having matched one, and those that make an operation which such a rule begins with.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Type, Value, types};

/// The lane of the first hidden operation. Vectors have at most 16 lanes of values that the target takes.
const FIRST_LANE: u8 = 128;

/// Hidden operations with one operand.
const UNARY: [Opcode; 2] = [Opcode::Bnot, Opcode::Ineg];

/// Hidden operations with two operands; `icmp` with each condition follows them.
const BINARY: [Opcode; 3] = [Opcode::Isub, Opcode::Bxor, Opcode::Ishl];

/// Whether the rules cannot make a constant of this type.
pub fn lacks_constants(ty: Type) -> bool {
    ty == types::F128 || (ty.is_vector() && ty.lane_type().is_int() && ty.bits() != 128)
}

/// Hides the operations on types that lack constants. True if there are any.
pub fn hide(func: &mut Function) -> bool {
    let hides = |func: &Function, inst: Inst| {
        let (lane, args) = lane_of(&func.dfg.insts[inst])?;
        lacks_constants(func.dfg.value_type(args[0])).then_some((lane, args))
    };
    replace(func, |func, inst| {
        let (imm, args) = hides(func, inst)?;
        let opcode = Opcode::Insertlane;
        Some(InstructionData::TernaryImm8 { opcode, imm, args })
    })
}

/// Gives the hidden operations back.
pub fn reveal(func: &mut Function) {
    replace(func, |func, inst| match func.dfg.insts[inst] {
        InstructionData::TernaryImm8 {
            opcode: Opcode::Insertlane,
            imm,
            args,
        } => operation(imm, args),
        _ => None,
    });
}

/// Puts what `other` says in place of each operation for which it says something. True if there are any.
fn replace(
    func: &mut Function,
    other: impl Fn(&Function, Inst) -> Option<InstructionData>,
) -> bool {
    let mut replaced = false;
    let mut block = func.layout.entry_block();
    while let Some(current) = block {
        let mut inst = func.layout.first_inst(current);
        while let Some(this) = inst {
            if let Some(data) = other(func, this) {
                func.dfg.insts[this] = data;
                replaced = true;
            }
            inst = func.layout.next_inst(this);
        }
        block = func.layout.next_block(current);
    }
    replaced
}

/// The lane that stands for an operation, and the operands.
fn lane_of(data: &InstructionData) -> Option<(u8, [Value; 2])> {
    let place = |index: usize| u8::try_from(index).ok()?.checked_add(FIRST_LANE);
    match *data {
        InstructionData::Unary { opcode, arg } => {
            let index = UNARY.iter().position(|&known| known == opcode)?;
            Some((place(index)?, [arg, arg]))
        }
        InstructionData::Binary { opcode, args } => {
            let index = BINARY.iter().position(|&known| known == opcode)?;
            Some((place(UNARY.len() + index)?, args))
        }
        InstructionData::IntCompare { cond, args, .. } => {
            let index = IntCC::all().iter().position(|&known| known == cond)?;
            Some((place(UNARY.len() + BINARY.len() + index)?, args))
        }
        _ => None,
    }
}

/// The operation that a lane stands for; none for a lane that vectors have.
fn operation(lane: u8, args: [Value; 2]) -> Option<InstructionData> {
    let index = usize::from(lane.checked_sub(FIRST_LANE)?);
    if let Some(&opcode) = UNARY.get(index) {
        return Some(InstructionData::Unary {
            opcode,
            arg: args[0],
        });
    }
    let index = index - UNARY.len();
    if let Some(&opcode) = BINARY.get(index) {
        return Some(InstructionData::Binary { opcode, args });
    }
    let &cond = IntCC::all().get(index - BINARY.len())?;
    let opcode = Opcode::Icmp;
    Some(InstructionData::IntCompare { opcode, args, cond })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clif::{Options, Preparer};

    fn parsed(text: &str) -> Function {
        cranelift_reader::parse_functions(text)
            .expect("the test's CLIF parses")
            .remove(0)
    }

    fn prepared(text: &str) {
        Preparer::new()
            .prepare(parsed(text), &Options::DEVICE, &mut |_, _| {})
            .unwrap_or_else(|errors| panic!("{text}\n{errors}"));
    }

    const TYPES: [&str; 7] = ["i8x2", "i8x4", "i8x8", "i16x2", "i16x4", "i32x2", "i8x16"];

    #[test]
    fn what_is_hidden_comes_back() {
        let text = "function %f(i16x4, i16x4, i32) -> i16x4 {
            block0(v0: i16x4, v1: i16x4, v2: i32):
                v3 = isub v0, v1
                v4 = bxor v3, v1
                v5 = bnot v4
                v6 = ineg v5
                v7 = ishl v6, v2
                v8 = icmp slt v7, v0
                v9 = icmp uge v8, v0
                v10 = iadd v8, v9
                v11 = extractlane v10, 3
                v12 = insertlane v10, v11, 2
                return v12
            }";
        let mut func = parsed(text);
        let before = func.to_string();
        assert!(hide(&mut func));
        let hidden = func.to_string();
        let lanes = hidden.matches("insertlane").count();
        assert_eq!(lanes, 8, "{hidden}");
        reveal(&mut func);
        assert_eq!(func.to_string(), before);
        let of_numbers = text.replace("i16x4", "i32x4");
        assert!(!hide(&mut parsed(&of_numbers)));
    }

    /// Each of these ended the process, or made a constant of a vector.
    #[test]
    fn rules_that_make_constants_do_not_see_them() {
        for ty in TYPES {
            for work in [
                "v9 = isub v0, v0",
                "v9 = bxor v0, v0",
                "v3 = bnot v0\n v9 = iadd v0, v3",
                "v3 = bnot v0\n v9 = ineg v3",
                "v3 = ineg v0\n v9 = bnot v3",
                "v3 = ineg v0\n v9 = iadd v0, v3",
                "v3 = bnot v0\n v9 = icmp eq v3, v0",
                "v3 = smin v0, v1\n v9 = icmp sgt v3, v0",
                "v3 = icmp sgt v0, v1\n v4 = icmp slt v0, v1\n v9 = band v3, v4",
                "v3 = icmp uge v0, v1\n v4 = icmp ult v0, v1\n v9 = bor v3, v4",
                "v3 = iadd v0, v1\n v9 = icmp eq v3, v1",
                "v2 = iconst.i32 3\n v3 = ushr v0, v2\n v9 = ishl v3, v2",
                "v2 = iconst.i32 3\n v3 = sshr v0, v2\n v9 = ishl v3, v2",
                "v2 = iconst.i32 7\n v3 = ishl v0, v2\n v9 = ishl v3, v2",
                "v2 = iconst.i32 7\n v3 = ishl v0, v2\n v9 = ushr v3, v2",
            ] {
                prepared(&format!(
                    "function %f({ty}, {ty}) -> {ty} {{
                    block0(v0: {ty}, v1: {ty}):
                        {work}
                        return v9
                    }}"
                ));
            }
            for condition in IntCC::all() {
                prepared(&format!(
                    "function %f({ty}) -> {ty} {{
                    block0(v0: {ty}):
                        v1 = icmp {condition} v0, v0
                        return v1
                    }}"
                ));
            }
        }
    }

    #[test]
    fn equal_hidden_operations_are_merged() {
        let text = "function %f(i16x4, i16x4) -> i16x4, i16x4 {
            block0(v0: i16x4, v1: i16x4):
                v2 = isub v0, v1
                v3 = isub v0, v1
                v4 = isub v1, v0
                v5 = iadd v2, v4
                return v3, v5
            }";
        let prepared = Preparer::new()
            .prepare(parsed(text), &Options::DEVICE, &mut |_, _| {})
            .unwrap_or_else(|errors| panic!("{errors}"));
        let left = prepared.func.to_string();
        assert_eq!(left.matches("isub").count(), 2, "{left}");
    }

    #[test]
    fn f128_is_hidden() {
        let mut func = parsed(
            "function %f(f128) -> f128 {
            block0(v0: f128):
                v1 = bxor v0, v0
                return v1
            }",
        );
        assert!(hide(&mut func));
    }
}
