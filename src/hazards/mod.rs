//! Checks of finished words, which share no code with what makes them ([`crate::sched`]).
//!
//! [`verify()`] says whether the control bits suffice, [`redundancy`] which of them are too much. [`order`] says
//! whether accesses to memory are in the order that CLIF promises; it compares with the [`program`] as it was lowered.

pub mod order;
#[cfg(test)]
mod order_tests;
pub mod program;
#[cfg(any(test, feature = "unstable"))]
pub mod redundancy;
pub mod verify;

pub use verify::verify;
