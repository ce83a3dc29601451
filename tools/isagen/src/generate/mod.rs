//! Generators: the resolved machine as Rust tables and types, as ISLE declarations.

mod builder;
mod constructors;
pub mod context;
pub mod isle;
mod naming;
mod optypes;
mod semantics;
mod signature;
mod sources;
mod tables;
pub mod typed;
mod types;

pub use naming::{camel, module_name, role_name, snake};
pub use signature::{Signature, signature};

use crate::model::Machine;

/// The Rust source that `src/isa/generated.rs` includes: enumerations, forms, tables, per optype its fields and the
/// types of its semantics, and per form the function that builds it.
pub fn rust(machine: &Machine) -> String {
    let mut out = String::new();
    types::write(machine, &mut out);
    tables::write(machine, &mut out);
    optypes::write(machine, &mut out);
    builder::write(machine, &mut out);
    out
}
