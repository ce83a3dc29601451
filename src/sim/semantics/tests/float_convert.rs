//! Conversions against `rustc_apfloat` in all formats, types and directions; 16-bit sources exhaustively.

use super::oracle::{self, Operation, corners, random_number};
use crate::sim::semantics::float_convert::*;
use crate::sim::semantics::operands::*;
use crate::sim::semantics::softfloat::{BF16, F16, F32, F64, Format, Rounding};
use crate::testing::Random;

const FLOATS: [(FloatFormat, Format); 4] = [
    (FloatFormat::F16, F16),
    (FloatFormat::Bf16, BF16),
    (FloatFormat::F32, F32),
    (FloatFormat::F64, F64),
];

const INTEGERS: [(IntFormat, u32, bool); 8] = [
    (IntFormat::S8, 8, true),
    (IntFormat::U8, 8, false),
    (IntFormat::S16, 16, true),
    (IntFormat::U16, 16, false),
    (IntFormat::S32, 32, true),
    (IntFormat::U32, 32, false),
    (IntFormat::S64, 64, true),
    (IntFormat::U64, 64, false),
];

const FLOAT_DIRECTIONS: [(FPRound, Rounding); 4] = [
    (FPRound::Rn, Rounding::NearestEven),
    (FPRound::Rm, Rounding::Down),
    (FPRound::Rp, Rounding::Up),
    (FPRound::Rz, Rounding::TowardZero),
];

const INTEGER_DIRECTIONS: [(IRound, Rounding); 4] = [
    (IRound::Rn, Rounding::NearestEven),
    (IRound::Floor, Rounding::Down),
    (IRound::Ceil, Rounding::Up),
    (IRound::Trunc, Rounding::TowardZero),
];

/// Numbers of a format worth converting: all of a 16-bit one, else corners, numbers around each power of two that an
/// integer type ends at, and random ones.
fn inputs(format: Format, random: &mut Random) -> Vec<u64> {
    if format.precision < 24 {
        return (0..=0xffff).collect();
    }
    let mut all = corners(format);
    for power in [
        0u64, 1, 6, 7, 8, 14, 15, 16, 23, 24, 30, 31, 32, 52, 53, 62, 63, 64, 65,
    ] {
        let bits = format.one() + power * format.smallest_normal();
        for delta in [-2i64, -1, 0, 1, 2] {
            let near = bits.wrapping_add_signed(delta);
            let half =
                bits + (format.smallest_normal() >> (power.min(20) + 1)).wrapping_add_signed(delta);
            all.extend([near, near | format.sign(), half, half | format.sign()]);
        }
    }
    all.extend((0..20_000).map(|_| random_number(random, format)));
    // Random numbers near the integers.
    all.extend((0..20_000).map(|_| {
        let exponent = format.one() + random.below(66) * format.smallest_normal();
        let sign = if random.flip() { format.sign() } else { 0 };
        exponent | random.bits() & (format.smallest_normal() - 1) | sign
    }));
    all
}

/// A source as the register holds it, its other bits being noise, and the `.hsel` that finds it.
fn placed(bits: u64, format: Format, random: &mut Random) -> (u64, HSel) {
    let noise = random.bits();
    match (format.precision, random.flip()) {
        (8 | 11, false) => (bits | noise << 16, HSel::H0),
        (8 | 11, true) => (bits << 16 | noise & 0xffff | noise << 32, HSel::H1),
        (24, _) => (bits | noise << 32, HSel::H0),
        _ => (bits, HSel::H0),
    }
}

#[test]
fn between_formats() {
    let mut random = Random::for_test("f2f");
    for (srcfmt, from) in FLOATS {
        for bits in inputs(from, &mut random) {
            for (dstfmt, to) in FLOATS {
                let (rnd, rounding) = random.pick(&FLOAT_DIRECTIONS);
                let (b, b_hsel) = placed(bits, from, &mut random);
                let (b_neg, b_abs) = (random.flip(), random.flip());
                let mut m = f2f::Modifiers {
                    ftz: FPFtz::NoFtz,
                    sat: FPSat::NoSat,
                    rnd,
                    dstfmt,
                    srcfmt,
                    b_hsel,
                    b_neg,
                    b_abs,
                };
                let magnitude = if b_abs { bits & !from.sign() } else { bits };
                let operand = if b_neg {
                    magnitude ^ from.sign()
                } else {
                    magnitude
                };
                let exact = oracle::convert(from, to, operand, rounding);
                assert_eq!(f2f(&m, &f2f::Sources { b }).d, exact, "{m:?} {bits:#x}");

                m.ftz = FPFtz::Ftz;
                let flush = |x: u64, format: Format| {
                    let subnormal = x & (format.sign() - 1) < format.smallest_normal();
                    if format == F32 && subnormal {
                        x & format.sign()
                    } else {
                        x
                    }
                };
                let exact = flush(
                    oracle::convert(from, to, flush(operand, from), rounding),
                    to,
                );
                assert_eq!(f2f(&m, &f2f::Sources { b }).d, exact, "{m:?} {bits:#x}");

                m = f2f::Modifiers {
                    ftz: FPFtz::NoFtz,
                    sat: FPSat::Sat,
                    ..m
                };
                let exact = oracle::convert(from, to, operand, rounding);
                let positive = exact & to.sign() == 0 && !to.is_nan(exact);
                let limited = if positive { exact.min(to.one()) } else { 0 };
                assert_eq!(f2f(&m, &f2f::Sources { b }).d, limited, "{m:?} {bits:#x}");
            }
        }
    }
}

#[test]
fn packing_two_halves() {
    let mut random = Random::for_test("f2fp");
    for _ in 0..50_000 {
        let [a, b] = [0; 2].map(|_| random_number(&mut random, F32));
        for (hfmt_v2, to) in [(HFmtV2::F16V2, F16), (HFmtV2::Bf16V2, BF16)] {
            let (rnd, rounding) = random.pick(&FLOAT_DIRECTIONS);
            let m = f2fp::Modifiers {
                ftz: FPFtz::NoFtz,
                rnd,
                hfmt_v2,
                a_neg: false,
                a_abs: true,
                b_neg: true,
                b_abs: false,
            };
            let d = f2fp(
                &m,
                &f2fp::Sources {
                    a: a as u32,
                    b: b as u32,
                },
            )
            .d;
            let high = oracle::convert(F32, to, a & !F32.sign(), rounding) as u32;
            let low = oracle::convert(F32, to, b ^ F32.sign(), rounding) as u32;
            assert_eq!(d, high << 16 | low, "{m:?} {a:#x} {b:#x}");
        }
    }
}

#[test]
fn to_integers() {
    let mut random = Random::for_test("f2i");
    for (srcfmt, from) in FLOATS {
        for bits in inputs(from, &mut random) {
            for (dstfmt, width, signed) in INTEGERS {
                let (rnd, rounding) = random.pick(&INTEGER_DIRECTIONS);
                let (b, b_hsel) = placed(bits, from, &mut random);
                let m = f2i::Modifiers {
                    ftz: FPFtz::NoFtz,
                    rnd,
                    dstfmt,
                    srcfmt,
                    b_hsel,
                    b_neg: false,
                    b_abs: false,
                };
                let exact = oracle::to_integer(from, bits, width, signed, rounding);
                // Narrow results are 32-bit numbers.
                let register = if width == 64 {
                    exact as u64
                } else {
                    u64::from(exact as u32)
                };
                assert_eq!(f2i(&m, &f2i::Sources { b }).d, register, "{m:?} {bits:#x}");
            }
        }
    }
}

#[test]
fn from_integers() {
    let mut random = Random::for_test("i2f");
    for (dstfmt, to) in FLOATS {
        for (srcfmt, width, signed) in INTEGERS {
            for case in 0..40_000u64 {
                let b = match case % 3 {
                    0 => random.long(),
                    // Few significant bits: ties.
                    1 => (random.bits() >> 40) << random.below(64),
                    _ => (1u64 << random.below(64)).wrapping_add_signed(random.below(5) as i64 - 2),
                };
                let unsigned = i128::from(b) % (1i128 << width);
                let value = if signed && unsigned >= 1 << (width - 1) {
                    unsigned - (1 << width)
                } else {
                    unsigned
                };
                let (rnd, rounding) = random.pick(&FLOAT_DIRECTIONS);
                let m = i2f::Modifiers {
                    rnd,
                    dstfmt,
                    srcfmt,
                };
                assert_eq!(
                    i2f(&m, &i2f::Sources { b }).d,
                    oracle::from_integer(to, value, rounding),
                    "{m:?} {b:#x}"
                );
            }
        }
    }
}

#[test]
fn to_integral_numbers() {
    let mut random = Random::for_test("frnd");
    for (fmt, format) in FLOATS {
        for bits in inputs(format, &mut random) {
            for (rnd, rounding) in INTEGER_DIRECTIONS {
                let (b, b_hsel) = placed(bits, format, &mut random);
                let m = frnd::Modifiers {
                    ftz: FPFtz::NoFtz,
                    rnd,
                    fmt,
                    b_hsel,
                    b_neg: false,
                    b_abs: false,
                };
                let exact = oracle::compute(format, Operation::Integral, [bits, 0, 0], rounding);
                assert_eq!(frnd(&m, &frnd::Sources { b }).d, exact, "{m:?} {bits:#x}");
            }
        }
    }
}
