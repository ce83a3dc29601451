//! Reads instruction set descriptions in the notation of the vendor's documents, checks them, and generates the tables the code
//! generator is built on. The notation is described in `docs/description.md`.
//!
//! Pipeline: text → [`source::SourceMap`] → parsed definitions ([`ast`]) → [`model::Machine`] → generated Rust and ISLE, references,
//! checks.

pub mod ast;
pub mod check;
pub mod definitions;
pub mod diagnostic;
pub mod diff;
pub mod expr;
pub mod lexer;
pub mod model;
pub mod outline;
pub mod parser;
pub mod reference;
pub mod resolve;
pub mod source;
pub mod syntax;
