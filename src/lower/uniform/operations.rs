//! What the uniform datapath can compute, and at what cost.

use super::{Search, is_of_block};
use crate::intrinsics::Lowering;
use crate::intrinsics::resolve::GpuSymbol;
use crate::isa::generated::SReg;
use crate::vcode::FunctionKind;
use cranelift_codegen::ir::{Endianness, Inst, InstructionData, Opcode, Value, ValueDef, types};
use smallvec::SmallVec;

/// How a value would be computed on the uniform datapath.
pub(super) struct Operation {
    /// What it reads that must live there or be an immediate or constant memory.
    pub operands: SmallVec<[Value; 3]>,
    /// Instructions there.
    pub uniform: i32,
    /// Instructions in general registers.
    pub general: i32,
}

impl Search<'_> {
    /// An immediate, or what stands in constant memory.
    pub(super) fn is_leaf(&self, value: Value) -> bool {
        match self.input.func.dfg.value_def(value) {
            ValueDef::Param(block, index) => {
                let FunctionKind::Kernel(kernel) = &self.input.kind else {
                    return false;
                };
                Some(block) == self.input.func.layout.entry_block()
                    && kernel
                        .parameters
                        .get(index)
                        .is_some_and(|p| p.offset.is_multiple_of(4))
            }
            ValueDef::Result(inst, _) => {
                self.input.func.dfg.insts[inst].opcode() == Opcode::Iconst
                    || self.reads_launch_size(inst)
            }
            ValueDef::Union(..) => false,
        }
    }

    /// Whether an instruction reads what is in constant bank 0.
    fn reads_launch_size(&self, inst: Inst) -> bool {
        let symbol = (self.input.facts.intrinsics).of_symbol_value(self.input.func, inst);
        matches!(symbol, Some(GpuSymbol::Special(intrinsic)) if intrinsic.launch_offset().is_some())
    }

    fn special(&self, inst: Inst) -> Option<SReg> {
        let func = self.input.func;
        match self.input.facts.intrinsics.of_symbol_value(func, inst)? {
            GpuSymbol::Special(intrinsic) => match intrinsic.lowering {
                Lowering::Special(special) => Some(special),
                _ => None,
            },
            GpuSymbol::Shared => None,
        }
    }

    /// The operation of a value on the uniform datapath: what `lower_uniform` has rules for.
    pub(super) fn operation(&self, value: Value) -> Option<Operation> {
        let inst = self.input.func.dfg.value_def(value).inst()?;
        let ty = self.ty(value);
        let wide = match ty {
            types::I32 => false,
            types::I64 => true,
            types::F32 | types::F16X2 => return self.reinterpretation(inst),
            _ => return None,
        };
        let both = |one: (i32, i32), two: (i32, i32)| Some(if wide { two } else { one });
        let (cost, operands): (Option<(i32, i32)>, SmallVec<[Value; 3]>) = match self
            .input
            .func
            .dfg
            .insts[inst]
        {
            InstructionData::Binary { opcode, args } => {
                let cost = match opcode {
                    Opcode::Iadd | Opcode::Isub => both((1, 1), (1, 2)),
                    Opcode::Ishl | Opcode::Ushr | Opcode::Sshr => both((1, 1), (1, 2)),
                    Opcode::Imul if !wide => Some((1, 1)),
                    Opcode::Band | Opcode::Bor | Opcode::Bxor => both((1, 1), (2, 2)),
                    Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => {
                        both((1, 1), (1, 4))
                    }
                    _ => None,
                };
                (cost, SmallVec::from_slice(&args))
            }
            InstructionData::Unary { opcode, arg } => {
                let from = self.ty(arg);
                let cost = match opcode {
                    Opcode::Ineg => both((1, 1), (1, 2)),
                    Opcode::Bnot => both((1, 1), (2, 2)),
                    Opcode::Uextend | Opcode::Sextend if wide && from == types::I32 => Some((1, 1)),
                    Opcode::Ireduce if !wide && from == types::I64 => Some((0, 0)),
                    _ => None,
                };
                (cost, SmallVec::from_slice(&[arg]))
            }
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [condition, x, y],
            } => {
                let uniform = self.input.facts.uniformity.uniform(condition);
                // Its condition is a predicate in the block where it stands.
                let here = self.place(value) == self.block(value);
                let compared = matches!(
                    self.data(condition),
                    Some(InstructionData::IntCompare { .. })
                );
                let cost = both((1, 1), (1, 2)).filter(|_| uniform && here && compared);
                (cost, SmallVec::from_slice(&[x, y]))
            }
            InstructionData::LoadNoOffset { .. } if !wide => return self.reinterpretation(inst),
            InstructionData::UnaryGlobalValue { .. } => {
                let block = self.special(inst).is_some_and(is_of_block);
                (block.then_some((1, 1)), SmallVec::new())
            }
            _ => return None,
        };
        let (uniform, general) = cost?;
        Some(Operation {
            operands,
            uniform,
            general,
        })
    }

    /// A word read as another type, which is the same register.
    fn reinterpretation(&self, inst: Inst) -> Option<Operation> {
        let InstructionData::LoadNoOffset {
            opcode: Opcode::Bitcast,
            arg,
            flags,
        } = self.input.func.dfg.insts[inst]
        else {
            return None;
        };
        // In the other order the lanes of vectors change their places.
        let flags = self.input.func.dfg.mem_flags[flags];
        let little = flags.endianness(Endianness::Little) == Endianness::Little;
        (self.ty(arg).bits() == 32 && little).then(|| Operation {
            operands: SmallVec::from_slice(&[arg]),
            uniform: 0,
            general: 0,
        })
    }
}
