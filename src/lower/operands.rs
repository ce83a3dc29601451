//! Operands of rules: values without modifiers, with those that their instruction applies, and what is known of them.

use super::source::{Base, PSrc, Src};
use super::state::Lower;
use super::typed::{
    DSrc, FSrc, HSrc, HalfSrc, ISrc, ISrc64, NotSrc, NotSrc64, Operand, Word, Word64, Word128,
};
use cranelift_codegen::ir::Value;

/// Operands.
impl Lower<'_> {
    pub(super) fn word(&mut self, value: Value) -> Word {
        Word::new(self.src(value))
    }

    pub(super) fn word64(&mut self, value: Value) -> Word64 {
        Word64::new(self.src(value))
    }

    pub(super) fn word128(&mut self, value: Value) -> Word128 {
        Word128::new(self.src(value))
    }

    pub(super) fn any_src(&mut self, value: Value) -> Src {
        self.src(value)
    }

    pub(super) fn first_word(&mut self, value: Value) -> Word {
        Word::new(self.src(value).low())
    }

    pub(super) fn nth_word(&mut self, x: Value, word: u32) -> Word {
        Word::new(self.src(x).slice(word as u8, 1))
    }

    pub(super) fn nth_pair(&mut self, x: Value, word: u32) -> Word64 {
        Word64::new(self.src(x).slice(word as u8, 2))
    }

    pub(super) fn integer(&mut self, value: Value) -> ISrc {
        ISrc::new(self.int_src(value))
    }

    pub(super) fn single_src(&mut self, value: Value) -> FSrc {
        FSrc::new(self.float_src(value))
    }

    pub(super) fn double_src(&mut self, value: Value) -> DSrc {
        DSrc::new(self.float_src(value))
    }

    pub(super) fn halves(&mut self, value: Value) -> HSrc {
        HSrc::new(self.half_src(value))
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

    // Parts, and what may carry modifiers.

    pub(super) fn low(&mut self, x: Word64) -> Word {
        Word::new(x.src().low())
    }

    pub(super) fn high(&mut self, x: Word64) -> Word {
        Word::new(x.src().high())
    }

    pub(super) fn low64(&mut self, x: Word128) -> Word64 {
        Word64::new(x.src().slice(0, 2))
    }

    pub(super) fn high64(&mut self, x: Word128) -> Word64 {
        Word64::new(x.src().slice(2, 2))
    }

    pub(super) fn plain_int(&mut self, x: Word) -> ISrc {
        x.into()
    }

    pub(super) fn plain_int64(&mut self, x: Word64) -> ISrc64 {
        x.into()
    }

    pub(super) fn plain_not(&mut self, x: Word) -> NotSrc {
        x.into()
    }

    pub(super) fn plain_not64(&mut self, x: Word64) -> NotSrc64 {
        x.into()
    }

    pub(super) fn plain_single(&mut self, x: Word) -> FSrc {
        x.into()
    }

    pub(super) fn plain_double(&mut self, x: Word64) -> DSrc {
        x.into()
    }

    pub(super) fn plain_halves(&mut self, x: Word) -> HSrc {
        x.into()
    }

    pub(super) fn low_half(&mut self, x: Word) -> HalfSrc {
        x.into()
    }

    pub(super) fn any_word(&mut self, x: Word) -> Src {
        x.src()
    }

    pub(super) fn any_word64(&mut self, x: Word64) -> Src {
        x.src()
    }

    pub(super) fn minus(&mut self, x: ISrc) -> ISrc {
        ISrc::new(x.src().negated())
    }

    pub(super) fn complement(&mut self, x: NotSrc) -> NotSrc {
        NotSrc::new(x.src().complemented())
    }

    pub(super) fn minus_single(&mut self, x: FSrc) -> FSrc {
        FSrc::new(x.src().negated())
    }

    pub(super) fn abs_single(&mut self, x: FSrc) -> FSrc {
        FSrc::new(x.src().absolute())
    }

    pub(super) fn minus_double(&mut self, x: DSrc) -> DSrc {
        DSrc::new(x.src().negated())
    }

    pub(super) fn abs_double(&mut self, x: DSrc) -> DSrc {
        DSrc::new(x.src().absolute())
    }

    pub(super) fn minus_halves(&mut self, x: HSrc) -> HSrc {
        HSrc::new(x.src().negated())
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
        match self.below_copies(x.src()).base {
            Base::Imm(value) => value == 0,
            Base::Constant { .. } | Base::Uniform { .. } => false,
            Base::Value { .. } | Base::Regs(_) => true,
        }
    }

    pub(super) fn same_word(&mut self, a: Word, b: Word) -> bool {
        a == b
    }

    pub(super) fn no_register(&mut self, value: Value) -> Option<()> {
        let src = self.below_copies(self.src(value));
        matches!(src.base, Base::Imm(_) | Base::Constant { .. }).then_some(())
    }
}
