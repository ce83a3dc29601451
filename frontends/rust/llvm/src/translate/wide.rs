//! Integers of 256 bits: two values of 128, the low half first.
//!
//! LLVM makes them of what multiplies numbers of 128 bits whole, a division by a constant for one: such numbers are
//! extended, multiplied, shifted by a number that is known, and cut. These operations are here, and no others.

use super::function::{Body, Parts, Result};
use crate::error::Problem;
use crate::model::{Binary, Cast, Constant, Operand, Type, Value};
use cranelift_codegen::ir::{self, InstBuilder, types};
use smallvec::smallvec;

/// A number by its low and its high half.
type Halves = [ir::Value; 2];

/// Whether a type is such an integer.
pub fn is_wide(ty: &Type) -> bool {
    *ty == Type::Int(256)
}

fn unsupported<T>(what: impl std::fmt::Display) -> Result<T> {
    let message = format!("{what} of an integer of 256 bits is not supported");
    Err(Problem::Unsupported(message.into()))
}

fn halves(parts: &Parts) -> Result<Halves> {
    let wrong = Problem::Inconsistent("an integer of 256 bits that is not two of 128".into());
    parts[..].try_into().map_err(|_| wrong)
}

impl Body<'_, '_, '_> {
    /// An extension to 256 bits, or a cut to at most 128.
    pub fn cast_wide(&mut self, cast: Cast, of: &Operand, to: &Type) -> Result<Parts> {
        let parts = self.operand(of)?;
        match (cast, &of.ty, to) {
            (Cast::ZExt, Type::Int(1..=128), _) if is_wide(to) => {
                let low = self.resized(parts[0], types::I128);
                Ok(smallvec![low, self.integer(types::I128, 0)])
            }
            (Cast::Trunc, from, Type::Int(bits @ 1..=128)) if is_wide(from) => {
                let [low, _] = halves(&parts)?;
                let low = self.resized(low, super::shape::container(*bits));
                Ok(smallvec![self.without_excess(low, *bits)])
            }
            _ => unsupported(format!("the conversion {cast:?}")),
        }
    }

    /// A product, a sum, or a shift by a number that is known.
    pub fn binary_wide(&mut self, binary: Binary, a: &Operand, b: &Operand) -> Result<Parts> {
        let known = match &b.value {
            Value::Constant(Constant::Int(number)) => Some(*number),
            Value::Constant(Constant::Zero) => Some(0),
            _ => None,
        };
        let left = halves(&self.operand(a)?)?;
        match (binary, known) {
            (Binary::LShr, Some(by @ 0..256)) => Ok(self.shifted_right(left, by as u32).into()),
            (Binary::Mul | Binary::Add | Binary::And | Binary::Or | Binary::Xor, _) => {
                let right = halves(&self.operand(b)?)?;
                Ok(match binary {
                    Binary::Mul => self.product(left, right),
                    Binary::Add => self.sum(left, right),
                    _ => [0, 1].map(|half| {
                        let (a, b, ins) = (left[half], right[half], self.builder.ins());
                        match binary {
                            Binary::And => ins.band(a, b),
                            Binary::Or => ins.bor(a, b),
                            _ => ins.bxor(a, b),
                        }
                    }),
                }
                .into())
            }
            _ => unsupported(format!("the operation {binary:?}")),
        }
    }

    /// The constants that are not negative.
    pub fn constant_wide(&mut self, constant: &Constant) -> Result<Halves> {
        let low = match constant {
            Constant::Int(number) if number >> 127 == 0 => *number,
            Constant::Zero | Constant::Undefined => 0,
            _ => return unsupported("a constant with its highest bits"),
        };
        Ok([low, 0].map(|half| self.integer(types::I128, half)))
    }

    fn sum(&mut self, a: Halves, b: Halves) -> Halves {
        let (low, carry) = self.builder.ins().uadd_overflow(a[0], b[0]);
        let carry = self.builder.ins().uextend(types::I128, carry);
        let high = self.builder.ins().iadd(a[1], b[1]);
        [low, self.builder.ins().iadd(high, carry)]
    }

    /// The low 256 bits of a product, from those of the halves' halves.
    fn product(&mut self, a: Halves, b: Halves) -> Halves {
        let (a0, a1) = self.builder.ins().isplit(a[0]);
        let (b0, b1) = self.builder.ins().isplit(b[0]);
        let mut whole = |x, y| {
            let low = self.builder.ins().imul(x, y);
            let high = self.builder.ins().umulhi(x, y);
            (low, high)
        };
        let (p00, p01, p10, p11) = (whole(a0, b0), whole(a0, b1), whole(a1, b0), whole(a1, b1));
        // Three numbers of 64 bits have a sum of at most 66.
        let mut middle = self.builder.ins().uextend(types::I128, p00.1);
        for part in [p01.0, p10.0] {
            let part = self.builder.ins().uextend(types::I128, part);
            middle = self.builder.ins().iadd(middle, part);
        }
        let (second, carry) = self.builder.ins().isplit(middle);
        let low = self.builder.ins().iconcat(p00.0, second);
        let mut high = self.builder.ins().iconcat(p11.0, p11.1);
        for part in [p01.1, p10.1, carry] {
            let part = self.builder.ins().uextend(types::I128, part);
            high = self.builder.ins().iadd(high, part);
        }
        for (x, y) in [(a[1], b[0]), (a[0], b[1])] {
            let across = self.builder.ins().imul(x, y);
            high = self.builder.ins().iadd(high, across);
        }
        [low, high]
    }

    fn shifted_right(&mut self, [low, high]: Halves, by: u32) -> Halves {
        let zero = self.integer(types::I128, 0);
        let ins =
            |body: &mut Self, value, by: u32| body.builder.ins().ushr_imm_u(value, i64::from(by));
        match by {
            0 => [low, high],
            1..128 => {
                let from_high = self.builder.ins().ishl_imm_u(high, i64::from(128 - by));
                let low = ins(self, low, by);
                [self.builder.ins().bor(low, from_high), ins(self, high, by)]
            }
            128 => [high, zero],
            _ => [ins(self, high, by - 128), zero],
        }
    }
}
