//! What global memory held before a launch wrote there.
//!
//! Blocks that are checked on several threads run as if nothing ordered them, which is right as long as none of them
//! uses what another one writes. Where that turns out not to be so, the launch is taken back and run on one thread.
//! Pages are saved when the first of their bytes is about to be written, whoever comes first. Only what the launch
//! wrote is put back: the host may use the rest of a page meanwhile.

use super::shadow::Shadow;
use crate::sim::memory::global::Table;
use crate::sim::memory::words::Saved;
use std::sync::OnceLock;

/// Bytes of a page (assigned).
const PAGE: usize = 4096;
/// Bytes of a word.
const WORD: usize = size_of::<u32>();
/// Values of a [`Sparse`] that get their places at once (assigned).
const GROUP: usize = 64;

/// Places of values, as many as there can be.
type Places<T> = Box<[OnceLock<T>]>;

/// Values by number. Few of many are asked for, so places for them are made in groups when one of a group is.
#[derive(Debug)]
struct Sparse<T> {
    groups: Places<Places<T>>,
}

/// So many places without a value.
fn places<T>(count: usize) -> Places<T> {
    (0..count).map(|_| OnceLock::new()).collect()
}

impl<T> Sparse<T> {
    fn new(count: usize) -> Sparse<T> {
        Sparse {
            groups: places(count.div_ceil(GROUP)),
        }
    }

    #[inline]
    fn get_or_init(&self, number: usize, make: impl FnOnce() -> T) -> &T {
        let group = self.groups[number / GROUP].get_or_init(|| places(GROUP));
        group[number % GROUP].get_or_init(make)
    }

    fn get(&self, number: usize) -> Option<&T> {
        self.groups.get(number / GROUP)?.get()?[number % GROUP].get()
    }

    /// Those that there are, with their numbers.
    fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let groups = (0..).step_by(GROUP).zip(&self.groups);
        groups.flat_map(|(first, group)| {
            let places = group.get().into_iter().flatten();
            let places = (first..).zip(places);
            places.filter_map(|(number, place)| Some((number, place.get()?)))
        })
    }
}

/// Pages of the allocations as they were before the launch, as far as it writes there.
#[derive(Debug)]
pub struct Undo {
    memories: Sparse<Sparse<Saved>>,
}

impl Undo {
    /// For a launch that works on these allocations.
    pub fn new(table: &Table) -> Undo {
        Undo {
            memories: Sparse::new(table.len()),
        }
    }

    /// Bytes of an allocation are about to be written.
    #[inline]
    pub(super) fn save(&self, table: &Table, memory: usize, start: usize, bytes: usize) {
        let words = table.words(memory);
        let pages = || Sparse::new(words.len().div_ceil(PAGE));
        let pages = self.memories.get_or_init(memory, pages);
        for page in start / PAGE..(start + bytes).div_ceil(PAGE) {
            pages.get_or_init(page, || words.saved(page * PAGE, PAGE));
        }
    }

    /// Puts back what was written according to the shadow of those who wrote.
    pub(super) fn put_back(&self, table: &Table, shadow: &Shadow) {
        if shadow.is_forgetful() {
            self.put_all_back(table);
        }
        for (memory, word, bytes) in shadow.written() {
            let (page, at) = (word / (PAGE / WORD), word % (PAGE / WORD));
            let pages = self.memories.get(memory);
            if let Some(saved) = pages.and_then(|pages| pages.get(page)) {
                table.words(memory).put_back(word, bytes, saved, at);
            }
        }
    }

    /// Puts back all that was saved.
    fn put_all_back(&self, table: &Table) {
        for (memory, pages) in self.memories.iter() {
            for (page, saved) in pages.iter() {
                for at in 0..saved.len() {
                    let word = page * (PAGE / WORD) + at;
                    table.words(memory).put_back(word, 0xF, saved, at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_made_in_groups() {
        let values = Sparse::new(100_000);
        for (number, value) in [(99_999, 'a'), (0, 'b'), (99_999, 'c')] {
            values.get_or_init(number, || value);
        }
        assert_eq!(values.get(99_999), Some(&'a'));
        assert_eq!(
            (values.get(99_998), values.get(100_000 + GROUP)),
            (None, None)
        );
        assert_eq!(
            values.iter().collect::<Vec<_>>(),
            [(0, &'b'), (99_999, &'a')]
        );
        let made = values.groups.iter().filter(|group| group.get().is_some());
        assert_eq!(made.count(), 2);
    }
}
