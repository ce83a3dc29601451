//! A device and its memory.

use super::argument::Element;
use super::kernel::Module;
use super::{DeviceError, Driver, Simulator};
use crate::object::Object;
use crate::sim::SimConfig;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    driver: Arc<Mutex<dyn Driver>>,
}

impl Device {
    /// A simulated device.
    pub fn simulator(config: SimConfig) -> Device {
        Device::new(Simulator::new(config))
    }

    /// A device behind a driver.
    pub fn new(driver: impl Driver + 'static) -> Device {
        Device {
            driver: Arc::new(Mutex::new(driver)),
        }
    }

    /// The driver. A thread that panicked while it held the driver left it between two operations, which is a valid state.
    pub(super) fn driver(&self) -> MutexGuard<'_, dyn Driver + 'static> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that tells devices apart.
    pub(super) fn identity(&self) -> usize {
        Arc::as_ptr(&self.driver).cast::<()>() as usize
    }

    /// What it is.
    pub fn name(&self) -> String {
        self.driver().name()
    }

    /// New memory of zero bytes.
    ///
    /// # Errors
    /// When there is not so much.
    pub fn allocate(&self, bytes: u64) -> Result<Buffer, DeviceError> {
        let address = self.driver().allocate(bytes)?;
        Ok(Buffer {
            device: self.clone(),
            address,
            bytes,
        })
    }

    /// New memory with these elements.
    ///
    /// # Errors
    /// When there is not so much.
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
    device: Device,
    address: u64,
    bytes: u64,
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

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Overwrites its beginning.
    ///
    /// # Errors
    /// When the elements do not fit.
    pub fn write<T: Element>(&self, elements: &[T]) -> Result<(), DeviceError> {
        let mut bytes = Vec::with_capacity(elements.len() * T::BYTES);
        elements.iter().for_each(|e| e.put(&mut bytes));
        Ok(self.device.driver().write(self.address, &bytes)?)
    }

    /// Overwrites it with zeros.
    ///
    /// # Errors
    /// When the device fails.
    pub fn clear(&self) -> Result<(), DeviceError> {
        const PIECE: u64 = 1 << 20;
        let zeros = vec![0; PIECE.min(self.bytes) as usize];
        let mut driver = self.device.driver();
        for offset in (0..self.bytes).step_by(PIECE as usize) {
            let bytes = PIECE.min(self.bytes - offset) as usize;
            driver.write(self.address + offset, &zeros[..bytes])?;
        }
        Ok(())
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
        self.device.driver().read(self.address, &mut bytes)?;
        Ok(bytes.chunks_exact(T::BYTES).map(T::get).collect())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // A buffer exists only while its allocation does, so this cannot fail.
        let _ = self.device.driver().free(self.address);
    }
}
