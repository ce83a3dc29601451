//! LLVM IR of stable rustc, translated to CLIF and compiled for thisgpu.
//!
//! [`Module::parse`] reads the text of one crate, [`Program::link`] puts crates together, [`convergence::check`] compares what LLVM's passes made with
//! what the source says about barriers and shuffles, and [`translate`] compiles what the kernels reach.

#![forbid(unsafe_code)]

pub mod convergence;
mod data;
mod error;
mod layout;
mod link;
pub mod model;
mod read;

pub use error::{Error, Place};
pub use link::{Program, Symbol};
pub use model::Module;
