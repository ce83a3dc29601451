//! Arithmetic of floats that is exact but for one rounding, and what is made of it.
//!
//! f16, f32 and f64 are CLIF's; bf16 is added, multiplied and fused two at a time in the halves of an i32, and goes
//! through f32 for the rest, whose 24 bits are enough to round twice as once.

use super::types::Scalar;
use super::{Result, Translator};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::types::{I16, I32};
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_thisgpu::build::GpuBuilder;
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// The operations on floats of the `math` dialect that CLIF has.
    pub(super) fn float(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "f_add" => self.map(op, |t, [a, b], lane| Ok(t.float_add(a, b, lane))),
            "f_sub" => self.map(op, |t, [a, b], lane| Ok(t.float_sub(a, b, lane))),
            "f_mul" => self.map(op, |t, [a, b], lane| Ok(t.float_mul(a, b, lane))),
            "f_div" => self.map(op, |t, [a, b], lane| Ok(t.float_div(a, b, lane))),
            "fma" => self.map(op, |t, [a, b, c], lane| Ok(t.float_fma(a, b, c, lane))),
            "f_neg" => self.map(op, |t, [a], lane| Ok(t.float_neg(a, lane))),
            "f_abs" => self.map(op, |t, [a], lane| match lane {
                Scalar::BF16 => Ok(t.builder.ins().band_imm_u(a, 0x7fff)),
                _ => Ok(t.builder.ins().fabs(a)),
            }),
            "sqrt" => self.map(op, |t, [a], lane| Ok(t.float_sqrt(a, lane))),
            "recip" => self.map(op, |t, [a], lane| Ok(t.reciprocal(a, lane))),
            "round" => self.map(op, |t, [a], lane| {
                Ok(t.in_float(a, lane, |t, a| t.builder.ins().nearest(a)))
            }),
            "floor" => self.map(op, |t, [a], lane| {
                Ok(t.in_float(a, lane, |t, a| t.builder.ins().floor(a)))
            }),
            "ceil" => self.map(op, |t, [a], lane| {
                Ok(t.in_float(a, lane, |t, a| t.builder.ins().ceil(a)))
            }),
            "trunc" => self.map(op, |t, [a], lane| {
                Ok(t.in_float(a, lane, |t, a| t.builder.ins().trunc(a)))
            }),
            "is_nan" => self.map(op, |t, [a], lane| {
                Ok(t.float_compare(FloatCC::Unordered, a, a, lane))
            }),
            "is_inf" => self.map(op, |t, [a], lane| {
                let (wide, kind) = t.widened(a, lane);
                let size = t.builder.ins().fabs(wide);
                let infinity = t.float_constant(f64::INFINITY, kind);
                Ok(t.builder.ins().fcmp(FloatCC::Equal, size, infinity))
            }),
            "degrees" => self.scaled(op, 1f64.to_degrees()),
            "radians" => self.scaled(op, 1f64.to_radians()),
            "f_mod_floor" => self.map(op, |t, [a, b], lane| {
                let quotient = t.float_div(a, b, lane);
                let floor = t.in_float(quotient, lane, |t, q| t.builder.ins().floor(q));
                let product = t.float_mul(floor, b, lane);
                Ok(t.float_sub(a, product, lane))
            }),
            _ => Ok(false),
        }
    }

    pub(super) fn float_add(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        match lane {
            Scalar::BF16 => self.bf16("gpu_hadd2_bf16", &[a, b]),
            _ => self.builder.ins().fadd(a, b),
        }
    }

    pub(super) fn float_sub(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        match lane {
            Scalar::BF16 => {
                let negative = self.float_neg(b, lane);
                self.float_add(a, negative, lane)
            }
            _ => self.builder.ins().fsub(a, b),
        }
    }

    pub(super) fn float_mul(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        match lane {
            Scalar::BF16 => self.bf16("gpu_hmul2_bf16", &[a, b]),
            _ => self.builder.ins().fmul(a, b),
        }
    }

    fn float_fma(&mut self, a: Value, b: Value, c: Value, lane: Scalar) -> Value {
        match lane {
            Scalar::BF16 => self.bf16("gpu_hfma2_bf16", &[a, b, c]),
            _ => self.builder.ins().fma(a, b, c),
        }
    }

    pub(super) fn float_div(&mut self, a: Value, b: Value, lane: Scalar) -> Value {
        let ((left, _), (right, _)) = match lane {
            Scalar::BF16 => (self.widened(a, lane), self.widened(b, lane)),
            _ => ((a, lane), (b, lane)),
        };
        let quotient = self.builder.ins().fdiv(left, right);
        self.narrowed(quotient, lane)
    }

    fn float_neg(&mut self, a: Value, lane: Scalar) -> Value {
        match lane {
            Scalar::BF16 => {
                let sign = self.integer(I16, i64::from(i16::MIN));
                self.builder.ins().bxor(a, sign)
            }
            _ => self.builder.ins().fneg(a),
        }
    }

    pub(super) fn float_sqrt(&mut self, a: Value, lane: Scalar) -> Value {
        self.in_float(a, lane, |t, a| t.builder.ins().sqrt(a))
    }

    pub(super) fn reciprocal(&mut self, a: Value, lane: Scalar) -> Value {
        let one = self.float_constant(1.0, lane);
        self.float_div(one, a, lane)
    }

    /// An operation of CLIF, of which bf16 has none: it is done in f32 and rounded.
    fn in_float(
        &mut self,
        a: Value,
        lane: Scalar,
        operation: impl Fn(&mut Self, Value) -> Value,
    ) -> Value {
        match lane {
            Scalar::BF16 => {
                let (wide, _) = self.widened(a, lane);
                let result = operation(self, wide);
                self.narrowed(result, lane)
            }
            _ => operation(self, a),
        }
    }

    /// A packed operation on bfloat16, in the lower half.
    fn bf16(&mut self, name: &str, operands: &[Value]) -> Value {
        let operands: Vec<_> = (operands.iter())
            .map(|&operand| self.builder.ins().uextend(I32, operand))
            .collect();
        let pair = self.builder.intrinsic(name, &operands);
        self.builder.ins().ireduce(I16, pair)
    }

    fn scaled(&mut self, op: Ptr<Operation>, factor: f64) -> Result<bool> {
        self.map(op, |t, [a], lane| {
            // The factor in f32: one of 16 bits would round twice.
            let (wide, kind) = t.widened(a, lane);
            let factor = t.float_constant(factor, kind);
            let product = t.builder.ins().fmul(wide, factor);
            Ok(t.narrowed(product, lane))
        })
    }

    /// A float constant, rounded to the lane.
    pub(super) fn float_constant(&mut self, value: f64, lane: Scalar) -> Value {
        let pattern = match lane {
            Scalar::F16 => half::f16::from_f64(value).to_bits().into(),
            Scalar::BF16 => half::bf16::from_f64(value).to_bits().into(),
            Scalar::F32 => (value as f32).to_bits().into(),
            _ => value.to_bits() as i64,
        };
        let pattern = self.integer(lane.pattern(), pattern);
        self.bitcast(pattern, lane.clif())
    }
}
