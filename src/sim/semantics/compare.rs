//! Comparison, minimum, maximum and selection of floating-point numbers: one set of rules for all formats (document 000,
//! HSETP2 and HMNMX2; the companion instructions FSETP FSET FMNMX FSEL DSETP DMNMX follow them).
//!
//! Nothing is rounded here, so all of it is operations on bits, and a proof can run it on terms.

use super::operands::*;
use super::softfloat::{BF16, F16, F32, F64, Format};
use crate::bits::{Bits, Truth, Word};

/// How two numbers compare.
pub struct Order<T> {
    /// One of them is NaN; then nothing else is said.
    pub unordered: T,
    /// They are the same number.
    pub equal: T,
    /// The first is less.
    pub less: T,
}

/// How two numbers compare. The zeros are equal.
#[inline(always)]
pub fn order<B: Bits>(format: Format, a: &B, b: &B) -> Order<B::Bit> {
    let magnitudes = B::number(format.sign() - 1);
    let zeros = a.or(b).and(&magnitudes).is_any().not();
    Order {
        unordered: is_nan(format, a).or(&is_nan(format, b)),
        equal: a.equals(b).or(&zeros),
        less: is_lower(format, a, b).and(&zeros.not()),
    }
}

/// Whether `a` is less than `b`, −0 below +0. No NaN.
#[inline(always)]
fn is_lower<B: Bits>(format: Format, a: &B, b: &B) -> B::Bit {
    // A number that grows with the value.
    let rank = |bits: &B| {
        let magnitude = bits.and(&B::number(format.sign() - 1));
        B::choose(&bits.is_negative(), &magnitude.complement(), &magnitude)
    };
    rank(a).is_less(&rank(b))
}

/// Whether `bits` are a NaN.
#[inline(always)]
pub fn is_nan<B: Bits>(format: Format, bits: &B) -> B::Bit {
    let magnitude = bits.and(&B::number(format.sign() - 1));
    B::number(format.infinity()).is_below(&magnitude)
}

/// `bits` after the modifiers `||` and then `-`.
#[inline(always)]
pub fn modified<B: Bits>(format: Format, bits: &B, abs: bool, neg: bool) -> B {
    let sign = B::number(format.sign());
    let bits = if abs {
        bits.and(&sign.complement())
    } else {
        bits.clone()
    };
    if neg { bits.xor(&sign) } else { bits }
}

/// `bits`, under `.FTZ` a subnormal number replaced by the zero of its sign.
#[inline(always)]
pub fn flushed<B: Bits>(format: Format, bits: &B, ftz: FPFtz) -> B {
    match ftz {
        FPFtz::NoFtz => bits.clone(),
        FPFtz::Ftz => {
            let sign = bits.and(&B::number(format.sign()));
            let magnitude = bits.and(&B::number(format.sign() - 1));
            let is_small = magnitude.is_below(&B::number(format.smallest_normal()));
            B::choose(&is_small, &sign, bits)
        }
    }
}

/// The two numbers that an operand of two lanes supplies, lane 0 in the low half.
#[inline(always)]
pub fn halves<W: Word>(word: &W, hsel2: HSel2, abs: bool, neg: bool) -> W {
    let halves = match hsel2 {
        HSel2::H1H0 => word.clone(),
        HSel2::H0H0 => W::join(&word.low(), &word.low()),
        HSel2::H1H1 => W::join(&word.high(), &word.high()),
    };
    let magnitude = if abs {
        halves.and(&W::number(0x7fff_7fff))
    } else {
        halves
    };
    if neg {
        magnitude.xor(&W::number(0x8000_8000))
    } else {
        magnitude
    }
}

/// Whether the comparison holds. With a NaN the plain ones are false and those with U true.
#[inline(always)]
fn holds<B: Bits>(format: Format, cmp: FCMPOp, a: &B, b: &B) -> B::Bit {
    let Order {
        unordered,
        equal,
        less,
    } = order(format, a, b);
    let at_most = less.or(&equal);
    let comparison = match cmp {
        FCMPOp::Eq | FCMPOp::Equ => equal,
        FCMPOp::Ne | FCMPOp::Neu => equal.not(),
        FCMPOp::Lt | FCMPOp::Ltu => less,
        FCMPOp::Le | FCMPOp::Leu => at_most,
        FCMPOp::Gt | FCMPOp::Gtu => at_most.not(),
        FCMPOp::Ge | FCMPOp::Geu => less.not(),
        FCMPOp::Nan => Truth::known(false),
        FCMPOp::Num => Truth::known(true),
    };
    match cmp {
        FCMPOp::Eq
        | FCMPOp::Ne
        | FCMPOp::Lt
        | FCMPOp::Le
        | FCMPOp::Gt
        | FCMPOp::Ge
        | FCMPOp::Num => comparison.and(&unordered.not()),
        FCMPOp::Equ
        | FCMPOp::Neu
        | FCMPOp::Ltu
        | FCMPOp::Leu
        | FCMPOp::Gtu
        | FCMPOp::Geu
        | FCMPOp::Nan => comparison.or(&unordered),
    }
}

/// The result of a comparison combined with the input predicate.
#[inline(always)]
fn combine<T: Truth>(comparison: &T, lop: LOPOp, pp: &T) -> T {
    match lop {
        LOPOp::And => comparison.and(pp),
        LOPOp::Or => comparison.or(pp),
        LOPOp::Xor => comparison.xor(pp),
    }
}

/// The minimum of `a` and `b` where `minimum` holds, else the maximum; −0 is below +0.
///
/// With `.NAN` a NaN makes the result NaN; without it the other operand is the result, and NaN only if both are.
#[inline(always)]
fn select<B: Bits>(format: Format, a: &B, b: &B, minimum: &B::Bit, nan: NAN) -> B {
    let [a_is_nan, b_is_nan] = [a, b].map(|bits| is_nan(format, bits));
    let is_second = is_lower(format, a, b).xor(minimum);
    let found = B::choose(&is_second, b, a);
    let no_number = B::number(format.nan);
    match nan {
        NAN::Nan => B::choose(&a_is_nan.or(&b_is_nan), &no_number, &found),
        NAN::NoNan => {
            let found = B::choose(&b_is_nan, a, &found);
            let found = B::choose(&a_is_nan, b, &found);
            B::choose(&a_is_nan.and(&b_is_nan), &no_number, &found)
        }
    }
}

/// An operand of single precision after its modifiers and `.FTZ`.
#[inline(always)]
pub fn single<B: Bits>(bits: &B, abs: bool, neg: bool, ftz: FPFtz) -> B {
    flushed(F32, &modified(F32, bits, abs, neg), ftz)
}

/// FMNMX: the minimum where `pp` is true, else the maximum (companion, as HMNMX2).
#[inline(always)]
pub fn fmnmx<W: Word>(m: &fmnmx::Modifiers, s: &fmnmx::Sources<W>) -> fmnmx::Results<W> {
    let a = single(&s.a, m.a_abs, m.a_neg, m.ftz);
    let b = single(&s.b, m.b_abs, m.b_neg, m.ftz);
    fmnmx::Results {
        d: select(F32, &a, &b, &s.pp, m.nan),
    }
}

/// FSETP: `pu` is the comparison combined with `pp`, `pv` its complement combined with `pp` (companion, as ISETP).
#[inline(always)]
pub fn fsetp<W: Word>(m: &fsetp::Modifiers, s: &fsetp::Sources<W>) -> fsetp::Results<W> {
    let a = single(&s.a, m.a_abs, m.a_neg, m.ftz);
    let b = single(&s.b, m.b_abs, m.b_neg, m.ftz);
    let comparison = holds(F32, m.cmp, &a, &b);
    fsetp::Results {
        pu: combine(&comparison, m.lop, &s.pp),
        pv: combine(&comparison.not(), m.lop, &s.pp),
    }
}

/// FSET: the comparison combined with `pp`, as a mask or as 0.0 and 1.0 (companion, as HSET2).
#[inline(always)]
pub fn fset<W: Word>(m: &fset::Modifiers, s: &fset::Sources<W>) -> fset::Results<W> {
    let a = single(&s.a, m.a_abs, m.a_neg, m.ftz);
    let b = single(&s.b, m.b_abs, m.b_neg, m.ftz);
    let comparison = holds(F32, m.cmp, &a, &b);
    let yes = match m.bval {
        BVal::Bm => W::ones(),
        BVal::Bf => W::number(F32.one()),
    };
    fset::Results {
        d: W::choose(&combine(&comparison, m.lop, &s.pp), &yes, &W::zero()),
    }
}

/// FSEL: `a` where `pp` is true, else `b`, after their modifiers; NaN passes unchanged (companion).
#[inline(always)]
pub fn fsel<W: Word>(m: &fsel::Modifiers, s: &fsel::Sources<W>) -> fsel::Results<W> {
    let a = single(&s.a, m.a_abs, m.a_neg, m.ftz);
    let b = single(&s.b, m.b_abs, m.b_neg, m.ftz);
    fsel::Results {
        d: W::choose(&s.pp, &a, &b),
    }
}

/// DSETP: as FSETP (companion).
#[inline(always)]
pub fn dsetp<W: Word>(m: &dsetp::Modifiers, s: &dsetp::Sources<W>) -> dsetp::Results<W> {
    let a = modified(F64, &s.a, m.a_abs, m.a_neg);
    let b = modified(F64, &s.b, m.b_abs, m.b_neg);
    let comparison = holds(F64, m.cmp, &a, &b);
    dsetp::Results {
        pu: combine(&comparison, m.lop, &s.pp),
        pv: combine(&comparison.not(), m.lop, &s.pp),
    }
}

/// DMNMX: as FMNMX (companion).
#[inline(always)]
pub fn dmnmx<W: Word>(m: &dmnmx::Modifiers, s: &dmnmx::Sources<W>) -> dmnmx::Results<W> {
    let a = modified(F64, &s.a, m.a_abs, m.a_neg);
    let b = modified(F64, &s.b, m.b_abs, m.b_neg);
    dmnmx::Results {
        d: select(F64, &a, &b, &s.pp, m.nan),
    }
}

/// The format of two lanes.
fn format(hfmt_v2: HFmtV2) -> Format {
    match hfmt_v2 {
        HFmtV2::F16V2 => F16,
        HFmtV2::Bf16V2 => BF16,
    }
}

/// HMNMX2: the minimum where `pp` is true, else the maximum (document 000, HMNMX2).
///
/// The polarity is IMNMX's. `.FTZ` flushes the inputs, so that a selected subnormal comes out as a zero.
#[inline(always)]
pub fn hmnmx2<W: Word>(m: &hmnmx2::Modifiers, s: &hmnmx2::Sources<W>) -> hmnmx2::Results<W> {
    let a = halves(&s.a, m.a_hsel2, m.a_abs, m.a_neg);
    let b = halves(&s.b, m.b_hsel2, m.b_abs, m.b_neg);
    let format = format(m.hfmt_v2);
    let lane = |a: &W::Short, b: &W::Short| {
        let [a, b] = [a, b].map(|half| flushed(format, half, m.ftz));
        select(format, &a, &b, &s.pp, m.nan)
    };
    hmnmx2::Results {
        d: W::join(&lane(&a.high(), &b.high()), &lane(&a.low(), &b.low())),
    }
}

/// The comparison of both lanes, lane 0 first.
#[inline(always)]
fn comparisons<W: Word>(a: &W, b: &W, hfmt_v2: HFmtV2, ftz: FPFtz, cmp: FCMPOp) -> [W::Bit; 2] {
    let format = format(hfmt_v2);
    [(a.low(), b.low()), (a.high(), b.high())].map(|(a, b)| {
        let [a, b] = [a, b].map(|half| flushed(format, &half, ftz));
        holds(format, cmp, &a, &b)
    })
}

/// HSETP2: `pu` is lane 0's comparison and `pv` lane 1's, each combined with `pp` (document 000, HSETP2).
#[inline(always)]
pub fn hsetp2<W: Word>(m: &hsetp2::Modifiers, s: &hsetp2::Sources<W>) -> hsetp2::Results<W> {
    let a = halves(&s.a, m.a_hsel2, m.a_abs, m.a_neg);
    let b = halves(&s.b, m.b_hsel2, m.b_abs, m.b_neg);
    let [low, high] = comparisons(&a, &b, m.hfmt_v2, m.ftz, m.cmp);
    hsetp2::Results {
        pu: combine(&low, m.lop, &s.pp),
        pv: combine(&high, m.lop, &s.pp),
    }
}

/// HSET2: both comparisons combined with `pp`, as masks or as 0.0 and 1.0 of the format (document 000, HSET2).
#[inline(always)]
pub fn hset2<W: Word>(m: &hset2::Modifiers, s: &hset2::Sources<W>) -> hset2::Results<W> {
    let a = halves(&s.a, m.a_hsel2, m.a_abs, m.a_neg);
    let b = halves(&s.b, m.b_hsel2, m.b_abs, m.b_neg);
    let yes = match m.bval {
        BVal::Bm => W::Short::ones(),
        BVal::Bf => W::Short::number(format(m.hfmt_v2).one()),
    };
    let [low, high] = comparisons(&a, &b, m.hfmt_v2, m.ftz, m.cmp).map(|comparison| {
        let holds = combine(&comparison, m.lop, &s.pp);
        W::Short::choose(&holds, &yes, &W::Short::zero())
    });
    hset2::Results {
        d: W::join(&high, &low),
    }
}
