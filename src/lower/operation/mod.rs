//! From an operation and its sources to one instruction: what every constructor of the rules does.
//!
//! The forms of the operation are tried in the order of the description; the one that leaves the fewest words to be
//! moved to GPRs first wins ([`choice`]). Only then are registers asked for ([`operands`]), so a value that became an
//! immediate, a constant operand or a modifier ([`fold`]) is not computed at all.

mod candidate;
mod choice;
mod fold;
mod operands;

pub use candidate::Candidate;

use super::Lower;
use super::source::{PSrc, Regs, Src};
use crate::isa::table::Swap;
use crate::isa::{Inst, Role, VReg};
use candidate::Needs;

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
    fn swap(&self) -> Swap {
        self.candidates[0].form.info().optype.info().swap
    }
}

/// What a constructor hands over for an operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
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
pub(super) struct Outputs {
    d: Option<Regs>,
    pu: Option<VReg>,
    pv: Option<VReg>,
}

impl Outputs {
    /// The registers.
    ///
    /// # Panics
    /// When the mode has none: a mistake of the generator, which gives each constructor the type of its results.
    pub(super) fn registers(&self) -> Regs {
        self.d.expect("the operation has a register result")
    }

    /// The register of the predicate `pu`.
    ///
    /// # Panics
    /// As [`Outputs::registers`].
    pub(super) fn first_predicate(&self) -> VReg {
        self.pu.expect("the operation has a predicate result")
    }

    /// The register of the predicate `pv`.
    ///
    /// # Panics
    /// As [`Outputs::registers`].
    pub(super) fn second_predicate(&self) -> VReg {
        self.pv
            .expect("the operation has a second predicate result")
    }
}

impl Lower<'_> {
    /// Emits one instruction in a mode and returns its results: what every generated constructor does.
    ///
    /// `word` has the modifiers behind the mnemonic at their bits; `sources` are in the order of [`Mode::sources`].
    ///
    /// # Panics
    /// When no form takes the sources: a mistake of the description, since every operation has a form of registers
    /// only.
    pub(super) fn emit(
        &mut self,
        mode: &'static Mode,
        mut word: u128,
        sources: &mut [Source],
    ) -> Outputs {
        let mut needs = Needs::NOTHING;
        for (index, source) in sources.iter_mut().enumerate() {
            if let Source::Value(src) = source {
                self.look_through_copies(src);
                if mode.complements {
                    *src = fold::as_negated(*src);
                }
                needs.push(index, src);
            }
        }
        let candidate = choice::choose(mode, &mut word, sources, needs);
        let mut inst = Inst::<VReg>::new(candidate.form);
        inst.set_options(mode.mask, word);
        let form = candidate.form.info();
        for (source, &operand) in sources.iter().zip(&candidate.operands) {
            self.set_source(&mut inst, form, operand, source);
        }
        let outputs = self.outputs(&mut inst, form, mode.results);
        self.builder.emit(inst);
        outputs
    }
}
