//! Compute shaders in WGSL, GLSL and SPIR-V for thisgpu.
//!
//! naga reads and validates a shader; [`translate`] makes one entry point of the module a function of CLIF with a
//! [table](Interface) of what a launch must bind; [`Translation::compile`] makes machine code of it, and
//! [`Pipeline::dispatch`] runs that on a device, mostly the simulator. A front end that has a validated module of its
//! own, such as a `wgpu-hal` back end, begins at [`translate`].
//!
//! ```
//! use cranelift_thisgpu::{Device, Options, SimConfig};
//! use thisgpu_naga::{Binding, Shader, TranslateOptions};
//!
//! let text = "
//!     @group(0) @binding(0) var<storage, read_write> values: array<f32>;
//!     @compute @workgroup_size(32)
//!     fn double(@builtin(global_invocation_id) id: vec3<u32>) {
//!         values[id.x] *= 2.0;
//!     }";
//! let shader = Shader::wgsl("double.wgsl", text)?;
//! let compiled = shader.translate("double", &TranslateOptions::default())?.compile(&Options::default())?;
//! let device = Device::simulator(SimConfig::default());
//! let values = device.upload(&[1.0f32, 2.0, 3.0])?;
//! let binding = Binding::new(0, 0, &values.cast()?);
//! compiled.load(&device)?.dispatch([1, 1, 1], &[binding], &[])?;
//! assert_eq!(values.to_vec()?, [2.0, 4.0, 6.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod alignment;
mod binary;
mod dimensions;
mod error;
mod interface;
mod launch;
mod mistakes;
mod nesting;
mod source;
mod translate;

#[cfg(test)]
mod tests;

pub use error::{Error, Place, Reason};
pub use interface::{Access, BoundBuffer, Interface};
pub use launch::{Binding, Compiled, LaunchError, Pipeline};
pub use source::{Shader, Source, capabilities};
pub use translate::{Bounds, TranslateOptions, Translation, translate};

/// naga, of the version whose modules [`translate`] takes.
pub use naga;
