//! Terms with others put in their place.

use super::{Operation, Term, function_of};
use crate::smt::definitions_first;
use hashbrown::HashMap;

/// A term where each of some parts is another one of its sort. It is simplified on the way.
pub fn substituted(root: Term, others: &HashMap<Term, Term>) -> Term {
    let mut done: HashMap<Term, Term> = HashMap::new();
    for term in definitions_first(root) {
        let new = match others.get(&term) {
            Some(&other) => other,
            None => rebuilt(term, &done),
        };
        done.insert(term, new);
    }
    done[&root]
}

/// A term of operands that have become others.
pub fn rebuilt(term: Term, done: &HashMap<Term, Term>) -> Term {
    let operation = term.operation();
    if operation.operands().iter().all(|t| done[t] == *t) {
        return term;
    }
    let new = |t: Term| done[&t];
    match operation {
        Operation::Variable(_) | Operation::Number(_) | Operation::Known(_) => term,
        Operation::Not(a) => new(a).not(),
        Operation::And(a, b) => new(a).and(new(b)),
        Operation::Or(a, b) => new(a).or(new(b)),
        Operation::Xor(a, b) => new(a).xor(new(b)),
        Operation::Add(a, b) => new(a).plus(new(b)),
        Operation::Multiple(a, b) => new(a).times(new(b)),
        Operation::Product(a, b) => new(a).word_product(new(b)),
        Operation::Quotient(a, b) => new(a).quotient(new(b)),
        Operation::Remainder(a, b) => new(a).remainder(new(b)),
        Operation::ShiftLeft(a, b) => new(a).shifted_up(new(b)),
        Operation::ShiftRight(a, b) => new(a).shifted_down(new(b)),
        Operation::ShiftRightSigned(a, b) => new(a).shifted_down_signed(new(b)),
        Operation::Concat(a, b) => new(a).above(new(b)),
        Operation::Extract(a, from) => new(a).part(from, term.width()),
        Operation::Choose(c, a, b) => Term::choose(new(c), new(a), new(b)),
        Operation::Equal(a, b) => new(a).equals(new(b)),
        Operation::Below(a, b) => new(a).is_below(new(b)),
        Operation::Less(a, b) => new(a).is_less(new(b)),
        Operation::Byte(a, b) => new(a).byte(new(b)),
        Operation::Store(a, b, c) => new(a).with_byte(new(b), new(c)),
        Operation::Apply(function, _) => {
            let operands: Vec<Term> = operation.operands().into_iter().map(new).collect();
            Term::apply(&function_of(function), &operands, term.sort())
        }
    }
}
