//! Saturating integer conversions: I2I and I2IP (document 002). Their source is always a signed word, so that a
//! negative number becomes zero in an unsigned type.

use super::operands::*;

/// I2I: `b` limited to the range of the narrower type, as a 32-bit number (document 002, I2I).
pub fn i2i(m: &i2i::Modifiers, s: &i2i::Sources) -> i2i::Results {
    let (min, max) = match m.dtype {
        I2IDType::S8 => (i32::from(i8::MIN), i32::from(i8::MAX)),
        I2IDType::U8 => (0, i32::from(u8::MAX)),
        I2IDType::S16 => (i32::from(i16::MIN), i32::from(i16::MAX)),
        I2IDType::U16 => (0, i32::from(u16::MAX)),
    };
    i2i::Results {
        d: (s.b as i32).clamp(min, max) as u32,
    }
}

/// I2IP: `b` and `a`, both limited to the range of the narrow type, in the low bits, `b` lowest; above them the low
/// bits of `c` (document 002, I2IP).
///
/// Both limits apply. (The pseudo-code's second assignment starts again from the unlimited value and would lose the
/// lower one.) Only `.SAT` can be encoded.
pub fn i2ip(m: &i2ip::Modifiers, s: &i2ip::Sources) -> i2ip::Results {
    let (size, signed) = match m.dsttype {
        I2IPDType::S2 => (2, true),
        I2IPDType::U2 => (2, false),
        I2IPDType::S4 => (4, true),
        I2IPDType::U4 => (4, false),
        I2IPDType::S8 => (8, true),
        I2IPDType::U8 => (8, false),
        I2IPDType::S16 => (16, true),
        I2IPDType::U16 => (16, false),
    };
    let mask = (1u32 << size) - 1;
    let (min, max) = if signed {
        (-(1 << (size - 1)), (1 << (size - 1)) - 1)
    } else {
        (0, mask as i32)
    };
    let narrow = |value: u32| (value as i32).clamp(min, max) as u32 & mask;
    let rest = u64::from(s.c) << (2 * size);
    i2ip::Results {
        d: rest as u32 | narrow(s.a) << size | narrow(s.b),
    }
}
