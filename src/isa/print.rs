//! The text of one instruction, for every form and every phase, from the form's syntax.
//!
//! Takes an [`Inst`] of virtual or allocated registers and gives `@!P0 IADD R0, R1, -R2`; with [`Inst::assembly`] also
//! the control suffix and the final `;`. Modifiers come in the order of the documents' `__Syntax`. An optional modifier
//! or operand is left out when it holds its default, unless the text would then be read as another one. What is printed
//! for an encodable instruction, the assembler reads back to the same word.

use super::control::Control;
use super::encode::mode_of;
use super::generated::HARDWIRED;
use super::inst::Inst;
use super::literal::{ImmediateFormat, integer_text, sign_extend};
use super::register::{Register, RegisterClass};
use super::table::{FieldInfo, FieldType, ModeInfo, SyntaxOperand, SyntaxOperandKind};
use std::fmt::{self, Write};

/// An instruction with the texts that stand for some of its fields.
///
/// `symbols` maps a field index to what is written instead of its number: the label of a branch, the part of an address
/// that linking fills in.
pub struct InstText<'a, R> {
    inst: &'a Inst<R>,
    symbols: &'a dyn Fn(u8) -> Option<String>,
}

impl<R: Register> Inst<R> {
    /// The text without control suffix, with symbols for some fields.
    pub fn with_symbols<'a>(
        &'a self,
        symbols: &'a dyn Fn(u8) -> Option<String>,
    ) -> InstText<'a, R> {
        InstText {
            inst: self,
            symbols,
        }
    }

    /// The line of assembly: instruction, control suffix and ` ;`.
    pub fn assembly(&self, control: Control) -> String {
        format!("{self}{control} ;")
    }
}

impl<R: Register> fmt::Display for Inst<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_symbols(&|_| None).fmt(f)
    }
}

impl<R: Register> fmt::Display for InstText<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inst = self.inst;
        if !inst.is_unguarded() {
            let (guard, negated) = inst.guard();
            f.write_str(if negated { "@!" } else { "@" })?;
            match guard {
                Some(r) => write!(f, "{r} ")?,
                None => write!(f, "{} ", RegisterClass::Predicate.hardwired_name())?,
            }
        }
        f.write_str(inst.optype().info().mnemonic)?;
        // No line of the syntax has these modifiers: an instruction that does not encode, shown for whoever looks for
        // the mistake.
        let Some(mode) = mode_of(inst.info(), inst.word()) else {
            return write!(f, "<no syntax, word {:#x}>", inst.word());
        };
        self.modifiers(mode, f)?;
        let mut separator = " ";
        for (i, operand) in mode.operands.iter().enumerate() {
            if self.is_shown(mode, i) {
                f.write_str(separator)?;
                self.operand(operand, f)?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

impl<R: Register> InstText<'_, R> {
    fn field(&self, index: u8) -> &'static FieldInfo {
        &self.inst.info().fields[index as usize]
    }

    fn is_set(&self, index: Option<u8>) -> bool {
        index.is_some_and(|i| self.inst.field(i) != 0)
    }

    fn modifiers(&self, mode: &ModeInfo, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for modifier in mode.modifiers {
            if modifier.literal {
                if !modifier.optional {
                    write!(f, ".{}", modifier.values[0].0)?;
                }
                continue;
            }
            let Some(index) = modifier.field else {
                continue;
            };
            let value = self.inst.field(index);
            if modifier.optional && value == self.field(index).hidden {
                continue;
            }
            match modifier.values.iter().find(|(_, v)| *v == value) {
                Some((text, _)) => write!(f, ".{text}")?,
                None => write!(f, ".<{} {value}>", self.field(index).name)?,
            }
        }
        Ok(())
    }

    /// Whether operand `i` of the mode is written.
    fn is_shown(&self, mode: &ModeInfo, i: usize) -> bool {
        let operand = &mode.operands[i];
        if !operand.optional || !self.is_default(operand) {
            return true;
        }
        // Left out, it must not leave its place to the next one of its kind.
        (i + 1..mode.operands.len())
            .find(|next| self.is_shown(mode, *next))
            .is_some_and(|next| self.kind(operand) == self.kind(&mode.operands[next]))
    }

    /// What kind of text an operand is: the register class, else the sort of field.
    fn kind(
        &self,
        operand: &SyntaxOperand,
    ) -> Option<(std::mem::Discriminant<FieldType>, Option<RegisterClass>)> {
        let SyntaxOperandKind::Plain { field, .. } = operand.kind else {
            return None;
        };
        let ty = self.field(field).ty;
        let class = match ty {
            FieldType::Register(class) => Some(class),
            _ => None,
        };
        Some((std::mem::discriminant(&ty), class))
    }

    fn is_default(&self, operand: &SyntaxOperand) -> bool {
        let SyntaxOperandKind::Plain {
            field,
            negate,
            absolute,
            bitnot,
            not,
            suffix,
            ..
        } = operand.kind
        else {
            return false;
        };
        let unallocated = match self.operand_regs(field) {
            Some(regs) => regs.iter().all(Option::is_none),
            None => true,
        };
        let fields = [Some(field), negate, absolute, bitnot, not, suffix];
        unallocated
            && fields
                .into_iter()
                .flatten()
                .all(|i| self.inst.field(i) == self.field(i).hidden)
    }

    /// The register entries of the operand in a field; none when it is no register.
    fn operand_regs(&self, field: u8) -> Option<&[Option<R>]> {
        let operand = self
            .inst
            .info()
            .operands
            .iter()
            .find(|o| o.field == field && o.class.is_some())?;
        Some(self.inst.operand_regs(operand))
    }

    fn operand(&self, operand: &SyntaxOperand, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match operand.kind {
            SyntaxOperandKind::Plain {
                field,
                negate,
                negate_by,
                absolute,
                bitnot,
                not,
                suffix,
            } => {
                if self.is_set(negate) {
                    f.write_char(if self.is_set(negate_by) { '~' } else { '-' })?;
                }
                if self.is_set(bitnot) {
                    f.write_char('~')?;
                }
                if self.is_set(not) {
                    f.write_char('!')?;
                }
                if self.is_set(absolute) {
                    f.write_char('|')?;
                }
                self.value(field, f)?;
                if let Some(index) = suffix
                    && self.inst.field(index) != self.field(index).hidden
                {
                    write!(f, ".{}", self.name(index))?;
                }
                if self.is_set(absolute) {
                    f.write_char('|')?;
                }
                Ok(())
            }
            SyntaxOperandKind::AllPredicates => f.write_str("PR"),
            SyntaxOperandKind::Indexed { base, offset } => {
                f.write_str("R[")?;
                self.value(base, f)?;
                self.offset(offset, f)?;
                f.write_char(']')
            }
            SyntaxOperandKind::Memory {
                base,
                uniform,
                offset,
            } => {
                f.write_char('[')?;
                if let Some(base) = base {
                    self.value(base, f)?;
                }
                if let Some(uniform) = uniform {
                    f.write_str(if base.is_some() { "+" } else { "" })?;
                    self.value(uniform, f)?;
                }
                if let Some(offset) = offset {
                    self.offset(offset, f)?;
                }
                f.write_char(']')
            }
        }
    }

    /// `+0x10`, nothing for 0.
    fn offset(&self, index: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field(index);
        match sign_extend(self.inst.field(index), field.width.into()) {
            0 => Ok(()),
            v => write!(
                f,
                "{}{:#x}",
                if v < 0 { '-' } else { '+' },
                v.unsigned_abs()
            ),
        }
    }

    fn name(&self, index: u8) -> String {
        super::encode::value_text(&self.field(index).ty, self.inst.field(index))
    }

    fn value(&self, index: u8, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = (self.symbols)(index) {
            return f.write_str(&text);
        }
        let field = self.field(index);
        let bits = self.inst.field(index);
        if let Some(format) = ImmediateFormat::of(self.inst.info(), field, self.inst.word()) {
            return f.write_str(&format.text(bits));
        }
        match field.ty {
            FieldType::Register(class) => match self.operand_regs(index).unwrap_or_default() {
                [] | [None, ..] => f.write_str(class.hardwired_name()),
                regs => {
                    let regs: Vec<R> = regs.iter().copied().flatten().collect();
                    R::write_group(&regs, f)
                }
            },
            FieldType::ConstantMemory => write!(f, "c[{:#x}][{:#x}]", bits >> 17, bits & 0x1_ffff),
            FieldType::Convergence => write!(f, "B{bits}"),
            FieldType::UniformPredicate if bits == u64::from(uniform_true()) => f.write_str("UPT"),
            FieldType::UniformPredicate => write!(f, "UP{bits}"),
            FieldType::Label => match sign_extend(bits, field.width.into()) {
                v if v < 0 => write!(f, ".-{:#x}", v.unsigned_abs()),
                v => write!(f, ".+{v:#x}"),
            },
            FieldType::Signed | FieldType::Address => {
                f.write_str(&integer_text(sign_extend(bits, field.width.into())))
            }
            FieldType::Unsigned => f.write_str(&integer_text(bits as i64)),
            FieldType::Enum(_) | FieldType::Float32 | FieldType::Half2 => {
                f.write_str(&self.name(index))
            }
        }
    }
}

/// The number of UPT: that of PT.
pub(crate) fn uniform_true() -> u8 {
    HARDWIRED[RegisterClass::Predicate as usize].1
}
