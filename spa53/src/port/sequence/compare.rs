//! HSET2.

use super::{Halves, Place, Second, Sequence, constant, with_halves, word};
use crate::{Bop, Bval, Cmp, Ftz, Predicate, Sign};
use cranelift_thisgpu::unstable::isa::generated::*;
use cranelift_thisgpu::unstable::isa::operand::{self, RZ};
use cranelift_thisgpu::unstable::isa::{Role, build};

impl Sequence<'_> {
    /// `.F` and `.T` depend on no input, but a constant that is not there is a fault.
    pub(super) fn constant_comparison(&mut self) {
        if let Some(constant) = constant(self.instruction.b) {
            self.steps.push(build::mov_c(word(), RZ, constant));
        }
        let zeros = Halves {
            register: None,
            select: HSel2::H1H0,
            sign: Sign::default(),
        };
        let d = self.destination();
        self.compare(d, zeros, Second::Register(zeros));
    }

    /// HSET2 with the instruction's modifiers.
    pub(super) fn compare(&mut self, d: Option<Place>, a: Halves, b: Second) {
        let m = self.instruction.modifiers;
        let cmp = comparison(m.cmp);
        let bop = match m.bop {
            Bop::And => LOPOp::And,
            Bop::Or => LOPOp::Or,
            Bop::Xor => LOPOp::Xor,
        };
        let bval = match m.bval {
            Bval::Bm => BVal::Bm,
            Bval::Bf => BVal::Bf,
        };
        let ftz = if m.ftz == Ftz::On {
            FPFtz::Ftz
        } else {
            FPFtz::NoFtz
        };
        let Predicate { register, not } = self.instruction.pp;
        let pp = operand::Predicate {
            reg: register.map(Place::Named),
            negated: not,
        };
        let options = hset2::Options::new(ftz, bop, cmp, bval, HFmtV2::F16V2);
        let step = match b {
            Second::Register(b) => {
                let step = build::hset2_rr(options, d, a.register, b.register, pp);
                with_halves(with_halves(step, Role::A, a), Role::B, b)
            }
            Second::Immediate(halves) => with_halves(
                build::hset2_ri(options, d, a.register, halves, pp),
                Role::A,
                a,
            ),
        };
        self.steps.push(step);
    }
}

/// The comparison of this set; `.F` and `.T` compare zeros.
fn comparison(cmp: Cmp) -> FCMPOp {
    match cmp {
        Cmp::F => FCMPOp::Ne,
        Cmp::T => FCMPOp::Eq,
        Cmp::Lt => FCMPOp::Lt,
        Cmp::Eq => FCMPOp::Eq,
        Cmp::Le => FCMPOp::Le,
        Cmp::Gt => FCMPOp::Gt,
        Cmp::Ne => FCMPOp::Ne,
        Cmp::Ge => FCMPOp::Ge,
        Cmp::Num => FCMPOp::Num,
        Cmp::Nan => FCMPOp::Nan,
        Cmp::Ltu => FCMPOp::Ltu,
        Cmp::Equ => FCMPOp::Equ,
        Cmp::Leu => FCMPOp::Leu,
        Cmp::Gtu => FCMPOp::Gtu,
        Cmp::Neu => FCMPOp::Neu,
        Cmp::Geu => FCMPOp::Geu,
    }
}
