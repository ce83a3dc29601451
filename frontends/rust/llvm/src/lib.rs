//! LLVM IR of stable rustc, translated to CLIF and compiled for thisgpu.
//!
//! [`Module::parse`] reads the text of one crate, [`Program::link`] puts crates together, and
//! [`translate`] compiles what the kernels reach.

#![forbid(unsafe_code)]

pub mod convergence;
mod data;
mod device;
mod error;
pub mod flags;
mod layout;
mod link;
pub mod model;
pub mod panics;
mod read;
mod shared;
mod translate;
mod visit;

pub use device::{is_convergent, pure_intrinsics};
pub use error::{Error, Moved, Place, Problem, ReadError};
pub use link::{Panics, Program, Symbol};
pub use model::Module;
pub use translate::{Kernel, MutableVariable, Translation, clif, translate};
