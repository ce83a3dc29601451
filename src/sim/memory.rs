//! Memory: the windows of an address, bounds, alignment.
//!
//! A generic 64-bit address lies in shared memory from [`SHARED_BASE`], in local memory from [`LOCAL_BASE`], elsewhere
//! in global memory. Values are little-endian.

pub(crate) mod atomic;
pub(crate) mod banks;
pub(crate) mod bytes;
pub(crate) mod global;
pub(crate) mod local;
pub(crate) mod strong;
pub(crate) mod words;

use crate::abi::{LOCAL_WINDOW as LOCAL_BASE, SHARED_WINDOW as SHARED_BASE};
use crate::launch::{AccessKind, FaultKind, Window};
use crate::sim::memory::bytes::Bytes;
use crate::sim::memory::global::Table;
use crate::sim::memory::local::Local;
use crate::sim::memory::strong::Concurrency;

/// Bytes from either base that belong to the window (assigned).
pub(super) const WINDOW: u64 = 1 << 32;
/// Shared memory a CTA may have (assigned).
pub const MAX_SHARED: u32 = crate::abi::MAX_SHARED;

/// A checked place: in bounds and aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Allocation and offset.
    Global(usize, usize),
    /// Offset.
    Shared(usize),
    /// Offset in the memory of the lane.
    Local(usize),
}

impl Location {
    /// The place `bytes` further on, which must be in bounds too.
    pub fn plus(self, bytes: usize) -> Location {
        match self {
            Location::Global(allocation, offset) => Location::Global(allocation, offset + bytes),
            Location::Shared(offset) => Location::Shared(offset + bytes),
            Location::Local(offset) => Location::Local(offset + bytes),
        }
    }
}

/// The window that an address lies in, and where; `window` none: the address is generic.
#[inline]
pub fn in_window(window: Option<Window>, address: u64) -> (Window, u64) {
    match window {
        Some(window) => (window, address),
        None => match address {
            SHARED_BASE.. if address - SHARED_BASE < WINDOW => {
                (Window::Shared, address - SHARED_BASE)
            }
            LOCAL_BASE.. if address - LOCAL_BASE < WINDOW => (Window::Local, address - LOCAL_BASE),
            _ => (Window::Global, address),
        },
    }
}

/// The memories that a warp sees.
pub struct Memories<'a> {
    /// The device's.
    pub global: &'a Table,
    /// The CTA's.
    pub shared: &'a mut Bytes,
    /// The warp's.
    pub local: &'a mut Local,
}

impl Memories<'_> {
    /// Checks an access; `window` none: the address is generic.
    ///
    /// # Errors
    /// Misaligned or out of bounds; not a load, of what is only read.
    #[inline]
    pub fn locate(
        &self,
        access: AccessKind,
        window: Option<Window>,
        address: u64,
        bytes: u32,
    ) -> Result<Location, FaultKind> {
        let (window, address) = in_window(window, address);
        if address & u64::from(bytes - 1) != 0 {
            return Err(FaultKind::Misaligned {
                access,
                window,
                address,
                bytes,
            });
        }
        let inside = |size: usize| address + u64::from(bytes) <= size as u64;
        let found = match window {
            Window::Global => match self.global.find(address, u64::from(bytes)) {
                Some((index, _))
                    if access != AccessKind::Load && !self.global.is_writable(index) =>
                {
                    return Err(FaultKind::ReadOnly {
                        access,
                        address,
                        bytes,
                    });
                }
                found => found.map(|(index, offset)| Location::Global(index, offset)),
            },
            Window::Shared => {
                inside(self.shared.data().len()).then_some(Location::Shared(address as usize))
            }
            Window::Local => {
                inside(self.local.size() as usize).then_some(Location::Local(address as usize))
            }
        };
        found.ok_or(match window {
            Window::Local if (address as i32) < 0 => FaultKind::StackOverflow {
                access,
                offset: address as i32,
                limit: self.local.size(),
            },
            _ => FaultKind::OutOfBounds {
                access,
                window,
                address,
                bytes,
            },
        })
    }

    /// Whether all bytes of a place were written; true when that is not tracked.
    pub fn is_written(&self, lane: usize, location: Location, bytes: u32) -> bool {
        let bytes = bytes as usize;
        match location {
            Location::Global(index, offset) => self.global.words(index).is_written(offset, bytes),
            Location::Shared(offset) => self.shared.is_written(offset, bytes),
            Location::Local(offset) => self.local.is_written(lane, offset, bytes),
        }
    }

    /// The value at a place, zero-extended.
    #[inline]
    pub fn load(&self, lane: usize, location: Location, bytes: u32) -> u128 {
        match location {
            Location::Global(index, offset) => self.global.words(index).load(offset, bytes),
            Location::Shared(offset) => little_endian(self.shared.data(), offset, bytes),
            Location::Local(offset) => self.local.load(lane, offset, bytes),
        }
    }

    /// Writes the low `bytes` of a value.
    #[inline]
    pub fn store(&mut self, lane: usize, location: Location, bytes: u32, value: u128) {
        let source = value.to_le_bytes();
        let source = &source[..bytes as usize];
        match location {
            Location::Global(index, offset) => self.global.words(index).store(offset, bytes, value),
            Location::Shared(offset) => self.shared.store(offset, source),
            Location::Local(offset) => self.local.store(lane, offset, bytes, value),
        }
    }
}

impl Memories<'_> {
    /// What a strong load finds: as [`Memories::load`] where nobody else is there.
    #[inline]
    pub fn load_strong(
        &self,
        lane: usize,
        location: Location,
        bytes: u32,
        concurrency: Concurrency,
    ) -> u128 {
        match location {
            Location::Global(index, offset) => {
                let words = self.global.words(index);
                words.load_strong(offset, bytes, concurrency)
            }
            _ => self.load(lane, location, bytes),
        }
    }

    /// A strong store.
    #[inline]
    pub fn store_strong(
        &mut self,
        lane: usize,
        location: Location,
        bytes: u32,
        value: u128,
        concurrency: Concurrency,
    ) {
        match location {
            Location::Global(index, offset) => {
                let words = self.global.words(index);
                words.store_strong(offset, bytes, value, concurrency);
            }
            _ => self.store(lane, location, bytes, value),
        }
    }

    /// Replaces the 1 to 8 bytes at a place by what `change` makes of them, if anything; what was there.
    pub fn modify(
        &mut self,
        lane: usize,
        location: Location,
        bytes: u32,
        concurrency: Concurrency,
        change: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        if let Location::Global(index, offset) = location {
            let words = self.global.words(index);
            return words.modify(offset, bytes, concurrency, change);
        }
        let old = self.load(lane, location, bytes) as u64;
        if let Some(new) = change(old) {
            self.store(lane, location, bytes, new.into());
        }
        old
    }

    /// Marks a place as not written: what was stored there was undefined.
    pub fn forget(&mut self, lane: usize, location: Location, bytes: u32) {
        let bytes = bytes as usize;
        match location {
            Location::Global(index, offset) => self.global.words(index).forget(offset, bytes),
            Location::Shared(offset) => self.shared.forget(offset, bytes),
            Location::Local(offset) => self.local.forget(lane, offset, bytes),
        }
    }
}

/// A little-endian number of 1 to 16 bytes.
#[inline]
pub fn little_endian(data: &[u8], offset: usize, bytes: u32) -> u128 {
    let source = &data[offset..offset + bytes as usize];
    match *source {
        [b] => u128::from(b),
        [a, b] => u128::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u128::from(u32::from_le_bytes([a, b, c, d])),
        _ => {
            let mut buffer = [0; 16];
            buffer[..source.len()].copy_from_slice(source);
            u128::from_le_bytes(buffer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::memory::global::{GUARD_GAP, Global};

    fn locate(
        memories: &Memories,
        window: Option<Window>,
        address: u64,
        bytes: u32,
    ) -> Result<Location, FaultKind> {
        memories.locate(AccessKind::Load, window, address, bytes)
    }

    #[test]
    fn windows_bounds_and_alignment() {
        let mut global = Global::new(1 << 20, false);
        let (a, b) = (global.allocate(100).unwrap(), global.allocate(8).unwrap());
        let (mut shared, mut local) = (Bytes::new(64, false), Local::new(2048, false));
        let memories = Memories {
            global: global.table(),
            shared: &mut shared,
            local: &mut local,
        };
        assert!(a >= crate::abi::LOWEST_ADDRESS && b.abs_diff(a) >= 100 + GUARD_GAP);
        assert_eq!(
            locate(&memories, None, a + 96, 4),
            Ok(Location::Global(0, 96))
        );
        assert!(matches!(
            locate(&memories, None, a + 96, 8),
            Err(FaultKind::OutOfBounds { .. })
        ));
        assert!(matches!(
            locate(&memories, None, a + 2, 4),
            Err(FaultKind::Misaligned { .. })
        ));
        assert_eq!(
            locate(&memories, Some(Window::Global), b, 8),
            Ok(Location::Global(1, 0))
        );
        for address in [
            0,
            0xFFFF,
            a - 4,
            a + 100,
            b + 8,
            SHARED_BASE,
            LOCAL_BASE,
            u64::MAX - 3,
        ] {
            assert!(
                locate(&memories, Some(Window::Global), address & !3, 4).is_err(),
                "{address:#x}"
            );
        }
        assert_eq!(
            locate(&memories, None, SHARED_BASE + 60, 4),
            Ok(Location::Shared(60))
        );
        assert!(matches!(
            locate(&memories, None, SHARED_BASE + 64, 4),
            Err(FaultKind::OutOfBounds {
                window: Window::Shared,
                ..
            })
        ));
        assert_eq!(
            locate(&memories, None, LOCAL_BASE + 2040, 8),
            Ok(Location::Local(2040))
        );
        assert!(matches!(
            locate(&memories, Some(Window::Local), 0xFFFF_FFF0, 8),
            Err(FaultKind::StackOverflow {
                offset: -16,
                limit: 2048,
                ..
            })
        ));
    }

    #[test]
    fn every_size_in_every_window() {
        let mut global = Global::new(1 << 20, true);
        let a = global.allocate(64).unwrap();
        let (mut shared, mut local) = (Bytes::new(64, true), Local::new(2048, true));
        let mut memories = Memories {
            global: global.table(),
            shared: &mut shared,
            local: &mut local,
        };
        let value = 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10;
        for (window, base) in [
            (Window::Global, a),
            (Window::Shared, 0),
            (Window::Local, 1024),
        ] {
            for bytes in [1, 2, 4, 8, 16] {
                let place = locate(&memories, Some(window), base + 16, bytes).unwrap();
                memories.store(3, place, bytes, value);
                assert!(memories.is_written(3, place, bytes));
                assert_eq!(
                    memories.load(3, place, bytes),
                    value & (u128::MAX >> (128 - 8 * bytes)),
                    "{window} {bytes}"
                );
                let next =
                    locate(&memories, Some(window), base + 16 + u64::from(bytes), 1).unwrap();
                assert!(!memories.is_written(3, next, 1));
            }
        }
        assert_eq!(
            memories.load(4, Location::Local(1040), 16),
            0,
            "another lane's memory"
        );
    }
}
