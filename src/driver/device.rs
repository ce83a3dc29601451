//! A device and its memory.
//!
//! What it loads, and its streams, are methods of it beside [`super::Module`] and [`super::Stream`], which are made of
//! devices.

#[cfg(feature = "sim")]
use super::Simulator;
use super::buffer::{Buffer, DevicePointer};
use super::queue::Queue;
use super::shared::{Life, Shared};
use super::{DeviceError, DeviceProperties, Driver};
use crate::launch::{Allocation, Near, Origin};
#[cfg(feature = "sim")]
use crate::sim::SimConfig;
use bytemuck::Pod;
use std::panic::Location;
use std::sync::Arc;

/// A device. Clones are the same device.
///
/// Its life ends with its last clone, module or kernel. A buffer that is left then stays usable, but counts as
/// forgotten ([`Device::check_leaks`]).
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
    /// One for all clones: the end of the last is the end of the device's life.
    _life: Arc<Life>,
}

/// What makes simulated devices instead.
#[cfg(all(feature = "sim", feature = "unstable"))]
static SIMULATE: std::sync::OnceLock<fn(SimConfig) -> Device> = std::sync::OnceLock::new();

/// Lets [`Device::simulator`] give what `make` makes, for the whole process and from now on; once. So programs that
/// know of no other device run on one that compares.
#[cfg(all(feature = "sim", feature = "unstable"))]
pub fn simulate_with(make: fn(SimConfig) -> Device) {
    let _ = SIMULATE.set(make);
}

impl Device {
    /// A simulated device.
    #[cfg(feature = "sim")]
    pub fn simulator(config: SimConfig) -> Device {
        #[cfg(feature = "unstable")]
        if let Some(make) = SIMULATE.get() {
            return make(config);
        }
        Device::new(Simulator::new(config))
    }

    /// A device behind a driver.
    pub fn new(driver: impl Driver + 'static) -> Device {
        let shared = Arc::new(Shared::new(driver));
        Device {
            _life: Arc::new(Life(shared.clone())),
            shared,
        }
    }

    pub(super) fn driver(&self) -> &dyn Driver {
        self.shared.driver()
    }

    /// A number that tells devices apart; clones have the same.
    pub fn identity(&self) -> usize {
        Shared::identity(&self.shared)
    }

    pub(super) fn queue(&self) -> &Arc<Queue> {
        &self.shared.queue
    }

    /// All that is allocated, in the order in which it was: buffers, data of modules, and what [`Buffer::into_raw`]
    /// gave away.
    pub fn live_allocations(&self) -> Vec<Allocation> {
        self.shared.allocations().list()
    }

    /// The allocation that is nearest to an address.
    pub(super) fn nearest(&self, address: u64) -> Option<Near> {
        self.shared.allocations().nearest(address)
    }

    /// Whether the device, when its last handle goes, logs a warning for everything that is still allocated. Off at
    /// first. Drop buffers before the device then: what lives longer is reported as what was forgotten.
    pub fn check_leaks(&self, check: bool) {
        self.shared.allocations().check = check;
    }

    /// What it is.
    pub fn name(&self) -> String {
        self.driver().name()
    }

    /// What it holds.
    pub fn properties(&self) -> DeviceProperties {
        self.driver().properties()
    }

    /// New memory that nobody has written. Its bytes are zero; a kernel that reads them relies on that, which a
    /// checking simulator finds.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        self.allocate_for(bytes, Origin::Host(Location::caller()))
    }

    /// New memory that nobody has written, for kernels alone, such as a heap of theirs: the host does not read what
    /// they leave there. So a copy of bytes that nobody wrote, the room between the fields of a structure, is no
    /// mistake there to a checking simulator, but the use of such a copy is.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn allocate_private(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        let buffer = self.allocate(bytes)?;
        self.driver().make_private(buffer.address())?;
        Ok(buffer)
    }

    /// New memory whose contents are zeros: a kernel may read them.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn allocate_zeroed(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        let buffer = self.allocate(bytes)?;
        buffer.clear()?;
        Ok(buffer)
    }

    pub(super) fn allocate_for(&self, bytes: u64, origin: Origin) -> Result<Buffer, DeviceError> {
        let mut allocations = self.shared.allocations();
        let address = self.driver().allocate(bytes)?;
        allocations.add(address, bytes, origin);
        Ok(Buffer::new(self.shared.clone(), address, bytes))
    }

    /// Gives back memory that [`Buffer::into_raw`] gave away.
    ///
    /// # Errors
    /// When no allocation begins there.
    pub fn free(&self, pointer: DevicePointer) -> Result<(), DeviceError> {
        Ok(self.shared.free(pointer.0)?)
    }

    /// New memory for so many elements; what [`Device::allocate`] says of its contents holds here too.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn allocate_of<T: Pod>(&self, elements: u64) -> Result<Buffer<T>, DeviceError> {
        let bytes = elements.checked_mul(size_of::<T>() as u64);
        // More bytes than there are numbers are too many for every device.
        self.allocate(bytes.unwrap_or(u64::MAX))?.cast()
    }

    /// New memory with so many elements of zero bytes: a kernel may read them.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn zeros<T: Pod>(&self, elements: u64) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.allocate_of(elements)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// New memory with these elements.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn upload<T: Pod>(&self, elements: &[T]) -> Result<Buffer<T>, DeviceError> {
        let buffer = self.allocate_of(elements.len() as u64)?;
        buffer.write(elements)?;
        Ok(buffer)
    }

    /// All bytes of a buffer, as elements of any type.
    ///
    /// # Errors
    /// When its size is no multiple of the element's.
    pub fn download<T: Pod>(&self, buffer: &Buffer<impl Pod>) -> Result<Vec<T>, DeviceError> {
        buffer.read()
    }

    /// Waits until all launches have ended that were asked for until now, on all streams.
    ///
    /// # Errors
    /// When the device failed; the oldest fault of a stream that nobody has got yet. The stream is clean then; others
    /// may have another one, which the next call returns.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.queue().synchronize()?;
        Ok(self.driver().synchronize()?)
    }
}
