//! Numbers of the assembly text: immediates written and read.
//!
//! Integers are decimal from −9 to 9, else hexadecimal. Floating-point immediates are the shortest decimal that reads
//! back; `-0`, `+INF`, `-INF`; a NaN is written as its bits. A hexadecimal literal of a floating-point operand is
//! always the bit pattern. Reading rounds once, from the decimal to the format, to nearest with ties to even.

#[cfg(feature = "asm")]
mod read;

#[cfg(feature = "asm")]
pub use read::{distance, is_hexadecimal, signed, unsigned};

use super::table::{FieldInfo, FieldType, FormInfo};
use std::cmp::Ordering;
use thiserror::Error;

/// Format of one floating-point literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// 16 bits, 5 of exponent.
    F16,
    /// 16 bits, 8 of exponent.
    Bf16,
    /// 32 bits.
    F32,
    /// The high word of 64 bits whose low word is 0.
    F64High,
}

/// How the immediate of a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImmediateFormat {
    /// One literal for the whole field.
    Scalar(FloatFormat),
    /// Two literals of 16 bits, the high half first (errata H-12).
    Pair(FloatFormat),
}

impl ImmediateFormat {
    /// The format of a floating-point field in `word`; none for other fields.
    ///
    /// Where the description lets another field decide (`CvtFImm(vb, hfmt_v2)`), the name of that field's member says
    /// it: `BF16_V2`.
    pub fn of(info: &FormInfo, field: &FieldInfo, word: u128) -> Option<ImmediateFormat> {
        let usual = match field.ty {
            FieldType::Float32 => ImmediateFormat::Scalar(FloatFormat::F32),
            FieldType::Half2 => ImmediateFormat::Pair(FloatFormat::F16),
            _ => return None,
        };
        let name = field.format_by.and_then(|by| {
            let by = &info.fields[by as usize];
            match by.ty {
                FieldType::Enum(members) => members.name_of(by.get(word)),
                _ => None,
            }
        });
        let Some(name) = name else { return Some(usual) };
        let (element, pair) = match name.strip_suffix("_V2") {
            Some(element) => (element, true),
            None => (name, false),
        };
        let element = match element {
            "F16" => FloatFormat::F16,
            "BF16" => FloatFormat::Bf16,
            "F64" | "F64H" => FloatFormat::F64High,
            _ => FloatFormat::F32,
        };
        Some(if pair {
            ImmediateFormat::Pair(element)
        } else {
            ImmediateFormat::Scalar(element)
        })
    }

    /// The text of the bits of a field.
    pub fn text(self, bits: u64) -> String {
        match self {
            ImmediateFormat::Scalar(format) => format
                .text(bits as u32)
                .unwrap_or_else(|| format!("{bits:#x}")),
            ImmediateFormat::Pair(format) => {
                let half = |bits: u64| {
                    format
                        .text(bits as u32 & 0xffff)
                        .unwrap_or_else(|| format!("{:#x}", bits & 0xffff))
                };
                format!("{}, {}", half(bits >> 16), half(bits))
            }
        }
    }
}

/// Why a literal has no value in its field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LiteralError {
    /// Not a number at all.
    #[error("`{0}` is no number")]
    NotANumber(String),
    /// A fraction where an integer is needed.
    #[cfg(feature = "asm")]
    #[error("`{0}` is no integer")]
    NotAnInteger(String),
    /// Outside the field.
    #[cfg(feature = "asm")]
    #[error("{value} is out of range, {low} to {high}")]
    OutOfRange {
        /// As written.
        value: String,
        /// Smallest value.
        low: String,
        /// Largest value.
        high: String,
    },
    /// A decimal beyond the largest finite number.
    #[error("`{0}` is larger than every finite number of the format; write INF for infinity")]
    TooLarge(String),
    /// An f64 with bits in its low word.
    #[error("`{0}` needs the low word of an f64, which the immediate does not hold")]
    LowWord(String),
}

impl FloatFormat {
    /// The shortest decimal of a bit pattern; none for what only bits can say: NaN, and 16-bit formats with other bits
    /// above.
    fn text(self, bits: u32) -> Option<String> {
        if matches!(self, FloatFormat::F16 | FloatFormat::Bf16) && bits >> 16 != 0 {
            return None;
        }
        let value = self.value(bits);
        if value.is_nan() {
            return None;
        }
        let sign = if value.is_sign_negative() { "-" } else { "" };
        if value.is_infinite() {
            return Some(format!("{}INF", if sign.is_empty() { "+" } else { sign }));
        }
        if value == 0.0 {
            return Some(format!("{sign}0"));
        }
        let magnitude = value.abs();
        let scientific = match self {
            FloatFormat::F32 => format!("{:e}", magnitude as f32),
            _ => (0..17)
                .map(|digits| format!("{magnitude:.digits$e}"))
                .find(|text| self.decimal(text) == Ok(bits & !self.sign_bit()))
                .unwrap_or_else(|| format!("{magnitude:e}")),
        };
        Some(format!("{sign}{}", plain(&scientific)))
    }

    fn sign_bit(self) -> u32 {
        match self {
            FloatFormat::F16 | FloatFormat::Bf16 => 1 << 15,
            FloatFormat::F32 | FloatFormat::F64High => 1 << 31,
        }
    }

    fn infinity(self) -> u32 {
        match self {
            FloatFormat::F16 => 0x7c00,
            FloatFormat::Bf16 => 0x7f80,
            FloatFormat::F32 => f32::INFINITY.to_bits(),
            FloatFormat::F64High => (f64::INFINITY.to_bits() >> 32) as u32,
        }
    }

    /// The value of a bit pattern; every format is exact in f64.
    fn value(self, bits: u32) -> f64 {
        match self {
            FloatFormat::F16 => half_value(bits as u16),
            FloatFormat::Bf16 => f32::from_bits(bits << 16).into(),
            FloatFormat::F32 => f32::from_bits(bits).into(),
            FloatFormat::F64High => f64::from_bits(u64::from(bits) << 32),
        }
    }

    /// The bits nearest to an unsigned decimal.
    fn decimal(self, text: &str) -> Result<u32, LiteralError> {
        let not_a_number = || LiteralError::NotANumber(text.to_string());
        let bits = match self {
            FloatFormat::F32 => text.parse::<f32>().map_err(|_| not_a_number())?.to_bits(),
            FloatFormat::F64High => {
                let bits = text.parse::<f64>().map_err(|_| not_a_number())?.to_bits();
                if bits as u32 != 0 {
                    return Err(LiteralError::LowWord(text.to_string()));
                }
                (bits >> 32) as u32
            }
            FloatFormat::F16 | FloatFormat::Bf16 => {
                let nearest: f64 = text.parse().map_err(|_| not_a_number())?;
                self.half(text, nearest)
            }
        };
        if bits == self.infinity() {
            Err(LiteralError::TooLarge(text.to_string()))
        } else {
            Ok(bits)
        }
    }

    /// The 16 bits nearest to a decimal, whose nearest f64 is known.
    ///
    /// A decimal just beside the middle of two halves becomes that middle in f64. So where the neighbours of the f64
    /// round differently, the decimal itself decides.
    fn half(self, text: &str, nearest: f64) -> u32 {
        if nearest == 0.0 || !nearest.is_finite() {
            return self.rounded(nearest);
        }
        let below = self.rounded(nearest.next_down());
        let above = self.rounded(nearest.next_up());
        if below == above {
            return below;
        }
        match compare_exactly(text, nearest) {
            Ordering::Less => below,
            Ordering::Equal => self.rounded(nearest),
            Ordering::Greater => above,
        }
    }

    /// The 16 bits nearest to a value that is not negative, ties to even.
    fn rounded(self, value: f64) -> u32 {
        let (mantissa, least) = match self {
            FloatFormat::F16 => (10, -14),
            _ => (7, -126),
        };
        if value.is_nan() {
            return self.infinity() | 1 << (mantissa - 1);
        }
        let exponent = (value.to_bits() >> 52) as i32 - 1023;
        let exponent = exponent.max(least);
        // In units of the last place; scaling by a power of two is exact.
        let units = (value * power_of_two(mantissa - exponent)).round_ties_even();
        let bits = ((exponent - least) as u32) << mantissa;
        (bits + units.min(f64::from(u16::MAX)) as u32).min(self.infinity())
    }
}

/// A power of two between the smallest and the largest normal number.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The value of a number in 16 bits.
fn half_value(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => mantissa * power_of_two(-24),
        _ => (mantissa + 1024.0) * power_of_two(exponent - 25),
    };
    if bits >> 15 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

/// How the exact value of a decimal compares to the f64 nearest to it.
fn compare_exactly(text: &str, nearest: f64) -> Ordering {
    // No f64 has more significant digits than this.
    digits_of(text).cmp(&digits_of(&format!("{nearest:.800e}")))
}

/// Decimal exponent and significant digits of a positive decimal, comparable by value.
fn digits_of(text: &str) -> (i64, Vec<u8>) {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let leading = all.iter().take_while(|d| **d == b'0').count();
    let mut digits = all[leading..].to_vec();
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    let exponent: i64 = exponent.parse().unwrap_or(0);
    (
        exponent.saturating_add(whole.len() as i64 - leading as i64),
        digits,
    )
}

/// `1.25e-1` as `0.125` where that is readable, without the `e0` otherwise.
fn plain(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_string();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        d => d,
    };
    match exponent {
        0..=15 => {
            let whole = exponent as usize + 1;
            if digits.len() <= whole {
                format!("{digits}{}", "0".repeat(whole - digits.len()))
            } else {
                format!("{}.{}", &digits[..whole], &digits[whole..])
            }
        }
        -5..0 => format!("0.{}{digits}", "0".repeat(-exponent as usize - 1)),
        _ if digits.len() == 1 => format!("{digits}e{exponent}"),
        _ => format!("{}.{}e{exponent}", &digits[..1], &digits[1..]),
    }
}

/// Decimal from −9 to 9, else hexadecimal.
pub fn integer_text(value: i64) -> String {
    match value {
        -9..=9 => value.to_string(),
        ..-9 => format!("-{:#x}", value.unsigned_abs()),
        _ => format!("{value:#x}"),
    }
}

/// The number in `width` bits of two's complement.
pub fn sign_extend(bits: u64, width: u32) -> i64 {
    let shift = 64 - width;
    ((bits << shift) as i64) >> shift
}

#[cfg(all(test, feature = "asm"))]
mod tests {
    use super::*;

    #[test]
    fn halves_have_their_values_and_the_nearest_is_taken() {
        for bits in 0..=0xffffu16 {
            let (ours, theirs) = (half_value(bits), half::f16::from_bits(bits).to_f64());
            assert!(
                ours == theirs || ours.is_nan() && theirs.is_nan(),
                "{bits:#x}"
            );
        }
        for format in [FloatFormat::F16, FloatFormat::Bf16] {
            for bits in 0..format.infinity() - 1 {
                let (low, high) = (format.value(bits), format.value(bits + 1));
                let middle = (low + high) / 2.0;
                let even = bits + bits % 2;
                assert_eq!(format.rounded(low), bits);
                assert_eq!(format.rounded(middle.next_down()), bits, "{bits:#x}");
                assert_eq!(format.rounded(middle), even, "{bits:#x}");
                assert_eq!(format.rounded(middle.next_up()), bits + 1, "{bits:#x}");
            }
            for large in [f64::INFINITY, f64::MAX, 1e39] {
                assert_eq!(format.rounded(large), format.infinity());
            }
            assert_eq!(format.rounded(f64::from_bits(1)), 0);
            assert!(format.value(format.rounded(f64::NAN)).is_nan());
        }
    }

    #[test]
    fn every_half_reads_back() {
        for format in [FloatFormat::F16, FloatFormat::Bf16] {
            for bits in 0..=0xffffu32 {
                let text = ImmediateFormat::Scalar(format).text(bits.into());
                let negative = text.starts_with('-');
                let read = format.parse(negative, text.trim_start_matches(['-', '+']), 16);
                assert_eq!(read, Ok(bits.into()), "{format:?} {bits:#x} {text}");
            }
        }
    }

    #[test]
    fn texts() {
        for (bits, text) in [
            (0x3f80_0000u64, "1"),
            (0xbf80_0000, "-1"),
            (0x3e00_0000, "0.125"),
            (0x8000_0000, "-0"),
            (0x7f80_0000, "+INF"),
            (0xff80_0000, "-INF"),
            (0x7fff_ffff, "0x7fffffff"),
            (0x3dcc_cccd, "0.1"),
            (0x7149_f2ca, "1e30"),
            (0x0000_0001, "1e-45"),
            (0x4b80_0000, "16777216"),
        ] {
            assert_eq!(ImmediateFormat::Scalar(FloatFormat::F32).text(bits), text);
        }
        assert_eq!(
            ImmediateFormat::Pair(FloatFormat::F16).text(0xbc00_3c00),
            "-1, 1"
        );
        assert_eq!(
            ImmediateFormat::Pair(FloatFormat::Bf16).text(0x3f80_7fff),
            "1, 0x7fff"
        );
        assert_eq!(
            ImmediateFormat::Scalar(FloatFormat::F64High).text(0x3ff8_0000),
            "1.5"
        );
        assert_eq!(
            ImmediateFormat::Scalar(FloatFormat::F16).text(0x1_3c00),
            "0x13c00"
        );
        for (value, text) in [
            (-9, "-9"),
            (9, "9"),
            (10, "0xa"),
            (-10, "-0xa"),
            (i64::from(i32::MIN), "-0x80000000"),
        ] {
            assert_eq!(integer_text(value), text);
        }
    }

    #[test]
    fn rounds_once() {
        // 1 + 2^-11 lies in the middle of two f16; the last digit decides, far below the precision of f64.
        let middle = "1.00048828125";
        assert_eq!(FloatFormat::F16.parse(false, middle, 16), Ok(0x3c00));
        assert_eq!(
            FloatFormat::F16.parse(false, &format!("{middle}0000000000000000000000000001"), 16),
            Ok(0x3c01)
        );
        assert_eq!(
            FloatFormat::F16.parse(false, "1.00146484375", 16),
            Ok(0x3c02)
        );
        assert_eq!(
            FloatFormat::F16.parse(false, "1.001464843749999999999999999999999999", 16),
            Ok(0x3c01)
        );
        assert_eq!(FloatFormat::F16.parse(false, "1e-400", 16), Ok(0));
        assert!(matches!(
            FloatFormat::F16.parse(false, "65520", 16),
            Err(LiteralError::TooLarge(_))
        ));
        assert_eq!(FloatFormat::F16.parse(false, "65519.99", 16), Ok(0x7bff));
    }

    #[test]
    fn refuses() {
        assert!(matches!(
            signed(false, "1.5", 32),
            Err(LiteralError::NotAnInteger(_))
        ));
        assert!(matches!(
            signed(false, "0x100000000", 32),
            Err(LiteralError::OutOfRange { .. })
        ));
        assert!(matches!(
            signed(true, "0x80000001", 32),
            Err(LiteralError::OutOfRange { .. })
        ));
        assert!(matches!(
            signed(false, "256", 9),
            Err(LiteralError::OutOfRange { .. })
        ));
        assert!(matches!(
            unsigned(false, "32", 5),
            Err(LiteralError::OutOfRange { .. })
        ));
        assert!(matches!(
            unsigned(true, "1", 5),
            Err(LiteralError::OutOfRange { .. })
        ));
        assert!(matches!(
            FloatFormat::F64High.parse(false, "0.1", 32),
            Err(LiteralError::LowWord(_))
        ));
        assert!(matches!(
            FloatFormat::F32.parse(false, "x", 32),
            Err(LiteralError::NotANumber(_))
        ));
        assert!(matches!(
            distance(false, "0x80000000", 32),
            Err(LiteralError::OutOfRange { .. })
        ));
        assert_eq!(distance(true, "0x80000000", 32), Ok(0x8000_0000));
        assert_eq!(signed(true, "1", 32), Ok(0xffff_ffff));
        assert_eq!(signed(false, "4294967295", 32), Ok(0xffff_ffff));
    }
}
