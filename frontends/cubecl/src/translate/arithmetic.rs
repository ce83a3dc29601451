//! Arithmetic of integers. It wraps; nothing traps: what a division by zero gives is open, as CubeCL says.

use super::types::Scalar;
use super::{Result, Translator};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_thisgpu::build::GpuBuilder;
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// The operations on integers of the `math` dialect.
    pub(super) fn arithmetic(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "i_add" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().iadd(a, b))),
            "i_sub" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().isub(a, b))),
            "i_mul" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().imul(a, b))),
            "s_neg" => self.map(op, |t, [a], _| Ok(t.builder.ins().ineg(a))),
            "s_abs" => self.map(op, |t, [a], _| Ok(t.builder.ins().iabs(a))),
            "s_mul_hi" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().smulhi(a, b))),
            "u_mul_hi" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().umulhi(a, b))),
            "u_div" => self.map(op, |t, [a, b], lane| {
                let divisor = t.divisor(b, lane);
                Ok(t.builder.ins().udiv(a, divisor))
            }),
            "u_rem" => self.map(op, |t, [a, b], lane| {
                let divisor = t.divisor(b, lane);
                Ok(t.builder.ins().urem(a, divisor))
            }),
            "s_div" => self.map(op, |t, [a, b], lane| Ok(t.signed_quotient(a, b, lane))),
            "s_rem" => self.map(op, |t, [a, b], lane| {
                let divisor = t.divisor(b, lane);
                Ok(t.builder.ins().srem(a, divisor))
            }),
            "s_mod_floor" => self.map(op, |t, [a, b], lane| Ok(t.floored_rest(a, b, lane))),
            "saturating_u_add" => self.map(op, |t, [a, b], lane| {
                let sum = t.builder.ins().iadd(a, b);
                let over = t.builder.ins().icmp(IntCC::UnsignedLessThan, sum, a);
                let most = t.integer(lane.clif(), -1);
                Ok(t.builder.ins().select(over, most, sum))
            }),
            "saturating_u_sub" => self.map(op, |t, [a, b], lane| {
                let difference = t.builder.ins().isub(a, b);
                let below = t.builder.ins().icmp(IntCC::UnsignedLessThan, a, b);
                let zero = t.integer(lane.clif(), 0);
                Ok(t.builder.ins().select(below, zero, difference))
            }),
            "saturating_s_add" => self.map(op, |t, [a, b], lane| {
                let sum = t.builder.ins().iadd(a, b);
                // Over if both operands have the sign that the sum has not.
                let (left, right) = (t.builder.ins().bxor(a, sum), t.builder.ins().bxor(b, sum));
                Ok(t.saturated(sum, a, left, right, lane))
            }),
            "saturating_s_sub" => self.map(op, |t, [a, b], lane| {
                let difference = t.builder.ins().isub(a, b);
                let left = t.builder.ins().bxor(a, b);
                let right = t.builder.ins().bxor(a, difference);
                Ok(t.saturated(difference, a, left, right, lane))
            }),
            "dp4a" => self.map(op, |t, [a, b, c], _| {
                Ok(t.builder.intrinsic("gpu_dp4a_s8s8", &[a, b, c]))
            }),
            _ => Ok(false),
        }
    }

    /// A divisor that does not trap: 1 where it is zero, or -1 of a signed division, by which the rest is zero too.
    fn divisor(&mut self, divisor: Value, lane: Scalar) -> Value {
        let (zero, one) = (self.integer(lane.clif(), 0), self.integer(lane.clif(), 1));
        let mut bad = self.builder.ins().icmp(IntCC::Equal, divisor, zero);
        if lane.is_signed() {
            let minus = self.integer(lane.clif(), -1);
            let is_minus = self.builder.ins().icmp(IntCC::Equal, divisor, minus);
            bad = self.builder.ins().bor(bad, is_minus);
        }
        self.builder.ins().select(bad, one, divisor)
    }

    fn signed_quotient(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        let divisor = self.divisor(b, lane);
        let quotient = self.builder.ins().sdiv(a, divisor);
        let minus = self.integer(lane.clif(), -1);
        let is_minus = self.builder.ins().icmp(IntCC::Equal, b, minus);
        let negative = self.builder.ins().ineg(a);
        self.builder.ins().select(is_minus, negative, quotient)
    }

    /// The rest that has the sign of the divisor.
    fn floored_rest(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        let divisor = self.divisor(b, lane);
        let rest = self.builder.ins().srem(a, divisor);
        let zero = self.integer(lane.clif(), 0);
        let there = self.builder.ins().icmp(IntCC::NotEqual, rest, zero);
        let signs = self.builder.ins().bxor(rest, b);
        let differ = self.builder.ins().icmp(IntCC::SignedLessThan, signs, zero);
        let moves = self.builder.ins().band(there, differ);
        let moved = self.builder.ins().iadd(rest, b);
        self.builder.ins().select(moves, moved, rest)
    }

    /// `value`, or the largest number with the sign of `sign` if both `left` and `right` are negative.
    fn saturated(
        &mut self,
        value: Value,
        sign: Value,
        left: Value,
        right: Value,
        lane: Scalar,
    ) -> Value {
        let ty = lane.clif();
        let over = self.builder.ins().band(left, right);
        let zero = self.integer(ty, 0);
        let over = self.builder.ins().icmp(IntCC::SignedLessThan, over, zero);
        let signs = self
            .builder
            .ins()
            .sshr_imm_u(sign, i64::from(ty.bits() - 1));
        let most = self.integer(ty, i64::MAX >> (64 - ty.bits()));
        let limit = self.builder.ins().bxor(signs, most);
        self.builder.ins().select(over, limit, value)
    }
}
