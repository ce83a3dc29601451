//! Proofs that compiled code computes what its CLIF says, for all inputs.
//!
//! This is translation validation: not the compiler is proven but what it made of one function. In: a function as it
//! was given to the compiler, and the words that came out. Both are run on terms instead of numbers:
//!
//! 1. [`clif`] follows all paths through the function, by its own reading of CLIF.
//! 2. [`machine`] follows all paths through the words, by the semantics that the simulator has too.
//! 3. [`outcome`] joins the paths of each and asks whether what they come to can differ.
//! 4. [`solver`] asks z3 and cvc5, unless both sides are the same [`term`] anyway.
//!
//! [`proof`] puts these together, and [`prover`] does so for functions of files, with what is [`kept`] of earlier proofs.
//! What cannot be said as terms (what lanes do together, computed places of the frame) leaves a function open, with the
//! reason.

pub mod address;
pub mod clif;
pub mod evaluate;
pub mod kept;
pub mod lemma;
pub mod machine;
pub mod outcome;
pub mod proof;
pub mod prover;
pub mod smt;
pub mod solver;
pub mod sweep;
pub mod tally;
pub mod term;
pub mod words;

pub use clif::Limits;
pub use machine::MachineCode;
pub use proof::{Counterexample, Effect, Verdict, effect_of, prove, prove_same, question};
pub use prover::{Prover, Step, StepError};
pub use solver::{SolverError, Solvers};
pub use tally::Tally;
