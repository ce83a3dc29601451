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
//! let saxpy = module.kernel("saxpy")?;
//! let report = saxpy.launch(Grid::for_elems(1000, 256)).arg(3.0f32).arg(&x).arg(&y).arg(1000).run()?;
//! println!("{} instructions", report.stats.thread_instructions);
//! let result: Vec<f32> = device.download(&y)?;
//! # Ok(())
//! # }
//! ```
//!
//! A device is used from any number of threads. One launch runs at a time, in the order in which they were asked for;
//! memory is allocated and copied meanwhile. [`Launch::run`] waits for its launch, [`Launch::enqueue`] puts it on a
//! [`Stream`] and gives a [`Pending`] to wait for.
//!
//! Below it is the object-safe [`Driver`]: the simulator is one, hardware can be another. Loading an object ([`link`])
//! places its data in device memory, its functions one behind the other, and fills in the addresses. Arguments are
//! checked against the kernel's parameters before anything runs ([`argument`]). A device knows what is allocated on it,
//! how large and where in the host's program ([`Allocation`]), and says at its end what was forgotten
//! ([`Device::check_leaks`]).

mod allocations;
pub mod argument;
mod buffer;
pub(crate) mod device;
mod error;
mod kernel;
mod launch;
pub mod link;
mod queue;
mod shared;
#[cfg(feature = "sim")]
mod simulator;
mod stream;
#[cfg(all(test, feature = "sim", feature = "asm"))]
mod tests;

pub use crate::launch::{Allocation, Origin};
pub use argument::Argument;
pub use buffer::{Buffer, DevicePointer};
pub use bytemuck::Pod;
pub use device::Device;
pub use error::DeviceError;
pub use kernel::{Kernel, Module};
pub use launch::{Grid, Launch};
#[cfg(feature = "sim")]
pub use simulator::Simulator;
pub use stream::{Elapsed, Event, Pending, Stream};

use crate::launch::{Image, LaunchError, LaunchRequest, MemoryError, Report};
pub use crate::properties::{DeviceProperties, Limit, Occupancy};
#[cfg(feature = "sim")]
use crate::sim::debug::Session;
#[cfg(feature = "sim")]
use std::any::Any;
use thiserror::Error;

/// A module loaded by a [`Driver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u64);

/// Why a driver refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
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

/// What a device can do. Addresses are those of its global memory. Every operation is complete when it returns.
///
/// Several threads call at the same time. A [`Device`] asks for one launch at a time, and goes on to allocate, copy,
/// load and free while it runs: a driver that locks its memory for a whole launch holds up all of these. What a launch
/// and a copy do to the same bytes at the same time is the program's affair, and no more than a mixture of both.
pub trait Driver: Send + Sync {
    /// What it is, for reports.
    fn name(&self) -> String;

    /// What it holds.
    fn properties(&self) -> DeviceProperties {
        DeviceProperties::ASSIGNED
    }

    /// Whether its reports count cycles, for [`Event`]s.
    fn counts_cycles(&self) -> bool {
        false
    }

    /// New memory, aligned to at least 256 bytes. Its bytes are zero, and undefined to a device that checks.
    ///
    /// # Errors
    /// When there is not so much.
    fn allocate(&self, bytes: u64) -> Result<u64, DriverError>;

    /// Lets kernels only read an allocation from now on: a store is a fault. The host goes on to write. A device that
    /// cannot do this need not.
    ///
    /// # Errors
    /// When no allocation begins there.
    fn protect(&self, _address: u64) -> Result<(), DriverError> {
        Ok(())
    }

    /// Promises that nobody but kernels uses what they store in an allocation from now on. A device that checks takes a
    /// store of what nobody wrote for a copy there, and for a mistake elsewhere.
    ///
    /// # Errors
    /// When no allocation begins there.
    fn make_private(&self, _address: u64) -> Result<(), DriverError> {
        Ok(())
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// When no allocation begins there.
    fn free(&self, address: u64) -> Result<(), DriverError>;

    /// Copies to the device.
    ///
    /// # Errors
    /// When the range is not inside one allocation.
    fn write(&self, address: u64, source: &[u8]) -> Result<(), DriverError>;

    /// Overwrites with zeros.
    ///
    /// # Errors
    /// When the range is not inside one allocation.
    fn clear(&self, address: u64, bytes: u64) -> Result<(), DriverError>;

    /// Copies from the device.
    ///
    /// # Errors
    /// When the range is not inside one allocation.
    fn read(&self, address: u64, destination: &mut [u8]) -> Result<(), DriverError>;

    /// Copies on the device, as if all were read before anything is written.
    ///
    /// # Errors
    /// When a range is not inside one allocation.
    fn copy(&self, from: u64, to: u64, bytes: u64) -> Result<(), DriverError> {
        let mut data = vec![0; usize::try_from(bytes).map_err(|_| no_room(bytes))?];
        self.read(from, &mut data)?;
        self.write(to, &data)
    }

    /// Loads linked code.
    ///
    /// # Errors
    /// When the device has no room for it.
    fn load(&self, image: Image) -> Result<ModuleId, DriverError>;

    /// Forgets a module.
    ///
    /// # Errors
    /// When it is not loaded.
    fn unload(&self, module: ModuleId) -> Result<(), DriverError>;

    /// Runs a kernel. A fault of the program is in the report, not an error.
    ///
    /// # Errors
    /// When the launch is not possible; nothing has run then.
    fn launch(&self, module: ModuleId, request: &LaunchRequest) -> Result<Report, DriverError>;

    /// A launch that goes on when it is told to; `keep` lives as long as it does.
    ///
    /// # Errors
    /// When the launch is not possible, or the device has no debugger.
    #[cfg(feature = "sim")]
    fn debug(
        &self,
        _module: ModuleId,
        _request: &LaunchRequest,
        _keep: Box<dyn Any + Send>,
    ) -> Result<Session, DriverError> {
        let name = self.name();
        let message = format!("unsupported: {name} has no debugger");
        Err(DriverError::Device(message))
    }

    /// Waits until all launches have ended.
    ///
    /// # Errors
    /// When the device failed.
    fn synchronize(&self) -> Result<(), DriverError>;
}

/// The host has not so much memory for a copy of the device's.
fn no_room(bytes: u64) -> DriverError {
    DriverError::Device(format!("the host has no room for {bytes} bytes"))
}
