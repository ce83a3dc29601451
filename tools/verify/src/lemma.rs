//! What is known of the code of divisions: terms that are quotients and remainders.
//!
//! Division begins with an approximate reciprocal, of which only a bound on its error is known. No solver finds from that
//! what a quotient of 32 or 64 bits is. So the code of one division of each width is taken as a pattern: its terms, with
//! any dividend and divisor in the place of its parameters, are the quotient and the remainder where the divisor is not
//! zero. `tests/lemmas.rs` proves these patterns, step by step. Code that differs from them in anything is not matched.

use crate::clif::{Limits, parameter};
use crate::machine::{self, Entry, Placed};
use crate::outcome::{End, initial_memory};
use crate::smt::definitions_first;
use crate::solver::{SolverError, Solvers};
use crate::sweep::{merged, trials, values_of};
use crate::term::{Operation, Term, substituted};
use cranelift_codegen::isa::CallConv;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::abi::Placer;
use cranelift_thisgpu::{Compiler, Errors};
use hashbrown::{HashMap, HashSet};
use std::sync::OnceLock;

/// The terms of a division.
#[derive(Clone, Copy, Debug)]
pub struct Division {
    /// Bits of the numbers.
    pub width: u32,
    /// Its dividend.
    pub dividend: Term,
    /// Its divisor.
    pub divisor: Term,
    /// The quotient, where the divisor is not zero.
    pub quotient: Term,
    /// The remainder, where the divisor is not zero.
    pub remainder: Term,
    /// The first approximation: of 16 bits the quotient itself, else 2^width over the divisor.
    pub estimate: Term,
}

/// The words of `udiv` and of `urem`, with how many bits they divide.
type Code = (u32, [Vec<u128>; 2]);

/// The code of divisions of 16, 32 and 64 bits.
fn words() -> Result<&'static [Code], String> {
    static WORDS: OnceLock<Result<Vec<Code>, String>> = OnceLock::new();
    let compiled = |width: u32, opcode: &str| -> Result<Vec<u128>, Errors> {
        let text = format!(
            "function %f(i{width}, i{width}) -> i{width} {{\n\
             block0(v0: i{width}, v1: i{width}):\n v2 = {opcode} v0, v1\n return v2\n}}\n"
        );
        let file = SourceFile::parse("division.clif", &text)?;
        let code = Compiler::new(Options::default()).file(&file)?;
        let found = code.object().function("f");
        Ok(found.map_or_else(Vec::new, |function| function.words.clone()))
    };
    let all = || {
        let of = |width| {
            let both = [compiled(width, "udiv")?, compiled(width, "urem")?];
            Ok((width, both))
        };
        let all: Result<Vec<_>, Errors> = [16, 32, 64].into_iter().map(of).collect();
        all.map_err(|error| error.to_string())
    };
    let words = WORDS.get_or_init(all).as_deref();
    words.map_err(Clone::clone)
}

/// The divisions of 16, 32 and 64 bits, of parameter 0 by parameter 1; none where their code has become something that is
/// not understood.
pub fn divisions() -> Vec<Division> {
    let all = words().unwrap_or_default();
    all.iter()
        .filter_map(|(width, _)| {
            let [a, b] = [0, 1].map(|index| parameter(index, *width));
            division(a, b)
        })
        .collect()
}

/// The division of two numbers. The code is run on them, so that its terms are made in the order in which those of
/// others are.
fn division(dividend: Term, divisor: Term) -> Option<Division> {
    let width = dividend.width();
    let (_, words) = words().ok()?.iter().find(|(bits, _)| *bits == width)?;
    let limits = Limits {
        paths: 8,
        steps: 1000,
    };
    let place = |placer: &mut Placer| Placed {
        place: placer.place(width.div_ceil(32)),
        width,
    };
    let mut placer = Placer::arguments(CallConv::Fast);
    let parameters = [dividend, divisor].map(|value| (place(&mut placer), value));
    let result = [place(&mut Placer::results())];
    let returned = |words: &[u128]| {
        let entry = Entry {
            parameters: &parameters,
            results: &result,
            memory: initial_memory(),
            condition: Term::known(true),
        };
        let paths = machine::paths(words.into(), entry, limits).ok()?;
        paths.into_iter().find_map(|path| match path.end {
            End::Returned { results, .. } => results.first().copied(),
            End::Trapped(_) => None,
        })
    };
    let [quotient, remainder] = [returned(&words[0])?, returned(&words[1])?];
    // The only number that is cut from a float.
    let estimate = definitions_first(quotient)
        .into_iter()
        .rfind(|t| matches!(t.operation(), Operation::Apply(..)))?;
    Some(Division {
        width,
        dividend,
        divisor,
        quotient,
        remainder,
        estimate,
    })
}

/// The terms of a truth that are code of divisions, and what they are: quotients and remainders.
///
/// # Errors
/// When a solver fails: it is asked where code is not the same as a pattern, but may do the same.
pub fn known_divisions(truth: Term, solvers: &Solvers) -> Result<HashMap<Term, Term>, SolverError> {
    let has_floats = |t: &Term| matches!(t.operation(), Operation::Apply(..));
    let parts = definitions_first(truth);
    if !parts.iter().any(has_floats) {
        return Ok(HashMap::new());
    }
    let all: HashSet<Term> = parts.iter().copied().collect();
    let mut others = HashMap::new();
    for division in divisions() {
        match division.width {
            16 => small(&division, &parts, &mut others),
            _ => {
                for group in large(&division, &parts) {
                    // Where a part of a division is there as it is, the others are or are not needed.
                    let is_there = |(pattern, _): &(Term, Term)| all.contains(pattern);
                    let found: Vec<(Term, Term)> = group.iter().copied().filter(is_there).collect();
                    others.extend(if found.is_empty() { group } else { found });
                }
            }
        }
    }
    let mut trials = trials();
    let values: HashSet<Vec<u128>> = (parts.iter())
        .filter(|part| part.width() >= 32)
        .map(|&part| values_of(part, &mut trials))
        .collect();
    let missing: Vec<Term> = (others.keys().copied())
        .filter(|pattern| !all.contains(pattern))
        .filter(|&pattern| values.contains(&values_of(pattern, &mut trials)))
        .collect();
    if !missing.is_empty() {
        let mut roots = missing.clone();
        roots.push(truth);
        let merged = merged(&roots, solvers)?;
        for pattern in missing {
            let same =
                |part: &&Term| part.width() == pattern.width() && merged[*part] == merged[&pattern];
            if let Some(&part) = parts.iter().find(same) {
                let known = others[&pattern];
                others.insert(part, known);
            }
        }
    }
    others.retain(|pattern, _| all.contains(pattern));
    Ok(others)
}

/// Follows first operands down.
fn below(term: Term, path: &[usize]) -> Option<Term> {
    path.iter()
        .try_fold(term, |term, &index| match term.operation() {
            operation @ Operation::Apply(..) => operation.operands().get(index).copied(),
            _ => None,
        })
}

/// In an estimate of 16 bits, F2I(FMUL(FADD(I2F(dividend), 1/2), RCP(I2F(divisor)))): the dividend and the reciprocal,
/// for each order in which the operands of the product and of the sum may stand.
fn made_of(estimate: Term) -> Vec<(Term, Term)> {
    let orders = [[0, 0], [0, 1], [1, 0], [1, 1]].into_iter();
    let of_order = orders.filter_map(|[product, sum]| {
        let dividend = below(estimate, &[0, product, sum, 0])?;
        Some((dividend, below(estimate, &[0, 1 - product])?))
    });
    of_order.collect()
}

/// In a reciprocal, where the divisor is.
const OF_RECIPROCAL: [usize; 2] = [0, 0];

/// Quotients of numbers below 2^16, which are the estimate itself.
fn small(division: &Division, parts: &[Term], others: &mut HashMap<Term, Term>) {
    let estimate = division.estimate;
    let patterns = made_of(estimate);
    for &part in parts.iter().filter(|t| t.sort() == estimate.sort()) {
        for (a, r) in made_of(part) {
            for &(dividend, reciprocal) in &patterns {
                let places = |r: Term| {
                    let dividend = (dividend, a);
                    // A constant divisor has its reciprocal computed at compile time.
                    Some(match r.as_number() {
                        Some(bits) => {
                            let b = reciprocal_of(bits as u32)?;
                            let places = HashMap::from([dividend, (reciprocal, r)]);
                            (Term::number(b.into(), 64), places)
                        }
                        None => {
                            let b = below(r, &OF_RECIPROCAL)?;
                            let divisor = below(reciprocal, &OF_RECIPROCAL)?;
                            (b, HashMap::from([dividend, (divisor, b)]))
                        }
                    })
                };
                let Some((b, places)) = places(r) else {
                    continue;
                };
                if substituted(estimate, &places) == part {
                    let is_small = |t: Term| t.part(16, 48).equals(Term::number(0, 48));
                    let is_known = is_small(a).and(is_small(b)).and(is_not_zero(b));
                    let quotient = a.part(0, 32).quotient(b.part(0, 32));
                    others.insert(part, Term::choose(is_known, quotient, part));
                }
            }
        }
    }
}

/// The number whose reciprocal, to nearest, has these bits in f32.
fn reciprocal_of(bits: u32) -> Option<u32> {
    let n = (1.0 / f64::from(f32::from_bits(bits))).round();
    let is_it = (1.0..65536.0).contains(&n) && ((1.0 / n) as f32).to_bits() == bits;
    is_it.then_some(n as u32)
}

fn is_not_zero(t: Term) -> Term {
    t.equals(Term::number(0, t.width())).not()
}

/// Quotients and remainders of 32 and 64 bits: of each dividend and divisor a list of patterns and what they are.
fn large(division: &Division, parts: &[Term]) -> Vec<Vec<(Term, Term)>> {
    let mut groups = Vec::new();
    let Division {
        width, dividend, ..
    } = *division;
    let to_divisor = [0, 0, 0, 0];
    for &part in parts {
        if part.sort() != division.estimate.sort() {
            continue;
        }
        let by = below(part, &to_divisor).map(|by| by.part(0, width));
        let by = by.and_then(|b| self::division(dividend, b));
        let Some(by) = by.filter(|by| by.estimate == part) else {
            continue;
        };
        // What the low word of the better approximation is multiplied with are words of dividends.
        let Some(approximation) = factor(by.quotient, dividend.part(0, 32)) else {
            continue;
        };
        let words = factors(parts, approximation);
        let highs = if width == 64 { words.len() } else { 1 };
        for &low in &words {
            for &high in &words[..highs] {
                let a = if width == 64 { high.above(low) } else { low };
                groups.extend(self::division(a, by.divisor).map(|found| patterns(&found)));
            }
        }
    }
    groups
}

/// The terms that a division is known by, and what they are.
fn patterns(division: &Division) -> Vec<(Term, Term)> {
    let Division {
        width,
        dividend: a,
        divisor: b,
        ..
    } = *division;
    let mut patterns = Vec::new();
    for (term, meaning) in [
        (division.quotient, a.quotient(b)),
        (division.remainder, a.remainder(b)),
    ] {
        let words = (0..width / 32).map(|i| (32 * i, 32));
        for (from, bits) in words.chain([(0, width)]) {
            let found = term.part(from, bits);
            let known = Term::choose(is_not_zero(b), meaning.part(from, bits), found);
            if found.as_number().is_none() {
                patterns.push((found, known));
            }
        }
    }
    patterns
}

/// What a word is multiplied with first in a term.
fn factor(term: Term, word: Term) -> Option<Term> {
    definitions_first(term)
        .into_iter()
        .find_map(|t| match t.operation() {
            Operation::Product(a, b) if a == word => Some(b),
            Operation::Product(a, b) if b == word => Some(a),
            _ => None,
        })
}

/// All that a word is multiplied with, and zero, with which nothing is.
fn factors(parts: &[Term], word: Term) -> Vec<Term> {
    let mut found = vec![Term::number(0, 32)];
    let mut seen = HashSet::new();
    for part in parts {
        let other = match part.operation() {
            Operation::Product(a, b) if a == word => b,
            Operation::Product(a, b) if b == word => a,
            _ => continue,
        };
        if seen.insert(other) {
            found.push(other);
        }
    }
    found
}
