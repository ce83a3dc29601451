//! What terms are for given inputs.

use crate::smt::definitions_first;
use crate::term::{Operation, Sort, Term, mask, signed};
use hashbrown::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number that a term is where variables have these values, and 0 where none is given; of a truth 0 or 1. None
/// where it depends on memory or on an unknown function.
pub fn evaluate(term: Term, inputs: &HashMap<Term, u128>) -> Option<u128> {
    let mut known: HashMap<Term, u128> = HashMap::new();
    for part in definitions_first(term) {
        if part.sort() == Sort::Memory {
            continue;
        }
        // What is not known may be in the arm of a choice that is not taken.
        if let Some(value) = of(part, inputs, &known) {
            known.insert(part, value);
        }
    }
    known.get(&term).copied()
}

/// Numbers that terms are for random inputs; unknown functions and memory are random too.
pub struct Values {
    seed: u64,
    known: HashMap<Term, u128>,
    inputs: HashMap<Term, u128>,
}

impl Values {
    /// For the inputs of a seed.
    pub fn random(seed: u64) -> Self {
        Values {
            seed,
            known: HashMap::new(),
            inputs: HashMap::new(),
        }
    }

    /// The number that a term is.
    pub fn of(&mut self, term: Term) -> u128 {
        // Most of it is known, so this ends early.
        let mut work = vec![term];
        while let Some(&next) = work.last() {
            if self.known.contains_key(&next) {
                work.pop();
                continue;
            }
            let operands = next.operation().operands();
            let missing = operands.iter().filter(|t| !self.known.contains_key(*t));
            let before = work.len();
            work.extend(missing);
            if work.len() > before {
                continue;
            }
            let value = match next.operation() {
                Operation::Variable(_) | Operation::Store(..) => self.chosen(next, &[]),
                Operation::Byte(..) | Operation::Apply(..) => {
                    let operands: Vec<u128> = operands.iter().map(|t| self.known[t]).collect();
                    self.chosen(next, &operands)
                }
                _ if next.sort() == Sort::Memory => self.chosen(next, &[]),
                _ => of(next, &self.inputs, &self.known).unwrap_or(0),
            };
            self.known.insert(next, value);
        }
        self.known[&term]
    }

    /// A number that nothing is known of: it depends on what the term is, or on its function and operands.
    fn chosen(&self, term: Term, operands: &[u128]) -> u128 {
        let mut hasher = DefaultHasher::new();
        self.seed.hash(&mut hasher);
        match term.operation() {
            Operation::Apply(function, _) => (function, operands).hash(&mut hasher),
            Operation::Byte(..) => operands.hash(&mut hasher),
            _ => term.hash(&mut hasher),
        }
        let low = hasher.finish();
        low.hash(&mut hasher);
        let value = u128::from(hasher.finish()) << 64 | u128::from(low);
        match term.width() {
            0 => value,
            // Some inputs are small, so that quotients are not all zero.
            width if self.seed % 4 == 1 => (value & mask(width)) >> (width / 2),
            width => value & mask(width),
        }
    }
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
        Operation::ShiftLeft(a, b) => {
            shift(a, get(&b)?).map_or(Some(0), |by| Some(get(&a)? << by))?
        }
        Operation::ShiftRight(a, b) => {
            shift(a, get(&b)?).map_or(Some(0), |by| Some(get(&a)? >> by))?
        }
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
        Operation::Byte(..) | Operation::Store(..) | Operation::Apply(..) => return None,
    };
    Some(if width == 0 {
        value
    } else {
        value & mask(width)
    })
}
