//! What the pure instructions compute: one function per optype, from modifiers and source values to results.
//!
//! A function knows nothing of registers, lanes, guards or memory. The device reads the sources, applies the `!` of predicates,
//! calls the function of the optype once per active lane, and writes the results. Instructions whose result depends on more than
//! their own sources (R2UR, GETGPR, SETGPR, memory, control) are the device's and have no function here.
//!
//! The functions are the project's reference for the documents: where those contradict themselves the function's comment names the
//! reading taken. Arithmetic is exact: every floating-point operation rounds once. Files follow the families of the documents.

pub mod compare;
pub mod convert;
pub mod float;
pub mod float_convert;
pub mod half;
pub mod integer;
pub mod logic;
pub mod round_to_odd;
pub mod shift;
pub mod softfloat;
pub mod special;
pub mod standin;
#[cfg(test)]
mod tests;

pub use standin as operands;

/// Readings of the documents that a user can choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// What BREV does.
    pub brev: BrevReading,
}

/// What BREV does (document 003: the text says complement, the mnemonic says bit reversal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrevReading {
    /// `~b`, as documented.
    #[default]
    Complement,
    /// The bits of `b` in reverse order.
    Reverse,
}
