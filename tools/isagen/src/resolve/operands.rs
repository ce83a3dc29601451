//! `Order`, `InList`, `OutList` and `Bitwidth` → operands.

use super::Context;
use super::expression::find;
use crate::ast::{Construct, OperandEntry, OperandList};
use crate::diagnostic::Diagnostic;
use crate::expr::Expr;
use crate::model::{Direction, EnumType, Field, FieldType, Operand};

/// The set of all predicates.
pub(super) const ALL_PREDICATES: &str = "PR";

/// The most combinations of field values that are tried for a width.
const MAX_COMBINATIONS: u64 = 1 << 12;

impl<'a> Context<'a> {
    /// The operands of a form; `chain` is what it inherits from, itself last.
    pub(super) fn operands(
        &self,
        form: &Construct,
        chain: &[&'a Construct],
        amendments: &[&'a Construct],
        fields: &[Field],
    ) -> Vec<Operand> {
        let innermost = |list: fn(&Construct) -> Option<&OperandList>| {
            chain.iter().rev().find_map(|construct| list(construct))
        };
        let order = innermost(|c| c.operands.order.as_ref());
        let Some(order) = order else {
            let message = format!("form `{}` has no `Order`", form.name.text);
            self.report(
                Diagnostic::error(form.name.span, message)
                    .help("add `Order<pg, rd, ra, ..>;` to its `__OperandInfo`"),
            );
            return Vec::new();
        };
        let inputs = innermost(|c| c.operands.inputs.as_ref());
        let outputs = innermost(|c| c.operands.outputs.as_ref());
        for list in [inputs, outputs].into_iter().flatten() {
            self.check_listed(list, order, fields);
        }
        for construct in chain {
            if let Some(list) = &construct.operands.modifier_order {
                for entry in &list.entries {
                    self.known_entry(entry, fields);
                }
            }
        }
        self.check_widths(chain, amendments, order, fields);
        let mut operands = Vec::new();
        for (i, entry) in order.entries.iter().enumerate() {
            let text = entry.text();
            if let Some(first) = order.entries[..i].iter().find(|e| e.text() == text) {
                self.report(
                    Diagnostic::error(entry.span(), format!("`{text}` is listed twice"))
                        .related(first.span(), "first here"),
                );
                continue;
            }
            if !self.known_entry(entry, fields) {
                continue;
            }
            let (field, index) = match entry {
                OperandEntry::Named(name) => (find(fields, &name.text), None),
                OperandEntry::Indexed { base, index, .. } => {
                    (find(fields, &base.text), find(fields, &index.text))
                }
            };
            let direction = match (listed(inputs, entry), listed(outputs, entry)) {
                (true, true) => {
                    let message = format!("`{text}` is both in `InList` and in `OutList`");
                    self.error(entry.span(), message);
                    Direction::In
                }
                (true, false) => Direction::In,
                (false, true) => Direction::Out,
                (false, false) => Direction::Neither,
            };
            let width = self.width(entry, field, chain, amendments, fields);
            let (width, max_width) = width.unwrap_or((Expr::Number(32), 32));
            operands.push(Operand {
                field,
                index,
                name: text,
                direction,
                width,
                max_width,
            });
        }
        operands
    }

    /// Entries of `InList` and `OutList` must be in `Order`.
    fn check_listed(&self, list: &OperandList, order: &OperandList, fields: &[Field]) {
        for entry in &list.entries {
            if self.known_entry(entry, fields) && !listed(Some(order), entry) {
                let text = entry.text();
                let keyword = &list.keyword.text;
                self.report(
                    Diagnostic::error(
                        entry.span(),
                        format!("`{text}` is in `{keyword}`, but not in `Order`"),
                    )
                    .related(order.keyword.span, "this `Order`"),
                );
            }
        }
    }

    fn known_entry(&self, entry: &OperandEntry, fields: &[Field]) -> bool {
        let names = match entry {
            OperandEntry::Named(name) if name.text == ALL_PREDICATES => return true,
            OperandEntry::Named(name) => vec![name],
            OperandEntry::Indexed { base, index, .. } => vec![base, index],
        };
        let mut known = true;
        for name in names {
            if find(fields, &name.text).is_none() {
                self.unknown_field(name, fields);
                known = false;
            }
        }
        known
    }

    /// `Bitwidth` of a form must be of its operands.
    fn check_widths(
        &self,
        chain: &[&'a Construct],
        amendments: &[&'a Construct],
        order: &OperandList,
        fields: &[Field],
    ) {
        for construct in chain.iter().chain(amendments) {
            for (i, (name, _)) in construct.operands.widths.iter().enumerate() {
                let operand = order.entries.iter().any(|entry| match entry {
                    OperandEntry::Named(other) => other.text == name.text,
                    OperandEntry::Indexed { base, .. } => base.text == name.text,
                });
                if find(fields, &name.text).is_none() {
                    self.unknown_field(name, fields);
                } else if !operand {
                    let message = format!("`{}` has a width, but is not in `Order`", name.text);
                    self.error(name.span, message);
                }
                let earlier = construct.operands.widths[..i]
                    .iter()
                    .find(|(n, _)| n.text == name.text);
                if let Some((first, _)) = earlier {
                    let message = format!("the width of `{}` is stated twice", name.text);
                    self.report(
                        Diagnostic::error(name.span, message).related(first.span, "first here"),
                    );
                }
            }
        }
    }

    /// The width of an operand and the most it can be.
    fn width(
        &self,
        entry: &OperandEntry,
        field: Option<usize>,
        chain: &[&'a Construct],
        amendments: &[&'a Construct],
        fields: &[Field],
    ) -> Option<(Expr, u8)> {
        let Some(field) = field else {
            return Some((Expr::Number(8), 8));
        };
        let name = match entry {
            OperandEntry::Named(name) | OperandEntry::Indexed { base: name, .. } => &name.text,
        };
        let stated = chain
            .iter()
            .chain(amendments)
            .rev()
            .flat_map(|construct| &construct.operands.widths)
            .find(|(operand, _)| operand.text == *name);
        let Some((_, expression)) = stated else {
            let width = match fields[field].ty {
                FieldType::Gpr | FieldType::Uniform => 32,
                FieldType::Predicate | FieldType::UniformPredicate => 1,
                _ => fields[field].width,
            };
            return Some((Expr::Number(i64::from(width)), width));
        };
        let width = self.expression(expression, fields)?;
        let span = expression.span();
        let register = matches!(fields[field].ty, FieldType::Gpr | FieldType::Uniform);
        let Some(values) = possible_values(&width, fields, &self.machine.enums) else {
            self.report(
                Diagnostic::error(span, "this width depends on too much")
                    .help(format!("at most {MAX_COMBINATIONS} combinations of values")),
            );
            return None;
        };
        let wrong = values
            .iter()
            .find(|&&w| !(1..=255).contains(&w) || (register && w % 32 != 0));
        if let Some(wrong) = wrong {
            self.report(
                Diagnostic::error(span, format!("the width of `{name}` can be {wrong}")).help(
                    if register {
                        "a register operand has a multiple of 32 bits"
                    } else {
                        "an operand has 1 to 255 bits"
                    },
                ),
            );
            return None;
        }
        let most = values.iter().copied().max().unwrap_or(32);
        Some((width, most as u8))
    }
}

/// Whether a list has an entry. An indexed one counts if its base register is listed.
fn listed(list: Option<&OperandList>, entry: &OperandEntry) -> bool {
    let matches = |other: &OperandEntry| match (entry, other) {
        (OperandEntry::Named(a), OperandEntry::Named(b)) => a.text == b.text,
        (
            OperandEntry::Indexed { base, .. } | OperandEntry::Named(base),
            OperandEntry::Named(name) | OperandEntry::Indexed { base: name, .. },
        ) => base.text == name.text,
    };
    list.is_some_and(|list| list.entries.iter().any(matches))
}

/// Every value an expression can have; none if there are too many combinations. Fields of enumerations take their
/// members' values.
fn possible_values(expression: &Expr, fields: &[Field], enums: &[EnumType]) -> Option<Vec<i64>> {
    let mut used = Vec::new();
    expression.fields(&mut |field| {
        if !used.contains(&field) {
            used.push(field);
        }
    });
    let domains: Vec<Vec<u64>> = used
        .iter()
        .map(|&field| domain(&fields[field], enums))
        .collect::<Option<_>>()?;
    let combinations = domains
        .iter()
        .try_fold(1u64, |n, domain| n.checked_mul(domain.len() as u64))
        .filter(|&n| n <= MAX_COMBINATIONS)?;
    let mut values = Vec::new();
    for combination in 0..combinations {
        let mut rest = combination;
        let mut assignment = Vec::new();
        for (&field, domain) in used.iter().zip(&domains) {
            let size = domain.len() as u64;
            assignment.push((field, domain[(rest % size) as usize]));
            rest /= size;
        }
        let value = expression.evaluate(&|field| {
            let found = assignment.iter().find(|(f, _)| *f == field);
            found.map_or(0, |(_, value)| *value)
        });
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Some(values)
}

fn domain(field: &Field, enums: &[EnumType]) -> Option<Vec<u64>> {
    let members = match field.ty {
        FieldType::Enum(index) => enums.get(index).map(|e| &e.members),
        _ => None,
    };
    match members {
        Some(members) => Some(members.iter().map(|m| m.value).collect()),
        None if field.width <= 12 => Some((0..1 << field.width).collect()),
        None => None,
    }
}
