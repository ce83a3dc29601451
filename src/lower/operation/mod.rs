//! From an operation and its sources to one instruction: what every constructor of the rules does.
//!
//! The forms of the operation are tried in the order of the description; the one that leaves the fewest words to be
//! moved to GPRs first wins ([`choice`]). Only then are registers asked for ([`operands`]), so a value that became an
//! immediate, a constant operand or a modifier ([`fold`]) is not computed at all.

pub mod candidate;
mod choice;
mod copies;
mod fold;
pub mod mode;
mod operands;
pub(in crate::lower) mod pool;

use super::state::Lower;
use crate::isa::{Inst, VReg};
use crate::vcode::Attachment;
use candidate::Needs;
use mode::{Mode, Outputs, Source};

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
                if src.words == 2 {
                    self.offer_pool(mode, index, src);
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
        let pooled = self.place_pooled(&mut inst, candidate, sources);
        let outputs = self.outputs(&mut inst, form, mode.results);
        self.builder.emit(inst);
        if let Some(place) = pooled {
            self.builder.attach_to_last(Attachment::Symbol(place));
        }
        outputs
    }
}
