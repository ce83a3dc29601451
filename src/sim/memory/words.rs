//! The bytes of an allocation, which the host and a launch may use at the same time.
//!
//! Words of 32 bits that are loaded and stored one by one, relaxed: whoever needs an order has one already, since a
//! launch and whoever waits for its end meet at the driver's queue. An access of up to four bytes, aligned to its size,
//! is one step; longer ones are a step a word. Accesses with an order have their own file
//! ([`crate::sim::memory::strong`]). Bytes beside those that are stored keep what another thread stores there
//! meanwhile. Zeros come from the operating system when they are touched.

use crate::sim::warp::registers::{Column, LANES};
use bytemuck::allocation::try_zeroed_slice_box;
use std::hash::Hasher;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Bytes of a word.
pub(in crate::sim) const WORD: usize = size_of::<u32>();

/// Bytes of the marks of a word of marks.
const MARKS: usize = u64::BITS as usize;

/// A mark for each byte that was written: bits, which cost nothing until one is set. They are taken away where what is
/// stored is nothing that anybody wrote.
#[derive(Debug, Default)]
struct Written {
    bits: Box<[AtomicU64]>,
    /// All bytes are marked, whatever the bits say.
    all: AtomicBool,
}

impl Written {
    fn new(size: usize) -> Option<Written> {
        Some(Written {
            bits: try_zeroed_slice_box(size.div_ceil(MARKS)).ok()?,
            all: AtomicBool::new(false),
        })
    }

    /// The words of bits of a range, and the bits that belong to it.
    #[inline(always)]
    fn parts(start: usize, bytes: usize) -> impl Iterator<Item = (usize, u64)> {
        let end = start + bytes;
        let words = start / MARKS..if bytes == 0 { 0 } else { end.div_ceil(MARKS) };
        words.map(move |word| {
            let (low, high) = (start.max(word * MARKS), end.min((word + 1) * MARKS));
            (word, u64::MAX >> (MARKS - (high - low)) << (low % MARKS))
        })
    }

    #[inline(always)]
    fn has(&self, start: usize, bytes: usize) -> bool {
        self.all.load(Ordering::Relaxed)
            || Self::parts(start, bytes)
                .all(|(word, bits)| !self.bits[word].load(Ordering::Relaxed) & bits == 0)
    }

    #[inline(always)]
    fn set(&self, start: usize, bytes: usize) {
        if self.all.load(Ordering::Relaxed) {
            return;
        }
        for (word, bits) in Self::parts(start, bytes) {
            if !self.bits[word].load(Ordering::Relaxed) & bits != 0 {
                self.bits[word].fetch_or(bits, Ordering::Relaxed);
            }
        }
    }

    /// Where all are marked for good, nothing happens.
    fn take(&self, start: usize, bytes: usize) {
        for (word, bits) in Self::parts(start, bytes) {
            self.bits[word].fetch_and(!bits, Ordering::Relaxed);
        }
    }
}

impl Clone for Written {
    fn clone(&self) -> Self {
        let bits = self.bits.iter();
        Written {
            bits: bits
                .map(|bits| AtomicU64::new(bits.load(Ordering::Relaxed)))
                .collect(),
            all: AtomicBool::new(self.all.load(Ordering::Relaxed)),
        }
    }
}

/// A range of [`Words`] as it was.
#[derive(Clone, Debug)]
pub(in crate::sim) struct Saved {
    words: Box<[u32]>,
    /// Marks of its bytes.
    written: Box<[u64]>,
}

impl Saved {
    /// Words.
    pub(in crate::sim) fn len(&self) -> usize {
        self.words.len()
    }
}

/// Bytes with, in checking mode, a mark for each that was written.
#[derive(Debug, Default)]
pub struct Words {
    words: Box<[AtomicU32]>,
    /// Bytes; the rest of the last word is not used.
    size: usize,
    written: Option<Written>,
}

impl Words {
    /// `size` zero bytes; `track` marks what is written. None where the host has not so much.
    pub fn new(size: usize, track: bool) -> Option<Words> {
        Some(Words {
            words: try_zeroed_slice_box(size.div_ceil(WORD)).ok()?,
            size,
            written: match track {
                true => Some(Written::new(size)?),
                false => None,
            },
        })
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.size
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Whether stores are marked.
    #[inline]
    pub(in crate::sim) fn is_tracked(&self) -> bool {
        self.written.is_some()
    }

    /// `N` words at an offset that is a multiple of four.
    #[inline(always)]
    pub(in crate::sim) fn words_at<const N: usize>(&self, start: usize) -> [u32; N] {
        let words = &self.words[start / WORD..][..N];
        std::array::from_fn(|word| words[word].load(Ordering::Relaxed))
    }

    /// `N` words for each lane, one lane behind the other, from an offset that is a multiple of four.
    #[inline(always)]
    pub(in crate::sim) fn columns_at<const N: usize>(&self, start: usize) -> [Column; N] {
        let words = &self.words[start / WORD..][..N * LANES];
        let mut columns = [[0; LANES]; N];
        for lane in 0..LANES {
            for (word, column) in columns.iter_mut().enumerate() {
                column[lane] = words[N * lane + word].load(Ordering::Relaxed);
            }
        }
        columns
    }

    /// Overwrites `N` words at an offset that is a multiple of four, without marks.
    #[inline(always)]
    pub(in crate::sim) fn put_words<const N: usize>(&self, start: usize, values: [u32; N]) {
        let words = &self.words[start / WORD..][..N];
        for (word, value) in words.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Overwrites `N` words for each lane, one lane behind the other, from an offset that is a multiple of four,
    /// without marks.
    #[inline(always)]
    pub(in crate::sim) fn put_columns<const N: usize>(&self, start: usize, values: [&Column; N]) {
        let words = &self.words[start / WORD..][..N * LANES];
        for lane in 0..LANES {
            for (word, column) in values.iter().enumerate() {
                words[N * lane + word].store(column[lane], Ordering::Relaxed);
            }
        }
    }

    /// Whether all of a range were written; true when that is not tracked.
    #[inline(always)]
    pub fn is_written(&self, start: usize, bytes: usize) -> bool {
        self.written.as_ref().is_none_or(|w| w.has(start, bytes))
    }

    /// Marks a range as written, where that is tracked.
    #[inline(always)]
    pub(in crate::sim) fn mark(&self, start: usize, bytes: usize) {
        if let Some(written) = &self.written {
            written.set(start, bytes);
        }
    }

    /// Marks a range as not written, unless the host has written all there is.
    pub(in crate::sim) fn forget(&self, start: usize, bytes: usize) {
        if let Some(written) = &self.written {
            written.take(start, bytes);
        }
    }

    /// A range that begins at a multiple of 64, as far as it exists.
    pub(in crate::sim) fn saved(&self, start: usize, bytes: usize) -> Saved {
        let range = |unit: usize, count: usize| start / unit..((start + bytes) / unit).min(count);
        let words = &self.words[range(WORD, self.words.len())];
        let marks = |written: &Written| {
            let bits = &written.bits[range(MARKS, written.bits.len())];
            bits.iter()
                .map(|bits| bits.load(Ordering::Relaxed))
                .collect()
        };
        Saved {
            words: words.iter().map(|w| w.load(Ordering::Relaxed)).collect(),
            written: self.written.as_ref().map_or_else(Box::default, marks),
        }
    }

    /// Its words, and the marks of their bytes.
    pub(in crate::sim) fn hash(&self, state: &mut impl Hasher) {
        let marks = self.written.iter().flat_map(|written| &written.bits);
        let marks = marks.map(|bits| bits.load(Ordering::Relaxed));
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        words.for_each(|word| state.write_u32(word));
        marks.for_each(|bits| state.write_u64(bits));
    }

    /// Makes the bytes of a mask of a word what they were, and their marks: it was number `at` of what was saved.
    pub(in crate::sim) fn put_back(&self, index: usize, bytes: u8, saved: &Saved, at: usize) {
        let mask = (0..WORD).filter(|byte| bytes >> byte & 1 != 0);
        let mask = mask.fold(0, |mask, byte| mask | 0xFF << (8 * byte));
        self.replace(index, mask, saved.words[at]);
        if let Some(written) = &self.written {
            let shift = index * WORD % MARKS;
            let was = saved.written[at * WORD / MARKS];
            let bits = u64::from(bytes) << shift;
            let marks = &written.bits[index * WORD / MARKS];
            marks.fetch_and(!(bits & !was), Ordering::Relaxed);
            marks.fetch_or(bits & was, Ordering::Relaxed);
        }
    }

    /// The word at an offset in it.
    #[inline(always)]
    pub(in crate::sim) fn atomic(&self, start: usize) -> &AtomicU32 {
        &self.words[start / WORD]
    }

    #[inline]
    fn word(&self, index: usize) -> u32 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// Replaces the bits of `mask` in a word.
    #[inline]
    fn replace(&self, index: usize, mask: u32, bits: u32) {
        let word = &self.words[index];
        if mask == u32::MAX {
            word.store(bits, Ordering::Relaxed);
        } else {
            // The closure always gives a value.
            let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| {
                Some(old & !mask | bits & mask)
            });
        }
    }

    /// The value at an offset that is a multiple of its 1, 2, 4, 8 or 16 bytes, zero-extended.
    #[inline]
    pub fn load(&self, start: usize, bytes: u32) -> u128 {
        let first = start / WORD;
        match bytes {
            4 => u128::from(self.word(first)),
            1 | 2 => {
                let value = self.word(first) >> (8 * (start % WORD));
                u128::from(value & (u32::MAX >> (32 - 8 * bytes)))
            }
            _ => {
                let words = &self.words[first..first + bytes as usize / WORD];
                words.iter().rev().fold(0, |value, word| {
                    value << 32 | u128::from(word.load(Ordering::Relaxed))
                })
            }
        }
    }

    /// Writes the low `bytes` of a value, at an offset that is a multiple of them.
    #[inline]
    pub fn store(&self, start: usize, bytes: u32, value: u128) {
        let first = start / WORD;
        match bytes {
            1 | 2 => {
                let shift = 8 * (start % WORD) as u32;
                let mask = u32::MAX >> (32 - 8 * bytes) << shift;
                self.replace(first, mask, (value as u32) << shift);
            }
            _ => {
                let words = &self.words[first..first + bytes as usize / WORD];
                for (index, word) in words.iter().enumerate() {
                    word.store((value >> (32 * index)) as u32, Ordering::Relaxed);
                }
            }
        }
        if self.written.is_some() {
            self.mark(start, bytes as usize);
        }
    }

    /// The parts of words that a range touches: index, bytes before the part in its word, bytes of the part.
    fn parts(start: usize, bytes: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let end = start + bytes;
        let words = if bytes == 0 {
            0..0
        } else {
            start / WORD..end.div_ceil(WORD)
        };
        words.map(move |index| {
            let low = start.max(index * WORD);
            let high = end.min(index * WORD + WORD);
            (index, low - index * WORD, high - low)
        })
    }

    /// How many bytes of a range lie before its first whole word.
    fn head(start: usize, bytes: usize) -> usize {
        (start.next_multiple_of(WORD) - start).min(bytes)
    }

    /// Copies a range that must be inside.
    pub fn read(&self, start: usize, destination: &mut [u8]) {
        let head = Self::head(start, destination.len());
        let (head, rest) = destination.split_at_mut(head);
        self.read_parts(start, head);
        let first = start + head.len();
        let (whole, tail) = rest.as_chunks_mut::<WORD>();
        for (bytes, word) in whole.iter_mut().zip(&self.words[first / WORD..]) {
            *bytes = word.load(Ordering::Relaxed).to_le_bytes();
        }
        self.read_parts(first + whole.as_flattened().len(), tail);
    }

    /// Copies a range of few words.
    fn read_parts(&self, start: usize, destination: &mut [u8]) {
        let mut rest = destination;
        for (index, before, count) in Self::parts(start, rest.len()) {
            let (part, behind) = rest.split_at_mut(count);
            let word = self.word(index).to_le_bytes();
            part.copy_from_slice(&word[before..before + count]);
            rest = behind;
        }
    }

    /// Overwrites a range that must be inside.
    pub fn write(&self, start: usize, source: &[u8]) {
        let (head, rest) = source.split_at(Self::head(start, source.len()));
        self.write_parts(start, head);
        let first = start + head.len();
        let (whole, tail) = rest.as_chunks::<WORD>();
        for (bytes, word) in whole.iter().zip(&self.words[first / WORD..]) {
            word.store(u32::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        self.write_parts(first + whole.as_flattened().len(), tail);
        self.mark_of_host(start, source.len());
    }

    /// Marks a range as written; for all bytes that takes no memory.
    fn mark_of_host(&self, start: usize, bytes: usize) {
        match &self.written {
            Some(written) if bytes == self.size => written.all.store(true, Ordering::Relaxed),
            _ => self.mark(start, bytes),
        }
    }

    /// Overwrites a range of few words, without marks.
    fn write_parts(&self, start: usize, source: &[u8]) {
        let mut rest = source;
        for (index, before, count) in Self::parts(start, rest.len()) {
            let (part, behind) = rest.split_at(count);
            let mut word = [0; WORD];
            word[before..before + count].copy_from_slice(part);
            self.replace(index, mask(before, count), u32::from_le_bytes(word));
            rest = behind;
        }
    }

    /// Overwrites a range that must be inside with zeros. Words that are zero are left alone: they may be memory that
    /// does not exist yet.
    pub fn clear(&self, start: usize, bytes: usize) {
        for (index, before, count) in Self::parts(start, bytes) {
            if self.word(index) != 0 {
                self.replace(index, mask(before, count), 0);
            }
        }
        self.mark_of_host(start, bytes);
    }

    /// Overwrites everything with zeros that count as written; this takes no time and no memory.
    pub fn clear_all(&mut self) {
        match try_zeroed_slice_box(self.words.len()) {
            Ok(words) => self.words = words,
            Err(()) => self.words.iter_mut().for_each(|word| *word.get_mut() = 0),
        }
        self.mark_of_host(0, self.size);
    }
}

impl Clone for Words {
    /// Other bytes of the same value.
    fn clone(&self) -> Self {
        let words = self.words.iter();
        Words {
            words: words
                .map(|word| AtomicU32::new(word.load(Ordering::Relaxed)))
                .collect(),
            size: self.size,
            written: self.written.clone(),
        }
    }
}

/// The bits of `count` bytes behind the first `before`.
fn mask(before: usize, count: usize) -> u32 {
    u32::MAX >> (32 - 8 * count) << (8 * before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::random::Random;
    use std::thread;

    /// Values and ranges of every size against plain bytes.
    #[test]
    fn words_are_the_bytes_that_were_stored() {
        let size = 1021;
        let words = Words::new(size, false).unwrap();
        let mut model = vec![0u8; size];
        let mut random = Random::new(3);
        for _ in 0..4000 {
            let start = random.bits() as usize % size;
            let count = random.bits() as usize % (size - start);
            match random.bits() % 4 {
                0 => {
                    let bytes = 1 << (random.bits() % 5);
                    let start = start / bytes * bytes;
                    if start + bytes > size {
                        continue;
                    }
                    let value = u128::from(random.bits()) << 64 | u128::from(random.bits());
                    words.store(start, bytes as u32, value);
                    model[start..start + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                    let expected = value & (u128::MAX >> (128 - 8 * bytes));
                    assert_eq!(words.load(start, bytes as u32), expected);
                }
                1 => {
                    let source: Vec<u8> = (0..count).map(|_| random.bits() as u8).collect();
                    words.write(start, &source);
                    model[start..start + count].copy_from_slice(&source);
                }
                2 => {
                    words.clear(start, count);
                    model[start..start + count].fill(0);
                }
                _ => {
                    let mut read = vec![1; count];
                    words.read(start, &mut read);
                    assert_eq!(read, model[start..start + count]);
                }
            }
        }
        let mut all = vec![0; size];
        words.clone().read(0, &mut all);
        assert_eq!(all, model);
    }

    /// Threads that store bytes of the same words lose none of each other's.
    #[test]
    fn bytes_beside_each_other_are_stored_at_the_same_time() {
        let words = Words::new(64, true).unwrap();
        thread::scope(|scope| {
            for offset in 0..4 {
                let words = &words;
                scope.spawn(move || {
                    for round in 0..500u32 {
                        for start in (offset..64).step_by(4) {
                            match round % 3 {
                                0 => words.write(start, &[round as u8]),
                                1 => words.clear(start, 1),
                                _ => words.store(start, 1, u128::from(round)),
                            }
                            let expected = if round % 3 == 1 { 0 } else { round as u8 };
                            assert_eq!(words.load(start, 1), u128::from(expected));
                        }
                    }
                });
            }
        });
        assert!(words.is_written(0, 64));
    }

    /// Zeros take no memory until they are written, however they came to be.
    #[test]
    fn a_large_allocation_is_cheap() {
        let mut words = Words::new(1 << 30, true).unwrap();
        words.clear_all();
        assert!(words.is_written(0, words.len()));
        words.clear(5, 1 << 20);
        assert_eq!(words.load(1 << 20, 16), 0);
    }
}
