//! `Expression::Math`: which family a function belongs to.

use super::values::Lanes;
use super::{Result, Translator};
use crate::error::invalid;
use cranelift_codegen::ir;
use naga::{Expression, Handle, MathFunction, Scalar};

/// The operands of a mathematical function.
pub(super) struct Operands {
    /// What the first one is made of.
    pub scalar: Scalar,
    pub lanes: Vec<Lanes>,
}

impl Operands {
    /// An operand.
    pub(super) fn get(&self, number: usize) -> Result<&Lanes> {
        let lanes = self.lanes.get(number);
        lanes.ok_or_else(|| invalid("a function with too few operands"))
    }

    /// An operand that is one scalar.
    pub(super) fn single(&self, number: usize) -> Result<ir::Value> {
        match self.get(number)?[..] {
            [value] => Ok(value),
            _ => Err(invalid("several components where one is expected")),
        }
    }
}

impl Translator<'_, '_, '_> {
    /// A mathematical function.
    pub(super) fn math(
        &mut self,
        fun: MathFunction,
        first: Handle<Expression>,
        others: [Option<Handle<Expression>>; 3],
    ) -> Result<Lanes> {
        use MathFunction as M;
        let ty = self.type_of(first);
        let mut operands = Operands {
            scalar: self.scalar(&ty)?,
            lanes: vec![self.lanes(first)?],
        };
        for operand in others.into_iter().flatten() {
            operands.lanes.push(self.lanes(operand)?);
        }
        match fun {
            M::Dot
            | M::Cross
            | M::Distance
            | M::Length
            | M::Normalize
            | M::FaceForward
            | M::Reflect
            | M::Refract => self.geometry(fun, &operands),
            M::Outer => Ok(self.outer(operands.get(0)?, operands.get(1)?)),
            M::Transpose => {
                let inner = self.inner(&ty).clone();
                self.transposed(&inner, operands.get(0)?)
            }
            M::Determinant => Ok(vec![self.determinant(operands.get(0)?)?]),
            M::Inverse => self.inverse(operands.scalar, operands.get(0)?),
            M::Modf | M::Frexp => self.decomposed(fun, &operands),
            M::Dot4I8Packed
            | M::Dot4U8Packed
            | M::Pack4x8snorm
            | M::Pack4x8unorm
            | M::Pack2x16snorm
            | M::Pack2x16unorm
            | M::Pack2x16float
            | M::Pack4xI8
            | M::Pack4xU8
            | M::Pack4xI8Clamp
            | M::Pack4xU8Clamp
            | M::Unpack4x8snorm
            | M::Unpack4x8unorm
            | M::Unpack2x16snorm
            | M::Unpack2x16unorm
            | M::Unpack2x16float
            | M::Unpack4xI8
            | M::Unpack4xU8 => self.packing(fun, &operands),
            _ => self.by_component(fun, &operands),
        }
    }

    /// A function that is computed for each component by itself. A scalar operand beside vectors stands for all.
    fn by_component(&mut self, fun: MathFunction, operands: &Operands) -> Result<Lanes> {
        let count = operands.lanes.iter().map(Vec::len).max().unwrap_or(0);
        let mut results = Vec::with_capacity(count);
        for number in 0..count {
            let component = |lanes: &Lanes| lanes.get(number).or(lanes.first()).copied();
            let components: Option<Vec<_>> = operands.lanes.iter().map(component).collect();
            let components = components.ok_or_else(|| invalid("an operand without components"))?;
            let result = self.bit_function(fun, operands.scalar, &components)?;
            results.push(match result {
                Some(result) => result,
                None => self.scalar_function(fun, operands.scalar, &components)?,
            });
        }
        Ok(results)
    }
}
