//! Which constructors selection has: one for each way to write an operation (a line of its `__Syntax`, a *mode*), with
//! typed sources and results.
//!
//! `IADD R0, R1, R2` and `IADD.X R0, P0, R1, R2, P1` are two constructors, `IADD` and `IADD_X`: the first takes
//! integers that may be negated and gives a register, the second takes words that may be complemented and a carry, and
//! gives a register and a carry. What an operand can be is in `sources.rs`.
//!
//! Modifiers of a line are of three kinds. One that decides how wide an operand is, or whether it is half a register,
//! decides the types of the constructor and therefore belongs to its name: `F2F_F64_F32` (left out where it is the
//! default: `UIADD`, `UIADD_64`). One that the syntax demands is an argument in front (`ISETP` needs its comparison).
//! All others are implied at their defaults; where there are any, a second constructor takes all modifiers as one
//! argument: `FADD_with`.

use super::naming::role_name;
use super::sources::{Carried, ResultType, SourceType, Typed, accesses_memory, wider};
use crate::model::{Direction, FieldType, Form, Machine, Mode, Optype, SyntaxOperandKind};

/// A modifier that a constructor leaves to its caller.
pub(super) struct Choice {
    /// Name of its field.
    pub name: String,
    /// Index of its type in [`Machine::enums`].
    pub ty: usize,
    /// Lowest bit in the word.
    pub bit: u8,
    /// What it holds when nobody says; none when the syntax demands it.
    pub default: Option<u64>,
}

/// A source of a constructor.
pub(super) struct Source {
    /// Its role.
    pub role: String,
    /// What it may be.
    pub ty: SourceType,
    /// What any form applies to it.
    pub carried: Carried,
}

/// A constructor.
pub(super) struct Constructor {
    /// The ISLE term.
    pub name: String,
    /// Constructors of one mode, which share the type of their modifiers.
    pub family: String,
    /// Indices into [`Machine::forms`]: those that can be written so.
    pub forms: Vec<usize>,
    /// The bits that the mode decides: its own, those of the name and those of `choices`.
    pub mask: u128,
    /// Their values, as far as the mode and the name fix them; defaults of choices not included.
    pub fixed: u128,
    /// Modifiers left to the caller.
    pub choices: Vec<Choice>,
    /// In the order of the documents.
    pub sources: Vec<Source>,
    /// What it gives.
    pub result: ResultType,
    /// The roles of what it gives.
    pub results: Vec<String>,
    /// `-` of its operands is written and means `~`.
    pub complements: bool,
}

impl Constructor {
    /// Whether some modifiers are implied, so that there is a second constructor that takes all.
    pub fn implies(&self) -> bool {
        self.choices.iter().any(|c| c.default.is_some())
    }
}

/// Whether selection can use the operation as a value or for an effect. Operations that end or leave a block are
/// terminators, calls carry the ABI, convergence barriers are placed after selection, and operations on the set of all
/// predicates or on a register known at run time are for the assembler.
fn selectable(machine: &Machine, optype: &Optype) -> bool {
    const NOT: [&str; 7] = [
        "branch",
        "call",
        "return",
        "exit",
        "trap",
        "anygpr",
        "predicates",
    ];
    let mut fields = machine.forms[optype.forms.clone()]
        .iter()
        .flat_map(|form| &form.fields);
    optype.name != "NOP"
        && !optype.effects.iter().any(|e| NOT.contains(&e.as_str()))
        && !fields.any(|field| field.ty == FieldType::Convergence)
}

/// All constructors, in the order of the description.
pub(super) fn constructors(machine: &Machine) -> Vec<Constructor> {
    let mut list = Vec::new();
    for optype in machine.optypes.iter().filter(|o| selectable(machine, o)) {
        for line in 0..optype.syntax.len() {
            list.extend(of_mode(machine, optype, line));
        }
    }
    list
}

/// A form and the mode of it that a syntax line is.
type Written<'m> = (usize, &'m Form, &'m Mode);

fn of_mode(machine: &Machine, optype: &Optype, line: usize) -> Vec<Constructor> {
    let written: Vec<Written> = optype
        .forms
        .clone()
        .filter_map(|index| {
            let form = &machine.forms[index];
            let mode = form.modes.iter().find(|m| m.line == line)?;
            Some((index, form, mode))
        })
        .collect();
    let Some(&(_, form, mode)) = written.first() else {
        return Vec::new();
    };
    let literals: Vec<&str> = mode
        .modifiers
        .iter()
        .filter(|m| m.literal && !m.optional)
        .filter_map(|m| m.values.first().map(|(text, _)| text.as_str()))
        .collect();
    let family = std::iter::once(optype.name.as_str())
        .chain(if optype.syntax.len() > 1 {
            literals
        } else {
            Vec::new()
        })
        .collect::<Vec<_>>()
        .join("_");
    let choices: Vec<usize> = mode
        .modifiers
        .iter()
        .filter(|m| !mode.fixed.iter().any(|f| Some(f.0) == m.field))
        .filter_map(|m| m.field)
        .collect();
    let (named, free): (Vec<usize>, Vec<usize>) = choices
        .into_iter()
        .partition(|&field| !accesses_memory(optype) && decides_types(&written, form, field));
    combinations(machine, form, &named)
        .into_iter()
        .map(|values| {
            let default = |&(field, value): &(usize, u64)| {
                is_optional(mode, field) && value == form.fields[field].hidden
            };
            let suffix: String = values
                .iter()
                .filter(|v| !default(v))
                .map(|&(field, value)| format!("_{}", member(machine, form, field, value)))
                .collect();
            constructor(optype, &written, &family, &suffix, &values, &free)
        })
        .collect()
}

fn is_optional(mode: &Mode, field: usize) -> bool {
    mode.modifiers
        .iter()
        .any(|m| m.field == Some(field) && m.optional)
}

/// Whether a modifier of `form` decides how wide an operand is, or whether it is half a register, in any form.
fn decides_types(written: &[Written], form: &Form, field: usize) -> bool {
    let name = &form.fields[field].name;
    written.iter().any(|(_, form, mode)| {
        let mut decides = false;
        let mut visit = |f: usize| decides |= form.fields[f].name == *name;
        for operand in &form.operands {
            operand.width.fields(&mut visit);
        }
        for operand in &mode.operands {
            if let SyntaxOperandKind::Plain(written) = &operand.kind
                && let Some(suffix) = written.suffix
                && let Some(shown) = &form.fields[suffix].shown
            {
                shown.fields(&mut visit);
            }
        }
        decides
    })
}

/// Every combination of values of the fields, in the order of their types' members.
fn combinations(machine: &Machine, form: &Form, fields: &[usize]) -> Vec<Vec<(usize, u64)>> {
    let mut list = vec![Vec::new()];
    for &field in fields {
        let FieldType::Enum(ty) = form.fields[field].ty else {
            continue;
        };
        let mut values: Vec<u64> = machine.enums[ty].members.iter().map(|m| m.value).collect();
        let mut seen = std::collections::BTreeSet::new();
        values.retain(|v| seen.insert(*v));
        list = list
            .into_iter()
            .flat_map(|combination: Vec<(usize, u64)>| {
                values.iter().map(move |&value| {
                    let mut longer = combination.clone();
                    longer.push((field, value));
                    longer
                })
            })
            .collect();
    }
    list
}

fn member<'m>(machine: &'m Machine, form: &Form, field: usize, value: u64) -> &'m str {
    let FieldType::Enum(ty) = form.fields[field].ty else {
        return "";
    };
    machine.enums[ty]
        .members
        .iter()
        .find(|m| m.value == value)
        .map_or("", |m| m.name.as_str())
}

fn constructor(
    optype: &Optype,
    written: &[Written],
    family: &str,
    suffix: &str,
    named: &[(usize, u64)],
    free: &[usize],
) -> Constructor {
    let (_, first, mode) = written[0];
    let mask = |field: usize| {
        let field = &first.fields[field];
        (u128::MAX >> (128 - u32::from(field.width))) << field.bit
    };
    let decided = || mode.fixed.iter().chain(named);
    let fixed = decided().fold(0, |word, &(field, value)| {
        word | u128::from(value) << first.fields[field].bit
    });
    let choices = free
        .iter()
        .filter_map(|&field| {
            let FieldType::Enum(ty) = first.fields[field].ty else {
                return None;
            };
            Some(Choice {
                name: first.fields[field].name.clone(),
                ty,
                bit: first.fields[field].bit,
                default: is_optional(mode, field).then_some(first.fields[field].hidden),
            })
        })
        .collect();
    let chosen: Vec<(String, u64)> = decided()
        .map(|&(field, value)| (first.fields[field].name.clone(), value))
        .collect();
    let mut sources: Vec<Source> = Vec::new();
    let mut result = ResultType::default();
    let mut results: Vec<String> = Vec::new();
    for &(_, form, mode) in written {
        for operand in form.operands.iter().filter(|o| o.name != "pg") {
            if operand.field.is_some_and(|f| mode.hidden.contains(&f)) {
                continue;
            }
            let typed = Typed {
                form,
                mode,
                chosen: &chosen,
            };
            if operand.direction == Direction::Out {
                typed.add_result(optype, operand, &mut result);
                let role = role_name(&operand.name);
                if !results.contains(&role) {
                    results.push(role);
                }
                continue;
            }
            let role = role_name(&operand.name);
            let ty = typed.source(optype, operand);
            let carried = typed.carried(operand, ty);
            match sources.iter_mut().find(|s| s.role == role) {
                Some(entry) => {
                    entry.ty = wider(entry.ty, ty);
                    entry.carried = entry.carried.or(carried);
                }
                None => sources.push(Source { role, ty, carried }),
            }
        }
    }
    let complements = sources
        .iter()
        .any(|s| matches!(s.ty, SourceType::Complement(_)))
        && mode
            .fixed
            .iter()
            .any(|&(f, value)| first.fields[f].name == "ext" && value != 0);
    Constructor {
        name: format!("{family}{suffix}"),
        family: family.to_string(),
        forms: written.iter().map(|w| w.0).collect(),
        mask: decided()
            .map(|f| f.0)
            .chain(free.iter().copied())
            .fold(0, |all, field| all | mask(field)),
        fixed,
        choices,
        sources,
        result,
        results,
        complements,
    }
}
