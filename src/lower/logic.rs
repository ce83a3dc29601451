//! Bitwise logic: LOP3 and its truth tables.
//!
//! Inputs that are complemented or known are worked into a table, which no pattern over instructions can do.

use super::rules::Context;
use super::source::{Base, PSrc, Src};
use super::state::Lower;
use super::typed::{Gpr, GprPred, NotSrc, Operand, Word, Word64, Word128};
use crate::isa::generated::{BoolOp, EXBool};
use crate::isa::truth_table::{
    INPUTS, complemented, composed, depends_on, exchanged, known, only_input,
};
use cranelift_codegen::ir::{InstructionData, Opcode, Value, types};

/// How deep a tree of truths may be that is made of comparisons one behind the other (*assumed*: 2^3 comparisons that
/// each wait for the one before; a deeper one is made in parts).
pub(super) const JOINED: u32 = 3;

/// A function of three values of one type, bit by bit.
#[derive(Clone, Copy, Debug)]
pub struct Logic {
    /// The inputs that make a difference.
    inputs: [Option<Value>; 3],
    /// The truth table.
    table: u8,
}

impl Logic {
    /// Its inputs as operands, zeros for those that make no difference.
    fn sources(self, words: u8, source: impl Fn(Value) -> Src) -> [Src; 3] {
        self.inputs
            .map(|input| input.map_or(Src::wide_imm(0, words), &source))
    }
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

    /// The inputs as operands of the uniform datapath, an immediate or constant in slot B, and the table.
    pub(super) fn uniform_inputs(&self, logic: Logic, words: u8) -> ([Src; 3], u8) {
        let mut inputs = logic.sources(words, |value| self.uniform_src(value));
        let is_no_register =
            |input: &Src| input.is_special() && !matches!(input.base, Base::Uniform { .. });
        let table = to_slot_b(&mut inputs, logic.table, &is_no_register);
        (inputs, table)
    }
}

/// Brings the first input that is wanted there to slot B, unless one is there. Gives the table of the new order.
fn to_slot_b(inputs: &mut [Src; 3], table: u8, is_wanted: &dyn Fn(&Src) -> bool) -> u8 {
    match [0, 2].into_iter().find(|&i| is_wanted(&inputs[i])) {
        Some(from) if !is_wanted(&inputs[1]) => {
            inputs.swap(1, from);
            exchanged(table, from.min(1), from.max(1))
        }
        _ => table,
    }
}

/// What the rules call.
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

    pub(super) fn function_of(&mut self, a: Value, b: Value, c: Value, table: u8) -> Logic {
        // An input that is there twice is read once; those behind it come forward.
        let mut inputs = [None; 3];
        let places = [a, b, c].map(|value| {
            let place = inputs.iter().position(|&i| i.is_none() || i == Some(value));
            let place = place.unwrap_or(0);
            inputs[place] = Some(value);
            INPUTS[place]
        });
        let table = composed(table, places);
        for (i, input) in inputs.iter_mut().enumerate() {
            *input = input.filter(|_| depends_on(table, i));
        }
        Logic { inputs, table }
    }

    pub(super) fn inputs32(&mut self, logic: Logic) -> (Word, Word, Word, u8) {
        let [a, b, c] = logic.sources(1, |value| self.src(value)).map(Word::new);
        (a, b, c, logic.table)
    }

    pub(super) fn inputs64(&mut self, logic: Logic) -> (Word64, Word64, Word64, u8) {
        let [a, b, c] = logic.sources(2, |value| self.src(value)).map(Word64::new);
        (a, b, c, logic.table)
    }

    pub(super) fn inputs128(&mut self, logic: Logic) -> (Word128, Word128, Word128, u8) {
        let [a, b, c] = logic.sources(4, |value| self.src(value)).map(Word128::new);
        (a, b, c, logic.table)
    }

    /// What an i32 is as a function of three words, if it is one.
    pub(super) fn logic_word(&mut self, value: Value) -> Option<(NotSrc, NotSrc, NotSrc, u8)> {
        if self.type_of(value) != types::I32 {
            return None;
        }
        let [a, b, _] = INPUTS;
        if let Some((shifted, mask)) = self.bits_below_shift(value) {
            let [x, mask, zero] = [self.src(shifted), Src::imm(mask), Src::ZERO].map(NotSrc::new);
            return Some((x, mask, zero, a & b));
        }
        let inst = self.def_of(value)?;
        let (inputs, table) = match self.func.dfg.insts[inst] {
            InstructionData::Binary {
                opcode,
                args: [x, y],
            } => {
                let table = match opcode {
                    Opcode::Band => a & b,
                    Opcode::Bor => a | b,
                    Opcode::Bxor => a ^ b,
                    _ => return None,
                };
                ([x, y, x], table)
            }
            _ => self.input.facts.intrinsics.logic(self.func, inst)?,
        };
        let [x, y, z] = inputs;
        let logic = self.function_of(x, y, z, table);
        let [x, y, z] = logic.sources(1, |value| self.src(value)).map(NotSrc::new);
        Some((x, y, z, logic.table))
    }
}
