//! Checks of a resolved machine that no single definition shows: overlaps, ambiguity, what can never be written.
//!
//! Mistakes within a definition (unknown names, values that do not fit) are found while resolving. [`layout`] needs
//! only the fields' places, so it runs even after such mistakes; [`meaning`] needs a machine that was resolved without
//! error.

use crate::diagnostic::Diagnostic;
use crate::model::{Field, FieldValue, Form, Machine, Mode};

/// Fields of one form that share bits.
pub fn layout(machine: &Machine, diagnostics: &mut Vec<Diagnostic>) {
    overlaps(&machine.control, &[], diagnostics);
    for form in &machine.forms {
        overlaps(&form.fields, &machine.control, diagnostics);
    }
}

/// Forms that a word or a text cannot tell apart, and parts of forms that nothing can set.
pub fn meaning(machine: &Machine, diagnostics: &mut Vec<Diagnostic>) {
    optype_numbers(machine, diagnostics);
    ambiguous_forms(machine, diagnostics);
    for form in &machine.forms {
        unreachable_modes(machine, form, diagnostics);
        unwritable_fields(form, diagnostics);
    }
}

fn overlaps(fields: &[Field], control: &[Field], diagnostics: &mut Vec<Diagnostic>) {
    for (i, field) in fields.iter().enumerate() {
        let others = fields[..i].iter().chain(control);
        for other in others.filter(|other| mask(field) & mask(other) != 0) {
            let first = field.bit.max(other.bit);
            let last = (field.bit + field.width).min(other.bit + other.width) - 1;
            let bits = if first == last {
                format!("bit {first}")
            } else {
                format!("bits {first}..{last}")
            };
            diagnostics.push(
                Diagnostic::error(
                    field.span,
                    format!("field `{}` overlaps field `{}`", field.name, other.name),
                )
                .label(format!("both have {bits}"))
                .related(other.span, "the other field"),
            );
        }
    }
}

/// The bits of a field. A field that ends past the word, an error of its own, is cut off.
fn mask(field: &Field) -> u128 {
    let ones = u128::MAX >> (128 - u32::from(field.width));
    ones << field.bit
}

fn optype_numbers(machine: &Machine, diagnostics: &mut Vec<Diagnostic>) {
    for (i, optype) in machine.optypes.iter().enumerate() {
        let earlier = machine.optypes[..i]
            .iter()
            .find(|o| o.number == optype.number);
        if let Some(other) = earlier {
            diagnostics.push(
                Diagnostic::error(
                    optype.span,
                    format!(
                        "optypes `{}` and `{}` have the number {}",
                        optype.name, other.name, optype.number
                    ),
                )
                .related(other.span, "the other optype")
                .help(
                    "give one of them another number where the type of field `optype` is defined",
                ),
            );
        }
    }
}

/// Two forms are ambiguous if no bit that is constant in both differs.
fn ambiguous_forms(machine: &Machine, diagnostics: &mut Vec<Diagnostic>) {
    let constants: Vec<(u128, u128)> = machine.forms.iter().map(constant_bits).collect();
    for (i, form) in machine.forms.iter().enumerate() {
        for (j, other) in machine.forms[..i].iter().enumerate() {
            let (mask, value) = constants[i];
            let (other_mask, other_value) = constants[j];
            if (value ^ other_value) & mask & other_mask != 0 {
                continue;
            }
            diagnostics.push(
                Diagnostic::error(
                    form.span,
                    format!(
                        "no constant field tells `{}` from `{}`",
                        form.name, other.name
                    ),
                )
                .related(other.span, "the other form")
                .help(
                    "a word of one would also be a word of the other: give them different `stype`s",
                ),
            );
        }
    }
}

/// Mask and value of a form's constant fields.
fn constant_bits(form: &Form) -> (u128, u128) {
    form.fields
        .iter()
        .fold((0, 0), |(bits, value), field| match field.value {
            FieldValue::Constant(constant) => (
                bits | mask(field),
                value | ((u128::from(constant) << field.bit) & mask(field)),
            ),
            _ => (bits, value),
        })
}

/// A mode is unreachable if an earlier one fixes no more than it does, or if a constant contradicts it.
fn unreachable_modes(machine: &Machine, form: &Form, diagnostics: &mut Vec<Diagnostic>) {
    let text = |mode: &Mode| {
        let lines = machine.optypes.get(form.optype).map(|o| &o.syntax);
        let line = lines.and_then(|lines| lines.get(mode.line));
        line.cloned().unwrap_or_default()
    };
    for (i, mode) in form.modes.iter().enumerate() {
        let earlier = form.modes[..i]
            .iter()
            .find(|other| other.fixed.iter().all(|demand| mode.fixed.contains(demand)));
        if let Some(earlier) = earlier {
            diagnostics.push(
                Diagnostic::error(
                    form.span,
                    format!("a syntax line of form `{}` can never be chosen", form.name),
                )
                .help(format!(
                    "`{}` always takes precedence over `{}`: tell them apart by a literal modifier",
                    text(earlier),
                    text(mode)
                )),
            );
        }
        let contradiction = mode.fixed.iter().find(|&&(field, value)| {
            matches!(form.fields[field].value, FieldValue::Constant(c) if c != value)
        });
        if let Some(&(field, _)) = contradiction {
            let field = &form.fields[field];
            diagnostics.push(
                Diagnostic::error(
                    field.span,
                    format!(
                        "constant field `{}` contradicts the syntax of form `{}`",
                        field.name, form.name
                    ),
                )
                .help(format!("`{}` can never be chosen", text(mode))),
            );
        }
    }
}

/// Fields that must be given but are in no mode, and operands that are in none.
fn unwritable_fields(form: &Form, diagnostics: &mut Vec<Diagnostic>) {
    let never_shown = |field: usize| form.modes.iter().all(|mode| mode.hidden.contains(&field));
    if form.modes.is_empty() {
        return;
    }
    for (i, field) in form.fields.iter().enumerate() {
        let operand = form
            .operands
            .iter()
            .any(|o| o.field == Some(i) || o.index == Some(i));
        if never_shown(i) && (operand || field.value == FieldValue::Free) {
            let what = if operand { "operand" } else { "field" };
            diagnostics.push(
                Diagnostic::error(
                    field.span,
                    format!(
                        "{what} `{}` of form `{}` is in no line of the syntax",
                        field.name, form.name
                    ),
                )
                .help(if operand {
                    "add it to a line of `__Syntax`"
                } else {
                    "add it to a line of `__Syntax`, or give it a default"
                }),
            );
        }
    }
}
