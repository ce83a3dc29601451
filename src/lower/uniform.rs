//! Operands and results of the uniform datapath.

use super::logic::Logic;
use super::source::{InstOutput, PSrc, Src, output};
use super::state::Lower;
use super::typed::{Operand, USrc, USrc64};
use crate::intrinsics::Lowering;
use crate::intrinsics::resolve::GpuSymbol;
use crate::isa::generated::SReg;
use cranelift_codegen::ir::{Inst, Value};

/// Operands and results of the uniform datapath.
impl Lower<'_> {
    pub(super) fn uniform_amount(&mut self, value: Value) -> USrc {
        USrc::new(self.uniform_src(value).low())
    }

    pub(super) fn uniform_imm(&mut self, value: u32) -> USrc {
        USrc::new(Src::imm(value))
    }

    pub(super) fn uniform_zero64(&mut self) -> USrc64 {
        USrc64::new(Src::wide_imm(0, 2))
    }

    pub(super) fn output_uniform_word(&mut self, x: USrc) -> InstOutput {
        output(self.uniform_words(x.src()))
    }

    pub(super) fn uniform_inputs32(&mut self, logic: Logic) -> (USrc, USrc, USrc, u32) {
        let ([a, b, c], table) = self.uniform_inputs(logic, 1);
        (USrc::new(a), USrc::new(b), USrc::new(c), table.into())
    }

    pub(super) fn uniform_inputs64(&mut self, logic: Logic) -> (USrc64, USrc64, USrc64, u32) {
        let ([a, b, c], table) = self.uniform_inputs(logic, 2);
        (USrc64::new(a), USrc64::new(b), USrc64::new(c), table.into())
    }

    /// The truth, which the uniform datapath gives as well.
    pub(super) fn also(&mut self, truth: PSrc, uniform: PSrc) -> PSrc {
        self.offer_truth(truth, uniform);
        truth
    }

    /// The special register that a `symbol_value` reads, if it is the same for all lanes of a warp.
    pub(super) fn block_register(&mut self, inst: Inst) -> Option<SReg> {
        let symbol = self.input.facts.intrinsics.of_symbol_value(self.func, inst);
        match symbol {
            Some(GpuSymbol::Special(intrinsic)) => match intrinsic.lowering {
                Lowering::Special(
                    register @ (SReg::SrCtaidX | SReg::SrCtaidY | SReg::SrCtaidZ),
                ) => Some(register),
                _ => None,
            },
            _ => None,
        }
    }
}
