//! Checks of the control bits in finished words, which share no code with what computes them ([`crate::sched`]).
//!
//! [`verify()`] says whether they suffice, [`redundancy`] which of them are too much.

pub mod redundancy;
pub mod verify;

pub use verify::verify;
