//! Halves as operands of conversions, and signs.

use super::Lower;
use super::integer::{TABLE_A, TABLE_B, TABLE_C};
use super::source::{Base, Halves, Regs, Src, words_of_bits};
use crate::isa::VReg;
use cranelift_codegen::ir::{Type, Value};
use smallvec::SmallVec;

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
