//! What the device's memory held before.
//!
//! A weak load may be answered from what its block has kept since the last MEMBAR.GL of one of its threads. Which
//! places a block keeps, and when it takes them, nobody promises. So a block may have kept any place as it was at any
//! time since then: the values that the device has overwritten are kept here, with the time at which that happened, and
//! [`super::view`] knows from which time on a block may still see them.
//!
//! A time is a number of writes to the device. Of a word the last [`KEPT`] values are remembered; forgetting makes the
//! machine no wrong one, only a stronger one.

use crate::sim::memory::Location;
use crate::sim::memory::global::Table;
use hashbrown::HashMap;
use std::collections::VecDeque;

/// Bytes of a word.
pub(super) const WORD: usize = size_of::<u32>();
/// Values of a word that are remembered, at most (assigned).
const KEPT: usize = 8;

/// A word of global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Word {
    /// Index of the allocation.
    pub allocation: usize,
    /// Index of the word in it.
    pub index: usize,
}

/// A word and those of its bits that an access touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordBits {
    /// The word.
    pub word: Word,
    /// The bits.
    pub mask: u32,
    /// Where its lowest bit goes in the value of the access.
    pub shift: u32,
}

impl WordBits {
    /// The bits of the word that a value brings.
    pub fn of(self, value: u128) -> u32 {
        let low = self.mask.trailing_zeros() & 31;
        ((value >> self.shift) as u32) << low & self.mask
    }

    /// What a word contributes to the value of the access.
    pub fn gives(self, word: u32) -> u128 {
        let low = self.mask.trailing_zeros() & 31;
        u128::from((word & self.mask) >> low) << self.shift
    }
}

/// The parts of words that an access of global memory touches, which is aligned to its size; none elsewhere.
pub(super) fn parts(place: Location, bytes: u32) -> impl Iterator<Item = WordBits> {
    let (allocation, offset, count) = match place {
        Location::Global(allocation, offset) => {
            (allocation, offset, (bytes as usize).div_ceil(WORD))
        }
        Location::Shared(_) | Location::Local(_) => (0, 0, 0),
    };
    let bits = 8 * bytes.min(WORD as u32);
    let mask = u32::MAX >> (32 - bits) << (8 * (offset % WORD));
    (0..count).map(move |index| WordBits {
        word: Word {
            allocation,
            index: offset / WORD + index,
        },
        mask,
        shift: 32 * index as u32,
    })
}

/// A value that a word had.
#[derive(Clone, Copy, Debug)]
struct Earlier {
    /// The time at which it was overwritten.
    until: u64,
    value: u32,
}

/// The values that words of global memory had since the launch began.
#[derive(Debug, Default)]
pub(super) struct Past {
    now: u64,
    words: HashMap<Word, VecDeque<Earlier>>,
}

impl Past {
    /// The time.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// A word of the device is about to be overwritten; the time at which that happens.
    pub fn overwritten(&mut self, table: &Table, word: Word) -> u64 {
        self.now += 1;
        let earlier = self.words.entry(word).or_default();
        if earlier.len() == KEPT {
            earlier.pop_front();
        }
        earlier.push_back(Earlier {
            until: self.now,
            value: current(table, word),
        });
        self.now
    }

    /// Later times than `since` at which a word was overwritten.
    pub fn changes(&self, word: Word, since: u64) -> impl Iterator<Item = u64> {
        let earlier = self.words.get(&word).into_iter().flatten();
        earlier.map(|e| e.until).filter(move |until| *until > since)
    }

    /// What a word held at a time, as far as that is remembered.
    pub fn value(&self, table: &Table, word: Word, time: u64) -> u32 {
        let mut earlier = self.words.get(&word).into_iter().flatten();
        match earlier.find(|e| e.until > time) {
            Some(earlier) => earlier.value,
            None => current(table, word),
        }
    }
}

/// What a word holds.
fn current(table: &Table, word: Word) -> u32 {
    let words = table.words(word.allocation);
    words.load(word.index * WORD, WORD as u32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_take_values_apart_and_put_them_together() {
        let value = 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100u128;
        for bytes in [1, 2, 4, 8, 16] {
            for start in (0..32).step_by(bytes) {
                let all: Vec<WordBits> = parts(Location::Global(3, start), bytes as u32).collect();
                let together = all.iter().fold(0, |v, p| v | p.gives(p.of(value)));
                assert_eq!(
                    together,
                    value & u128::MAX >> (128 - 8 * bytes),
                    "{start} {bytes}"
                );
                let bits: u32 = all.iter().map(|p| p.mask.count_ones()).sum();
                assert_eq!(bits, 8 * bytes as u32);
                assert_eq!(all[0].mask.trailing_zeros() as usize, start % WORD * 8);
                assert!(all.iter().all(|p| p.word.allocation == 3));
                assert_eq!(all[0].word.index, start / WORD);
            }
        }
        assert_eq!(parts(Location::Shared(4), 4).count(), 0);
    }
}
