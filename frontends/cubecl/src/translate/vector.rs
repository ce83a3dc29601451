//! Vectors and other composites: their lanes one by one.

use super::metadata::required;
use super::types::{self, Scalar};
use super::{Lanes, Result, Translator, invalid};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder};
use cubecl_core::ir::{
    dialect::{
        OperationPtrExt,
        vector::{CompositeExtractOp, CompositeInsertOp},
    },
    interfaces::memory_slot::DestructurableTypeInterface,
    types::aggregate::index_attr,
};
use pliron::context::Ptr;
use pliron::operation::Operation;
use pliron::r#type::{TypeHandle, Typed, type_cast};

impl Translator<'_, '_, '_> {
    /// The dialects `composite` and `vector`.
    pub(super) fn vector(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "construct" => {
                let mut lanes = Vec::new();
                for value in op.operands(self.context) {
                    lanes.extend(self.lanes(value)?);
                }
                self.define(op, lanes);
            }
            "extract" => {
                let extract = required(op.as_op::<CompositeExtractOp>(self.context))?;
                let (composite, index) =
                    (op.operand(self.context, 0), extract.index(self.context).0);
                let lanes = self.lanes(composite)?;
                let range = self.field(composite.get_type(self.context), index)?;
                let field = lanes.get(range).ok_or_else(|| invalid("no such field"))?;
                self.define(op, field.to_vec());
            }
            "insert" => {
                let insert = required(op.as_op::<CompositeInsertOp>(self.context))?;
                let (composite, index) =
                    (op.operand(self.context, 0), insert.index(self.context).0);
                let (mut lanes, value) = (self.lanes(composite)?, self.operand(op, 1)?);
                let range = self.field(composite.get_type(self.context), index)?;
                let field = lanes
                    .get_mut(range)
                    .ok_or_else(|| invalid("no such field"))?;
                field.copy_from_slice(&value);
                self.define(op, lanes);
            }
            "broadcast" => {
                let count = self.result_lanes(op)?.len();
                let lane = self.single(op, 0)?;
                self.define(op, vec![lane; count]);
            }
            "insert_dynamic" => {
                let (lanes, value, index) = (
                    self.operand(op, 0)?,
                    self.single(op, 1)?,
                    self.single(op, 2)?,
                );
                let lanes = lanes.into_iter().enumerate().map(|(number, lane)| {
                    let here = self.is_index(index, number);
                    self.builder.ins().select(here, value, lane)
                });
                let lanes = lanes.collect();
                self.define(op, lanes);
            }
            "extract_dynamic" => {
                let (lanes, index) = (self.operand(op, 0)?, self.single(op, 1)?);
                let mut picked = lanes[0];
                for (number, &lane) in lanes.iter().enumerate().skip(1) {
                    let here = self.is_index(index, number);
                    picked = self.builder.ins().select(here, lane, picked);
                }
                self.define(op, vec![picked]);
            }
            "i_sum" | "f_sum" => {
                let (lanes, scalar) = (self.operand(op, 0)?, self.operand_scalar(op, 0)?);
                let sum = self.sum(&lanes, scalar);
                self.define(op, vec![sum]);
            }
            "s_dot" | "u_dot" | "f_dot" => {
                let scalar = self.operand_scalar(op, 0)?;
                let (left, right) = (self.operand(op, 0)?, self.operand(op, 1)?);
                let products = self.products(&left, &right, scalar);
                let sum = self.sum(&products, scalar);
                self.define(op, vec![sum]);
            }
            "magnitude" => {
                let (scaled, scale) = self.near_one(op)?;
                let magnitude = self.norm(&scaled);
                let magnitude = self.builder.ins().fmul(magnitude, scale);
                let magnitude = self.narrowed(magnitude, self.operand_scalar(op, 0)?);
                self.define(op, vec![magnitude]);
            }
            "normalize" => {
                let scalar = self.operand_scalar(op, 0)?;
                let (scaled, _) = self.near_one(op)?;
                let length = self.norm(&scaled);
                let mut lanes = Vec::with_capacity(scaled.len());
                for lane in scaled {
                    let quotient = self.builder.ins().fdiv(lane, length);
                    lanes.push(self.narrowed(quotient, scalar));
                }
                self.define(op, lanes);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Which lanes of a composite a field is.
    fn field(&self, composite: TypeHandle, index: usize) -> Result<std::ops::Range<usize>> {
        let context = self.context;
        let ty = composite.deref(context);
        let fields = type_cast::<dyn DestructurableTypeInterface>(&*ty)
            .and_then(|ty| ty.subelement_index_map(context))
            .ok_or_else(|| invalid("a field of what has none"))?;
        let count = |index: usize| match fields.get(&index_attr(index)) {
            Some(&ty) => types::lanes(context, ty).map(|lanes| lanes.len()),
            None => Err(invalid("no such field")),
        };
        let mut start = 0;
        for before in 0..index {
            start += count(before)?;
        }
        Ok(start..start + count(index)?)
    }

    fn is_index(&mut self, index: ir::Value, number: usize) -> ir::Value {
        let ty = self.builder.func.dfg.value_type(index);
        let number = self.integer(ty, number as i64);
        self.builder.ins().icmp(IntCC::Equal, index, number)
    }

    fn products(&mut self, left: &[ir::Value], right: &[ir::Value], scalar: Scalar) -> Lanes {
        let pairs = left.iter().zip(right);
        let products = pairs.map(|(&a, &b)| {
            if scalar.is_float() {
                self.float_mul(a, b, scalar)
            } else {
                self.builder.ins().imul(a, b)
            }
        });
        products.collect()
    }

    fn sum(&mut self, lanes: &[ir::Value], scalar: Scalar) -> ir::Value {
        let mut sum = lanes[0];
        for &lane in &lanes[1..] {
            sum = if scalar.is_float() {
                self.float_add(sum, lane, scalar)
            } else {
                self.builder.ins().iadd(sum, lane)
            };
        }
        sum
    }

    /// The lanes of the operand as f32 or f64, times a power of two that brings the greatest near 1, so that no square
    /// is too large or too small; and the power that undoes it.
    fn near_one(&mut self, op: Ptr<Operation>) -> Result<(Lanes, ir::Value)> {
        let (lanes, scalar) = (self.operand(op, 0)?, self.operand_scalar(op, 0)?);
        let mut wide = Vec::with_capacity(lanes.len());
        let mut greatest = None;
        let mut kind = scalar;
        for lane in lanes {
            let (lane, of) = self.widened(lane, scalar);
            let magnitude = self.builder.ins().fabs(lane);
            greatest = Some(match greatest {
                Some(before) => self.builder.ins().fmax(before, magnitude),
                None => magnitude,
            });
            kind = of;
            wide.push(lane);
        }
        let greatest = greatest.ok_or_else(|| invalid("a vector of no lanes"))?;
        // Of a power of two only the exponent's field is not zero: that of the inverse makes twice the bias with it.
        let (ty, field, bias) = match kind {
            Scalar::F32 => (ir::types::I32, 23, 127),
            _ => (ir::types::I64, 52, 1023),
        };
        let bits = self.bitcast(greatest, ty);
        let exponent = self.builder.ins().ushr_imm_u(bits, field);
        let exponent = self.limited(exponent, 1, 2 * bias - 1);
        let twice = self.integer(ty, 2 * bias);
        let inverse = self.builder.ins().isub(twice, exponent);
        let [scale, inverse] = [exponent, inverse].map(|exponent| {
            let bits = self.builder.ins().ishl_imm_u(exponent, field);
            self.bitcast(bits, kind.clif())
        });
        let scaled = wide
            .into_iter()
            .map(|lane| self.builder.ins().fmul(lane, inverse));
        Ok((scaled.collect(), scale))
    }

    /// An integer without sign, brought into a range.
    fn limited(&mut self, value: ir::Value, least: i64, most: i64) -> ir::Value {
        let ty = self.builder.func.dfg.value_type(value);
        let (least, most) = (self.integer(ty, least), self.integer(ty, most));
        let value = self.builder.ins().umax(value, least);
        self.builder.ins().umin(value, most)
    }

    /// The root of the sum of squares of some f32 or f64, at least one.
    fn norm(&mut self, lanes: &[ir::Value]) -> ir::Value {
        let mut sum = self.builder.ins().fmul(lanes[0], lanes[0]);
        for &lane in &lanes[1..] {
            sum = self.builder.ins().fma(lane, lane, sum);
        }
        self.builder.ins().sqrt(sum)
    }
}
