//! A device and its memory.

#[cfg(feature = "sim")]
use super::Simulator;
use super::allocations::{Allocation, Allocations, Origin};
use super::argument::{DevicePointer, Element};
use super::kernel::Module;
use super::{DeviceError, Driver, DriverError};
use crate::object::{Linker, Object};
#[cfg(feature = "sim")]
use crate::sim::SimConfig;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device. Clones are the same device.
///
/// Its life ends with its last clone, module or kernel. A buffer that is left then stays usable, but counts as forgotten
/// ([`Device::check_leaks`]).
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
    /// One for all clones: the end of the last is the end of the device's life.
    _life: Arc<Life>,
}

/// What buffers need of a device.
struct Shared {
    driver: Mutex<Box<dyn Driver>>,
    allocations: Mutex<Allocations>,
}

impl Shared {
    /// The driver. A thread that panicked while it held the driver left it between two operations, which is a valid state.
    fn driver(&self) -> MutexGuard<'_, Box<dyn Driver>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allocations(&self) -> MutexGuard<'_, Allocations> {
        self.allocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self, address: u64) -> Result<(), DriverError> {
        self.driver().free(address)?;
        self.allocations().remove(address);
        Ok(())
    }
}

/// Ends with the last handle of a device.
struct Life(Arc<Shared>);

impl Drop for Life {
    fn drop(&mut self) {
        let allocations = self.0.allocations();
        if allocations.check {
            for allocation in allocations.list() {
                log::warn!("leak: {allocation}, is still allocated at the end of the device");
            }
        }
    }
}

impl Device {
    /// A simulated device.
    #[cfg(feature = "sim")]
    pub fn simulator(config: SimConfig) -> Device {
        Device::new(Simulator::new(config))
    }

    /// A device behind a driver.
    pub fn new(driver: impl Driver + 'static) -> Device {
        let shared = Arc::new(Shared {
            driver: Mutex::new(Box::new(driver)),
            allocations: Mutex::default(),
        });
        Device {
            _life: Arc::new(Life(shared.clone())),
            shared,
        }
    }

    pub(super) fn driver(&self) -> MutexGuard<'_, Box<dyn Driver>> {
        self.shared.driver()
    }

    /// A number that tells devices apart.
    pub(super) fn identity(&self) -> usize {
        Arc::as_ptr(&self.shared).cast::<()>() as usize
    }

    /// All that is allocated, in the order of addresses: buffers, data of modules, and what [`Buffer::into_raw`] gave away.
    pub fn live_allocations(&self) -> Vec<Allocation> {
        self.shared.allocations().list()
    }

    /// Whether the device, when its last handle goes, logs a warning for everything that is still allocated. Off at first. Drop buffers
    /// before the device then: what lives longer is reported as what was forgotten.
    pub fn check_leaks(&self, check: bool) {
        self.shared.allocations().check = check;
    }

    /// What it is.
    pub fn name(&self) -> String {
        self.driver().name()
    }

    /// New memory that nobody has written. Its bytes are zero; a kernel that reads them relies on that, which a checking simulator finds.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        self.allocate_for(bytes, Origin::Host(Location::caller()))
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
        let address = self.driver().allocate(bytes)?;
        self.shared.allocations().add(address, bytes, origin);
        Ok(Buffer {
            shared: self.shared.clone(),
            address,
            bytes,
            owned: true,
        })
    }

    /// Gives back memory that [`Buffer::into_raw`] gave away.
    ///
    /// # Errors
    /// When no allocation begins there.
    pub fn free(&self, pointer: DevicePointer) -> Result<(), DeviceError> {
        Ok(self.shared.free(pointer.0)?)
    }

    /// New memory with these elements.
    ///
    /// # Errors
    /// When there is not so much.
    #[track_caller]
    pub fn upload<T: Element>(&self, elements: &[T]) -> Result<Buffer, DeviceError> {
        let buffer = self.allocate((elements.len() * T::BYTES) as u64)?;
        buffer.write(elements)?;
        Ok(buffer)
    }

    /// All elements of a buffer.
    ///
    /// # Errors
    /// When its size is no multiple of the element's.
    pub fn download<T: Element>(&self, buffer: &Buffer) -> Result<Vec<T>, DeviceError> {
        buffer.read()
    }

    /// Loads code: an [`Object`], or what has one.
    ///
    /// # Errors
    /// Symbols without a value; no room.
    pub fn load(&self, code: &impl AsRef<Object>) -> Result<Module, DeviceError> {
        Module::load(self.clone(), code.as_ref())
    }

    /// Links code and loads it: several [`Object`]s, or what has them. Messages call them `object 1` and so on; a
    /// [`Linker`] gives them names.
    ///
    /// # Errors
    /// What does not link, see [`Linker::link`]; no room.
    pub fn load_all<'a, C: AsRef<Object> + 'a>(
        &self,
        codes: impl IntoIterator<Item = &'a C>,
    ) -> Result<Module, DeviceError> {
        let mut linker = Linker::new();
        for (index, code) in codes.into_iter().enumerate() {
            linker = linker.add(format!("object {}", index + 1), code);
        }
        self.load(&linker.link().map_err(DeviceError::Link)?)
    }

    /// Loads an ELF object.
    ///
    /// # Errors
    /// No object of this machine; symbols without a value; no room.
    pub fn load_elf(&self, bytes: &[u8]) -> Result<Module, DeviceError> {
        Module::load(self.clone(), &Object::read(bytes)?)
    }

    /// Waits until all launches have ended.
    ///
    /// # Errors
    /// When the device failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(self.driver().synchronize()?)
    }
}

/// Memory on a device; given back when dropped.
pub struct Buffer {
    shared: Arc<Shared>,
    address: u64,
    bytes: u64,
    /// Whether its memory is given back with it.
    owned: bool,
}

impl Buffer {
    /// Its address in global memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The number of the device it is on.
    pub(super) fn device_identity(&self) -> usize {
        Arc::as_ptr(&self.shared).cast::<()>() as usize
    }

    /// Its address, and the care for it: nobody gives the memory back until [`Device::free`] is called with the address.
    pub fn into_raw(mut self) -> DevicePointer {
        self.owned = false;
        DevicePointer(self.address)
    }

    /// Overwrites its beginning.
    ///
    /// # Errors
    /// When the elements do not fit.
    pub fn write<T: Element>(&self, elements: &[T]) -> Result<(), DeviceError> {
        let mut bytes = Vec::with_capacity(elements.len() * T::BYTES);
        elements.iter().for_each(|e| e.put(&mut bytes));
        self.write_at(0, &bytes)
    }

    /// Overwrites bytes from an offset on.
    pub(super) fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        // An offset behind the end of all addresses is outside of the buffer too.
        let address = self.address.saturating_add(offset);
        Ok(self.shared.driver().write(address, bytes)?)
    }

    /// Overwrites it with zeros.
    ///
    /// # Errors
    /// When the device fails.
    pub fn clear(&self) -> Result<(), DeviceError> {
        Ok(self.shared.driver().clear(self.address, self.bytes)?)
    }

    /// All its elements.
    ///
    /// # Errors
    /// When its size is no multiple of the element's.
    pub fn read<T: Element>(&self) -> Result<Vec<T>, DeviceError> {
        if !self.bytes.is_multiple_of(T::BYTES as u64) {
            return Err(DeviceError::ElementSize {
                bytes: self.bytes,
                element: T::BYTES,
            });
        }
        let mut bytes = vec![0; self.bytes as usize];
        self.shared.driver().read(self.address, &mut bytes)?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::get).collect())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.owned {
            // A buffer exists only while its allocation does, unless somebody freed its address.
            let _ = self.shared.free(self.address);
        }
    }
}
