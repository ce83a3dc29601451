//! Conversions by value, and patterns taken as another type.
//!
//! A float becomes an integer by cutting what is behind the point; what is outside of the integers becomes the nearest
//! that is a number of both types, and NaN becomes 0.

use super::constants::pattern;
use super::types::clif;
use super::values::Lanes;
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F16, F32, I32};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData};
use naga::proc::min_max_float_representable_by;
use naga::{Expression, Handle, Scalar, ScalarKind};

impl Translator<'_, '_, '_> {
    /// `Expression::As`.
    pub(super) fn convert(
        &mut self,
        expr: Handle<Expression>,
        kind: ScalarKind,
        convert: Option<u8>,
    ) -> Result<Lanes> {
        let from = self.scalar(&self.type_of(expr))?;
        let to = Scalar {
            kind,
            width: convert.unwrap_or(from.width),
        };
        let lanes = self.lanes(expr)?;
        let mut results = Vec::with_capacity(lanes.len());
        for lane in lanes {
            results.push(match convert {
                Some(_) => self.converted(lane, from, to)?,
                None => self.bitcast(lane, clif(to)?),
            });
        }
        Ok(results)
    }

    /// A pattern as another type of the same width.
    pub(super) fn bitcast(&mut self, value: ir::Value, ty: ir::Type) -> ir::Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        (self.builder.ins()).bitcast(ty, MemFlagsData::new(), value)
    }

    /// An integer of another width, with zeros above.
    pub(super) fn resize(&mut self, value: ir::Value, ty: ir::Type) -> ir::Value {
        let from = self.builder.func.dfg.value_type(value);
        match from.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Less => self.builder.ins().uextend(ty, value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.builder.ins().ireduce(ty, value),
        }
    }

    /// A scalar by its value.
    pub(super) fn converted(
        &mut self,
        value: ir::Value,
        from: Scalar,
        to: Scalar,
    ) -> Result<ir::Value> {
        use ScalarKind::{Bool, Float, Sint, Uint};
        let (source, target) = (clif(from)?, clif(to)?);
        Ok(match (from.kind, to.kind) {
            _ if from == to => value,
            (Bool, Sint | Uint) => self.resize(value, target),
            (Bool, Float) => {
                let (one, zero) = (self.float_constant(to, 1.0)?, self.float_constant(to, 0.0)?);
                self.builder.ins().select(value, one, zero)
            }
            (Float, Bool) => {
                let zero = self.float_constant(from, 0.0)?;
                self.builder.ins().fcmp(FloatCC::NotEqual, value, zero)
            }
            (Sint | Uint, Bool) => {
                let zero = self.integer(source, 0);
                self.builder.ins().icmp(IntCC::NotEqual, value, zero)
            }
            (Sint, Sint | Uint)
                if target.bits() > source.bits() && !planted(Mistake::SignExtension) =>
            {
                self.builder.ins().sextend(target, value)
            }
            (Sint | Uint, Sint | Uint) => self.resize(value, target),
            (Float, Float) if target.bits() > source.bits() => {
                self.builder.ins().fpromote(target, value)
            }
            (Float, Float) => self.builder.ins().fdemote(target, value),
            (Float, Sint | Uint) => {
                let (low, high) = min_max_float_representable_by(from, to);
                let [low, high] = [low, high].map(|end| {
                    let (scalar, pattern) = pattern(end)?;
                    self.constant(scalar, pattern)
                });
                let (low, high) = (low?, high?);
                let value = match planted(Mistake::FloatLimit) {
                    true => value,
                    false => {
                        let value = self.builder.ins().fmax(value, low);
                        self.builder.ins().fmin(value, high)
                    }
                };
                let value = self.at_least_single(value);
                self.cut(value, target, to.kind == Sint)
            }
            (Sint, Float) => {
                let value = match source.bits() < 32 {
                    true => self.builder.ins().sextend(I32, value),
                    false => value,
                };
                self.builder.ins().fcvt_from_sint(target, value)
            }
            (Uint, Float) => {
                let value = match source.bits() < 32 {
                    true => self.builder.ins().uextend(I32, value),
                    false => value,
                };
                self.builder.ins().fcvt_from_uint(target, value)
            }
            (from, to) => return Err(invalid(format!("a conversion from {from:?} to {to:?}"))),
        })
    }

    /// An f16 as f32, which holds all of its values.
    pub(super) fn at_least_single(&mut self, value: ir::Value) -> ir::Value {
        match self.builder.func.dfg.value_type(value) {
            F16 => self.builder.ins().fpromote(F32, value),
            _ => value,
        }
    }

    fn cut(&mut self, value: ir::Value, target: ir::Type, is_signed: bool) -> ir::Value {
        let width = match target.bits() {
            ..32 => I32,
            _ => target,
        };
        let cut = match is_signed {
            true => self.builder.ins().fcvt_to_sint_sat(width, value),
            false => self.builder.ins().fcvt_to_uint_sat(width, value),
        };
        self.resize(cut, target)
    }

    /// A scalar's pattern as an integer of the same width.
    pub(super) fn pattern_of(&mut self, value: ir::Value) -> Result<ir::Value> {
        let ty = self.builder.func.dfg.value_type(value);
        match ty.is_float() {
            true => {
                let bits = ir::Type::int(ty.bits() as u16);
                let bits = bits.ok_or_else(|| unsupported("patterns of this type"))?;
                Ok(self.bitcast(value, bits))
            }
            false => Ok(value),
        }
    }
}
