//! Two-lane half precision: HADD2, HMUL2, HFMA2, HMNMX2, HSETP2, HSET2 (document 000), in f16 and bf16.
//!
//! The order of steps is that of HFMA2's pseudo-code, which holds for the whole family: select the halves (`hsel2`),
//! absolute value, negation, flush subnormal inputs (`.FTZ`); compute and round once, to nearest with ties to even;
//! `.SAT` (NaN and −0 become +0) or `.RELU` (which keeps −0); flush a subnormal result; every NaN becomes 0x7FFF.
//! Arithmetic is exact: see [`super::round_to_odd`].

use super::compare;
use super::operands::*;
use super::round_to_odd::{Bfloat16, Binary16, Half, add_to_odd};

/// The two inputs that an operand supplies, lane 0 in the low half.
#[inline]
fn operand(word: u32, hsel2: HSel2, abs: bool, neg: bool) -> u32 {
    let halves = match hsel2 {
        HSel2::H1H0 => word,
        HSel2::H0H0 => word << 16 | (word & 0xffff),
        HSel2::H1H1 => (word & 0xffff_0000) | word >> 16,
    };
    let magnitude = if abs { halves & 0x7fff_7fff } else { halves };
    if neg {
        magnitude ^ 0x8000_8000
    } else {
        magnitude
    }
}

/// A half, flushed under `.FTZ`.
#[inline]
fn flushed<H: Half>(bits: u16, ftz: FPFtz) -> u16 {
    match ftz {
        FPFtz::NoFtz => bits,
        FPFtz::Ftz => H::FORMAT.flush(u64::from(bits)) as u16,
    }
}

/// What follows the rounding of an arithmetic result.
#[inline]
fn finish<H: Half>(d: u16, ftz: FPFtz, sat: FPSat, relu: RELU) -> u16 {
    let d = match (sat, relu) {
        (FPSat::Sat, _) => H::FORMAT.saturate(u64::from(d)) as u16,
        // NaN has been made positive already, so what is negative here is a number.
        (FPSat::NoSat, RELU::Relu) if d > 0x8000 => 0,
        _ => d,
    };
    flushed::<H>(d, ftz)
}

/// `f` on both lanes.
#[inline]
fn both<const N: usize>(operands: [u32; N], f: impl Fn([u16; N]) -> u16) -> u32 {
    let low = f(operands.map(|word| word as u16));
    let high = f(operands.map(|word| (word >> 16) as u16));
    u32::from(high) << 16 | u32::from(low)
}

/// A two-lane operation of `N` operands, each in double precision, on one format.
#[inline]
fn arithmetic<H: Half, const N: usize>(
    operands: [u32; N],
    (ftz, sat, relu): (FPFtz, FPSat, RELU),
    f: impl Fn([f64; N]) -> f64,
) -> u32 {
    both(operands, |halves| {
        finish::<H>(
            H::narrow(f(halves.map(|half| H::widen(flushed::<H>(half, ftz))))),
            ftz,
            sat,
            relu,
        )
    })
}

/// HADD2: `a + b` (document 000, HADD2).
pub fn hadd2(m: &hadd2::Modifiers, s: &hadd2::Sources) -> hadd2::Results {
    let operands = [
        operand(s.a, m.a_hsel2, m.a_abs, m.a_neg),
        operand(s.b, m.b_hsel2, m.b_abs, m.b_neg),
    ];
    let after = (m.ftz, m.sat, RELU::NoRelu);
    let f = |[a, b]: [f64; 2]| add_to_odd(a, b);
    let d = match m.hfmt_v2 {
        HFmtV2::F16V2 => arithmetic::<Binary16, 2>(operands, after, f),
        HFmtV2::Bf16V2 => arithmetic::<Bfloat16, 2>(operands, after, f),
    };
    hadd2::Results { d }
}

/// HMUL2: `a * b` (document 000, HMUL2).
pub fn hmul2(m: &hmul2::Modifiers, s: &hmul2::Sources) -> hmul2::Results {
    let operands = [
        operand(s.a, m.a_hsel2, m.a_abs, m.a_neg),
        operand(s.b, m.b_hsel2, m.b_abs, m.b_neg),
    ];
    let after = (m.ftz, m.sat, RELU::NoRelu);
    let f = |[a, b]: [f64; 2]| a * b;
    let d = match m.hfmt_v2 {
        HFmtV2::F16V2 => arithmetic::<Binary16, 2>(operands, after, f),
        HFmtV2::Bf16V2 => arithmetic::<Bfloat16, 2>(operands, after, f),
    };
    hmul2::Results { d }
}

/// HFMA2: `a * b + c`, the product exact (document 000, HFMA2).
pub fn hfma2(m: &hfma2::Modifiers, s: &hfma2::Sources) -> hfma2::Results {
    let operands = [
        operand(s.a, m.a_hsel2, m.a_abs, m.a_neg),
        operand(s.b, m.b_hsel2, m.b_abs, m.b_neg),
        operand(s.c, m.c_hsel2, m.c_abs, m.c_neg),
    ];
    let after = (m.ftz, m.sat, m.relu);
    let f = |[a, b, c]: [f64; 3]| add_to_odd(a * b, c);
    let d = match m.hfmt_v2 {
        HFmtV2::F16V2 => arithmetic::<Binary16, 3>(operands, after, f),
        HFmtV2::Bf16V2 => arithmetic::<Bfloat16, 3>(operands, after, f),
    };
    hfma2::Results { d }
}

/// HMNMX2: the minimum where `pp` is true, else the maximum (document 000, HMNMX2).
///
/// The polarity is IMNMX's. `.FTZ` flushes the inputs, so that a selected subnormal comes out as a zero.
pub fn hmnmx2(m: &hmnmx2::Modifiers, s: &hmnmx2::Sources) -> hmnmx2::Results {
    let operands = [
        operand(s.a, m.a_hsel2, m.a_abs, m.a_neg),
        operand(s.b, m.b_hsel2, m.b_abs, m.b_neg),
    ];
    fn lanes<H: Half>(operands: [u32; 2], ftz: FPFtz, minimum: bool, nan: NAN) -> u32 {
        both(operands, |halves| {
            let [a, b] = halves.map(|half| u64::from(flushed::<H>(half, ftz)));
            compare::select(H::FORMAT, a, b, minimum, nan) as u16
        })
    }
    let d = match m.hfmt_v2 {
        HFmtV2::F16V2 => lanes::<Binary16>(operands, m.ftz, s.pp, m.nan),
        HFmtV2::Bf16V2 => lanes::<Bfloat16>(operands, m.ftz, s.pp, m.nan),
    };
    hmnmx2::Results { d }
}

/// The comparison of both lanes, lane 0 first.
fn comparisons([a, b]: [u32; 2], hfmt_v2: HFmtV2, ftz: FPFtz, cmp: FCMPOp) -> [bool; 2] {
    fn lane<H: Half>(a: u16, b: u16, ftz: FPFtz, cmp: FCMPOp) -> bool {
        let [a, b] = [a, b].map(|half| u64::from(flushed::<H>(half, ftz)));
        compare::holds(cmp, compare::order(H::FORMAT, a, b))
    }
    [0, 16].map(|shift| {
        let (a, b) = ((a >> shift) as u16, (b >> shift) as u16);
        match hfmt_v2 {
            HFmtV2::F16V2 => lane::<Binary16>(a, b, ftz, cmp),
            HFmtV2::Bf16V2 => lane::<Bfloat16>(a, b, ftz, cmp),
        }
    })
}

/// HSETP2: `pu` is lane 0's comparison and `pv` lane 1's, each combined with `pp` (document 000, HSETP2).
pub fn hsetp2(m: &hsetp2::Modifiers, s: &hsetp2::Sources) -> hsetp2::Results {
    let operands = [
        operand(s.a, m.a_hsel2, m.a_abs, m.a_neg),
        operand(s.b, m.b_hsel2, m.b_abs, m.b_neg),
    ];
    let [low, high] = comparisons(operands, m.hfmt_v2, m.ftz, m.cmp);
    hsetp2::Results {
        pu: compare::combine(low, m.lop, s.pp),
        pv: compare::combine(high, m.lop, s.pp),
    }
}

/// HSET2: both comparisons combined with `pp`, as masks or as 0.0 and 1.0 of the format (document 000, HSET2).
pub fn hset2(m: &hset2::Modifiers, s: &hset2::Sources) -> hset2::Results {
    let operands = [
        operand(s.a, m.a_hsel2, m.a_abs, m.a_neg),
        operand(s.b, m.b_hsel2, m.b_abs, m.b_neg),
    ];
    let one: u32 = match (m.bval, m.hfmt_v2) {
        (BVal::Bm, _) => 0xffff,
        (BVal::Bf, HFmtV2::F16V2) => Binary16::FORMAT.one() as u32,
        (BVal::Bf, HFmtV2::Bf16V2) => Bfloat16::FORMAT.one() as u32,
    };
    let [low, high] = comparisons(operands, m.hfmt_v2, m.ftz, m.cmp).map(|comparison| {
        if compare::combine(comparison, m.lop, s.pp) {
            one
        } else {
            0
        }
    });
    hset2::Results {
        d: high << 16 | low,
    }
}
