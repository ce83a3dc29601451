//! Floats as operands, signs, and the arithmetic that longer sequences use.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B, TABLE_C};
use super::source::{Base, Halves, PSrc, Regs, Source, Src, words_of_bits};
use crate::isa::generated::{
    FCMPOp, FPFtz, FPRound, FPSat, FloatFormat, HFmtV2, LOPOp, dfma, dmul, dsetp, f2fp, ffma, fmul,
    fsetp,
};
use crate::isa::{Optype, Role, VReg};
use cranelift_codegen::ir::{Type, Value, types};
use smallvec::SmallVec;

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

    /// A scalar f16 as an operand of a conversion: where it is, and which half.
    pub(super) fn one_half(&self, value: Value) -> Src {
        half_of(self.half_src(value))
    }

    /// The two halves of an f16x2 as operands of conversions.
    pub(super) fn both_halves(&self, value: Value) -> [Src; 2] {
        let src = self.float_src(value);
        [Halves::Low, Halves::High].map(|halves| {
            half_of(Src {
                halves,
                whole: None,
                ..src
            })
        })
    }

    /// `fcopysign` of any width and number of lanes.
    pub(super) fn copy_sign(&mut self, ty: Type, x: Value, y: Value) -> Regs {
        let (x, y) = (self.src(x), self.src(y));
        let lane = ty.lane_bits();
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for word in 0..words_of_bits(ty.bits()) as u32 {
            let signs: u32 = (0..32)
                .filter(|bit| (word * 32 + bit) % lane == lane - 1)
                .fold(0, |mask, bit| mask | 1 << bit);
            let (a, c) = (x.slice(word as u8, 1), y.slice(word as u8, 1));
            regs.push(if signs == 0 {
                self.gpr(a).word(0)
            } else {
                let table = (TABLE_B & TABLE_C) | (!TABLE_B & TABLE_A);
                self.logic3(a, Src::imm(signs), c, table)
            });
        }
        Regs::new(&regs)
    }
}

/// One half as an operand. An immediate of a conversion has neither halves nor signs: it is the 16 bits.
fn half_of(src: Src) -> Src {
    let Base::Imm(bits) = src.base else {
        return src;
    };
    let half = match src.halves {
        Halves::Low | Halves::Both => bits as u32 & 0xffff,
        Halves::High => bits as u32 >> 16,
    };
    let half = if src.abs { half & 0x7fff } else { half };
    Src::imm(if src.neg { half ^ 0x8000 } else { half })
}
