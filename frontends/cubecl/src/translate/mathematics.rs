//! Functions of mathematics: calls of the library's, by their names in the C library.
//!
//! Floats of 16 bits go through f32. A function that the library has not is refused by its name.

use super::types::Scalar;
use super::{Result, Translator, unsupported};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_thisgpu::build::GpuBuilder;
use cranelift_thisgpu::compile::library;
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// The `math` dialect's functions.
    pub(super) fn library(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        if let Some(function) = unary(name) {
            return self.map(op, |t, [a], lane| t.call(function, &[a], lane));
        }
        match name {
            "powf" => self.map(op, |t, [a, b], lane| t.call("pow", &[a, b], lane)),
            "arc_tan2" => self.map(op, |t, [a, b], lane| t.call("atan2", &[a, b], lane)),
            "hypot" => self.map(op, |t, [a, b], lane| t.call("hypot", &[a, b], lane)),
            "f_rem" => self.map(op, |t, [a, b], lane| t.call("fmod", &[a, b], lane)),
            "rhypot" => self.map(op, |t, [a, b], lane| {
                let hypot = t.call("hypot", &[a, b], lane)?;
                Ok(t.reciprocal(hypot, lane))
            }),
            "powi" => self.map(op, |t, [a, b], lane| t.integer_power(a, b, lane)),
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
        let symbol = match kind {
            Scalar::F32 => format!("{name}f"),
            _ => name.to_string(),
        };
        if !library::provides(&symbol) {
            return Err(unsupported(format!("the function {symbol}")));
        }
        let call = self.builder.call_symbol(&symbol, &wide, &[kind.clif()]);
        let result = self.builder.inst_results(call)[0];
        Ok(self.narrowed(result, lane))
    }

    /// A number to the power of an integer: squares, of which those are multiplied whose bit is set.
    fn integer_power(&mut self, base: Value, exponent: Value, lane: Scalar) -> Result<Value> {
        let is_float = lane.is_float();
        let (base, kind) = if is_float {
            self.widened(base, lane)
        } else {
            (base, lane)
        };
        let one = if is_float {
            self.float_constant(1.0, kind)
        } else {
            self.integer(kind.clif(), 1)
        };
        let exponent = self.resize(exponent, I32);
        // An integer has no inverse: its exponent has no sign, as that of Rust's `wrapping_pow`.
        let size = match is_float {
            true => self.builder.ins().iabs(exponent),
            false => exponent,
        };
        let [header, body, behind] = [(); 3].map(|()| self.builder.create_block());
        let bits = self.builder.append_block_param(header, I32);
        let square = self.builder.append_block_param(header, kind.clif());
        let product = self.builder.append_block_param(header, kind.clif());
        let first = [size.into(), base.into(), one.into()];
        self.builder.ins().jump(header, &first);
        self.builder.switch_to_block(header);
        self.builder.ins().brif(bits, body, &[], behind, &[]);
        self.builder.switch_to_block(body);
        let times = |t: &mut Self, a, b| {
            if is_float {
                t.builder.ins().fmul(a, b)
            } else {
                t.builder.ins().imul(a, b)
            }
        };
        let set = self.builder.ins().band_imm_u(bits, 1);
        let multiplied = times(self, product, square);
        let next = self.builder.ins().select(set, multiplied, product);
        let squared = times(self, square, square);
        let rest = self.builder.ins().ushr_imm_u(bits, 1);
        let again = [rest.into(), squared.into(), next.into()];
        self.builder.ins().jump(header, &again);
        self.builder.switch_to_block(behind);
        if !is_float {
            return Ok(product);
        }
        let zero = self.integer(I32, 0);
        let negative = self
            .builder
            .ins()
            .icmp(IntCC::SignedLessThan, exponent, zero);
        let inverse = self.reciprocal(product, kind);
        let power = self.builder.ins().select(negative, inverse, product);
        Ok(self.narrowed(power, lane))
    }
}

/// The C library's name of a function of one f64.
fn unary(name: &str) -> Option<&'static str> {
    Some(match name {
        "exp" => "exp",
        "log" => "log",
        "log1p" => "log1p",
        "expm1" => "expm1",
        "sin" => "sin",
        "cos" => "cos",
        "tan" => "tan",
        "sinh" => "sinh",
        "cosh" => "cosh",
        "tanh" => "tanh",
        "arcsin" => "asin",
        "arccos" => "acos",
        "arctan" => "atan",
        "arcsinh" => "asinh",
        "arccosh" => "acosh",
        "arctanh" => "atanh",
        "erf" => "erf",
        _ => return None,
    })
}
