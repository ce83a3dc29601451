//! Global memory: allocations far apart.
//!
//! The addresses are divided into slots of 2^33, an allocation has slots of its own, and a table gives the allocation of a slot. So an
//! access is found in constant time, and a wild one does not hit another allocation, however far it goes astray: the gap is at least
//! 2^32. An allocation begins shortly before a boundary of 2^32, so that code that forgets the carry into the high word of an address
//! goes wrong. Slots are used again only when all others have been used.
//!
//! The bytes of an allocation are shared ([`Words`]). A launch works on the [`Table`] as it was when the launch began, so that allocations
//! come and go meanwhile: memory that is freed stays where it is for the launches that have it.

use super::words::Words;
use crate::abi::SHARED_WINDOW;
use std::sync::Arc;

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
    /// Bytes.
    size: u64,
    words: Arc<Words>,
}

/// What is allocated where. A copy has the same bytes, not others of the same value.
#[derive(Clone, Debug)]
pub struct Table {
    /// In no order; an entry whose index is in [`Global::vacant`] is empty.
    allocations: Vec<Allocation>,
    /// For each slot of addresses the index of its allocation, or [`NONE`].
    slots: Vec<u32>,
}

/// The device's memory.
#[derive(Debug)]
pub struct Global {
    table: Arc<Table>,
    vacant: Vec<u32>,
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
            table: Arc::new(Table {
                allocations: Vec::new(),
                slots: vec![NONE],
            }),
            vacant: Vec::new(),
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
            allocations: self.table.allocations.len() - self.vacant.len(),
        })?;
        let base = ((first as u64) << SLOT_SHIFT) + SLOT_START;
        let words = usize::try_from(bytes).ok();
        let words = words.and_then(|bytes| Words::new(bytes, self.track));
        // The host may have less than the limit allows.
        let words = words.ok_or(MemoryError::OutOfMemory { bytes, available })?;
        let allocation = Allocation {
            base,
            size: bytes,
            words: Arc::new(words),
        };
        let table = Arc::make_mut(&mut self.table);
        let index = match self.vacant.pop() {
            Some(index) => {
                table.allocations[index as usize] = allocation;
                index
            }
            None => {
                table.allocations.push(allocation);
                table.allocations.len() as u32 - 1
            }
        };
        if table.slots.len() < first + count {
            table.slots.resize(first + count, NONE);
        }
        table.slots[first..first + count].fill(index);
        self.next = first + count;
        self.used += bytes;
        Ok(base)
    }

    /// The first of `count` free slots, those that were never used before all others, then those that were free the longest.
    fn place(&self, count: usize) -> Option<usize> {
        let run = |from: usize, to: usize| {
            let mut free = 0;
            for slot in from..to {
                let taken = self
                    .table
                    .slots
                    .get(slot)
                    .is_some_and(|index| *index != NONE);
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
        let index = match self.table.find(base, 0) {
            Some((index, 0)) => index,
            _ => {
                return Err(MemoryError::NotAllocated { address: base });
            }
        };
        let table = Arc::make_mut(&mut self.table);
        let freed = std::mem::take(&mut table.allocations[index]);
        self.vacant.push(index as u32);
        let first = (base >> SLOT_SHIFT) as usize;
        table.slots[first..]
            .iter_mut()
            .take_while(|slot| **slot == index as u32)
            .for_each(|slot| *slot = NONE);
        self.used -= freed.size;
        Ok(())
    }

    /// What is allocated now. Later allocations do not change it.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The bytes of a range.
    ///
    /// # Errors
    /// When it is not inside one allocation.
    pub fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, MemoryError> {
        let (words, offset) = self.range(address, bytes)?;
        let mut data = vec![0; bytes as usize];
        words.read(offset, &mut data);
        Ok(data)
    }

    /// Overwrites a range.
    ///
    /// # Errors
    /// When it is not inside one allocation.
    pub fn write(&self, address: u64, source: &[u8]) -> Result<(), MemoryError> {
        let (words, offset) = self.range(address, source.len() as u64)?;
        words.write(offset, source);
        Ok(())
    }

    /// The bytes of the allocation that has a range, and the offset in them: they can be used without the table.
    ///
    /// # Errors
    /// When it is not inside one allocation.
    pub fn range(&self, address: u64, bytes: u64) -> Result<(Arc<Words>, usize), MemoryError> {
        let (index, offset) = self
            .table
            .find(address, bytes)
            .ok_or(MemoryError::Unmapped { address, bytes })?;
        Ok((self.table.allocations[index].words.clone(), offset))
    }

    /// Overwrites a range with zeros; a whole allocation that no launch has takes no time and no memory.
    ///
    /// # Errors
    /// When it is not inside one allocation.
    pub fn clear(&mut self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        let (index, offset) = self
            .table
            .find(address, bytes)
            .ok_or(MemoryError::Unmapped { address, bytes })?;
        let own = Arc::get_mut(&mut self.table)
            .map(|table| &mut table.allocations[index])
            .filter(|allocation| allocation.size == bytes)
            .and_then(|allocation| Arc::get_mut(&mut allocation.words));
        match own {
            Some(words) => words.clear_all(),
            None => self.table.words(index).clear(offset, bytes as usize),
        }
        Ok(())
    }
}

impl Clone for Global {
    /// Other memory with the same contents at the same addresses.
    fn clone(&self) -> Self {
        let copy = |allocation: &Allocation| Allocation {
            words: Arc::new(Words::clone(&allocation.words)),
            ..*allocation
        };
        Global {
            table: Arc::new(Table {
                allocations: self.table.allocations.iter().map(copy).collect(),
                slots: self.table.slots.clone(),
            }),
            vacant: self.vacant.clone(),
            ..*self
        }
    }
}

impl Table {
    /// The bytes of an allocation, by the index that [`Table::find`] gives.
    #[inline]
    pub(super) fn words(&self, index: usize) -> &Words {
        &self.allocations[index].words
    }

    /// Where an allocation begins, and its bytes.
    #[inline]
    pub(super) fn extent(&self, index: usize) -> (u64, u64) {
        let allocation = &self.allocations[index];
        (allocation.base, allocation.size)
    }

    /// The allocation that has the slot of an address; the address need not be in it.
    #[inline]
    pub(super) fn index(&self, address: u64) -> Option<usize> {
        let index = *self.slots.get((address >> SLOT_SHIFT) as usize)? as usize;
        (index < self.allocations.len()).then_some(index)
    }

    /// The allocation of a range and the offset in it.
    #[inline]
    pub(super) fn find(&self, address: u64, bytes: u64) -> Option<(usize, usize)> {
        let index = *self.slots.get((address >> SLOT_SHIFT) as usize)? as usize;
        let allocation = self.allocations.get(index)?;
        // An address before the allocation becomes a very large offset.
        let offset = address.wrapping_sub(allocation.base);
        let size = allocation.size;
        (offset <= size && bytes <= size - offset).then_some((index, offset as usize))
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
            assert_eq!(global.table.find(base, size), Some((index, 0)), "{size}");
            assert_eq!(global.table.find(base, size + 1), None);
            if size != 0 {
                assert_eq!(
                    global.table.find(base + size - 1, 1),
                    Some((index, size as usize - 1))
                );
            }
            for distance in [0, 1, 0x1000, 0x1100, 1 << 31, (1 << 32) - 1] {
                assert_eq!(
                    global.table.find(base + size + distance, 1),
                    None,
                    "{distance:#x}"
                );
                assert_eq!(
                    global.table.find(base - 1 - distance, 1),
                    None,
                    "{distance:#x}"
                );
            }
        }
        for &base in bases.iter().rev() {
            assert!(global.free(base + 1).is_err());
            global.free(base).unwrap();
            assert!(global.free(base).is_err(), "freed twice");
            assert_eq!(global.table.find(base, 0), None);
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

    /// A launch keeps what it began with; it and the host see each other's bytes.
    #[test]
    fn a_table_outlives_what_is_freed() {
        let mut global = Global::new(1000, false);
        let (a, b) = (global.allocate(8).unwrap(), global.allocate(8).unwrap());
        let table = global.table().clone();
        global.write(a, &[1; 8]).unwrap();
        let (index, _) = table.find(a, 8).unwrap();
        assert_eq!(table.words(index).load(0, 4), 0x0101_0101);
        // Zeros for the whole are zeros of the launch too, and what it stores behind them is seen.
        global.clear(a, 8).unwrap();
        assert_eq!(table.words(index).load(0, 8), 0);
        table.words(index).store(4, 4, 7);
        assert_eq!(global.read(a, 8).unwrap(), [0, 0, 0, 0, 7, 0, 0, 0]);
        let c = global.allocate(8).unwrap();
        assert_eq!(table.find(c, 1), None);
        global.free(b).unwrap();
        assert!(global.read(b, 8).is_err());
        let (index, _) = table.find(b, 8).expect("freed since");
        table.words(index).store(0, 8, 1);
        assert_eq!(global.used, 16);
    }

    /// A copy of a memory has its own bytes.
    #[test]
    fn a_clone_shares_nothing() {
        let mut global = Global::new(1000, true);
        let a = global.allocate(8).unwrap();
        global.write(a, &[1; 4]).unwrap();
        let copy = global.clone();
        global.write(a, &[2; 8]).unwrap();
        assert_eq!(copy.read(a, 8).unwrap(), [1, 1, 1, 1, 0, 0, 0, 0]);
        let (words, _) = copy.range(a, 8).unwrap();
        assert!(words.is_written(0, 4) && !words.is_written(4, 1));
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
