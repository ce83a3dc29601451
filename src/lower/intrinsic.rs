//! What the rules of intrinsics, symbols and traps (`isle/lower/intrinsic.isle`) ask.

use super::rules::{Object, Symbol};
use super::source::{Base, InstOutput, PSrc, Src};
use super::state::Lower;
use super::typed::{Operand, Unit, Word};
use crate::abi;
use crate::abi::is_representable;
use crate::intrinsics::resolve::GpuSymbol;
use crate::intrinsics::{self, Intrinsic, Lowering};
use crate::isa::generated::SReg;
use crate::isa::{Role, build};
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::types::F32;
use cranelift_codegen::ir::{
    Endianness, GlobalValue, GlobalValueData, Inst, InstructionData, Opcode, TrapCode, Value,
    ValueList,
};

/// Where a value that an intrinsic reads stands in constant bank 0.
pub(super) fn launch_constant(intrinsic: &Intrinsic) -> Option<Base> {
    intrinsic.launch_offset().map(launch_bank)
}

/// Where in constant memory a size of the launch is.
pub(super) fn launch_size(register: SReg) -> Option<Base> {
    intrinsics::launch_size(register).map(launch_bank)
}

fn launch_bank(offset: u32) -> Base {
    Base::Constant {
        bank: abi::LAUNCH_BANK,
        offset,
    }
}

/// Intrinsics, symbols and traps.
impl Lower<'_> {
    pub(super) fn intrinsic(&mut self, inst: Inst) -> Option<(Lowering, ValueList)> {
        let InstructionData::Call { args, .. } = self.func.dfg.insts[inst] else {
            return None;
        };
        let intrinsic = self.input.facts.intrinsics.of_call(self.func, inst)?;
        Some((intrinsic.lowering, args))
    }

    pub(super) fn launch_size(&mut self, register: &SReg) -> Option<Word> {
        let base = launch_size(*register)?;
        Some(Word::new(Src { base, ..Src::ZERO }))
    }

    pub(super) fn launch_constant(&mut self, offset: u32) -> Word {
        let base = Base::Constant {
            bank: abi::LAUNCH_BANK,
            offset,
        };
        Word::new(Src { base, ..Src::ZERO })
    }

    pub(super) fn selector_of(&mut self, constant: i64) -> u32 {
        constant as u32 & 0xffff
    }

    pub(super) fn bytes_picked(&mut self, selector: u32, second: bool) -> u32 {
        let nibbles = (0..4).map(|place| selector >> (4 * place) & 7);
        let picked = nibbles.filter(|nibble| (nibble & 4 != 0) == second);
        picked.map(|nibble| (nibble & 3) + 1).max().unwrap_or(0)
    }

    /// Extensions, truncations and casts that leave the low bytes as they are are looked through.
    pub(super) fn word_with_bytes(&mut self, word: Value, bytes: u32) -> Word {
        let mut value = word;
        loop {
            let below = match self.def_data(value) {
                Some(InstructionData::Unary {
                    opcode: Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce,
                    arg,
                }) => arg,
                Some(InstructionData::LoadNoOffset {
                    opcode: Opcode::Bitcast,
                    arg,
                    flags,
                }) if self.func.dfg.mem_flags[flags].explicit_endianness()
                    != Some(Endianness::Big) =>
                {
                    arg
                }
                _ => break,
            };
            if self.type_of(below).bytes() < bytes || !is_representable(self.type_of(below)) {
                break;
            }
            value = below;
        }
        Word::new(self.src(value).low())
    }

    /// The f32 that the f16 in the low half of a word, which nobody else reads, is the nearest one to.
    pub(super) fn narrowed_half(&mut self, word: Value) -> Option<Value> {
        let InstructionData::Unary {
            opcode: Opcode::Uextend,
            arg,
        } = self.def_data(word)?
        else {
            return None;
        };
        let half = match self.def_data(arg)? {
            InstructionData::LoadNoOffset {
                opcode: Opcode::Bitcast,
                arg,
                ..
            } => arg,
            _ => return None,
        };
        match self.def_data(half)? {
            InstructionData::Unary {
                opcode: Opcode::Fdemote,
                arg,
            } if self.type_of(arg) == F32 && self.is_used_once(half) => Some(arg),
            _ => None,
        }
    }

    pub(super) fn lanes_come_apart(&mut self) -> bool {
        let uniformity = &self.input.facts.uniformity;
        (self.current).is_some_and(|block| uniformity.divergent_block(block))
    }

    pub(super) fn trap_of_user(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1)
    }

    pub(super) fn trap_if(&mut self, p: PSrc, code: &TrapCode) -> InstOutput {
        let mut trap = build::trap_x(code.as_raw().get());
        trap.set_guard(p.reg, p.negated);
        self.builder.emit(trap);
        InstOutput::new()
    }

    pub(super) fn symbol(&mut self, global_value: GlobalValue) -> Option<Symbol> {
        match self.input.facts.intrinsics.symbol(global_value) {
            Some(GpuSymbol::Special(intrinsic)) => match intrinsic.lowering {
                Lowering::Special(register) => Some(Symbol::Special(register)),
                Lowering::LaunchConstant(offset) => Some(Symbol::LaunchConstant(offset)),
                _ => None,
            },
            Some(GpuSymbol::Shared) => Some(Symbol::Shared),
            None => match self.func.global_values[global_value] {
                GlobalValueData::Symbol { .. } => Some(Symbol::Data),
                _ => None,
            },
        }
    }

    pub(super) fn filled_by_linking(&mut self, object: &Object, kind: &SymbolKind) -> Unit {
        let (name, addend) = match *object {
            Object::Function(callee) => (self.function_name(callee), 0),
            Object::Data(data) => self.data_symbol(data),
        };
        self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
            role: Role::B,
            kind: *kind,
            name: name.to_string(),
            addend,
        }));
        Unit
    }

    /// The name of a data object, and the bytes that are added to its address.
    pub(super) fn data_symbol(&self, data: GlobalValue) -> (String, i64) {
        match &self.func.global_values[data] {
            GlobalValueData::Symbol { name, offset, .. } => {
                ((self.input.names)(name), offset.bits())
            }
            _ => unreachable!("{data} is a symbol"),
        }
    }
}
