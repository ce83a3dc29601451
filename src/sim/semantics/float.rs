//! Arithmetic in single and double precision: FADD FMUL FFMA, DADD DMUL DFMA (companion instructions). What only compares
//! and selects is in [`super::compare`].
//!
//! They follow the half precision family: absolute value, then negation; `.FTZ` on subnormal inputs and, after `.SAT`,
//! on the result. NaN results are the canonical NaN of the format (assigned: 0x7FC00000 and 0x7FF8000000000000, which
//! Cranelift writes `+NaN`). All four directions are exact. The common one, to nearest, is the host's own: IEEE 754
//! leaves it no choice. The others go through [`super::softfloat`].

use super::compare::{flushed, modified, single};
use super::operands::*;
use super::round_to_odd::add_to_odd;
use super::softfloat::{self, F32, F64};

/// What follows the rounding of a result of single precision.
#[inline(always)]
fn finish(bits: u32, ftz: FPFtz, sat: FPSat) -> u32 {
    match sat {
        FPSat::Sat => flushed(F32, &(F32.saturate(u64::from(bits)) as u32), ftz),
        FPSat::NoSat if F32.is_nan(u64::from(bits)) => F32.nan as u32,
        FPSat::NoSat => flushed(F32, &bits, ftz),
    }
}

/// FADD: `a + b` (companion).
#[inline(always)]
pub fn fadd(m: &fadd::Modifiers, s: &fadd::Sources) -> fadd::Results {
    let (a, b) = (
        single(&s.a, m.a_abs, m.a_neg, m.ftz),
        single(&s.b, m.b_abs, m.b_neg, m.ftz),
    );
    let sum = match m.rnd {
        FPRound::Rn => (f32::from_bits(a) + f32::from_bits(b)).to_bits(),
        rnd => softfloat::add(F32, a.into(), b.into(), rnd.into()) as u32,
    };
    fadd::Results {
        d: finish(sum, m.ftz, m.sat),
    }
}

/// FMUL: `a * b` (companion).
#[inline(always)]
pub fn fmul(m: &fmul::Modifiers, s: &fmul::Sources) -> fmul::Results {
    let (a, b) = (
        single(&s.a, m.a_abs, m.a_neg, m.ftz),
        single(&s.b, m.b_abs, m.b_neg, m.ftz),
    );
    let product = match m.rnd {
        FPRound::Rn => (f32::from_bits(a) * f32::from_bits(b)).to_bits(),
        rnd => softfloat::multiply(F32, a.into(), b.into(), rnd.into()) as u32,
    };
    fmul::Results {
        d: finish(product, m.ftz, m.sat),
    }
}

/// FFMA: `a * b + c`, rounded once (companion).
#[inline(always)]
pub fn ffma(m: &ffma::Modifiers, s: &ffma::Sources) -> ffma::Results {
    ffma_by(m, s, |a, b, c| {
        let [a, b, c] = [a, b, c].map(f64::from);
        add_to_odd(a * b, c) as f32
    })
}

/// FFMA where `nearest` is the operation rounded to nearest; which NaN it gives does not matter.
#[inline(always)]
pub fn ffma_by(
    m: &ffma::Modifiers,
    s: &ffma::Sources,
    nearest: impl Fn(f32, f32, f32) -> f32,
) -> ffma::Results {
    let (a, b) = (
        single(&s.a, m.a_abs, m.a_neg, m.ftz),
        single(&s.b, m.b_abs, m.b_neg, m.ftz),
    );
    let c = single(&s.c, m.c_abs, m.c_neg, m.ftz);
    let d = match m.rnd {
        FPRound::Rn => {
            let [a, b, c] = [a, b, c].map(f32::from_bits);
            nearest(a, b, c).to_bits()
        }
        rnd => softfloat::fused_multiply_add(F32, a.into(), b.into(), c.into(), rnd.into()) as u32,
    };
    ffma::Results {
        d: finish(d, m.ftz, m.sat),
    }
}

/// A result of double precision: NaN made canonical.
#[inline]
fn canonical(d: f64) -> u64 {
    if d.is_nan() { F64.nan } else { d.to_bits() }
}

/// DADD: `a + b` (companion).
pub fn dadd(m: &dadd::Modifiers, s: &dadd::Sources) -> dadd::Results {
    let (a, b) = (
        modified(F64, &s.a, m.a_abs, m.a_neg),
        modified(F64, &s.b, m.b_abs, m.b_neg),
    );
    let d = match m.rnd {
        FPRound::Rn => canonical(f64::from_bits(a) + f64::from_bits(b)),
        rnd => softfloat::add(F64, a, b, rnd.into()),
    };
    dadd::Results { d }
}

/// DMUL: `a * b` (companion).
pub fn dmul(m: &dmul::Modifiers, s: &dmul::Sources) -> dmul::Results {
    let (a, b) = (
        modified(F64, &s.a, m.a_abs, m.a_neg),
        modified(F64, &s.b, m.b_abs, m.b_neg),
    );
    let d = match m.rnd {
        FPRound::Rn => canonical(f64::from_bits(a) * f64::from_bits(b)),
        rnd => softfloat::multiply(F64, a, b, rnd.into()),
    };
    dmul::Results { d }
}

/// DFMA: `a * b + c`, rounded once (companion).
///
/// To nearest it is the host's fused operation, which the tests hold against an exact library.
pub fn dfma(m: &dfma::Modifiers, s: &dfma::Sources) -> dfma::Results {
    let (a, b) = (
        modified(F64, &s.a, m.a_abs, m.a_neg),
        modified(F64, &s.b, m.b_abs, m.b_neg),
    );
    let c = modified(F64, &s.c, m.c_abs, m.c_neg);
    let d = match m.rnd {
        FPRound::Rn => canonical(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c))),
        rnd => softfloat::fused_multiply_add(F64, a, b, c, rnd.into()),
    };
    dfma::Results { d }
}
