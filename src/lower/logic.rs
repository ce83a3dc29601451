//! Bitwise logic: truth tables of LOP3, and trees of CLIF operations that are one.
//!
//! A table is what its function gives for `TABLE_A`, `TABLE_B` and `TABLE_C`. Inputs that are complemented or known are
//! worked into it, which no pattern over instructions can do.

use super::Lower;
use super::context::generated_code::Context;
use super::source::{Base, PSrc, Src};
use super::typed::{GprPred, Operand, Word};
use crate::isa::generated::EXBool;
use cranelift_codegen::ir::{InstructionData, Opcode, Value};
use smallvec::SmallVec;

/// Truth-table inputs of LOP3 (document 002, LOP3): F(a, b, c) is the table with these for a, b and c.
pub const TABLE_A: u8 = 0xf0;
/// See [`TABLE_A`].
pub const TABLE_B: u8 = 0xcc;
/// See [`TABLE_A`].
pub const TABLE_C: u8 = 0xaa;

/// The tables that hand an input on: the rows of the table in which it is set.
pub(super) const INPUTS: [u8; 3] = [TABLE_A, TABLE_B, TABLE_C];

/// The truth table when two inputs, the first of them in front of the second, change places: so do the rows in which
/// only one of them is set.
fn exchanged(table: u8, first: usize, second: usize) -> u8 {
    let only_first = INPUTS[first] & !INPUTS[second];
    let only_second = INPUTS[second] & !INPUTS[first];
    let distance = (4 >> first) - (4 >> second);
    table & !(only_first | only_second)
        | (table & only_first) >> distance
        | (table & only_second) << distance
}

/// The truth table with an input complemented: the rows in which it is set and the others change places.
fn complemented(table: u8, input: usize) -> u8 {
    let (set, distance) = (INPUTS[input], 4 >> input);
    (table & set) >> distance | (table & !set) << distance
}

/// The truth table when an input is known; it does not depend on it any more.
pub(super) fn known(table: u8, input: usize, value: u8) -> u8 {
    let (set, distance) = (INPUTS[input], 4 >> input);
    match value {
        0 => table & !set | (table & !set) << distance,
        _ => table & set | (table & set) >> distance,
    }
}

/// The input that the table only hands on.
pub(super) fn only_input(table: u8) -> Option<usize> {
    INPUTS.iter().position(|&t| t == table)
}

/// Most leaves of a tree of bitwise operations that one LOP3 takes.
pub(super) const LEAVES: usize = 3;

/// How deep a tree of truths may be that is made of comparisons one behind the other (*assumed*: 2^3 comparisons that
/// each wait for the one before; a deeper one is made in parts).
pub(super) const JOINED: u32 = 3;

/// The leaves of a tree, as they are found.
pub(super) type Leaves = SmallVec<[Value; LEAVES]>;

/// A tree of bitwise operations: its leaves and its truth table over them.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    leaves: [Option<Value>; LEAVES],
    /// The table.
    pub(super) table: u8,
}

impl Lower<'_> {
    /// LOP3 of a word, and whether it is not zero, combined with another truth.
    pub(super) fn logic(
        &mut self,
        mut inputs: [Src; 3],
        mut table: u8,
        combine: EXBool,
        other: PSrc,
    ) -> GprPred {
        for (i, input) in inputs.iter_mut().enumerate() {
            if input.not {
                *input = Src {
                    not: false,
                    whole: None,
                    ..*input
                };
                table = complemented(table, i);
            }
        }
        // What may become a uniform register stands where forms have it.
        let may_be_uniform = |input: &Src| match input.base {
            Base::Value { value, .. } => self.may_be_uniform(value),
            _ => false,
        };
        let order: [&dyn Fn(&Src) -> bool; 2] = [&Src::is_special, &may_be_uniform];
        if let Some(is_wanted) = order
            .into_iter()
            .find(|is_wanted| inputs.iter().any(is_wanted))
        {
            table = to_slot_b(&mut inputs, table, is_wanted);
        }
        let [a, b, c] = inputs.map(Word::new);
        // What holds anyway is written in one way.
        let (combine, other) = match (combine, other) {
            (EXBool::Pand, PSrc::TRUE) => (EXBool::Por, PSrc::FALSE),
            as_it_is => as_it_is,
        };
        self.emit_lop3(&combine, a, b, c, table.into(), other)
    }

    /// Whether a truth is computed for one reader in this block only, and is a comparison that takes another truth as
    /// its input, or a tree by `opcode` of such up to a depth.
    pub(super) fn is_comparison_for(&mut self, value: Value, opcode: Opcode, depth: u32) -> bool {
        let Some(inst) = self.def_of(value) else {
            return false;
        };
        if !self.is_used_once(value) || self.func.layout.inst_block(inst) != self.current {
            return false;
        }
        match self.func.dfg.insts[inst] {
            InstructionData::IntCompare { .. } => true,
            InstructionData::FloatCompare { .. } => self.is_truth(value),
            InstructionData::Binary {
                opcode: own,
                args: [x, y],
            } => {
                own == opcode
                    && depth > 0
                    && self.is_comparison_for(x, opcode, depth - 1)
                    && self.is_comparison_for(y, opcode, depth - 1)
            }
            _ => false,
        }
    }

    /// What `(x >> n) & m` of words reads where only a test for any bit wants it: `x`, and the mask in its place.
    pub(super) fn bits_below_shift(&self, value: Value) -> Option<(Value, u32)> {
        let InstructionData::Binary {
            opcode: Opcode::Band,
            args: [field, mask],
        } = self.def_data(value)?
        else {
            return None;
        };
        let mask = self.constant_of(mask)? as u32;
        let InstructionData::Binary {
            opcode: Opcode::Ushr,
            args: [x, amount],
        } = self.def_data(field)?
        else {
            return None;
        };
        let amount = self.constant_of(amount)? as u32 % u32::BITS;
        // Bits of the mask that are lost met zeros that the shift brought in.
        self.is_used_once(field).then_some((x, mask << amount))
    }

    /// The tree of `band`, `bor`, `bxor`, `bnot`, `bitselect` with this root that one LOP3 makes.
    pub(super) fn tree(&mut self, root: Value) -> Option<Tree> {
        let (table, list) = match self.whole_tree(root) {
            Some(whole) => whole,
            None => self.best_cut(root)?,
        };
        let mut leaves = [None; LEAVES];
        for (leaf, value) in leaves.iter_mut().zip(list) {
            *leaf = Some(value);
        }
        Some(Tree { leaves, table })
    }

    /// The leaves of a tree as operands of the uniform datapath, an immediate or constant in slot B, and the table.
    pub(super) fn uniform_leaves(&self, tree: Tree, words: u8) -> ([Src; LEAVES], u8) {
        let nothing = Src::wide_imm(0, words);
        let mut leaves =
            (tree.leaves).map(|leaf| leaf.map_or(nothing, |value| self.uniform_src(value)));
        let is_no_register =
            |leaf: &Src| leaf.is_special() && !matches!(leaf.base, Base::Uniform { .. });
        let table = to_slot_b(&mut leaves, tree.table, &is_no_register);
        (leaves, table)
    }

    /// The leaves of a tree as operands of so many words; zeros for those it does not have.
    pub(super) fn leaves(&self, tree: Tree, words: u8) -> [Src; LEAVES] {
        let nothing = Src::wide_imm(0, words);
        tree.leaves
            .map(|leaf| leaf.map_or(nothing, |value| self.src(value)))
    }
}

/// Brings the first input that is wanted there to slot B, unless one is there. Gives the table of the new order.
fn to_slot_b(inputs: &mut [Src; LEAVES], table: u8, is_wanted: &dyn Fn(&Src) -> bool) -> u8 {
    match [0, 2].into_iter().find(|&i| is_wanted(&inputs[i])) {
        Some(from) if !is_wanted(&inputs[1]) => {
            inputs.swap(1, from);
            exchanged(table, from.min(1), from.max(1))
        }
        _ => table,
    }
}

/// Trees of bitwise operations, and LOP3.
macro_rules! logic_methods {
    () => {
        // Complements and what is known of inputs fold into the table, an immediate or constant goes to slot B.
        fn logic3(&mut self, a: NotSrc, b: NotSrc, c: NotSrc, mut table: u8) -> Gpr {
            let inputs = [a, b, c].map(|input| self.below_copies(input.src()));
            for (i, input) in inputs.iter().enumerate() {
                // Inputs of all zeros or all ones are known to the table.
                match input.as_imm() {
                    Some(0) => table = $crate::lower::logic::known(table, i, 0),
                    Some(0xffff_ffff) => table = $crate::lower::logic::known(table, i, 1),
                    _ => {}
                }
            }
            match ($crate::lower::logic::only_input(table), table) {
                (_, 0) => self.gpr(Src::ZERO).into(),
                (_, 0xff) => self.gpr(Src::imm(u32::MAX)).into(),
                (Some(input), _) if inputs[input].is_plain() => self.gpr(inputs[input]).into(),
                _ => self.logic(inputs, table, EXBool::Por, PSrc::FALSE).regs,
            }
        }
        fn logic3_test_with(
            &mut self,
            combine: &EXBool,
            a: NotSrc,
            b: NotSrc,
            c: NotSrc,
            table: u8,
            other: PSrc,
        ) -> PSrc {
            self.logic([a, b, c].map(NotSrc::src), table, *combine, other)
                .predicate
                .source()
        }
        fn joins(&mut self, op: &BoolOp, value: Value) -> bool {
            let opcode = match op {
                BoolOp::And => Opcode::Band,
                BoolOp::Or => Opcode::Bor,
                BoolOp::Xor => Opcode::Bxor,
            };
            self.is_comparison_for(value, opcode, $crate::lower::logic::JOINED)
        }
        fn tree_of(&mut self, value: Value) -> Tree {
            self.tree(value)
                .expect("an operation of two or three operands fits")
        }
        fn tree32(&mut self, tree: Tree) -> (Word, Word, Word, u8) {
            let [a, b, c] = self.leaves(tree, 1).map(Word::new);
            (a, b, c, tree.table)
        }
        fn tree64(&mut self, tree: Tree) -> (Word64, Word64, Word64, u8) {
            let [a, b, c] = self.leaves(tree, 2).map(Word64::new);
            (a, b, c, tree.table)
        }
        fn tree128(&mut self, tree: Tree) -> (Word128, Word128, Word128, u8) {
            let [a, b, c] = self.leaves(tree, 4).map(Word128::new);
            (a, b, c, tree.table)
        }
        fn logic_word(&mut self, value: Value) -> Option<(NotSrc, NotSrc, NotSrc, u8)> {
            let opcode = self.func.dfg.insts[self.def_of(value)?].opcode();
            if self.type_of(value) != I32
                || !matches!(opcode, Opcode::Band | Opcode::Bor | Opcode::Bxor)
            {
                return None;
            }
            if let Some((shifted, mask)) = self.bits_below_shift(value) {
                let inputs = [self.src(shifted), Src::imm(mask), Src::ZERO];
                let [a, b, c] = inputs.map(NotSrc::new);
                return Some((
                    a,
                    b,
                    c,
                    $crate::lower::logic::TABLE_A & $crate::lower::logic::TABLE_B,
                ));
            }
            let tree = self.tree(value)?;
            let [a, b, c] = self.leaves(tree, 1).map(NotSrc::new);
            Some((a, b, c, tree.table))
        }
    };
}
pub(super) use logic_methods;

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's function on bits, as the document defines it.
    fn apply(table: u8, [a, b, c]: [u8; 3]) -> u8 {
        table >> (a << 2 | b << 1 | c) & 1
    }

    #[test]
    fn tables_exchange_and_complement() {
        for table in 0..=255u8 {
            for bits in 0..8u8 {
                let x = [bits >> 2 & 1, bits >> 1 & 1, bits & 1];
                for (first, second) in [(0, 1), (0, 2), (1, 2)] {
                    let mut moved = x;
                    moved.swap(first, second);
                    assert_eq!(
                        apply(exchanged(table, first, second), moved),
                        apply(table, x),
                        "{table:#x} {first} {second} {x:?}"
                    );
                }
                for input in 0..3 {
                    let mut z = x;
                    z[input] = 1;
                    assert_eq!(apply(known(table, input, 1), x), apply(table, z));
                    z[input] = 0;
                    assert_eq!(apply(known(table, input, 0), x), apply(table, z));
                    let mut y = x;
                    y[input] ^= 1;
                    assert_eq!(apply(complemented(table, input), y), apply(table, x));
                }
            }
        }
    }
}
