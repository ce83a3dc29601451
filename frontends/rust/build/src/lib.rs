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
//! | `View2<T>`, `View3<T>` | `(&Buffer<T>, [width, height])`, `(&Buffer<T>, [width, height, depth])` |
//! | `DisjointMut<T>` | `&mut Buffer<T>`; of planes and volumes with its extents, as above |
//!
//! `T` on the host is the same number, or for a structure any `Pod` type of the same size.

#![forbid(unsafe_code)]

mod argument;
mod cache;
mod cargo;
mod compiled;
mod descriptor;
mod environment;
mod error;
mod format;
mod generate;
mod kernels;
mod launch;
mod library;
mod names;
mod output;
mod runtime;
mod toolchain;

pub use argument::{Argument, BufferArgument, Passed};
pub use compiled::{Compiled, Description};
pub use descriptor::{Access, Class, KernelDescription, Number, Parameter, StaticDescription};
pub use error::{Error, Heap, Message, Mismatch};
pub use kernels::Kernels;
pub use launch::{Embedded, Kernel, Launch, Module, Pending};
pub use thisgpu_llvm::flags::OptLevel;

pub use cranelift_thisgpu;
pub use cranelift_thisgpu::driver::{Elapsed, Event, Pod};
pub use cranelift_thisgpu::{
    Buffer, Device, DeviceError, Fault, Grid, Options, Report, SimConfig, Stream,
};
