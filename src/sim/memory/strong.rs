//! Accesses with an order, where blocks on several threads of the host look at each other's memory.
//!
//! Strong loads and stores and atomics are performed at one time for all threads (`docs/memory.md`), and weak accesses
//! around them are kept in the order that fences and they ask for. A word of the host does that by itself, sequentially
//! consistent. Longer accesses are several words: where a program has some, all of its strong accesses take a lock of
//! their place, the short ones too, which may be a part of a longer one. One lock for each place gives the same order:
//! what a thread finds there happened before it, and no cycle of such steps is possible.

use crate::sim::memory::words::{WORD, Words};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who uses device memory while a block runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concurrency {
    /// Nobody whose accesses it looks at.
    #[default]
    Alone,
    /// Blocks on other threads, by strong accesses that are at most a word.
    Words,
    /// Blocks on other threads, by strong accesses of any size.
    Wide,
}

impl Concurrency {
    /// MEMBAR.
    pub fn fence(self) {
        if self != Concurrency::Alone {
            fence(Ordering::SeqCst);
        }
    }
}

/// Bytes of a place: no access is longer, and each lies in one.
const PLACE: usize = 16;
/// Locks for all places of all memories (assigned): so many that threads seldom want the same one for different places.
const LOCKS: usize = 64;

/// A lock on a cache line of its own.
#[repr(align(64))]
struct Lock(Mutex<()>);

static PLACES: [Lock; LOCKS] = [const { Lock(Mutex::new(())) }; LOCKS];

/// The bytes of an aligned part of a word: their place in it and their mask there.
fn part(start: usize, bytes: u32) -> (u32, u32) {
    let shift = 8 * (start % WORD) as u32;
    (shift, u32::MAX >> (u32::BITS - 8 * bytes))
}

impl Words {
    /// The lock of a place, if an access needs one.
    fn lock(start: usize, bytes: u32, concurrency: Concurrency) -> Option<MutexGuard<'static, ()>> {
        let needed = concurrency == Concurrency::Wide || bytes as usize > WORD;
        let lock = &PLACES[start / PLACE % LOCKS].0;
        needed.then(|| lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The value at an offset that is a multiple of its bytes, zero-extended, as one step.
    #[inline]
    pub(in crate::sim) fn load_strong(
        &self,
        start: usize,
        bytes: u32,
        concurrency: Concurrency,
    ) -> u128 {
        if concurrency == Concurrency::Alone {
            return self.load(start, bytes);
        }
        let lock = Words::lock(start, bytes, concurrency);
        if lock.is_some() {
            return self.load(start, bytes);
        }
        let (shift, mask) = part(start, bytes);
        u128::from(self.atomic(start).load(Ordering::SeqCst) >> shift & mask)
    }

    /// Writes the low `bytes` of a value, at an offset that is a multiple of them, as one step.
    #[inline]
    pub(in crate::sim) fn store_strong(
        &self,
        start: usize,
        bytes: u32,
        value: u128,
        concurrency: Concurrency,
    ) {
        if concurrency == Concurrency::Alone {
            return self.store(start, bytes, value);
        }
        let lock = Words::lock(start, bytes, concurrency);
        if lock.is_some() {
            return self.store(start, bytes, value);
        }
        if bytes as usize == WORD {
            self.atomic(start).store(value as u32, Ordering::SeqCst);
            self.mark(start, WORD);
        } else {
            self.modify(start, bytes, concurrency, |_| Some(value as u64));
        }
    }

    /// Replaces the 1 to 8 bytes at an offset that is a multiple of them by what `change` makes of them, if anything,
    /// as one step for all who change as many bytes there, under [`Concurrency::Wide`] for all strong accesses; what
    /// was there.
    pub(in crate::sim) fn modify(
        &self,
        start: usize,
        bytes: u32,
        concurrency: Concurrency,
        change: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        let lock = Words::lock(start, bytes, concurrency);
        if lock.is_some() {
            let old = self.load(start, bytes) as u64;
            if let Some(new) = change(old) {
                self.store(start, bytes, new.into());
            }
            return old;
        }
        // An aligned part of a word lies in it as a whole.
        let (shift, mask) = part(start, bytes);
        let part = |word: u32| u64::from(word >> shift & mask);
        let new = |old: u32| {
            let new = change(part(old))? as u32 & mask;
            Some(old & !(mask << shift) | new << shift)
        };
        // The order costs nothing where every atomic operation of the host has it.
        let word = self.atomic(start);
        let result = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, new);
        if result.is_ok() {
            self.mark(start, bytes as usize);
        }
        let (Ok(old) | Err(old)) = result;
        part(old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// Threads that change eight bytes, a half of them and a byte, by additions: none is lost, and nobody sees a part
    /// of a change.
    #[test]
    fn accesses_of_all_sizes_meet() {
        const ROUNDS: u64 = 5000;
        let words = Words::new(16, false).unwrap();
        let add = |start, bytes, amount: u64| {
            for _ in 0..ROUNDS {
                let change = |old: u64| Some(old.wrapping_add(amount));
                words.modify(start, bytes, Concurrency::Wide, change);
            }
        };
        thread::scope(|scope| {
            // In both halves.
            scope.spawn(|| add(0, 8, 1 << 32 | 1));
            scope.spawn(|| add(4, 4, 1 << 16));
            scope.spawn(|| add(2, 1, 1));
            scope.spawn(|| {
                for round in 0..ROUNDS as u32 {
                    let value = u128::from(round);
                    words.store_strong(8, 8, value << 32 | value, Concurrency::Wide);
                }
            });
            for _ in 0..ROUNDS {
                let all = words.load_strong(0, 16, Concurrency::Wide);
                let [first, second, third, last] = [0, 32, 64, 96].map(|at| (all >> at) as u32);
                assert_eq!(first & 0xFFFF, second & 0xFFFF);
                assert_eq!(third, last);
            }
        });
        let byte = (ROUNDS as u32 & 0xFF) << 16;
        assert_eq!(words.load(0, 4) as u32, ROUNDS as u32 + byte);
        assert_eq!(
            words.load(4, 4) as u32,
            (ROUNDS as u32) << 16 | ROUNDS as u32
        );
    }

    /// Parts of words without locks.
    #[test]
    fn short_accesses_are_steps_of_a_word() {
        let words = Words::new(8, true).unwrap();
        words.store_strong(4, 4, 0x0403_0201, Concurrency::Words);
        words.store_strong(6, 1, 0xFF, Concurrency::Words);
        words.store_strong(4, 2, 0x1_0605, Concurrency::Words);
        for concurrency in [Concurrency::Alone, Concurrency::Words, Concurrency::Wide] {
            let load = |start, bytes| words.load_strong(start, bytes, concurrency);
            assert_eq!(load(4, 4), 0x04FF_0605);
            assert_eq!((load(6, 2), load(7, 1), load(0, 4)), (0x04FF, 4, 0));
        }
        assert!(words.is_written(4, 4) && !words.is_written(3, 1));
    }
}
