//! Facts about a function.

pub mod alignment;
pub mod control_flow;
pub mod graph;
pub mod provenance;
#[cfg(test)]
pub(crate) mod testing;
pub mod uniformity;
pub mod uses;
