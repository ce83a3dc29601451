//! Cranelift IR to 128-bit GPU instruction words: code generator, assembler, disassembler and SIMT simulator.

#![allow(
    rustdoc::private_intra_doc_links,
    reason = "module docs name private items on purpose; the CI builds both views"
)]

pub mod abi;
pub mod analysis;
pub mod asm;
pub mod clif;
pub mod compile;
pub mod driver;
pub mod emit;
pub mod error;
#[macro_use]
pub mod isa;
pub mod lower;
pub mod module;
pub mod object;
pub mod properties;
pub mod regalloc;
pub mod remarks;
pub mod sched;
pub mod settings;
pub mod sim;
pub mod simt;
pub mod vcode;
