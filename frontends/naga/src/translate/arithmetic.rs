//! Operators on numbers: signs, sums, products, quotients, shifts, and the logic of bits and bools.
//!
//! WGSL defines what C leaves open: x / 0 is x and x % 0 is 0, the quotient of the least integer by -1 is itself, and
//! shifts take their distance modulo the width, as CLIF's do.

use super::types::clif;
use super::values::Lanes;
use super::{Result, Translator};
use crate::error::invalid;
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use naga::{BinaryOperator, Expression, Handle, Scalar, ScalarKind, TypeInner, UnaryOperator};

impl Translator<'_, '_, '_> {
    /// `Expression::Unary`.
    pub(super) fn unary(&mut self, op: UnaryOperator, expr: Handle<Expression>) -> Result<Lanes> {
        let scalar = self.scalar(&self.type_of(expr))?;
        let lanes = self.lanes(expr)?;
        let results = lanes.into_iter().map(|lane| match (op, scalar.kind) {
            (UnaryOperator::Negate, ScalarKind::Float) => self.builder.ins().fneg(lane),
            (UnaryOperator::Negate, _) => self.builder.ins().ineg(lane),
            (_, ScalarKind::Bool) => self.builder.ins().bxor_imm_u(lane, 1),
            _ => self.builder.ins().bnot(lane),
        });
        Ok(results.collect())
    }

    /// `Expression::Binary`.
    pub(super) fn binary(
        &mut self,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<Lanes> {
        let (left_ty, right_ty) = (self.type_of(left), self.type_of(right));
        let scalar = self.scalar(&left_ty)?;
        let (left, right) = (self.lanes(left)?, self.lanes(right)?);
        if op == BinaryOperator::Multiply {
            let (a, b) = (self.inner(&left_ty).clone(), self.inner(&right_ty).clone());
            if matches!(a, TypeInner::Matrix { .. }) || matches!(b, TypeInner::Matrix { .. }) {
                return self.matrix_product(&a, &left, &b, &right);
            }
        }
        let count = left.len().max(right.len());
        let mut lanes = Vec::with_capacity(count);
        for number in 0..count {
            // A scalar beside a vector stands for all of its components.
            let [a, b] = [&left, &right].map(|lanes| lanes.get(number).or(lanes.first()).copied());
            let (Some(a), Some(b)) = (a, b) else {
                return Err(invalid("an operand without components"));
            };
            lanes.push(self.operator(op, scalar, a, b)?);
        }
        Ok(lanes)
    }

    /// An operator on scalars.
    fn operator(
        &mut self,
        op: BinaryOperator,
        scalar: Scalar,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<ir::Value> {
        use BinaryOperator as B;
        let is_float = scalar.kind == ScalarKind::Float;
        let is_signed = scalar.kind == ScalarKind::Sint;
        Ok(match op {
            B::Add if is_float => self.builder.ins().fadd(a, b),
            B::Add => self.builder.ins().iadd(a, b),
            B::Subtract if is_float => self.builder.ins().fsub(a, b),
            B::Subtract => self.builder.ins().isub(a, b),
            B::Multiply if is_float => self.builder.ins().fmul(a, b),
            B::Multiply => self.builder.ins().imul(a, b),
            B::Divide if is_float => self.builder.ins().fdiv(a, b),
            B::Modulo if is_float => self.library("fmod", scalar, &[a, b])?,
            B::Divide | B::Modulo => {
                let divisor = self.divisor(scalar, a, b)?;
                match (op, is_signed) {
                    (B::Divide, true) => self.builder.ins().sdiv(a, divisor),
                    (B::Divide, false) => self.builder.ins().udiv(a, divisor),
                    (_, true) => self.builder.ins().srem(a, divisor),
                    (_, false) => self.builder.ins().urem(a, divisor),
                }
            }
            B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual => {
                self.comparison(op, scalar, a, b)?
            }
            B::And | B::LogicalAnd => self.builder.ins().band(a, b),
            B::InclusiveOr | B::LogicalOr => self.builder.ins().bor(a, b),
            B::ExclusiveOr => self.builder.ins().bxor(a, b),
            B::ShiftLeft => self.builder.ins().ishl(a, b),
            B::ShiftRight if is_signed && !planted(Mistake::UnsignedShift) => {
                self.builder.ins().sshr(a, b)
            }
            B::ShiftRight => self.builder.ins().ushr(a, b),
        })
    }

    /// A divisor by which the quotient and the remainder are what WGSL says: 1 in the place of 0, and in that of -1
    /// under the least integer.
    fn divisor(&mut self, scalar: Scalar, a: ir::Value, b: ir::Value) -> Result<ir::Value> {
        let ty = clif(scalar)?;
        if planted(Mistake::UnguardedDivision) {
            return Ok(b);
        }
        let (zero, one) = (self.integer(ty, 0), self.integer(ty, 1));
        let mut is_other = self.builder.ins().icmp(IntCC::Equal, b, zero);
        if scalar.kind == ScalarKind::Sint && !planted(Mistake::LeastQuotient) {
            let (least, minus) = (self.integer(ty, 1 << (ty.bits() - 1)), self.integer(ty, -1));
            let is_least = self.builder.ins().icmp(IntCC::Equal, a, least);
            let is_minus = self.builder.ins().icmp(IntCC::Equal, b, minus);
            let overflows = self.builder.ins().band(is_least, is_minus);
            is_other = self.builder.ins().bor(is_other, overflows);
        }
        Ok(self.builder.ins().select(is_other, one, b))
    }
}
