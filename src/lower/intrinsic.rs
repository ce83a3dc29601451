//! What the rules of intrinsics, symbols and traps (`isle/lower/intrinsic.isle`) ask.

use super::Lower;
use super::context::generated_code::{Object, Symbol};
use super::source::{Base, PSrc};
use crate::abi::bank0;
use crate::clif::intrinsics::{Intrinsic, Lowering};
use crate::clif::resolve::GpuSymbol;
use crate::isa::generated::SReg;
use crate::isa::{Role, build};
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::{GlobalValue, GlobalValueData};

impl Lower<'_> {
    /// What a global value stands for, if it is a symbol.
    pub(super) fn symbol_kind(&self, global_value: GlobalValue) -> Option<Symbol> {
        match self.input.facts.intrinsics.symbol(global_value) {
            Some(GpuSymbol::Special(intrinsic)) => match intrinsic.lowering {
                Lowering::Special(register) => Some(Symbol::Special(register)),
                _ => None,
            },
            Some(GpuSymbol::Shared) => Some(Symbol::Shared),
            None => match self.func.global_values[global_value] {
                GlobalValueData::Symbol { .. } => Some(Symbol::Data),
                _ => None,
            },
        }
    }

    /// Says of the instruction before that its immediate is a half of the address of an object.
    ///
    /// # Panics
    /// When the object is a global value that is no symbol.
    pub(super) fn fill_by_linking(&mut self, object: Object, kind: SymbolKind) {
        let (name, addend) = match object {
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
            kind,
            name: name.to_string(),
            addend,
        }));
    }

    /// A fault with this code where the predicate holds.
    pub(super) fn guarded_trap(&mut self, p: PSrc, code: u8) {
        let mut trap = build::trap_x(code);
        trap.set_guard(p.reg, p.negated);
        self.builder.emit(trap);
    }
}

/// Where a value that an intrinsic reads stands in constant bank 0.
pub(super) fn launch_constant(intrinsic: &Intrinsic) -> Option<Base> {
    match intrinsic.lowering {
        Lowering::Special(register) => launch_size(register),
        _ => None,
    }
}

/// Where in constant memory a size of the launch is.
pub(super) fn launch_size(register: SReg) -> Option<Base> {
    let offset = match register {
        SReg::SrNtidX => bank0::BLOCK_SIZE,
        SReg::SrNtidY => bank0::BLOCK_SIZE + 4,
        SReg::SrNtidZ => bank0::BLOCK_SIZE + 8,
        SReg::SrNctaidX => bank0::GRID_SIZE,
        SReg::SrNctaidY => bank0::GRID_SIZE + 4,
        SReg::SrNctaidZ => bank0::GRID_SIZE + 8,
        _ => return None,
    };
    Some(Base::Constant {
        bank: crate::abi::LAUNCH_BANK,
        offset,
    })
}
