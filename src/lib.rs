//! Cranelift IR to 128-bit GPU instruction words.

pub mod analysis;
pub mod clif;
pub mod error;
pub mod sim;
