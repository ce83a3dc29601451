//! The Cranelift crates that this crate is built with.
//!
//! A compiler that takes them from here cannot end up with two versions of `ir::Function`.

pub use cranelift_codegen as codegen;
pub use cranelift_codegen::entity;
pub use cranelift_frontend as frontend;
#[cfg(feature = "module")]
pub use cranelift_module as module;
pub use cranelift_reader as reader;
