//! The rules of `isle/`, compiled, and the types that they name.

pub use compiled::*;

use crate::isa::generated::*;
use types::*;

/// The types that the rules name, and how each constructor of the machine is written.
pub mod types {
    use crate::isa::generated::*;

    pub use crate::analysis::provenance::Space;
    pub(crate) use crate::intrinsics::Lowering;
    pub use crate::lower::address::Address;
    pub use crate::lower::logic::Logic;
    pub use crate::lower::source::{InstOutput, PSrc, Regs, Src, ValueSlice};
    pub use crate::lower::typed::*;
    pub use crate::lower::vector::{Insertions, Picks};
    pub use crate::rules::{BlockArray2, ValueArray2, ValueArray3};
    pub use crate::vcode::SymbolKind;
    pub use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
    pub use cranelift_codegen::ir::immediates::{Offset32, Uimm8};
    pub use cranelift_codegen::ir::types::*;
    pub use cranelift_codegen::ir::{
        AtomicRmwOp, BlockCall, FuncRef, GlobalValue, Immediate, Inst, InstructionData, MemFlags,
        Opcode, StackSlot, TrapCode, Type, Value, ValueList,
    };

    include!(concat!(env!("OUT_DIR"), "/modes.rs"));
}

/// What the ISLE compiler made.
mod compiled {
    #![allow(
        missing_docs,
        unused_variables,
        unused_imports,
        unused_mut,
        unreachable_code,
        unreachable_patterns,
        dead_code
    )]
    #![allow(
        clippy::all,
        irrefutable_let_patterns,
        non_snake_case,
        non_camel_case_types
    )]

    extern crate alloc;

    include!(concat!(env!("OUT_DIR"), "/rules.rs"));
}
