//! Constants, truth values, choices, and what is nothing on this device.

use super::metadata::required;
use super::types::{self, Scalar};
use super::{Lanes, Result, Translator, invalid, unsupported};
use cranelift_codegen::ir::InstBuilder;
use cubecl_core::ir::{
    attributes::{BoolAttr, FloatAttr, IndexAttr, ZeroAttr},
    dialect::{OperationPtrExt, general::PrintfOp},
};
use pliron::attribute::Attribute;
use pliron::builtin::attributes::IntegerAttr;
use pliron::builtin::ops::ConstantOp;
use pliron::context::Ptr;
use pliron::operation::Operation;
use pliron::r#type::{TypeHandle, Typed};

impl Translator<'_, '_, '_> {
    /// `builtin.constant`.
    pub(super) fn constant(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        let context = self.context;
        if name != "constant" {
            return Ok(false);
        }
        let constant = required(op.as_op::<ConstantOp>(context))?;
        let ty = self.result_type(op);
        let value = constant.get_value(context);
        let lanes = self.constant_lanes(&*value as &dyn Attribute, ty)?;
        self.define(op, lanes);
        Ok(true)
    }

    /// A constant of a type: what is a single value stands in all its lanes.
    pub(super) fn constant_lanes(
        &mut self,
        value: &dyn Attribute,
        ty: TypeHandle,
    ) -> Result<Lanes> {
        let bits = if let Some(value) = value.downcast_ref::<IntegerAttr>() {
            value.value().to_i128() as i64
        } else if let Some(value) = value.downcast_ref::<IndexAttr>() {
            value.0 as i64
        } else if let Some(value) = value.downcast_ref::<BoolAttr>() {
            i64::from(value.0)
        } else if let Some(value) = value.downcast_ref::<FloatAttr>() {
            value.val.to_bits() as i64
        } else if value.downcast_ref::<ZeroAttr>().is_some() {
            0
        } else {
            return Err(unsupported("this kind of constant"));
        };
        let lanes = types::lanes(self.context, ty)?;
        let lanes = lanes.into_iter().map(|lane| {
            let pattern = self.integer(lane.pattern(), bits);
            self.bitcast(pattern, lane.clif())
        });
        Ok(lanes.collect())
    }

    /// The `cube` dialect but for builtins and metadata.
    pub(super) fn general(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "copy" => {
                let lanes = self.operand(op, 0)?;
                self.define(op, lanes);
            }
            "poison" => {
                let lanes = self.result_lanes(op)?;
                let lanes = lanes.into_iter().map(|lane| self.zero(lane)).collect();
                self.define(op, lanes);
            }
            "bool_and" => return self.map(op, |t, [a, b], _| Ok(t.builder.ins().band(a, b))),
            "bool_or" => return self.map(op, |t, [a, b], _| Ok(t.builder.ins().bor(a, b))),
            "bool_not" => return self.map(op, |t, [a], _| Ok(t.builder.ins().bxor_imm_u(a, 1))),
            "select" => self.select(op)?,
            "cast" => self.cast(op)?,
            "reinterpret_cast" => self.reinterpret(op)?,
            // Memory is given back at the end of the kernel, and comments are for readers.
            "free" | "comment" => {}
            "printf" => {
                let format = op.as_op::<PrintfOp>(self.context);
                let format = format.map(|op| op.format_string(self.context).as_str().to_string());
                let format = format.unwrap_or_default();
                log::warn!("a kernel prints {format:?}, which this device shows nowhere");
            }
            _ => return self.shared(op, name),
        }
        Ok(true)
    }

    fn select(&mut self, op: Ptr<Operation>) -> Result<()> {
        let [conditions, yes, no] = [0, 1, 2].map(|index| self.operand(op, index));
        let (conditions, yes, no) = (conditions?, yes?, no?);
        let mut lanes = Vec::with_capacity(yes.len());
        for (index, (&yes, &no)) in yes.iter().zip(&no).enumerate() {
            let condition = match conditions[..] {
                [only] => only,
                _ => *(conditions.get(index))
                    .ok_or_else(|| invalid("a choice with too few conditions"))?,
            };
            lanes.push(self.builder.ins().select(condition, yes, no));
        }
        self.define(op, lanes);
        Ok(())
    }

    /// The same bits as other lanes.
    fn reinterpret(&mut self, op: Ptr<Operation>) -> Result<()> {
        let from = types::lanes(
            self.context,
            op.operand(self.context, 0).get_type(self.context),
        )?;
        let (to, lanes) = (self.result_lanes(op)?, self.operand(op, 0)?);
        if let ([Scalar::Pointer(from), ..], [Scalar::Pointer(to), ..]) = (&from[..], &to[..]) {
            if from != to {
                return Err(unsupported("a pointer as one to another kind of memory"));
            }
            self.define(op, lanes);
            return Ok(());
        }
        let total = |lanes: &[Scalar]| lanes.iter().map(|lane| lane.bytes()).sum::<u32>();
        if total(&from) != total(&to) {
            return Err(unsupported("bits as a type of another size"));
        }
        let bytes = from[0].bytes().min(to[0].bytes());
        let pieces = self.pieces(&lanes, &from, bytes);
        let result = self.joined(&pieces, &to, bytes);
        self.define(op, result);
        Ok(())
    }
}
