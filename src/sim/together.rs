//! Loads and stores whose lanes are all in one memory, checked once for all lanes.
//!
//! This is what nearly all accesses are when nobody looks on. What is found wrong here, and what is elsewhere, is left to the lane by lane way of
//! [`super::access`], which knows the first lane at fault and what the lanes before it have done. Lanes beside each other are one copy.

use super::action::Access;
use super::bytes::Bytes;
use super::decoded::Op;
use super::execute::Environment;
use super::memory::{WINDOW, little_endian};
use super::registers::{BITS, Column, LANES, Operand, Registers, lanes};
use super::warp::Warp;
use super::words::Words;
use crate::abi::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::isa::Role;
use crate::launch::Window;

/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// A memory that all lanes of an access use.
trait Memory {
    /// The word at an offset that is a multiple of four.
    fn at(&self, offset: usize) -> u32;
    /// The value of one or two bytes at an offset that is a multiple of them.
    fn narrow(&self, offset: usize, bytes: u32) -> u32;
    /// Words from an offset that is a multiple of four.
    fn read(&self, offset: usize, destination: &mut [u32]);
}

impl Memory for &Words {
    #[inline(always)]
    fn at(&self, offset: usize) -> u32 {
        Words::at(self, offset)
    }

    #[inline(always)]
    fn narrow(&self, offset: usize, bytes: u32) -> u32 {
        self.load(offset, bytes) as u32
    }

    #[inline(always)]
    fn read(&self, offset: usize, destination: &mut [u32]) {
        self.read_words(offset, destination);
    }
}

impl Memory for &[u8] {
    #[inline(always)]
    fn at(&self, offset: usize) -> u32 {
        little_endian(self, offset, WORD as u32) as u32
    }

    #[inline(always)]
    fn narrow(&self, offset: usize, bytes: u32) -> u32 {
        little_endian(self, offset, bytes) as u32
    }

    #[inline(always)]
    fn read(&self, offset: usize, destination: &mut [u32]) {
        let source = self[offset..offset + WORD * destination.len()]
            .as_chunks::<WORD>()
            .0;
        for (to, bytes) in destination.iter_mut().zip(source) {
            *to = u32::from_le_bytes(*bytes);
        }
    }
}

/// A memory that all lanes of a store use.
trait MemoryMut {
    /// Overwrites the word at an offset that is a multiple of four.
    fn put(&mut self, offset: usize, value: u32);
    /// Overwrites one or two bytes at an offset that is a multiple of them.
    fn put_narrow(&mut self, offset: usize, bytes: u32, value: u32);
    /// Overwrites words from an offset that is a multiple of four.
    fn write(&mut self, offset: usize, source: &[u32]);
}

impl MemoryMut for &Words {
    #[inline(always)]
    fn put(&mut self, offset: usize, value: u32) {
        Words::put(self, offset, value);
    }

    #[inline(always)]
    fn put_narrow(&mut self, offset: usize, bytes: u32, value: u32) {
        self.store(offset, bytes, value.into());
    }

    #[inline(always)]
    fn write(&mut self, offset: usize, source: &[u32]) {
        self.write_words(offset, source);
    }
}

impl MemoryMut for &mut [u8] {
    #[inline(always)]
    fn put(&mut self, offset: usize, value: u32) {
        self[offset..offset + WORD].copy_from_slice(&value.to_le_bytes());
    }

    #[inline(always)]
    fn put_narrow(&mut self, offset: usize, bytes: u32, value: u32) {
        let bytes = bytes as usize;
        self[offset..offset + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
    }

    #[inline(always)]
    fn write(&mut self, offset: usize, source: &[u32]) {
        let destination = self[offset..offset + WORD * source.len()]
            .as_chunks_mut::<WORD>()
            .0;
        for (to, value) in destination.iter_mut().zip(source) {
            *to = value.to_le_bytes();
        }
    }
}

/// Where the lanes of an access are: the offset of each in the same memory, aligned and inside.
struct Places {
    offsets: [usize; LANES],
    /// All lanes run, and each begins where the one before it ends.
    adjacent: bool,
}

impl Places {
    /// Of these addresses of `bytes` each in the memory from `base` with `size` bytes; none unless all lanes of `mask` are right there.
    #[inline(always)]
    fn new(
        addresses: &[u64; LANES],
        mask: u32,
        bytes: u32,
        base: u64,
        size: u64,
    ) -> Option<Places> {
        let bytes = u64::from(bytes);
        let last = size.checked_sub(bytes)?;
        let mut offsets = [0; LANES];
        let (mut wrong, mut differs) = (0, 0);
        let first = addresses[0];
        for lane in 0..LANES {
            let offset = addresses[lane].wrapping_sub(base);
            let bad = offset > last || addresses[lane] & (bytes - 1) != 0;
            wrong |= if bad { BITS[lane] } else { 0 };
            differs |= addresses[lane] ^ first.wrapping_add(lane as u64 * bytes);
            offsets[lane] = offset as usize;
        }
        (wrong & mask == 0).then_some(Places {
            offsets,
            adjacent: mask == u32::MAX && differs == 0,
        })
    }

    /// Loads into the registers of a result.
    #[inline(always)]
    fn load(
        &self,
        memory: impl Memory,
        access: Access,
        registers: &mut Registers,
        d: Operand,
        mask: u32,
    ) {
        let words = usize::from(access.bytes) / WORD;
        let wanted = words.clamp(1, usize::from(d.words).max(1));
        if d.words == 0 {
            return;
        }
        for word in 0..wanted {
            let column = registers.column_mut(d.column + word as u16);
            if words == 1 && self.adjacent {
                memory.read(self.offsets[0], column);
            } else if words == 0 {
                for lane in lanes(mask) {
                    let value = memory.narrow(self.offsets[lane], access.bytes.into());
                    column[lane] = match (access.bytes, access.signed) {
                        (1, true) => value as u8 as i8 as u32,
                        (2, true) => value as u16 as i16 as u32,
                        _ => value,
                    };
                }
            } else if mask == u32::MAX {
                for (value, offset) in column.iter_mut().zip(&self.offsets) {
                    *value = memory.at(offset + WORD * word);
                }
            } else {
                for lane in lanes(mask) {
                    column[lane] = memory.at(self.offsets[lane] + WORD * word);
                }
            }
        }
        // A result that is wider than what was loaded has zeros above.
        for word in wanted..usize::from(d.words) {
            let column = registers.column_mut(d.column + word as u16);
            lanes(mask).for_each(|lane| column[lane] = 0);
        }
    }

    /// Stores the registers of a source.
    #[inline(always)]
    fn store(
        &self,
        mut memory: impl MemoryMut,
        access: Access,
        registers: &Registers,
        b: Operand,
        mask: u32,
    ) {
        let words = usize::from(access.bytes) / WORD;
        let source = |word: usize| -> &Column {
            let there = word < usize::from(b.words);
            registers.column(if there {
                b.column + word as u16
            } else {
                super::registers::ZERO
            })
        };
        match words {
            0 => {
                for lane in lanes(mask) {
                    memory.put_narrow(self.offsets[lane], access.bytes.into(), source(0)[lane]);
                }
            }
            1 if self.adjacent => memory.write(self.offsets[0], source(0)),
            // Where lanes store to the same place the last one wins, word by word as well.
            _ => {
                for word in 0..words {
                    let values = source(word);
                    for lane in lanes(mask) {
                        memory.put(self.offsets[lane] + WORD * word, values[lane]);
                    }
                }
            }
        }
    }
}

/// The memory of an address and where that begins.
fn window(access: Access, address: u64) -> (Window, u64) {
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
    /// The addresses of all lanes, also of those that do not run.
    #[inline(always)]
    fn addresses(&self, op: &Op, access: Access) -> [u64; LANES] {
        let shared = self.shared_part(op, access);
        let a = op.operand(Role::A);
        let low = self.registers.column(a.column);
        let mut addresses = [0; LANES];
        if access.wide && a.words == 2 {
            let high = self.registers.column(a.column + 1);
            for lane in 0..LANES {
                let base = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                addresses[lane] = base.wrapping_add(shared);
            }
        } else {
            for (lane, address) in addresses.iter_mut().enumerate() {
                *address = self.address(op, access, shared, lane);
            }
        }
        addresses
    }

    /// Loads for all lanes at once; false if that is not possible, and then nothing is done.
    #[inline]
    pub(super) fn load_together(
        &mut self,
        op: &Op,
        env: &Environment,
        access: Access,
        mask: u32,
    ) -> bool {
        if env.checker.is_some() || env.recorder.is_some() {
            return false;
        }
        let (d, bytes) = (op.operand(Role::D), u32::from(access.bytes));
        let addresses = self.addresses(op, access);
        let first = addresses[(mask.trailing_zeros() & 31) as usize];
        let registers = &mut self.registers;
        match window(access, first) {
            (Window::Global, _) => {
                let Some((index, offset)) = env.global.find(first, bytes.into()) else {
                    return false;
                };
                let (_, size) = env.global.extent(index);
                let base = first - offset as u64;
                let Some(places) = Places::new(&addresses, mask, bytes, base, size) else {
                    return false;
                };
                places.load(env.global.words(index), access, registers, d, mask);
            }
            (Window::Shared, base) => {
                let data = env.shared.data();
                let Some(places) = Places::new(&addresses, mask, bytes, base, data.len() as u64)
                else {
                    return false;
                };
                places.load(data, access, registers, d, mask);
            }
            (Window::Local, _) => return false,
        }
        true
    }

    /// Stores for all lanes at once; false if that is not possible, and then nothing is done.
    #[inline]
    pub(super) fn store_together(
        &mut self,
        op: &Op,
        env: &mut Environment,
        access: Access,
        mask: u32,
    ) -> bool {
        if env.checker.is_some() || env.recorder.is_some() {
            return false;
        }
        let (b, bytes) = (op.operand(Role::B), u32::from(access.bytes));
        let addresses = self.addresses(op, access);
        let first = addresses[(mask.trailing_zeros() & 31) as usize];
        let registers = &self.registers;
        match window(access, first) {
            (Window::Global, _) => {
                let Some((index, offset)) = env.global.find(first, bytes.into()) else {
                    return false;
                };
                let words = env.global.words(index);
                let (_, size) = env.global.extent(index);
                let base = first - offset as u64;
                let places = Places::new(&addresses, mask, bytes, base, size);
                let Some(places) = places.filter(|_| !words.is_tracked()) else {
                    return false;
                };
                places.store(words, access, registers, b, mask);
            }
            (Window::Shared, base) => {
                let shared: &mut Bytes = env.shared;
                let places = Places::new(&addresses, mask, bytes, base, shared.data().len() as u64);
                let Some(places) = places.filter(|_| !shared.is_tracked()) else {
                    return false;
                };
                places.store(shared.data_mut(), access, registers, b, mask);
            }
            (Window::Local, _) => return false,
        }
        true
    }
}
