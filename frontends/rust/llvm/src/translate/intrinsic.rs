//! LLVM's own intrinsics.

use super::function::{Body, Parts, Result, trap_code};
use super::shape::Scalar;
use crate::data;
use crate::error::Problem;
use crate::model::{Binary, Call, IntPredicate, Operand, Type, Value};
use crate::panics::Reason;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder};
use smallvec::smallvec;

/// What passes and debuggers are told and what is nothing here.
const IGNORED: &[&str] = &[
    "lifetime.start",
    "lifetime.end",
    "invariant.start",
    "invariant.end",
    "assume",
    "experimental.noalias.scope.decl",
    "sideeffect",
    "donothing",
    "prefetch",
    "var.annotation",
    "pseudoprobe",
    // What `core::hint::spin_loop` is on the host.
    "x86.sse2.pause",
    "aarch64.hint",
    "aarch64.isb",
];

/// Intrinsics that are functions of the library with the same names. They are listed because the two may differ: C's
/// `modf` has a pointer, `llvm.modf` two results.
const LIBRARY: &[&str] = &[
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "exp2",
    "exp10", "log", "log2", "log10", "pow", "ldexp", "round",
];
/// The intrinsic of powers of integers, and the library's function.
const POWER: (&str, &str) = ("powi", "__powidf2");

/// The library's function, by its name for f64, that an intrinsic is.
fn of_library(name: &str) -> Option<&str> {
    match name {
        _ if name == POWER.0 => Some(POWER.1),
        _ => LIBRARY.contains(&name).then_some(name),
    }
}

/// What the names of intrinsics that reduce a vector begin with.
const REDUCTION: &str = "vector.reduce.";

/// What is said of an intrinsic that is not translated.
fn unsupported(name: &str) -> Problem {
    Problem::Unsupported(format!("`llvm.{name}` is not supported").into())
}

/// What is said of an intrinsic with operands that it does not take.
fn wrong_operands(name: &str) -> Problem {
    Problem::Inconsistent(format!("operands of `llvm.{name}`").into())
}

/// The name of an intrinsic without the types that it is of.
pub fn base(name: &str) -> &str {
    let mut base = name;
    while let Some((before, last)) = base.rsplit_once('.') {
        if !is_type(last) {
            break;
        }
        base = before;
    }
    base
}

/// Whether the last part of a name is a type: `i32`, `f64`, `p0`, `v4i32`.
fn is_type(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let scalar = |word: &str| {
        word.strip_prefix(['i', 'f', 'p']).is_some_and(digits) || word == "bf16" || word == "isVoid"
    };
    if let Some(vector) = word.strip_prefix('v') {
        let count = vector.bytes().take_while(u8::is_ascii_digit).count();
        return count > 0 && scalar(&vector[count..]);
    }
    scalar(word)
}

impl<'p> Body<'_, 'p, '_> {
    /// Translates a call of `llvm.NAME`.
    pub fn llvm_intrinsic(&mut self, call: &'p Call, name: &str, returns: &Type) -> Result<Parts> {
        let base = base(name);
        if IGNORED.contains(&base) || base.starts_with("dbg.") {
            return Ok(Parts::new());
        }
        let arguments = &call.arguments[..];
        if let Some(of_host) = name.strip_prefix("x86.") {
            let parts = self.x86_intrinsic(of_host, arguments)?;
            return parts.ok_or_else(|| unsupported(name));
        }
        if let Some(kind) = base.strip_prefix(REDUCTION) {
            return self.reduction(kind, arguments);
        }
        match (base, arguments) {
            ("trap" | "ubsantrap", _) => {
                self.builder.ins().trap(trap_code(Reason::NoReturn));
                Ok(Parts::new())
            }
            ("debugtrap", _) => {
                let message = "there is no debugger on the device";
                Err(Problem::Unsupported(message.into()))
            }
            ("memcpy" | "memcpy.inline", [to, from, length, ..]) => {
                self.copy("memcpy", [to, from, length], aligns(call))?;
                Ok(Parts::new())
            }
            ("memmove", [to, from, length, ..]) => {
                self.copy("memmove", [to, from, length], aligns(call))?;
                Ok(Parts::new())
            }
            ("memset" | "memset.inline", [to, byte, length, ..]) => {
                self.fill([to, byte, length], aligns(call)[0])?;
                Ok(Parts::new())
            }
            (
                "expect"
                | "expect.with.probability"
                | "launder.invariant.group"
                | "strip.invariant.group"
                | "ssa.copy"
                | "annotation"
                | "ptr.annotation"
                | "threadlocal.address",
                [of, ..],
            ) => self.operand(of),
            ("is.constant", _) => Ok(smallvec![self.bits(Scalar::BOOL, 0)]),
            ("objectsize", [_, least, ..]) => {
                let least = self.known_number(least)? != 0;
                let of = Scalar::of(returns)?;
                let unknown = if least { 0 } else { data::mask(of.bits()) };
                Ok(smallvec![self.bits(of, unknown)])
            }
            ("ptrmask", [pointer, mask]) => {
                let (pointer, mask) = (self.single(pointer)?, self.single(mask)?);
                Ok(smallvec![self.builder.ins().band(pointer, mask)])
            }
            ("load.relative", [base, offset]) => {
                let (base, offset) = (self.single(base)?, self.single(offset)?);
                let offset = self.resized_signed(offset, ir::types::I64);
                let place = self.builder.ins().iadd(base, offset);
                let flags = ir::MemFlagsData::new().with_aligned();
                let relative = self.builder.ins().load(ir::types::I32, flags, place, 0);
                let relative = self.builder.ins().sextend(ir::types::I64, relative);
                Ok(smallvec![self.builder.ins().iadd(base, relative)])
            }
            ("is.fpclass", [of, classes]) => {
                let classes = self.known_number(classes)? as u32;
                let lane = Scalar::of(of.ty.lane())?;
                let lanes = self.operand(of)?;
                let lanes = lanes.into_iter();
                Ok(lanes
                    .map(|value| self.is_class(lane, value, classes))
                    .collect())
            }
            (
                "readcyclecounter" | "readsteadycounter" | "stacksave" | "stackrestore"
                | "returnaddress" | "frameaddress" | "va_start" | "va_end" | "va_copy"
                | "eh.typeid.for",
                _,
            ) => Err(unsupported(base)),
            _ => self.by_lanes(base, call, returns),
        }
    }

    /// Intrinsics that do the same with every lane.
    fn by_lanes(&mut self, base: &str, call: &'p Call, returns: &Type) -> Result<Parts> {
        let Some(first) = call.arguments.first() else {
            return Err(unsupported(base));
        };
        let lane = Scalar::of(first.ty.lane())?;
        let lanes = first.ty.lanes();
        let mut operands = Vec::new();
        for argument in &call.arguments {
            operands.push(self.operand(argument)?);
        }
        let count = lanes.unwrap_or(1) as usize;
        let (mut values, mut flags) = (Parts::new(), Parts::new());
        for index in 0..count {
            let lane_of = |parts: &Parts| {
                let place = if parts.len() == count { index } else { 0 };
                parts.get(place).copied()
            };
            let scalars: Option<Vec<ir::Value>> = operands.iter().map(lane_of).collect();
            let scalars = scalars.ok_or_else(|| wrong_operands(base))?;
            if let Some((value, flag)) = self.with_overflow(base, lane, &scalars)? {
                values.push(value);
                flags.push(flag);
                continue;
            }
            let value = match lane.is_float() {
                true => self.float_intrinsic(base, lane, &scalars, returns)?,
                false => self.int_intrinsic(base, lane.bits(), &scalars, returns)?,
            };
            values.push(value.ok_or_else(|| unsupported(base))?);
        }
        values.extend(flags);
        Ok(values)
    }

    /// `llvm.sadd.with.overflow` and its like.
    fn with_overflow(
        &mut self,
        base: &str,
        lane: Scalar,
        operands: &[ir::Value],
    ) -> Result<Option<(ir::Value, ir::Value)>> {
        let Some(operation) = base.strip_suffix(".with.overflow") else {
            return Ok(None);
        };
        let &[a, b] = operands else {
            return Err(wrong_operands(base));
        };
        let known = sign_and_operation(operation);
        let (signed, binary) = known.ok_or_else(|| unsupported(base))?;
        self.overflowing(binary, signed, lane.bits(), a, b)
            .map(Some)
    }

    fn int_intrinsic(
        &mut self,
        base: &str,
        bits: u32,
        operands: &[ir::Value],
        returns: &Type,
    ) -> Result<Option<ir::Value>> {
        let value = match (base, operands) {
            ("smin", [a, b]) => self.choose(IntCC::SignedLessThan, bits, *a, *b),
            ("smax", [a, b]) => self.choose(IntCC::SignedGreaterThan, bits, *a, *b),
            ("umin", [a, b]) => self.choose(IntCC::UnsignedLessThan, bits, *a, *b),
            ("umax", [a, b]) => self.choose(IntCC::UnsignedGreaterThan, bits, *a, *b),
            ("scmp" | "ucmp", [a, b]) => {
                let result = Scalar::of(returns.lane())?.bits();
                self.three_way(base == "scmp", bits, [*a, *b], result)
            }
            ("abs", [a, ..]) => {
                let value = self.with_sign(*a, bits);
                let value = self.builder.ins().iabs(value);
                self.without_excess(value, bits)
            }
            ("ctpop", [a]) => self.builder.ins().popcnt(*a),
            ("ctlz", [a, ..]) => self.leading_zeros(*a, bits),
            ("cttz", [a, ..]) => self.trailing_zeros(*a, bits),
            ("bswap", [a]) => self.reversed(*a, bits, true),
            ("bitreverse", [a]) => self.reversed(*a, bits, false),
            ("fshl" | "fshr", [a, b, c]) => self.funnel(base == "fshl", bits, [*a, *b, *c]),
            _ => {
                let saturating = base.strip_suffix(".sat").and_then(sign_and_operation);
                let (Some((signed, binary)), [a, b]) = (saturating, operands) else {
                    return self.shift_saturating(base, bits, operands);
                };
                self.saturating(binary, signed, bits, *a, *b)?
            }
        };
        Ok(Some(value))
    }

    /// `llvm.sshl.sat` and `llvm.ushl.sat`.
    fn shift_saturating(
        &mut self,
        base: &str,
        bits: u32,
        operands: &[ir::Value],
    ) -> Result<Option<ir::Value>> {
        let (signed, [a, b]) = (base == "sshl.sat", operands) else {
            return Ok(None);
        };
        if !signed && base != "ushl.sat" {
            return Ok(None);
        }
        let ty = self.type_of(*a);
        let shifted = self.int_binary(Binary::Shl, bits, *a, *b)?;
        let back = match signed {
            true => self.int_binary(Binary::AShr, bits, shifted, *b)?,
            false => self.int_binary(Binary::LShr, bits, shifted, *b)?,
        };
        let fits = self.builder.ins().icmp(IntCC::Equal, back, *a);
        let most = match signed {
            true => {
                let zero = self.integer(ty, 0);
                let negative = self.compare_ints(IntPredicate::Slt, bits, *a, zero);
                let least = self.integer(ty, 1 << (bits - 1));
                let most = self.integer(ty, data::mask(bits - 1));
                self.builder.ins().select(negative, least, most)
            }
            false => self.integer(ty, data::mask(bits)),
        };
        Ok(Some(self.builder.ins().select(fits, shifted, most)))
    }

    /// An operation of floats by the name of LLVM's intrinsic; none if there is no such.
    pub fn float_intrinsic(
        &mut self,
        base: &str,
        of: Scalar,
        operands: &[ir::Value],
        returns: &Type,
    ) -> Result<Option<ir::Value>> {
        if let Some(name) = of_library(base) {
            return Ok(Some(self.by_library(name, of, operands)));
        }
        let ins = self.builder.ins();
        let value = match (base, operands) {
            ("fabs", [a]) => ins.fabs(*a),
            ("sqrt", [a]) => ins.sqrt(*a),
            ("floor", [a]) => ins.floor(*a),
            ("ceil", [a]) => ins.ceil(*a),
            ("trunc", [a]) => ins.trunc(*a),
            ("rint" | "nearbyint" | "roundeven", [a]) => ins.nearest(*a),
            ("canonicalize" | "arithmetic.fence", [a]) => *a,
            ("copysign", [a, b]) => ins.fcopysign(*a, *b),
            ("fma" | "fmuladd", [a, b, c]) => ins.fma(*a, *b, *c),
            ("minnum" | "minimumnum", [a, b]) => self.number_of(true, *a, *b),
            ("maxnum" | "maximumnum", [a, b]) => self.number_of(false, *a, *b),
            ("minimum", [a, b]) => ins.fmin(*a, *b),
            ("maximum", [a, b]) => ins.fmax(*a, *b),
            ("fptosi.sat" | "fptoui.sat", [a]) => {
                let bits = Scalar::of(returns.lane())?.bits();
                self.float_to_int(*a, bits, base == "fptosi.sat")
            }
            ("lrint" | "llrint", [a]) => {
                let whole = ins.nearest(*a);
                let bits = Scalar::of(returns.lane())?.bits();
                self.float_to_int(whole, bits, true)
            }
            ("lround" | "llround", [a]) => {
                let whole = self.by_library("round", of, &[*a]);
                let bits = Scalar::of(returns.lane())?.bits();
                self.float_to_int(whole, bits, true)
            }
            _ => return Ok(None),
        };
        Ok(Some(value))
    }

    /// `llvm.vector.reduce.KIND`.
    fn reduction(&mut self, kind: &str, arguments: &[Operand]) -> Result<Parts> {
        let binary = match kind {
            "add" => Binary::Add,
            "mul" => Binary::Mul,
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            "fadd" | "fmul" => {
                let [start, vector] = arguments else {
                    return Err(wrong_operands(&format!("{REDUCTION}{kind}")));
                };
                let start = self.single(start)?;
                let binary = match kind {
                    "fadd" => Binary::FAdd,
                    _ => Binary::FMul,
                };
                return self.reduced(vector, Some(start), &mut |body, of, a, b| {
                    body.float_binary(binary, of, a, b)
                });
            }
            _ => return self.extreme(kind, arguments),
        };
        let [vector] = arguments else {
            return Err(wrong_operands(&format!("{REDUCTION}{kind}")));
        };
        self.reduced(vector, None, &mut |body, of, a, b| {
            body.int_binary(binary, of.bits(), a, b)
        })
    }

    /// The least or greatest lane.
    fn extreme(&mut self, kind: &str, arguments: &[Operand]) -> Result<Parts> {
        let [vector] = arguments else {
            return Err(wrong_operands(&format!("{REDUCTION}{kind}")));
        };
        let condition = match kind {
            "smin" => IntCC::SignedLessThan,
            "smax" => IntCC::SignedGreaterThan,
            "umin" => IntCC::UnsignedLessThan,
            "umax" => IntCC::UnsignedGreaterThan,
            "fmin" | "fmax" => {
                return self.reduced(vector, None, &mut |body, _, a, b| {
                    Ok(body.number_of(kind == "fmin", a, b))
                });
            }
            "fminimum" | "fmaximum" => {
                return self.reduced(vector, None, &mut |body, _, a, b| {
                    let ins = body.builder.ins();
                    Ok(match kind {
                        "fminimum" => ins.fmin(a, b),
                        _ => ins.fmax(a, b),
                    })
                });
            }
            _ => return Err(unsupported(&format!("{REDUCTION}{kind}"))),
        };
        self.reduced(vector, None, &mut |body, of, a, b| {
            Ok(body.choose(condition, of.bits(), a, b))
        })
    }

    /// A constant operand.
    fn known_number(&self, operand: &Operand) -> Result<u128> {
        let Value::Constant(constant) = &operand.value else {
            let message = "an operand that has to be a constant";
            return Err(Problem::NotConstant(message.into()));
        };
        match data::scalar(&operand.ty, constant)? {
            data::Scalar::Bits(bits) => Ok(bits),
            data::Scalar::Address(..) => {
                let message = "an address as a constant operand";
                Err(Problem::NotConstant(message.into()))
            }
        }
    }
}

/// `sadd` is signed and an addition.
fn sign_and_operation(word: &str) -> Option<(bool, Binary)> {
    let binary = match word.get(1..)? {
        "add" => Binary::Add,
        "sub" => Binary::Sub,
        "mul" => Binary::Mul,
        _ => return None,
    };
    match word.as_bytes()[0] {
        b's' => Some((true, binary)),
        b'u' => Some((false, binary)),
        _ => None,
    }
}

/// The alignments that the first two operands are said to have.
fn aligns(call: &Call) -> [u64; 2] {
    [0, 1].map(|index| call.aligns.get(index).copied().flatten().unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::super::float;
    use super::*;
    use cranelift_thisgpu::compile::library;

    #[test]
    fn the_library_has_the_functions() {
        for intrinsic in LIBRARY.iter().chain(&[POWER.0]) {
            let name = of_library(intrinsic).unwrap();
            for of in [Scalar::F32, Scalar::F64] {
                let symbol = float::symbol(name, of);
                assert!(library::provides(&symbol), "{symbol}");
            }
        }
    }

    #[test]
    fn names_without_types() {
        for (name, expected) in [
            ("memcpy.p0.p0.i64", "memcpy"),
            ("fptosi.sat.i32.f32", "fptosi.sat"),
            ("vector.reduce.add.v4i32", "vector.reduce.add"),
            ("sadd.with.overflow.i8", "sadd.with.overflow"),
            ("exp2.f64", "exp2"),
            ("log10.v2f32", "log10"),
            ("trap", "trap"),
            (
                "experimental.noalias.scope.decl",
                "experimental.noalias.scope.decl",
            ),
        ] {
            assert_eq!(base(name), expected);
        }
        assert_eq!(sign_and_operation("usub"), Some((false, Binary::Sub)));
        assert_eq!(sign_and_operation("sdiv"), None);
    }
}
