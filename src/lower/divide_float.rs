//! Division and square root, correctly rounded.
//!
//! MUFU gives a first approximation with a known bound on its error and nothing else is assumed of it (docs/semantics.md; 2^-19 relative
//! for the high word of a double with its argument cut to 21 bits, 2^-22 for f32). Fused multiply-adds give exact remainders, which
//! correct it:
//!
//! - f16 by way of f32 and f32 by way of f64: a quotient or root of p bits that is correct in 2p + 2 bits rounds to the right number of p bits
//!   (Figueroa, *When is double rounding innocuous?*, 1995). Two corrections by the remainder get there: the error falls from 2^-19 to
//!   2^-38 to 2^-57 before the last rounding to 53 bits. The wider format also takes in all exponents, subnormals included.
//! - f64 on significands in [1, 4) with the exponents apart. The candidate is within one unit in the last place; its exact remainder, compared
//!   with half a unit times the divisor, tells on which side of which midpoint the true value lies. For the quotient this goes, as two bits below
//!   the significand, into the one rounding to nearest even that also serves subnormal results.
//!
//! Zeros, infinities and NaN come from the product with the approximation itself, which has the right special values.

use super::Lower;
use super::source::{PSrc, Regs, Source, Src};
use crate::isa::generated::{
    CWMode, CompOp, FCMPOp, FPFtz, FPRound, FPSat, FloatFormat, IType, LOHI, MUFUDType, MUFUOp,
    SHFDType, SHFDir, f2f,
};
use crate::isa::{Optype, Role, VReg};
use cranelift_codegen::ir::Value;
use cranelift_codegen::ir::condcodes::IntCC;

/// Truth table of a & b | c.
const AND_OR: u8 = 0xf0 & 0xcc | 0xaa;
/// Truth table of (a ^ b) & c.
const XOR_AND: u8 = (0xf0 ^ 0xcc) & 0xaa;
/// Truth table of a | b.
const OR: u8 = 0xf0 | 0xcc;
/// Truth table of a & b.
const AND: u8 = 0xf0 & 0xcc;

/// High word of 1.0.
const ONE: u32 = 0x3ff0_0000;
/// One step of the exponent in the high word.
const EXPONENT_STEP: u32 = 1 << 20;
/// The exponent in the high word.
const EXPONENT: u32 = 0x7ff0_0000;
/// The fraction in the high word.
const FRACTION: u32 = 0x000f_ffff;
/// Power of two by which subnormal doubles are multiplied; even, so that its root is a power of two.
const SCALE: u32 = 54;
/// High word of a quiet NaN.
const QUIET: u32 = 0x7ff8_0000;

impl Lower<'_> {
    /// F2F.
    pub(super) fn change_format(&mut self, to: FloatFormat, from: FloatFormat, src: Src) -> Regs {
        let options = f2f::Options::new(FPFtz::NoFtz, FPSat::NoSat, FPRound::Rn, to, from).word();
        self.operation(Optype::F2F, options, &[(Role::B, Source::Value(src))])
            .d()
    }

    /// `fdiv.f32`.
    pub(super) fn divide_single(&mut self, x: Value, y: Value) -> Regs {
        let (x, y) = (self.float_src(x), self.float_src(y));
        let x = Src::regs(self.change_format(FloatFormat::F64, FloatFormat::F32, x));
        let y = Src::regs(self.change_format(FloatFormat::F64, FloatFormat::F32, y));
        let r = self.approximate(MUFUOp::Rcp, y);
        let first = self.multiply_double(x, r);
        let mut q = first;
        for _ in 0..2 {
            let remainder = self.fused_double(y.negated(), q, x);
            q = self.fused_double(remainder, r, q);
        }
        // Zero, whose sign the corrections lose, and NaN, which they make of infinities.
        let q = self.unless_special_double(q, first);
        self.change_format(FloatFormat::F32, FloatFormat::F64, q)
    }

    /// `sqrt.f32`.
    pub(super) fn root_single(&mut self, x: Value) -> Regs {
        let x = self.src(x);
        let wide = Src::regs(self.change_format(FloatFormat::F64, FloatFormat::F32, x));
        let r = self.approximate(MUFUOp::Rsq, wide);
        let root = self.refined_root(wide, r);
        let root = Src::regs(self.change_format(FloatFormat::F32, FloatFormat::F64, root));
        let keeps = self.is_own_root(x);
        Regs::one(self.select_word(keeps, x, root))
    }

    /// x where it is zero or +infinity, which are their own roots (f32).
    fn is_own_root(&mut self, x: Src) -> PSrc {
        let zero = self.single_test(FCMPOp::Eq, x, Src::ZERO);
        self.single_test_or(FCMPOp::Eq, x, Src::imm(f32::INFINITY.to_bits()), zero)
    }

    /// `fdiv.f16` of operands of conversions.
    pub(super) fn half_quotient(&mut self, x: Src, y: Src) -> VReg {
        let q = self.half_quotient_wide(x, y);
        self.change_format(FloatFormat::F16, FloatFormat::F32, q)
            .word(0)
    }

    /// `fdiv.f16x2`.
    pub(super) fn divide_halves(&mut self, x: Value, y: Value) -> Regs {
        let ([x0, x1], [y0, y1]) = (self.both_halves(x), self.both_halves(y));
        let low = self.half_quotient_wide(x0, y0);
        let high = self.half_quotient_wide(x1, y1);
        self.pack_halves(low, high)
    }

    /// The quotient of two f16 as f32.
    fn half_quotient_wide(&mut self, x: Src, y: Src) -> Src {
        let x = Src::regs(self.change_format(FloatFormat::F32, FloatFormat::F16, x));
        let y = Src::regs(self.change_format(FloatFormat::F32, FloatFormat::F16, y));
        let r = Src::regs(self.mufu(MUFUOp::Rcp, MUFUDType::F32, y));
        let first = self.multiply_single(x, r);
        let remainder = self.fused_single(y.negated(), first, x);
        let q = self.fused_single(remainder, r, first);
        let good = self.single_test(FCMPOp::Gt, absolute(q), Src::ZERO);
        Src::reg(self.select_word(good, q, first))
    }

    /// `sqrt.f16` of an operand of a conversion.
    pub(super) fn half_root(&mut self, x: Src) -> VReg {
        let root = self.half_root_wide(x);
        self.change_format(FloatFormat::F16, FloatFormat::F32, root)
            .word(0)
    }

    /// `sqrt.f16x2`.
    pub(super) fn root_halves(&mut self, x: Value) -> Regs {
        let [low, high] = self.both_halves(x).map(|half| self.half_root_wide(half));
        self.pack_halves(low, high)
    }

    /// The root of an f16 as f32.
    fn half_root_wide(&mut self, x: Src) -> Src {
        let x = Src::regs(self.change_format(FloatFormat::F32, FloatFormat::F16, x));
        let r = Src::regs(self.mufu(MUFUOp::Rsq, MUFUDType::F32, x));
        let half = self.multiply_single(r, Src::imm(0.5f32.to_bits()));
        let first = self.multiply_single(x, r);
        let remainder = self.fused_single(first.negated(), first, x);
        let root = self.fused_single(remainder, half, first);
        let keeps = self.is_own_root(x);
        Src::reg(self.select_word(keeps, x, root))
    }

    /// MUFU.F64 of the high word, as a double with a zero low word.
    fn approximate(&mut self, function: MUFUOp, x: Src) -> Src {
        let high = self.mufu(function, MUFUDType::F64, x.high());
        Src::regs(Regs::new(&[self.immediate(0), high.word(0)]))
    }

    /// `q` where it is a number other than zero, else `first`.
    fn unless_special_double(&mut self, q: Src, first: Src) -> Src {
        let good = self.double_test(FCMPOp::Gt, absolute(q), Src::wide_imm(0, 2));
        Src::regs(self.select_wide(good, q, first))
    }

    /// The root of x in f64 from its reciprocal root, to one unit in the last place.
    fn refined_root(&mut self, x: Src, r: Src) -> Src {
        let half = self.multiply_double(r, double(0.5));
        let mut root = self.multiply_double(x, r);
        for _ in 0..2 {
            let remainder = self.fused_double(root.negated(), root, x);
            root = self.fused_double(remainder, half, root);
        }
        root
    }

    /// A double multiplied by 2^54 when it is subnormal; its biased exponent field; and whether it was multiplied.
    fn normalize(&mut self, x: Src) -> (Src, Src, PSrc) {
        let normal = self.logic3_test(x.high(), Src::imm(EXPONENT), Src::ZERO, AND);
        let scale = self.select_word(normal, Src::imm(ONE), Src::imm(ONE + SCALE * EXPONENT_STEP));
        let scale = Src::regs(Regs::new(&[self.immediate(0), scale]));
        let scaled = self.multiply_double(x, scale);
        let shifted = self.shift_right(scaled.high(), Src::imm(20), false, false);
        let field = self.logic3(Src::reg(shifted), Src::imm(0x7ff), Src::ZERO, AND);
        (scaled, Src::reg(field), normal.negate())
    }

    /// The significand of a normal double as a number in [1, 2).
    fn significand(&mut self, x: Src) -> Src {
        let one = Src::regs(self.gpr(Src::imm(ONE)));
        let high = self.logic3(x.high(), Src::imm(FRACTION), one, AND_OR);
        join(self, x.low(), high)
    }

    /// `fdiv.f64`.
    pub(super) fn divide_double(&mut self, x: Value, y: Value) -> Regs {
        let (x, y) = (self.src(x), self.src(y));
        let (xs, x_exponent, x_scaled) = self.normalize(x);
        let (ys, y_exponent, y_scaled) = self.normalize(y);

        // Significands with the quotient in [1, 2), and its biased exponent.
        let divisor = self.significand(ys);
        let dividend = self.significand(xs);
        let less = self.double_test(FCMPOp::Lt, dividend, divisor);
        let step = self.select_word(less, Src::imm(EXPONENT_STEP), Src::ZERO);
        let high = self.add(dividend.high(), Src::reg(step));
        let dividend = join(self, dividend.low(), high);
        let mut exponent = self.add(x_exponent, y_exponent.negated());
        for (scaled, amount) in [(x_scaled, SCALE.wrapping_neg()), (y_scaled, SCALE)] {
            let amount = self.select_word(scaled, Src::imm(amount), Src::ZERO);
            exponent = self.add(Src::reg(exponent), Src::reg(amount));
        }
        let bias = self.select_word(less, Src::imm(1022), Src::imm(1023));
        let exponent = Src::reg(self.add(Src::reg(exponent), Src::reg(bias)));

        // The candidate: a reciprocal by Newton's method, the quotient, one correction.
        let mut r = self.approximate(MUFUOp::Rcp, divisor);
        for _ in 0..2 {
            let error = self.fused_double(divisor.negated(), r, double(1.0));
            r = self.fused_double(r, error, r);
        }
        let q = self.multiply_double(dividend, r);
        let remainder = self.fused_double(divisor.negated(), q, dividend);
        let q = self.fused_double(remainder, r, q);
        let remainder = self.fused_double(divisor.negated(), q, dividend);

        let wide = self.quarters(q, remainder, divisor);
        let rounded = self.round_quarters(wide, exponent);

        // Overflow and sign.
        let over = self.compare_word(CompOp::Ge, IType::S32, exponent, Src::imm(2047), None);
        let infinite = self.select_word(over, Src::imm(EXPONENT), rounded.high());
        let low = self.select_word(over, Src::ZERO, rounded.low());
        let minus = Src::regs(self.gpr(Src::imm(1 << 31)));
        let sign = self.logic3(x.high(), y.high(), minus, XOR_AND);
        let high = self.logic3(Src::reg(infinite), Src::reg(sign), Src::ZERO, OR);
        let quotient = Src::regs(Regs::new(&[low, high]));

        // Zero, infinity and NaN among the operands: exponent fields 0 and 2047.
        let minus_one = Src::imm(u32::MAX);
        let a = self.add(x_exponent, minus_one);
        let b = self.add(y_exponent, minus_one);
        let larger = self.min_max(Src::reg(a), Src::reg(b), IType::U32, false);
        let numbers = self.compare_word(
            CompOp::Lt,
            IType::U32,
            Src::reg(larger),
            Src::imm(2046),
            None,
        );
        let special = self.approximate(MUFUOp::Rcp, ys);
        let special = self.multiply_double(xs, special);
        self.select_wide(numbers, quotient, special)
    }

    /// Four times the significand of the candidate quotient, moved by what the remainder says: by one quarter towards the true quotient, by three
    /// where that is beyond the midpoint.
    fn quarters(&mut self, q: Src, remainder: Src, divisor: Src) -> Src {
        // As integers, 1.0 becomes 2^52 and 2.0 2^53.
        let high = self.add(q.high(), Src::imm((ONE - EXPONENT_STEP).wrapping_neg()));
        let significand = join(self, q.low(), high);
        let low = self.word_shift(SHFDir::L, LOHI::Lo, significand, Src::imm(2));
        let high = self.word_shift(SHFDir::L, LOHI::Hi, significand, Src::imm(2));
        let wide = Src::regs(Regs::new(&[low, high]));

        // Half a unit (2^-53) times the divisor, by its exponent.
        let half = self.add(
            divisor.high(),
            Src::imm((53 * EXPONENT_STEP).wrapping_neg()),
        );
        let half = join(self, divisor.low(), half);
        let beyond = self.double_test(FCMPOp::Gt, absolute(remainder), half);
        let zero = Src::wide_imm(0, 2);
        let above = self.double_test(FCMPOp::Gt, remainder, zero);
        let below = self.double_test(FCMPOp::Lt, remainder, zero);
        let up = self.select_word(beyond, Src::imm(3), Src::imm(1));
        let down = self.select_word(beyond, Src::imm(-3i32 as u32), Src::imm(u32::MAX));
        let step = self.select_word(above, Src::reg(up), Src::ZERO);
        let step = self.select_word(below, Src::reg(down), Src::reg(step));
        let sign = self.sign_word(Src::reg(step));
        Src::regs(self.add_wide(wide, Src::regs(Regs::new(&[step, sign]))))
    }

    /// The double, without sign, whose significand is `wide` / 4 (2^52 to 2^53) at a biased exponent below 2047, rounded to nearest even; below
    /// exponent 1 it is subnormal.
    fn round_quarters(&mut self, wide: Src, exponent: Src) -> Src {
        let one = Src::imm(1);
        let deep = self.add(exponent.negated(), one);
        let deep = self.min_max(Src::reg(deep), Src::ZERO, IType::S32, false);
        let deep = self.min_max(Src::reg(deep), Src::imm(61), IType::S32, true);
        let amount = Src::reg(self.add(Src::reg(deep), Src::imm(2)));
        let low = self.word_shift(SHFDir::R, LOHI::Lo, wide, amount);
        let high = self.word_shift(SHFDir::R, LOHI::Hi, wide, amount);
        let kept = Src::regs(Regs::new(&[low, high]));
        let back = Src::reg(self.add(amount.negated(), Src::imm(64)));
        let low = self.word_shift(SHFDir::L, LOHI::Lo, wide, back);
        let high = self.word_shift(SHFDir::L, LOHI::Hi, wide, back);
        // What is cut off, against one half; bit 0 is free and breaks ties towards even.
        let low = self.logic3(kept.low(), one, Src::reg(low), AND_OR);
        let cut = Src::regs(Regs::new(&[low, high]));
        let half = Src::wide_imm(1 << 63, 2);
        let up = self.compare_wide(IntCC::UnsignedGreaterThan, cut, half);
        // The leading bit of a normal significand adds one to the exponent.
        let base = self.min_max(exponent, one, IType::S32, false);
        let base = self.add(Src::reg(base), Src::imm(u32::MAX));
        let base = self.shift_left(Src::reg(base), Src::imm(20), false);
        let base = join(self, Src::ZERO, base);
        Src::regs(self.add_chain(kept, base, up).0)
    }

    /// One word of a 64-bit value shifted by less than 64.
    fn word_shift(&mut self, direction: SHFDir, part: LOHI, x: Src, n: Src) -> VReg {
        self.funnel(
            direction,
            part,
            CWMode::W,
            SHFDType::U64,
            x.low(),
            n,
            x.high(),
        )
    }

    /// `sqrt.f64`.
    pub(super) fn root_double(&mut self, x: Value) -> Regs {
        let x = self.src(x);
        let (xs, exponent, scaled) = self.normalize(x);

        // The significand in [1, 4) with an even exponent 2k: field + 1 = 2k + 1024, or one more.
        let above = self.add(exponent, Src::imm(1));
        let odd = self.logic3(Src::reg(above), Src::imm(1), Src::ZERO, AND);
        let odd = self.shift_left(Src::reg(odd), Src::imm(20), false);
        let significand = self.significand(xs);
        let high = self.add(significand.high(), Src::reg(odd));
        let significand = join(self, significand.low(), high);
        let half_exponent = self.shift_right(Src::reg(above), Src::imm(1), false, false);

        let r = self.approximate(MUFUOp::Rsq, significand);
        let root = self.refined_root(significand, r);

        // root + u/2 squared is root^2 + root u + a rest below any number that a remainder can be.
        let remainder = self.fused_double(root.negated(), root, significand);
        let unit = self.add(root.high(), Src::imm((52 * EXPONENT_STEP).wrapping_neg()));
        let unit = join(self, root.low(), unit);
        let above = self.double_test(FCMPOp::Gt, remainder, unit);
        let below = self.double_test(FCMPOp::Le, remainder, unit.negated());
        let step = self.select_word(above, Src::imm(1), Src::ZERO);
        let step = self.select_word(below, Src::imm(u32::MAX), Src::reg(step));
        let sign = self.sign_word(Src::reg(step));
        let root = self.add_wide(root, Src::regs(Regs::new(&[step, sign])));

        // Exponent k, less half the scale.
        let offset = self.select_word(
            scaled,
            Src::imm((512 + SCALE / 2).wrapping_neg()),
            Src::imm(512u32.wrapping_neg()),
        );
        let k = self.add(Src::reg(half_exponent), Src::reg(offset));
        let k = self.shift_left(Src::reg(k), Src::imm(20), false);
        let high = self.add(Src::reg(root.word(1)), Src::reg(k));
        let root = Src::regs(Regs::new(&[root.word(0), high]));

        // Positive normal numbers after scaling: high words from 0x00100000 to 0x7fefffff.
        let moved = self.add(xs.high(), Src::imm(EXPONENT_STEP.wrapping_neg()));
        let numbers = self.compare_word(
            CompOp::Lt,
            IType::U32,
            Src::reg(moved),
            Src::imm(EXPONENT - EXPONENT_STEP),
            None,
        );
        // Zeros, +infinity and NaN times one; negative numbers times NaN.
        let negative = self.double_test(FCMPOp::Lt, x, Src::wide_imm(0, 2));
        let factor = self.select_word(negative, Src::imm(QUIET), Src::imm(ONE));
        let factor = join(self, Src::ZERO, factor);
        let special = self.multiply_double(x, factor);
        self.select_wide(numbers, root, special)
    }
}

/// |x|.
fn absolute(x: Src) -> Src {
    Src {
        abs: true,
        whole: None,
        ..x
    }
}

/// A double with a zero low word as an operand.
fn double(x: f64) -> Src {
    Src::wide_imm(u128::from(x.to_bits()), 2)
}

/// A pair from an operand and a register.
fn join(lower: &mut Lower<'_>, low: Src, high: VReg) -> Src {
    let low = match low.as_imm() {
        // Words of a pair are registers of their own.
        Some(bits) => lower.immediate(bits as u32),
        None => lower.gpr(low).word(0),
    };
    Src::regs(Regs::new(&[low, high]))
}
