//! Sums and products that two sides compute in different ways, found inside of a question and made one.
//!
//! A solver that is asked whether two long computations differ has to find where they meet. This finds it by trying: all
//! terms of a question are computed for a few random inputs, and where two have the same values a solver is asked whether
//! they are the same always. If so one takes the place of the other, in terms above as well, so that each question is
//! about one step. (Kuehlmann and Krohm, *Equivalence Checking Using Cuts and Heaps*, 1997, call it SAT sweeping.)

use crate::evaluate::Values;
use crate::smt::definitions_first;
use crate::solver::{Answer, SolverError, Solvers};
use crate::term::{Sort, Term, rebuilt};
use cranelift_thisgpu::unstable::isa::random::Random;
use hashbrown::{HashMap, HashSet};
use std::time::Duration;

/// How many inputs are tried.
const TRIALS: usize = 6;
/// Terms of fewer bits are left alone: too many have the same values.
const LEAST_WIDTH: u32 = 16;
/// How many pairs are asked for at most.
const MOST_QUESTIONS: usize = 48;
/// After how many that are not found to be the same no more is asked, at least: each takes all of a short time. More are
/// allowed where solvers have much time.
const MOST_FAILURES: usize = 6;

/// How long each solver may take before a question is made easier.
const SHORT: Duration = Duration::from_secs(1);

/// Whether a truth can hold. A question that is not answered in a short time is swept, and then asked for as long as is
/// allowed.
///
/// # Errors
/// When a solver fails.
pub fn can_hold(truth: Term, solvers: &Solvers) -> Result<Answer, SolverError> {
    let answer = solvers.can_hold_within(truth, solvers.time.min(SHORT))?;
    if answer != Answer::Unknown {
        return Ok(answer);
    }
    solvers.can_hold_within(swept(truth, solvers)?, solvers.time)
}

/// Whether it is found in a short time that a truth cannot hold.
fn is_never(truth: Term, solvers: &Solvers) -> Result<bool, SolverError> {
    let answer = solvers.can_hold_within(truth, solvers.time.min(SHORT))?;
    Ok(answer == Answer::Never)
}

/// A truth in which terms that are the same have become one.
fn swept(truth: Term, solvers: &Solvers) -> Result<Term, SolverError> {
    Ok(merged(&[truth], solvers)?[&truth])
}

/// For the terms below some roots: what each has become.
///
/// # Errors
/// When a solver fails.
pub fn merged(roots: &[Term], solvers: &Solvers) -> Result<HashMap<Term, Term>, SolverError> {
    let mut trials = trials();
    let mut seen: HashMap<Vec<u128>, Vec<Term>> = HashMap::new();
    let mut done: HashMap<Term, Term> = HashMap::new();
    let (mut questions, mut failures) = (0, 0);
    let most_failures = MOST_FAILURES.max(2 * solvers.time.as_secs() as usize);
    for term in roots.iter().flat_map(|&root| definitions_first(root)) {
        if done.contains_key(&term) {
            continue;
        }
        let mut new = rebuilt(term, &done);
        let is_candidate = match new.sort() {
            Sort::Bits(width) => width >= LEAST_WIDTH && new.as_number().is_none(),
            Sort::Truth | Sort::Memory => false,
        };
        if is_candidate {
            let mut values = values_of(new, &mut trials);
            // What is nearly always zero is the same as much that is so too.
            let tells = values.iter().collect::<HashSet<_>>().len() > TRIALS / 2;
            values.push(new.width().into());
            let others = seen.entry(values).or_default();
            if tells && !others.contains(&new) {
                for &other in others.iter().take(2) {
                    if questions == MOST_QUESTIONS || failures == most_failures {
                        break;
                    }
                    questions += 1;
                    if is_never(other.equals(new).not(), solvers)? {
                        new = other;
                        break;
                    }
                    failures += 1;
                }
                if !others.contains(&new) && new.as_number().is_none() {
                    others.push(new);
                }
            }
        }
        done.insert(term, new);
    }
    Ok(done)
}

/// The inputs that are tried.
pub fn trials() -> Vec<Values> {
    let mut random = Random::new(26);
    (0..TRIALS).map(|_| Values::random(random.bits())).collect()
}

/// What a term is for each of them.
pub fn values_of(term: Term, trials: &mut [Values]) -> Vec<u128> {
    trials.iter_mut().map(|values| values.of(term)).collect()
}
