//! Halves as operands of conversions.

use super::source::{Base, Halves, Src};
use super::state::Lower;
use super::typed::{HalfSrc, Operand};
use cranelift_codegen::ir::Value;

/// One half as an operand. An immediate of a conversion has neither halves nor signs: it is the 16 bits.
pub(super) fn half_of(src: Src) -> Src {
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

/// One half of an f16x2 as an operand.
pub(super) fn lane(vector: Src, halves: Halves) -> Src {
    half_of(Src {
        halves,
        whole: None,
        ..vector
    })
}

/// Halves as operands of conversions.
impl Lower<'_> {
    /// A scalar f16: where it is, and which half.
    pub(super) fn one_half_src(&self, value: Value) -> Src {
        half_of(self.half_src(value))
    }

    pub(super) fn low_lane(&mut self, vector: Value) -> HalfSrc {
        let src = self.float_src(vector);
        HalfSrc::new(lane(src, Halves::Low))
    }

    pub(super) fn high_lane(&mut self, vector: Value) -> HalfSrc {
        let src = self.float_src(vector);
        HalfSrc::new(lane(src, Halves::High))
    }
}
