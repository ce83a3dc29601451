//! A hash table with open addresses: words are counted.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use thisgpu_gpu::*;

/// A free place.
pub const FREE: u64 = u64::MAX;

struct Table<'a> {
    keys: &'a [AtomicU64],
    counts: &'a [AtomicU32],
}

impl Table<'_> {
    fn places(&self, key: u64) -> impl Iterator<Item = usize> {
        let mask = self.keys.len() - 1;
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) as usize;
        (0..self.keys.len()).map(move |step| (hash + step * (step + 1) / 2) & mask)
    }

    fn add(&self, key: u64) -> Option<u32> {
        for place in self.places(key) {
            let found = match self.keys[place].compare_exchange(FREE, key, Relaxed, Relaxed) {
                Ok(_) => key,
                Err(found) => found,
            };
            if found == key {
                return Some(self.counts[place].fetch_add(1, Relaxed));
            }
        }
        None
    }

    fn count(&self, key: u64) -> u32 {
        let mut places = self.places(key);
        loop {
            let Some(place) = places.next() else { break 0 };
            match self.keys[place].load(Relaxed) {
                FREE => break 0,
                found if found == key => break self.counts[place].load(Relaxed),
                _ => {}
            }
        }
    }
}

/// Adds words.
#[kernel]
pub fn add_words(words: &[u64], keys: &[AtomicU64], counts: &[AtomicU32], lost: &AtomicU32) {
    let table = Table { keys, counts };
    for i in thread::grid_stride(words.len()) {
        if table.add(words[i]).is_none() {
            lost.fetch_add(1, Relaxed);
        }
    }
}

/// How often words were added.
#[kernel]
pub fn count_words(
    words: &[u64],
    keys: &[AtomicU64],
    counts: &[AtomicU32],
    mut out: DisjointMut<u32>,
) {
    if let Some((word, out)) = thread::own((words, &mut out)) {
        *out = Table { keys, counts }.count(*word);
    }
}
