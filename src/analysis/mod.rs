//! Facts about a function.

pub mod graph;
