//! The operands of an operation over all its forms.

use super::naming::role_name;
use crate::model::{Direction, FieldType, Form, Machine, Operand, Optype};

/// How a value of an operand is passed to the semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Bool,
    /// An unsigned number in the word: `lut`, `shiftamt`.
    Number,
    Word,
    Pair,
    Quad,
    /// The set of all predicates.
    Set,
    /// A signed number.
    Signed,
}

/// The operands of an operation over all its forms, by role.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    pub(super) sources: Vec<(String, Kind)>,
    pub(super) results: Vec<(String, Kind)>,
}

pub(super) fn kind_of(form: &Form, operand: &Operand) -> Kind {
    let Some(field) = operand.field else {
        return Kind::Set;
    };
    match form.fields[field].ty {
        FieldType::Predicate | FieldType::UniformPredicate => Kind::Bool,
        FieldType::Address | FieldType::Label => Kind::Signed,
        FieldType::Enum(_) | FieldType::Convergence => Kind::Number,
        FieldType::Signed | FieldType::Unsigned
            if form.fields[field].width < 32 || operand.direction == Direction::Neither =>
        {
            Kind::Number
        }
        _ => match operand.max_width {
            0..=32 => Kind::Word,
            33..=64 => Kind::Pair,
            _ => Kind::Quad,
        },
    }
}

/// The operands of `optype`, the guard left out; the widest form of each role wins.
pub fn signature(machine: &Machine, optype: &Optype) -> Signature {
    let mut result = Signature::default();
    let add = |list: &mut Vec<(String, Kind)>, role: String, kind: Kind| match list
        .iter_mut()
        .find(|(r, _)| *r == role)
    {
        Some(entry) => entry.1 = entry.1.max(kind),
        None => list.push((role, kind)),
    };
    for form in &machine.forms[optype.forms.clone()] {
        for operand in form.operands.iter().filter(|o| o.name != "pg") {
            let (role, kind) = (role_name(&operand.name), kind_of(form, operand));
            match operand.direction {
                Direction::Out => {
                    // An operation that writes the set of predicates keeps some of them (R2P): it reads the set as
                    // well.
                    if kind == Kind::Set {
                        add(&mut result.sources, role.clone(), kind);
                    }
                    add(&mut result.results, role, kind)
                }
                _ => add(&mut result.sources, role, kind),
            }
            if let Some(index) = operand.index {
                add(
                    &mut result.sources,
                    role_name(&form.fields[index].name),
                    Kind::Signed,
                );
            }
        }
    }
    result
}
