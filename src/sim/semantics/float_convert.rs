//! Conversions between floating-point formats and integers: F2F, F2FP, F2I, I2F, FRND (companion instructions), all
//! exact.
//!
//! Every format widens to a double exactly, and the host rounds doubles to integers and to narrower formats once, so
//! most conversions take that way. The directions other than to nearest, and integers that a double cannot hold, go
//! through [`super::softfloat`].
//!
//! Results narrower than a register are extended to it: integers by their sign, everything else with zeros.

use super::compare::{flushed, modified};
use super::operands::*;
use super::round_to_odd::{narrow, widen};
use super::softfloat::{self, BF16, F16, F32, F64, Format};

#[inline(always)]
fn format(format: FloatFormat) -> Format {
    match format {
        FloatFormat::F16 => F16,
        FloatFormat::Bf16 => BF16,
        FloatFormat::F32 => F32,
        FloatFormat::F64 => F64,
    }
}

/// The source of a conversion: the half that `hsel` names for 16-bit formats, then absolute value, negation, and the
/// flush of a subnormal F32.
#[inline(always)]
fn source(bits: u64, srcfmt: FloatFormat, hsel: HSel, abs: bool, neg: bool, ftz: FPFtz) -> u64 {
    let bits = match (srcfmt, hsel) {
        (FloatFormat::F16 | FloatFormat::Bf16, HSel::H0) => bits & 0xffff,
        (FloatFormat::F16 | FloatFormat::Bf16, HSel::H1) => bits >> 16 & 0xffff,
        (FloatFormat::F32, _) => bits & 0xffff_ffff,
        (FloatFormat::F64, _) => bits,
    };
    flush_single(modified(format(srcfmt), &bits, abs, neg), srcfmt, ftz)
}

/// `.FTZ` of the conversions: it concerns numbers of single precision only.
#[inline(always)]
fn flush_single(bits: u64, fmt: FloatFormat, ftz: FPFtz) -> u64 {
    match fmt {
        FloatFormat::F32 => flushed(F32, &bits, ftz),
        FloatFormat::F16 | FloatFormat::Bf16 | FloatFormat::F64 => bits,
    }
}

/// `bits` of format `from` in format `to`.
fn convert(from: Format, to: Format, bits: u64, rnd: FPRound) -> u64 {
    match rnd {
        FPRound::Rn => narrow(to, widen(from, bits)),
        rnd => softfloat::convert(from, to, bits, rnd.into()),
    }
}

/// `x` rounded to an integer; a zero keeps the sign of `x`.
fn integral(x: f64, rnd: IRound) -> f64 {
    match rnd {
        IRound::Rn => x.round_ties_even(),
        IRound::Floor => x.floor(),
        IRound::Ceil => x.ceil(),
        IRound::Trunc => x.trunc(),
    }
}

/// F2F: `b` in another format, rounded once (companion).
pub fn f2f(m: &f2f::Modifiers, s: &f2f::Sources) -> f2f::Results {
    let b = source(s.b, m.srcfmt, m.b_hsel, m.b_abs, m.b_neg, m.ftz);
    let to = format(m.dstfmt);
    let converted = convert(format(m.srcfmt), to, b, m.rnd);
    let limited = match m.sat {
        FPSat::NoSat => converted,
        FPSat::Sat => to.saturate(converted),
    };
    f2f::Results {
        d: flush_single(limited, m.dstfmt, m.ftz),
    }
}

/// F2FP: two numbers of single precision as halves, `a` in the high one (companion).
pub fn f2fp(m: &f2fp::Modifiers, s: &f2fp::Sources) -> f2fp::Results {
    let to = match m.hfmt_v2 {
        HFmtV2::F16V2 => F16,
        HFmtV2::Bf16V2 => BF16,
    };
    let narrow = |bits: u32, abs, neg| {
        let source = source(bits.into(), FloatFormat::F32, HSel::H0, abs, neg, m.ftz);
        convert(F32, to, source, m.rnd) as u32
    };
    f2fp::Results {
        d: narrow(s.a, m.a_abs, m.a_neg) << 16 | narrow(s.b, m.b_abs, m.b_neg),
    }
}

/// F2I: `b` rounded to an integer and limited to the range of the type; NaN gives 0 (companion).
#[inline(always)]
pub fn f2i(m: &f2i::Modifiers, s: &f2i::Sources) -> f2i::Results {
    let b = source(s.b, m.srcfmt, m.b_hsel, m.b_abs, m.b_neg, m.ftz);
    // The usual ones are the host's own.
    match (m.srcfmt, m.rnd, m.dstfmt) {
        (FloatFormat::F32, IRound::Trunc, IntFormat::U32) => {
            let d = f32::from_bits(b as u32) as u32;
            return f2i::Results { d: d.into() };
        }
        (FloatFormat::F32, IRound::Trunc, IntFormat::S32) => {
            let d = f32::from_bits(b as u32) as i32 as u32;
            return f2i::Results { d: d.into() };
        }
        _ => {}
    }
    let x = integral(widen(format(m.srcfmt), b), m.rnd);
    // The casts limit to the range of their type and turn NaN into 0.
    let signed = |min: i32, max: i32| u64::from((x as i32).clamp(min, max) as u32);
    let d = match m.dstfmt {
        IntFormat::S8 => signed(i8::MIN.into(), i8::MAX.into()),
        IntFormat::U8 => signed(0, u8::MAX.into()),
        IntFormat::S16 => signed(i16::MIN.into(), i16::MAX.into()),
        IntFormat::U16 => signed(0, u16::MAX.into()),
        IntFormat::S32 => signed(i32::MIN, i32::MAX),
        IntFormat::U32 => u64::from(x as u32),
        IntFormat::S64 => (x as i64) as u64,
        IntFormat::U64 => x as u64,
    };
    f2i::Results { d }
}

/// I2F: the integer in those bits of `b` that its type has, rounded once (companion).
#[inline(always)]
pub fn i2f(m: &i2f::Modifiers, s: &i2f::Sources) -> i2f::Results {
    // The usual ones are the host's own.
    let single = |value: f32| i2f::Results {
        d: value.to_bits().into(),
    };
    match (m.srcfmt, m.rnd, m.dstfmt) {
        (IntFormat::U32, FPRound::Rn, FloatFormat::F32) => return single(s.b as u32 as f32),
        (IntFormat::S32, FPRound::Rn, FloatFormat::F32) => return single(s.b as i32 as f32),
        _ => {}
    }
    let value = match m.srcfmt {
        IntFormat::S8 => i128::from(s.b as i8),
        IntFormat::U8 => i128::from(s.b as u8),
        IntFormat::S16 => i128::from(s.b as i16),
        IntFormat::U16 => i128::from(s.b as u16),
        IntFormat::S32 => i128::from(s.b as i32),
        IntFormat::U32 => i128::from(s.b as u32),
        IntFormat::S64 => i128::from(s.b as i64),
        IntFormat::U64 => i128::from(s.b),
    };
    let to = format(m.dstfmt);
    let d = match m.rnd {
        FPRound::Rn if value.unsigned_abs() < 1 << 53 => narrow(to, value as i64 as f64),
        rnd => softfloat::from_integer(to, value, rnd.into()),
    };
    i2f::Results { d }
}

/// FRND: `b` rounded to an integral number of its format (companion).
pub fn frnd(m: &frnd::Modifiers, s: &frnd::Sources) -> frnd::Results {
    let b = source(s.b, m.fmt, m.b_hsel, m.b_abs, m.b_neg, m.ftz);
    frnd::Results {
        // Below the weight where a format has no fraction bits it holds every integer: nothing is rounded twice.
        d: narrow(format(m.fmt), integral(widen(format(m.fmt), b), m.rnd)),
    }
}
