//! Results of rules: registers with and without a predicate, their parts, and those of the CLIF instruction.

use super::source::{InstOutput, Output, PSrc, Regs, Src};
use super::state::Lower;
use super::typed::{
    Gpr, Gpr2, Gpr2Carry, Gpr4, Gpr4Carry, GprCarry, GprPred, Operand, Pred, PredPair, Word,
    Word64, Word128,
};
use smallvec::smallvec;

/// Results.
impl Lower<'_> {
    pub(super) fn sum_of(&mut self, x: GprCarry) -> Gpr {
        x.regs
    }

    pub(super) fn carry_of(&mut self, x: GprCarry) -> PSrc {
        x.predicate.source()
    }

    pub(super) fn sum2_of(&mut self, x: Gpr2Carry) -> Gpr2 {
        x.regs
    }

    pub(super) fn carry2_of(&mut self, x: Gpr2Carry) -> PSrc {
        x.predicate.source()
    }

    pub(super) fn sum4_of(&mut self, x: Gpr4Carry) -> Gpr4 {
        x.regs
    }

    pub(super) fn carry4_of(&mut self, x: Gpr4Carry) -> PSrc {
        x.predicate.source()
    }

    pub(super) fn pair_sums(&mut self, low: GprCarry, high: GprCarry) -> Gpr2Carry {
        Gpr2Carry {
            regs: self.pair(low.regs, high.regs),
            predicate: high.predicate,
        }
    }

    pub(super) fn quad_sums(&mut self, low: Gpr2Carry, high: Gpr2Carry) -> Gpr4Carry {
        Gpr4Carry {
            regs: self.quad(low.regs, high.regs),
            predicate: high.predicate,
        }
    }

    pub(super) fn register_of(&mut self, x: GprPred) -> Gpr {
        x.regs
    }

    pub(super) fn predicate_of(&mut self, x: GprPred) -> PSrc {
        x.predicate.source()
    }

    pub(super) fn first_of(&mut self, x: PredPair) -> PSrc {
        x.first.source()
    }

    pub(super) fn pred_src(&mut self, x: Pred) -> PSrc {
        x.source()
    }

    pub(super) fn low_reg(&mut self, x: Gpr2) -> Gpr {
        x.low()
    }

    pub(super) fn high_reg(&mut self, x: Gpr2) -> Gpr {
        x.high()
    }

    pub(super) fn low_regs(&mut self, x: Gpr4) -> Gpr2 {
        x.regs().slice(0, 2).into()
    }

    pub(super) fn high_regs(&mut self, x: Gpr4) -> Gpr2 {
        x.regs().slice(2, 2).into()
    }

    pub(super) fn pair(&mut self, low: Gpr, high: Gpr) -> Gpr2 {
        low.regs().concat(high.regs()).into()
    }

    pub(super) fn quad(&mut self, low: Gpr2, high: Gpr2) -> Gpr4 {
        low.regs().concat(high.regs()).into()
    }

    pub(super) fn gpr_word(&mut self, x: Gpr) -> Word {
        x.source()
    }

    pub(super) fn gpr2_word(&mut self, x: Gpr2) -> Word64 {
        x.source()
    }

    pub(super) fn gpr4_word(&mut self, x: Gpr4) -> Word128 {
        x.source()
    }

    pub(super) fn gpr_of(&mut self, x: Word) -> Gpr {
        self.gpr(x.src()).into()
    }

    pub(super) fn gpr2_of(&mut self, x: Word64) -> Gpr2 {
        self.gpr(x.src()).into()
    }

    pub(super) fn gpr4_of(&mut self, x: Word128) -> Gpr4 {
        self.gpr(x.src()).into()
    }

    pub(super) fn gpr_regs(&mut self, x: Gpr) -> Regs {
        x.regs()
    }

    pub(super) fn gpr2_regs(&mut self, x: Gpr2) -> Regs {
        x.regs()
    }

    pub(super) fn gpr4_regs(&mut self, x: Gpr4) -> Regs {
        x.regs()
    }

    pub(super) fn one_register(&mut self, regs: Regs) -> Gpr {
        regs.into()
    }

    pub(super) fn two_registers(&mut self, regs: Regs) -> Gpr2 {
        regs.into()
    }

    pub(super) fn four_registers(&mut self, regs: Regs) -> Gpr4 {
        regs.into()
    }

    pub(super) fn regs_any(&mut self, x: Regs) -> Src {
        Src::regs(x)
    }

    pub(super) fn output(&mut self, regs: Regs) -> InstOutput {
        smallvec![Output::Regs(regs)]
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
