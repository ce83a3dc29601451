//! Instructions that are legal but can hardly be meant.

use super::apply::Assembled;
use super::diagnostic::Diagnostic;
use crate::isa::table::{Direction, FieldType};
use crate::isa::{PReg, Role};

/// What is suspicious about an instruction.
pub(super) fn advice(assembled: &Assembled<PReg>) -> Vec<Diagnostic> {
    constant_combination(assembled).into_iter().collect()
}

/// A comparison whose result does not depend on what it compares, because a predicate that was left out has the value
/// that absorbs the other: ISET combines by AND and the default of its `pp` is `!PT` (document 002).
fn constant_combination(assembled: &Assembled<PReg>) -> Option<Diagnostic> {
    let inst = &assembled.inst;
    let operand = inst
        .operand(Role::Pp)
        .filter(|operand| operand.direction == Direction::In)?;
    if assembled.is_written(operand.field) || inst.reg(Role::Pp).is_some() {
        return None;
    }
    let combination = inst.find_field("boolop")?;
    let FieldType::Enum(names) = combination.ty else {
        return None;
    };
    let is_true = inst.field(operand.not?) == 0;
    let name = names.name_of(combination.get(inst.word()))?;
    let absorbs = match name {
        "AND" => !is_true,
        "OR" => is_true,
        _ => false,
    };
    if !absorbs {
        return None;
    }
    let default = if is_true { "PT" } else { "!PT" };
    let neutral = if is_true { "!PT" } else { "PT" };
    let message = format!(
        "the result is always {is_true}: the predicate left out is {default}, and .{name} combines with it"
    );
    Some(
        Diagnostic::warning(assembled.span, message)
            .note(format!("write `, {neutral}` for the comparison alone")),
    )
}
