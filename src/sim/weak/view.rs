//! A block's view of global memory: what its threads have stored and the device does not have yet, and how old may be
//! what they read.
//!
//! Weak stores are performed for the block first. They lie in the view's [`Store`]s, word by word, where weak loads of
//! the block find them, until they are drained to the device: at random, by a MEMBAR.GL or by a strong access of the
//! block to the same word. Strong accesses are performed for the device at one time.
//!
//! A weak load reads all that is not among the stores as it was on the device at one time, of those that the block may
//! have kept: not before the last MEMBAR.GL of one of its threads, and for no word before what a thread of the block
//! has seen of it or written to it. So all threads of a block agree with the device on the order of the writes to a
//! word.

use super::past::{Past, WORD, Word, WordBits, parts};
use crate::isa::random::Random;
use crate::sim::memory::Location;
use crate::sim::memory::global::Table;
use crate::sim::memory::strong::Concurrency;
use hashbrown::HashMap;

/// Words whose stores a block may hold back, at most (assigned).
const HELD: usize = 64;

/// The device, and how it came to be what it is.
pub(super) struct Device<'a> {
    /// Its memory.
    pub table: &'a Table,
    /// What it held before.
    pub past: &'a mut Past,
    /// What decides.
    pub random: &'a mut Random,
}

impl Device<'_> {
    /// Overwrites bits of a word for all threads; when that happens.
    fn write(&mut self, word: Word, mask: u32, bits: u32) -> u64 {
        let time = self.past.overwritten(self.table, word);
        let words = self.table.words(word.allocation);
        words.modify(word.index * WORD, WORD as u32, Concurrency::Alone, |old| {
            Some(old & !u64::from(mask) | u64::from(bits & mask))
        });
        time
    }
}

/// Bits of a word that a block has stored and the device does not have yet.
#[derive(Clone, Copy, Debug)]
struct Store {
    word: Word,
    mask: u32,
    bits: u32,
}

/// A block's view.
#[derive(Debug, Default)]
pub(super) struct View {
    /// No word twice.
    stores: Vec<Store>,
    /// The time since which words may be as the block sees them, where that is later than `fence`.
    seen: HashMap<Word, u64>,
    /// The time of the last MEMBAR.GL.
    fence: u64,
}

impl View {
    /// Whether the device has all stores of the block.
    pub fn is_drained(&self) -> bool {
        self.stores.is_empty()
    }

    /// A weak store is performed for the block.
    pub fn store(&mut self, device: &mut Device, place: Location, bytes: u32, value: u128) {
        for part in parts(place, bytes) {
            let bits = part.of(value);
            match self.stores.iter_mut().find(|s| s.word == part.word) {
                Some(store) => {
                    store.mask |= part.mask;
                    store.bits = store.bits & !part.mask | bits;
                }
                None => {
                    if self.stores.len() == HELD {
                        self.drain_one(device);
                    }
                    self.stores.push(Store {
                        word: part.word,
                        mask: part.mask,
                        bits,
                    });
                }
            }
        }
    }

    /// A weak load; `old`: it may be answered by something that the device does not hold any more.
    pub fn load(&mut self, device: &mut Device, place: Location, bytes: u32, old: bool) -> u128 {
        let since = |view: &View, word: &Word| {
            let seen = view.seen.get(word).copied().unwrap_or(0);
            seen.max(view.fence)
        };
        let mut time = device.past.now();
        if old {
            let all = parts(place, bytes).map(|part| since(self, &part.word));
            let from = all.fold(0, u64::max);
            let changes = parts(place, bytes).flat_map(|p| device.past.changes(p.word, from));
            let changes: Vec<u64> = changes.collect();
            if !changes.is_empty() {
                // The last time before one of the changes.
                time = *device.random.pick(&changes) - 1;
            }
        }
        let mut value = 0;
        for part in parts(place, bytes) {
            let mut word = device.past.value(device.table, part.word, time);
            self.seen.insert(part.word, time);
            if let Some(store) = self.stores.iter().find(|s| s.word == part.word) {
                word = word & !store.mask | store.bits;
            }
            value |= part.gives(word);
        }
        value
    }

    /// A strong store, performed for all.
    pub fn store_strong(&mut self, device: &mut Device, place: Location, bytes: u32, value: u128) {
        self.drain_words(device, place, bytes);
        for part in parts(place, bytes) {
            let time = device.write(part.word, part.mask, part.of(value));
            self.seen.insert(part.word, time);
        }
    }

    /// Before a strong load of a thread of the block: behind it none finds anything older there.
    pub fn see(&mut self, device: &mut Device, place: Location, bytes: u32) {
        self.drain_words(device, place, bytes);
        let now = device.past.now();
        parts(place, bytes).for_each(|part| _ = self.seen.insert(part.word, now));
    }

    /// Before a strong access, which reads what the device holds.
    fn drain_words(&mut self, device: &mut Device, place: Location, bytes: u32) {
        for WordBits { word, .. } in parts(place, bytes) {
            if let Some(index) = self.stores.iter().position(|s| s.word == word) {
                self.drain(device, index);
            }
        }
    }

    /// Before an atomic changes a place for all.
    pub fn change(&mut self, device: &mut Device, place: Location, bytes: u32) {
        self.drain_words(device, place, bytes);
        for WordBits { word, .. } in parts(place, bytes) {
            let time = device.past.overwritten(device.table, word);
            self.seen.insert(word, time);
        }
    }

    /// A word of the block's stores becomes one of the device's, if there is one.
    pub fn drain_one(&mut self, device: &mut Device) {
        if !self.stores.is_empty() {
            let index = device.random.below(self.stores.len());
            self.drain(device, index);
        }
    }

    fn drain(&mut self, device: &mut Device, index: usize) {
        let Store { word, mask, bits } = self.stores.swap_remove(index);
        let time = device.write(word, mask, bits);
        self.seen.insert(word, time);
    }

    /// MEMBAR.GL: the device has all stores of the block, and nothing is kept.
    pub fn fence(&mut self, device: &mut Device) {
        while !self.stores.is_empty() {
            self.drain_one(device);
        }
        self.seen.clear();
        self.fence = device.past.now();
    }
}
