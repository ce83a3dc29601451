//! What terms are for given inputs.

use crate::smt::definitions_first;
use crate::term::{Operation, Sort, Term, mask, signed};
use hashbrown::HashMap;

/// The number that a term is where variables have these values, and 0 where none is given; of a truth 0 or 1. None
/// where it depends on memory.
pub fn evaluate(term: Term, inputs: &HashMap<Term, u128>) -> Option<u128> {
    let mut known: HashMap<Term, u128> = HashMap::new();
    for part in definitions_first(term) {
        if part.sort() == Sort::Memory {
            continue;
        }
        let value = of(part, inputs, &known)?;
        known.insert(part, value);
    }
    known.get(&term).copied()
}

fn of(term: Term, inputs: &HashMap<Term, u128>, known: &HashMap<Term, u128>) -> Option<u128> {
    let width = term.width();
    let get = |t: &Term| known.get(t).copied();
    let shift = |a: Term, by: u128| {
        if by >= u128::from(a.width()) {
            None
        } else {
            Some(by as u32)
        }
    };
    let value = match term.operation() {
        Operation::Variable(_) => inputs.get(&term).copied().unwrap_or(0),
        Operation::Number(value) => value,
        Operation::Known(value) => value.into(),
        Operation::Not(a) if term.sort() == Sort::Truth => 1 - get(&a)?,
        Operation::Not(a) => !get(&a)?,
        Operation::And(a, b) => get(&a)? & get(&b)?,
        Operation::Or(a, b) => get(&a)? | get(&b)?,
        Operation::Xor(a, b) => get(&a)? ^ get(&b)?,
        Operation::Add(a, b) => get(&a)?.wrapping_add(get(&b)?),
        Operation::Multiple(a, b) | Operation::Product(a, b) => get(&a)?.wrapping_mul(get(&b)?),
        Operation::Quotient(a, b) => get(&a)?.checked_div(get(&b)?).unwrap_or(u128::MAX),
        Operation::Remainder(a, b) => get(&a)?.checked_rem(get(&b)?).unwrap_or(get(&a)?),
        Operation::ShiftLeft(a, b) => shift(a, get(&b)?).map_or(0, |by| known[&a] << by),
        Operation::ShiftRight(a, b) => shift(a, get(&b)?).map_or(0, |by| known[&a] >> by),
        Operation::ShiftRightSigned(a, b) => {
            let by = shift(a, get(&b)?).unwrap_or(a.width() - 1);
            (signed(get(&a)?, a.width()) >> by) as u128
        }
        Operation::Concat(a, b) => get(&a)? << b.width() | get(&b)?,
        Operation::Extract(a, from) => get(&a)? >> from,
        Operation::Choose(c, a, b) => {
            let chosen = if get(&c)? == 1 { a } else { b };
            get(&chosen)?
        }
        Operation::Equal(a, b) => (get(&a)? == get(&b)?).into(),
        Operation::Below(a, b) => (get(&a)? < get(&b)?).into(),
        Operation::Less(a, b) => (signed(get(&a)?, a.width()) < signed(get(&b)?, b.width())).into(),
        Operation::Byte(..) | Operation::Store(..) => return None,
    };
    Some(if width == 0 {
        value
    } else {
        value & mask(width)
    })
}
