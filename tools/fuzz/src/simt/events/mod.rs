//! Kernels of events: threads that publish and consume, take turns and locks, and loops over exact allocations.
//!
//! A seed and a set of [`features`] give a [`plan`] ([`generate`], `nests`), written as CLIF ([`emit`], `waits`). Its
//! events have an order that the threads make by atomic operations, or they commute, so that the [`mod@reference`] does
//! them one after another. [`check`] runs the kernel in order and in random turns; [`reduce`] makes kernels smaller
//! that fail.

pub mod check;
pub mod emit;
pub mod features;
pub mod generate;
mod nests;
pub mod plan;
pub mod reduce;
pub mod reference;
pub mod shapes;
mod waits;
