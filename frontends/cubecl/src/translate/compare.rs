//! Comparisons, smaller and larger of two, limits.

use super::types::Scalar;
use super::{Result, Translator};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value};
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// The `cmp` dialect.
    pub(super) fn compare(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        if let Some(code) = integer_code(name) {
            return self.map(op, |t, [a, b], _| Ok(t.builder.ins().icmp(code, a, b)));
        }
        if let Some(code) = float_code(name) {
            return self.map(op, |t, [a, b], lane| Ok(t.float_compare(code, a, b, lane)));
        }
        match name {
            "s_min" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().smin(a, b))),
            "s_max" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().smax(a, b))),
            "u_min" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().umin(a, b))),
            "u_max" => self.map(op, |t, [a, b], _| Ok(t.builder.ins().umax(a, b))),
            "f_min" => self.map(op, |t, [a, b], lane| Ok(t.smaller(a, b, lane))),
            "f_max" => self.map(op, |t, [a, b], lane| Ok(t.larger(a, b, lane))),
            "f_min_nan" => self.map(op, |t, [a, b], lane| Ok(t.smaller_or_nan(a, b, lane))),
            "f_max_nan" => self.map(op, |t, [a, b], lane| Ok(t.larger_or_nan(a, b, lane))),
            "s_clamp" => self.map(op, |t, [x, low, high], _| {
                let x = t.builder.ins().smin(x, high);
                Ok(t.builder.ins().smax(x, low))
            }),
            "u_clamp" => self.map(op, |t, [x, low, high], _| {
                let x = t.builder.ins().umin(x, high);
                Ok(t.builder.ins().umax(x, low))
            }),
            "f_clamp" => self.map(op, |t, [x, low, high], lane| {
                let x = t.smaller(x, high, lane);
                Ok(t.larger(x, low, lane))
            }),
            "f_clamp_nan" => self.map(op, |t, [x, low, high], lane| {
                let x = t.smaller_or_nan(x, high, lane);
                Ok(t.larger_or_nan(x, low, lane))
            }),
            _ => Ok(false),
        }
    }

    pub(super) fn float_compare(
        &mut self,
        code: FloatCC,
        a: Value,
        b: Value,
        lane: Scalar,
    ) -> Value {
        let (a, b) = (self.comparable(a, lane), self.comparable(b, lane));
        self.builder.ins().fcmp(code, a, b)
    }

    /// A float in a type that CLIF compares.
    fn comparable(&mut self, value: Value, lane: Scalar) -> Value {
        match lane {
            Scalar::BF16 => self.widened(value, lane).0,
            _ => value,
        }
    }

    /// The smaller of two floats; of a number and a NaN the number.
    pub(super) fn smaller(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        self.chosen(FloatCC::LessThan, a, b, lane)
    }

    /// The larger of two floats; of a number and a NaN the number.
    pub(super) fn larger(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        self.chosen(FloatCC::GreaterThan, a, b, lane)
    }

    fn chosen(&mut self, code: FloatCC, a: Value, b: Value, lane: Scalar) -> Value {
        let first = self.float_compare(code, a, b, lane);
        let no_second = self.float_compare(FloatCC::Unordered, b, b, lane);
        let first = self.builder.ins().bor(first, no_second);
        self.builder.ins().select(first, a, b)
    }

    fn smaller_or_nan(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        let (a, b) = (self.comparable(a, lane), self.comparable(b, lane));
        let least = self.builder.ins().fmin(a, b);
        self.narrowed(least, lane)
    }

    fn larger_or_nan(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        let (a, b) = (self.comparable(a, lane), self.comparable(b, lane));
        let most = self.builder.ins().fmax(a, b);
        self.narrowed(most, lane)
    }
}

fn integer_code(name: &str) -> Option<IntCC> {
    Some(match name {
        "s_less_than" => IntCC::SignedLessThan,
        "u_less_than" => IntCC::UnsignedLessThan,
        "s_less_than_or_equal" => IntCC::SignedLessThanOrEqual,
        "u_less_than_or_equal" => IntCC::UnsignedLessThanOrEqual,
        "s_greater_than" => IntCC::SignedGreaterThan,
        "u_greater_than" => IntCC::UnsignedGreaterThan,
        "s_greater_than_or_equal" => IntCC::SignedGreaterThanOrEqual,
        "u_greater_than_or_equal" => IntCC::UnsignedGreaterThanOrEqual,
        "i_equal" | "bool_equal" => IntCC::Equal,
        "i_not_equal" | "bool_not_equal" => IntCC::NotEqual,
        _ => return None,
    })
}

fn float_code(name: &str) -> Option<FloatCC> {
    Some(match name {
        "f_less_than" => FloatCC::LessThan,
        "f_less_than_or_equal" => FloatCC::LessThanOrEqual,
        "f_greater_than" => FloatCC::GreaterThan,
        "f_greater_than_or_equal" => FloatCC::GreaterThanOrEqual,
        "f_equal" => FloatCC::Equal,
        "f_not_equal" => FloatCC::NotEqual,
        _ => return None,
    })
}
