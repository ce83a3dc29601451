//! Arithmetic on two lanes of half precision: HADD2, HMUL2, HFMA2 (document 000), in f16 and bf16. What only compares and
//! selects is in [`super::compare`].
//!
//! The order of steps is that of HFMA2's pseudo-code, which holds for the whole family: select the halves (`hsel2`),
//! absolute value, negation, flush subnormal inputs (`.FTZ`); compute and round once, to nearest with ties to even;
//! `.SAT` (NaN and −0 become +0) or `.RELU` (which keeps −0); flush a subnormal result; every NaN becomes 0x7FFF.
//! Arithmetic is exact: see [`super::round_to_odd`].

use super::compare::{self, halves};
use super::operands::*;
use super::round_to_odd::{Bfloat16, Binary16, Half, add_to_odd};

/// A half, flushed under `.FTZ`.
#[inline]
fn flushed<H: Half>(bits: u16, ftz: FPFtz) -> u16 {
    compare::flushed(H::FORMAT, &bits, ftz)
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
        halves(&s.a, m.a_hsel2, m.a_abs, m.a_neg),
        halves(&s.b, m.b_hsel2, m.b_abs, m.b_neg),
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
        halves(&s.a, m.a_hsel2, m.a_abs, m.a_neg),
        halves(&s.b, m.b_hsel2, m.b_abs, m.b_neg),
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
        halves(&s.a, m.a_hsel2, m.a_abs, m.a_neg),
        halves(&s.b, m.b_hsel2, m.b_abs, m.b_neg),
        halves(&s.c, m.c_hsel2, m.c_abs, m.c_neg),
    ];
    let after = (m.ftz, m.sat, m.relu);
    let f = |[a, b, c]: [f64; 3]| add_to_odd(a * b, c);
    let d = match m.hfmt_v2 {
        HFmtV2::F16V2 => arithmetic::<Binary16, 3>(operands, after, f),
        HFmtV2::Bf16V2 => arithmetic::<Bfloat16, 3>(operands, after, f),
    };
    hfma2::Results { d }
}
