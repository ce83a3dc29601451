//! The Cranelift crates that this crate is built with.
//!
//! A compiler that takes them from here cannot end up with two versions of `ir::Function`.

pub use cranelift_codegen as codegen;
pub use cranelift_codegen::entity;
pub use cranelift_frontend as frontend;
#[cfg(feature = "module")]
pub use cranelift_module as module;
pub use cranelift_reader as reader;

/// What a front end names all the time, as the prelude of the crate `cranelift`:
/// `use cranelift_thisgpu::cranelift::prelude::{types::*, *}`.
pub mod prelude {
    pub use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
    pub use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
    pub use cranelift_codegen::ir::{
        AbiParam, AtomicRmwOp, Block, BlockArg, ExtFuncData, ExternalName, Function,
        GlobalValueData, InstBuilder, JumpTableData, MemFlagsData, Signature, StackSlotData,
        StackSlotKind, TrapCode, Type, UserExternalName, UserFuncName, Value, types,
    };
    pub use cranelift_codegen::isa::CallConv;
    pub use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch, Variable};
    #[cfg(feature = "module")]
    pub use cranelift_module::{DataDescription, DataId, FuncId, Linkage, Module};
}
