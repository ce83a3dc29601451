//! Bitwise logic: truth tables of LOP3, and trees of CLIF operations that are one.
//!
//! Inputs that are complemented or known are worked into a table, which no pattern over instructions can do.

use super::rules::Context;
use super::source::{Base, PSrc, Src};
use super::state::Lower;
use super::tables::{LEAVES, TABLE_A, TABLE_B, Tree, complemented, exchanged, known, only_input};
use super::typed::{Gpr, GprPred, NotSrc, Operand, Word, Word64, Word128};
use crate::isa::generated::{BoolOp, EXBool};
use cranelift_codegen::ir::{InstructionData, Opcode, Value, types};

/// How deep a tree of truths may be that is made of comparisons one behind the other (*assumed*: 2^3 comparisons that
/// each wait for the one before; a deeper one is made in parts).
pub(super) const JOINED: u32 = 3;

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
impl Lower<'_> {
    /// Complements and what is known of inputs fold into the table, an immediate or constant goes to slot B.
    pub(super) fn logic3(&mut self, a: NotSrc, b: NotSrc, c: NotSrc, mut table: u8) -> Gpr {
        let inputs = [a, b, c].map(|input| self.below_copies(input.src()));
        for (i, input) in inputs.iter().enumerate() {
            // Inputs of all zeros or all ones are known to the table.
            match input.as_imm() {
                Some(0) => table = known(table, i, 0),
                Some(0xffff_ffff) => table = known(table, i, 1),
                _ => {}
            }
        }
        match (only_input(table), table) {
            (_, 0) => self.gpr(Src::ZERO).into(),
            (_, 0xff) => self.gpr(Src::imm(u32::MAX)).into(),
            (Some(input), _) if inputs[input].is_plain() => self.gpr(inputs[input]).into(),
            _ => self.logic(inputs, table, EXBool::Por, PSrc::FALSE).regs,
        }
    }

    pub(super) fn logic3_test_with(
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

    pub(super) fn joins(&mut self, op: &BoolOp, value: Value) -> bool {
        let opcode = match op {
            BoolOp::And => Opcode::Band,
            BoolOp::Or => Opcode::Bor,
            BoolOp::Xor => Opcode::Bxor,
        };
        self.is_comparison_for(value, opcode, JOINED)
    }

    pub(super) fn tree_of(&mut self, value: Value) -> Tree {
        self.tree(value)
            .expect("an operation of two or three operands fits")
    }

    pub(super) fn tree32(&mut self, tree: Tree) -> (Word, Word, Word, u8) {
        let [a, b, c] = self.leaves(tree, 1).map(Word::new);
        (a, b, c, tree.table)
    }

    pub(super) fn tree64(&mut self, tree: Tree) -> (Word64, Word64, Word64, u8) {
        let [a, b, c] = self.leaves(tree, 2).map(Word64::new);
        (a, b, c, tree.table)
    }

    pub(super) fn tree128(&mut self, tree: Tree) -> (Word128, Word128, Word128, u8) {
        let [a, b, c] = self.leaves(tree, 4).map(Word128::new);
        (a, b, c, tree.table)
    }

    pub(super) fn logic_word(&mut self, value: Value) -> Option<(NotSrc, NotSrc, NotSrc, u8)> {
        let opcode = self.func.dfg.insts[self.def_of(value)?].opcode();
        if self.type_of(value) != types::I32
            || !matches!(opcode, Opcode::Band | Opcode::Bor | Opcode::Bxor)
        {
            return None;
        }
        if let Some((shifted, mask)) = self.bits_below_shift(value) {
            let inputs = [self.src(shifted), Src::imm(mask), Src::ZERO];
            let [a, b, c] = inputs.map(NotSrc::new);
            return Some((a, b, c, TABLE_A & TABLE_B));
        }
        let tree = self.tree(value)?;
        let [a, b, c] = self.leaves(tree, 1).map(NotSrc::new);
        Some((a, b, c, tree.table))
    }
}
