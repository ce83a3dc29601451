//! Reads instruction set descriptions in the notation of the vendor's documents, checks them, and generates the tables the code
//! generator is built on. The notation is described in `docs/description.md`.
//!
//! Pipeline: text → [`source::SourceMap`] → parsed definitions → [`model::Machine`] → generated Rust and ISLE, references, checks.

pub mod expr;
pub mod model;
pub mod source;
