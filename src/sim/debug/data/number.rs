//! Numbers of all formats, to be compared and written.

use std::cmp::Ordering;
use std::fmt;

/// A number as a variable or register has it, or as somebody writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer, a truth, a character, an address, an enumeration.
    Integer(i128),
    /// An integer that is larger than any of those.
    Large(u128),
    /// A float of binary16.
    Half(half::f16),
    /// A float of binary32.
    Single(f32),
    /// A float of binary64.
    Double(f64),
}

impl Number {
    /// An integer without a sign.
    pub fn unsigned(bits: u128) -> Number {
        i128::try_from(bits).map_or(Number::Large(bits), Number::Integer)
    }

    /// An integer of so many bits, 1 to 128, with a sign; those above are not looked at.
    pub fn signed(bits: u128, width: u32) -> Number {
        let unused = u128::BITS.saturating_sub(width).min(u128::BITS - 1);
        Number::Integer((bits << unused) as i128 >> unused)
    }

    /// How this compares with another number, which is rounded to the format of a float; none if one cannot say.
    pub fn compare(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => Some(a.cmp(&b)),
            (Number::Large(a), Number::Large(b)) => Some(a.cmp(&b)),
            (Number::Integer(_), Number::Large(_)) => Some(Ordering::Less),
            (Number::Large(_), Number::Integer(_)) => Some(Ordering::Greater),
            (Number::Half(a), b) => a.partial_cmp(&half::f16::from_f64(b.as_double())),
            (Number::Single(a), b) => a.partial_cmp(&(b.as_double() as f32)),
            (a, b) => a.as_double().partial_cmp(&b.as_double()),
        }
    }

    fn as_double(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Large(number) => number as f64,
            Number::Half(number) => number.to_f64(),
            Number::Single(number) => number.into(),
            Number::Double(number) => number,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Integer(number) => write!(f, "{number}"),
            Number::Large(number) => write!(f, "{number}"),
            Number::Half(number) => write!(f, "{:?}", number.to_f32()),
            Number::Single(number) => write!(f, "{number:?}"),
            Number::Double(number) => write!(f, "{number:?}"),
        }
    }
}
