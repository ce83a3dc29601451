//! Terms as SMT-LIB text.

use crate::term::{LARGEST_PRODUCT, Operation, Sort, Term, facts, function_of, variable_of};
use hashbrown::{HashMap, HashSet};
use std::fmt::Write;

/// What a solver is to make of products of words, and of quotients by divisors that are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Nothing: they are those of unknown functions. What holds then, holds.
    Unknown,
    /// Products and quotients.
    Exact,
}

/// A question: whether a truth can hold.
pub struct Query {
    /// The text up to `(check-sat)`.
    pub text: String,
    /// The variables that the truth depends on.
    pub variables: Vec<(Term, String, Sort)>,
    /// Whether there are products of words, or quotients by divisors that are not known.
    pub has_products: bool,
    /// Whether there are quotients or remainders by numbers.
    pub has_divisions: bool,
    /// Whether there are functions that nothing is known of.
    pub has_functions: bool,
}

/// The question whether `truth` can hold.
pub fn query(truth: Term, arithmetic: Arithmetic) -> Query {
    let truth = facts().into_iter().fold(truth, Term::and);
    let order = definitions_first(truth);
    let mut text = String::from("(set-logic ALL)\n");
    let mut variables = Vec::new();
    let (mut has_products, mut has_divisions, mut has_functions) = (false, false, false);
    let mut functions: HashSet<String> = HashSet::new();
    let mut names: HashMap<Term, String> = HashMap::new();
    for &term in &order {
        match term.operation() {
            Operation::Variable(number) => {
                let (name, sort) = variable_of(number);
                let _ = writeln!(text, "(declare-const |{name}| {})", sort_text(sort));
                names.insert(term, format!("|{name}|"));
                variables.push((term, name, sort));
            }
            Operation::Quotient(_, by) | Operation::Remainder(_, by)
                if by.as_number().is_some() =>
            {
                has_divisions = true;
            }
            Operation::Apply(..) => has_functions = true,
            Operation::Product(..) | Operation::Quotient(..) | Operation::Remainder(..) => {
                has_products = true;
            }
            Operation::Multiple(..) if term.width() == 32 => has_products = true,
            _ => {}
        }
        let Some((name, meaning)) = function(term) else {
            continue;
        };
        if functions.insert(name.clone()) {
            let _ = match meaning {
                Some(meaning) if arithmetic == Arithmetic::Exact => {
                    writeln!(text, "(define-fun {name} {meaning})")
                }
                _ => {
                    let operands = term.operation().operands();
                    let sorts: Vec<String> = operands.iter().map(|t| sort_text(t.sort())).collect();
                    let sort = match term.operation() {
                        Operation::Multiple(..) => Sort::Bits(64),
                        _ => term.sort(),
                    };
                    let (sorts, sort) = (sorts.join(" "), sort_text(sort));
                    writeln!(text, "(declare-fun {name} ({sorts}) {sort})")
                }
            };
        }
    }
    for &term in &order {
        if matches!(term.operation(), Operation::Variable(_)) {
            continue;
        }
        let body = text_of(term, &names, arithmetic == Arithmetic::Unknown);
        let is_short = matches!(term.operation(), Operation::Number(_) | Operation::Known(_));
        if is_short {
            names.insert(term, body);
        } else {
            let name = format!("t{}", names.len());
            let sort = sort_text(term.sort());
            let _ = writeln!(text, "(define-fun {name} () {sort} {body})");
            if arithmetic == Arithmetic::Unknown
                && matches!(term.operation(), Operation::Product(..))
            {
                // Terms are simplified by this, so it has to be known.
                let _ = writeln!(text, "(assert (bvule {name} (_ bv{LARGEST_PRODUCT} 64)))");
            }
            names.insert(term, name);
        }
    }
    let _ = writeln!(text, "(assert {})", names[&truth]);
    Query {
        text,
        variables,
        has_products,
        has_divisions,
        has_functions,
    }
}

/// The function that a term is one of, where a solver need not know what it is: its name, and what it means if anybody
/// knows.
fn function(term: Term) -> Option<(String, Option<String>)> {
    let width = term.width();
    let divided = |name: &str, by: Term| {
        let bits = format!("(_ BitVec {width})");
        let meaning = format!("((a {bits}) (b {bits})) {bits} ({name} a b)");
        by.as_number()
            .is_none()
            .then(|| (format!("{name}{width}"), Some(meaning)))
    };
    match term.operation() {
        Operation::Product(..) | Operation::Multiple(..) if width >= 32 => {
            let word = "(_ BitVec 32)";
            let wide = |name: &str| format!("((_ zero_extend 32) {name})");
            let product = format!("(bvmul {} {})", wide("a"), wide("b"));
            let meaning = format!("((a {word}) (b {word})) (_ BitVec 64) {product}");
            Some(("product".to_owned(), Some(meaning)))
        }
        Operation::Quotient(_, by) => divided("bvudiv", by),
        Operation::Remainder(_, by) => divided("bvurem", by),
        Operation::Apply(number, _) => {
            let operands = term.operation().operands().into_iter().chain([term]);
            let sorts: Vec<String> = operands.map(|t| sort_text(t.sort())).collect();
            let name = format!("|{} {}|", function_of(number).name, sorts.join(" "));
            Some((name, None))
        }
        _ => None,
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
            let operands = term.operation().operands();
            work.extend(operands.into_iter().map(|operand| (operand, false)));
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

fn text_of(term: Term, names: &HashMap<Term, String>, is_unknown: bool) -> String {
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
        // As a product of words, where these are any function, it is the low half of one.
        Operation::Multiple(a, b) if term.width() == 32 && is_unknown => {
            format!("((_ extract 31 0) {})", call("product", &[a, b]))
        }
        Operation::Multiple(a, b) => call("bvmul", &[a, b]),
        Operation::Quotient(a, b) if b.as_number().is_some() => call("bvudiv", &[a, b]),
        Operation::Remainder(a, b) if b.as_number().is_some() => call("bvurem", &[a, b]),
        operation @ (Operation::Product(..)
        | Operation::Quotient(..)
        | Operation::Remainder(..)
        | Operation::Apply(..)) => {
            let name = function(term).map_or_else(String::new, |(name, _)| name);
            call(&name, &operation.operands())
        }
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
