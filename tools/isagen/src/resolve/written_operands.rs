//! Operands of a syntax line → operands of a form's mode.

use super::Context;
use super::expression::find;
use super::operands::ALL_PREDICATES;
use super::types::built_in;
use crate::ast::Name;
use crate::diagnostic::Diagnostic;
use crate::model::{Decorated, Field, FieldType, Form, SyntaxOperand, SyntaxOperandKind};
use crate::syntax::{
    AddressPart, OperandShape, OperandToken, PlainOperand, SyntaxBlock, SyntaxLine,
};

impl Context<'_> {
    /// None after an error.
    pub(super) fn syntax_operands(
        &self,
        line: &SyntaxLine,
        block: &SyntaxBlock,
        form: &Form,
    ) -> Option<Vec<SyntaxOperand>> {
        let matches = match_names(line, form);
        let mut operands = Vec::new();
        let mut complete = true;
        for token in &line.operands {
            match self.syntax_operand(token, &matches, block, form) {
                Ok(Some(kind)) => operands.push(SyntaxOperand {
                    optional: token.optional,
                    kind,
                }),
                Ok(None) => {}
                Err(()) => complete = false,
            }
        }
        complete.then_some(operands)
    }

    fn syntax_operand(
        &self,
        token: &OperandToken,
        matches: &[(&Name, usize)],
        block: &SyntaxBlock,
        form: &Form,
    ) -> Result<Option<SyntaxOperandKind>, ()> {
        let of = |name: &Name| {
            let found = matches.iter().find(|(n, _)| n.span == name.span);
            found.map(|(_, field)| *field)
        };
        match &token.shape {
            OperandShape::Plain(plain) if plain.name.text == ALL_PREDICATES => {
                let known = form.operands.iter().any(|o| o.name == ALL_PREDICATES);
                if known {
                    return Ok(Some(SyntaxOperandKind::AllPredicates));
                }
                self.unmatched(&plain.name, form);
                Err(())
            }
            OperandShape::Plain(plain) => match of(&plain.name) {
                Some(field) => {
                    let decorated = self.decorated(plain, field, block, form);
                    Ok(Some(SyntaxOperandKind::Plain(decorated)))
                }
                None if token.optional => Ok(None),
                None => {
                    self.unmatched(&plain.name, form);
                    Err(())
                }
            },
            OperandShape::Indexed { base, offset } => {
                let offset = offset.as_ref().and_then(of);
                match (of(base), offset) {
                    (Some(base), Some(offset)) => {
                        Ok(Some(SyntaxOperandKind::Indexed { base, offset }))
                    }
                    _ => {
                        self.unmatched(base, form);
                        Err(())
                    }
                }
            }
            OperandShape::Memory(parts) => self.memory(parts, &of, form).map(Some),
        }
    }

    fn memory(
        &self,
        parts: &[AddressPart],
        of: &dyn Fn(&Name) -> Option<usize>,
        form: &Form,
    ) -> Result<SyntaxOperandKind, ()> {
        let (mut base, mut uniform, mut offset) = (None, None, None);
        for part in parts {
            let Some(field) = of(&part.name) else {
                if part.optional {
                    continue;
                }
                self.unmatched(&part.name, form);
                return Err(());
            };
            let slot = match form.fields[field].ty {
                FieldType::Gpr => &mut base,
                FieldType::Uniform => &mut uniform,
                FieldType::Address | FieldType::Signed | FieldType::Unsigned => &mut offset,
                _ => {
                    let message = format!("`{}` can be no part of an address", part.name.text);
                    self.error(part.name.span, message);
                    return Err(());
                }
            };
            if slot.replace(field).is_some() {
                let message = "an address has at most one part of each kind";
                self.error(part.name.span, message);
                return Err(());
            }
        }
        Ok(SyntaxOperandKind::Memory {
            base,
            uniform,
            offset,
        })
    }

    fn unmatched(&self, name: &Name, form: &Form) {
        let operands: Vec<&str> = form.operands.iter().map(|o| o.name.as_str()).collect();
        let message = format!("`{}` is no operand of form `{}`", name.text, form.name);
        self.report(
            Diagnostic::error(name.span, message)
                .help(format!("its operands are {}", operands.join(", "))),
        );
    }

    fn decorated(
        &self,
        plain: &PlainOperand,
        field: usize,
        block: &SyntaxBlock,
        form: &Form,
    ) -> Decorated {
        let fields = &form.fields;
        let part = |wanted: bool, suffix: &str| {
            let name = format!("{}.{suffix}", fields[field].name);
            find(fields, &name).filter(|_| wanted)
        };
        let negate = part(plain.negate, "neg");
        let negate_by = negate
            .and_then(|f| fields[f].format.as_ref())
            .filter(|format| format.function == "CvtINegX")
            .map(|format| format.by);
        let suffix = plain.suffix.as_ref().and_then(|s| part(true, &s.text));
        if let (Some(suffix), Some(name)) = (suffix, &plain.suffix)
            && let Some(list) = block.list(&name.text)
        {
            // Only to report values that the type does not have.
            self.list_values(list, &fields[suffix]);
        }
        Decorated {
            field,
            negate,
            negate_by,
            absolute: part(plain.absolute, "abs"),
            bitnot: part(plain.bitnot, "bitnot"),
            not: part(plain.not, "not"),
            suffix,
        }
    }
}

/// The fields an operand shows.
pub(super) fn shown_fields(operand: &SyntaxOperand, shown: &mut Vec<usize>) {
    match &operand.kind {
        SyntaxOperandKind::Plain(d) => {
            shown.push(d.field);
            shown.extend(
                [d.negate, d.absolute, d.bitnot, d.not, d.suffix]
                    .into_iter()
                    .flatten(),
            );
        }
        SyntaxOperandKind::AllPredicates => {}
        SyntaxOperandKind::Indexed { base, offset } => shown.extend([*base, *offset]),
        SyntaxOperandKind::Memory {
            base,
            uniform,
            offset,
        } => shown.extend([base, uniform, offset].into_iter().flatten()),
    }
}

/// Which field each name among a line's operands stands for: the field of that name, `SrcX` for `rx`, `urx` or `vx`,
/// and the rest in the order of `Order`, where a name that begins with a type (`UImm5Sca`) is only matched with a field
/// of that type, and one that begins with `p` only with a predicate.
fn match_names<'l>(line: &'l SyntaxLine, form: &Form) -> Vec<(&'l Name, usize)> {
    let mut names: Vec<&Name> = Vec::new();
    for token in &line.operands {
        match &token.shape {
            OperandShape::Plain(plain) => names.push(&plain.name),
            OperandShape::Indexed { base, offset } => {
                names.push(base);
                names.extend(offset);
            }
            OperandShape::Memory(parts) => names.extend(parts.iter().map(|part| &part.name)),
        }
    }
    let mut matches: Vec<(&Name, usize)> = Vec::new();
    for &name in &names {
        if let Some(field) = named_field(&name.text, &form.fields) {
            matches.push((name, field));
        }
    }
    let mut remaining: Vec<usize> = form
        .operands
        .iter()
        .flat_map(|operand| [operand.field, operand.index])
        .flatten()
        .filter(|&f| !form.fields[f].is_guard() && !matches.iter().any(|(_, m)| *m == f))
        .collect();
    for name in names {
        if name.text == ALL_PREDICATES || matches.iter().any(|(n, _)| n.span == name.span) {
            continue;
        }
        let fits = |&f: &usize| fits_name(&name.text, &form.fields[f]);
        if let Some(at) = remaining.iter().position(fits) {
            matches.push((name, remaining.remove(at)));
        }
    }
    matches
}

fn named_field(name: &str, fields: &[Field]) -> Option<usize> {
    if let Some(field) = find(fields, &name.to_ascii_lowercase()) {
        return Some(field);
    }
    let letter = name.strip_prefix("Src")?.to_ascii_lowercase();
    ["r", "ur", "v"]
        .iter()
        .find_map(|prefix| find(fields, &format!("{prefix}{letter}")))
}

fn fits_name(name: &str, field: &Field) -> bool {
    let predicate = matches!(field.ty, FieldType::Predicate | FieldType::UniformPredicate);
    match type_prefix(name) {
        Some(type_name) => field.type_name == type_name,
        None => predicate == name.starts_with('p'),
    }
}

/// The built-in type, registers aside, that a name begins with: `UImm5` of `UImm5Sca`.
fn type_prefix(name: &str) -> Option<&str> {
    let ends = (1..=name.len())
        .rev()
        .filter(|&end| name.is_char_boundary(end));
    ends.map(|end| &name[..end])
        .find(|prefix| built_in(prefix).is_some_and(|built_in| !built_in.register))
}
