//! Floating-point numbers as exact integers: any operation in any format and direction, rounded once.
//!
//! A finite number is `± significand * 2^exponent` with a 128-bit significand ([`Exact`]). A product of two numbers of
//! any format here fits (106 bits), so multiplication is exact. A sum is exact, or is *rounded to odd* at 123 bits or
//! more: what lies below the last bit is kept as its being odd. [`round`] then rounds the exact value to the format.
//! Rounding to odd first does not change that result, because 123 bits are at least two more than any format has (Boldo
//! and Melquiond, "Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
//!
//! Nothing here depends on the host's floating point. The common cases have faster ways ([`super::round_to_odd`]),
//! which the tests compare with this one.

use super::compare;
use super::operands::FPRound;

/// A binary interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the significand, the hidden one included.
    pub precision: u32,
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// The NaN that operations return.
    pub nan: u64,
}

/// IEEE 754 binary16. The NaN is documented (document 000).
pub const F16: Format = Format {
    precision: 11,
    exponent_bits: 5,
    nan: 0x7fff,
};
/// bfloat16. The NaN is documented (document 000).
pub const BF16: Format = Format {
    precision: 8,
    exponent_bits: 8,
    nan: 0x7fff,
};
/// IEEE 754 binary32. The NaN is assigned: the one that Cranelift writes `+NaN`.
pub const F32: Format = Format {
    precision: 24,
    exponent_bits: 8,
    nan: 0x7fc0_0000,
};
/// IEEE 754 binary64. The NaN is assigned: the one that Cranelift writes `+NaN`.
pub const F64: Format = Format {
    precision: 53,
    exponent_bits: 11,
    nan: 0x7ff8_0000_0000_0000,
};

impl Format {
    /// The sign bit.
    #[inline(always)]
    pub const fn sign(self) -> u64 {
        1 << (self.precision - 1 + self.exponent_bits)
    }

    /// The bits of +infinity; those of a NaN without its sign are greater, those of a number smaller.
    #[inline(always)]
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << (self.precision - 1)
    }

    /// The bits of the smallest normal number.
    #[inline(always)]
    pub const fn smallest_normal(self) -> u64 {
        1 << (self.precision - 1)
    }

    /// The exponent of the smallest normal number.
    pub const fn min_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    /// The bits of 1.0.
    #[inline(always)]
    pub const fn one(self) -> u64 {
        ((1 << (self.exponent_bits - 1)) - 1) << (self.precision - 1)
    }

    /// Whether `bits` are a NaN.
    #[inline(always)]
    pub fn is_nan(self, bits: u64) -> bool {
        compare::is_nan(self, &bits)
    }

    /// `bits` limited to 0..1 (`.SAT`): negative numbers, −0 and NaN become +0.
    #[inline(always)]
    pub fn saturate(self, bits: u64) -> u64 {
        if bits & self.sign() != 0 || self.is_nan(bits) {
            0
        } else if bits > self.one() {
            self.one()
        } else {
            bits
        }
    }
}

/// The direction of a rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest; of two equally near ones to the even.
    NearestEven,
    /// Toward minus infinity.
    Down,
    /// Toward plus infinity.
    Up,
    /// Toward zero.
    TowardZero,
}

impl From<FPRound> for Rounding {
    fn from(rnd: FPRound) -> Self {
        match rnd {
            FPRound::Rn => Self::NearestEven,
            FPRound::Rm => Self::Down,
            FPRound::Rp => Self::Up,
            FPRound::Rz => Self::TowardZero,
        }
    }
}

impl Rounding {
    /// Whether the magnitude grows, given the last bit kept and how the rest compares with one half of it. `rest` is
    /// `None` for none.
    fn increments(self, negative: bool, odd: bool, rest: Option<std::cmp::Ordering>) -> bool {
        let Some(rest) = rest else { return false };
        match self {
            Self::NearestEven => rest.is_gt() || (rest.is_eq() && odd),
            Self::Down => negative,
            Self::Up => !negative,
            Self::TowardZero => false,
        }
    }
}

/// A finite number: `significand * 2^exponent`, negated if `negative`. A significand of 0 is a zero with a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exact {
    /// Its sign.
    pub negative: bool,
    /// Its digits.
    pub significand: u128,
    /// The weight of the significand's last bit, as a power of two.
    pub exponent: i32,
}

/// What the bits of a format stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Not a number; sign and payload do not matter.
    Nan,
    /// An infinity.
    Infinite {
        /// Its sign.
        negative: bool,
    },
    /// Everything else.
    Finite(Exact),
}

/// The number that `bits` stand for. Bits above the format are ignored.
pub fn decode(format: Format, bits: u64) -> Number {
    let negative = bits & format.sign() != 0;
    let magnitude = bits & (format.sign() - 1);
    if magnitude >= format.infinity() {
        return if magnitude == format.infinity() {
            Number::Infinite { negative }
        } else {
            Number::Nan
        };
    }
    let fraction = magnitude & (format.smallest_normal() - 1);
    let field = (magnitude >> (format.precision - 1)) as i32;
    let (hidden, exponent) = if field == 0 {
        (0, 1)
    } else {
        (format.smallest_normal(), field)
    };
    Number::Finite(Exact {
        negative,
        significand: u128::from(fraction | hidden),
        exponent: exponent - 1 + format.min_exponent() - (format.precision as i32 - 1),
    })
}

/// `significand >> shift`, and how what falls off compares with half of the last bit kept (`None`: nothing but zeros
/// fell off).
fn split(significand: u128, shift: u32) -> (u128, Option<std::cmp::Ordering>) {
    if shift > 128 {
        return (0, (significand != 0).then_some(std::cmp::Ordering::Less));
    }
    let kept = significand.checked_shr(shift).unwrap_or(0);
    let rest = significand & 1u128.checked_shl(shift).map_or(u128::MAX, |bit| bit - 1);
    if rest == 0 {
        return (kept, None);
    }
    (kept, Some(rest.cmp(&(1u128 << (shift - 1)))))
}

/// The number of `format` that `x` rounds to, as bits.
///
/// Beyond the greatest finite number the result is infinity or, where the direction points back, that number.
pub fn round(format: Format, x: Exact, rounding: Rounding) -> u64 {
    let sign = if x.negative { format.sign() } else { 0 };
    if x.significand == 0 {
        return sign;
    }
    let leading = x.exponent + 127 - x.significand.leading_zeros() as i32;
    let last = leading.max(format.min_exponent()) - (format.precision as i32 - 1);
    let shift = last - x.exponent;
    let mut kept = if shift <= 0 {
        x.significand << -shift
    } else {
        let (kept, rest) = split(x.significand, shift as u32);
        kept + u128::from(rounding.increments(x.negative, kept & 1 != 0, rest))
    } as u64;
    // `last` is the exponent field less one, counted from the smallest; adding the significand completes it, whether
    // its top bit is the hidden one, is missing (subnormal), or has just been carried out of.
    let field = (last - (format.min_exponent() - (format.precision as i32 - 1))) as u64;
    kept += field << (format.precision - 1);
    if kept < format.infinity() {
        return sign | kept;
    }
    let toward_infinity = match rounding {
        Rounding::NearestEven => true,
        Rounding::Down => x.negative,
        Rounding::Up => !x.negative,
        Rounding::TowardZero => false,
    };
    sign | if toward_infinity {
        format.infinity()
    } else {
        format.infinity() - 1
    }
}

/// `x * y`, exactly. Both significands must be below 2^64, as those of all formats are.
fn product(x: Exact, y: Exact) -> Exact {
    Exact {
        negative: x.negative != y.negative,
        significand: x.significand * y.significand,
        exponent: x.exponent + y.exponent,
    }
}

/// `x + y`, exactly, or rounded to odd at 123 or more bits. The sign of an exact zero is what `rounding` demands.
///
/// Both significands must be below 2^106. Both are brought to bit 125. The smaller number is then shifted to the
/// other's weight; what falls off its end makes its last bit odd. The greater one's 20 low bits are zero, so the sum is
/// odd exactly where something was lost, and lies on the same side of every number of up to 123 bits as the true sum.
fn sum(x: Exact, y: Exact, rounding: Rounding) -> Exact {
    if x.significand == 0 || y.significand == 0 {
        return match (x.significand, y.significand) {
            (0, 0) => Exact {
                negative: zero_sign(x.negative, y.negative, rounding),
                ..x
            },
            (0, _) => y,
            _ => x,
        };
    }
    let normalize = |x: Exact| {
        let shift = x.significand.leading_zeros() - 2;
        Exact {
            significand: x.significand << shift,
            exponent: x.exponent - shift as i32,
            ..x
        }
    };
    let (x, y) = (normalize(x), normalize(y));
    let x_is_greater = (x.exponent, x.significand) >= (y.exponent, y.significand);
    let (great, small) = if x_is_greater { (x, y) } else { (y, x) };
    let (shifted, lost) = split(small.significand, great.exponent.abs_diff(small.exponent));
    let shifted = shifted | u128::from(lost.is_some());
    if great.negative == small.negative {
        return Exact {
            significand: great.significand + shifted,
            ..great
        };
    }
    let difference = great.significand - shifted;
    let negative = if difference == 0 {
        zero_sign(true, false, rounding)
    } else {
        great.negative
    };
    Exact {
        negative,
        significand: difference,
        exponent: great.exponent,
    }
}

/// The sign of the sum of two zeros, or of two numbers that cancel, with these signs.
fn zero_sign(x_negative: bool, y_negative: bool, rounding: Rounding) -> bool {
    if x_negative == y_negative {
        x_negative
    } else {
        rounding == Rounding::Down
    }
}

/// `a + b` in `format`.
pub fn add(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    match (decode(format, a), decode(format, b)) {
        (Number::Finite(a), Number::Finite(b)) => round(format, sum(a, b, rounding), rounding),
        (Number::Nan, _) | (_, Number::Nan) => format.nan,
        (Number::Infinite { negative: x }, Number::Infinite { negative: y }) if x != y => {
            format.nan
        }
        (Number::Infinite { negative }, _) | (_, Number::Infinite { negative }) => {
            infinity(format, negative)
        }
    }
}

/// `a * b` in `format`.
pub fn multiply(format: Format, a: u64, b: u64, rounding: Rounding) -> u64 {
    match multiply_numbers(decode(format, a), decode(format, b)) {
        Number::Nan => format.nan,
        Number::Infinite { negative } => infinity(format, negative),
        Number::Finite(x) => round(format, x, rounding),
    }
}

/// `a * b + c` in `format`, rounded once.
pub fn fused_multiply_add(format: Format, a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    match (
        multiply_numbers(decode(format, a), decode(format, b)),
        decode(format, c),
    ) {
        (Number::Finite(x), Number::Finite(y)) => round(format, sum(x, y, rounding), rounding),
        (Number::Nan, _) | (_, Number::Nan) => format.nan,
        (Number::Infinite { negative: x }, Number::Infinite { negative: y }) if x != y => {
            format.nan
        }
        (Number::Infinite { negative }, _) | (_, Number::Infinite { negative }) => {
            infinity(format, negative)
        }
    }
}

/// The product of two numbers, exactly.
fn multiply_numbers(x: Number, y: Number) -> Number {
    let negative_of = |n| match n {
        Number::Infinite { negative } | Number::Finite(Exact { negative, .. }) => negative,
        Number::Nan => false,
    };
    match (x, y) {
        (Number::Finite(x), Number::Finite(y)) => Number::Finite(product(x, y)),
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (Number::Finite(Exact { significand: 0, .. }), _)
        | (_, Number::Finite(Exact { significand: 0, .. })) => Number::Nan,
        _ => Number::Infinite {
            negative: negative_of(x) != negative_of(y),
        },
    }
}

fn infinity(format: Format, negative: bool) -> u64 {
    format.infinity() | if negative { format.sign() } else { 0 }
}

/// `bits` of format `from` in format `to`.
pub fn convert(from: Format, to: Format, bits: u64, rounding: Rounding) -> u64 {
    match decode(from, bits) {
        Number::Nan => to.nan,
        Number::Infinite { negative } => infinity(to, negative),
        Number::Finite(x) => round(to, x, rounding),
    }
}

/// The integer in `format`.
pub fn from_integer(format: Format, value: i128, rounding: Rounding) -> u64 {
    round(
        format,
        Exact {
            negative: value < 0,
            significand: value.unsigned_abs(),
            exponent: 0,
        },
        rounding,
    )
}
