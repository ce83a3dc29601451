//! Single and double precision, all directions: the exact core against `rustc_apfloat`, and the instructions against
//! both.

use super::all;
use super::half::{boolean, holds};
use super::oracle::{self, FORMATS, Operation, ROUNDINGS, corners, random_number};
use crate::sim::semantics::compare::*;
use crate::sim::semantics::float::*;
use crate::sim::semantics::operands::*;
use crate::sim::semantics::softfloat::{self, F32, F64, Format, Rounding};
use crate::testing::Random;
use std::cmp::Ordering;

fn check_core(format: Format, [a, b, c]: [u64; 3], rounding: Rounding) {
    let message = || format!("{format:?} {a:#x} {b:#x} {c:#x} {rounding:?}");
    let exact = |operation| oracle::compute(format, operation, [a, b, c], rounding);
    assert_eq!(
        softfloat::add(format, a, b, rounding),
        exact(Operation::Add),
        "{}",
        message()
    );
    assert_eq!(
        softfloat::multiply(format, a, b, rounding),
        exact(Operation::Multiply),
        "{}",
        message()
    );
    assert_eq!(
        softfloat::fused_multiply_add(format, a, b, c, rounding),
        exact(Operation::Fused),
        "{}",
        message()
    );
}

#[test]
fn core_on_corners() {
    let mut random = Random::for_test("softfloat corners");
    for format in FORMATS {
        let corners = corners(format);
        for &a in &corners {
            for &b in &corners {
                for rounding in ROUNDINGS {
                    for c in [
                        random.pick(&corners),
                        random.pick(&corners),
                        random.pick(&corners),
                    ] {
                        check_core(format, [a, b, c], rounding);
                    }
                    // The addend that cancels the product, and its neighbours.
                    let product = oracle::compute(
                        format,
                        Operation::Multiply,
                        [a, b, 0],
                        Rounding::TowardZero,
                    );
                    let opposite = product ^ format.sign();
                    if !format.is_nan(product) {
                        check_core(format, [a, b, opposite], rounding);
                        check_core(format, [a, b, opposite ^ 1], rounding);
                    }
                }
            }
        }
    }
}

#[test]
fn core_on_random_numbers() {
    let mut random = Random::for_test("softfloat");
    for format in FORMATS {
        for _ in 0..100_000 {
            let operands = [0; 3].map(|_| random_number(&mut random, format));
            check_core(format, operands, random.pick(&ROUNDINGS));
        }
    }
}

const DIRECTIONS: [(FPRound, Rounding); 4] = [
    (FPRound::Rn, Rounding::NearestEven),
    (FPRound::Rm, Rounding::Down),
    (FPRound::Rp, Rounding::Up),
    (FPRound::Rz, Rounding::TowardZero),
];

/// `.SAT` and `.FTZ` of a result, by value.
fn finished(bits: u32, ftz: FPFtz, sat: FPSat) -> u32 {
    let value = f32::from_bits(bits);
    let value = match sat {
        FPSat::NoSat => value,
        FPSat::Sat if value > 0.0 => value.min(1.0),
        FPSat::Sat => 0.0,
    };
    flushed(value.to_bits(), ftz)
}

fn flushed(bits: u32, ftz: FPFtz) -> u32 {
    if ftz == FPFtz::Ftz && f32::from_bits(bits).is_subnormal() {
        bits & 0x8000_0000
    } else {
        bits
    }
}

fn modified(bits: u32, abs: bool, neg: bool, ftz: FPFtz) -> u32 {
    let x = f32::from_bits(bits);
    let x = if abs { x.abs() } else { x };
    flushed((if neg { -x } else { x }).to_bits(), ftz)
}

#[test]
fn single_precision() {
    let mut random = Random::for_test("fadd");
    let corners = corners(F32);
    for case in 0..200_000 {
        let [a, b, c] = [0; 3].map(|_| {
            if case % 4 == 0 {
                random.pick(&corners) as u32
            } else {
                random_number(&mut random, F32) as u32
            }
        });
        let (rnd, rounding) = DIRECTIONS[if case % 2 == 0 {
            0
        } else {
            random.below(4) as usize
        }];
        let plain = case % 3 == 0;
        let mut flip = || !plain && random.flip();
        let ftz = if flip() { FPFtz::Ftz } else { FPFtz::NoFtz };
        let sat = if flip() { FPSat::Sat } else { FPSat::NoSat };
        let (a_neg, a_abs, b_neg, b_abs, c_neg, c_abs) =
            (flip(), flip(), flip(), flip(), flip(), flip());
        let operands = [
            modified(a, a_abs, a_neg, ftz),
            modified(b, b_abs, b_neg, ftz),
            modified(c, c_abs, c_neg, ftz),
        ];
        let exact = |operation| {
            let d = oracle::compute(F32, operation, operands.map(u64::from), rounding) as u32;
            finished(d, ftz, sat)
        };
        let m = fadd::Modifiers {
            ftz,
            sat,
            rnd,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
        };
        assert_eq!(
            fadd(&m, &fadd::Sources { a, b }).d,
            exact(Operation::Add),
            "{m:?} {a:#x} {b:#x}"
        );
        let m = fmul::Modifiers {
            ftz,
            sat,
            rnd,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
        };
        assert_eq!(
            fmul(&m, &fmul::Sources { a, b }).d,
            exact(Operation::Multiply),
            "{m:?} {a:#x} {b:#x}"
        );
        let m = ffma::Modifiers {
            ftz,
            sat,
            rnd,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
            c_neg,
            c_abs,
        };
        assert_eq!(
            ffma(&m, &ffma::Sources { a, b, c }).d,
            exact(Operation::Fused),
            "{m:?} {a:#x} {b:#x} {c:#x}"
        );

        let [x, y, _] = operands.map(f32::from_bits);
        let pp = random.flip();
        for &cmp in &all::<FCMPOp>() {
            let lop = random.pick(&all::<LOPOp>());
            let comparison = holds(cmp, x.partial_cmp(&y));
            let m = fsetp::Modifiers {
                ftz,
                lop,
                cmp,
                a_neg,
                a_abs,
                b_neg,
                b_abs,
            };
            let found = fsetp(&m, &fsetp::Sources { a, b, pp });
            assert_eq!(
                [found.pu, found.pv],
                [boolean(lop, comparison, pp), boolean(lop, !comparison, pp)]
            );
            for (bval, one) in [(BVal::Bm, u32::MAX), (BVal::Bf, 0x3f80_0000)] {
                let m = fset::Modifiers {
                    ftz,
                    lop,
                    cmp,
                    bval,
                    a_neg,
                    a_abs,
                    b_neg,
                    b_abs,
                };
                let d = fset(&m, &fset::Sources { a, b, pp }).d;
                assert_eq!(d, if boolean(lop, comparison, pp) { one } else { 0 });
            }
        }
        let m = fsel::Modifiers {
            ftz,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
        };
        assert_eq!(
            fsel(&m, &fsel::Sources { a, b, pp }).d,
            operands[if pp { 0 } else { 1 }]
        );
        for nan in [NAN::NoNan, NAN::Nan] {
            let m = fmnmx::Modifiers {
                ftz,
                nan,
                a_neg,
                a_abs,
                b_neg,
                b_abs,
            };
            let found = fmnmx(&m, &fmnmx::Sources { a, b, pp }).d;
            assert_eq!(
                found,
                extreme(F32, operands.map(u64::from), pp, nan) as u32,
                "{m:?} {a:#x} {b:#x} {pp}"
            );
        }
    }
}

/// Minimum or maximum, through the order of the host's doubles.
fn extreme(format: Format, [a, b, _]: [u64; 3], minimum: bool, nan: NAN) -> u64 {
    let value = |bits: u64| {
        if format == F32 {
            f64::from(f32::from_bits(bits as u32))
        } else {
            f64::from_bits(bits)
        }
    };
    let (x, y) = (value(a), value(b));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => format.nan,
        (true, false) | (false, true) if nan == NAN::Nan => format.nan,
        (true, false) => b,
        (false, true) => a,
        _ => {
            let a_first = x.total_cmp(&y) == Ordering::Less;
            if a_first == minimum { a } else { b }
        }
    }
}

#[test]
fn double_precision() {
    let mut random = Random::for_test("dadd");
    let corners = corners(F64);
    for case in 0..200_000 {
        let [a, b, c] = [0; 3].map(|_| {
            if case % 4 == 0 {
                random.pick(&corners)
            } else {
                random_number(&mut random, F64)
            }
        });
        let (rnd, rounding) = DIRECTIONS[if case % 2 == 0 {
            0
        } else {
            random.below(4) as usize
        }];
        let plain = case % 3 == 0;
        let mut flip = || !plain && random.flip();
        let (a_neg, a_abs, b_neg, b_abs, c_neg, c_abs) =
            (flip(), flip(), flip(), flip(), flip(), flip());
        let prepare = |bits: u64, abs: bool, neg: bool| {
            let x = f64::from_bits(bits);
            let x = if abs { x.abs() } else { x };
            (if neg { -x } else { x }).to_bits()
        };
        let operands = [
            prepare(a, a_abs, a_neg),
            prepare(b, b_abs, b_neg),
            prepare(c, c_abs, c_neg),
        ];
        let exact = |operation| oracle::compute(F64, operation, operands, rounding);
        let m = dadd::Modifiers {
            rnd,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
        };
        assert_eq!(
            dadd(&m, &dadd::Sources { a, b }).d,
            exact(Operation::Add),
            "{m:?} {a:#x} {b:#x}"
        );
        let m = dmul::Modifiers {
            rnd,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
        };
        assert_eq!(
            dmul(&m, &dmul::Sources { a, b }).d,
            exact(Operation::Multiply),
            "{m:?} {a:#x} {b:#x}"
        );
        let m = dfma::Modifiers {
            rnd,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
            c_neg,
            c_abs,
        };
        assert_eq!(
            dfma(&m, &dfma::Sources { a, b, c }).d,
            exact(Operation::Fused),
            "{m:?} {a:#x} {b:#x} {c:#x}"
        );

        let [x, y, _] = operands.map(f64::from_bits);
        let (pp, cmp, lop) = (
            random.flip(),
            random.pick(&all::<FCMPOp>()),
            random.pick(&all::<LOPOp>()),
        );
        let comparison = holds(cmp, x.partial_cmp(&y));
        let m = dsetp::Modifiers {
            lop,
            cmp,
            a_neg,
            a_abs,
            b_neg,
            b_abs,
        };
        let found = dsetp::<u32>(&m, &dsetp::Sources { a, b, pp });
        assert_eq!(
            [found.pu, found.pv],
            [boolean(lop, comparison, pp), boolean(lop, !comparison, pp)]
        );
        for nan in [NAN::NoNan, NAN::Nan] {
            let m = dmnmx::Modifiers {
                nan,
                a_neg,
                a_abs,
                b_neg,
                b_abs,
            };
            let found = dmnmx::<u32>(&m, &dmnmx::Sources { a, b, pp }).d;
            assert_eq!(
                found,
                extreme(F64, operands, pp, nan),
                "{m:?} {a:#x} {b:#x} {pp}"
            );
        }
    }
}
