//! Exact floating point from `rustc_apfloat`, behind one interface for all formats, with corner cases and random
//! numbers.

use crate::sim::semantics::softfloat::{BF16, F16, F32, F64, Format, Rounding};
use crate::testing::Random;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float, Round};

/// The formats under test.
pub const FORMATS: [Format; 4] = [F16, BF16, F32, F64];

/// The four directions.
pub const ROUNDINGS: [Rounding; 4] = [
    Rounding::NearestEven,
    Rounding::Down,
    Rounding::Up,
    Rounding::TowardZero,
];

fn direction(rounding: Rounding) -> Round {
    match rounding {
        Rounding::NearestEven => Round::NearestTiesToEven,
        Rounding::Down => Round::TowardNegative,
        Rounding::Up => Round::TowardPositive,
        Rounding::TowardZero => Round::TowardZero,
    }
}

fn bits<F: Float>(x: F, format: Format) -> u64 {
    if x.is_nan() {
        format.nan
    } else {
        x.to_bits() as u64
    }
}

/// An operation on numbers of one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Add,
    Multiply,
    Fused,
    Integral,
}

/// The result of `operation` on the first operands it needs, with NaN made canonical.
pub fn compute(
    format: Format,
    operation: Operation,
    operands: [u64; 3],
    rounding: Rounding,
) -> u64 {
    fn run<F: Float>(
        format: Format,
        operation: Operation,
        operands: [u64; 3],
        round: Round,
    ) -> u64 {
        let [a, b, c] = operands.map(|x| F::from_bits(x.into()));
        let result = match operation {
            Operation::Add => a.add_r(b, round).value,
            Operation::Multiply => a.mul_r(b, round).value,
            Operation::Fused => a.mul_add_r(b, c, round).value,
            Operation::Integral => a.round_to_integral(round).value,
        };
        bits(result, format)
    }
    let round = direction(rounding);
    match format {
        F16 => run::<Half>(format, operation, operands, round),
        BF16 => run::<BFloat>(format, operation, operands, round),
        F32 => run::<Single>(format, operation, operands, round),
        _ => run::<Double>(format, operation, operands, round),
    }
}

/// `x` of format `from` in format `to`.
pub fn convert(from: Format, to: Format, x: u64, rounding: Rounding) -> u64 {
    use rustc_apfloat::FloatConvert;
    fn to_format<F>(x: F, to: Format, round: Round) -> u64
    where
        F: FloatConvert<Half> + FloatConvert<BFloat> + FloatConvert<Single> + FloatConvert<Double>,
    {
        let mut lossy = false;
        match to {
            F16 => bits::<Half>(x.convert_r(round, &mut lossy).value, to),
            BF16 => bits::<BFloat>(x.convert_r(round, &mut lossy).value, to),
            F32 => bits::<Single>(x.convert_r(round, &mut lossy).value, to),
            _ => bits::<Double>(x.convert_r(round, &mut lossy).value, to),
        }
    }
    let round = direction(rounding);
    match from {
        F16 => to_format(Half::from_bits(x.into()), to, round),
        BF16 => to_format(BFloat::from_bits(x.into()), to, round),
        F32 => to_format(Single::from_bits(x.into()), to, round),
        _ => to_format(Double::from_bits(x.into()), to, round),
    }
}

/// The integer that `x` rounds to, limited to `width` bits with or without sign; NaN gives 0.
pub fn to_integer(format: Format, x: u64, width: u32, signed: bool, rounding: Rounding) -> i128 {
    fn run<F: Float>(x: u64, width: usize, signed: bool, round: Round) -> i128 {
        let x = F::from_bits(x.into());
        let mut exact = false;
        if x.is_nan() {
            0
        } else if signed {
            x.to_i128_r(width, round, &mut exact).value
        } else {
            x.to_u128_r(width, round, &mut exact).value as i128
        }
    }
    let (width, round) = (width as usize, direction(rounding));
    match format {
        F16 => run::<Half>(x, width, signed, round),
        BF16 => run::<BFloat>(x, width, signed, round),
        F32 => run::<Single>(x, width, signed, round),
        _ => run::<Double>(x, width, signed, round),
    }
}

/// The number of `format` nearest to an integer in a direction.
pub fn from_integer(format: Format, value: i128, rounding: Rounding) -> u64 {
    let round = direction(rounding);
    match format {
        F16 => bits(Half::from_i128_r(value, round).value, format),
        BF16 => bits(BFloat::from_i128_r(value, round).value, format),
        F32 => bits(Single::from_i128_r(value, round).value, format),
        _ => bits(Double::from_i128_r(value, round).value, format),
    }
}

/// Numbers of `format` where things change: zeros, ends of the subnormal and normal ranges, powers of two and their
/// neighbours, infinities, NaN of both kinds; all with both signs.
pub fn corners(format: Format) -> Vec<u64> {
    let (one, last) = (format.one(), format.smallest_normal());
    let mut magnitudes = vec![0, 1, 2, 3, last / 2, last - 1, last, last + 1, 2 * last];
    for power in [
        0,
        1,
        2,
        format.precision as u64 - 1,
        format.precision as u64,
        format.precision as u64 + 1,
    ] {
        let step = power * format.smallest_normal();
        magnitudes.extend([
            one + step,
            one + step + 1,
            one + step - 1,
            one - step,
            one - step + 1,
            one + step + last / 2,
        ]);
    }
    let infinity = format.infinity();
    magnitudes.extend([
        infinity - 2,
        infinity - 1,
        infinity,
        infinity + 1,
        infinity + last / 2,
        infinity + last - 1,
    ]);
    magnitudes.sort_unstable();
    magnitudes.dedup();
    magnitudes
        .iter()
        .flat_map(|&m| [m, m | format.sign()])
        .collect()
}

/// A random number of `format`; often a corner, often with few significant bits, so that ties happen.
pub fn random_number(random: &mut Random, format: Format) -> u64 {
    let mask = format.sign() | (format.sign() - 1);
    match random.below(8) {
        0 => random.below(4) | if random.flip() { format.sign() } else { 0 },
        1 => random.bits() & mask & !(format.smallest_normal() / 8 - 1),
        // Near one: sums cancel and align.
        2 | 3 => {
            let exponent = random.below(2 * u64::from(format.precision) + 4);
            let bits = random.bits() & (format.smallest_normal() - 1);
            let fraction = if random.flip() {
                bits
            } else {
                bits & !(bits >> random.below(16))
            };
            let start = format
                .one()
                .saturating_sub(u64::from(format.precision) * format.smallest_normal());
            let magnitude =
                (start + exponent * format.smallest_normal() + fraction).min(format.infinity());
            magnitude | if random.flip() { format.sign() } else { 0 }
        }
        _ => random.bits() & mask,
    }
}
