//! Results of rules: operands in registers, and the results of the CLIF instruction.

use super::source::{InstOutput, Output, PSrc};
use super::state::Lower;
use super::typed::{Gpr, Gpr2, Gpr4, Operand, Word, Word64, Word128};

/// Results.
impl Lower<'_> {
    pub(super) fn gpr_of(&mut self, x: Word) -> Gpr {
        self.gpr(x.src()).into()
    }

    pub(super) fn gpr2_of(&mut self, x: Word64) -> Gpr2 {
        self.gpr(x.src()).into()
    }

    pub(super) fn gpr4_of(&mut self, x: Word128) -> Gpr4 {
        self.gpr(x.src()).into()
    }

    pub(super) fn output_none(&mut self) -> InstOutput {
        InstOutput::new()
    }

    pub(super) fn output_both(&mut self, mut first: InstOutput, second: InstOutput) -> InstOutput {
        first.extend(second);
        first
    }

    pub(super) fn output_and_truth(&mut self, mut result: InstOutput, truth: PSrc) -> InstOutput {
        result.push(Output::Predicate(truth));
        result
    }
}
