//! CubeCL on thisgpu: kernels marked `#[cube]` compiled by [`cranelift_thisgpu`] and run on its simulator.
//!
//! ```
//! use cubecl_thisgpu::{Runtime, ThisgpuRuntime};
//! let client = ThisgpuRuntime::client(&Default::default());
//! let numbers = client.create_from_slice(&[1, 2, 3]);
//! assert_eq!(&client.read_one(numbers)?[..], [1, 2, 3]);
//! # Ok::<(), cubecl_server::server::ServerError>(())
//! ```
//!
//! A kernel goes through CubeCL's own passes and is then translated operation by operation to a function of CLIF
//! ([`compiler`]), which becomes machine code as every other function does. Buffers are memory of the device
//! ([`storage`]): a launch passes their addresses and copies nothing. What goes wrong is an error of CubeCL: a kernel
//! that cannot be compiled, or a fault of the device, is what a read of the buffers says that it would have written.

#![deny(unsafe_code)]

mod arguments;
mod cache;
pub mod compiler;
mod device;
mod environment;
mod error;
mod overview;
mod profile;
mod properties;
mod report;
mod runtime;
mod server;
pub mod storage;
mod streams;
mod translate;

pub use cubecl_server::runtime::Runtime;
pub use device::{Mode, ThisgpuDevice};
pub use environment::{
    BUDGET_VARIABLE, CACHE_VARIABLE, DEVICE_VARIABLE, PROFILE_VARIABLE, REPORT_VARIABLE,
    THREADS_VARIABLE,
};
pub use error::TranslateError;
pub use properties::device_properties;
pub use runtime::ThisgpuRuntime;
pub use server::ThisgpuServer;
