//! Literals read, for the assembler.

use super::{FloatFormat, ImmediateFormat, LiteralError};

impl ImmediateFormat {
    /// Literals that the text has for it.
    pub fn literals(self) -> usize {
        match self {
            ImmediateFormat::Scalar(_) => 1,
            ImmediateFormat::Pair(_) => 2,
        }
    }
}

impl FloatFormat {
    /// The bits of a literal without its sign; `width` is that of the field.
    ///
    /// # Errors
    /// When it is no number, or has no value in the format.
    pub fn parse(self, negative: bool, text: &str, width: u32) -> Result<u64, LiteralError> {
        let sign = if negative {
            u64::from(self.sign_bit())
        } else {
            0
        };
        if text == "INF" {
            return Ok(u64::from(self.infinity()) | sign);
        }
        if is_hexadecimal(text) {
            if negative {
                return Err(LiteralError::NotANumber(format!("-{text}")));
            }
            return unsigned(false, text, width);
        }
        if !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(LiteralError::NotANumber(text.to_string()));
        }
        self.decimal(text).map(|bits| u64::from(bits) | sign)
    }
}

/// Whether a literal without its sign is a bit pattern.
pub fn is_hexadecimal(text: &str) -> bool {
    text.starts_with("0x") || text.starts_with("0X")
}

/// The value of an integer literal without its sign.
///
/// # Errors
/// When it is no integer, or above 2^64 − 1.
fn magnitude(text: &str) -> Result<u64, LiteralError> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|e| match e.kind() {
        std::num::IntErrorKind::PosOverflow => out_of_range(text, 0, u64::MAX.into()),
        _ if text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok() => {
            LiteralError::NotAnInteger(text.to_string())
        }
        _ => LiteralError::NotANumber(text.to_string()),
    })
}

fn out_of_range(value: impl ToString, low: i128, high: i128) -> LiteralError {
    let text = |v: i128| {
        if (-9..10).contains(&v) {
            v.to_string()
        } else {
            format!("{}{:#x}", if v < 0 { "-" } else { "" }, v.unsigned_abs())
        }
    };
    LiteralError::OutOfRange {
        value: value.to_string(),
        low: text(low),
        high: text(high),
    }
}

/// The bits of an unsigned literal.
///
/// # Errors
/// When it is no integer of `width` bits.
pub fn unsigned(negative: bool, text: &str, width: u32) -> Result<u64, LiteralError> {
    let value = i128::from(magnitude(text)?) * if negative { -1 } else { 1 };
    let high = (1i128 << width) - 1;
    if !(0..=high).contains(&value) {
        return Err(out_of_range(
            format!("{}{text}", if negative { "-" } else { "" }),
            0,
            high,
        ));
    }
    Ok(value as u64)
}

/// The bits of a signed literal in two's complement. 32 bits accept −2^31 … 2^32−1 (errata G-14).
///
/// # Errors
/// When it is no integer in range.
pub fn signed(negative: bool, text: &str, width: u32) -> Result<u64, LiteralError> {
    let high = if width == 32 { 32 } else { width - 1 };
    twos_complement(negative, text, width, (1i128 << high) - 1)
}

/// The bits of a signed distance in two's complement: no number stands for a negative one.
///
/// # Errors
/// When it is no integer of `width` bits.
pub fn distance(negative: bool, text: &str, width: u32) -> Result<u64, LiteralError> {
    twos_complement(negative, text, width, (1i128 << (width - 1)) - 1)
}

fn twos_complement(
    negative: bool,
    text: &str,
    width: u32,
    high: i128,
) -> Result<u64, LiteralError> {
    let value = i128::from(magnitude(text)?) * if negative { -1 } else { 1 };
    let low = -(1i128 << (width - 1));
    if !(low..=high).contains(&value) {
        return Err(out_of_range(
            format!("{}{text}", if negative { "-" } else { "" }),
            low,
            high,
        ));
    }
    Ok(value as u64 & (u64::MAX >> (64 - width)))
}
