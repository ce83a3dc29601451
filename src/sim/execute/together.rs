//! Loads and stores whose lanes are all in one memory, checked once for all lanes.
//!
//! This is what nearly all accesses are when nobody looks on. What is found wrong here, and what is elsewhere, is left
//! to the lane by lane way of [`crate::sim::execute::access`], which knows the first lane at fault and what the lanes
//! before it have done. Lanes beside each other are one copy. Everything is inlined into code that is compiled for the
//! host's vector instructions.

use crate::abi::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::isa::Role;
use crate::launch::Window;
use crate::sim::decode::action::{Access, Action};
use crate::sim::decode::program::Op;
use crate::sim::execute::Environment;
use crate::sim::memory::bytes::Bytes;
use crate::sim::memory::local::Local;
use crate::sim::memory::strong::Concurrency;
use crate::sim::memory::words::Words;
use crate::sim::memory::{WINDOW, little_endian};
use crate::sim::warp::Warp;
use crate::sim::warp::registers::{BITS, Column, LANES, Operand, Registers, ZERO, blend, lanes};

/// Bytes of a word.
pub(in crate::sim) const WORD: usize = size_of::<u32>();

/// A memory that all lanes of an access use. Offsets are multiples of what is accessed there.
pub(in crate::sim) trait Memory {
    /// `N` words at an offset.
    fn group<const N: usize>(&self, offset: usize) -> [u32; N];
    /// `N` words for each lane, one lane behind the other.
    fn row<const N: usize>(&self, offset: usize) -> [Column; N];
    /// The value of one or two bytes at an offset.
    fn narrow(&self, offset: usize, bytes: u32) -> u32;
}

impl Memory for &Words {
    #[inline(always)]
    fn group<const N: usize>(&self, offset: usize) -> [u32; N] {
        self.words_at(offset)
    }

    #[inline(always)]
    fn row<const N: usize>(&self, offset: usize) -> [Column; N] {
        self.columns_at(offset)
    }

    #[inline(always)]
    fn narrow(&self, offset: usize, bytes: u32) -> u32 {
        self.load(offset, bytes) as u32
    }
}

impl<M: Memory> Memory for &M {
    #[inline(always)]
    fn group<const N: usize>(&self, offset: usize) -> [u32; N] {
        M::group(self, offset)
    }

    #[inline(always)]
    fn row<const N: usize>(&self, offset: usize) -> [Column; N] {
        M::row(self, offset)
    }

    #[inline(always)]
    fn narrow(&self, offset: usize, bytes: u32) -> u32 {
        M::narrow(self, offset, bytes)
    }
}

/// Those under `--check`.
impl Memory for &mut Bytes {
    #[inline(always)]
    fn group<const N: usize>(&self, offset: usize) -> [u32; N] {
        self.data().group(offset)
    }

    #[inline(always)]
    fn row<const N: usize>(&self, offset: usize) -> [Column; N] {
        self.data().row(offset)
    }

    #[inline(always)]
    fn narrow(&self, offset: usize, bytes: u32) -> u32 {
        self.data().narrow(offset, bytes)
    }
}

impl Memory for &[u8] {
    #[inline(always)]
    fn group<const N: usize>(&self, offset: usize) -> [u32; N] {
        let bytes = self[offset..offset + N * WORD].as_chunks::<WORD>().0;
        std::array::from_fn(|word| u32::from_le_bytes(bytes[word]))
    }

    #[inline(always)]
    fn row<const N: usize>(&self, offset: usize) -> [Column; N] {
        let bytes = &self[offset..offset + N * WORD * LANES];
        let mut columns = [[0; LANES]; N];
        for (lane, words) in bytes
            .as_chunks::<WORD>()
            .0
            .as_chunks::<N>()
            .0
            .iter()
            .enumerate()
        {
            for (column, word) in columns.iter_mut().zip(words) {
                column[lane & (LANES - 1)] = u32::from_le_bytes(*word);
            }
        }
        columns
    }

    #[inline(always)]
    fn narrow(&self, offset: usize, bytes: u32) -> u32 {
        little_endian(self, offset, bytes) as u32
    }
}

/// A memory that all lanes of a store use. Offsets are multiples of what is stored there.
pub(in crate::sim) trait MemoryMut {
    /// Overwrites `N` words.
    fn put_group<const N: usize>(&mut self, offset: usize, values: [u32; N]);
    /// Overwrites `N` words for each lane, one lane behind the other.
    fn put_row<const N: usize>(&mut self, offset: usize, values: [&Column; N]);
    /// Overwrites one or two bytes.
    fn put_narrow(&mut self, offset: usize, bytes: u32, value: u32);
}

impl MemoryMut for &Words {
    #[inline(always)]
    fn put_group<const N: usize>(&mut self, offset: usize, values: [u32; N]) {
        self.put_words(offset, values);
    }

    #[inline(always)]
    fn put_row<const N: usize>(&mut self, offset: usize, values: [&Column; N]) {
        self.put_columns(offset, values);
    }

    #[inline(always)]
    fn put_narrow(&mut self, offset: usize, bytes: u32, value: u32) {
        self.store(offset, bytes, value.into());
    }
}

/// Without marks.
impl MemoryMut for &mut Bytes {
    #[inline(always)]
    fn put_group<const N: usize>(&mut self, offset: usize, values: [u32; N]) {
        self.data_mut().put_group(offset, values);
    }

    #[inline(always)]
    fn put_row<const N: usize>(&mut self, offset: usize, values: [&Column; N]) {
        self.data_mut().put_row(offset, values);
    }

    #[inline(always)]
    fn put_narrow(&mut self, offset: usize, bytes: u32, value: u32) {
        self.data_mut().put_narrow(offset, bytes, value);
    }
}

impl MemoryMut for &mut [u8] {
    #[inline(always)]
    fn put_group<const N: usize>(&mut self, offset: usize, values: [u32; N]) {
        let bytes = self[offset..offset + N * WORD].as_chunks_mut::<WORD>().0;
        for (to, value) in bytes.iter_mut().zip(values) {
            *to = value.to_le_bytes();
        }
    }

    #[inline(always)]
    fn put_row<const N: usize>(&mut self, offset: usize, values: [&Column; N]) {
        let bytes = self[offset..offset + N * WORD * LANES]
            .as_chunks_mut::<WORD>()
            .0;
        for (lane, words) in bytes.as_chunks_mut::<N>().0.iter_mut().enumerate() {
            for (to, column) in words.iter_mut().zip(values) {
                *to = column[lane & (LANES - 1)].to_le_bytes();
            }
        }
    }

    #[inline(always)]
    fn put_narrow(&mut self, offset: usize, bytes: u32, value: u32) {
        let bytes = bytes as usize;
        self[offset..offset + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}

/// Where lanes are in a memory.
pub enum Places {
    /// All lanes run, each begins where the one before it ends, the first at this offset.
    Row(usize),
    /// Each lane at an offset; those that do not run where one is that does.
    Each([u32; LANES]),
}

/// Which lanes are where others are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Of the lanes of each place the first.
    pub firsts: u32,
    /// Of the lanes of each place the first two; where many places are taken, some more.
    pub pairs: u32,
}

impl Repeats {
    /// No lane is where another one is.
    pub const NONE: Repeats = Repeats {
        firsts: u32::MAX,
        pairs: u32::MAX,
    };

    /// Of the lanes of `mask` at these offsets, for accesses of `bytes` bytes each.
    #[inline(always)]
    pub fn of(offsets: &[u32; LANES], mask: u32, bytes: usize) -> Repeats {
        // By the lowest bits of the place, the place that was met last, and how often. Places that share those bits
        // cost time only.
        let mut last = [u32::MAX; LANES];
        let mut met = [0u8; LANES];
        let mut all = Repeats {
            firsts: 0,
            pairs: 0,
        };
        for lane in lanes(mask) {
            let place = offsets[lane] / bytes as u32;
            let slot = place as usize % LANES;
            if last[slot] != place {
                (last[slot], met[slot]) = (place, 0);
            }
            all.firsts |= u32::from(met[slot] == 0) << lane;
            all.pairs |= u32::from(met[slot] < 2) << lane;
            met[slot] = met[slot].saturating_add(1);
        }
        all
    }
}

/// Loads `N` words a lane into a result.
#[inline(always)]
fn load<const N: usize>(
    memory: impl Memory,
    places: &Places,
    registers: &mut Registers,
    d: Operand,
    mask: u32,
) {
    let values: [Column; N] = match places {
        Places::Row(offset) => memory.row(*offset),
        Places::Each(offsets) => {
            let mut columns = [[0; LANES]; N];
            for (lane, offset) in offsets.iter().enumerate() {
                let words: [u32; N] = memory.group(*offset as usize);
                for (column, word) in columns.iter_mut().zip(words) {
                    column[lane] = word;
                }
            }
            columns
        }
    };
    for (column, values) in (d.column..).zip(&values).take(d.words.into()) {
        registers.set_column(column, values, mask);
    }
}

/// Loads into a result.
#[inline(always)]
pub(in crate::sim) fn load_any(
    memory: impl Memory,
    access: Access,
    places: &Places,
    registers: &mut Registers,
    d: Operand,
    mask: u32,
) {
    let words = access.bytes / WORD as u8;
    match (words, places) {
        (1, _) => load::<1>(memory, places, registers, d, mask),
        (2, _) => load::<2>(memory, places, registers, d, mask),
        (4, _) => load::<4>(memory, places, registers, d, mask),
        (_, Places::Each(offsets)) if d.words != 0 => {
            let column = registers.column_mut(d.column);
            for lane in lanes(mask) {
                let value = memory.narrow(offsets[lane] as usize, access.bytes.into());
                column[lane] = match (access.bytes, access.signed) {
                    (1, true) => value as u8 as i8 as u32,
                    (2, true) => value as u16 as i16 as u32,
                    _ => value,
                };
            }
        }
        _ => {}
    }
    // A result that is wider than what was loaded has zeros above.
    for word in words.max(1)..d.words {
        registers.set_column(d.column + u16::from(word), &[0; LANES], mask);
    }
}

/// Stores `N` words a lane.
#[inline(always)]
fn store<const N: usize>(
    mut memory: impl MemoryMut,
    places: &Places,
    registers: &Registers,
    b: Operand,
    mask: u32,
) {
    let values: [&Column; N] = std::array::from_fn(|word| {
        let there = word < usize::from(b.words);
        registers.column(if there { b.column + word as u16 } else { ZERO })
    });
    match places {
        Places::Row(offset) => memory.put_row(*offset, values),
        // Where lanes store to the same place the last one wins.
        Places::Each(offsets) => {
            for lane in lanes(mask) {
                memory.put_group(offsets[lane] as usize, values.map(|column| column[lane]));
            }
        }
    }
}

/// Stores a source.
#[inline(always)]
fn store_any(
    mut memory: impl MemoryMut,
    access: Access,
    places: &Places,
    registers: &Registers,
    b: Operand,
    mask: u32,
) {
    match (access.bytes / WORD as u8, places) {
        (1, _) => store::<1>(memory, places, registers, b, mask),
        (2, _) => store::<2>(memory, places, registers, b, mask),
        (4, _) => store::<4>(memory, places, registers, b, mask),
        (_, Places::Each(offsets)) => {
            let values = registers.column(if b.words != 0 { b.column } else { ZERO });
            for lane in lanes(mask) {
                memory.put_narrow(offsets[lane] as usize, access.bytes.into(), values[lane]);
            }
        }
        _ => {}
    }
}

/// The addresses of an access.
pub(in crate::sim) struct Addresses {
    all: [u64; LANES],
    /// That of the first lane that runs.
    pub(in crate::sim) first: u64,
    mask: u32,
    bytes: u64,
}

impl Addresses {
    /// Whether all lanes run and each begins where the one before it ends.
    #[inline(always)]
    fn is_row(&self) -> bool {
        let mut differs = 0;
        for (lane, address) in self.all.iter().enumerate() {
            differs |= address ^ self.first.wrapping_add(lane as u64 * self.bytes);
        }
        self.mask == u32::MAX && differs == 0
    }

    /// The offset in local memory of whole words, if that is the same in all lanes that run and right.
    #[inline(always)]
    fn local(&self, base: u64, size: u32) -> Option<usize> {
        let offset = self.first.wrapping_sub(base);
        let last = u64::from(size).checked_sub(self.bytes)?;
        if offset > last || offset & (self.bytes - 1) != 0 || self.bytes < WORD as u64 {
            return None;
        }
        let mut differs = 0;
        for (address, bit) in self.all.iter().zip(&BITS) {
            let runs = if self.mask & bit != 0 { u64::MAX } else { 0 };
            differs |= (address ^ self.first) & runs;
        }
        (differs == 0).then_some(offset as usize)
    }

    /// The places in the memory from `base` with `size` bytes; none unless all lanes that run are right there.
    #[inline(always)]
    pub(in crate::sim) fn places(&self, base: u64, size: u64) -> Option<Places> {
        let last = size.checked_sub(self.bytes)?;
        let first = self.first.wrapping_sub(base);
        if first > last || first & (self.bytes - 1) != 0 {
            return None;
        }
        // With as many bytes a lane, all are within or the last one is not.
        if self.bytes >= WORD as u64 && self.is_row() {
            let end = first.checked_add((LANES as u64 - 1) * self.bytes)?;
            return (end <= last).then_some(Places::Row(first as usize));
        }
        let mut offsets = [0; LANES];
        let mut wrong = 0;
        for ((offset, address), bit) in offsets.iter_mut().zip(&self.all).zip(&BITS) {
            let runs = self.mask & bit != 0;
            let place = if runs {
                address.wrapping_sub(base)
            } else {
                first
            };
            wrong |= if place > last { 1 } else { 0 } | place & (self.bytes - 1);
            *offset = place as u32;
        }
        (wrong == 0 && last <= u64::from(u32::MAX)).then_some(Places::Each(offsets))
    }
}

/// Loads `N` words a lane from local memory, where all lanes use one offset.
#[inline(always)]
fn load_local<const N: usize>(
    local: &Local,
    offset: usize,
    registers: &mut Registers,
    d: Operand,
    mask: u32,
) {
    let columns: [Column; N] = local.columns(offset);
    for (column, values) in (d.column..).zip(&columns).take(d.words.into()) {
        registers.set_column(column, values, mask);
    }
}

/// The memory of an address and where that begins.
#[inline(always)]
pub(in crate::sim) fn window(access: Access, address: u64) -> (Window, u64) {
    match access.window {
        Some(window) => (window, 0),
        None if address >= SHARED_WINDOW && address - SHARED_WINDOW < WINDOW => {
            (Window::Shared, SHARED_WINDOW)
        }
        None if address >= LOCAL_WINDOW && address - LOCAL_WINDOW < WINDOW => {
            (Window::Local, LOCAL_WINDOW)
        }
        None => (Window::Global, 0),
    }
}

impl Warp {
    /// The addresses of all lanes, also of those that do not run; none where a part of them cannot be found out, and
    /// where each lane's access has an order.
    #[inline(always)]
    pub(in crate::sim) fn addresses(
        &mut self,
        op: &Op,
        env: &Environment,
        access: Access,
        mask: u32,
    ) -> Option<Addresses> {
        if access.strong && env.concurrency != Concurrency::Alone {
            return None;
        }
        if !op.broadcasts.is_empty() {
            self.broadcast(op, env.banks, mask).ok()?;
        }
        let shared = self.shared_part(op, access);
        let a = op.operand(Role::A);
        let high = if a.words < 2 { ZERO } else { a.column + 1 };
        let (low, high) = (self.registers.column(a.column), self.registers.column(high));
        let keep = if access.wide {
            u64::MAX
        } else {
            u32::MAX.into()
        };
        let mut all = [0; LANES];
        for ((address, low), high) in all.iter_mut().zip(low).zip(high) {
            let base = u64::from(*low) | u64::from(*high) << 32;
            *address = base.wrapping_add(shared) & keep;
        }
        Some(Addresses {
            first: all[(mask.trailing_zeros() & 31) as usize],
            all,
            mask,
            bytes: access.bytes.into(),
        })
    }

    /// A load or store for all lanes at once; false if that is not possible, and then nothing is done.
    pub(in crate::sim) fn access_together(
        &mut self,
        op: &Op,
        env: &mut Environment,
        mask: u32,
    ) -> bool {
        if env.recorder.is_some() || self.lacks_constants {
            return false;
        }
        env.program.host.run(
            #[inline(always)]
            || match op.action {
                _ if env.checker.is_some() => self.access_checked(op, env, mask),
                Action::Load(access) => self.load_together(op, env, access, mask),
                Action::Store(access) => self.store_together(op, env, access, mask),
                _ => false,
            },
        )
    }

    /// Loads for all lanes at once when nobody looks on; false if that is not possible, and then nothing is done.
    #[inline(always)]
    pub(in crate::sim) fn load_together(
        &mut self,
        op: &Op,
        env: &Environment,
        access: Access,
        mask: u32,
    ) -> bool {
        let Some(addresses) = self.addresses(op, env, access, mask) else {
            return false;
        };
        let (d, registers) = (op.operand(Role::D), &mut self.registers);
        match window(access, addresses.first) {
            (Window::Global, _) => {
                let Some(index) = env.global.index(addresses.first) else {
                    return false;
                };
                let (base, size) = env.global.extent(index);
                let Some(places) = addresses.places(base, size) else {
                    return false;
                };
                load_any(env.global.words(index), access, &places, registers, d, mask);
            }
            (Window::Shared, base) => {
                let data = env.shared.data();
                let Some(places) = addresses.places(base, data.len() as u64) else {
                    return false;
                };
                load_any(data, access, &places, registers, d, mask);
            }
            (Window::Local, base) => {
                let local = &self.local;
                let Some(offset) = addresses.local(base, local.size()) else {
                    return false;
                };
                let words = access.bytes / WORD as u8;
                match words {
                    1 => load_local::<1>(local, offset, registers, d, mask),
                    2 => load_local::<2>(local, offset, registers, d, mask),
                    _ => load_local::<4>(local, offset, registers, d, mask),
                }
                // A result that is wider than what was loaded has zeros above.
                for word in words..d.words {
                    registers.set_column(d.column + u16::from(word), &[0; LANES], mask);
                }
            }
        }
        true
    }

    /// Stores for all lanes at once when nobody looks on; false if that is not possible, and then nothing is done.
    #[inline(always)]
    pub(in crate::sim) fn store_together(
        &mut self,
        op: &Op,
        env: &mut Environment,
        access: Access,
        mask: u32,
    ) -> bool {
        let Some(addresses) = self.addresses(op, env, access, mask) else {
            return false;
        };
        let (b, registers) = (op.operand(Role::B), &self.registers);
        match window(access, addresses.first) {
            (Window::Global, _) => {
                let Some(index) = env.global.index(addresses.first) else {
                    return false;
                };
                let words = env.global.words(index);
                let (base, size) = env.global.extent(index);
                let places = addresses.places(base, size);
                let is_plain = !words.is_tracked() && env.global.is_writable(index);
                let Some(places) = places.filter(|_| is_plain) else {
                    return false;
                };
                store_any(words, access, &places, registers, b, mask);
            }
            (Window::Shared, base) => {
                let shared: &mut Bytes = env.shared;
                let places = addresses.places(base, shared.data().len() as u64);
                let Some(places) = places.filter(|_| !shared.is_tracked()) else {
                    return false;
                };
                store_any(shared.data_mut(), access, &places, registers, b, mask);
            }
            (Window::Local, base) => {
                let offset = addresses.local(base, self.local.size());
                let Some(offset) = offset.filter(|_| !self.local.is_tracked()) else {
                    return false;
                };
                let words = usize::from(access.bytes) / WORD;
                for (word, column) in self.local.columns_mut(offset, words).iter_mut().enumerate() {
                    let there = word < usize::from(b.words);
                    let source = if there { b.column + word as u16 } else { ZERO };
                    blend(column, registers.column(source), mask);
                }
            }
        }
        true
    }
}
