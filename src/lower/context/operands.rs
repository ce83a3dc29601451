//! Operands of rules: values without modifiers, with those that their instruction applies, and what is known of them.

/// Operands.
macro_rules! operand_methods {
    () => {
        fn word(&mut self, value: Value) -> Word {
            Word::new(self.src(value))
        }
        fn word64(&mut self, value: Value) -> Word64 {
            Word64::new(self.src(value))
        }
        fn word128(&mut self, value: Value) -> Word128 {
            Word128::new(self.src(value))
        }
        fn any_src(&mut self, value: Value) -> Src {
            self.src(value)
        }
        fn first_word(&mut self, value: Value) -> Word {
            Word::new(self.src(value).low())
        }
        fn nth_word(&mut self, x: Value, word: u32) -> Word {
            Word::new(self.src(x).slice(word as u8, 1))
        }
        fn nth_pair(&mut self, x: Value, word: u32) -> Word64 {
            Word64::new(self.src(x).slice(word as u8, 2))
        }
        fn integer(&mut self, value: Value) -> ISrc {
            ISrc::new(self.int_src(value))
        }
        fn single_src(&mut self, value: Value) -> FSrc {
            FSrc::new(self.float_src(value))
        }
        fn double_src(&mut self, value: Value) -> DSrc {
            DSrc::new(self.float_src(value))
        }
        fn halves(&mut self, value: Value) -> HSrc {
            HSrc::new(self.half_src(value))
        }

        // Immediates and predicates.

        fn imm(&mut self, value: u32) -> Word {
            Word::imm(value)
        }
        fn imm64(&mut self, value: u64) -> Word64 {
            Word64::new(Src::wide_imm(value.into(), 2))
        }
        fn zero(&mut self) -> Word {
            Word::imm(0)
        }
        fn zero128(&mut self) -> Word128 {
            Word128::new(Src::wide_imm(0, 4))
        }
        fn always(&mut self) -> PSrc {
            PSrc::TRUE
        }
        fn never(&mut self) -> PSrc {
            PSrc::FALSE
        }
        fn not(&mut self, p: PSrc) -> PSrc {
            p.negate()
        }

        // Parts, and what may carry modifiers.

        fn low(&mut self, x: Word64) -> Word {
            Word::new(x.src().low())
        }
        fn high(&mut self, x: Word64) -> Word {
            Word::new(x.src().high())
        }
        fn low64(&mut self, x: Word128) -> Word64 {
            Word64::new(x.src().slice(0, 2))
        }
        fn high64(&mut self, x: Word128) -> Word64 {
            Word64::new(x.src().slice(2, 2))
        }
        fn plain_int(&mut self, x: Word) -> ISrc {
            x.into()
        }
        fn plain_int64(&mut self, x: Word64) -> ISrc64 {
            x.into()
        }
        fn plain_not(&mut self, x: Word) -> NotSrc {
            x.into()
        }
        fn plain_not64(&mut self, x: Word64) -> NotSrc64 {
            x.into()
        }
        fn plain_single(&mut self, x: Word) -> FSrc {
            x.into()
        }
        fn plain_double(&mut self, x: Word64) -> DSrc {
            x.into()
        }
        fn plain_halves(&mut self, x: Word) -> HSrc {
            x.into()
        }
        fn low_half(&mut self, x: Word) -> HalfSrc {
            x.into()
        }
        fn any_word(&mut self, x: Word) -> Src {
            x.src()
        }
        fn any_word64(&mut self, x: Word64) -> Src {
            x.src()
        }
        fn minus(&mut self, x: ISrc) -> ISrc {
            ISrc::new(x.src().negated())
        }
        fn complement(&mut self, x: NotSrc) -> NotSrc {
            NotSrc::new(x.src().complemented())
        }
        fn minus_single(&mut self, x: FSrc) -> FSrc {
            FSrc::new(x.src().negated())
        }
        fn abs_single(&mut self, x: FSrc) -> FSrc {
            FSrc::new(x.src().absolute())
        }
        fn minus_double(&mut self, x: DSrc) -> DSrc {
            DSrc::new(x.src().negated())
        }
        fn abs_double(&mut self, x: DSrc) -> DSrc {
            DSrc::new(x.src().absolute())
        }
        fn minus_halves(&mut self, x: HSrc) -> HSrc {
            HSrc::new(x.src().negated())
        }

        // What is known of operands.

        fn immediate(&mut self, x: Word) -> Option<u32> {
            self.below_copies(x.src()).as_imm().map(|n| n as u32)
        }
        fn immediate64(&mut self, x: Word64) -> Option<u64> {
            self.below_copies(x.src()).as_imm().map(|n| n as u64)
        }
        fn immediate128(&mut self, x: Word128) -> Option<u128> {
            self.below_copies(x.src()).as_imm()
        }
        fn zero_above(&mut self, x: Word64) -> Option<Word> {
            let high = self.below_copies(x.src().high());
            (high.as_imm() == Some(0)).then(|| Word::new(x.src().low()))
        }
        fn in_register(&mut self, x: Word) -> bool {
            match self.below_copies(x.src()).base {
                Base::Imm(value) => value == 0,
                Base::Constant { .. } | Base::Uniform { .. } => false,
                Base::Value { .. } | Base::Regs(_) => true,
            }
        }
        fn same_word(&mut self, a: Word, b: Word) -> bool {
            a == b
        }
        fn no_register(&mut self, value: Value) -> Option<()> {
            let src = self.below_copies(self.src(value));
            matches!(src.base, Base::Imm(_) | Base::Constant { .. }).then_some(())
        }
    };
}
pub(super) use operand_methods;
