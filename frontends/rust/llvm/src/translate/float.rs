//! Floats: arithmetic, and functions that the library has.

use super::function::{Body, Result};
use super::shape::Scalar;
use crate::error::Problem;
use crate::model::Binary;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_thisgpu::compile::library;

/// The symbol of a function of the library for a float, by its name for f64.
pub(super) fn symbol(name: &str, of: Scalar) -> String {
    match of {
        Scalar::F64 => name.to_owned(),
        // `__powidf2` is `__powisf2`.
        _ if name.starts_with("__") => name.replace('d', "s"),
        _ => format!("{name}f"),
    }
}

impl Body<'_, '_, '_> {
    /// An operation on floats.
    ///
    /// # Errors
    /// An operation on integers.
    pub fn float_binary(
        &mut self,
        binary: Binary,
        of: Scalar,
        a: ir::Value,
        b: ir::Value,
    ) -> Result<ir::Value> {
        let ins = self.builder.ins();
        Ok(match binary {
            Binary::FAdd => ins.fadd(a, b),
            Binary::FSub => ins.fsub(a, b),
            Binary::FMul => ins.fmul(a, b),
            Binary::FDiv => ins.fdiv(a, b),
            Binary::FRem => self.by_library("fmod", of, &[a, b]),
            other => return Err(Problem::Inconsistent(format!("{other:?} of floats").into())),
        })
    }

    /// A function of the library by its name for f64. That of f16 is that of f32, rounded.
    pub fn by_library(&mut self, name: &str, of: Scalar, operands: &[ir::Value]) -> ir::Value {
        let is_half = of == Scalar::F16;
        let operands: Vec<ir::Value> = (operands.iter())
            .map(|operand| match self.type_of(*operand) {
                types::F16 => self.builder.ins().fpromote(types::F32, *operand),
                _ => *operand,
            })
            .collect();
        let ty = match of {
            Scalar::F64 => types::F64,
            _ => types::F32,
        };
        let symbol = symbol(name, of);
        debug_assert!(library::provides(&symbol), "{symbol}");
        let result = self.call_named(&symbol, &operands, &[ty])[0];
        match is_half {
            true => self.builder.ins().fdemote(types::F16, result),
            false => result,
        }
    }

    /// The lesser or greater of two numbers; the other one if one is a NaN.
    pub fn number_of(&mut self, least: bool, a: ir::Value, b: ir::Value) -> ir::Value {
        let chosen = match least {
            true => self.builder.ins().fmin(a, b),
            false => self.builder.ins().fmax(a, b),
        };
        let no_a = self.builder.ins().fcmp(FloatCC::Unordered, a, a);
        let chosen = self.builder.ins().select(no_a, b, chosen);
        let no_b = self.builder.ins().fcmp(FloatCC::Unordered, b, b);
        self.builder.ins().select(no_b, a, chosen)
    }
}
