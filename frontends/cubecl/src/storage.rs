//! Buffers of CubeCL as memory of the device.

use cranelift_thisgpu::{Buffer, Device, DeviceError};
use cubecl_environment::backtrace::BackTrace;
use cubecl_server::server::IoError;
use cubecl_server::storage::{ComputeStorage, StorageHandle, StorageId, StorageUtilization};
use hashbrown::HashMap;

/// Allocations on a device, by CubeCL's numbers for them.
pub struct DeviceStorage {
    device: Device,
    alignment: usize,
    memory: HashMap<StorageId, Buffer>,
    allocated: u64,
}

/// Memory that a kernel may be given: a part of an allocation, which it keeps alive.
#[derive(Clone, Debug)]
pub struct DeviceResource {
    buffer: Buffer,
}

impl DeviceResource {
    /// The memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl DeviceStorage {
    /// No allocations yet, which are to begin at multiples of `alignment` bytes.
    pub fn new(device: Device, alignment: u64) -> DeviceStorage {
        DeviceStorage {
            device,
            alignment: alignment as usize,
            memory: HashMap::new(),
            allocated: 0,
        }
    }
}

impl ComputeStorage for DeviceStorage {
    type Resource = DeviceResource;

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn get(&mut self, handle: &StorageHandle) -> Result<DeviceResource, IoError> {
        let found = self.memory.get(&handle.id);
        let buffer = found.ok_or_else(|| IoError::StorageHandleNotFound {
            reason: format!("{} is no allocation of the device", handle.id).into(),
            backtrace: BackTrace::capture(),
        })?;
        let (start, size) = (handle.offset(), handle.size());
        let buffer = buffer.slice(start..start.saturating_add(size));
        let buffer = buffer.map_err(io_error)?;
        Ok(DeviceResource { buffer })
    }

    fn alloc(&mut self, size: u64) -> Result<StorageHandle, IoError> {
        let buffer = self.device.allocate(size);
        let buffer = buffer.map_err(|error| {
            log::debug!("an allocation of {size} bytes failed: {error}");
            IoError::OutOfMemory {
                size,
                backtrace: BackTrace::capture(),
            }
        })?;
        let id = StorageId::new();
        self.memory.insert(id, buffer);
        self.allocated += size;
        Ok(StorageHandle::new(
            id,
            StorageUtilization { offset: 0, size },
        ))
    }

    fn dealloc(&mut self, id: StorageId) {
        if let Some(buffer) = self.memory.remove(&id) {
            self.allocated -= buffer.bytes();
        }
    }

    fn flush(&mut self) {}

    fn bytes_allocated(&self) -> u64 {
        self.allocated
    }
}

/// An error of the device where CubeCL asks for memory.
pub(crate) fn io_error(error: DeviceError) -> IoError {
    IoError::Unknown {
        description: error.to_string(),
        backtrace: BackTrace::capture(),
    }
}
