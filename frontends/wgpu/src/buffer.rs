//! Buffers: memory of the device, or of the host where a program maps it.
//!
//! WebGPU lets a buffer that is mapped do nothing else but be copied, so that it is memory of the host alone: a copy
//! between it and the device's memory is what an upload and a download are. With `MAPPABLE_PRIMARY_BUFFERS` a mapped
//! buffer may be bound as well; then it is memory of the device with a shadow on the host, which is filled when it is
//! mapped and written back when it is unmapped.

use crate::host::HostMemory;
use cranelift_thisgpu::{Device, DeviceError};
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use wgpu_hal as hal;
use wgpu_types::BufferUses;

/// Memory of the device.
type DeviceMemory = cranelift_thisgpu::Buffer;

/// A buffer. Clones are the same one.
#[derive(Clone)]
pub struct Buffer {
    inner: Arc<Inner>,
}

struct Inner {
    bytes: u64,
    usage: BufferUses,
    memory: Memory,
    /// The range that is mapped, of a buffer with a shadow.
    mapped: Mutex<Option<Range<u64>>>,
}

enum Memory {
    Host(HostMemory),
    Device(DeviceMemory),
    Shadowed(DeviceMemory, HostMemory),
}

thread_local! {
    /// Where a buffer leaves itself when it is printed, while somebody waits for one.
    static HANDED: RefCell<Option<Vec<Buffer>>> = const { RefCell::new(None) };
}

impl fmt::Debug for Buffer {
    /// Prints; and hands the buffer over to `Buffer::of_binding` where that asks for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HANDED.with(|handed| {
            if let Ok(mut handed) = handed.try_borrow_mut()
                && let Some(handed) = &mut *handed
            {
                handed.push(self.clone());
            }
        });
        let place = match &self.inner.memory {
            Memory::Host(_) => "host",
            Memory::Device(_) => "device",
            Memory::Shadowed(..) => "device, mapped",
        };
        let bytes = self.inner.bytes;
        write!(f, "Buffer({bytes} bytes, {place})")
    }
}

/// Where what is printed goes to.
struct Nowhere;

impl Write for Nowhere {
    fn write_str(&mut self, _text: &str) -> fmt::Result {
        Ok(())
    }
}

/// The device cannot go on; what it says is logged.
fn failed(error: &DeviceError) -> hal::DeviceError {
    log::error!("{error}");
    hal::DeviceError::Lost
}

/// A call that wgpu's validation excludes, or that needs what cannot be made, such as a pipeline that renders. It is
/// only logged.
pub(crate) fn unexpected(what: &str) -> hal::DeviceError {
    log::error!("not expected of wgpu: {what}");
    hal::DeviceError::Unexpected
}

impl Buffer {
    /// New memory. Its bytes are zero, and undefined to a simulator that checks.
    pub(crate) fn new(
        device: &Device,
        desc: &hal::BufferDescriptor<'_>,
    ) -> Result<Buffer, hal::DeviceError> {
        let maps = BufferUses::MAP_READ | BufferUses::MAP_WRITE;
        let copies = BufferUses::COPY_SRC | BufferUses::COPY_DST;
        let on_host = || HostMemory::new(desc.size).ok_or(hal::DeviceError::OutOfMemory);
        let on_device = || {
            let memory = device.allocate(desc.size).map_err(|error| {
                log::debug!("a buffer of {} bytes: {error}", desc.size);
                hal::DeviceError::OutOfMemory
            })?;
            let named = match desc.label {
                Some(label) => memory.named(format!("buffer `{label}`")),
                None => memory,
            };
            Ok::<_, hal::DeviceError>(named)
        };
        let memory = if !desc.usage.intersects(maps) {
            Memory::Device(on_device()?)
        } else if (maps | copies).contains(desc.usage) {
            Memory::Host(on_host()?)
        } else {
            Memory::Shadowed(on_device()?, on_host()?)
        };
        let inner = Inner {
            bytes: desc.size,
            usage: desc.usage,
            memory,
            mapped: Mutex::new(None),
        };
        Ok(Buffer {
            inner: Arc::new(inner),
        })
    }

    /// The buffer of a binding. Its field is wgpu-hal's own, but everybody may print a binding, and a buffer that is
    /// printed hands itself over.
    pub(crate) fn of_binding(binding: &hal::BufferBinding<'_, Buffer>) -> Option<Buffer> {
        HANDED.with(|handed| *handed.borrow_mut() = Some(Vec::new()));
        let printed = write!(Nowhere, "{binding:?}");
        let handed = HANDED.with(|handed| handed.borrow_mut().take());
        match (printed, handed?.as_slice()) {
            (Ok(()), [buffer]) => Some(buffer.clone()),
            _ => None,
        }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.inner.bytes
    }

    /// The memory of the device; none of a buffer that only the host has.
    pub(crate) fn device_memory(&self) -> Option<&DeviceMemory> {
        match &self.inner.memory {
            Memory::Host(_) => None,
            Memory::Device(memory) | Memory::Shadowed(memory, _) => Some(memory),
        }
    }

    /// Whether both are the same buffer.
    #[cfg(test)]
    fn is(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Makes a range readable and writable for the host.
    pub(crate) fn map(&self, range: Range<u64>) -> Result<NonNull<u8>, hal::DeviceError> {
        let outside = || unexpected("a range to be mapped that is outside of its buffer");
        match &self.inner.memory {
            Memory::Host(host) => host.pointer(&range).ok_or_else(outside),
            Memory::Shadowed(memory, host) => {
                let start = host.pointer(&range).ok_or_else(outside)?;
                // SAFETY: a buffer is mapped once at a time, and nobody uses the shadow otherwise.
                let bytes = unsafe { host.bytes_mut(&range) }.ok_or_else(outside)?;
                let read = memory.read_at(range.start, bytes);
                read.map_err(|error| failed(&error))?;
                *self.mapped() = Some(range);
                Ok(start)
            }
            Memory::Device(_) => Err(unexpected("a buffer to be mapped that cannot be")),
        }
    }

    /// Takes over what the host wrote.
    pub(crate) fn unmap(&self) {
        let range = self.mapped().take();
        let (Memory::Shadowed(memory, host), Some(range)) = (&self.inner.memory, range) else {
            return;
        };
        if !self.inner.usage.contains(BufferUses::MAP_WRITE) {
            return;
        }
        // SAFETY: the program gave up its pointer with the mapping.
        if let Some(bytes) = unsafe { host.bytes(&range) }
            && let Err(error) = memory.write_at(range.start, bytes)
        {
            log::error!("{error}");
        }
    }

    fn mapped(&self) -> std::sync::MutexGuard<'_, Option<Range<u64>>> {
        (self.inner.mapped.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    /// Overwrites a range with zeros.
    pub(crate) fn clear(&self, range: &Range<u64>) -> Result<(), DeviceError> {
        match &self.inner.memory {
            // SAFETY: a buffer that commands use is not mapped.
            Memory::Host(host) => match unsafe { host.bytes_mut(range) } {
                Some(bytes) => bytes.fill(0),
                None => return Err(self.outside(range)),
            },
            Memory::Device(memory) | Memory::Shadowed(memory, _) => {
                memory.slice(range.clone())?.clear()?;
            }
        }
        Ok(())
    }

    /// Writes bytes from `offset` on.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let range = offset..offset + bytes.len() as u64;
        match &self.inner.memory {
            // SAFETY: as in `clear`.
            Memory::Host(host) => match unsafe { host.bytes_mut(&range) } {
                Some(target) => target.copy_from_slice(bytes),
                None => return Err(self.outside(&range)),
            },
            Memory::Device(memory) | Memory::Shadowed(memory, _) => {
                memory.write_at(offset, bytes)?;
            }
        }
        Ok(())
    }

    /// Reads bytes from `offset` on.
    pub(crate) fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), DeviceError> {
        let range = offset..offset + target.len() as u64;
        match &self.inner.memory {
            // SAFETY: as in `clear`.
            Memory::Host(host) => match unsafe { host.bytes(&range) } {
                Some(bytes) => target.copy_from_slice(bytes),
                None => return Err(self.outside(&range)),
            },
            Memory::Device(memory) | Memory::Shadowed(memory, _) => {
                memory.read_at(offset, target)?;
            }
        }
        Ok(())
    }

    /// Copies a range to another place, of the same buffer or of another one.
    pub(crate) fn copy(
        &self,
        from: Range<u64>,
        other: &Buffer,
        to: Range<u64>,
    ) -> Result<(), DeviceError> {
        match (&self.inner.memory, &other.inner.memory) {
            (Memory::Host(source), Memory::Host(target)) => {
                // SAFETY: buffers that commands use are not mapped.
                match unsafe { source.copy(&from, target, &to) } {
                    true => Ok(()),
                    false => Err(self.outside(&from)),
                }
            }
            // SAFETY: as above.
            (Memory::Host(source), _) => match unsafe { source.bytes(&from) } {
                Some(bytes) => other.write(to.start, bytes),
                None => Err(self.outside(&from)),
            },
            // SAFETY: as above.
            (_, Memory::Host(target)) => match unsafe { target.bytes_mut(&to) } {
                Some(bytes) => self.read(from.start, bytes),
                None => Err(other.outside(&to)),
            },
            (
                Memory::Device(source) | Memory::Shadowed(source, _),
                Memory::Device(target) | Memory::Shadowed(target, _),
            ) => source.slice(from)?.copy_to(&target.slice(to)?),
        }
    }

    fn outside(&self, range: &Range<u64>) -> DeviceError {
        DeviceError::OutOfRange {
            first: range.start,
            count: range.end.saturating_sub(range.start),
            len: self.inner.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_thisgpu::SimConfig;

    fn buffer(device: &Device, usage: BufferUses) -> Buffer {
        let desc = hal::BufferDescriptor {
            label: None,
            size: 64,
            usage,
            memory_flags: hal::MemoryFlags::empty(),
        };
        Buffer::new(device, &desc).expect("there is room")
    }

    /// The guard of the way by which a bound buffer is found: it breaks if wgpu-hal no longer prints it.
    #[test]
    fn a_binding_hands_its_buffer_over() {
        let device = Device::simulator(SimConfig::default());
        let first = buffer(&device, BufferUses::STORAGE_READ_WRITE);
        let second = buffer(&device, BufferUses::UNIFORM);
        for bound in [&first, &second, &first] {
            let binding = hal::BufferBinding::new_unchecked(bound, 16, None);
            let found = Buffer::of_binding(&binding).expect("it is handed over");
            assert!(found.is(bound));
        }
        // Printing by anybody else hands nothing over.
        assert_eq!(format!("{first:?}"), "Buffer(64 bytes, device)");
        HANDED.with(|handed| assert!(handed.borrow().is_none()));
    }

    #[test]
    fn memory_is_where_it_is_used() {
        let device = Device::simulator(SimConfig::default());
        let read = buffer(&device, BufferUses::MAP_READ | BufferUses::COPY_DST);
        assert!(read.device_memory().is_none());
        let write = buffer(&device, BufferUses::MAP_WRITE | BufferUses::COPY_SRC);
        assert!(write.device_memory().is_none());
        let bound = buffer(
            &device,
            BufferUses::STORAGE_READ_WRITE | BufferUses::COPY_SRC,
        );
        assert!(bound.device_memory().is_some());
        let both = buffer(
            &device,
            BufferUses::MAP_READ | BufferUses::STORAGE_READ_WRITE,
        );
        assert!(both.device_memory().is_some());
        assert!(both.map(0..64).is_ok());
        assert!(both.map(0..65).is_err());
        assert!(bound.map(0..64).is_err());
    }
}
