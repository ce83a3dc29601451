//! Products of 64 and 128 bits, low and high parts, from IMAD_WIDE and carries.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B};
use super::source::{PSrc, Regs, Source, Src};
use crate::isa::generated::{IExt, IType, imad_wide};
use crate::isa::{Optype, Role, VReg};

impl Lower<'_> {
    /// a * b + c + carry with unsigned words a, b and a 64-bit c, modulo 2^64.
    fn multiply_wide_carry(&mut self, a: Src, b: Src, c: Src, carry: PSrc) -> Regs {
        self.operation(
            Optype::IMAD_WIDE,
            imad_wide::Options::new(IExt::X, IType::U32).word(),
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::C, Source::Value(c)),
                (Role::Pp, Source::Predicate(carry)),
            ],
        )
        .d()
    }

    /// All 128 bits of the product of two unsigned 64-bit values: four wide products; what the middle ones carry goes into the last.
    pub(super) fn full_product64(&mut self, a: Src, b: Src) -> Regs {
        let nothing = Src::wide_imm(0, 2);
        let (low, _) = self.multiply_wide(IType::U32, a.low(), b.low(), nothing);
        let (middle, _) = self.multiply_wide(IType::U32, a.low(), b.high(), nothing);
        let (middle, overflow) =
            self.multiply_wide(IType::U32, a.high(), b.low(), Src::regs(middle));
        let (word1, carry) =
            self.add_carry(Src::reg(low.word(1)), Src::reg(middle.word(0)), PSrc::FALSE);
        let overflow = self.select_word(overflow, Src::imm(1), Src::ZERO);
        let addend = Src::regs(Regs::new(&[middle.word(1), overflow]));
        let high = self.multiply_wide_carry(a.high(), b.high(), addend, carry);
        Regs::new(&[low.word(0), word1, high.word(0), high.word(1)])
    }

    /// The high 64 bits of the product of two 64-bit values.
    pub(super) fn multiply_high64(&mut self, a: Src, b: Src, signed: bool) -> Regs {
        let high = self.full_product64(a, b).slice(2, 2);
        if !signed {
            return high;
        }
        // A negative factor was read 2^64 too large: take the other one off the high half.
        let high = self.subtract_if_negative(Src::regs(high), a, b);
        self.subtract_if_negative(Src::regs(high), b, a)
    }

    /// `from` − `what` where `sign` is negative.
    fn subtract_if_negative(&mut self, from: Src, sign: Src, what: Src) -> Regs {
        if let Some(value) = sign.as_imm() {
            return if value >> 63 == 0 {
                self.gpr(from)
            } else {
                self.subtract_wide(from, what)
            };
        }
        let mask = Src::reg(self.sign_word(sign.high()));
        let low = self.logic3(what.low(), mask, Src::ZERO, TABLE_A & TABLE_B);
        let high = self.logic3(what.high(), mask, Src::ZERO, TABLE_A & TABLE_B);
        self.subtract_wide(from, Src::regs(Regs::new(&[low, high])))
    }

    /// a * b + c of 64 bits: one wide product, and two words added to its high half.
    pub(super) fn multiply_add64(&mut self, a: Src, b: Src, c: Src) -> Regs {
        let (low, _) = self.multiply_wide(IType::U32, a.low(), b.low(), c);
        let mut high: VReg = low.word(1);
        if b.high().as_imm() != Some(0) {
            high = self.multiply_add(a.low(), b.high(), Src::reg(high));
        }
        if a.high().as_imm() != Some(0) {
            high = self.multiply_add(a.high(), b.low(), Src::reg(high));
        }
        Regs::new(&[low.word(0), high])
    }

    /// The low 128 bits of the product of two 128-bit values.
    pub(super) fn multiply128(&mut self, a: Src, b: Src) -> Regs {
        let [a_low, a_high] = [a.slice(0, 2), a.slice(2, 2)];
        let [b_low, b_high] = [b.slice(0, 2), b.slice(2, 2)];
        let product = self.full_product64(a_low, b_low);
        let mut high = product.slice(2, 2);
        if b_high.as_imm() != Some(0) {
            high = self.multiply_add64(a_low, b_high, Src::regs(high));
        }
        if a_high.as_imm() != Some(0) {
            high = self.multiply_add64(a_high, b_low, Src::regs(high));
        }
        product.slice(0, 2).concat(high)
    }
}
