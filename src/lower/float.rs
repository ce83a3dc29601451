//! Floating point in one or two instructions: comparison, rounding to integers; and the arithmetic that longer sequences use.

use super::Lower;
use super::source::{Base, Halves, PSrc, Regs, Source, Src};
use crate::isa::generated::{
    FCMPOp, FPFtz, FPRound, FPSat, FloatFormat, HFmtV2, IRound, LOPOp, dfma, dmul, dsetp, f2fp,
    ffma, fmul, frnd, fsetp, hsetp2,
};
use crate::isa::{Optype, Role};
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC};
use cranelift_codegen::ir::{Type, Value, types};

/// The machine's comparison of a condition.
pub fn condition(cc: FloatCC) -> FCMPOp {
    match cc {
        FloatCC::Ordered => FCMPOp::Num,
        FloatCC::Unordered => FCMPOp::Nan,
        FloatCC::Equal => FCMPOp::Eq,
        // True for NaN (errata H-21).
        FloatCC::NotEqual => FCMPOp::Neu,
        FloatCC::OrderedNotEqual => FCMPOp::Ne,
        FloatCC::UnorderedOrEqual => FCMPOp::Equ,
        FloatCC::LessThan => FCMPOp::Lt,
        FloatCC::LessThanOrEqual => FCMPOp::Le,
        FloatCC::GreaterThan => FCMPOp::Gt,
        FloatCC::GreaterThanOrEqual => FCMPOp::Ge,
        FloatCC::UnorderedOrLessThan => FCMPOp::Ltu,
        FloatCC::UnorderedOrLessThanOrEqual => FCMPOp::Leu,
        FloatCC::UnorderedOrGreaterThan => FCMPOp::Gtu,
        FloatCC::UnorderedOrGreaterThanOrEqual => FCMPOp::Geu,
    }
}

/// The format of a scalar type.
pub fn format_of(ty: Type) -> Option<FloatFormat> {
    match ty {
        types::F16 => Some(FloatFormat::F16),
        types::F32 => Some(FloatFormat::F32),
        types::F64 => Some(FloatFormat::F64),
        _ => None,
    }
}

impl Lower<'_> {
    /// `fcmp` of scalars.
    pub(super) fn compare_float(&mut self, cc: FloatCC, x: Value, y: Value) -> PSrc {
        let ty = self.type_of(x);
        let (a, b) = match ty {
            types::F16 => (self.half_src(x), self.half_src(y)),
            _ => (self.float_src(x), self.float_src(y)),
        };
        // An immediate or a constant belongs in B.
        let special = |s: &Src| matches!(s.base, Base::Imm(_) | Base::Constant { .. });
        let (cc, a, b) = if special(&a) && !special(&b) {
            (cc.swap_args(), b, a)
        } else {
            (cc, a, b)
        };
        let cmp = condition(cc);
        match ty {
            types::F16 => {
                let options =
                    hsetp2::Options::new(FPFtz::NoFtz, LOPOp::And, cmp, HFmtV2::F16V2).word();
                self.float_predicate(Optype::HSETP2, options, a, b, PSrc::TRUE)
            }
            types::F32 => self.single_test(cmp, a, b),
            _ => self.double_test(cmp, a, b),
        }
    }

    fn float_predicate(&mut self, optype: Optype, options: u128, a: Src, b: Src, pp: PSrc) -> PSrc {
        self.operation(
            optype,
            options,
            &[
                (Role::A, Source::Value(a)),
                (Role::B, Source::Value(b)),
                (Role::Pp, Source::Predicate(pp)),
            ],
        )
        .pu()
    }

    /// FSETP of two f32.
    pub(super) fn single_test(&mut self, cmp: FCMPOp, a: Src, b: Src) -> PSrc {
        let options = fsetp::Options::new(FPFtz::NoFtz, LOPOp::And, cmp).word();
        self.float_predicate(Optype::FSETP, options, a, b, PSrc::TRUE)
    }

    /// FSETP of two f32, or `other`.
    pub(super) fn single_test_or(&mut self, cmp: FCMPOp, a: Src, b: Src, other: PSrc) -> PSrc {
        let options = fsetp::Options::new(FPFtz::NoFtz, LOPOp::Or, cmp).word();
        self.float_predicate(Optype::FSETP, options, a, b, other)
    }

    /// DSETP of two f64.
    pub(super) fn double_test(&mut self, cmp: FCMPOp, a: Src, b: Src) -> PSrc {
        let options = dsetp::Options::new(LOPOp::And, cmp).word();
        self.float_predicate(Optype::DSETP, options, a, b, PSrc::TRUE)
    }

    /// DSETP of two f64, or `other`.
    pub(super) fn double_test_or(&mut self, cmp: FCMPOp, a: Src, b: Src, other: PSrc) -> PSrc {
        let options = dsetp::Options::new(LOPOp::Or, cmp).word();
        self.float_predicate(Optype::DSETP, options, a, b, other)
    }

    /// a * b in f32.
    pub(super) fn multiply_single(&mut self, a: Src, b: Src) -> Src {
        let options = fmul::Options::new(FPFtz::NoFtz, FPSat::NoSat, FPRound::Rn).word();
        let sources = [(Role::A, Source::Value(a)), (Role::B, Source::Value(b))];
        self.operation(Optype::FMUL, options, &sources).src()
    }

    /// a * b + c in f32, rounded once.
    pub(super) fn fused_single(&mut self, a: Src, b: Src, c: Src) -> Src {
        let options = ffma::Options::new(FPFtz::NoFtz, FPSat::NoSat, FPRound::Rn).word();
        let sources = [
            (Role::A, Source::Value(a)),
            (Role::B, Source::Value(b)),
            (Role::C, Source::Value(c)),
        ];
        self.operation(Optype::FFMA, options, &sources).src()
    }

    /// a * b in f64.
    pub(super) fn multiply_double(&mut self, a: Src, b: Src) -> Src {
        let options = dmul::Options::new(FPRound::Rn).word();
        let sources = [(Role::A, Source::Value(a)), (Role::B, Source::Value(b))];
        self.operation(Optype::DMUL, options, &sources).src()
    }

    /// a * b + c in f64, rounded once.
    pub(super) fn fused_double(&mut self, a: Src, b: Src, c: Src) -> Src {
        let options = dfma::Options::new(FPRound::Rn).word();
        let sources = [
            (Role::A, Source::Value(a)),
            (Role::B, Source::Value(b)),
            (Role::C, Source::Value(c)),
        ];
        self.operation(Optype::DFMA, options, &sources).src()
    }

    /// Two f32 as f16x2.
    pub(super) fn pack_halves(&mut self, low: Src, high: Src) -> Regs {
        let options = f2fp::Options::new(FPFtz::NoFtz, FPRound::Rn, HFmtV2::F16V2).word();
        let sources = [
            (Role::A, Source::Value(high)),
            (Role::B, Source::Value(low)),
        ];
        self.operation(Optype::F2FP, options, &sources).d()
    }

    /// A scalar f16 as an operand of a conversion: the register it is in, and which half.
    pub(super) fn one_half(&mut self, value: Value) -> Src {
        let src = self.half_src(value);
        self.in_register(src)
    }

    /// The two halves of an f16x2 as operands of conversions.
    pub(super) fn both_halves(&mut self, value: Value) -> [Src; 2] {
        let src = self.float_src(value);
        let src = self.in_register(src);
        [Halves::Low, Halves::High].map(|halves| Src {
            halves,
            whole: None,
            ..src
        })
    }

    /// The operand with its modifiers, its base in a register: an immediate of a conversion has no halves.
    fn in_register(&mut self, src: Src) -> Src {
        match src.base {
            Base::Imm(_) | Base::Constant { .. } => {
                let plain = Src {
                    base: src.base,
                    ..Src::ZERO
                };
                Src {
                    base: Base::Regs(self.gpr(plain)),
                    whole: None,
                    ..src
                }
            }
            Base::Value { .. } | Base::Regs(_) => src,
        }
    }

    /// `ceil`, `floor`, `trunc`, `nearest`.
    pub(super) fn round_float(&mut self, x: Value, rnd: IRound) -> Regs {
        let ty = self.type_of(x);
        if ty == types::F16X2 {
            let [low, high] = self
                .both_halves(x)
                .map(|src| Src::regs(self.round(src, rnd, FloatFormat::F16)));
            return Regs::one(self.permute(low, high, Src::imm(0x5410)));
        }
        let (src, format) = match ty {
            types::F16 => (self.one_half(x), FloatFormat::F16),
            types::F32 => (self.float_src(x), FloatFormat::F32),
            _ => (self.float_src(x), FloatFormat::F64),
        };
        self.round(src, rnd, format)
    }

    fn round(&mut self, src: Src, rnd: IRound, format: FloatFormat) -> Regs {
        let options = frnd::Options::new(FPFtz::NoFtz, rnd, format).word();
        self.operation(Optype::FRND, options, &[(Role::B, Source::Value(src))])
            .d()
    }
}
