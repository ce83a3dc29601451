//! What crates write for the host's processor, by its meaning: assembly that known crates have for speed, and
//! intrinsics of instructions that every x86-64 has.
//!
//! Only what gives the same bits on any machine is here. Approximations, whose digits are the processor's own, and
//! clocks are refused.

use super::function::{Body, Parts, Result};
use super::shape;
use crate::error::Problem;
use crate::model::{Call, Operand, Type, Value};
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{self, InstBuilder, types};
use smallvec::smallvec;

/// Instructions that say what the host's processor can do.
const ASKS_FOR_FEATURES: &[&str] = &["cpuid", "xgetbv"];

/// What a comparison of SSE means, by its number. The second four are the first ones turned round.
const COMPARISONS: [FloatCC; 4] = [
    FloatCC::Equal,
    FloatCC::LessThan,
    FloatCC::LessThanOrEqual,
    FloatCC::Unordered,
];

/// A template without the modifiers of its operands, which say how wide a register is: `div $2` of `div ${2:q}`.
fn without_modifiers(template: &str) -> String {
    let mut plain = String::new();
    let mut rest = template.trim();
    while let Some((before, behind)) = rest.split_once("${") {
        let (operand, behind) = behind.split_once('}').unwrap_or((behind, ""));
        let number = operand.split(':').next().unwrap_or_default();
        plain.extend([before, "$", number]);
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

impl Body<'_, '_, '_> {
    /// Assembly: what has no instructions, as `black_box` and compiler fences are; the question which features the
    /// host's processor has, to which the answer is none, so that a crate with a choice takes the code that it has for
    /// every processor; and what known crates have.
    pub fn assembly(
        &mut self,
        call: &Call,
        template: &str,
        constraints: &str,
        returns: &Type,
    ) -> Result<Parts> {
        if ASKS_FOR_FEATURES.iter().any(|asks| template.contains(asks)) {
            let zeros = shape::parts(returns)?.into_iter();
            return Ok(zeros.map(|of| self.bits(of, 0)).collect());
        }
        let plain = without_modifiers(template);
        let is_comment = plain.starts_with("/*") && plain.ends_with("*/")
            || plain.lines().all(|line| {
                let line = line.trim_start();
                line.is_empty() || line.starts_with('#') || line.starts_with("//")
            });
        // An operand that comes out as it went in: `=r,0`.
        match (&call.arguments[..], returns) {
            _ if !is_comment => {}
            (_, Type::Void) => return Ok(Parts::new()),
            ([argument], returns) if argument.ty == *returns => return self.operand(argument),
            _ => {
                let message = format!("assembly with operands `{constraints}` is not supported");
                return Err(Problem::Unsupported(message.into()));
            }
        }
        let mut operands = Vec::new();
        for argument in &call.arguments {
            operands.extend(self.operand(argument)?);
        }
        match self.known_assembly(&plain, constraints, &operands) {
            Some(parts) => Ok(parts),
            None => {
                let message = format!(
                    "assembly of the host (`{plain}`) is not supported; the crate may have a feature for portable code \
                     (`portable`, `pure`, `soft`, `force-soft-floats`, no `asm`)"
                );
                Err(Problem::Unsupported(message.into()))
            }
        }
    }

    /// Assembly that crates are known to have. Results stand before operands in the numbers of a template.
    fn known_assembly(
        &mut self,
        template: &str,
        constraints: &str,
        operands: &[ir::Value],
    ) -> Option<Parts> {
        let outputs: Vec<&str> = constraints
            .split(',')
            .take_while(|of| of.starts_with('='))
            .collect();
        match (template, &outputs[..], operands) {
            // libm: a root, of the operand that is the result.
            ("sqrtsd $0, $0" | "sqrtss $0, $0", [_], [x]) => {
                Some(smallvec![self.builder.ins().sqrt(*x)])
            }
            // num-bigint: two words divided by one, the rest in DX, the quotient in AX.
            ("div $2", ["=&{dx}", "=&{ax}"], [divisor, high, low])
                if self.type_of(*divisor) == types::I64 =>
            {
                // The host ends the program if the quotient has no room.
                let fits = self
                    .builder
                    .ins()
                    .icmp(IntCC::UnsignedLessThan, *high, *divisor);
                let code = super::function::trap_code(crate::panics::Reason::Arithmetic);
                self.builder.ins().trapz(fits, code);
                let whole = self.builder.ins().iconcat(*low, *high);
                let divisor = self.builder.ins().uextend(types::I128, *divisor);
                let quotient = self.builder.ins().udiv(whole, divisor);
                let rest = self.builder.ins().urem(whole, divisor);
                let [rest, quotient] =
                    [rest, quotient].map(|half| self.builder.ins().ireduce(types::I64, half));
                Some(smallvec![rest, quotient])
            }
            // cmov: one of two values.
            (
                "test $1, $1\ncmovnz $0, $3" | "test $1, $1\ncmovz $0, $3",
                [_],
                [tested, otherwise, then],
            ) => {
                let chosen = self.moved_if(template, *tested, *then, *otherwise);
                Some(smallvec![chosen])
            }
            // cmov: whether two values are the same, and what that means.
            (
                "xor $0, $3\ncmovnz $1, $5" | "xor $0, $3\ncmovz $1, $5",
                [_, _],
                [left, right, otherwise, then],
            ) => {
                let difference = self.builder.ins().bxor(*left, *right);
                let chosen = self.moved_if(template, difference, *then, *otherwise);
                Some(smallvec![difference, chosen])
            }
            _ => None,
        }
    }

    /// What a `cmovnz` or `cmovz` behind an instruction that gave `tested` leaves.
    fn moved_if(
        &mut self,
        template: &str,
        tested: ir::Value,
        then: ir::Value,
        otherwise: ir::Value,
    ) -> ir::Value {
        let zero = self.integer(self.type_of(tested), 0);
        let condition = match template.contains("cmovnz") {
            true => IntCC::NotEqual,
            false => IntCC::Equal,
        };
        let taken = self.builder.ins().icmp(condition, tested, zero);
        self.builder.ins().select(taken, then, otherwise)
    }

    /// An intrinsic of an instruction of x86-64, by its name behind `x86.`; none if it is not known.
    pub fn x86_intrinsic(&mut self, name: &str, arguments: &[Operand]) -> Result<Option<Parts>> {
        let lanes = |body: &mut Self, a, b, each: &dyn Fn(&mut Self, ir::Value, ir::Value) -> _| {
            let (a, b) = (body.operand(a)?, body.operand(b)?);
            let pairs = a.into_iter().zip(b);
            Ok(pairs.map(|(a, b)| each(body, a, b)).collect::<Parts>())
        };
        Ok(Some(match (name, arguments) {
            ("addcarry.32" | "addcarry.64" | "subborrow.32" | "subborrow.64", [carry, a, b]) => {
                let [carry, a, b] = [self.single(carry)?, self.single(a)?, self.single(b)?];
                let zero = self.integer(self.type_of(carry), 0);
                let carry = self.builder.ins().icmp(IntCC::NotEqual, carry, zero);
                let ty = self.type_of(a);
                let carry = self.builder.ins().uextend(ty, carry);
                let mut step = |x, y| match name.starts_with("add") {
                    true => self.builder.ins().uadd_overflow(x, y),
                    false => self.builder.ins().usub_overflow(x, y),
                };
                let (part, first) = step(a, b);
                let (whole, second) = step(part, carry);
                smallvec![self.builder.ins().bor(first, second), whole]
            }
            // The second operand where they are equal or one is no number.
            ("sse.min.ps" | "sse2.min.pd", [a, b]) => lanes(self, a, b, &|body, a, b| {
                let less = body.builder.ins().fcmp(FloatCC::LessThan, a, b);
                body.builder.ins().select(less, a, b)
            })?,
            ("sse.max.ps" | "sse2.max.pd", [a, b]) => lanes(self, a, b, &|body, a, b| {
                let greater = body.builder.ins().fcmp(FloatCC::GreaterThan, a, b);
                body.builder.ins().select(greater, a, b)
            })?,
            (
                "sse.cmp.ps" | "sse2.cmp.pd",
                [
                    a,
                    b,
                    Operand {
                        value: Value::Constant(number),
                        ..
                    },
                ],
            ) => {
                let number = match number {
                    crate::model::Constant::Int(number @ 0..8) => *number as usize,
                    crate::model::Constant::Zero => 0,
                    _ => return Ok(None),
                };
                let condition = COMPARISONS[number % 4];
                let condition = if number < 4 {
                    condition
                } else {
                    condition.complement()
                };
                lanes(self, a, b, &|body, a, b| {
                    let ty = body.type_of(a);
                    let holds = body.builder.ins().fcmp(condition, a, b);
                    let mask = body.builder.ins().bmask(ty.as_int(), holds);
                    body.reinterpreted(mask, ty)
                })?
            }
            _ => return Ok(None),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_are_left_out() {
        assert_eq!(without_modifiers(" div ${2:q} "), "div $2");
        let cmov = "test ${1}, ${1}\ncmovnz ${0:q}, ${3:q}";
        assert_eq!(without_modifiers(cmov), "test $1, $1\ncmovnz $0, $3");
        assert_eq!(without_modifiers("nop"), "nop");
    }
}
