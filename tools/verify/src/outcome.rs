//! What a run of code comes to, as terms of its inputs: the one type that both sides of a proof give.

use crate::smt::definitions_first;
use crate::term::{Sort, Term};

/// Why a side cannot be said as terms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Open(pub String);

impl Open {
    /// With this reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Open(reason.into())
    }
}

/// How a path ends.
#[derive(Clone, Debug)]
pub enum End {
    /// It returns these values.
    Returned {
        /// The results, of the widths of their types.
        results: Vec<Term>,
        /// Memory as it is then.
        memory: Term,
    },
    /// It traps with this code.
    Trapped(u8),
}

/// A path through the code, and where it leads.
#[derive(Clone, Debug)]
pub struct Path {
    /// Holds for the inputs that take it.
    pub condition: Term,
    /// Where it ends.
    pub end: End,
}

/// All paths, joined.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The code of the trap, 0 where it returns.
    pub trap: Term,
    /// Results, where it returns.
    pub results: Vec<Term>,
    /// Memory, where it returns.
    pub memory: Term,
}

impl Outcome {
    /// Of paths that exclude each other and leave no input out. Where a path traps, results and memory are what another
    /// one leaves, or zeros and as it was: nobody compares them then.
    pub fn of(paths: &[Path], widths: &[u32]) -> Self {
        let returns = |path: &&Path| matches!(path.end, End::Returned { .. });
        let (returned, trapped): (Vec<&Path>, Vec<&Path>) = paths.iter().partition(returns);
        let paths = returned.into_iter().chain(trapped);
        let mut outcome = Outcome {
            trap: Term::number(0, 8),
            results: widths.iter().map(|&width| Term::number(0, width)).collect(),
            memory: initial_memory(),
        };
        for (index, path) in paths.enumerate() {
            // Inputs that take no other path take the first.
            let condition = if index == 0 {
                Term::known(true)
            } else {
                path.condition
            };
            match &path.end {
                End::Trapped(code) => {
                    let code = Term::number((*code).into(), 8);
                    outcome.trap = Term::choose(condition, code, outcome.trap);
                }
                End::Returned { results, memory } => {
                    outcome.trap = Term::choose(condition, Term::number(0, 8), outcome.trap);
                    outcome.memory = Term::choose(condition, *memory, outcome.memory);
                    for (joined, &result) in outcome.results.iter_mut().zip(results) {
                        *joined = Term::choose(condition, result, *joined);
                    }
                }
            }
        }
        outcome
    }

    /// The codes that traps may have.
    pub fn trap_codes(&self) -> Vec<u8> {
        let numbers = definitions_first(self.trap).into_iter();
        let codes = numbers.filter(|term| term.sort() == Sort::Bits(8));
        let codes = codes.filter_map(Term::as_number).map(|code| code as u8);
        codes.filter(|&code| code != 0).collect()
    }

    /// Whether it differs from another: where one traps and the other does not or with another code, and where both
    /// return and results or memory are not the same.
    pub fn differs(&self, other: &Outcome) -> Term {
        let traps = self.trap.equals(other.trap).not();
        let returns = self.trap.equals(Term::number(0, 8));
        let results = self.results.iter().zip(&other.results);
        let results = results.map(|(a, b)| a.equals(*b).not());
        let memory = self.memory.equals(other.memory).not();
        let differs = results.fold(memory, Term::or);
        traps.or(returns.and(differs))
    }
}

/// Memory before the code runs.
pub fn initial_memory() -> Term {
    Term::variable("memory", Sort::Memory)
}
