//! Sources as halves.

use super::{Halves, Place, Second, Sequence, Single, constant};
use crate::{Input, Instruction, Iswz, Sign, Source};
use cranelift_thisgpu::unstable::isa::build;
use cranelift_thisgpu::unstable::isa::generated::*;
use cranelift_thisgpu::unstable::sim::semantics::softfloat::F16;

/// 1.0 in both lanes.
const ONES: [u16; 2] = [F16.one() as u16; 2];

impl Sequence<'_> {
    /// Both sources as halves. What was of single precision is truncated; where the operation itself `flushes` its
    /// inputs, it need not be done here.
    pub(super) fn inputs(&mut self, flushes: bool) -> (Halves, Second) {
        let Instruction { a, b, .. } = *self.instruction;
        let halves = |input: Input| Halves {
            register: input.register.map(Place::Named),
            select: select(input.format),
            sign: input.sign,
        };
        // RZ holds the same halves as a number of single precision.
        let single = |input: Input| {
            let register = input.register.filter(|_| input.format == Iswz::F32)?;
            Some(Single::Register(Place::Named(register)))
        };
        let first = single(a);
        let (second, sign) = match b {
            Source::Register(input) => (single(input), input.sign),
            Source::Constant { sign, .. } => (constant(b).map(Single::Constant), sign),
            Source::Immediate(_) => (None, Sign::default()),
        };
        let truncated = match (first, second) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(self.truncate(one)),
            (Some(Single::Register(a)), Some(b)) => Some(self.truncate_both(a, b)),
            (Some(Single::Constant(_)), Some(_)) => unreachable!("the first source is a register"),
        };
        let truncated = truncated.map(|value| if flushes { value } else { self.flush(value) });
        let half = |select: HSel2, sign: Sign| Halves {
            register: truncated,
            select,
            sign,
        };
        let both = first.is_some() && second.is_some();
        let a = match first {
            None => halves(a),
            Some(_) if both => half(HSel2::H1H1, a.sign),
            Some(_) => half(HSel2::H0H0, a.sign),
        };
        let b = match (b, second) {
            (Source::Immediate(halves), _) => Second::Immediate(halves),
            (Source::Register(input), None) => Second::Register(halves(input)),
            _ => Second::Register(half(HSel2::H0H0, sign)),
        };
        (a, b)
    }

    /// A number of single precision, truncated to the low half.
    fn truncate(&mut self, single: Single) -> Place {
        let value = self.value();
        let options = f2f::Options::new(
            FPFtz::NoFtz,
            FPSat::NoSat,
            FPRound::Rz,
            FloatFormat::F16,
            FloatFormat::F32,
        );
        self.steps.push(match single {
            Single::Register(register) => build::f2f_r(options, value, register),
            Single::Constant(constant) => build::f2f_c(options, value, constant),
        });
        value
    }

    /// Two numbers of single precision, truncated to the high and the low half.
    fn truncate_both(&mut self, high: Place, low: Single) -> Place {
        let value = self.value();
        let options = f2fp::Options::new(FPFtz::NoFtz, FPRound::Rz, HFmtV2::F16V2);
        self.steps.push(match low {
            Single::Register(low) => build::f2fp_rr(options, value, high, low),
            Single::Constant(low) => build::f2fp_rc(options, value, high, low),
        });
        value
    }

    /// Both halves, subnormal ones replaced by zeros of their signs.
    pub(super) fn flush(&mut self, halves: Place) -> Place {
        let value = self.value();
        let options = hmul2::Options::new(FPFtz::Ftz, FPSat::NoSat, HFmtV2::F16V2);
        self.steps
            .push(build::hmul2_ri(options, value, halves, ONES));
        value
    }
}

/// The halves of an input; those of single precision have been put into place before.
fn select(format: Iswz) -> HSel2 {
    match format {
        Iswz::H1H0 | Iswz::F32 => HSel2::H1H0,
        Iswz::H0H0 => HSel2::H0H0,
        Iswz::H1H1 => HSel2::H1H1,
    }
}
