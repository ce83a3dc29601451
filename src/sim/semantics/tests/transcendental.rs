//! MUFU: the documents' tables of special values as printed, and the accuracy of everything else.

use super::oracle::random_number;
use crate::sim::semantics::compare;
use crate::sim::semantics::operands::*;
use crate::sim::semantics::softfloat::{self, BF16, F16, F32, F64, Format, Rounding};
use crate::sim::semantics::transcendental::accuracy;
use crate::sim::semantics::{AngleUnit, Readings, Reference};
use crate::testing::Random;

/// Legal pairs of function and type (document 003).
const LEGAL: [(MUFUOp, MUFUDType); 18] = [
    (MUFUOp::Cos, MUFUDType::F32),
    (MUFUOp::Sin, MUFUDType::F32),
    (MUFUOp::Ex2, MUFUDType::F32),
    (MUFUOp::Ex2, MUFUDType::F16),
    (MUFUOp::Ex2, MUFUDType::F16V2),
    (MUFUOp::Ex2, MUFUDType::Bf16),
    (MUFUOp::Ex2, MUFUDType::Bf16V2),
    (MUFUOp::Lg2, MUFUDType::F32),
    (MUFUOp::Rcp, MUFUDType::F32),
    (MUFUOp::Rcp, MUFUDType::F64),
    (MUFUOp::Rsq, MUFUDType::F32),
    (MUFUOp::Rsq, MUFUDType::F64),
    (MUFUOp::Sqrt, MUFUDType::F32),
    (MUFUOp::Tanh, MUFUDType::F32),
    (MUFUOp::Tanh, MUFUDType::F16),
    (MUFUOp::Tanh, MUFUDType::F16V2),
    (MUFUOp::Tanh, MUFUDType::Bf16),
    (MUFUOp::Tanh, MUFUDType::Bf16V2),
];

const HIGH_WORD: Format = Format {
    precision: 21,
    exponent_bits: 11,
    nan: 0x7fff_ffff,
};

fn format(dtype: MUFUDType) -> Format {
    match dtype {
        MUFUDType::F32 => Format {
            nan: 0x7fff_ffff,
            ..F32
        },
        MUFUDType::F64 => HIGH_WORD,
        MUFUDType::F16 | MUFUDType::F16V2 => F16,
        MUFUDType::Bf16 | MUFUDType::Bf16V2 => BF16,
    }
}

/// Runs MUFU on one input, in the upper lane where there are two.
fn run(reference: Reference, op: MUFUOp, dtype: MUFUDType, input: u64) -> u64 {
    let (b_hsel, b) = match dtype {
        MUFUDType::F32 | MUFUDType::F64 => (HSel::H0, input as u32),
        MUFUDType::F16 | MUFUDType::Bf16 => (HSel::H1, (input as u32) << 16 | 0x1234),
        MUFUDType::F16V2 | MUFUDType::Bf16V2 => (HSel::H0, (input as u32) << 16 | input as u32),
    };
    let m = mufu::Modifiers {
        mufuop: op,
        dtype,
        b_neg: false,
        b_abs: false,
        b_hsel,
    };
    let d = reference.mufu(&m, &mufu::Sources { b }).d;
    if matches!(dtype, MUFUDType::F16V2 | MUFUDType::Bf16V2) {
        assert_eq!(d >> 16, d & 0xffff, "both lanes compute alike");
        u64::from(d >> 16)
    } else {
        u64::from(d)
    }
}

/// A row's input: a value, or a class of numbers by a representative.
#[derive(Clone, Copy, Debug)]
enum In {
    Infinity(bool),
    Zero(bool),
    NegativeNormal,
    Subnormal(bool),
    Nan,
}

/// A row's output.
#[derive(Clone, Copy, Debug)]
enum Out {
    Infinity(bool),
    Zero(bool),
    One(bool),
    Qnan,
}

/// The tables of document 003. The boolean is the sign. COS of zero as errata X-02 reads it.
fn table(op: MUFUOp, dtype: MUFUDType) -> Vec<(In, Out)> {
    const P: bool = false;
    const N: bool = true;
    use In::{NegativeNormal, Subnormal};
    match (op, dtype) {
        (MUFUOp::Cos, _) => vec![
            (In::Infinity(P), Out::Qnan),
            (In::Infinity(N), Out::Qnan),
            (In::Zero(N), Out::One(P)),
            (In::Zero(P), Out::One(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Sin, _) => vec![
            (In::Infinity(P), Out::Qnan),
            (In::Infinity(N), Out::Qnan),
            (In::Zero(N), Out::Zero(N)),
            (In::Zero(P), Out::Zero(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Ex2, _) => vec![
            (In::Infinity(N), Out::Zero(P)),
            (In::Zero(P), Out::One(P)),
            (In::Zero(N), Out::One(P)),
            (In::Infinity(P), Out::Infinity(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Lg2, _) => vec![
            (In::Infinity(N), Out::Qnan),
            (NegativeNormal, Out::Qnan),
            (Subnormal(N), Out::Qnan),
            (In::Zero(P), Out::Infinity(N)),
            (In::Zero(N), Out::Infinity(N)),
            (In::Infinity(P), Out::Infinity(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Rcp, MUFUDType::F64) => vec![
            (In::Infinity(N), Out::Zero(N)),
            (Subnormal(N), Out::Infinity(N)),
            (In::Zero(N), Out::Infinity(N)),
            (In::Zero(P), Out::Infinity(P)),
            (Subnormal(P), Out::Infinity(P)),
            (In::Infinity(P), Out::Zero(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Rcp, _) => vec![
            (In::Infinity(N), Out::Zero(N)),
            (In::Zero(N), Out::Infinity(N)),
            (In::Zero(P), Out::Infinity(P)),
            (In::Infinity(P), Out::Zero(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Rsq, MUFUDType::F64) => vec![
            (In::Infinity(N), Out::Qnan),
            (NegativeNormal, Out::Qnan),
            (Subnormal(N), Out::Infinity(N)),
            (In::Zero(N), Out::Infinity(N)),
            (In::Zero(P), Out::Infinity(P)),
            (Subnormal(P), Out::Infinity(P)),
            (In::Infinity(P), Out::Zero(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Rsq, _) => vec![
            (In::Infinity(N), Out::Qnan),
            (NegativeNormal, Out::Qnan),
            (Subnormal(N), Out::Qnan),
            (In::Zero(N), Out::Infinity(N)),
            (In::Zero(P), Out::Infinity(P)),
            (In::Infinity(P), Out::Zero(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Sqrt, _) => vec![
            (In::Infinity(N), Out::Qnan),
            (NegativeNormal, Out::Qnan),
            (Subnormal(N), Out::Qnan),
            (In::Zero(N), Out::Zero(N)),
            (In::Zero(P), Out::Zero(P)),
            (In::Infinity(P), Out::Infinity(P)),
            (In::Nan, Out::Qnan),
        ],
        (MUFUOp::Tanh, _) => vec![
            (In::Infinity(N), Out::One(N)),
            (In::Zero(N), Out::Zero(N)),
            (In::Zero(P), Out::Zero(P)),
            (In::Infinity(P), Out::One(P)),
            (In::Nan, Out::Qnan),
        ],
    }
}

#[test]
fn special_values_with_and_without_perturbation() {
    let mut random = Random::for_test("mufu specials");
    for (op, dtype) in LEGAL {
        let format = format(dtype);
        let sign = |negative: bool| if negative { format.sign() } else { 0 };
        let fraction = format.smallest_normal() - 1;
        for (input, output) in table(op, dtype) {
            for _ in 0..200 {
                let noise = random.bits();
                let bits = match input {
                    In::Infinity(negative) => format.infinity() | sign(negative),
                    In::Zero(negative) => sign(negative),
                    In::NegativeNormal => {
                        let magnitude = noise % (format.infinity() - format.smallest_normal());
                        (magnitude + format.smallest_normal()) | format.sign()
                    }
                    In::Subnormal(negative) => (noise & fraction).max(1) | sign(negative),
                    In::Nan => {
                        format.infinity() | (noise & fraction).max(1) | sign(noise >> 63 != 0)
                    }
                };
                let wanted = match output {
                    Out::Infinity(negative) => format.infinity() | sign(negative),
                    Out::Zero(negative) => sign(negative),
                    Out::One(negative) => format.one() | sign(negative),
                    Out::Qnan => format.nan,
                };
                for perturbation in [None, Some(noise)] {
                    let reference = Reference {
                        perturbation,
                        ..Reference::default()
                    };
                    assert_eq!(
                        run(reference, op, dtype, bits),
                        wanted,
                        "{op:?} {dtype:?} {bits:#x} {input:?}"
                    );
                }
            }
        }
    }
}

/// The function by another route where there is one.
fn oracle(op: MUFUOp, x: f64) -> f64 {
    match op {
        MUFUOp::Cos => 1.0 - 2.0 * (x / 2.0).sin().powi(2),
        MUFUOp::Sin => 2.0 * (x / 2.0).sin() * (x / 2.0).cos(),
        MUFUOp::Ex2 => 2f64.powf(x),
        MUFUOp::Lg2 => x.ln() / std::f64::consts::LN_2,
        MUFUOp::Rcp => x.recip(),
        MUFUOp::Rsq => x.powf(-0.5),
        MUFUOp::Sqrt => x.powf(0.5),
        MUFUOp::Tanh => {
            let e = (2.0 * x).exp_m1();
            if e.is_infinite() { 1.0 } else { e / (e + 2.0) }
        }
    }
}

#[test]
fn results_lie_within_the_stated_accuracy() {
    let mut random = Random::for_test("mufu");
    let widen =
        |format, bits| f64::from_bits(softfloat::convert(format, F64, bits, Rounding::NearestEven));
    let narrow =
        |format, x: f64| softfloat::convert(F64, format, x.to_bits(), Rounding::NearestEven);
    for (op, dtype) in LEGAL {
        let format = format(dtype);
        let exhaustive = format.precision < 12;
        let (mut moved, mut count) = (0, 0);
        for case in 0..if exhaustive { 1 << 16 } else { 40_000 } {
            let bits = if exhaustive {
                case
            } else {
                random_number(&mut random, format)
            };
            let x = widen(format, bits);
            let flushed =
                dtype == MUFUDType::F64 && compare::flushed(format, &bits, FPFtz::Ftz) != bits;
            let outside = x.is_nan() || x.is_infinite() || x == 0.0 || flushed;
            let undefined = x < 0.0 && matches!(op, MUFUOp::Lg2 | MUFUOp::Rsq | MUFUOp::Sqrt);
            // Beyond 2^20 the oracle for angles itself loses digits.
            let far = matches!(op, MUFUOp::Sin | MUFUOp::Cos) && x.abs() > 1048576.0;
            if outside || undefined || far {
                continue;
            }
            let value = oracle(op, x);
            let nearest = run(Reference::default(), op, dtype, bits);
            let largest = widen(format, format.infinity() - 1);
            if narrow(format, value.abs()) == format.infinity() {
                assert_eq!(
                    nearest & !format.sign(),
                    format.infinity(),
                    "{op:?} {dtype:?} {bits:#x}"
                );
                continue;
            }
            // The spacing of the format at the value, from its neighbours.
            let toward_zero =
                softfloat::convert(F64, format, value.abs().to_bits(), Rounding::TowardZero);
            let ulp = widen(format, toward_zero + 1) - widen(format, toward_zero);
            let slack =
                1e-9 * ulp + value.abs() * 1e-14 + f64::from(u8::from(op == MUFUOp::Lg2)) * 1e-15;
            let distance = |bits| (widen(format, bits) - value).abs();
            assert!(
                distance(nearest) <= ulp / 2.0 + slack || ulp.is_infinite(),
                "{op:?} {dtype:?} {bits:#x}"
            );

            let seed = random.bits();
            let reference = Reference {
                perturbation: Some(seed),
                ..Reference::default()
            };
            let perturbed = run(reference, op, dtype, bits);
            assert_eq!(
                perturbed,
                run(reference, op, dtype, bits),
                "a pure function"
            );
            let bound = (accuracy(op, dtype).ulps * ulp).max(accuracy(op, dtype).absolute);
            assert!(
                distance(perturbed) <= bound + slack,
                "{op:?} {dtype:?} {bits:#x} -> {perturbed:#x}"
            );
            assert!(widen(format, perturbed).abs() <= largest);
            count += 1;
            moved += u32::from(perturbed != nearest);
        }
        assert!(
            moved * 10 > count,
            "{op:?} {dtype:?}: {moved} of {count} moved"
        );
    }
}

#[test]
fn operand_modifiers_and_readings() {
    let run = |readings, mufuop, dtype, b_neg, b_abs, b_hsel, b| {
        let m = mufu::Modifiers {
            mufuop,
            dtype,
            b_neg,
            b_abs,
            b_hsel,
        };
        Reference {
            readings,
            perturbation: None,
        }
        .mufu(&m, &mufu::Sources { b })
        .d
    };
    let readings = Readings::default();
    let minus_four = (-4f32).to_bits();
    let sqrt = |neg, abs| {
        run(
            readings,
            MUFUOp::Sqrt,
            MUFUDType::F32,
            neg,
            abs,
            HSel::H0,
            minus_four,
        )
    };
    assert_eq!(sqrt(false, false), 0x7fff_ffff);
    assert_eq!(sqrt(true, false), 2f32.to_bits());
    assert_eq!(sqrt(false, true), 2f32.to_bits());
    assert_eq!(
        sqrt(true, true),
        0x7fff_ffff,
        "absolute value before negation"
    );
    let half = |hsel| {
        run(
            readings,
            MUFUOp::Ex2,
            MUFUDType::F16,
            false,
            false,
            hsel,
            0x4000_3c00,
        )
    };
    assert_eq!(
        (half(HSel::H0), half(HSel::H1)),
        (0x4000, 0x4400),
        "2^1 and 2^2, the upper half zero"
    );
    assert_eq!(
        run(
            readings,
            MUFUOp::Ex2,
            MUFUDType::F16V2,
            false,
            false,
            HSel::H0,
            0x4000_7e00
        ),
        0x4400_7fff
    );
    // High words of 4.0 and of its reciprocal and inverse root.
    let high = |op| {
        run(
            readings,
            op,
            MUFUDType::F64,
            false,
            false,
            HSel::H0,
            0x4010_0000,
        )
    };
    assert_eq!(
        (high(MUFUOp::Rcp), high(MUFUOp::Rsq)),
        (0x3fd0_0000, 0x3fe0_0000)
    );
    let turns = Readings {
        angle: AngleUnit::Turns,
        ..readings
    };
    let quarter = |readings| {
        run(
            readings,
            MUFUOp::Sin,
            MUFUDType::F32,
            false,
            false,
            HSel::H0,
            0.25f32.to_bits(),
        )
    };
    assert_eq!(f32::from_bits(quarter(turns)), 1.0);
    assert_eq!(f32::from_bits(quarter(readings)), 0.247_403_96);
}
