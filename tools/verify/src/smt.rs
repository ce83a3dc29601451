//! Terms as SMT-LIB text.

use crate::term::{Operation, Sort, Term, variable_of};
use hashbrown::{HashMap, HashSet};
use std::fmt::Write;

/// What a solver is to make of products of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Products {
    /// Nothing: they are those of an unknown function. What holds then, holds.
    Unknown,
    /// Products.
    Exact,
}

/// A question: whether a truth can hold.
pub struct Query {
    /// The text up to `(check-sat)`.
    pub text: String,
    /// The variables that the truth depends on.
    pub variables: Vec<(Term, String, Sort)>,
    /// Whether there are products of words.
    pub has_products: bool,
    /// Whether there are quotients or remainders by numbers.
    pub has_divisions: bool,
}

/// The question whether `truth` can hold.
pub fn query(truth: Term, products: Products) -> Query {
    let order = definitions_first(truth);
    let mut text = String::from("(set-logic ALL)\n");
    let mut variables = Vec::new();
    let (mut has_products, mut has_divisions) = (false, false);
    let mut names: HashMap<Term, String> = HashMap::new();
    for &term in &order {
        match term.operation() {
            Operation::Variable(number) => {
                let (name, sort) = variable_of(number);
                let _ = writeln!(text, "(declare-const |{name}| {})", sort_text(sort));
                names.insert(term, format!("|{name}|"));
                variables.push((term, name, sort));
            }
            Operation::Product(..) => has_products = true,
            Operation::Quotient(..) | Operation::Remainder(..) => has_divisions = true,
            _ => {}
        }
    }
    if has_products {
        text.push_str(match products {
            Products::Unknown => {
                "(declare-fun product ((_ BitVec 32) (_ BitVec 32)) (_ BitVec 64))\n"
            }
            Products::Exact => {
                "(define-fun product ((a (_ BitVec 32)) (b (_ BitVec 32))) (_ BitVec 64) \
                 (bvmul ((_ zero_extend 32) a) ((_ zero_extend 32) b)))\n"
            }
        });
    }
    for &term in &order {
        if matches!(term.operation(), Operation::Variable(_)) {
            continue;
        }
        let body = text_of(term, &names);
        let is_short = matches!(term.operation(), Operation::Number(_) | Operation::Known(_));
        if is_short {
            names.insert(term, body);
        } else {
            let name = format!("t{}", names.len());
            let sort = sort_text(term.sort());
            let _ = writeln!(text, "(define-fun {name} () {sort} {body})");
            names.insert(term, name);
        }
    }
    let _ = writeln!(text, "(assert {})", names[&truth]);
    Query {
        text,
        variables,
        has_products,
        has_divisions,
    }
}

/// All terms below one, each behind those that it is made of.
pub fn definitions_first(root: Term) -> Vec<Term> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    let mut work = vec![(root, false)];
    while let Some((term, is_done)) = work.pop() {
        if is_done {
            order.push(term);
        } else if seen.insert(term) {
            work.push((term, true));
            work.extend(term.operation().operands().map(|operand| (operand, false)));
        }
    }
    order
}

fn sort_text(sort: Sort) -> String {
    match sort {
        Sort::Truth => "Bool".to_owned(),
        Sort::Bits(width) => format!("(_ BitVec {width})"),
        Sort::Memory => "(Array (_ BitVec 64) (_ BitVec 8))".to_owned(),
    }
}

fn text_of(term: Term, names: &HashMap<Term, String>) -> String {
    let is_truth = term.sort() == Sort::Truth;
    let call = |name: &str, operands: &[Term]| {
        let mut text = format!("({name}");
        for operand in operands {
            let _ = write!(text, " {}", names[operand]);
        }
        text.push(')');
        text
    };
    let either = |bits: &str, truth: &str| {
        if is_truth {
            truth.to_owned()
        } else {
            bits.to_owned()
        }
    };
    match term.operation() {
        Operation::Variable(_) => names[&term].clone(),
        Operation::Number(value) => format!("(_ bv{value} {})", term.width()),
        Operation::Known(value) => value.to_string(),
        Operation::Not(a) => call(&either("bvnot", "not"), &[a]),
        Operation::And(a, b) => call(&either("bvand", "and"), &[a, b]),
        Operation::Or(a, b) => call(&either("bvor", "or"), &[a, b]),
        Operation::Xor(a, b) => call(&either("bvxor", "xor"), &[a, b]),
        Operation::Add(a, b) => call("bvadd", &[a, b]),
        Operation::Multiple(a, b) => call("bvmul", &[a, b]),
        Operation::Product(a, b) => call("product", &[a, b]),
        Operation::Quotient(a, b) => call("bvudiv", &[a, b]),
        Operation::Remainder(a, b) => call("bvurem", &[a, b]),
        Operation::ShiftLeft(a, b) => call("bvshl", &[a, b]),
        Operation::ShiftRight(a, b) => call("bvlshr", &[a, b]),
        Operation::ShiftRightSigned(a, b) => call("bvashr", &[a, b]),
        Operation::Concat(a, b) => call("concat", &[a, b]),
        Operation::Extract(a, from) => {
            let last = from + term.width() - 1;
            call(&format!("(_ extract {last} {from})"), &[a])
        }
        Operation::Choose(c, a, b) => call("ite", &[c, a, b]),
        Operation::Equal(a, b) => call("=", &[a, b]),
        Operation::Below(a, b) => call("bvult", &[a, b]),
        Operation::Less(a, b) => call("bvslt", &[a, b]),
        Operation::Byte(memory, address) => call("select", &[memory, address]),
        Operation::Store(memory, address, byte) => call("store", &[memory, address, byte]),
    }
}
