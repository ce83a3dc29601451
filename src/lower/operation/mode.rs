//! How a constructor writes its operation, what it hands over and what it gets.

use super::candidate::Candidate;
use crate::isa::table::Swap;
use crate::isa::{Role, VReg};
use crate::lower::source::{PSrc, Regs, Src};

/// How a constructor writes its operation: which forms can be written so and what is fixed. Generated from the
/// description.
#[derive(Debug)]
pub struct Mode {
    /// The forms of the operation that have the mode, in the order of the description.
    pub candidates: &'static [Candidate],
    /// The roles of its sources.
    pub sources: &'static [Role],
    /// Bits of the modifiers behind the mnemonic.
    pub mask: u128,
    /// The roles of its results.
    pub results: &'static [Role],
    /// `-` of its operands means `~`.
    pub complements: bool,
}

impl Mode {
    /// Whether SrcA and SrcB may change places.
    pub(super) fn swap(&self) -> Swap {
        self.candidates[0].form.info().optype.info().swap
    }
}

/// What a constructor hands over for an operand.
#[derive(Clone, Copy, Debug)]
pub(in crate::lower) enum Source {
    /// A register, immediate or constant operand.
    Value(Src),
    /// A predicate.
    Predicate(PSrc),
    /// A number in the word.
    Number(i64),
}

impl From<Src> for Source {
    fn from(src: Src) -> Source {
        Source::Value(src)
    }
}

impl From<PSrc> for Source {
    fn from(predicate: PSrc) -> Source {
        Source::Predicate(predicate)
    }
}

/// The results of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::lower) struct Outputs {
    pub(super) d: Option<Regs>,
    pub(super) pu: Option<VReg>,
    pub(super) pv: Option<VReg>,
}

impl Outputs {
    /// The registers.
    ///
    /// # Panics
    /// When the mode has none: a mistake of the generator, which gives each constructor the type of its results.
    pub(in crate::lower) fn registers(&self) -> Regs {
        self.d.expect("the operation has a register result")
    }

    /// The register of the predicate `pu`.
    ///
    /// # Panics
    /// As [`Outputs::registers`].
    pub(in crate::lower) fn first_predicate(&self) -> VReg {
        self.pu.expect("the operation has a predicate result")
    }

    /// The register of the predicate `pv`.
    ///
    /// # Panics
    /// As [`Outputs::registers`].
    pub(in crate::lower) fn second_predicate(&self) -> VReg {
        self.pv
            .expect("the operation has a second predicate result")
    }
}
