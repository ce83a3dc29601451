//! Half precision against `rustc_apfloat`: every input alone, corners in all combinations, and random ones.

use super::all;
use super::oracle::{self, Operation, corners, random_number};
use crate::sim::semantics::compare::*;
use crate::sim::semantics::half::*;
use crate::sim::semantics::operands::*;
use crate::sim::semantics::softfloat::{BF16, F16, Format, Rounding};
use crate::testing::Random;
use rustc_apfloat::ieee::{BFloat, Half};
use rustc_apfloat::{Category, Float};
use std::cmp::Ordering;

const FORMATS: [(HFmtV2, Format); 2] = [(HFmtV2::F16V2, F16), (HFmtV2::Bf16V2, BF16)];

/// The steps around the operation, in the document's order, told through the exact library.
#[derive(Clone, Copy, Debug)]
struct Steps {
    ftz: FPFtz,
    sat: FPSat,
    relu: RELU,
}

const PLAIN: Steps = Steps {
    ftz: FPFtz::NoFtz,
    sat: FPSat::NoSat,
    relu: RELU::NoRelu,
};

/// All legal combinations of the three.
fn all_steps() -> Vec<Steps> {
    let mut all = Vec::new();
    for ftz in [FPFtz::NoFtz, FPFtz::Ftz] {
        all.push(Steps { ftz, ..PLAIN });
        all.push(Steps {
            ftz,
            sat: FPSat::Sat,
            ..PLAIN
        });
        all.push(Steps {
            ftz,
            relu: RELU::Relu,
            ..PLAIN
        });
    }
    all
}

fn flush<F: Float>(x: F) -> F {
    if x.is_denormal() {
        F::ZERO.copy_sign(x)
    } else {
        x
    }
}

/// The half that `operation` and the steps make of the inputs.
fn expected(format: Format, operation: Operation, inputs: [u16; 3], steps: Steps) -> u16 {
    fn run<F: Float>(format: Format, operation: Operation, inputs: [u16; 3], steps: Steps) -> u16 {
        let flushed = inputs.map(|x| {
            let x = F::from_bits(x.into());
            (if steps.ftz == FPFtz::Ftz { flush(x) } else { x }).to_bits() as u64
        });
        let one = F::from_u128(1).value;
        let mut d =
            F::from_bits(oracle::compute(format, operation, flushed, Rounding::NearestEven).into());
        if steps.sat == FPSat::Sat {
            if d.is_nan() || d.is_negative() {
                d = F::ZERO;
            } else if d.partial_cmp(&one) == Some(Ordering::Greater) {
                d = one;
            }
        } else if steps.relu == RELU::Relu && d.partial_cmp(&F::ZERO) == Some(Ordering::Less) {
            d = F::ZERO;
        }
        if steps.ftz == FPFtz::Ftz {
            d = flush(d);
        }
        if d.category() == Category::NaN {
            0x7fff
        } else {
            d.to_bits() as u16
        }
    }
    if format == F16 {
        run::<Half>(format, operation, inputs, steps)
    } else {
        run::<BFloat>(format, operation, inputs, steps)
    }
}

/// Runs the instruction of `operation` on `inputs` in the low lane and `others` in the high one.
fn run(
    hfmt_v2: HFmtV2,
    operation: Operation,
    inputs: [u16; 3],
    others: [u16; 3],
    steps: Steps,
) -> [u16; 2] {
    let word = |i: usize| u32::from(others[i]) << 16 | u32::from(inputs[i]);
    let [a, b, c] = [word(0), word(1), word(2)];
    let Steps { ftz, sat, relu } = steps;
    let (neg, abs, hsel2) = (false, false, HSel2::H1H0);
    let d = match operation {
        Operation::Add => {
            let m = hadd2::Modifiers {
                ftz,
                sat,
                hfmt_v2,
                a_neg: neg,
                a_abs: abs,
                a_hsel2: hsel2,
                b_neg: neg,
                b_abs: abs,
                b_hsel2: hsel2,
            };
            hadd2(&m, &hadd2::Sources { a, b }).d
        }
        Operation::Multiply => {
            let m = hmul2::Modifiers {
                ftz,
                sat,
                hfmt_v2,
                a_neg: neg,
                a_abs: abs,
                a_hsel2: hsel2,
                b_neg: neg,
                b_abs: abs,
                b_hsel2: hsel2,
            };
            hmul2(&m, &hmul2::Sources { a, b }).d
        }
        _ => {
            let m = fused(hfmt_v2, steps);
            assert_eq!((m.relu, m.c_neg), (relu, false));
            hfma2(&m, &hfma2::Sources { a, b, c }).d
        }
    };
    [d as u16, (d >> 16) as u16]
}

fn fused(hfmt_v2: HFmtV2, Steps { ftz, sat, relu }: Steps) -> hfma2::Modifiers {
    let hsel2 = HSel2::H1H0;
    hfma2::Modifiers {
        ftz,
        sat,
        relu,
        hfmt_v2,
        a_neg: false,
        a_abs: false,
        a_hsel2: hsel2,
        b_neg: false,
        b_abs: false,
        b_hsel2: hsel2,
        c_neg: false,
        c_abs: false,
        c_hsel2: hsel2,
    }
}

fn check(hfmt_v2: HFmtV2, format: Format, operation: Operation, inputs: [u16; 3], steps: Steps) {
    let others = [inputs[1], inputs[2], inputs[0]];
    let found = run(hfmt_v2, operation, inputs, others, steps);
    let wanted = [inputs, others].map(|lane| expected(format, operation, lane, steps));
    assert_eq!(
        found, wanted,
        "{operation:?} {hfmt_v2:?} {inputs:#06x?} {steps:?}"
    );
}

/// `.RELU` exists in HFMA2 only.
fn has(operation: Operation, steps: Steps) -> bool {
    operation == Operation::Fused || steps.relu == RELU::NoRelu
}

const OPERATIONS: [Operation; 3] = [Operation::Add, Operation::Multiply, Operation::Fused];

#[test]
fn every_input_with_special_partners() {
    for (hfmt_v2, format) in FORMATS {
        let one = format.one() as u16;
        for steps in all_steps() {
            for operation in OPERATIONS.into_iter().filter(|&o| has(o, steps)) {
                for x in 0..=u16::MAX {
                    // With neutral partners the steps themselves show; with the second set every result is rounded.
                    check(
                        hfmt_v2,
                        format,
                        operation,
                        [
                            x,
                            if operation == Operation::Add {
                                0x8000
                            } else {
                                one
                            },
                            0x8000,
                        ],
                        steps,
                    );
                    check(hfmt_v2, format, operation, [x, one + 1, x ^ 0x8001], steps);
                }
            }
        }
    }
}

#[test]
fn corners_in_all_combinations() {
    for (hfmt_v2, format) in FORMATS {
        let corners: Vec<u16> = corners(format).into_iter().map(|x| x as u16).collect();
        for &a in &corners {
            for &b in &corners {
                for steps in all_steps() {
                    check(
                        hfmt_v2,
                        format,
                        Operation::Add,
                        [a, b, 0],
                        Steps {
                            relu: RELU::NoRelu,
                            ..steps
                        },
                    );
                    check(
                        hfmt_v2,
                        format,
                        Operation::Multiply,
                        [a, b, 0],
                        Steps {
                            relu: RELU::NoRelu,
                            ..steps
                        },
                    );
                }
                for &c in &corners {
                    check(hfmt_v2, format, Operation::Fused, [a, b, c], PLAIN);
                }
            }
        }
    }
}

#[test]
fn random_inputs() {
    let mut random = Random::for_test("half");
    let steps = all_steps();
    for (hfmt_v2, format) in FORMATS {
        for operation in OPERATIONS {
            let cases = if operation == Operation::Fused {
                200_000
            } else {
                100_000
            };
            for _ in 0..cases {
                let inputs = [0; 3].map(|_| random_number(&mut random, format) as u16);
                let steps = if random.flip() {
                    PLAIN
                } else {
                    random.pick(&steps)
                };
                if has(operation, steps) {
                    check(hfmt_v2, format, operation, inputs, steps);
                }
            }
        }
    }
}

/// A fused result decided by a bit far below double precision: the reason for rounding to odd.
#[test]
fn a_tie_is_broken_by_the_smallest_addend() {
    // (1 + 2^-7) * (1 + 2^-1) = 1.5 + 3 * 2^-8: exactly between two numbers; the least bf16 pulls it up, its negative
    // down.
    let inputs = |c| [0x3f81, 0x3fc0, c];
    assert_eq!(
        run(
            HFmtV2::Bf16V2,
            Operation::Fused,
            inputs(0x0001),
            [0; 3],
            PLAIN
        )[0],
        0x3fc2
    );
    assert_eq!(
        run(
            HFmtV2::Bf16V2,
            Operation::Fused,
            inputs(0x8001),
            [0; 3],
            PLAIN
        )[0],
        0x3fc1
    );
    assert_eq!(
        run(
            HFmtV2::Bf16V2,
            Operation::Fused,
            inputs(0x0000),
            [0; 3],
            PLAIN
        )[0],
        0x3fc2,
        "the tie itself goes to even"
    );
}

#[test]
fn operand_modifiers_in_order() {
    let mut random = Random::for_test("hsel2");
    let prepare = |word: u32, hsel2: HSel2, abs: bool, neg: bool| {
        let halves = [word as u16, (word >> 16) as u16];
        let chosen = match hsel2 {
            HSel2::H1H0 => halves,
            HSel2::H0H0 => [halves[0]; 2],
            HSel2::H1H1 => [halves[1]; 2],
        };
        chosen.map(|half| {
            let x = Half::from_bits(half.into());
            let x = if abs { x.abs() } else { x };
            (if neg { -x } else { x }).to_bits() as u16
        })
    };
    for _ in 0..50_000 {
        let words = [0; 3].map(|_| {
            let half = |random: &mut Random| random_number(random, F16) as u32;
            half(&mut random) << 16 | half(&mut random)
        });
        let selections = [0; 3].map(|_| random.pick(&all::<HSel2>()));
        let (abs, neg) = ([0; 3].map(|_| random.flip()), [0; 3].map(|_| random.flip()));
        let prepared: Vec<[u16; 2]> = (0..3)
            .map(|i| prepare(words[i], selections[i], abs[i], neg[i]))
            .collect();
        let lanes = [0, 1].map(|lane| [prepared[0][lane], prepared[1][lane], prepared[2][lane]]);
        let [a, b, c] = words;
        let m = hfma2::Modifiers {
            a_neg: neg[0],
            a_abs: abs[0],
            a_hsel2: selections[0],
            b_neg: neg[1],
            b_abs: abs[1],
            b_hsel2: selections[1],
            c_neg: neg[2],
            c_abs: abs[2],
            c_hsel2: selections[2],
            ..fused(HFmtV2::F16V2, PLAIN)
        };
        let wanted = lanes.map(|lane| expected(F16, Operation::Fused, lane, PLAIN));
        let d = hfma2(&m, &hfma2::Sources { a, b, c }).d;
        assert_eq!([d as u16, (d >> 16) as u16], wanted);

        // The same preparation feeds the two-operand instructions.
        let (ftz, sat, hfmt_v2) = (FPFtz::NoFtz, FPSat::NoSat, HFmtV2::F16V2);
        let (a_neg, a_abs, a_hsel2) = (neg[0], abs[0], selections[0]);
        let (b_neg, b_abs, b_hsel2) = (neg[1], abs[1], selections[1]);
        let m = hadd2::Modifiers {
            ftz,
            sat,
            hfmt_v2,
            a_neg,
            a_abs,
            a_hsel2,
            b_neg,
            b_abs,
            b_hsel2,
        };
        let d = hadd2(&m, &hadd2::Sources { a, b }).d;
        assert_eq!(
            [d as u16, (d >> 16) as u16],
            lanes.map(|lane| expected(F16, Operation::Add, lane, PLAIN))
        );
        let m = hmul2::Modifiers {
            ftz,
            sat,
            hfmt_v2,
            a_neg,
            a_abs,
            a_hsel2,
            b_neg,
            b_abs,
            b_hsel2,
        };
        let d = hmul2(&m, &hmul2::Sources { a, b }).d;
        assert_eq!(
            [d as u16, (d >> 16) as u16],
            lanes.map(|lane| expected(F16, Operation::Multiply, lane, PLAIN))
        );
    }
}

/// The order of two halves by the exact library, flushed first where asked.
fn order(format: Format, a: u16, b: u16, ftz: FPFtz) -> Option<Ordering> {
    fn run<F: Float>(a: u16, b: u16, ftz: FPFtz) -> Option<Ordering> {
        let [a, b] = [a, b].map(|x| F::from_bits(x.into()));
        if ftz == FPFtz::Ftz {
            flush(a).partial_cmp(&flush(b))
        } else {
            a.partial_cmp(&b)
        }
    }
    if format == F16 {
        run::<Half>(a, b, ftz)
    } else {
        run::<BFloat>(a, b, ftz)
    }
}

/// The comparisons of document 000, as the orders for which they hold.
pub fn holds(cmp: FCMPOp, order: Option<Ordering>) -> bool {
    use Ordering::{Equal, Greater, Less};
    let orders: &[Option<Ordering>] = match cmp {
        FCMPOp::Eq => &[Some(Equal)],
        FCMPOp::Ne => &[Some(Less), Some(Greater)],
        FCMPOp::Lt => &[Some(Less)],
        FCMPOp::Le => &[Some(Less), Some(Equal)],
        FCMPOp::Gt => &[Some(Greater)],
        FCMPOp::Ge => &[Some(Greater), Some(Equal)],
        FCMPOp::Equ => &[Some(Equal), None],
        FCMPOp::Neu => &[Some(Less), Some(Greater), None],
        FCMPOp::Ltu => &[Some(Less), None],
        FCMPOp::Leu => &[Some(Less), Some(Equal), None],
        FCMPOp::Gtu => &[Some(Greater), None],
        FCMPOp::Geu => &[Some(Greater), Some(Equal), None],
        FCMPOp::Nan => &[None],
        FCMPOp::Num => &[Some(Less), Some(Equal), Some(Greater)],
    };
    orders.contains(&order)
}

/// The Boolean operations of document 000.
pub fn boolean(lop: LOPOp, x: bool, y: bool) -> bool {
    match lop {
        LOPOp::And => x && y,
        LOPOp::Or => x || y,
        LOPOp::Xor => x != y,
    }
}

#[test]
fn comparisons() {
    let mut random = Random::for_test("hsetp2");
    for (hfmt_v2, format) in FORMATS {
        let corners = corners(format);
        for case in 0..1u32 << 16 {
            let low = case as u16;
            let partner = if case % 2 == 0 {
                random.pick(&corners) as u16
            } else {
                random_number(&mut random, format) as u16
            };
            let pairs = [
                (low, partner),
                (partner, random.pick(&[low, low ^ 0x8000, partner])),
            ];
            let [a, b] = [0, 1].map(|i| {
                let half = |pair: (u16, u16)| u32::from(if i == 0 { pair.0 } else { pair.1 });
                half(pairs[1]) << 16 | half(pairs[0])
            });
            let (a_neg, a_abs, a_hsel2) = (false, false, HSel2::H1H0);
            let (b_neg, b_abs, b_hsel2) = (false, false, HSel2::H1H0);
            let (ftz, pp) = (random.pick(&all::<FPFtz>()), random.flip());
            for &cmp in &all::<FCMPOp>() {
                let lop = random.pick(&all::<LOPOp>());
                let wanted =
                    pairs.map(|(x, y)| boolean(lop, holds(cmp, order(format, x, y, ftz)), pp));
                let m = hsetp2::Modifiers {
                    ftz,
                    lop,
                    cmp,
                    hfmt_v2,
                    a_neg,
                    a_abs,
                    a_hsel2,
                    b_neg,
                    b_abs,
                    b_hsel2,
                };
                let found = hsetp2(&m, &hsetp2::Sources { a, b, pp });
                assert_eq!([found.pu, found.pv], wanted, "{m:?} {a:#x} {b:#x}");
                for (bval, one) in [
                    (BVal::Bm, 0xffff),
                    (BVal::Bf, if format == F16 { 0x3c00 } else { 0x3f80 }),
                ] {
                    let m = hset2::Modifiers {
                        ftz,
                        lop,
                        cmp,
                        bval,
                        hfmt_v2,
                        a_neg,
                        a_abs,
                        a_hsel2,
                        b_neg,
                        b_abs,
                        b_hsel2,
                    };
                    let lanes = wanted.map(|w| if w { one } else { 0 });
                    assert_eq!(
                        hset2(&m, &hset2::Sources { a, b, pp }).d,
                        lanes[1] << 16 | lanes[0]
                    );
                }
            }
        }
    }
}

#[test]
fn minimum_and_maximum() {
    let select = |format: Format, a: u16, b: u16, ftz: FPFtz, minimum: bool, nan: NAN| -> u16 {
        let is_nan = |x: u16| u64::from(x & 0x7fff) > format.infinity();
        let flush = |x: u16| {
            let subnormal = x & 0x7fff != 0 && u64::from(x & 0x7fff) < format.smallest_normal();
            if ftz == FPFtz::Ftz && subnormal {
                x & 0x8000
            } else {
                x
            }
        };
        let (a, b) = (flush(a), flush(b));
        match (is_nan(a), is_nan(b), nan) {
            (true, true, _) | (true, _, NAN::Nan) | (_, true, NAN::Nan) => 0x7fff,
            (true, false, _) => b,
            (false, true, _) => a,
            _ => {
                let less = match order(format, a, b, FPFtz::NoFtz) {
                    Some(Ordering::Equal) => a & 0x8000 != 0,
                    order => order == Some(Ordering::Less),
                };
                if less == minimum { a } else { b }
            }
        }
    };
    for (hfmt_v2, format) in FORMATS {
        for b in corners(format).into_iter().step_by(7) {
            for a in 0..=u16::MAX {
                let b = b as u16;
                for (ftz, minimum, nan) in [
                    (FPFtz::NoFtz, true, NAN::NoNan),
                    (FPFtz::NoFtz, false, NAN::NoNan),
                    (FPFtz::Ftz, a & 1 == 0, NAN::NoNan),
                    (FPFtz::NoFtz, a & 1 == 0, NAN::Nan),
                ] {
                    let m = hmnmx2::Modifiers {
                        ftz,
                        nan,
                        hfmt_v2,
                        a_neg: false,
                        a_abs: false,
                        a_hsel2: HSel2::H1H0,
                        b_neg: false,
                        b_abs: false,
                        b_hsel2: HSel2::H1H0,
                    };
                    let (high, low) = (
                        u32::from(b) << 16 | u32::from(a),
                        u32::from(a) << 16 | u32::from(b),
                    );
                    let d = hmnmx2(
                        &m,
                        &hmnmx2::Sources {
                            a: high,
                            b: low,
                            pp: minimum,
                        },
                    )
                    .d;
                    assert_eq!(
                        d as u16,
                        select(format, a, b, ftz, minimum, nan),
                        "{a:#x} {b:#x} {m:?}"
                    );
                    assert_eq!((d >> 16) as u16, select(format, b, a, ftz, minimum, nan));
                }
            }
        }
    }
}
