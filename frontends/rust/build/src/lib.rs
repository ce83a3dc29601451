//! Crates of Rust kernels, compiled and launched: from build scripts and at run time.
//!
//! [`Kernels`] compiles a crate whose kernels are marked `#[kernel]` of `thisgpu-gpu`: cargo builds it and what it
//! depends on with stable rustc, for the host, to LLVM IR; `thisgpu-llvm` checks and translates that; the back end
//! makes an object. [`Compiled`] is loaded onto a [`Device`], and a launch takes an argument for each parameter of the
//! Rust function.
//!
//! | parameter of the kernel | argument |
//! | --- | --- |
//! | a number, `bool` | the same; `F16` and `F16x2` their bits |
//! | `&[T]`, also of atomics | `&Buffer<T>` |
//! | `&T` | `&Buffer<T>` with at least one element |
//! | `DisjointMut<T>` | `&mut Buffer<T>` |
//!
//! `T` on the host is the same number, or for a structure any `Pod` type of the same size.

#![forbid(unsafe_code)]

mod cache;
mod cargo;
mod compiled;
mod descriptor;
mod environment;
mod error;
mod generate;
mod kernels;
mod launch;
mod library;
mod output;
mod runtime;
mod toolchain;

pub use compiled::{Compiled, Description};
pub use descriptor::{Class, KernelDescription, Number, Parameter};
pub use error::{Error, Heap, Message, Mismatch};
pub use kernels::Kernels;
pub use launch::{Argument, Embedded, Kernel, Launch, Module, Passed};
pub use thisgpu_llvm::flags::OptLevel;

pub use cranelift_thisgpu;
pub use cranelift_thisgpu::driver::Pod;
pub use cranelift_thisgpu::{Buffer, Device, DeviceError, Fault, Grid, Options, Report, SimConfig};
