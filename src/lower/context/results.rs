//! Results of rules: registers with and without a predicate, their parts, and those of the CLIF instruction.

/// Results.
macro_rules! result_methods {
    () => {
        fn sum_of(&mut self, x: GprCarry) -> Gpr {
            x.regs
        }
        fn carry_of(&mut self, x: GprCarry) -> PSrc {
            x.predicate.source()
        }
        fn sum2_of(&mut self, x: Gpr2Carry) -> Gpr2 {
            x.regs
        }
        fn carry2_of(&mut self, x: Gpr2Carry) -> PSrc {
            x.predicate.source()
        }
        fn sum4_of(&mut self, x: Gpr4Carry) -> Gpr4 {
            x.regs
        }
        fn carry4_of(&mut self, x: Gpr4Carry) -> PSrc {
            x.predicate.source()
        }
        fn pair_sums(&mut self, low: GprCarry, high: GprCarry) -> Gpr2Carry {
            Gpr2Carry {
                regs: self.pair(low.regs, high.regs),
                predicate: high.predicate,
            }
        }
        fn quad_sums(&mut self, low: Gpr2Carry, high: Gpr2Carry) -> Gpr4Carry {
            Gpr4Carry {
                regs: self.quad(low.regs, high.regs),
                predicate: high.predicate,
            }
        }
        fn register_of(&mut self, x: GprPred) -> Gpr {
            x.regs
        }
        fn predicate_of(&mut self, x: GprPred) -> PSrc {
            x.predicate.source()
        }
        fn first_of(&mut self, x: PredPair) -> PSrc {
            x.first.source()
        }
        fn pred_src(&mut self, x: Pred) -> PSrc {
            x.source()
        }
        fn low_reg(&mut self, x: Gpr2) -> Gpr {
            x.low()
        }
        fn high_reg(&mut self, x: Gpr2) -> Gpr {
            x.high()
        }
        fn low_regs(&mut self, x: Gpr4) -> Gpr2 {
            x.regs().slice(0, 2).into()
        }
        fn high_regs(&mut self, x: Gpr4) -> Gpr2 {
            x.regs().slice(2, 2).into()
        }
        fn pair(&mut self, low: Gpr, high: Gpr) -> Gpr2 {
            low.regs().concat(high.regs()).into()
        }
        fn quad(&mut self, low: Gpr2, high: Gpr2) -> Gpr4 {
            low.regs().concat(high.regs()).into()
        }
        fn gpr_word(&mut self, x: Gpr) -> Word {
            x.source()
        }
        fn gpr2_word(&mut self, x: Gpr2) -> Word64 {
            x.source()
        }
        fn gpr4_word(&mut self, x: Gpr4) -> Word128 {
            x.source()
        }
        fn to_gpr(&mut self, x: Word) -> Gpr {
            self.gpr(x.src()).into()
        }
        fn to_gpr2(&mut self, x: Word64) -> Gpr2 {
            self.gpr(x.src()).into()
        }
        fn to_gpr4(&mut self, x: Word128) -> Gpr4 {
            self.gpr(x.src()).into()
        }
        fn gpr_regs(&mut self, x: Gpr) -> Regs {
            x.regs()
        }
        fn gpr2_regs(&mut self, x: Gpr2) -> Regs {
            x.regs()
        }
        fn gpr4_regs(&mut self, x: Gpr4) -> Regs {
            x.regs()
        }
        fn one_register(&mut self, regs: Regs) -> Gpr {
            regs.into()
        }
        fn two_registers(&mut self, regs: Regs) -> Gpr2 {
            regs.into()
        }
        fn four_registers(&mut self, regs: Regs) -> Gpr4 {
            regs.into()
        }
        fn regs_any(&mut self, x: Regs) -> Src {
            Src::regs(x)
        }
        fn output(&mut self, regs: Regs) -> InstOutput {
            smallvec![Output::Regs(regs)]
        }
        fn output_none(&mut self) -> InstOutput {
            InstOutput::new()
        }
        fn output_both(&mut self, mut first: InstOutput, second: InstOutput) -> InstOutput {
            first.extend(second);
            first
        }
        fn output_and_truth(&mut self, mut result: InstOutput, truth: PSrc) -> InstOutput {
            result.push(Output::Predicate(truth));
            result
        }
    };
}
pub(super) use result_methods;
