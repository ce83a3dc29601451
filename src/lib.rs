//! Cranelift IR to 128-bit GPU instruction words: code generator, assembler, disassembler and SIMT simulator.
//!
//! [`Compiler`] takes CLIF, as text or as functions, and gives [`Code`], which is written as an [`Object`].
//! [`GpuModule`] is the same behind Cranelift's own `Module`. A [`Device`] loads code and launches kernels;
//! [`Device::simulator`] needs no hardware. The Cranelift crates of the matching version are in [`cranelift`].
//!
//! ```
//! # #[cfg(all(feature = "sim", feature = "driver"))]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cranelift_thisgpu::{Compiler, Device, Grid, Options, SimConfig};
//! let code = Compiler::new(Options::default()).compile_clif(
//!     "; kernel
//!      function %double(i64) {
//!          fn0 = %gpu_tid_x() -> i32
//!      block0(v0: i64):
//!          v1 = call fn0()
//!          v2 = uextend.i64 v1
//!          v3 = iconst.i64 4
//!          v7 = imul v2, v3
//!          v4 = iadd v0, v7
//!          v5 = load.f32 aligned v4
//!          v6 = fadd v5, v5
//!          store aligned v6, v4
//!          return
//!      }",
//! )?;
//! let device = Device::simulator(SimConfig::default());
//! let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
//! device.load(&code)?.kernel("double")?.launch(Grid::for_elems(4, 4)).arg(&x).run()?;
//! assert_eq!(device.download::<f32>(&x)?, [2.0, 4.0, 6.0, 8.0]);
//! # Ok(())
//! # }
//! # #[cfg(not(all(feature = "sim", feature = "driver")))]
//! # fn main() {}
//! ```
//!
//! # Features
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `asm` | [`asm`]: the assembler and the listing |
//! | `cache` | [`compile::Cache`]: compiled code in a folder; [`Compiler::cache_key`] |
//! | `driver` | [`driver`]: devices, memory, launches, for any [`Driver`](driver::Driver) |
//! | `module` | [`module`]: [`GpuModule`] |
//! | `sim` | [`sim`]: the simulator; with `driver`, [`Device::simulator`] |
//! | `unstable` | [`unstable`]: what this project's own tools and tests take of the inside, with no promises |
//!
//! All but `unstable` are on by default. Without them the back end stands alone: CLIF in, objects out.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "module docs name private items on purpose; the CI builds both views"
)]
#![cfg_attr(
    not(feature = "unstable"),
    allow(
        dead_code,
        reason = "only the project's own tools and tests take it; with the feature the lint sees it used"
    )
)]

mod abi;
mod analysis;
#[cfg(feature = "asm")]
pub mod asm;
mod bits;
pub mod build;
mod chrome;
mod clif;
pub mod compile;
mod constants;
pub mod cranelift;
mod cse;
#[cfg(feature = "driver")]
pub mod driver;
mod emit;
pub mod error;
#[cfg(doctest)]
mod guide;
mod hazards;
pub mod intrinsics;
#[macro_use]
mod isa;
pub mod launch;
mod linear;
pub mod locations;
mod lower;
#[cfg(feature = "module")]
pub mod module;
pub mod object;
mod passes;
mod properties;
mod regalloc;
mod remarks;
mod report;
mod rules;
mod sched;
pub mod settings;
#[cfg(feature = "sim")]
pub mod sim;
mod simt;
pub mod target;
#[cfg(test)]
mod testing;
mod text;
mod type_name;
mod uniform;
#[cfg(feature = "unstable")]
pub mod unstable;
pub mod values;
pub mod variables;
mod vcode;
mod warning;

pub use compile::{Code, Compiler, KernelOptions, KernelResources, SourceFile};
#[cfg(feature = "driver")]
pub use driver::{Buffer, Device, DeviceError, DevicePointer, Grid, Kernel, Pending, Stream};
pub use error::{Error, Errors};
pub use launch::{Fault, FaultKind, Report};
#[cfg(feature = "module")]
pub use module::GpuModule;
pub use object::Object;
pub use properties::{DeviceProperties, Limit, Occupancy};
pub use settings::Options;
#[cfg(feature = "sim")]
pub use sim::SimConfig;
