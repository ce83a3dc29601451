//! Global memory: allocations far apart.
//!
//! The addresses are divided into regions of 2^41, an allocation has regions of its own, and a table gives the
//! allocation of a region. So an access is found in constant time, and a wild one does not hit another allocation: not
//! within 4 GiB, and not where a wrapped index of 32 bits takes it. `p[i - 1]` with an unsigned `i` of 0 lies 2^32
//! elements away, that is 2^32 times the size of an element; between two allocations lie more than 256 times 2^32
//! addresses ([`GUARD_GAP`]), so elements of up to 256 bytes hit nothing, whatever the offset in them. Larger ones meet
//! nothing but by chance: allocations follow each other by the golden section of all regions, which keeps few of them
//! as far apart as it can (the first ten more than 900,000 times 2^32), and each begins at a place of its region that a
//! hash tells. The same program gets the same addresses.
//!
//! An allocation begins shortly before a boundary of 2^32, so that code that forgets the carry into the high word of an
//! address goes wrong. Regions are used again only when all others have been used.
//!
//! The bytes of an allocation are shared ([`Words`]). A launch works on the [`Table`] as it was when the launch began,
//! so that allocations come and go meanwhile: memory that is freed stays where it is for the launches that have it.

use crate::abi::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::sim::memory::words::Words;
use std::sync::Arc;

pub use crate::abi::ALLOCATION_ALIGN;
pub use crate::launch::MemoryError;
/// Where a wrapped index of 32 bits may land for each byte of its element.
const UNIT: u64 = 1 << 32;
/// Unmapped addresses between allocations, at least (assigned): a wrapped index times 256, and once more for the
/// offsets.
pub const GUARD_GAP: u64 = 257 * UNIT;
/// Addresses of a region: 2 to this power. Half of it for the gap, half for places to begin at.
const REGION_SHIFT: u32 = 41;
/// Units of a region.
const REGION_UNITS: u64 = (1 << REGION_SHIFT) / UNIT;
/// Where allocations begin in their first unit: small ones end before the boundary of 2^32, others cross it.
const UNIT_START: u64 = UNIT - ALLOCATION_ALIGN;
/// Regions below the windows. Region 0 is never used, so small numbers are no addresses.
const LOW_REGIONS: usize = (SHARED_WINDOW >> REGION_SHIFT) as usize;
/// The first region behind the windows.
const HIGH_REGIONS: usize = ((2 * LOCAL_WINDOW) >> REGION_SHIFT) as usize;
/// Regions whose addresses are positive as signed numbers.
const REGIONS: usize = 1 << (63 - REGION_SHIFT);
/// From one allocation to the next, modulo the regions below the windows: their golden section, made odd so that all
/// come.
const STEP: usize = (LOW_REGIONS as f64 * 0.618_033_988_749_895) as usize | 1;
/// In the table of regions: no allocation.
const NONE: u32 = u32::MAX;

/// A range of global memory.
#[derive(Clone, Debug, Default)]
struct Allocation {
    base: u64,
    /// Bytes.
    size: u64,
    words: Arc<Words>,
    /// Kernels only read it.
    read_only: bool,
    /// What kernels leave in it the host does not read.
    private: bool,
}

/// What is allocated where. A copy has the same bytes, not others of the same value.
#[derive(Clone, Debug)]
pub struct Table {
    /// In no order; an entry whose index is in [`Global::vacant`] is empty.
    allocations: Vec<Allocation>,
    /// For each region of addresses the index of its allocation, or [`NONE`].
    regions: Vec<u32>,
}

/// The device's memory.
#[derive(Debug)]
pub struct Global {
    table: Arc<Table>,
    vacant: Vec<u32>,
    /// The turn from which a region for the next allocation is looked for.
    next: usize,
    /// The region from which several in a row are looked for.
    next_row: usize,
    /// Allocations that were made.
    made: u64,
    /// Regions there are.
    region_limit: usize,
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
                regions: Vec::new(),
            }),
            vacant: Vec::new(),
            next: 1,
            next_row: HIGH_REGIONS,
            made: 0,
            region_limit: REGIONS,
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
        // Bytes that a limit allows and a table of regions cannot have are out of addresses.
        let units = bytes.div_ceil(UNIT);
        let count = (units + 1 + GUARD_GAP / UNIT).div_ceil(REGION_UNITS);
        let room = count * REGION_UNITS - (units + 1 + GUARD_GAP / UNIT);
        let first = self.place(count as usize);
        let first = first.ok_or(MemoryError::OutOfAddresses {
            allocations: self.table.allocations.len() - self.vacant.len(),
        })?;
        let unit = scattered(self.made) % (room + 1);
        let base = ((first as u64) << REGION_SHIFT) + unit * UNIT + UNIT_START;
        let words = usize::try_from(bytes).ok();
        let words = words.and_then(|bytes| Words::new(bytes, self.track));
        // The host may have less than the limit allows.
        let words = words.ok_or(MemoryError::OutOfMemory { bytes, available })?;
        let allocation = Allocation {
            base,
            size: bytes,
            words: Arc::new(words),
            read_only: false,
            private: false,
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
        let (first, end) = (first, first + count as usize);
        if table.regions.len() < end {
            table.regions.resize(end, NONE);
        }
        table.regions[first..end].fill(index);
        self.made += 1;
        self.used += bytes;
        Ok(base)
    }

    /// The first of `count` free regions in a row, those that were never used before all others, then those that were
    /// free the longest.
    fn place(&mut self, count: usize) -> Option<usize> {
        let regions = &self.table.regions;
        let is_free = |region: usize| regions.get(region).is_none_or(|index| *index == NONE);
        let limit = self.region_limit;
        if count == 1 {
            // Every turn has a region of its own: scattered below the windows, then one by one behind them.
            let region = |turn: usize| match turn {
                _ if turn < LOW_REGIONS => turn * STEP % LOW_REGIONS,
                _ => turn - LOW_REGIONS + HIGH_REGIONS,
            };
            let turns = limit.min(REGIONS - (HIGH_REGIONS - LOW_REGIONS));
            let mut order = (self.next..turns).chain(1..self.next.min(turns));
            let turn = order.find(|turn| is_free(region(*turn)))?;
            self.next = turn + 1;
            return Some(region(turn));
        }
        let row = |from: usize, to: usize| {
            let mut free = 0;
            (from..to).find_map(|region| {
                free = if is_free(region) { free + 1 } else { 0 };
                (free == count).then(|| region + 1 - count)
            })
        };
        let found = row(self.next_row, limit)
            .or_else(|| row(HIGH_REGIONS, limit))
            .or_else(|| row(1, limit.min(LOW_REGIONS)))?;
        self.next_row = found + count;
        Some(found)
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
        let first = (base >> REGION_SHIFT) as usize;
        table.regions[first..]
            .iter_mut()
            .take_while(|region| **region == index as u32)
            .for_each(|region| *region = NONE);
        self.used -= freed.size;
        Ok(())
    }

    /// Lets kernels only read an allocation from now on; launches that run are not affected.
    ///
    /// # Errors
    /// When no allocation begins there.
    pub fn protect(&mut self, base: u64) -> Result<(), MemoryError> {
        match self.table.find(base, 0) {
            Some((index, 0)) => {
                Arc::make_mut(&mut self.table).allocations[index].read_only = true;
                Ok(())
            }
            _ => Err(MemoryError::NotAllocated { address: base }),
        }
    }

    /// Nobody but kernels uses what launches from now on leave in an allocation.
    ///
    /// # Errors
    /// When no allocation begins there.
    pub fn make_private(&mut self, base: u64) -> Result<(), MemoryError> {
        match self.table.find(base, 0) {
            Some((index, 0)) => {
                Arc::make_mut(&mut self.table).allocations[index].private = true;
                Ok(())
            }
            _ => Err(MemoryError::NotAllocated { address: base }),
        }
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
                regions: self.table.regions.clone(),
            }),
            vacant: self.vacant.clone(),
            ..*self
        }
    }
}

/// A number that tells nothing of its neighbours (the finalizer of SplitMix64).
fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Table {
    /// The bytes of an allocation, by the index that [`Table::find`] gives.
    #[inline]
    pub(in crate::sim) fn words(&self, index: usize) -> &Words {
        &self.allocations[index].words
    }

    /// The bytes of all allocations.
    pub(in crate::sim) fn all(&self) -> impl Iterator<Item = &Words> {
        self.allocations.iter().map(|allocation| &*allocation.words)
    }

    /// Allocations that there are, and places of those that were.
    pub(in crate::sim) fn len(&self) -> usize {
        self.allocations.len()
    }

    /// Where an allocation begins, and its bytes.
    #[inline]
    pub(in crate::sim) fn extent(&self, index: usize) -> (u64, u64) {
        let allocation = &self.allocations[index];
        (allocation.base, allocation.size)
    }

    /// Whether kernels may write to an allocation.
    #[inline]
    pub(in crate::sim) fn is_writable(&self, index: usize) -> bool {
        !self.allocations[index].read_only
    }

    /// Whether nobody but kernels uses what a launch leaves in an allocation.
    pub(in crate::sim) fn is_private(&self, index: usize) -> bool {
        self.allocations[index].private
    }

    /// The allocation that has the region of an address; the address need not be in it.
    #[inline]
    pub(in crate::sim) fn index(&self, address: u64) -> Option<usize> {
        let index = *self.regions.get((address >> REGION_SHIFT) as usize)? as usize;
        (index < self.allocations.len()).then_some(index)
    }

    /// The allocation of a range and the offset in it.
    #[inline]
    pub(in crate::sim) fn find(&self, address: u64, bytes: u64) -> Option<(usize, usize)> {
        let index = *self.regions.get((address >> REGION_SHIFT) as usize)? as usize;
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
        let mut global = Global::new(1 << 60, false);
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

    /// The unmapped addresses between neighbours, of allocations given as base and size.
    fn gaps(mut all: Vec<(u64, u64)>) -> impl Iterator<Item = u64> {
        all.sort_unstable();
        (1..all.len()).map(move |i| all[i].0 - (all[i - 1].0 + all[i - 1].1))
    }

    /// An index of 32 bits that wraps, times a size of up to 256 bytes and with whatever offset in the element, hits no
    /// other allocation; neither do most of larger elements.
    #[test]
    fn wrapped_indices_hit_nothing() {
        let mut global = Global::new(1 << 60, false);
        let mut all = Vec::new();
        for number in 0..40_000u64 {
            let size = match number {
                0..3 => [1 << 20, 1 << 26, (1 << 32) + 1][number as usize],
                _ => 1 + scattered(number) % 5000,
            };
            let base = global.allocate(size).unwrap();
            assert_eq!(base % (1 << 32), (1 << 32) - ALLOCATION_ALIGN);
            assert!((base as i64) > 0);
            all.push((base, size));
            // Those that go make room for others.
            if number % 3 == 1 {
                let (base, _) = all.swap_remove(scattered(number) as usize % all.len());
                global.free(base).unwrap();
            }
        }
        assert!(gaps(all.clone()).all(|gap| gap >= GUARD_GAP));
        // What this means, by trial.
        for &(base, size) in all.iter().step_by(97) {
            for scale in 1..=256u64 {
                for offset in [0, size / 2, size - 1] {
                    let far = scale << 32;
                    for field in [0, scale - 1] {
                        let after = base + offset + far - scale + field;
                        assert_eq!(global.table.find(after, 1), None, "{base:#x} {scale}");
                    }
                    let before = (base + offset).wrapping_sub(far);
                    assert_eq!(global.table.find(before, 1), None, "{base:#x} {scale}");
                }
            }
        }
        let large = (257..100_000u64).flat_map(|scale| {
            let (base, size) = all[scale as usize % all.len()];
            [0, size - 1].map(|offset| base + offset + (scale << 32))
        });
        let hits = large.filter(|address| global.table.find(*address, 1).is_some());
        let hits = hits.count();
        assert!(hits < 2 * 100_000 / 200, "{hits}");
        // With as few as most programs have, hardly a size hits anything.
        let mut few = Global::new(1 << 30, false);
        let ten = (0..10).map(|_| (few.allocate(4096).unwrap(), 4096));
        assert!(gaps(ten.collect()).all(|gap| gap > 900_000 << 32));
    }

    /// More than three quarters of a region, several regions, and what no table has.
    #[test]
    fn large_allocations_have_regions_in_a_row() {
        let mut global = Global::new(u64::MAX, false);
        let counts = |global: &Global, index: u32| {
            let regions = global.table.regions.iter();
            regions.filter(|region| **region == index).count()
        };
        // Only what takes no memory of the host can be tried.
        assert_eq!(global.place(3), Some(HIGH_REGIONS));
        assert_eq!(global.place(3), Some(HIGH_REGIONS + 3));
        let small = global.allocate(1).unwrap();
        assert_eq!(counts(&global, 0), 1);
        global.free(small).unwrap();
        assert_eq!(counts(&global, 0), 0);
        assert!(matches!(
            global.allocate(u64::MAX),
            Err(MemoryError::OutOfAddresses { .. })
        ));
    }

    /// The same calls give the same addresses.
    #[test]
    fn addresses_are_reproducible() {
        let addresses = || -> Vec<u64> {
            let mut global = Global::new(1 << 30, false);
            (1..100).map(|n| global.allocate(n).unwrap()).collect()
        };
        assert_eq!(addresses(), addresses());
    }

    #[test]
    fn what_is_protected_is_read_only() {
        let mut global = Global::new(1 << 30, false);
        let (a, b) = (global.allocate(8).unwrap(), global.allocate(8).unwrap());
        assert!(global.protect(a + 4).is_err());
        global.protect(a).unwrap();
        let writable = |at| {
            global
                .table
                .is_writable(global.table.find(at, 8).unwrap().0)
        };
        assert_eq!([a, b].map(writable), [false, true]);
        global.write(a, &[1; 8]).unwrap();
    }

    #[test]
    fn addresses_are_used_again_when_no_others_are_left() {
        let mut global = Global::new(1 << 40, false);
        global.region_limit = 6;
        let bases: Vec<u64> = (0..5).map(|_| global.allocate(8).unwrap()).collect();
        assert_eq!(
            global.allocate(8),
            Err(MemoryError::OutOfAddresses { allocations: 5 })
        );
        global.free(bases[1]).unwrap();
        global.free(bases[3]).unwrap();
        global.write(bases[2], &[7; 8]).unwrap();
        let region = |address: u64| address >> REGION_SHIFT;
        let again = [global.allocate(8).unwrap(), global.allocate(8).unwrap()];
        assert_eq!(
            again.map(region),
            [bases[1], bases[3]].map(region),
            "free the longest"
        );
        assert_eq!(global.read(again[0], 8).unwrap(), [0; 8]);
        assert_eq!(global.read(bases[2], 8).unwrap(), [7; 8]);
        let mut large = Global::new(u64::MAX, false);
        large.region_limit = 6;
        assert_eq!(
            large.allocate(1 << 50),
            Err(MemoryError::OutOfAddresses { allocations: 0 }),
            "so many regions in a row there are not"
        );
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
        // Not soon, and then at another place of their region.
        let later = (0..1000).map(|_| {
            let address = global.allocate(1).unwrap();
            global.free(address).unwrap();
            address
        });
        let later: std::collections::BTreeSet<u64> = later.chain([a]).collect();
        assert_eq!(later.len(), 1001, "addresses are not used again");
    }
}
