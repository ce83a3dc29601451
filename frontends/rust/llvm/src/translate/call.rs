//! Calls: of functions of the program, of the backend's intrinsics and operations, of the library, and through
//! pointers.

use super::function::{Body, Parts, Result};
use super::shape::{self, Scalar};
use crate::device::{ALLOCATION_MARKER, INTRINSIC, OPERATION};
use crate::error::Problem;
use crate::link::Symbol;
use crate::model::{Call, Callee, Function, Operand, Type};
use cranelift_codegen::ir::{self, InstBuilder, types};
use cranelift_thisgpu::compile::library;
use cranelift_thisgpu::intrinsics;
use smallvec::smallvec;

/// Functions of the C library that LLVM has intrinsics for, which are operations of CLIF.
const OPERATIONS: &[(&str, &str)] = &[
    ("fma", "fma"),
    ("sqrt", "sqrt"),
    ("fabs", "fabs"),
    ("floor", "floor"),
    ("ceil", "ceil"),
    ("trunc", "trunc"),
    ("rint", "rint"),
    ("nearbyint", "nearbyint"),
    ("roundeven", "roundeven"),
    ("copysign", "copysign"),
    ("fmin", "minnum"),
    ("fmax", "maxnum"),
];

impl<'p> Body<'_, 'p, '_> {
    /// Translates a call; gives the parts of its result.
    pub fn call(&mut self, call: &'p Call, returns: &Type) -> Result<Parts> {
        let name = match &call.callee {
            Callee::Symbol(name) => name,
            Callee::Assembly(template, constraints) => {
                return self.assembly(call, template, constraints, returns);
            }
            Callee::Address(address) => return self.indirect(call, address, returns),
        };
        if let Some(llvm) = name.strip_prefix("llvm.") {
            return self.llvm_intrinsic(call, llvm, returns);
        }
        let resolved = self.translator.program.resolve(self.module, name);
        if let Some((symbol @ Symbol::Function(..), _)) = resolved {
            return self.direct(call, symbol, returns);
        }
        if let Some(operation) = name.strip_prefix(OPERATION) {
            return self.clif_operation(operation, call, returns);
        }
        if let Some(intrinsic) = name.strip_prefix(INTRINSIC) {
            return self.gpu_intrinsic(intrinsic, call, returns);
        }
        if name.ends_with(ALLOCATION_MARKER) {
            return Ok(Parts::new());
        }
        match &**name {
            "bcmp" => return self.of_library("memcmp", call, returns),
            known if library::provides(known) => {
                return match self.as_operation(known, call, returns)? {
                    Some(parts) => Ok(parts),
                    None => self.of_library(known, call, returns),
                };
            }
            _ => {}
        }
        Err(self.missing(name))
    }

    /// Why a function without a body cannot be called.
    fn missing(&self, name: &str) -> Problem {
        let program = self.translator.program;
        let declaration = program.declaration(self.module, name);
        let spoken = declaration.map_or(name, |function| function.spoken());
        if name.contains("__rust_alloc")
            || name.contains("__rust_realloc")
            || name.contains("__rust_dealloc")
        {
            return Problem::NoBody(format!(
                "`{spoken}` allocates memory, and the program has no heap: link the library of thisgpu-build, which \
                 has one, use arrays, or define a global allocator over a buffer"
            ));
        }
        if declaration.is_some_and(Function::is_of_std) {
            return Problem::NoBody(format!(
                "`{spoken}` is of `std`, which the device has not: make the crate `#![no_std]` and take what `core` \
                 and thisgpu-gpu have"
            ));
        }
        Problem::NoBody(format!(
            "`{spoken}` has no body in the program: it is the host's, or of a crate whose LLVM IR was not given; write \
             it without this function, or add what defines it"
        ))
    }

    /// The operands of a call, part by part; structures that the callee gets a copy of are copied.
    fn arguments(&mut self, call: &Call) -> Result<Vec<ir::Value>> {
        let mut arguments = Vec::new();
        for (argument, by_value) in call.arguments.iter().zip(&call.by_value) {
            match by_value {
                Some((ty, align)) => arguments.push(self.own_copy(argument, ty, *align)?),
                None => arguments.extend(self.operand(argument)?),
            }
        }
        Ok(arguments)
    }

    /// A function of the program.
    pub fn direct(&mut self, call: &Call, symbol: Symbol, returns: &Type) -> Result<Parts> {
        let id = self.translator.declare(symbol);
        let id = id.map_err(|error| Problem::Callee(Box::new(error)))?;
        let expected = self.call_signature(call, returns)?;
        let declared = cranelift_module::Module::declarations(&self.translator.module)
            .get_function_decl(id)
            .signature
            .clone();
        if declared.params != expected.params || declared.returns != expected.returns {
            let function = self.translator.program.function_of(symbol);
            let spoken = function.map_or("a function", |function| function.spoken());
            let message = format!("`{spoken}` is called as {expected} and defined as {declared}");
            return Err(Problem::Inconsistent(message.into()));
        }
        let arguments = self.arguments(call)?;
        let reference = self.reference(id);
        let inst = self.builder.ins().call(reference, &arguments);
        Ok(self.builder.inst_results(inst).into())
    }

    /// A function by its address.
    fn indirect(&mut self, call: &Call, address: &Operand, returns: &Type) -> Result<Parts> {
        let signature = self.call_signature(call, returns)?;
        let arguments = self.arguments(call)?;
        let callee = self.single(address)?;
        let signature = self.builder.import_signature(signature);
        let inst = self
            .builder
            .ins()
            .call_indirect(signature, callee, &arguments);
        Ok(self.builder.inst_results(inst).into())
    }

    /// A function of the backend's library.
    fn of_library(&mut self, name: &str, call: &Call, returns: &Type) -> Result<Parts> {
        let arguments = self.arguments(call)?;
        let results: Vec<ir::Type> = shape::parts(returns)?.iter().map(|of| of.clif()).collect();
        Ok(self.call_named(name, &arguments, &results))
    }

    /// A function of the library that is an operation: `fmaf`, `sqrt`.
    fn as_operation(&mut self, name: &str, call: &Call, returns: &Type) -> Result<Option<Parts>> {
        let of = match returns {
            Type::Float => Scalar::F32,
            Type::Double => Scalar::F64,
            _ => return Ok(None),
        };
        let double = match of {
            Scalar::F32 => name.strip_suffix('f').unwrap_or_default(),
            _ => name,
        };
        let Some((_, operation)) = OPERATIONS.iter().find(|(known, _)| *known == double) else {
            return Ok(None);
        };
        let arguments = self.arguments(call)?;
        if arguments
            .iter()
            .any(|argument| self.type_of(*argument) != of.clif())
        {
            return Ok(None);
        }
        let value = self.float_intrinsic(operation, of, &arguments, returns)?;
        Ok(value.map(|value| smallvec![value]))
    }

    /// An intrinsic of the backend. Halves cross as bits.
    fn gpu_intrinsic(&mut self, name: &str, call: &Call, returns: &Type) -> Result<Parts> {
        let full = format!("{}{name}", intrinsics::PREFIX);
        let Some(row) = intrinsics::lookup(name) else {
            return Err(Problem::Intrinsic(format!(
                "`{INTRINSIC}{name}` is no intrinsic of the device; the table of intrinsics has all of them"
            )));
        };
        let given = self.arguments(call)?;
        let expected = || {
            let message = format!("`{INTRINSIC}{name}` is declared with other types than {row}");
            Problem::Intrinsic(message)
        };
        if given.len() != row.params.len() {
            return Err(expected());
        }
        let mut arguments = Vec::new();
        for (argument, wanted) in given.into_iter().zip(row.params) {
            if self.type_of(argument).bits() != wanted.bits() {
                return Err(expected());
            }
            arguments.push(self.reinterpreted(argument, *wanted));
        }
        let values = self.call_named(&full, &arguments, row.result.as_slice());
        let (Some(result), Some(value)) = (row.result, values.first().copied()) else {
            return Ok(Parts::new());
        };
        match shape::parts(returns)?[..] {
            [of] if of.clif().bits() == result.bits() => {
                Ok(smallvec![self.reinterpreted(value, of.clif())])
            }
            [] => Ok(Parts::new()),
            _ => Err(expected()),
        }
    }

    /// An operation of CLIF on a type that Rust lacks: `fadd_f16x2`, `fcmp_lt_f16x2`.
    fn clif_operation(&mut self, name: &str, call: &Call, returns: &Type) -> Result<Parts> {
        use cranelift_codegen::ir::condcodes::FloatCC;
        let unknown = || {
            let message = format!("`{OPERATION}{name}` is no operation of the device");
            Problem::Intrinsic(message)
        };
        let (operation, ty) = name.rsplit_once('_').ok_or_else(unknown)?;
        let ty = match ty {
            "f16" => types::F16,
            "f16x2" => types::F16X2,
            _ => return Err(unknown()),
        };
        let given = self.arguments(call)?;
        let of_32 = operation == "fdemote";
        let operands: Vec<ir::Value> = match of_32 {
            true => given,
            false => {
                if given
                    .iter()
                    .any(|value| self.type_of(*value).bits() != ty.bits())
                {
                    return Err(unknown());
                }
                let given = given.into_iter();
                given.map(|value| self.reinterpreted(value, ty)).collect()
            }
        };
        let ins = self.builder.ins();
        let condition = |word: &str| {
            Some(match word {
                "fcmp_lt" => FloatCC::LessThan,
                "fcmp_le" => FloatCC::LessThanOrEqual,
                "fcmp_eq" => FloatCC::Equal,
                "fcmp_ne" => FloatCC::NotEqual,
                _ => return None,
            })
        };
        let value = match (operation, &operands[..]) {
            ("fadd", [a, b]) => ins.fadd(*a, *b),
            ("fsub", [a, b]) => ins.fsub(*a, *b),
            ("fmul", [a, b]) => ins.fmul(*a, *b),
            ("fmin", [a, b]) => ins.fmin(*a, *b),
            ("fmax", [a, b]) => ins.fmax(*a, *b),
            ("fneg", [a]) => ins.fneg(*a),
            ("fabs", [a]) => ins.fabs(*a),
            ("fma", [a, b, c]) => ins.fma(*a, *b, *c),
            ("fpromote", [a]) if ty == types::F16 => ins.fpromote(types::F32, *a),
            ("fdemote", [a]) if ty == types::F16 => ins.fdemote(types::F16, *a),
            (compare, [a, b]) => match condition(compare) {
                Some(condition) => ins.fcmp(condition, *a, *b),
                None => return Err(unknown()),
            },
            _ => return Err(unknown()),
        };
        match shape::parts(returns)?[..] {
            [of] if of.clif().bits() == self.type_of(value).bits() => {
                Ok(smallvec![self.reinterpreted(value, of.clif())])
            }
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that the library lacks would never be looked for.
    #[test]
    fn the_library_has_the_functions_that_are_operations() {
        for (name, _) in OPERATIONS {
            assert!(library::provides(name), "{name}");
            assert!(library::provides(&format!("{name}f")), "{name}f");
        }
    }
}
