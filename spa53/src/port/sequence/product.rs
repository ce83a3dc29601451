//! HMUL2 and HMUL2_32I.

use super::{Halves, Place, Second, Sequence, constant, por, with_halves, word};
use crate::{Fmz, Instruction, Ofmt, Sat, Sign, Source};
use cranelift_thisgpu::unstable::isa::generated::*;
use cranelift_thisgpu::unstable::isa::operand::{PT, RZ};
use cranelift_thisgpu::unstable::isa::{Role, build};
use cranelift_thisgpu::unstable::sim::semantics::compare::flushed;
use cranelift_thisgpu::unstable::sim::semantics::softfloat::F16;

/// `a & b` of LOP3.
const AND: u8 = 0xf0 & 0xcc;
/// `a & b & c` of LOP3.
const AND3: u8 = AND & 0xaa;
/// `b ? a : c` of LOP3, bit by bit.
const SELECT: u8 = AND | (!0xcc & 0xaa);

impl Sequence<'_> {
    /// HMUL2 and HMUL2_32I: the product, then the form of its result.
    pub(super) fn product(&mut self) {
        let m = self.instruction.modifiers;
        if self.is_zero() {
            return self.zero();
        }
        let flushes = m.fmz != Fmz::Off;
        let (a, b) = self.inputs(flushes);
        let d = self.destination();
        match m.ofmt {
            Ofmt::F16V2 => self.multiply(d, a, b),
            Ofmt::MrgH0 | Ofmt::MrgH1 => {
                let product = Some(self.value());
                self.multiply(product, a, b);
                let half = merged(m.ofmt).unwrap_or(u32::MAX);
                self.steps
                    .push(build::lop3_rir(por(), PT, d, product, half, d, SELECT, !PT));
            }
            Ofmt::F32 => {
                let mut product = self.value();
                self.multiply(Some(product), a, b);
                if !flushes {
                    product = self.flush(product);
                }
                let options = f2f::Options::new(
                    FPFtz::NoFtz,
                    FPSat::NoSat,
                    FPRound::Rn,
                    FloatFormat::F32,
                    FloatFormat::F16,
                );
                self.steps.push(build::f2f_r(options, d, product));
                self.steps.push(build::nop_x());
            }
        }
    }

    /// Whether `.FMZ` makes both lanes +0, be the other source what it may.
    fn is_zero(&self) -> bool {
        let Instruction {
            a, b, modifiers, ..
        } = self.instruction;
        let zero = match b {
            Source::Register(input) => input.register.is_none(),
            Source::Constant { .. } => false,
            Source::Immediate(halves) => zeros(*halves) == [true, true],
        };
        modifiers.fmz == Fmz::Fmz && (zero || a.register.is_none())
    }

    /// +0 as the result, merged if need be.
    fn zero(&mut self) {
        if let Some(constant) = constant(self.instruction.b) {
            self.steps.push(build::mov_c(word(), RZ, constant));
        }
        let d = self.destination();
        let step = match merged(self.instruction.modifiers.ofmt) {
            Some(half) => build::lop3_rir(por(), PT, d, RZ, half, d, SELECT, !PT),
            None => build::mov_r(word(), d, RZ),
        };
        self.steps.push(step);
    }

    /// The product in both lanes, with the instruction's `.fmz` and `.SAT`.
    fn multiply(&mut self, d: Option<Place>, a: Halves, b: Second) {
        if self.instruction.modifiers.fmz != Fmz::Fmz {
            return self.multiply_plainly(d, a, b);
        }
        match b {
            // Infinity times zero cannot happen: only the sign of a zero is wrong.
            Second::Register(b) if (a.register, a.select) == (b.register, b.select) => {
                self.multiply_and_add_zero(d, a, Second::Register(b));
            }
            Second::Register(other) => {
                let smaller = Some(self.value());
                let options = hmnmx2::Options::new(FPFtz::Ftz, NAN::NoNan, HFmtV2::F16V2);
                let magnitude = |halves: Halves| Halves {
                    sign: Sign {
                        negate: false,
                        absolute: true,
                    },
                    ..halves
                };
                let step = build::hmnmx2_rr(options, smaller, a.register, other.register, PT);
                let step = with_halves(step, Role::A, magnitude(a));
                self.steps
                    .push(with_halves(step, Role::B, magnitude(other)));
                let mask = self.nonzero(Halves {
                    register: smaller,
                    select: HSel2::H1H0,
                    sign: Sign::default(),
                });
                self.masked_product(d, a, b, mask, u32::MAX);
            }
            Second::Immediate(halves) => {
                let finite = |half: u16| u64::from(half & 0x7fff) < F16.infinity();
                match (zeros(halves), halves.map(finite)) {
                    ([false, false], [true, true]) => self.multiply_and_add_zero(d, a, b),
                    ([low, high], _) => {
                        let mask = self.nonzero(a);
                        let kept = match (low, high) {
                            (true, _) => 0xffff_0000,
                            (_, true) => 0xffff,
                            _ => u32::MAX,
                        };
                        self.masked_product(d, a, b, mask, kept);
                    }
                }
            }
        }
    }

    /// All ones in the lanes that are no zero after the flush; NaN is none.
    fn nonzero(&mut self, a: Halves) -> Place {
        let mask = self.value();
        let options =
            hset2::Options::new(FPFtz::Ftz, LOPOp::And, FCMPOp::Neu, BVal::Bm, HFmtV2::F16V2);
        let step = build::hset2_rr(options, mask, a.register, RZ, PT);
        self.steps.push(with_halves(step, Role::A, a));
        mask
    }

    /// The product in the lanes of a mask and of `kept`, +0 in the others.
    fn masked_product(&mut self, d: Option<Place>, a: Halves, b: Second, mask: Place, kept: u32) {
        let product = self.value();
        self.multiply_plainly(Some(product), a, b);
        let step = match kept {
            u32::MAX => build::lop3_rrr(por(), PT, d, product, mask, RZ, AND, !PT),
            _ => build::lop3_rir(por(), PT, d, product, kept, mask, AND3, !PT),
        };
        self.steps.push(step);
    }

    fn multiply_plainly(&mut self, d: Option<Place>, a: Halves, b: Second) {
        let options = hmul2::Options::new(self.flushing(), self.saturation(), HFmtV2::F16V2);
        let step = match b {
            Second::Register(b) => {
                let step = build::hmul2_rr(options, d, a.register, b.register);
                with_halves(with_halves(step, Role::A, a), Role::B, b)
            }
            Second::Immediate(b) => {
                with_halves(build::hmul2_ri(options, d, a.register, b), Role::A, a)
            }
        };
        self.steps.push(step);
    }

    /// A fused sum with +0: it differs from the product where that is exactly −0.
    fn multiply_and_add_zero(&mut self, d: Option<Place>, a: Halves, b: Second) {
        let options = hfma2::Options::new(
            self.flushing(),
            self.saturation(),
            HFmtV2::F16V2,
            RELU::NoRelu,
        );
        let step = match b {
            Second::Register(b) => {
                let step = build::hfma2_rrr(options, d, a.register, b.register, RZ);
                with_halves(with_halves(step, Role::A, a), Role::B, b)
            }
            Second::Immediate(b) => {
                with_halves(build::hfma2_rir(options, d, a.register, b, RZ), Role::A, a)
            }
        };
        self.steps.push(step);
    }

    fn flushing(&self) -> FPFtz {
        match self.instruction.modifiers.fmz {
            Fmz::Off => FPFtz::NoFtz,
            Fmz::Ftz | Fmz::Fmz => FPFtz::Ftz,
        }
    }

    fn saturation(&self) -> FPSat {
        match self.instruction.modifiers.sat {
            Sat::Off => FPSat::NoSat,
            Sat::On => FPSat::Sat,
        }
    }
}

/// The bits that a merged result has of the product.
fn merged(ofmt: Ofmt) -> Option<u32> {
    match ofmt {
        Ofmt::MrgH0 => Some(0xffff),
        Ofmt::MrgH1 => Some(0xffff_0000),
        Ofmt::F16V2 | Ofmt::F32 => None,
    }
}

/// Which halves are zeros once they are flushed.
fn zeros(halves: [u16; 2]) -> [bool; 2] {
    halves.map(|half| flushed(F16, &half, FPFtz::Ftz) << 1 == 0)
}
