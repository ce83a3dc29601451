//! What rules rely on about how other rules leave their results: which values live in predicates, and above which
//! narrow values there are zeros. Lowering goes backwards, so users ask before the definition is lowered; this is the
//! one place that says it.
//!
//! Nothing here is taken on trust. That the rules give a predicate for a truth and for nothing else is asserted of every
//! instruction that is lowered ([`Lower::leaves_as_said`]); what registers hold above narrow results, a test looks at
//! for every operation (`filetests/tests/coverage`).

use super::source::{Output, PSrc};
use super::state::Lower;
use crate::intrinsics::Lowering;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value, types};

impl Lower<'_> {
    /// Whether the only result of an instruction is a truth, so that `lower_truth` lowers it.
    pub(super) fn defines_truth(&self, inst: Inst) -> bool {
        match self.func.dfg.inst_results(inst) {
            [result] => self.is_truth(*result),
            _ => false,
        }
    }

    /// Whether a value is an i8 that is 0 or 1 and whose definition gives a predicate.
    pub(super) fn is_truth(&self, value: Value) -> bool {
        if self.type_of(value) != types::I8 {
            return false;
        }
        let Some(inst) = self.def_of(value) else {
            return false;
        };
        let data = self.func.dfg.insts[inst];
        match data {
            _ if self.gives_truth(data.opcode(), inst, value) => true,
            InstructionData::IntCompare { .. } | InstructionData::FloatCompare { .. } => true,
            InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                args: [a, b],
            } => self.is_truth(a) && (self.is_truth(b) || self.constant_of(b) == Some(1)),
            InstructionData::Call { .. } => (self.input.facts.intrinsics)
                .of_call(self.func, inst)
                .is_some_and(|i| matches!(i.lowering, Lowering::Vote(_))),
            _ => false,
        }
    }

    /// Whether a result of an operation other than a comparison is made as a predicate: `vany_true`, and the overflow of
    /// arithmetic, which is a second result of i8 whatever type the first has.
    fn gives_truth(&self, opcode: Opcode, inst: Inst, result: Value) -> bool {
        let constraints = opcode.constraints();
        let overflows = || {
            constraints.num_fixed_results() == 2
                && constraints.result_type(1, types::I64) == types::I8
        };
        opcode == Opcode::VanyTrue
            || overflows() && self.func.dfg.inst_results(inst).get(1) == Some(&result)
    }

    /// Whether rules left a result as is said here: a truth as a predicate, negated where that holds the opposite, anything
    /// else in registers.
    pub(super) fn leaves_as_said(&self, value: Value, output: Output) -> bool {
        let overflow = || {
            let inst = self.def_of(value);
            inst.is_some_and(|inst| self.func.dfg.inst_results(inst).len() == 2)
        };
        match output {
            Output::Predicate(PSrc {
                reg: Some(_),
                negated,
            }) if overflow() => negated == self.holds_opposite(value),
            Output::Predicate(_) => self.is_truth(value),
            Output::Regs(_) => !self.is_truth(value),
        }
    }

    /// Whether the predicate of a truth holds the opposite: the carry of `a + ~b + 1` is set where `a - b` does not
    /// borrow.
    pub(super) fn holds_opposite(&self, truth: Value) -> bool {
        let Some(inst) = self.def_of(truth) else {
            return false;
        };
        match self.func.dfg.insts[inst].opcode() {
            Opcode::UsubOverflow | Opcode::UsubOverflowBin => {
                let args = self.func.dfg.inst_args(inst);
                self.type_of(args[0]).bits() >= 32
                    && self.func.dfg.inst_results(inst).get(1) == Some(&truth)
            }
            _ => false,
        }
    }

    /// Whether a value read as a word or as words needs no bits above its type cleared.
    pub(super) fn has_zeros_above(&self, value: Value) -> bool {
        self.type_of(value).bits() >= 32
            || self.constant_of(value).is_some()
            || self.is_truth(value)
            || self.is_zero_extended(value)
    }

    /// Whether the bits above the type are copies of its sign in the register: of a load that nobody reads otherwise.
    pub(super) fn has_signs_above(&self, value: Value) -> bool {
        let loads = |data| {
            matches!(
                data,
                InstructionData::Load {
                    opcode: Opcode::Load,
                    ..
                }
            )
        };
        let extends = |&user: &Inst| self.func.dfg.insts[user].opcode() == Opcode::Sextend;
        matches!(self.type_of(value), types::I8 | types::I16)
            && self.def_data(value).is_some_and(loads)
            && self.input.facts.users.of(value).iter().all(extends)
    }

    /// Whether the bits above the type are known to be zero in the register.
    fn is_zero_extended(&self, value: Value) -> bool {
        match self.def_data(value) {
            Some(InstructionData::Load { opcode, .. }) => match opcode {
                Opcode::Load => !self.has_signs_above(value),
                _ => opcode == Opcode::Uload8 || opcode == Opcode::Uload16,
            },
            Some(InstructionData::Unary {
                opcode: Opcode::Popcnt | Opcode::Clz | Opcode::Ctz | Opcode::Bswap,
                ..
            }) => true,
            // These read zero-extended operands and make nothing above the type.
            Some(InstructionData::Binary {
                opcode:
                    Opcode::Ushr
                    | Opcode::Umulhi
                    | Opcode::Umin
                    | Opcode::Umax
                    | Opcode::Udiv
                    | Opcode::Urem,
                ..
            }) => !self.type_of(value).is_vector(),
            Some(InstructionData::Binary {
                opcode: Opcode::Band,
                args,
            }) => args.iter().any(|&arg| self.constant_of(arg).is_some()),
            // PRMT puts zeros above a lane that it moves down.
            Some(InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            }) => !(u32::from(imm) * self.type_of(arg).lane_bits()).is_multiple_of(32),
            _ => false,
        }
    }
}
