//! Sums, differences and products that say whether they overflowed, with and without carry in.
//!
//! Below 32 bits the exact result is computed in a word and compared with its own extension. From 32 bits on, the unsigned overflow
//! is the carry of the chain, the signed one the sign of a function of the top words. The carry of a difference is read from
//! `a + ~b + 1`, never from a negated operand.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B, TABLE_C};
use super::source::{InstOutput, Output, PSrc, Regs, Src};
use crate::isa::VReg;
use crate::isa::generated::{CompOp, IType};
use cranelift_codegen::ir::{Type, Value};
use smallvec::SmallVec;

impl Lower<'_> {
    /// A value extended to whole words.
    pub(super) fn whole_words(&mut self, x: Value, signed: bool) -> Src {
        if signed {
            self.sign_extended(x)
        } else {
            self.zero_extended(x)
        }
    }

    /// Whether a word is not the extension of its own low bits.
    fn exceeds(&mut self, word: VReg, bits: u32, signed: bool) -> PSrc {
        let word = Src::reg(word);
        if signed {
            let extended = Src::reg(self.sign_extend_word(word, bits));
            self.compare_word(CompOp::Ne, IType::U32, extended, word, None)
        } else {
            let above = Src::imm(u32::MAX << bits);
            self.logic3_test(word, above, Src::ZERO, TABLE_A & TABLE_B)
        }
    }

    /// x + y + carry, and whether it overflowed.
    pub(super) fn add_overflowing(
        &mut self,
        ty: Type,
        x: Value,
        y: Value,
        carry: PSrc,
        signed: bool,
    ) -> (Regs, PSrc) {
        let (a, b) = (self.whole_words(x, signed), self.whole_words(y, signed));
        let (sum, carry) = self.add_chain(a, b, carry);
        let overflow = if ty.bits() < 32 {
            self.exceeds(sum.word(0), ty.bits(), signed)
        } else if signed {
            // Equal signs went in, another came out.
            self.top_sign(a, b, sum, (TABLE_A ^ TABLE_C) & (TABLE_B ^ TABLE_C))
        } else {
            carry
        };
        (sum, overflow)
    }

    /// x − y − borrow, and whether it overflowed.
    pub(super) fn subtract_overflowing(
        &mut self,
        ty: Type,
        x: Value,
        y: Value,
        borrow: PSrc,
        signed: bool,
    ) -> (Regs, PSrc) {
        let (a, b) = (self.whole_words(x, signed), self.whole_words(y, signed));
        let (difference, carry) = self.subtract_chain(a, b, borrow.negate());
        let overflow = if ty.bits() < 32 {
            self.exceeds(difference.word(0), ty.bits(), signed)
        } else if signed {
            // Different signs went in, and not the first one's came out.
            self.top_sign(a, b, difference, (TABLE_A ^ TABLE_B) & (TABLE_A ^ TABLE_C))
        } else {
            carry.negate()
        };
        (difference, overflow)
    }

    /// The sign of a bitwise function of the top words.
    fn top_sign(&mut self, a: Src, b: Src, c: Regs, table: u8) -> PSrc {
        let top = a.words - 1;
        let c = Src::reg(c.word(top as usize));
        let signs = self.logic3(a.slice(top, 1), b.slice(top, 1), c, table);
        self.compare_word(CompOp::Lt, IType::S32, Src::reg(signs), Src::ZERO, None)
    }

    /// x * y, and whether it overflowed; up to 64 bits.
    pub(super) fn multiply_overflowing(
        &mut self,
        ty: Type,
        x: Value,
        y: Value,
        signed: bool,
    ) -> (Regs, PSrc) {
        let (a, b) = (self.whole_words(x, signed), self.whole_words(y, signed));
        match ty.bits() {
            bits @ (8 | 16) => {
                let product = self.multiply_add(a, b, Src::ZERO);
                (Regs::one(product), self.exceeds(product, bits, signed))
            }
            32 => {
                let itype = if signed { IType::S32 } else { IType::U32 };
                let (product, _) = self.multiply_wide(itype, a, b, Src::wide_imm(0, 2));
                let (low, high) = (Src::reg(product.word(0)), Src::reg(product.word(1)));
                let expected = if signed {
                    Src::reg(self.sign_word(low))
                } else {
                    Src::ZERO
                };
                let overflow = self.compare_word(CompOp::Ne, IType::U32, high, expected, None);
                (product.slice(0, 1), overflow)
            }
            _ => {
                let product = self.full_product64(a, b);
                let low = product.slice(0, 2);
                let overflow = if signed {
                    let high = self.multiply_high64(a, b, true);
                    let sign = Src::reg(self.sign_word(Src::reg(low.word(1))));
                    self.logic3_test(
                        Src::reg(high.word(0)),
                        Src::reg(high.word(1)),
                        sign,
                        (TABLE_A ^ TABLE_C) | (TABLE_B ^ TABLE_C),
                    )
                } else {
                    self.logic3_test(
                        Src::reg(product.word(2)),
                        Src::reg(product.word(3)),
                        Src::ZERO,
                        TABLE_A | TABLE_B,
                    )
                };
                (low, overflow)
            }
        }
    }

    /// The two results of an operation that may overflow.
    pub(super) fn with_overflow((result, overflow): (Regs, PSrc)) -> InstOutput {
        SmallVec::from_slice(&[Output::Regs(result), Output::Predicate(overflow)])
    }
}
