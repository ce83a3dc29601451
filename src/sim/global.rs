//! Global memory: allocations far apart.
//!
//! The addresses are divided into slots of 2^33, an allocation has slots of its own, and a table gives the allocation of a slot. So an
//! access is found in constant time, and a wild one does not hit another allocation, however far it goes astray: the gap is at least
//! 2^32. An allocation begins shortly before a boundary of 2^32, so that code that forgets the carry into the high word of an address
//! goes wrong. Slots are used again only when all others have been used.

use super::bytes::Bytes;
use crate::abi::SHARED_WINDOW;

pub use crate::abi::ALLOCATION_ALIGN;
pub use crate::launch::MemoryError;
/// Unmapped addresses between allocations, at least (assigned).
pub const GUARD_GAP: u64 = 1 << 32;
/// Addresses of a slot: 2 to this power.
const SLOT_SHIFT: u32 = 33;
/// Where allocations begin in their first slot: small ones end before the boundary of 2^32, others cross it.
const SLOT_START: u64 = (1 << 32) - ALLOCATION_ALIGN;
/// Slots below the windows; slot 0 is never used, so small numbers are no addresses.
const SLOTS: usize = (SHARED_WINDOW >> SLOT_SHIFT) as usize;
/// In the table of slots: no allocation.
const NONE: u32 = u32::MAX;

/// A range of global memory.
#[derive(Clone, Debug, Default)]
struct Allocation {
    base: u64,
    bytes: Bytes,
}

/// The device's memory.
#[derive(Clone, Debug)]
pub struct Global {
    /// In no order; an entry whose index is in `vacant` is empty.
    allocations: Vec<Allocation>,
    vacant: Vec<u32>,
    /// For each slot of addresses the index of its allocation, or [`NONE`].
    slots: Vec<u32>,
    /// The slot from which the next allocation is looked for.
    next: usize,
    /// Slots there are.
    slot_limit: usize,
    used: u64,
    limit: u64,
    track: bool,
}

impl Global {
    /// Empty memory of at most `limit` bytes; `track` marks what is written.
    pub fn new(limit: u64, track: bool) -> Global {
        Global {
            allocations: Vec::new(),
            vacant: Vec::new(),
            slots: vec![NONE],
            next: 1,
            slot_limit: SLOTS,
            used: 0,
            limit,
            track,
        }
    }

    /// A new allocation of zero bytes that count as not written, aligned to [`ALLOCATION_ALIGN`].
    ///
    /// # Errors
    /// When the limit is reached.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, MemoryError> {
        let available = self.limit - self.used;
        if bytes > available {
            return Err(MemoryError::OutOfMemory { bytes, available });
        }
        // Bytes that a limit allows and a table of slots cannot have are out of addresses.
        let count = bytes.saturating_add(GUARD_GAP).div_ceil(1 << SLOT_SHIFT) as usize;
        let first = self.place(count).ok_or(MemoryError::OutOfAddresses {
            allocations: self.allocations.len() - self.vacant.len(),
        })?;
        let base = ((first as u64) << SLOT_SHIFT) + SLOT_START;
        let allocation = Allocation {
            base,
            bytes: Bytes::new(bytes as usize, self.track),
        };
        let index = match self.vacant.pop() {
            Some(index) => {
                self.allocations[index as usize] = allocation;
                index
            }
            None => {
                self.allocations.push(allocation);
                self.allocations.len() as u32 - 1
            }
        };
        if self.slots.len() < first + count {
            self.slots.resize(first + count, NONE);
        }
        self.slots[first..first + count].fill(index);
        self.next = first + count;
        self.used += bytes;
        Ok(base)
    }

    /// The first of `count` free slots, those that were never used before all others, then those that were free the longest.
    fn place(&self, count: usize) -> Option<usize> {
        let run = |from: usize, to: usize| {
            let mut free = 0;
            for slot in from..to {
                let taken = self.slots.get(slot).is_some_and(|index| *index != NONE);
                free = if taken { 0 } else { free + 1 };
                if free == count {
                    return Some(slot + 1 - count);
                }
            }
            None
        };
        run(self.next, self.slot_limit).or_else(|| run(1, self.slot_limit))
    }

    /// Gives an allocation back; later accesses to it are out of bounds.
    ///
    /// # Errors
    /// When no allocation begins there.
    pub fn free(&mut self, base: u64) -> Result<(), MemoryError> {
        let index = match self.find(base, 0) {
            Some((index, 0)) => index,
            _ => {
                return Err(MemoryError::Unmapped {
                    address: base,
                    bytes: 0,
                });
            }
        };
        let freed = std::mem::take(&mut self.allocations[index]);
        self.vacant.push(index as u32);
        let first = (base >> SLOT_SHIFT) as usize;
        self.slots[first..]
            .iter_mut()
            .take_while(|slot| **slot == index as u32)
            .for_each(|slot| *slot = NONE);
        self.used -= freed.bytes.data().len() as u64;
        Ok(())
    }

    /// The bytes of an allocation, by the index that [`Global::find`] gives.
    #[inline]
    pub(super) fn bytes(&self, index: usize) -> &Bytes {
        &self.allocations[index].bytes
    }

    /// The same to be written.
    #[inline]
    pub(super) fn bytes_mut(&mut self, index: usize) -> &mut Bytes {
        &mut self.allocations[index].bytes
    }

    /// The allocation of a range and the offset in it.
    #[inline]
    pub(super) fn find(&self, address: u64, bytes: u64) -> Option<(usize, usize)> {
        let index = *self.slots.get((address >> SLOT_SHIFT) as usize)? as usize;
        let allocation = self.allocations.get(index)?;
        // An address before the allocation becomes a very large offset.
        let offset = address.wrapping_sub(allocation.base);
        let size = allocation.bytes.data().len() as u64;
        (offset <= size && bytes <= size - offset).then_some((index, offset as usize))
    }

    /// The bytes of a range.
    ///
    /// # Errors
    /// When it is not inside one allocation.
    pub fn read(&self, address: u64, bytes: u64) -> Result<&[u8], MemoryError> {
        let (index, offset) = self
            .find(address, bytes)
            .ok_or(MemoryError::Unmapped { address, bytes })?;
        Ok(&self.allocations[index].bytes.data()[offset..offset + bytes as usize])
    }

    /// Overwrites a range.
    ///
    /// # Errors
    /// When it is not inside one allocation.
    pub fn write(&mut self, address: u64, source: &[u8]) -> Result<(), MemoryError> {
        let bytes = source.len() as u64;
        let (index, offset) = self
            .find(address, bytes)
            .ok_or(MemoryError::Unmapped { address, bytes })?;
        self.allocations[index].bytes.store(offset, source);
        Ok(())
    }

    /// Overwrites a range with zeros; a whole allocation takes no time and no memory.
    ///
    /// # Errors
    /// When it is not inside one allocation.
    pub fn clear(&mut self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        let (index, offset) = self
            .find(address, bytes)
            .ok_or(MemoryError::Unmapped { address, bytes })?;
        self.allocations[index].bytes.clear(offset, bytes as usize);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However far an access goes astray, up to 4 GiB, it hits nothing.
    #[test]
    fn wild_accesses_hit_nothing() {
        let mut global = Global::new(1 << 40, false);
        let sizes = [0, 1, 256, 257, 1 << 20, (1 << 32) + 1, 8];
        let bases: Vec<u64> = sizes.map(|n| global.allocate(n).unwrap()).into();
        for (index, (&base, size)) in bases.iter().zip(sizes).enumerate() {
            assert_eq!(base % ALLOCATION_ALIGN, 0);
            assert_eq!(global.find(base, size), Some((index, 0)), "{size}");
            assert_eq!(global.find(base, size + 1), None);
            if size != 0 {
                assert_eq!(
                    global.find(base + size - 1, 1),
                    Some((index, size as usize - 1))
                );
            }
            for distance in [0, 1, 0x1000, 0x1100, 1 << 31, (1 << 32) - 1] {
                assert_eq!(
                    global.find(base + size + distance, 1),
                    None,
                    "{distance:#x}"
                );
                assert_eq!(global.find(base - 1 - distance, 1), None, "{distance:#x}");
            }
        }
        for &base in bases.iter().rev() {
            assert!(global.free(base + 1).is_err());
            global.free(base).unwrap();
            assert!(global.free(base).is_err(), "freed twice");
            assert_eq!(global.find(base, 0), None);
        }
        assert_eq!(global.used, 0);
    }

    #[test]
    fn addresses_are_used_again_when_no_others_are_left() {
        let mut global = Global::new(1 << 40, false);
        global.slot_limit = 6;
        let bases: Vec<u64> = (0..5).map(|_| global.allocate(8).unwrap()).collect();
        assert_eq!(
            global.allocate(8),
            Err(MemoryError::OutOfAddresses { allocations: 5 })
        );
        global.free(bases[1]).unwrap();
        global.free(bases[3]).unwrap();
        assert!(
            global.allocate(1 << 33).is_err(),
            "two slots in a row are not free"
        );
        global.write(bases[2], &[7; 8]).unwrap();
        assert_eq!(global.allocate(8), Ok(bases[1]));
        assert_eq!(global.allocate(8), Ok(bases[3]), "free the longest");
        assert_eq!(global.read(bases[1], 8).unwrap(), [0; 8]);
        assert_eq!(global.read(bases[2], 8).unwrap(), [7; 8]);
    }

    #[test]
    fn freed_memory_is_gone() {
        let mut global = Global::new(1000, false);
        let a = global.allocate(1000).unwrap();
        assert_eq!(
            global.allocate(1),
            Err(MemoryError::OutOfMemory {
                bytes: 1,
                available: 0
            })
        );
        global.free(a).unwrap();
        assert!(global.read(a, 1).is_err());
        assert!(
            global.allocate(1).unwrap() > a,
            "addresses are not used again"
        );
    }
}
