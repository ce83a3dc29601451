//! What the rules of intrinsics, symbols and traps (`isle/lower/intrinsic.isle`) ask.

use super::rules::{Object, Symbol};
use super::source::{Base, InstOutput, PSrc, Src};
use super::state::Lower;
use super::typed::{Operand, Unit, Word};
use crate::abi;
use crate::intrinsics::resolve::GpuSymbol;
use crate::intrinsics::{self, Intrinsic, Lowering};
use crate::isa::generated::SReg;
use crate::isa::{Role, build};
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::{
    GlobalValue, GlobalValueData, Inst, InstructionData, TrapCode, ValueList,
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

    pub(super) fn lanes_come_apart(&mut self) -> bool {
        let facts = &self.input.facts;
        let apart = |block| facts.uniformity.divergent_block(block);
        facts.meetings.any_late() && self.current.is_some_and(apart)
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
            Object::Data(data) => match &self.func.global_values[data] {
                GlobalValueData::Symbol { name, offset, .. } => {
                    ((self.input.names)(name), offset.bits())
                }
                _ => unreachable!("{data} is a symbol"),
            },
        };
        self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
            role: Role::B,
            kind: *kind,
            name: name.to_string(),
            addend,
        }));
        Unit
    }
}
