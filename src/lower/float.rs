//! Halves as operands of conversions.

use super::source::{Base, Halves, Src};

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
macro_rules! float_methods {
    () => {
        // A scalar f16: where it is, and which half.
        fn half_of(&mut self, value: Value) -> HalfSrc {
            HalfSrc::new($crate::lower::float::half_of(self.half_src(value)))
        }
        fn low_lane(&mut self, vector: Value) -> HalfSrc {
            let src = self.float_src(vector);
            HalfSrc::new($crate::lower::float::lane(src, Halves::Low))
        }
        fn high_lane(&mut self, vector: Value) -> HalfSrc {
            let src = self.float_src(vector);
            HalfSrc::new($crate::lower::float::lane(src, Halves::High))
        }
    };
}
pub(super) use float_methods;
