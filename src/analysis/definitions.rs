//! What instructions compute values, as selection and the pass before it that fuses instructions see them: constants,
//! truths that live in predicates, and above which narrow values a register holds zeros.
//!
//! Users ask before the definition is lowered, since lowering goes backwards. So this is the one place that says how
//! the rules leave their results. Nothing here is taken on trust: that the rules give a predicate for a truth and for
//! nothing else is asserted of every instruction that is lowered, and what registers hold above narrow results a test
//! looks at for every operation (`filetests/tests/coverage`).

use super::control_flow::ControlFlow;
use super::truths::Truths;
use super::uses::Users;
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics, symbol_offset};
use crate::isa::truth_table::known;
use cranelift_codegen::ir::{
    Block, Endianness, Function, Inst, InstructionData, Opcode, Type, Value, types,
};

/// Words that a value of a bit width takes.
pub fn words_of_bits(bits: u32) -> usize {
    (bits as usize).div_ceil(32).max(1)
}

/// A function without aliases, and what computes and reads its values.
#[derive(Clone, Copy)]
pub struct Definitions<'a> {
    /// The function.
    pub func: &'a Function,
    /// Who reads each value.
    pub users: &'a Users,
    /// Which calls are intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// Its control flow.
    pub flow: &'a ControlFlow,
    /// Which of its values are truths.
    pub truths: &'a Truths,
}

impl Definitions<'_> {
    /// The type of a value.
    pub(crate) fn type_of(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    /// 32-bit words of a value.
    pub(crate) fn words_of(&self, value: Value) -> usize {
        words_of_bits(self.type_of(value).bits())
    }

    /// The instruction that defines a value.
    pub(crate) fn def_of(&self, value: Value) -> Option<Inst> {
        self.users.definition(value)
    }

    /// The data of the instruction that defines a value.
    pub(crate) fn def_data(&self, value: Value) -> Option<InstructionData> {
        self.def_of(value).map(|inst| self.func.dfg.insts[inst])
    }

    /// Whether exactly one operand is the value, so that folding its definition there, in block `here`, leaves nothing
    /// behind, and adds nothing to a loop.
    pub(crate) fn is_used_once_in(&self, value: Value, here: Option<Block>) -> bool {
        self.users.of(value).len() == 1 && !self.is_from_outside_the_loop_of(value, here)
    }

    /// Whether the value is computed in fewer turns than a block, which would compute it in each of its own.
    fn is_from_outside_the_loop_of(&self, value: Value, here: Option<Block>) -> bool {
        let definition = self.func.dfg.value_def(value).inst();
        let home = definition.and_then(|inst| self.func.layout.inst_block(inst));
        match (home, here) {
            (Some(home), Some(here)) if home != here => {
                self.flow.loop_depth(home) < self.flow.loop_depth(here)
            }
            _ => false,
        }
    }

    /// The bits of a constant value.
    pub(crate) fn constant_of(&self, value: Value) -> Option<u128> {
        let data = self.def_data(value)?;
        self.constant_by(self.type_of(value), data)
    }

    /// The bits of a result of type `ty`, if its instruction makes a constant.
    pub(crate) fn constant_by(&self, ty: Type, data: InstructionData) -> Option<u128> {
        match data {
            InstructionData::UnaryImm {
                opcode: Opcode::Iconst,
                imm,
            } => {
                let bits = ty.bits();
                Some(imm.bits() as u64 as u128 & (u128::MAX >> (128 - bits)))
            }
            InstructionData::UnaryIeee16 { imm, .. } => Some(u128::from(imm.bits())),
            InstructionData::UnaryIeee32 { imm, .. } => Some(u128::from(imm.bits())),
            InstructionData::UnaryIeee64 { imm, .. } => Some(u128::from(imm.bits())),
            InstructionData::UnaryConst {
                opcode: Opcode::Vconst,
                constant_handle,
            } => {
                let data = self.func.dfg.constants.get(constant_handle);
                let bytes = data.as_slice();
                (bytes.len() <= 16)
                    .then(|| bytes.iter().rev().fold(0, |v, &b| v << 8 | u128::from(b)))
            }
            InstructionData::Unary {
                opcode: Opcode::Splat,
                arg,
            } => {
                let lane = self.constant_of(arg)?;
                let (bits, lanes) = (ty.lane_bits(), ty.lane_count());
                (ty.bits() <= 128).then(|| (0..lanes).fold(0, |v, i| v | lane << (i * bits)))
            }
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } => self.constant_of(arg),
            // Static shared memory starts at offset 0 of the window.
            InstructionData::UnaryGlobalValue { global_value, .. } => {
                match self.intrinsics.symbol(global_value)? {
                    GpuSymbol::Shared => {
                        let offset = symbol_offset(self.func, global_value) as u64;
                        let address = crate::abi::SHARED_WINDOW.wrapping_add(offset);
                        Some(u128::from(address))
                    }
                    GpuSymbol::Special(_) => None,
                }
            }
            InstructionData::Binary {
                opcode: Opcode::Iconcat,
                args: [low, high],
            } => Some(self.constant_of(low)? | self.constant_of(high)? << self.type_of(low).bits()),
            // The order of lanes is that of the bits.
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                flags,
                arg,
            } if ty.bits() <= 128
                && self.func.dfg.mem_flags[flags].explicit_endianness()
                    != Some(Endianness::Big) =>
            {
                self.constant_of(arg)
            }
            _ => None,
        }
    }

    /// The number that a constant of f32 or f64 is.
    pub(crate) fn float_constant(&self, value: Value) -> Option<f64> {
        let bits = self.constant_of(value)?;
        match self.type_of(value) {
            types::F32 => Some(f32::from_bits(bits as u32).into()),
            types::F64 => Some(f64::from_bits(bits as u64)),
            _ => None,
        }
    }

    /// The value of a scalar integer constant, sign-extended from its type.
    pub(crate) fn signed_constant_of(&self, value: Value) -> Option<i128> {
        let bits = self.type_of(value).bits();
        self.constant_of(value)
            .map(|v| (v as i128) << (128 - bits) >> (128 - bits))
    }

    /// The value that `value` is, whatever is promised of it on the way.
    pub(crate) fn without_promises(&self, value: Value) -> Value {
        let mut value = value;
        while let Some(inst) = self.def_of(value)
            && let Some((promised, _)) = self.intrinsics.alignment(self.func, inst)
        {
            value = promised;
        }
        value
    }

    /// Whether the only result of an instruction is a truth, so that `lower_truth` lowers it.
    pub(crate) fn defines_truth(&self, inst: Inst) -> bool {
        match self.func.dfg.inst_results(inst) {
            [result] => self.is_truth(*result),
            _ => false,
        }
    }

    /// Whether a value is an i8 that is 0 or 1 and whose definition gives a predicate: an instruction, or a block whose
    /// parameter it is.
    pub(crate) fn is_truth(&self, value: Value) -> bool {
        self.truths.contains(value)
    }

    /// Whether the predicate of a truth holds the opposite: the carry of `a + ~b + 1` is set where `a - b` does not
    /// borrow.
    pub(crate) fn holds_opposite(&self, truth: Value) -> bool {
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
    pub(crate) fn has_zeros_above(&self, value: Value) -> bool {
        self.type_of(value).bits() >= 32
            || self.constant_of(value).is_some()
            || self.is_truth(value)
            || self.is_zero_extended(value)
    }

    /// Whether the bits above the type are copies of its sign in the register: of a load that nobody reads otherwise.
    pub(crate) fn has_signs_above(&self, value: Value) -> bool {
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
            && self.users.of(value).iter().all(extends)
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
            // LOP3 makes zeros of the zeros above constants, whatever is above the rest.
            Some(InstructionData::Call { .. }) => {
                let call = self
                    .def_of(value)
                    .and_then(|inst| self.intrinsics.logic(self.func, inst));
                call.is_some_and(|(inputs, table)| {
                    let is_constant = |&i: &usize| self.constant_of(inputs[i]).is_some();
                    let constants = (0..inputs.len()).filter(is_constant);
                    constants.fold(table, |table, i| known(table, i, 0)) == 0
                })
            }
            // PRMT puts zeros above a lane that it moves down.
            Some(InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            }) => !(u32::from(imm) * self.type_of(arg).lane_bits()).is_multiple_of(32),
            // What PRMT puts together, cut off.
            Some(InstructionData::Unary {
                opcode: Opcode::Ireduce,
                arg,
            }) => {
                let above = 0xfu32 << self.type_of(value).bytes() & 0xf;
                self.intrinsics.zero_bytes(self.func, arg) & above == above
            }
            _ => false,
        }
    }

    /// The value that another one is limited to so many bits of, and whether the limits are those of signed numbers.
    pub(crate) fn limited_value(&self, limited: Value, bits: u32) -> Option<(Value, bool)> {
        let side = |value: Value, opcode: Opcode| match self.def_data(value)? {
            InstructionData::Binary {
                opcode: found,
                args: [x, limit],
            } if found == opcode => Some((x, self.signed_constant_of(limit)?)),
            _ => None,
        };
        let ((value, greatest), least) = match side(limited, Opcode::Smax) {
            Some((below, least)) => (side(below, Opcode::Smin)?, least),
            None => {
                let (below, greatest) = side(limited, Opcode::Smin)?;
                let (value, least) = side(below, Opcode::Smax)?;
                ((value, greatest), least)
            }
        };
        let signed = (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
        let fits = self.type_of(value).bits() <= 32;
        match (least, greatest) {
            limits if fits && limits == signed => Some((value, true)),
            (0, greatest) if fits && greatest == (1 << bits) - 1 => Some((value, false)),
            _ => None,
        }
    }
}
