//! Operands of rules: parts of values, immediates and predicates, and what is known of operands.

use super::source::{Base, PSrc, Src};
use super::state::Lower;
use super::typed::{Operand, Word, Word64, Word128};
use cranelift_codegen::ir::Value;

/// Operands.
impl Lower<'_> {
    pub(super) fn first_word(&mut self, value: Value) -> Word {
        Word::new(self.src(value).low())
    }

    pub(super) fn nth_word(&mut self, x: Value, word: u32) -> Word {
        Word::new(self.src(x).slice(word as u8, 1))
    }

    pub(super) fn nth_pair(&mut self, x: Value, word: u32) -> Word64 {
        Word64::new(self.src(x).slice(word as u8, 2))
    }

    // Immediates and predicates.

    pub(super) fn imm(&mut self, value: u32) -> Word {
        Word::imm(value)
    }

    pub(super) fn imm64(&mut self, value: u64) -> Word64 {
        Word64::new(Src::wide_imm(value.into(), 2))
    }

    pub(super) fn zero(&mut self) -> Word {
        Word::imm(0)
    }

    pub(super) fn zero128(&mut self) -> Word128 {
        Word128::new(Src::wide_imm(0, 4))
    }

    pub(super) fn always(&mut self) -> PSrc {
        PSrc::TRUE
    }

    pub(super) fn never(&mut self) -> PSrc {
        PSrc::FALSE
    }

    pub(super) fn not(&mut self, p: PSrc) -> PSrc {
        p.negate()
    }

    // What is known of operands.

    pub(super) fn immediate(&mut self, x: Word) -> Option<u32> {
        self.below_copies(x.src()).as_imm().map(|n| n as u32)
    }

    pub(super) fn immediate64(&mut self, x: Word64) -> Option<u64> {
        self.below_copies(x.src()).as_imm().map(|n| n as u64)
    }

    pub(super) fn immediate128(&mut self, x: Word128) -> Option<u128> {
        self.below_copies(x.src()).as_imm()
    }

    pub(super) fn zero_above(&mut self, x: Word64) -> Option<Word> {
        let high = self.below_copies(x.src().high());
        (high.as_imm() == Some(0)).then(|| Word::new(x.src().low()))
    }

    pub(super) fn in_register(&mut self, x: Word) -> bool {
        !self.below_copies(x.src()).is_special()
    }

    pub(super) fn same_word(&mut self, a: Word, b: Word) -> bool {
        a == b
    }

    pub(super) fn no_register(&mut self, value: Value) -> Option<()> {
        let src = self.below_copies(self.src(value));
        matches!(src.base, Base::Imm(_) | Base::Constant { .. }).then_some(())
    }
}
