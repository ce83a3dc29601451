//! Saturating integer conversions: I2I and I2IP (document 002). Their source is always a signed word, so that a
//! negative number becomes zero in an unsigned type.

use super::operands::*;
use crate::bits::Word;

/// A signed number as a word.
fn signed<W: Word>(value: i32) -> W {
    W::number(value as u32 as u64)
}

/// I2I: `b` limited to the range of the narrower type, as a 32-bit number (document 002, I2I).
pub fn i2i<W: Word>(m: &i2i::Modifiers, s: &i2i::Sources<W>) -> i2i::Results<W> {
    let (min, max) = match m.dtype {
        I2IDType::S8 => (i32::from(i8::MIN), i32::from(i8::MAX)),
        I2IDType::U8 => (0, i32::from(u8::MAX)),
        I2IDType::S16 => (i32::from(i16::MIN), i32::from(i16::MAX)),
        I2IDType::U16 => (0, i32::from(u16::MAX)),
    };
    i2i::Results {
        d: s.b.limited(&signed(min), &signed(max)),
    }
}

/// I2IP: `b` and `a`, both limited to the range of the narrow type, in the low bits, `b` lowest; above them the low
/// bits of `c` (document 002, I2IP).
///
/// Both limits apply. (The pseudo-code's second assignment starts again from the unlimited value and would lose the
/// lower one.) Only `.SAT` can be encoded.
pub fn i2ip<W: Word>(m: &i2ip::Modifiers, s: &i2ip::Sources<W>) -> i2ip::Results<W> {
    let (size, is_signed) = match m.dsttype {
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
    let (min, max) = if is_signed {
        (-(1 << (size - 1)), (1 << (size - 1)) - 1)
    } else {
        (0, mask as i32)
    };
    let mask = W::number(u64::from(mask));
    let narrow = |value: &W| value.limited(&signed(min), &signed(max)).and(&mask);
    // By 32 bits nothing of it is left.
    let rest = s.c.up(2 * size);
    i2ip::Results {
        d: rest.or(&narrow(&s.a).up(size)).or(&narrow(&s.b)),
    }
}
