//! Fields and their values.

use super::Context;
use super::types::{built_in, fits};
use crate::ast::{Construct, FieldDeclaration, Name, ValueDeclaration};
use crate::diagnostic::Diagnostic;
use crate::lexer::parse_number;
use crate::model::{EnumType, Field, FieldType, FieldValue};

/// Bits of an instruction word.
pub const WORD_BITS: u64 = 128;

impl<'a> Context<'a> {
    /// Resolves declarations, each with the construct it stands in.
    pub(super) fn fields(
        &self,
        declarations: &[(&'a FieldDeclaration, &'a Construct)],
    ) -> Vec<Field> {
        declarations
            .iter()
            .map(|(declaration, construct)| self.field(declaration, construct))
            .collect()
    }

    fn field(&self, declaration: &'a FieldDeclaration, construct: &Construct) -> Field {
        let width = declaration.width.value;
        if !(1..=64).contains(&width) {
            let message = format!("a field has 1 to 64 bits, not {width}");
            self.error(declaration.width.span, message);
        }
        let width = width.clamp(1, 64);
        let bit = declaration.bit.value;
        if bit.saturating_add(width) > WORD_BITS {
            self.report(
                Diagnostic::error(
                    declaration.bit.span,
                    format!("field `{}` ends past bit 127", declaration.name.text),
                )
                .label(format!("an instruction word has {WORD_BITS} bits")),
            );
        }
        let type_name = declaration.type_name.text.as_str();
        let ty = self.field_type(declaration, width);
        let mut field = Field {
            name: declaration.name.text.clone(),
            bit: bit.min(WORD_BITS - 1) as u8,
            width: width as u8,
            type_name: type_name.to_owned(),
            ty,
            value: FieldValue::Free,
            hidden: 0,
            format: None,
            shown: None,
            provenance: construct.provenance,
            span: declaration.span,
        };
        field.value = match &declaration.value {
            ValueDeclaration::Free => FieldValue::Free,
            ValueDeclaration::Default(name) => FieldValue::Default(self.value(name, &field)),
            ValueDeclaration::Constant(name) => FieldValue::Constant(self.value(name, &field)),
        };
        field.hidden = match field.value {
            FieldValue::Default(value) | FieldValue::Constant(value) => value,
            FieldValue::Free => self.hard_wired(&field),
        };
        field
    }

    fn field_type(&self, declaration: &FieldDeclaration, width: u64) -> FieldType {
        let name = declaration.type_name.text.as_str();
        let defined = self.definitions.type_index(name);
        let (ty, required) = match (built_in(name), defined) {
            (Some(built_in), Some(index)) if built_in.register => {
                let width = u64::from(self.machine.enums[index].width);
                (built_in.ty, Some(width))
            }
            (Some(built_in), _) => (built_in.ty, built_in.width),
            (None, Some(index)) => {
                let width = u64::from(self.machine.enums[index].width);
                (FieldType::Enum(index), Some(width))
            }
            // Reported once for all its fields.
            (None, None) => (FieldType::Unsigned, None),
        };
        if let Some(required) = required.filter(|&required| required != width) {
            let than = if width > required {
                "wider"
            } else {
                "narrower"
            };
            self.report(
                Diagnostic::error(
                    declaration.width.span,
                    format!(
                        "field `{}` is {than} than its type: {width} bits, but `{name}` has {required}",
                        declaration.name.text
                    ),
                )
                .help(format!("write {required}, or use another type")),
            );
        }
        ty
    }

    /// The enumeration of a field: for registers that of the hard-wired ones.
    pub(super) fn members_of(&self, field: &Field) -> Option<&EnumType> {
        let index = self.definitions.type_index(&field.type_name)?;
        self.machine.enums.get(index)
    }

    /// Whether the type of a field is defined nowhere, so that nothing can be said of its values.
    pub(super) fn is_undefined(&self, field: &Field) -> bool {
        self.undefined.contains(field.type_name.as_str())
    }

    /// The number a member's name or a literal stands for in a field.
    pub(super) fn value(&self, name: &Name, field: &Field) -> u64 {
        if self.is_undefined(field) {
            return 0;
        }
        let members = self.members_of(field);
        if let Some(member) = members.and_then(|e| e.members.iter().find(|m| m.name == name.text)) {
            return member.value;
        }
        let (negative, digits) = match name.text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, name.text.as_str()),
        };
        let Some(magnitude) = parse_number(digits) else {
            if members.is_none() && built_in(&field.type_name).is_some_and(|b| b.register) {
                self.undefined_register(name, field);
            } else {
                self.unknown_member(name, field, members);
            }
            return 0;
        };
        let mask = u64::MAX >> (64 - u32::from(field.width));
        let in_range = if negative {
            magnitude <= 1 << (field.width - 1)
        } else {
            fits(magnitude, field.width)
        };
        let value = if negative {
            magnitude.wrapping_neg() & mask
        } else {
            magnitude
        };
        if !in_range {
            let message = format!(
                "{} does not fit the {} bits of field `{}`",
                name.text, field.width, field.name
            );
            self.error(name.span, message);
            return 0;
        }
        if let (FieldType::Enum(_), Some(enumeration)) = (field.ty, members)
            && !enumeration.members.iter().any(|m| m.value == value)
        {
            self.unknown_member(name, field, members);
        }
        value
    }

    /// Reports a register without number, once.
    fn undefined_register(&self, name: &Name, field: &Field) {
        let register = (field.type_name.clone(), name.text.clone());
        if !self.undefined_registers.borrow_mut().insert(register) {
            return;
        }
        let message = format!("the number of `{}` is not defined", name.text);
        self.report(
            Diagnostic::error(name.span, message)
                .label("first used here")
                .help(format!(
                    "add `__DefBitFieldType {}<{}> {} = NUMBER;`",
                    field.type_name, field.width, name.text
                )),
        );
    }

    fn unknown_member(&self, name: &Name, field: &Field, members: Option<&EnumType>) {
        let message = format!("`{}` is no value of `{}`", name.text, field.type_name);
        let help = match members {
            Some(e) if !e.members.is_empty() => {
                let names: Vec<&str> = e.members.iter().map(|m| m.name.as_str()).collect();
                format!("its members are {}", names.join(", "))
            }
            _ => format!("`{}` has no members; write a number", field.type_name),
        };
        self.report(Diagnostic::error(name.span, message).help(help));
    }

    /// RZ, URZ, PT or UPT for a register type that defines it, else 0.
    fn hard_wired(&self, field: &Field) -> u64 {
        let register = matches!(
            field.ty,
            FieldType::Gpr
                | FieldType::Uniform
                | FieldType::Predicate
                | FieldType::UniformPredicate
        );
        match self.members_of(field) {
            Some(e) if register => e.members.first().map_or(0, |m| m.value),
            _ => 0,
        }
    }
}
