//! Conversions of numbers, as Rust's `as` makes them, and pieces of bits.

use super::types::Scalar;
use super::{Lanes, Result, Translator, unsupported};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, I16, I32};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use cubecl_core::ir::{dialect::OperationPtrExt, interfaces::TypedExt};
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// `cube.cast`.
    pub(super) fn cast(&mut self, op: Ptr<Operation>) -> Result<()> {
        let to = self.result_scalar(op)?;
        let count = self.result_lanes(op)?.len();
        let is_tf32 = self
            .result_type(op)
            .scalar_ty(self.context)
            .is_tfloat32(self.context);
        self.map(op, |t, [value], from| {
            let value = t.convert(value, from, to)?;
            Ok(match is_tf32 {
                true => t.rounded_to_tf32(value),
                false => value,
            })
        })?;
        // A single value as a vector is one of equal lanes.
        let result = self.lanes(op.result(self.context))?;
        if let [only] = result[..] {
            self.define(op, vec![only; count]);
        }
        Ok(())
    }

    /// A lane as another kind of number.
    pub(super) fn convert(&mut self, value: Value, from: Scalar, to: Scalar) -> Result<Value> {
        if from == to {
            return Ok(value);
        }
        if matches!(from, Scalar::Pointer(_)) || matches!(to, Scalar::Pointer(_)) {
            return Err(unsupported("a conversion between numbers and pointers"));
        }
        Ok(match (from.is_float(), to.is_float()) {
            (false, false) => self.integer_to_integer(value, from, to),
            (true, false) => self.float_to_integer(value, from, to),
            (false, true) => self.integer_to_float(value, from, to),
            (true, true) => self.float_to_float(value, from, to),
        })
    }

    fn integer_to_integer(&mut self, value: Value, from: Scalar, to: Scalar) -> Value {
        if to == Scalar::Bool {
            let zero = self.integer(from.clif(), 0);
            return self.builder.ins().icmp(IntCC::NotEqual, value, zero);
        }
        if from.is_signed() && from.bytes() < to.bytes() {
            return self.builder.ins().sextend(to.clif(), value);
        }
        self.resize(value, to.clif())
    }

    fn float_to_integer(&mut self, value: Value, from: Scalar, to: Scalar) -> Value {
        let (value, from) = self.widened(value, from);
        match to {
            Scalar::Bool => {
                let zero = self.zero(from);
                self.builder.ins().fcmp(FloatCC::NotEqual, value, zero)
            }
            _ if to.is_signed() => self.builder.ins().fcvt_to_sint_sat(to.clif(), value),
            _ => self.builder.ins().fcvt_to_uint_sat(to.clif(), value),
        }
    }

    fn integer_to_float(&mut self, value: Value, from: Scalar, to: Scalar) -> Value {
        // Integers of up to 16 bits, which are all that come here for bf16, are exact in f32.
        let through = if to == Scalar::BF16 { Scalar::F32 } else { to };
        let value = if from.is_signed() {
            self.builder.ins().fcvt_from_sint(through.clif(), value)
        } else {
            self.builder.ins().fcvt_from_uint(through.clif(), value)
        };
        self.narrowed(value, to)
    }

    fn float_to_float(&mut self, value: Value, from: Scalar, to: Scalar) -> Value {
        let (value, from) = match from {
            Scalar::BF16 => self.widened(value, from),
            _ => (value, from),
        };
        if to == Scalar::BF16 {
            let value = match from {
                Scalar::F64 => self.builder.ins().fdemote(F32, value),
                Scalar::F16 => self.builder.ins().fpromote(F32, value),
                _ => value,
            };
            return self.narrowed(value, to);
        }
        match from.bytes().cmp(&to.bytes()) {
            std::cmp::Ordering::Less => self.builder.ins().fpromote(to.clif(), value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.builder.ins().fdemote(to.clif(), value),
        }
    }

    /// A float of 16 bits as f32; f32 and f64 as they are.
    pub(super) fn widened(&mut self, value: Value, scalar: Scalar) -> (Value, Scalar) {
        match scalar {
            Scalar::F16 => (self.builder.ins().fpromote(F32, value), Scalar::F32),
            Scalar::BF16 => {
                let pattern = self.builder.ins().uextend(I32, value);
                let pattern = self.builder.ins().ishl_imm_u(pattern, 16);
                (self.bitcast(pattern, F32), Scalar::F32)
            }
            _ => (value, scalar),
        }
    }

    /// What [`Translator::widened`] gave, or a result of such, as the float that it was, rounded to the nearest.
    pub(super) fn narrowed(&mut self, value: Value, to: Scalar) -> Value {
        match to {
            Scalar::F16 if self.builder.func.dfg.value_type(value) == F32 => {
                self.builder.ins().fdemote(to.clif(), value)
            }
            Scalar::BF16 => self.rounded_to_bf16(value),
            _ => value,
        }
    }

    /// The upper half of an f32, rounded to the nearest, ties to even; a NaN stays one.
    fn rounded_to_bf16(&mut self, value: Value) -> Value {
        let bits = self.bitcast(value, I32);
        let above = self.builder.ins().ushr_imm_u(bits, 16);
        let odd = self.builder.ins().band_imm_u(above, 1);
        let half = self.builder.ins().iadd_imm_u(odd, 0x7fff);
        let sum = self.builder.ins().iadd(bits, half);
        let rounded = self.builder.ins().ushr_imm_u(sum, 16);
        let quiet = self.builder.ins().bor_imm_u(above, 0x40);
        let is_nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
        let pattern = self.builder.ins().select(is_nan, quiet, rounded);
        self.builder.ins().ireduce(I16, pattern)
    }

    /// An f32 with the fraction of a tf32, of 10 bits, rounded to the nearest, ties away from zero.
    fn rounded_to_tf32(&mut self, value: Value) -> Value {
        let bits = self.bitcast(value, I32);
        let sum = self.builder.ins().iadd_imm_u(bits, 0x1000);
        let rounded = self.builder.ins().band_imm_u(sum, 0xffff_e000);
        let rounded = self.bitcast(rounded, F32);
        // Infinities and NaN have no fraction to round.
        let difference = self.builder.ins().fsub(value, value);
        let is_finite = (self.builder.ins()).fcmp(FloatCC::Equal, difference, difference);
        self.builder.ins().select(is_finite, rounded, value)
    }

    /// Lanes as integers of so many bytes, which are no more than theirs, the lowest first.
    pub(super) fn pieces(&mut self, lanes: &[Value], from: &[Scalar], bytes: u32) -> Lanes {
        let Some(ty) = Type::int((bytes * 8) as u16) else {
            return lanes.to_vec();
        };
        let mut pieces = Vec::new();
        for (&lane, &scalar) in lanes.iter().zip(from) {
            let pattern = self.pattern(lane, scalar);
            for piece in 0..scalar.bytes() / bytes {
                let shifted = match piece {
                    0 => pattern,
                    _ => {
                        let shift = i64::from(piece * bytes * 8);
                        self.builder.ins().ushr_imm_u(pattern, shift)
                    }
                };
                pieces.push(self.resize(shifted, ty));
            }
        }
        pieces
    }

    /// Lanes made of such pieces.
    pub(super) fn joined(&mut self, pieces: &[Value], to: &[Scalar], bytes: u32) -> Lanes {
        let mut rest = pieces.iter();
        let mut lanes = Vec::with_capacity(to.len());
        for &scalar in to {
            let ty = scalar.pattern();
            let mut pattern = None;
            for (index, &piece) in
                (rest.by_ref().take((scalar.bytes() / bytes) as usize)).enumerate()
            {
                let wide = self.resize(piece, ty);
                let shift = index as i64 * i64::from(bytes) * 8;
                pattern = Some(match pattern {
                    None => wide,
                    Some(below) => {
                        let above = self.builder.ins().ishl_imm_u(wide, shift);
                        self.builder.ins().bor(below, above)
                    }
                });
            }
            if let Some(pattern) = pattern {
                lanes.push(self.bitcast(pattern, scalar.clif()));
            }
        }
        lanes
    }
}
