//! Integer division and remainder up to 64 bits, without loops and exact whatever MUFU returns within its bound.
//!
//! There is no divider. A reciprocal from MUFU.RCP starts integer arithmetic that ends in exact corrections; docs/semantics.md bounds
//! the error of RCP by 1 ulp, and everything here holds for 2 ulp (2^-22 relative).
//!
//! *16 bits and less*: q = trunc((a + 1/2) * r), r being the approximate reciprocal of b, in f32. (a + 1/2) / b is at least 1/(2b) away
//! from an integer, and the error of the product is below (a + 1/2) / b * 2^-21, which is less than that as a < 2^16.
//!
//! *n = 32 or 64 bits*: let z be a lower bound of 2^n / b, E = 2^n / b − z its error. Since b·z ≤ 2^n, the product −b·z modulo 2^n is b·E
//! exactly, and z' = z + floor(z·b·E / 2^n) is again a lower bound, with error below E²·b / 2^n + 1. The first z comes from f32: the
//! reciprocal times 2^n·(1 − 10·2^-24), cut to an integer. Conversion, MUFU and multiplication are off by less than 6·2^-24, so it is
//! a lower bound, and E ≤ 2^-20·2^n / b + 1. One step (two for 64 bits) leaves E < 2, or z at least 2^n / b − 2 where b is so large that
//! the quotient is at most 2. Then floor(a·z / 2^n) is at most 2 below the quotient, and two conditional corrections make it exact.
//!
//! Signed division divides absolute values and sets the signs. Division by zero and the overflow of `sdiv` trap first.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B};
use super::source::{PSrc, Regs, Source, Src};
use crate::isa::generated::{
    CompOp, FPFtz, FPRound, FPSat, FloatFormat, IRound, IType, IntFormat, MUFUDType, MUFUOp, f2i,
    fadd, fmul, i2f, mufu,
};
use crate::isa::{Optype, Role};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{TrapCode, Type, Value};

/// f32: 2^32 · (1 − 10·2^-24), a factor that makes the reciprocal a lower bound.
const SCALE_32: u32 = 0x4f80_0000 - 10;
/// f32: 2^64 · (1 − 10·2^-24).
const SCALE_64: u32 = 0x5f80_0000 - 10;
/// f32: one half.
const HALF: u32 = 0x3f00_0000;

/// Which result of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The quotient, cut towards zero.
    Quotient,
    /// The remainder, with the sign of the dividend.
    Remainder,
}

impl Lower<'_> {
    /// `udiv`, `sdiv`, `urem`, `srem` of scalar integers up to 64 bits.
    pub(super) fn divide(
        &mut self,
        ty: Type,
        x: Value,
        y: Value,
        signed: bool,
        part: Part,
    ) -> Option<Regs> {
        if !ty.is_int() || ty.bits() > 64 {
            return None;
        }
        let (a, b) = (self.whole_words(x, signed), self.whole_words(y, signed));
        self.division_traps(ty, y, a, b, signed, part);
        let result = if signed {
            let (m, d) = (self.magnitude(a), self.magnitude(b));
            let result = Src::regs(self.divide_unsigned(ty, m, d, part));
            let top = a.words - 1;
            let sign = match part {
                Part::Quotient => Src::reg(self.logic3(
                    a.slice(top, 1),
                    b.slice(top, 1),
                    Src::ZERO,
                    TABLE_A ^ TABLE_B,
                )),
                Part::Remainder => a.slice(top, 1),
            };
            let negative = self.compare_word(CompOp::Lt, IType::S32, sign, Src::ZERO, None);
            let negated = Src::regs(self.negate_words(result));
            self.select_wide(negative, negated, result)
        } else {
            self.divide_unsigned(ty, a, b, part)
        };
        Some(result)
    }

    /// The traps of a division, as far as the divisor does not exclude them.
    fn division_traps(&mut self, ty: Type, y: Value, a: Src, b: Src, signed: bool, part: Part) {
        let divisor = self.signed_constant_of(y);
        if divisor.is_none_or(|d| d == 0) {
            let zero = self.compare_wide(IntCC::Equal, b, Src::wide_imm(0, b.words));
            self.guarded_trap(zero, TrapCode::INTEGER_DIVISION_BY_ZERO.as_raw().get());
        }
        if signed && part == Part::Quotient && divisor.is_none_or(|d| d == -1) {
            let ones = u128::MAX >> (128 - 32 * u32::from(b.words));
            let lowest = ones & (u128::MAX << (ty.bits() - 1));
            let minus_one = self.compare_wide(IntCC::Equal, b, Src::wide_imm(ones, b.words));
            let most_negative = self.compare_wide(IntCC::Equal, a, Src::wide_imm(lowest, a.words));
            let both =
                self.predicate_logic(minus_one, most_negative, PSrc::TRUE, TABLE_A & TABLE_B);
            self.guarded_trap(PSrc::new(both), TrapCode::INTEGER_OVERFLOW.as_raw().get());
        }
    }

    /// The absolute value, as an unsigned number, of one word or several.
    pub(super) fn magnitude(&mut self, x: Src) -> Src {
        if let (Some(value), 1) = (x.as_imm(), x.words) {
            return Src::imm((value as u32 as i32).unsigned_abs());
        }
        if x.words == 1 {
            let out = self.operation(Optype::IABS, 0, &[(Role::B, Source::Value(x))]);
            return out.src();
        }
        let negated = Src::regs(self.negate_words(x));
        let top = x.slice(x.words - 1, 1);
        let negative = self.compare_word(CompOp::Lt, IType::S32, top, Src::ZERO, None);
        Src::regs(self.select_wide(negative, negated, x))
    }

    fn negate_words(&mut self, x: Src) -> Regs {
        if x.words == 1 {
            return self.negate(x);
        }
        self.subtract_wide(Src::wide_imm(0, x.words), x)
    }

    fn divide_unsigned(&mut self, ty: Type, a: Src, b: Src, part: Part) -> Regs {
        match ty.bits() {
            32 => self.divide32(a, b, part),
            64 => self.divide64(a, b, part),
            _ => self.divide16(a, b, part),
        }
    }

    /// Numbers below 2^16 and divisors above zero; a magnitude of 2^15 counts as well.
    fn divide16(&mut self, a: Src, b: Src, part: Part) -> Regs {
        let reciprocal = match b.as_imm() {
            Some(divisor) => Src::imm((1.0 / divisor as f32).to_bits()),
            None => self.reciprocal(b, IntFormat::U32),
        };
        let dividend = self.f32_of(a, IntFormat::U32);
        let raised = self.operation(
            Optype::FADD,
            fadd::Options::new(FPFtz::NoFtz, FPSat::NoSat, FPRound::Rn).word(),
            &[
                (Role::A, Source::Value(dividend)),
                (Role::B, Source::Value(Src::imm(HALF))),
            ],
        );
        let ratio = self.multiply_f32(raised.src(), reciprocal);
        let quotient = self.truncate_f32(ratio, IntFormat::U32);
        if part == Part::Quotient {
            return quotient;
        }
        let product = self.multiply_add(Src::regs(quotient), b, Src::ZERO);
        Regs::one(self.add(a, Src::reg(product).negated()))
    }

    fn divide32(&mut self, a: Src, b: Src, part: Part) -> Regs {
        let reciprocal = self.reciprocal(b, IntFormat::U32);
        let scaled = self.multiply_f32(reciprocal, Src::imm(SCALE_32));
        let z = Src::regs(self.truncate_f32(scaled, IntFormat::U32));
        let minus_b = Src::regs(self.negate(b));
        let error = Src::reg(self.multiply_add(z, minus_b, Src::ZERO));
        let more = self.multiply_high(z, error, IType::U32);
        let z = Src::reg(self.add(z, Src::reg(more)));
        let quotient = Src::reg(self.multiply_high(a, z, IType::U32));
        let remainder = Src::reg(self.multiply_add(quotient, minus_b, a));
        self.correct(quotient, remainder, b, part)
    }

    fn divide64(&mut self, a: Src, b: Src, part: Part) -> Regs {
        let reciprocal = self.reciprocal(b, IntFormat::U64);
        let scaled = self.multiply_f32(reciprocal, Src::imm(SCALE_64));
        let mut z = Src::regs(self.truncate_f32(scaled, IntFormat::U64));
        let minus_b = Src::regs(self.negate_words(b));
        for _ in 0..2 {
            let error = Src::regs(self.multiply64(z, minus_b));
            let more = Src::regs(self.multiply_high64(z, error, false));
            z = Src::regs(self.add_wide(z, more));
        }
        let quotient = Src::regs(self.multiply_high64(a, z, false));
        let remainder = Src::regs(self.multiply_add64(quotient, minus_b, a));
        self.correct(quotient, remainder, b, part)
    }

    /// A quotient that is at most 2 too small, and its remainder, made exact.
    fn correct(&mut self, mut quotient: Src, mut remainder: Src, b: Src, part: Part) -> Regs {
        for _ in 0..2 {
            let short = self.compare_wide(IntCC::UnsignedGreaterThanOrEqual, remainder, b);
            let nothing = Src::wide_imm(0, quotient.words);
            quotient = Src::regs(self.add_chain(quotient, nothing, short).0);
            let less = Src::regs(self.subtract_chain(remainder, b, PSrc::TRUE).0);
            remainder = Src::regs(self.select_wide(short, less, remainder));
        }
        self.gpr(match part {
            Part::Quotient => quotient,
            Part::Remainder => remainder,
        })
    }

    /// I2F to f32, to nearest.
    fn f32_of(&mut self, x: Src, format: IntFormat) -> Src {
        self.operation(
            Optype::I2F,
            i2f::Options::new(FPRound::Rn, FloatFormat::F32, format).word(),
            &[(Role::B, Source::Value(x))],
        )
        .src()
    }

    /// MUFU.RCP of an integer.
    fn reciprocal(&mut self, x: Src, format: IntFormat) -> Src {
        let x = self.f32_of(x, format);
        self.operation(
            Optype::MUFU,
            mufu::Options::new(MUFUOp::Rcp, MUFUDType::F32).word(),
            &[(Role::B, Source::Value(x))],
        )
        .src()
    }

    fn multiply_f32(&mut self, a: Src, b: Src) -> Src {
        self.operation(
            Optype::FMUL,
            fmul::Options::new(FPFtz::NoFtz, FPSat::NoSat, FPRound::Rn).word(),
            &[(Role::A, Source::Value(a)), (Role::B, Source::Value(b))],
        )
        .src()
    }

    /// F2I, towards zero.
    fn truncate_f32(&mut self, x: Src, format: IntFormat) -> Regs {
        self.operation(
            Optype::F2I,
            f2i::Options::new(FPFtz::NoFtz, IRound::Trunc, format, FloatFormat::F32).word(),
            &[(Role::B, Source::Value(x))],
        )
        .d()
    }
}
