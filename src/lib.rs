//! Cranelift IR to 128-bit GPU instruction words.

pub mod sim;
