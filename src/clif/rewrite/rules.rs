//! The rules of `isle/clif_opt.isle`, compiled, and the types that they name.

pub use compiled::*;

use types::*;

/// The types that the rules name.
pub mod types {
    pub use crate::rules::{BlockArray2, ValueArray2, ValueArray3};
    pub use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
    pub use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Imm64, Offset32, Uimm8};
    pub use cranelift_codegen::ir::types::*;
    pub use cranelift_codegen::ir::{
        AtomicRmwOp, Block, BlockCall, Constant, DynamicStackSlot, FuncRef, GlobalValue, Immediate,
        Inst, InstructionData, JumpTable, MemFlags, Opcode, StackSlot, TrapCode, Type, Value,
    };

    /// A result, and whether it overflowed.
    pub type Checked = (Value, Value);
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

    include!(concat!(env!("OUT_DIR"), "/clif_rules.rs"));
}
