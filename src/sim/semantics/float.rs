//! Single and double precision: FADD FMUL FFMA FMNMX FSETP FSET FSEL, DADD DMUL DFMA DSETP DMNMX (companion
//! instructions).
//!
//! They follow the half precision family: absolute value, then negation; `.FTZ` on subnormal inputs and, after `.SAT`,
//! on the result. NaN results are the canonical NaN of the format (assigned: 0x7FC00000 and 0x7FF8000000000000, which
//! Cranelift writes `+NaN`). All four directions are exact. The common one, to nearest, is the host's own: IEEE 754
//! leaves it no choice. The others go through [`super::softfloat`].

use super::compare;
use super::operands::*;
use super::round_to_odd::add_to_odd;
use super::softfloat::{self, F32, F64};

/// An operand of single precision after its modifiers and `.FTZ`.
#[inline(always)]
fn single(bits: u32, abs: bool, neg: bool, ftz: FPFtz) -> u32 {
    flushed(F32.modify(u64::from(bits), abs, neg) as u32, ftz)
}

/// A number of single precision, flushed under `.FTZ`.
#[inline(always)]
fn flushed(bits: u32, ftz: FPFtz) -> u32 {
    match ftz {
        FPFtz::NoFtz => bits,
        FPFtz::Ftz => F32.flush(u64::from(bits)) as u32,
    }
}

/// What follows the rounding of a result of single precision.
#[inline(always)]
fn finish(bits: u32, ftz: FPFtz, sat: FPSat) -> u32 {
    match sat {
        FPSat::Sat => flushed(F32.saturate(u64::from(bits)) as u32, ftz),
        FPSat::NoSat if F32.is_nan(u64::from(bits)) => F32.nan as u32,
        FPSat::NoSat => flushed(bits, ftz),
    }
}

/// FADD: `a + b` (companion).
#[inline(always)]
pub fn fadd(m: &fadd::Modifiers, s: &fadd::Sources) -> fadd::Results {
    let (a, b) = (
        single(s.a, m.a_abs, m.a_neg, m.ftz),
        single(s.b, m.b_abs, m.b_neg, m.ftz),
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
        single(s.a, m.a_abs, m.a_neg, m.ftz),
        single(s.b, m.b_abs, m.b_neg, m.ftz),
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
        single(s.a, m.a_abs, m.a_neg, m.ftz),
        single(s.b, m.b_abs, m.b_neg, m.ftz),
    );
    let c = single(s.c, m.c_abs, m.c_neg, m.ftz);
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

/// FMNMX: the minimum where `pp` is true, else the maximum (companion, as HMNMX2).
#[inline(always)]
pub fn fmnmx(m: &fmnmx::Modifiers, s: &fmnmx::Sources) -> fmnmx::Results {
    let (a, b) = (
        single(s.a, m.a_abs, m.a_neg, m.ftz),
        single(s.b, m.b_abs, m.b_neg, m.ftz),
    );
    fmnmx::Results {
        d: compare::select(F32, a.into(), b.into(), s.pp, m.nan) as u32,
    }
}

/// FSETP: `pu` is the comparison combined with `pp`, `pv` its complement combined with `pp` (companion, as ISETP).
#[inline(always)]
pub fn fsetp(m: &fsetp::Modifiers, s: &fsetp::Sources) -> fsetp::Results {
    let (a, b) = (
        single(s.a, m.a_abs, m.a_neg, m.ftz),
        single(s.b, m.b_abs, m.b_neg, m.ftz),
    );
    let comparison = compare::holds(m.cmp, compare::order(F32, a.into(), b.into()));
    fsetp::Results {
        pu: compare::combine(comparison, m.lop, s.pp),
        pv: compare::combine(!comparison, m.lop, s.pp),
    }
}

/// FSET: the comparison combined with `pp`, as a mask or as 0.0 and 1.0 (companion, as HSET2).
#[inline(always)]
pub fn fset(m: &fset::Modifiers, s: &fset::Sources) -> fset::Results {
    let (a, b) = (
        single(s.a, m.a_abs, m.a_neg, m.ftz),
        single(s.b, m.b_abs, m.b_neg, m.ftz),
    );
    let comparison = compare::holds(m.cmp, compare::order(F32, a.into(), b.into()));
    let d = match (compare::combine(comparison, m.lop, s.pp), m.bval) {
        (false, _) => 0,
        (true, BVal::Bm) => u32::MAX,
        (true, BVal::Bf) => F32.one() as u32,
    };
    fset::Results { d }
}

/// FSEL: `a` where `pp` is true, else `b`, after their modifiers; NaN passes unchanged (companion).
#[inline(always)]
pub fn fsel(m: &fsel::Modifiers, s: &fsel::Sources) -> fsel::Results {
    let d = if s.pp {
        single(s.a, m.a_abs, m.a_neg, m.ftz)
    } else {
        single(s.b, m.b_abs, m.b_neg, m.ftz)
    };
    fsel::Results { d }
}

/// A result of double precision: NaN made canonical.
#[inline]
fn canonical(d: f64) -> u64 {
    if d.is_nan() { F64.nan } else { d.to_bits() }
}

/// DADD: `a + b` (companion).
pub fn dadd(m: &dadd::Modifiers, s: &dadd::Sources) -> dadd::Results {
    let (a, b) = (
        F64.modify(s.a, m.a_abs, m.a_neg),
        F64.modify(s.b, m.b_abs, m.b_neg),
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
        F64.modify(s.a, m.a_abs, m.a_neg),
        F64.modify(s.b, m.b_abs, m.b_neg),
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
        F64.modify(s.a, m.a_abs, m.a_neg),
        F64.modify(s.b, m.b_abs, m.b_neg),
    );
    let c = F64.modify(s.c, m.c_abs, m.c_neg);
    let d = match m.rnd {
        FPRound::Rn => canonical(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c))),
        rnd => softfloat::fused_multiply_add(F64, a, b, c, rnd.into()),
    };
    dfma::Results { d }
}

/// DSETP: as FSETP (companion).
pub fn dsetp(m: &dsetp::Modifiers, s: &dsetp::Sources) -> dsetp::Results {
    let (a, b) = (
        F64.modify(s.a, m.a_abs, m.a_neg),
        F64.modify(s.b, m.b_abs, m.b_neg),
    );
    let comparison = compare::holds(m.cmp, compare::order(F64, a, b));
    dsetp::Results {
        pu: compare::combine(comparison, m.lop, s.pp),
        pv: compare::combine(!comparison, m.lop, s.pp),
    }
}

/// DMNMX: as FMNMX (companion).
pub fn dmnmx(m: &dmnmx::Modifiers, s: &dmnmx::Sources) -> dmnmx::Results {
    let (a, b) = (
        F64.modify(s.a, m.a_abs, m.a_neg),
        F64.modify(s.b, m.b_abs, m.b_neg),
    );
    dmnmx::Results {
        d: compare::select(F64, a, b, s.pp, m.nan),
    }
}
