//! MUFU: eight special functions in single precision, on the high word of a double, and in half precision (document
//! 003).
//!
//! The documents give the results for special inputs, and say nothing of accuracy. The model here:
//!
//! - Special inputs give what the documents' tables list ([`special`]). NaN results are 0x7FFFFFFF and, per lane,
//!   0x7FFF.
//! - Every other result is the function's value, computed in double precision and rounded once to the format. Subnormal
//!   inputs and results are computed like others (F64 takes subnormal inputs as zeros, as its tables say). This is the
//!   correctly rounded result except where the host's double precision function errs by more than the value's distance
//!   from a midpoint, about once in 2^28.
//! - Real hardware will be worse. [`accuracy`] is the bound that code may rely on (*assumed*), and a seed *perturbs*
//!   every result that is neither special nor zero to some value within the bound: a pure function of seed, instruction
//!   and input. What is still right under perturbation does not depend on the model.
//!
//! `.F64` takes and returns the high word of a double whose low word is zero: a format of 21 bits of precision.

use super::AngleUnit;
use super::compare::modified;
use super::operands::*;
use super::round_to_odd::{narrow, widen};
use super::softfloat::{BF16, F16, F32, Format};

/// Single precision with the NaN that document 003 lists.
const SINGLE: Format = Format {
    nan: 0x7fff_ffff,
    ..F32
};

/// The high word of a double: same exponents, 21 bits of precision. NaN as document 003 lists it.
const HIGH_WORD: Format = Format {
    precision: 21,
    exponent_bits: 11,
    nan: 0x7fff_ffff,
};

/// How far a result may lie from the function's value: by the greater of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Units in the last place of the format, at the function's value.
    pub ulps: f64,
    /// An absolute distance.
    pub absolute: f64,
}

/// The accuracy that code may rely on. All numbers are *assumed*, after what is public about earlier GPUs.
pub fn accuracy(op: MUFUOp, dtype: MUFUDType) -> Accuracy {
    let ulps = |ulps| Accuracy {
        ulps,
        absolute: 0.0,
    };
    match (op, dtype) {
        (MUFUOp::Rcp, _) => ulps(1.0),
        (MUFUOp::Rsq, MUFUDType::F64) => ulps(1.0),
        (MUFUOp::Rsq | MUFUOp::Sqrt, _) => ulps(2.0),
        (MUFUOp::Ex2, MUFUDType::F32) => ulps(2.0),
        (MUFUOp::Lg2, _) => Accuracy {
            ulps: 2.0,
            absolute: 2f64.powi(-22),
        },
        (MUFUOp::Sin | MUFUOp::Cos, _) => Accuracy {
            ulps: 1.0,
            absolute: 2f64.powi(-20),
        },
        // About 2^-11 of the value.
        (MUFUOp::Tanh, MUFUDType::F32) => ulps(4096.0),
        (MUFUOp::Ex2 | MUFUOp::Tanh, _) => ulps(1.0),
    }
}

/// MUFU: `mufuop` of `b` (document 003, MUFU). `perturbation` is a seed, or none for the nearest results.
#[inline(always)]
pub fn mufu(
    unit: AngleUnit,
    perturbation: Option<u64>,
    m: &mufu::Modifiers,
    s: &mufu::Sources,
) -> mufu::Results {
    if perturbation.is_none()
        && m.dtype == MUFUDType::F32
        && let Some(value) = of_host(m.mufuop, single(s.b, m))
    {
        let d = if value.is_nan() {
            SINGLE.nan as u32
        } else {
            value.to_bits()
        };
        return mufu::Results { d };
    }
    by_double(unit, perturbation, m, s)
}

/// The number in `bits`, its modifiers applied.
#[inline(always)]
fn single(bits: u32, m: &mufu::Modifiers) -> f32 {
    f32::from_bits(modified(SINGLE, &bits, m.b_abs, m.b_neg))
}

/// Functions that the host has: special inputs give what [`special`] lists. To round a quotient or a root of single
/// precision to double precision first changes nothing: that has more than twice as many bits.
#[inline(always)]
fn of_host(op: MUFUOp, x: f32) -> Option<f32> {
    match op {
        MUFUOp::Rcp => Some(1.0 / x),
        MUFUOp::Sqrt => Some(x.sqrt()),
        MUFUOp::Rsq => Some((1.0 / f64::from(x).sqrt()) as f32),
        _ => None,
    }
}

/// MUFU in double precision.
fn by_double(
    unit: AngleUnit,
    perturbation: Option<u64>,
    m: &mufu::Modifiers,
    s: &mufu::Sources,
) -> mufu::Results {
    let lane = |format: Format, bits: u32| {
        let bits = modified(format, &u64::from(bits), m.b_abs, m.b_neg);
        evaluate(m.mufuop, m.dtype, format, unit, perturbation, bits) as u32
    };
    let half = match m.b_hsel {
        HSel::H0 => s.b & 0xffff,
        HSel::H1 => s.b >> 16,
    };
    let lanes = |format| lane(format, s.b >> 16) << 16 | lane(format, s.b & 0xffff);
    let d = match m.dtype {
        MUFUDType::F32 => lane(SINGLE, s.b),
        MUFUDType::F64 => lane(HIGH_WORD, s.b),
        MUFUDType::F16 => lane(F16, half),
        MUFUDType::Bf16 => lane(BF16, half),
        MUFUDType::F16V2 => lanes(F16),
        MUFUDType::Bf16V2 => lanes(BF16),
    };
    mufu::Results { d }
}

/// The result in `format` for one input of `format`.
fn evaluate(
    op: MUFUOp,
    dtype: MUFUDType,
    format: Format,
    unit: AngleUnit,
    perturbation: Option<u64>,
    bits: u64,
) -> u64 {
    let x = widen(format, bits);
    let narrow = |x: f64| narrow(format, x);
    if let Some(result) = special(op, dtype, x) {
        return narrow(result);
    }
    let value = function(op, unit, x);
    let nearest = narrow(value);
    let Some(seed) = perturbation.filter(|_| value != 0.0) else {
        return nearest;
    };
    let ulp = ulp(format, value);
    let Accuracy { ulps, absolute } = accuracy(op, dtype);
    let bound = (ulps * ulp).max(absolute);
    // Rounding takes up to half a unit of what the bound allows.
    let moved = value + random_fraction(seed, op, dtype, bits) * (bound - ulp / 2.0);
    let moved = narrow(match op {
        // These never leave −1..1.
        MUFUOp::Sin | MUFUOp::Cos | MUFUOp::Tanh => moved.clamp(-1.0, 1.0),
        _ => moved,
    });
    // Above a power of two rounding can take more; and a result keeps its sign and stays finite.
    let distance = (widen(format, moved) - value).abs();
    let keeps_kind = moved & format.sign() == nearest & format.sign()
        && moved & !format.sign() < format.infinity();
    if distance <= bound && keeps_kind {
        moved
    } else {
        nearest
    }
}

/// What the documents' tables list for special inputs; `None` for all others. NaN stands for the QNAN of the type.
///
/// COS of zero is 1 (the table, which is shared with SIN, would say 0). A negative normal input of RSQ.F64, which its
/// table leaves out, gives QNAN as in RSQ.F32.
pub fn special(op: MUFUOp, dtype: MUFUDType, x: f64) -> Option<f64> {
    const INFINITY: f64 = f64::INFINITY;
    if x.is_nan() {
        return Some(f64::NAN);
    }
    let x = if dtype == MUFUDType::F64 && x.is_subnormal() {
        0f64.copysign(x)
    } else {
        x
    };
    let zero = x == 0.0;
    match op {
        MUFUOp::Cos if zero => Some(1.0),
        MUFUOp::Sin if zero => Some(x),
        MUFUOp::Cos | MUFUOp::Sin => x.is_infinite().then_some(f64::NAN),
        MUFUOp::Ex2 if zero => Some(1.0),
        MUFUOp::Ex2 if x == -INFINITY => Some(0.0),
        MUFUOp::Ex2 => (x == INFINITY).then_some(INFINITY),
        MUFUOp::Lg2 if zero => Some(-INFINITY),
        MUFUOp::Lg2 if x < 0.0 => Some(f64::NAN),
        MUFUOp::Lg2 => (x == INFINITY).then_some(INFINITY),
        MUFUOp::Rcp if zero => Some(INFINITY.copysign(x)),
        MUFUOp::Rcp => x.is_infinite().then_some(0f64.copysign(x)),
        MUFUOp::Rsq if zero => Some(INFINITY.copysign(x)),
        MUFUOp::Rsq if x < 0.0 => Some(f64::NAN),
        MUFUOp::Rsq => (x == INFINITY).then_some(0.0),
        MUFUOp::Sqrt if zero => Some(x),
        MUFUOp::Sqrt if x < 0.0 => Some(f64::NAN),
        MUFUOp::Sqrt => (x == INFINITY).then_some(INFINITY),
        MUFUOp::Tanh if zero => Some(x),
        MUFUOp::Tanh => x.is_infinite().then_some(1f64.copysign(x)),
    }
}

/// The function itself, in double precision.
fn function(op: MUFUOp, unit: AngleUnit, x: f64) -> f64 {
    let angle = match unit {
        AngleUnit::Radians => x,
        AngleUnit::Turns => x.fract() * std::f64::consts::TAU,
    };
    match op {
        MUFUOp::Cos => angle.cos(),
        MUFUOp::Sin => angle.sin(),
        MUFUOp::Ex2 => x.exp2(),
        MUFUOp::Lg2 => x.log2(),
        MUFUOp::Rcp => 1.0 / x,
        MUFUOp::Rsq => 1.0 / x.sqrt(),
        MUFUOp::Sqrt => x.sqrt(),
        MUFUOp::Tanh => x.tanh(),
    }
}

/// The weight of the last bit of `format` at `value`.
fn ulp(format: Format, value: f64) -> f64 {
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(format.min_exponent());
    2f64.powi(exponent - (format.precision as i32 - 1))
}

/// A number between −1 and 1 that depends on all arguments (SplitMix64).
fn random_fraction(seed: u64, op: MUFUOp, dtype: MUFUDType, bits: u64) -> f64 {
    let mut hash = seed ^ (op as u64) << 60 ^ (dtype as u64) << 56 ^ bits;
    for _ in 0..2 {
        hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
    }
    (hash >> 11) as f64 / 2f64.powi(52) - 1.0
}
