//! The context of the ISLE rules: what they ask of CLIF and of operands, and the few things that they leave to Rust.
//!
//! The generated trait is implemented here from macros by subject: of instructions and types, operands and results in
//! this folder, the others next to what they need.

mod clif;
mod operands;
mod results;
mod uniform;

use super::Lower;
use super::address::address_methods;
use super::bytes::byte_methods;
use super::call::call_methods;
use super::convert::convert_methods;
use super::dot::dot_methods;
use super::float::float_methods;
use super::intrinsic::intrinsic_methods;
use super::logic::logic_methods;
use super::memory::memory_methods;
use super::multiply::multiply_methods;
use super::operation::Source;
use super::source::{Base, Halves, Output, is_representable, words_of_bits};
use super::values::value_methods;
use super::vector::vector_methods;
use crate::intrinsics::resolve::GpuSymbol;
use crate::isa::generated::*;
use crate::isa::{Role, VReg};
use crate::rules::array_methods;
use crate::vcode::{Attachment, SymbolUse};
use clif::clif_methods;
use cranelift_codegen::ir::{Endianness, GlobalValueData};
use generated_code::*;
use operands::operand_methods;
use results::result_methods;
use smallvec::{SmallVec, smallvec};
use uniform::uniform_methods;

/// The rules, compiled.
pub mod generated_code {
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

    pub use super::super::address::{Address, Reach};
    pub use super::super::bytes::ByteMap;
    pub use super::super::dot::{Dot, Factor, Rest};
    pub use super::super::intrinsic::{Object, Symbol};
    pub use super::super::logic::Tree;
    pub use super::super::memory::{ByteOrder, FramePart};
    pub use super::super::multiply::Product;
    pub use super::super::source::{InstOutput, PSrc, Regs, Src};
    pub use super::super::typed::*;
    pub use super::super::vector::{Insertions, Picks};
    pub use super::clif::{Lane, Shape, Width, Words};
    pub use crate::analysis::provenance::Space;
    pub use crate::intrinsics::Lowering;
    use crate::isa::generated::*;
    pub use crate::rules::{BlockArray2, ValueArray2, ValueArray3};
    pub use crate::vcode::SymbolKind;
    pub use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
    pub use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Imm64, Offset32, Uimm8};
    pub use cranelift_codegen::ir::types::*;
    pub use cranelift_codegen::ir::{
        AtomicRmwOp, BlockCall, Constant, DynamicStackSlot, ExceptionTable, FuncRef, GlobalValue,
        Immediate, Inst, InstructionData, JumpTable, MemFlags, MemFlagsData, Opcode, SigRef,
        StackSlot, TrapCode, Type, Value, ValueList,
    };
    extern crate alloc;

    /// A list of values from a position on.
    pub type ValueSlice = (ValueList, usize);

    include!(concat!(env!("OUT_DIR"), "/modes.rs"));
    include!(concat!(env!("OUT_DIR"), "/rules.rs"));
}

include!(concat!(env!("OUT_DIR"), "/constructors.rs"));

/// Applies the first rule that matches.
pub(super) fn lower_instruction(context: &mut Lower<'_>, inst: Inst) -> Option<InstOutput> {
    if context.defines_truth(inst) {
        let truth = generated_code::constructor_lower_truth(context, inst)?;
        if let Some(uniform) = generated_code::constructor_lower_uniform_truth(context, inst) {
            context.offer_truth(truth, uniform);
        }
        return Some(smallvec![Output::Predicate(truth)]);
    }
    generated_code::constructor_lower(context, inst)
}

impl Context for Lower<'_> {
    emitting_methods!();
    cranelift_codegen::isle_numerics_methods!();
    array_methods!();
    clif_methods!();
    operand_methods!();
    result_methods!();
    uniform_methods!();
    value_methods!();
    logic_methods!();
    multiply_methods!();
    float_methods!();
    convert_methods!();
    vector_methods!();
    byte_methods!();
    dot_methods!();
    address_methods!();
    memory_methods!();
    call_methods!();
    intrinsic_methods!();
}
