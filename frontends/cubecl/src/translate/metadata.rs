//! What a launch says of its arguments: scalars, lengths of buffers, shapes and strides.

use super::types::{self, Scalar};
use super::{Result, Translator, invalid};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use cubecl_core::ir::{
    ContextExt,
    dialect::{
        OperationPtrExt,
        general::{BufferLenOp, ReadScalarOp, ShapeOp, StrideOp},
    },
};
use pliron::builtin::attr_interfaces::TypedAttrInterface;
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// `cube.read_scalar`, `cube.buffer_len`, `cube.shape`, `cube.stride`.
    pub(super) fn metadata(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        let context = self.context;
        let value = match name {
            "read_scalar" => self.scalar_argument(op)?,
            "buffer_len" => {
                let op = required(op.as_op::<BufferLenOp>(context))?;
                self.buffer_length(op.buffer_idx(context).0)?
            }
            "shape" => {
                let shape = required(op.as_op::<ShapeOp>(context))?;
                let slot = self.info.shape_offset_index(shape.buffer_idx(context).0);
                self.of_dimension(op, slot)?
            }
            "stride" => {
                let stride = required(op.as_op::<StrideOp>(context))?;
                let slot = self.info.stride_offset_index(stride.buffer_idx(context).0);
                self.of_dimension(op, slot)?
            }
            _ => return Ok(false),
        };
        self.define(op, vec![value]);
        Ok(true)
    }

    /// The elements of a buffer.
    pub(super) fn buffer_length(&mut self, buffer: usize) -> Result<Value> {
        let slot = self.info.buffer_len_index(buffer);
        self.static_word(slot)
    }

    fn scalar_argument(&mut self, op: Ptr<Operation>) -> Result<Value> {
        let context = self.context;
        let read = required(op.as_op::<ReadScalarOp>(context))?;
        let (ty, id) = (read.ty(context).get_type(context), read.id(context).0);
        let field = (self.info.scalars.iter()).find(|field| field.ty.to_type(context) == ty);
        let field = field.ok_or_else(|| invalid("a scalar that the launch does not pass"))?;
        let size = field.ty.expand_size(context.address_type());
        let scalar = types::scalar(context, ty)?;
        self.argument(field.offset + id * size, scalar)
    }

    /// A lane at this byte of the words that are parameters.
    fn argument(&mut self, byte: usize, scalar: Scalar) -> Result<Value> {
        let parameter = self.arguments.word(byte / size_of::<u64>());
        let parameter = parameter.ok_or_else(|| invalid("an argument behind the last one"))?;
        let word = self.parameters[parameter];
        let shift = (byte % size_of::<u64>() * 8) as i64;
        let word = if shift == 0 {
            word
        } else {
            self.builder.ins().ushr_imm_u(word, shift)
        };
        let pattern = self.resize(word, scalar.pattern());
        Ok(self.bitcast(pattern, scalar.clif()))
    }

    /// A number of the type of indices among the lengths and places.
    fn static_word(&mut self, slot: usize) -> Result<Value> {
        let index = types::index(self.context);
        let base = self.info.sized_meta.map_or(0, |field| field.offset);
        self.argument(base + slot * index.bytes() as usize, index)
    }

    /// What the array of shapes and strides holds for a dimension, behind the place that a slot names.
    fn of_dimension(&mut self, op: Ptr<Operation>, slot: usize) -> Result<Value> {
        let index = types::index(self.context);
        let place = self.static_word(slot)?;
        let dimension = self.single(op, 0)?;
        let shapes = self.arguments.shapes();
        let shapes = shapes.ok_or_else(|| invalid("a shape that the launch does not pass"))?;
        let element = self.builder.ins().iadd(place, dimension);
        let address = self.place(self.parameters[shapes], element, index.bytes());
        let flags = MemFlagsData::new().with_aligned().with_readonly();
        Ok(self.builder.ins().load(index.clif(), flags, address, 0))
    }
}

/// The operation as what its name says it is.
pub(super) fn required<T>(op: Option<T>) -> Result<T> {
    op.ok_or_else(|| invalid("an operation that is not what its name says"))
}
