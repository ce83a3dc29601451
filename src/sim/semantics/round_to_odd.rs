//! Half precision and single precision through the host's double precision, rounded once.
//!
//! The product of two numbers with up to 24 significant bits is exact in 53 bits, and no exponent here leaves the range
//! of a double (the least is 2^-298). A sum of two such values may need more than 53 bits; rounding it to the nearest
//! double and then again to the narrow format could go wrong at a midpoint of the narrow format. So it is *rounded to
//! odd*: to the neighbouring double whose last bit is one, unless it is exact. Such a double lies on the same side of
//! every number with at most 52 bits as the true sum, midpoints included, and rounding it gives what rounding the true
//! sum would (Boldo and Melquiond, 2008; 53 bits are at least two more than 24). This holds for subnormal results too,
//! which merely have fewer bits.

use super::softfloat::{self, Format, Rounding};

/// `x + y` rounded to odd. Infinities and NaN are as in IEEE 754, and so is the sign of zero.
///
/// The error of the rounded sum is found exactly by six operations (Knuth's TwoSum; Møller 1965). If it is not zero and
/// the last bit of the sum is even, the other neighbour, on the error's side, is the odd one.
#[inline]
pub fn add_to_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    let y_part = sum - x;
    let error = (x - (sum - y_part)) + (y - y_part);
    let bits = sum.to_bits();
    if error == 0.0 || bits & 1 != 0 || !sum.is_finite() {
        return sum;
    }
    // An inexact sum of normal doubles is not zero; away from zero is one bit pattern up.
    f64::from_bits(if (error > 0.0) == (sum > 0.0) {
        bits + 1
    } else {
        bits - 1
    })
}

/// A 16-bit format: how it widens to and narrows from a double.
pub trait Half {
    /// Its layout.
    const FORMAT: Format;

    /// The double of the same value.
    fn widen(bits: u16) -> f64;

    /// The nearest number of the format, ties to even; every NaN becomes 0x7FFF (document 000).
    #[inline]
    fn narrow(x: f64) -> u16 {
        let precision = Self::FORMAT.precision;
        let bias = Self::FORMAT.one() >> (precision - 1);
        let sign = ((x.to_bits() >> 63) as u16) << 15;
        let magnitude = x.to_bits() & !(1 << 63);
        if magnitude > f64::INFINITY.to_bits() {
            return Self::FORMAT.nan as u16;
        }
        // The smallest normal number and the weight of the last bit below it.
        let smallest = (1023 - bias + 1) << 52;
        let narrow = if magnitude < smallest {
            // Adding 2^52 times that weight leaves a double whose last bit has it: the addition does the rounding.
            let anchor = smallest + (u64::from(52 - (precision - 1)) << 52);
            (f64::from_bits(magnitude) + f64::from_bits(anchor)).to_bits() - anchor
        } else {
            let dropped = 53 - precision;
            let half = (1 << (dropped - 1)) - 1 + (magnitude >> dropped & 1);
            (((magnitude + half) >> dropped) - ((1023 - bias) << (precision - 1)))
                .min(Self::FORMAT.infinity())
        };
        sign | narrow as u16
    }
}

/// IEEE 754 binary16.
pub struct Binary16;

/// bfloat16: the upper half of a binary32.
pub struct Bfloat16;

impl Half for Binary16 {
    const FORMAT: Format = softfloat::F16;

    #[inline]
    fn widen(bits: u16) -> f64 {
        let sign = u64::from(bits & 0x8000) << 48;
        let magnitude = u64::from(bits & 0x7fff);
        let wide = match magnitude {
            0..0x0400 => (magnitude as f64 * 2f64.powi(-24)).to_bits(),
            0x0400..0x7c00 => (magnitude << 42) + ((1023 - 15) << 52),
            _ => magnitude << 42 | f64::INFINITY.to_bits(),
        };
        f64::from_bits(sign | wide)
    }
}

impl Half for Bfloat16 {
    const FORMAT: Format = softfloat::BF16;

    #[inline]
    fn widen(bits: u16) -> f64 {
        f64::from(f32::from_bits(u32::from(bits) << 16))
    }
}

/// The double of the same value as `bits` of `format`; any format up to 53 bits of precision widens exactly.
#[inline]
pub fn widen(format: Format, bits: u64) -> f64 {
    match (format.exponent_bits, format.precision) {
        (8, 24) => f64::from(f32::from_bits(bits as u32)),
        (5, 11) => Binary16::widen(bits as u16),
        (8, 8) => Bfloat16::widen(bits as u16),
        // The format of a double, or of its upper bits.
        (_, precision) => f64::from_bits(bits << (53 - precision)),
    }
}

/// The number of `format` nearest to `x`, ties to even; NaN becomes the format's.
#[inline]
pub fn narrow(format: Format, x: f64) -> u64 {
    if x.is_nan() {
        return format.nan;
    }
    match (format.exponent_bits, format.precision) {
        (8, 24) => u64::from((x as f32).to_bits()),
        (5, 11) => u64::from(Binary16::narrow(x)),
        (8, 8) => u64::from(Bfloat16::narrow(x)),
        (_, 53) => x.to_bits(),
        _ => softfloat::convert(softfloat::F64, format, x.to_bits(), Rounding::NearestEven),
    }
}
