//! Memory on a device, as elements of a type.
//!
//! A [`Buffer`] is a part of an allocation, at first all of it; slices and casts are others of the same allocation,
//! which is given back with the last of them. Elements are what [`Pod`] says: plain bytes, in the order of the host,
//! which is the device's (little-endian).

use super::error::DeviceError;
use super::no_room;
use super::shared::Shared;
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_endian = "big")]
compile_error!("buffers are little-endian, and so must be the host");

/// An address on the device that no [`Buffer`] stands for: part of a buffer, a data object, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePointer(pub u64);

/// An allocation; given back when dropped.
pub(super) struct Memory {
    shared: Arc<Shared>,
    address: u64,
    /// Whether it is given back with its last buffer.
    owned: AtomicBool,
}

impl Drop for Memory {
    fn drop(&mut self) {
        if *self.owned.get_mut() {
            // It exists only while its allocation does, unless somebody freed its address.
            let _ = self.shared.free(self.address);
        }
    }
}

/// Memory on a device with elements of type `T`. It is given back with the last buffer that has a part of it.
///
/// All methods take `&self`: a device's memory is shared, among threads and with the launches that run.
pub struct Buffer<T: Pod = u8> {
    memory: Arc<Memory>,
    /// Where it begins in its allocation, in bytes.
    offset: u64,
    /// Elements.
    len: u64,
    elements: PhantomData<fn() -> T>,
}

impl<T: Pod> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        write!(f, "Buffer<{name}>({} at {:#x})", self.len, self.address())
    }
}

impl Buffer<u8> {
    /// A whole allocation.
    pub(super) fn new(shared: Arc<Shared>, address: u64, bytes: u64) -> Buffer<u8> {
        let memory = Memory {
            shared,
            address,
            owned: AtomicBool::new(true),
        };
        Buffer {
            memory: Arc::new(memory),
            offset: 0,
            len: bytes,
            elements: PhantomData,
        }
    }
}

impl<T: Pod> Buffer<T> {
    const ELEMENT: u64 = size_of::<T>() as u64;

    /// Its address in global memory.
    pub fn address(&self) -> u64 {
        self.memory.address + self.offset
    }

    /// Elements.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.len * Self::ELEMENT
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The allocation, for who must keep it alive.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    fn shared(&self) -> &Shared {
        &self.memory.shared
    }

    /// The same buffer; messages call its allocation `name` from now on, and do not say where the host made it.
    pub fn named(self, name: impl Into<String>) -> Self {
        let mut allocations = self.shared().allocations();
        allocations.set_name(self.memory.address, name.into());
        drop(allocations);
        self
    }

    /// Its address, and the care for its allocation: nobody gives the memory back until [`super::Device::free`] is
    /// called with the address where the allocation begins. Other buffers of the allocation stay usable until then.
    pub fn into_raw(self) -> DevicePointer {
        self.memory.owned.store(false, Ordering::Relaxed);
        DevicePointer(self.address())
    }

    /// The bytes of a range of elements of a type: offset in the buffer and size.
    fn range<U: Pod>(&self, first: u64, count: u64) -> Result<(u64, u64), DeviceError> {
        let size = size_of::<U>() as u64;
        let (start, bytes) = (first.checked_mul(size), count.checked_mul(size));
        let end = start.zip(bytes).and_then(|(s, b)| s.checked_add(b));
        match (start, bytes, end) {
            (Some(start), Some(bytes), Some(end)) if end <= self.bytes() => Ok((start, bytes)),
            _ => Err(DeviceError::OutOfRange {
                first,
                count,
                len: self.bytes().checked_div(size).unwrap_or(0),
            }),
        }
    }

    /// A part of it: elements by number. The part keeps the memory of the whole alive.
    ///
    /// # Errors
    /// When the range ends behind the buffer or before it begins.
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Result<Buffer<T>, DeviceError> {
        let first = match range.start_bound() {
            Bound::Included(&first) => first,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => self.len,
        };
        let outside = || DeviceError::OutOfRange {
            first,
            count: end.saturating_sub(first),
            len: self.len,
        };
        let len = end.checked_sub(first).ok_or_else(outside)?;
        let (start, _) = self.range::<T>(first, len)?;
        Ok(self.part(start, len))
    }

    /// The same bytes as elements of another type.
    ///
    /// # Errors
    /// When they are no whole number of elements, or do not begin where such an element may be.
    pub fn cast<U: Pod>(&self) -> Result<Buffer<U>, DeviceError> {
        let size = size_of::<U>() as u64;
        let bytes = self.bytes();
        if size == 0 || !bytes.is_multiple_of(size) {
            return Err(DeviceError::ElementSize {
                bytes,
                element: size_of::<U>(),
            });
        }
        if !self.address().is_multiple_of(align_of::<U>() as u64) {
            return Err(DeviceError::ElementAlignment {
                address: self.address(),
                element: align_of::<U>(),
            });
        }
        Ok(self.part(0, bytes / size))
    }

    fn part<U: Pod>(&self, start: u64, len: u64) -> Buffer<U> {
        Buffer {
            memory: self.memory.clone(),
            offset: self.offset + start,
            len,
            elements: PhantomData,
        }
    }

    /// Overwrites its beginning, with elements of any type.
    ///
    /// # Errors
    /// When the elements do not fit.
    pub fn write<U: Pod>(&self, elements: &[U]) -> Result<(), DeviceError> {
        let (_, _) = self.range::<U>(0, elements.len() as u64)?;
        let driver = self.shared().driver();
        Ok(driver.write(self.address(), bytemuck::cast_slice(elements))?)
    }

    /// Overwrites elements from the one with number `first` on.
    ///
    /// # Errors
    /// When the elements do not fit.
    pub fn write_at(&self, first: u64, elements: &[T]) -> Result<(), DeviceError> {
        let (start, _) = self.range::<T>(first, elements.len() as u64)?;
        let driver = self.shared().driver();
        Ok(driver.write(self.address() + start, bytemuck::cast_slice(elements))?)
    }

    /// Overwrites it with zeros.
    ///
    /// # Errors
    /// When the device fails.
    pub fn clear(&self) -> Result<(), DeviceError> {
        Ok(self.shared().driver().clear(self.address(), self.bytes())?)
    }

    /// All its elements.
    ///
    /// # Errors
    /// When the device fails, or the host has no room for them.
    pub fn to_vec(&self) -> Result<Vec<T>, DeviceError> {
        self.elements(0, self.len)
    }

    /// All its bytes, as elements of any type.
    ///
    /// # Errors
    /// When its size is no multiple of the element's; when the device fails, or the host has no room for them.
    pub fn read<U: Pod>(&self) -> Result<Vec<U>, DeviceError> {
        let (bytes, size) = (self.bytes(), size_of::<U>() as u64);
        if size == 0 || !bytes.is_multiple_of(size) {
            return Err(DeviceError::ElementSize {
                bytes,
                element: size_of::<U>(),
            });
        }
        self.elements(0, bytes / size)
    }

    /// Some of its elements, by number.
    ///
    /// # Errors
    /// When the range is not inside; when the device fails, or the host has no room for them.
    pub fn read_range(&self, range: impl RangeBounds<u64>) -> Result<Vec<T>, DeviceError> {
        self.slice(range)?.to_vec()
    }

    /// Copies elements from the one with number `first` on, as many as `destination` takes.
    ///
    /// # Errors
    /// When there are not so many; when the device fails.
    pub fn read_at(&self, first: u64, destination: &mut [T]) -> Result<(), DeviceError> {
        let (start, _) = self.range::<T>(first, destination.len() as u64)?;
        let bytes = bytemuck::cast_slice_mut(destination);
        Ok(self.shared().driver().read(self.address() + start, bytes)?)
    }

    fn elements<U: Pod>(&self, first: u64, count: u64) -> Result<Vec<U>, DeviceError> {
        let (start, bytes) = self.range::<U>(first, count)?;
        let room = usize::try_from(count).ok();
        let room = room.and_then(|count| bytemuck::allocation::try_zeroed_vec::<U>(count).ok());
        let mut elements = room.ok_or_else(|| no_room(bytes))?;
        let driver = self.shared().driver();
        driver.read(
            self.address() + start,
            bytemuck::cast_slice_mut(&mut elements),
        )?;
        Ok(elements)
    }

    /// Copies its elements to another buffer of as many, on the same device or another one. Where both have the same
    /// memory, it is as if all were read before anything is written.
    ///
    /// # Errors
    /// When the other has more or fewer; when a device fails.
    pub fn copy_to(&self, other: &Buffer<T>) -> Result<(), DeviceError> {
        if self.len != other.len {
            return Err(DeviceError::CopyLength {
                from: self.len,
                to: other.len,
            });
        }
        let (from, to) = (self.shared().driver(), other.shared().driver());
        if Arc::ptr_eq(&self.memory.shared, &other.memory.shared) {
            return Ok(from.copy(self.address(), other.address(), self.bytes())?);
        }
        let mut bytes = vec![0; usize::try_from(self.bytes()).map_err(|_| no_room(self.bytes()))?];
        from.read(self.address(), &mut bytes)?;
        Ok(to.write(other.address(), &bytes)?)
    }
}

impl<T: Pod> Clone for Buffer<T> {
    /// The same memory: what one writes, the other reads.
    fn clone(&self) -> Self {
        self.part(0, self.len)
    }
}

impl Memory {
    /// The number of the device it is on.
    pub fn device_identity(&self) -> usize {
        Shared::identity(&self.shared)
    }
}
