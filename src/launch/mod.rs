//! What a device is asked, and what it answers: linked code, launches, their progress, reports and faults.
//!
//! Nothing here runs anything. A [`Driver`](crate::driver::Driver) takes an [`Image`] and a [`LaunchRequest`] and
//! returns a [`Report`]; the simulator is one, hardware can be another, and what they say is the same.

mod allocation;
mod calls;
mod code;
mod fault;
pub mod image;
mod place;
pub mod profile;
mod progress;
mod report;
pub mod trace;
mod wait;

pub use allocation::{Allocation, Near, Origin};
pub use calls::Frame;
#[cfg(feature = "sim")]
pub(crate) use calls::is_library;
pub use code::{CodeRange, Turning};
pub use fault::{AccessKind, Fault, FaultKind};
pub use image::Image;
pub use place::{Place, Window};
pub use progress::{Interrupt, Interruption, Progress};
pub use report::{Finding, FindingKind, Hazard, HazardKind, Report, Resource, Stats};
pub use wait::{Awaited, Wait};

use crate::abi::{MAX_LOCAL, MAX_SHARED, MAX_THREADS, bank0::MAX_PARAMETERS};
use std::time::Duration;
use thiserror::Error;

/// What to launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchRequest<'a> {
    /// Name for reports.
    pub kernel: &'a str,
    /// Code address of its first instruction in bytes.
    pub entry: u32,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// Static shared memory in bytes.
    pub static_shared: u32,
    /// Shared memory behind it in bytes.
    pub dynamic_shared: u32,
    /// Local memory that a thread needs in bytes; the device may give it more.
    pub local_bytes: u32,
    /// Bytes of constant bank 0 from the first parameter on.
    pub parameters: &'a [u8],
    /// Where the launch counts, and may be told to end.
    pub progress: Option<&'a Progress>,
    /// How long it may take from now on, by the host's clock.
    pub time_limit: Option<Duration>,
}

/// Most blocks of a grid in x, y and z (assigned): their number fits into 63 bits.
pub const MAX_GRID: [u32; 3] = [i32::MAX as u32, u16::MAX as u32, u16::MAX as u32];

/// Why a launch did not begin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// An extent of 0, or too many threads.
    #[error(
        "block of {0:?} threads: each extent must be at least 1, all together at most {MAX_THREADS}"
    )]
    Block([u32; 3]),
    /// An extent of 0, or too many blocks.
    #[error("grid of {0:?} blocks: each extent must be at least 1, all at most {MAX_GRID:?}")]
    Grid([u32; 3]),
    /// Too much local memory.
    #[error("{0} bytes of local memory asked for, {MAX_LOCAL} are available")]
    Local(u32),
    /// Too much shared memory.
    #[error("{0} bytes of shared memory asked for, {MAX_SHARED} are available")]
    Shared(u64),
    /// Too many parameter bytes.
    #[error("{0} bytes of parameters, {MAX_PARAMETERS} are the most")]
    Parameters(usize),
    /// Not an instruction of the module.
    #[error("entry point {0:#x} is no instruction of the module")]
    Entry(u32),
}

/// Why the host cannot reach device memory.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Not inside one allocation.
    #[error("device address {address:#x} with {bytes} bytes is not inside an allocation")]
    Unmapped {
        /// Device address.
        address: u64,
        /// Size of the copy.
        bytes: u64,
    },
    /// Memory that cannot be given back.
    #[error("no allocation begins at device address {address:#x}, so it cannot be freed")]
    NotAllocated {
        /// Device address.
        address: u64,
    },
    /// More than the simulator allows.
    #[error("out of device memory: {bytes} bytes asked for, {available} available")]
    OutOfMemory {
        /// Size asked for.
        bytes: u64,
        /// What is left of the limit.
        available: u64,
    },
    /// Every range of addresses that is large enough has an allocation.
    #[error("out of device addresses: {allocations} allocations exist; free some")]
    OutOfAddresses {
        /// Allocations that exist.
        allocations: usize,
    },
}
