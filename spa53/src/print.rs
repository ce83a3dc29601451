//! An instruction as text, by the tables: the way back of [`super::read`].

use super::{Instruction, OperandSyntax, Part, Predicate, Shape, Sign, Source};
use cranelift_thisgpu::unstable::isa::literal::{FloatFormat, ImmediateFormat, integer_text};
use cranelift_thisgpu::unstable::isa::{PReg, RegisterClass};
use std::fmt;

impl fmt::Display for Instruction {
    /// `@!P0 HMUL2.FTZ R0, -|R1|.F32, c[0x0][0x160]`, without control suffix and semicolon.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.guard != Predicate::default() {
            write!(f, "@{} ", PredicateText(self.guard))?;
        }
        f.write_str(self.line.mnemonic)?;
        for (choice, optional) in self.line.modifiers {
            let value = self.modifiers.get(*choice);
            if !(*optional && choice.default() == Some(value)) {
                write!(f, ".{}", choice.values()[value])?;
            }
        }
        let mut immediates = match self.b {
            Source::Immediate([low, high]) => vec![low, high],
            _ => Vec::new(),
        };
        for (index, syntax) in self.line.operands.iter().enumerate() {
            f.write_str(if index == 0 { " " } else { ", " })?;
            self.operand(f, syntax, &mut immediates)?;
        }
        Ok(())
    }
}

impl Instruction {
    fn operand(
        &self,
        f: &mut fmt::Formatter<'_>,
        syntax: &OperandSyntax,
        immediates: &mut Vec<u16>,
    ) -> fmt::Result {
        let input = match (syntax.part, syntax.shape, self.b) {
            (Part::Destination, ..) => return f.write_str(&register_text(self.rd)),
            (Part::Combined, ..) => return write!(f, "{}", PredicateText(self.pp)),
            (_, Shape::Immediate { .. }, _) => {
                // The high half stands first.
                let bits = immediates.pop().unwrap_or_default();
                return f.write_str(&half_text(bits));
            }
            (Part::Second, _, Source::Constant { bank, offset, sign }) => {
                let (bank, offset) = (integer_text(bank.into()), integer_text(offset.into()));
                return signed(f, sign, &format!("c[{bank}][{offset}]"));
            }
            (Part::Second, _, Source::Register(input)) => input,
            _ => self.a,
        };
        signed(f, input.sign, &register_text(input.register))?;
        let value = input.format as usize;
        match syntax.format.filter(|c| c.default() != Some(value)) {
            Some(choice) => write!(f, ".{}", choice.values()[value]),
            None => Ok(()),
        }
    }
}

fn signed(f: &mut fmt::Formatter<'_>, sign: Sign, text: &str) -> fmt::Result {
    let minus = if sign.negate { "-" } else { "" };
    let bar = if sign.absolute { "|" } else { "" };
    write!(f, "{minus}{bar}{text}{bar}")
}

fn register_text(register: Option<PReg>) -> String {
    let hardwired = RegisterClass::Gpr.hardwired_name();
    register.map_or(hardwired.to_owned(), |r| r.to_string())
}

/// A half as text: the shortest decimal, the bits of a NaN.
pub(super) fn half_text(bits: u16) -> String {
    ImmediateFormat::Scalar(FloatFormat::F16).text(bits.into())
}

struct PredicateText(Predicate);

impl fmt::Display for PredicateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Predicate { register, not } = self.0;
        let name = RegisterClass::Predicate.hardwired_name();
        let name = register.map_or(name.to_owned(), |p| p.to_string());
        write!(f, "{}{name}", if not { "!" } else { "" })
    }
}
