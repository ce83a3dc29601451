//! Halves as operands of conversions.

use super::Lower;
use super::source::{Base, Halves, Src};
use cranelift_codegen::ir::Value;

impl Lower<'_> {
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
