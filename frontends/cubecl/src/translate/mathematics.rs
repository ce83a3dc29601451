//! Functions of mathematics: calls of the library's, by their names in the C library.
//!
//! Floats of 16 bits go through f32. A function that the library has not is refused by its name.

use super::types::Scalar;
use super::{Result, Translator, unsupported};
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_thisgpu::build::GpuBuilder;
use cranelift_thisgpu::compile::library;
use pliron::context::Ptr;
use pliron::operation::Operation;

/// Functions of one float: the dialect's name, and the C library's for f64.
const UNARY: &[(&str, &str)] = &[
    ("exp", "exp"),
    ("log", "log"),
    ("log1p", "log1p"),
    ("expm1", "expm1"),
    ("rsqrt", "rsqrt"),
    ("sin", "sin"),
    ("cos", "cos"),
    ("tan", "tan"),
    ("sinh", "sinh"),
    ("cosh", "cosh"),
    ("tanh", "tanh"),
    ("arcsin", "asin"),
    ("arccos", "acos"),
    ("arctan", "atan"),
    ("arcsinh", "asinh"),
    ("arccosh", "acosh"),
    ("arctanh", "atanh"),
    ("erf", "erf"),
];

/// The same of two floats.
const BINARY: &[(&str, &str)] = &[
    ("powf", "pow"),
    ("arc_tan2", "atan2"),
    ("hypot", "hypot"),
    ("rhypot", "rhypot"),
    ("f_rem", "fmod"),
];

impl Translator<'_, '_, '_> {
    /// The `math` dialect's functions.
    pub(super) fn library(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        if let Some(function) = found(UNARY, name) {
            return self.map(op, |t, [a], lane| t.call(function, &[a], lane));
        }
        if let Some(function) = found(BINARY, name) {
            return self.map(op, |t, [a, b], lane| t.call(function, &[a, b], lane));
        }
        match name {
            "powi" => {
                let exponent = self.operand_scalar(op, 1)?;
                self.map(op, |t, [a, b], lane| {
                    let b = t.exponent(b, exponent);
                    if lane.is_float() {
                        t.float_power(a, b, lane)
                    } else {
                        Ok(t.integer_power(a, b, lane))
                    }
                })
            }
            _ => Ok(false),
        }
    }

    /// A function of floats of this kind; `name` is that for f64.
    pub(super) fn call(&mut self, name: &str, operands: &[Value], lane: Scalar) -> Result<Value> {
        let mut wide = Vec::with_capacity(operands.len());
        let mut kind = lane;
        for &operand in operands {
            let (operand, of) = self.widened(operand, lane);
            wide.push(operand);
            kind = of;
        }
        let symbol = symbol(name, kind);
        if !library::provides(&symbol) {
            return Err(unsupported(format!("the function {symbol}")));
        }
        let call = self.builder.call_symbol(&symbol, &wide, &[kind.clif()]);
        let result = self.builder.inst_results(call)[0];
        Ok(self.narrowed(result, lane))
    }

    /// An exponent as an i32: a narrower one with its sign, the nearest to a wider one.
    fn exponent(&mut self, exponent: Value, scalar: Scalar) -> Value {
        let ty = self.builder.func.dfg.value_type(exponent);
        if ty.bits() < I32.bits() && scalar.is_signed() {
            return self.builder.ins().sextend(I32, exponent);
        }
        if ty.bits() <= I32.bits() {
            return self.resize(exponent, I32);
        }
        let most = self.integer(ty, i32::MAX.into());
        let limited = if scalar.is_signed() {
            let least = self.integer(ty, i32::MIN.into());
            let limited = self.builder.ins().smin(exponent, most);
            self.builder.ins().smax(limited, least)
        } else {
            self.builder.ins().umin(exponent, most)
        };
        self.builder.ins().ireduce(I32, limited)
    }

    /// A float to the power of an i32, by the library.
    fn float_power(&mut self, base: Value, exponent: Value, lane: Scalar) -> Result<Value> {
        let (base, kind) = self.widened(base, lane);
        let symbol = power(kind);
        let results = [kind.clif()];
        let call = self
            .builder
            .call_symbol(symbol, &[base, exponent], &results);
        let power = self.builder.inst_results(call)[0];
        Ok(self.narrowed(power, lane))
    }

    /// An integer to the power of another, wrapping: squares, of which those are multiplied whose bit is set. An
    /// integer has no inverse: its exponent has no sign, as that of Rust's `wrapping_pow`.
    fn integer_power(&mut self, base: Value, exponent: Value, lane: Scalar) -> Value {
        let one = self.integer(lane.clif(), 1);
        let [header, body, behind] = [(); 3].map(|()| self.builder.create_block());
        let bits = self.builder.append_block_param(header, I32);
        let square = self.builder.append_block_param(header, lane.clif());
        let product = self.builder.append_block_param(header, lane.clif());
        let first = [exponent.into(), base.into(), one.into()];
        self.builder.ins().jump(header, &first);
        self.builder.switch_to_block(header);
        self.builder.ins().brif(bits, body, &[], behind, &[]);
        self.builder.switch_to_block(body);
        let set = self.builder.ins().band_imm_u(bits, 1);
        let multiplied = self.builder.ins().imul(product, square);
        let next = self.builder.ins().select(set, multiplied, product);
        let squared = self.builder.ins().imul(square, square);
        let rest = self.builder.ins().ushr_imm_u(bits, 1);
        let again = [rest.into(), squared.into(), next.into()];
        self.builder.ins().jump(header, &again);
        self.builder.switch_to_block(behind);
        product
    }
}

/// The C library's name of the function that the dialect calls `name`.
fn found(functions: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let mut functions = functions.iter();
    functions
        .find(|(dialect, _)| *dialect == name)
        .map(|(_, library)| *library)
}

/// The symbol of a function for floats of this kind, by its name for f64.
fn symbol(name: &str, of: Scalar) -> String {
    match of {
        Scalar::F32 => format!("{name}f"),
        _ => name.to_owned(),
    }
}

/// The symbol of the powers of floats of this kind with a whole exponent.
fn power(of: Scalar) -> &'static str {
    match of {
        Scalar::F32 => "__powisf2",
        _ => "__powidf2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_has_the_functions() {
        for kind in [Scalar::F32, Scalar::F64] {
            for (_, name) in UNARY.iter().chain(BINARY) {
                let symbol = symbol(name, kind);
                assert!(library::provides(&symbol), "{symbol}");
            }
            assert!(library::provides(power(kind)), "{}", power(kind));
        }
    }
}
