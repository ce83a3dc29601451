//! Mathematical functions of numbers: comparison, rounding, exponents, angles.
//!
//! The transcendental ones are the library's, by libm's names; those of f16 are computed in f32 and rounded once more.

use super::math::Operands;
use super::values::Lanes;
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F16, F32, F64, I32, I64};
use cranelift_thisgpu::build::GpuBuilder;
use naga::{MathFunction, Scalar, ScalarKind};

impl Translator<'_, '_, '_> {
    /// A function of the library by its name for f64; operands that are integers are passed as they are.
    pub(super) fn library(
        &mut self,
        name: &str,
        scalar: Scalar,
        operands: &[ir::Value],
    ) -> Result<ir::Value> {
        let operands: Vec<_> = operands.iter().map(|&v| self.at_least_single(v)).collect();
        let (name, ty) = match scalar.width {
            8 => (name.to_string(), F64),
            _ => (format!("{name}f"), F32),
        };
        let call = self.builder.call_symbol(&name, &operands, &[ty]);
        let result = self.builder.inst_results(call)[0];
        Ok(self.rounded(result, scalar))
    }

    /// A result that was computed for an f16 in f32.
    fn rounded(&mut self, value: ir::Value, scalar: Scalar) -> ir::Value {
        match scalar.width {
            2 => self.builder.ins().fdemote(F16, value),
            _ => value,
        }
    }

    /// A function of scalars, which integers may have.
    pub(super) fn scalar_function(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        operands: &[ir::Value],
    ) -> Result<ir::Value> {
        use MathFunction as M;
        let name = match fun {
            M::Cos => "cos",
            M::Cosh => "cosh",
            M::Sin => "sin",
            M::Sinh => "sinh",
            M::Tan => "tan",
            M::Tanh => "tanh",
            M::Acos => "acos",
            M::Asin => "asin",
            M::Atan => "atan",
            M::Atan2 => "atan2",
            M::Asinh => "asinh",
            M::Acosh => "acosh",
            M::Atanh => "atanh",
            M::Exp => "exp",
            M::Exp2 => "exp2",
            M::Log => "log",
            M::Log2 => "log2",
            M::Pow => "pow",
            M::InverseSqrt => "rsqrt",
            M::Ldexp => "ldexp",
            _ => "",
        };
        if !name.is_empty() {
            return self.library(name, scalar, operands);
        }
        match (scalar.kind, operands) {
            (ScalarKind::Float, operands) => self.float_function(fun, scalar, operands),
            (_, operands) => self.integer_function(fun, scalar, operands),
        }
    }

    fn integer_function(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        operands: &[ir::Value],
    ) -> Result<ir::Value> {
        use MathFunction as M;
        let is_signed = scalar.kind == ScalarKind::Sint;
        Ok(match (fun, operands) {
            (M::Abs, &[a]) if is_signed => self.builder.ins().iabs(a),
            (M::Abs, &[a]) => a,
            (M::Min, &[a, b]) => self.lesser(scalar, a, b),
            (M::Max, &[a, b]) => self.greater(scalar, a, b),
            (M::Clamp, &[a, low, high]) => {
                let a = self.greater(scalar, a, low);
                self.lesser(scalar, a, high)
            }
            (M::Sign, &[a]) => {
                let ty = self.builder.func.dfg.value_type(a);
                let (one, minus) = (self.integer(ty, 1), self.integer(ty, -1));
                let a = self.builder.ins().smin(a, one);
                self.builder.ins().smax(a, minus)
            }
            _ => return Err(unsupported(format!("{fun:?} of integers"))),
        })
    }

    /// The lesser of two numbers; NaN if one of them is.
    pub(super) fn lesser(&mut self, scalar: Scalar, a: ir::Value, b: ir::Value) -> ir::Value {
        match scalar.kind {
            ScalarKind::Float => self.builder.ins().fmin(a, b),
            ScalarKind::Sint => self.builder.ins().smin(a, b),
            _ => self.builder.ins().umin(a, b),
        }
    }

    /// The greater of two numbers; NaN if one of them is.
    pub(super) fn greater(&mut self, scalar: Scalar, a: ir::Value, b: ir::Value) -> ir::Value {
        match scalar.kind {
            ScalarKind::Float => self.builder.ins().fmax(a, b),
            ScalarKind::Sint => self.builder.ins().smax(a, b),
            _ => self.builder.ins().umax(a, b),
        }
    }

    fn clamped(&mut self, a: ir::Value, low: ir::Value, high: ir::Value) -> ir::Value {
        let a = self.builder.ins().fmax(a, low);
        self.builder.ins().fmin(a, high)
    }

    fn float_function(
        &mut self,
        fun: MathFunction,
        scalar: Scalar,
        operands: &[ir::Value],
    ) -> Result<ir::Value> {
        use MathFunction as M;
        Ok(match (fun, operands) {
            (M::Abs, &[a]) => self.builder.ins().fabs(a),
            (M::Min, &[a, b]) => self.builder.ins().fmin(a, b),
            (M::Max, &[a, b]) => self.builder.ins().fmax(a, b),
            (M::Clamp, &[a, low, high]) => self.clamped(a, low, high),
            (M::Saturate, &[a]) => {
                let (zero, one) = (
                    self.float_constant(scalar, 0.0)?,
                    self.float_constant(scalar, 1.0)?,
                );
                self.clamped(a, zero, one)
            }
            (M::Radians | M::Degrees, &[a]) => {
                let factor = match fun {
                    M::Radians => std::f64::consts::PI / 180.0,
                    _ => 180.0 / std::f64::consts::PI,
                };
                let factor = self.float_constant(scalar, factor)?;
                self.builder.ins().fmul(a, factor)
            }
            (M::Ceil, &[a]) => self.builder.ins().ceil(a),
            (M::Floor, &[a]) => self.builder.ins().floor(a),
            (M::Round, &[a]) => self.builder.ins().nearest(a),
            (M::Trunc, &[a]) => self.builder.ins().trunc(a),
            (M::Fract, &[a]) => {
                let floor = self.builder.ins().floor(a);
                self.builder.ins().fsub(a, floor)
            }
            (M::Sign, &[a]) => {
                let zero = self.float_constant(scalar, 0.0)?;
                let (one, minus) = (
                    self.float_constant(scalar, 1.0)?,
                    self.float_constant(scalar, -1.0)?,
                );
                let is_positive = self.builder.ins().fcmp(FloatCC::GreaterThan, a, zero);
                let is_negative = self.builder.ins().fcmp(FloatCC::LessThan, a, zero);
                let rest = self.builder.ins().select(is_negative, minus, zero);
                self.builder.ins().select(is_positive, one, rest)
            }
            (M::Fma, &[a, b, c]) => self.builder.ins().fma(a, b, c),
            (M::Mix, &[a, b, part]) => {
                let one = self.float_constant(scalar, 1.0)?;
                let rest = self.builder.ins().fsub(one, part);
                let (a, b) = (
                    self.builder.ins().fmul(a, rest),
                    self.builder.ins().fmul(b, part),
                );
                self.builder.ins().fadd(a, b)
            }
            (M::Step, &[edge, a]) => {
                let (zero, one) = (
                    self.float_constant(scalar, 0.0)?,
                    self.float_constant(scalar, 1.0)?,
                );
                let is_above = (self.builder.ins()).fcmp(FloatCC::LessThanOrEqual, edge, a);
                self.builder.ins().select(is_above, one, zero)
            }
            (M::SmoothStep, &[low, high, a]) => {
                let (zero, one) = (
                    self.float_constant(scalar, 0.0)?,
                    self.float_constant(scalar, 1.0)?,
                );
                let way = self.builder.ins().fsub(a, low);
                let whole = self.builder.ins().fsub(high, low);
                let part = self.builder.ins().fdiv(way, whole);
                let part = self.clamped(part, zero, one);
                let (two, three) = (
                    self.float_constant(scalar, 2.0)?,
                    self.float_constant(scalar, 3.0)?,
                );
                let double = self.builder.ins().fmul(two, part);
                let rest = self.builder.ins().fsub(three, double);
                let square = self.builder.ins().fmul(part, part);
                self.builder.ins().fmul(square, rest)
            }
            (M::Sqrt, &[a]) => self.builder.ins().sqrt(a),
            (M::QuantizeToF16, &[a]) => {
                let half = self.builder.ins().fdemote(F16, a);
                self.builder.ins().fpromote(F32, half)
            }
            _ => return Err(unsupported(format!("{fun:?} of floats"))),
        })
    }

    /// `modf` and `frexp`: the leaves of the first member of the result, then those of the second.
    pub(super) fn decomposed(&mut self, fun: MathFunction, operands: &Operands) -> Result<Lanes> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for &lane in operands.get(0)? {
            let (a, b) = match fun {
                MathFunction::Modf => {
                    let whole = self.builder.ins().trunc(lane);
                    (self.builder.ins().fsub(lane, whole), whole)
                }
                _ => self.frexp(operands.scalar, lane)?,
            };
            first.push(a);
            second.push(b);
        }
        first.extend(second);
        Ok(first)
    }

    /// A fraction of at least 1/2 and less than 1, and the exponent that makes the number of it; zeros, infinities and
    /// NaN stay as they are, with the exponent 0.
    fn frexp(&mut self, scalar: Scalar, value: ir::Value) -> Result<(ir::Value, ir::Value)> {
        let wide = self.at_least_single(value);
        let (ty, bits, digits, bias) = match scalar.width {
            8 => (F64, I64, 52, 1022),
            _ => (F32, I32, 23, 126),
        };
        let held = Scalar {
            kind: ScalarKind::Float,
            width: ty.bytes() as u8,
        };
        // A subnormal number becomes a normal one first.
        let (least, scale) = match ty {
            F64 => (f64::MIN_POSITIVE, 2f64.powi(54)),
            _ => (f32::MIN_POSITIVE.into(), 2f64.powi(25)),
        };
        let shift = scale.log2() as i64;
        let (least, scale) = (
            self.float_constant(held, least)?,
            self.float_constant(held, scale)?,
        );
        let size = self.builder.ins().fabs(wide);
        let is_small = self.builder.ins().fcmp(FloatCC::LessThan, size, least);
        let scaled = self.builder.ins().fmul(wide, scale);
        let normal = self.builder.ins().select(is_small, scaled, wide);
        let pattern = self.bitcast(normal, bits);
        let field = self.builder.ins().ushr_imm_u(pattern, digits);
        let mask = (1i64 << (bits.bits() as i64 - 1 - digits)) - 1;
        let field = self.builder.ins().band_imm_u(field, mask);
        let field = self.resize(field, I32);
        let (more, none) = (self.integer(I32, bias + shift), self.integer(I32, bias));
        let bias_here = self.builder.ins().select(is_small, more, none);
        let exponent = self.builder.ins().isub(field, bias_here);
        let cleared = !(mask << digits);
        let cleared = self.integer(bits, cleared);
        let kept = self.builder.ins().band(pattern, cleared);
        let half = self.integer(bits, bias << digits);
        let fraction = self.builder.ins().bor(kept, half);
        let fraction = self.bitcast(fraction, ty);
        // What has no exponent.
        let zero = self.float_constant(held, 0.0)?;
        let is_zero = self.builder.ins().fcmp(FloatCC::Equal, wide, zero);
        let largest = self.integer(I32, mask);
        let is_special = self.builder.ins().icmp(IntCC::Equal, field, largest);
        let stays = self.builder.ins().bor(is_zero, is_special);
        let fraction = self.builder.ins().select(stays, wide, fraction);
        let nothing = self.integer(I32, 0);
        let exponent = self.builder.ins().select(stays, nothing, exponent);
        Ok((self.rounded(fraction, scalar), exponent))
    }

    /// The error of a function of what it is not defined for.
    pub(super) fn undefined(&self, fun: MathFunction) -> crate::error::Reason {
        invalid(format!("{fun:?} of what it is not defined for"))
    }
}
