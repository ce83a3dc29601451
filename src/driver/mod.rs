//! Devices: memory, modules, launches.
//!
//! [`Device`] is what users hold:
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cranelift_thisgpu::driver::{Device, Grid};
//! use cranelift_thisgpu::sim::SimConfig;
//! let device = Device::simulator(SimConfig::default());
//! let module = device.load_elf(&std::fs::read("saxpy.elf")?)?;
//! let (x, y) = (device.upload(&[1.0f32; 1000])?, device.upload(&[2.0f32; 1000])?);
//! let report = module.kernel("saxpy")?.launch(Grid::for_elems(1000, 256)).arg(3.0f32).arg(&x).arg(&y).arg(1000).run()?;
//! println!("{} instructions", report.stats.thread_instructions);
//! let result: Vec<f32> = device.download(&y)?;
//! # Ok(())
//! # }
//! ```
//!
//! Below it is the object-safe [`Driver`]: the simulator is one, hardware can be another. Loading an object ([`link`]) places its data
//! in device memory, its functions one behind the other, and fills in the addresses. Arguments are checked against the kernel's
//! parameters before anything runs ([`argument`]). A device knows what is allocated on it, how large and where in the host's program
//! ([`Allocation`]), and says at its end what was forgotten ([`Device::check_leaks`]).

mod allocations;
pub mod argument;
mod device;
mod error;
mod kernel;
pub mod link;
#[cfg(feature = "sim")]
mod simulator;
#[cfg(all(test, feature = "sim", feature = "asm"))]
mod tests;

pub use allocations::{Allocation, Origin};
pub use argument::{Argument, DevicePointer, Element};
pub use device::{Buffer, Device};
pub use error::DeviceError;
pub use kernel::{Grid, Kernel, Launch, Module};
#[cfg(feature = "sim")]
pub use simulator::Simulator;

use crate::launch::MemoryError;
use crate::launch::{Image, LaunchError, LaunchRequest, Report};
use thiserror::Error;

/// A module loaded by a [`Driver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u64);

/// Why a driver refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriverError {
    /// Memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A launch that is not possible.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The module is not loaded.
    #[error("no such module")]
    NoModule,
    /// The device itself failed.
    #[error("device: {0}")]
    Device(String),
}

/// What a device can do. Addresses are those of its global memory. Every operation is complete when it returns, except that a launch of
/// an asynchronous device may end at the next [`Driver::synchronize`].
pub trait Driver: Send {
    /// What it is, for reports.
    fn name(&self) -> String;

    /// New memory, aligned to at least 256 bytes. Its bytes are zero, and undefined to a device that checks.
    ///
    /// # Errors
    /// When there is not so much.
    fn allocate(&mut self, bytes: u64) -> Result<u64, DriverError>;

    /// Gives memory back.
    ///
    /// # Errors
    /// When no allocation begins there.
    fn free(&mut self, address: u64) -> Result<(), DriverError>;

    /// Copies to the device.
    ///
    /// # Errors
    /// When the range is not inside one allocation.
    fn write(&mut self, address: u64, source: &[u8]) -> Result<(), DriverError>;

    /// Overwrites with zeros.
    ///
    /// # Errors
    /// When the range is not inside one allocation.
    fn clear(&mut self, address: u64, bytes: u64) -> Result<(), DriverError>;

    /// Copies from the device.
    ///
    /// # Errors
    /// When the range is not inside one allocation.
    fn read(&mut self, address: u64, destination: &mut [u8]) -> Result<(), DriverError>;

    /// Loads linked code.
    ///
    /// # Errors
    /// When the device has no room for it.
    fn load(&mut self, image: Image) -> Result<ModuleId, DriverError>;

    /// Forgets a module.
    ///
    /// # Errors
    /// When it is not loaded.
    fn unload(&mut self, module: ModuleId) -> Result<(), DriverError>;

    /// Runs a kernel. A fault of the program is in the report, not an error.
    ///
    /// # Errors
    /// When the launch is not possible; nothing has run then.
    fn launch(&mut self, module: ModuleId, request: &LaunchRequest) -> Result<Report, DriverError>;

    /// Waits until all launches have ended.
    ///
    /// # Errors
    /// When the device failed.
    fn synchronize(&mut self) -> Result<(), DriverError>;
}
