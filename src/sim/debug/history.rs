//! Earlier states of a launch, and what memory held.
//!
//! A snapshot is a copy of all that a launch has but for device memory, of which the pages are kept that are written
//! behind it, as they were before. To go back is to put those pages back, and to go forward from the snapshot.
//! Snapshots are made every [`INTERVAL`] instructions at first; when they are many every second one goes, so their
//! number stays below [`MOST`], and going back takes no longer than a part of the way that was come.

use super::state::State;
use crate::sim::memory::global::Table;
use crate::sim::memory::words::Saved;
use hashbrown::HashMap;

/// Instructions from one snapshot to the next, at first (assigned).
const INTERVAL: u64 = 1 << 12;
/// Snapshots that are kept, at most (assigned).
const MOST: usize = 64;
/// Bytes that they take together, about, at most, unless two take more (assigned).
const MOST_BYTES: usize = 512 << 20;
/// The same with checks, which keep much more.
const MOST_CHECKED: usize = 8;
/// Bytes of a page (assigned).
const PAGE: usize = 4096;
/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// Pages as they were: by allocation and number.
type Pages = HashMap<(usize, usize), Saved>;

/// A state that a launch was in.
struct Snapshot {
    state: State,
    /// What is written behind it and before the next snapshot, as it was.
    pages: Pages,
}

/// Where a launch was.
pub(super) struct History {
    /// The first is the beginning; never empty once the launch has begun.
    snapshots: Vec<Snapshot>,
    interval: u64,
}

impl History {
    pub(super) fn new(start: State) -> History {
        History {
            snapshots: vec![Snapshot {
                state: start,
                pages: Pages::new(),
            }],
            interval: INTERVAL,
        }
    }

    /// Takes note of where a launch is before it goes on.
    pub(super) fn pass(&mut self, state: &State) {
        let last = self
            .snapshots
            .last()
            .map_or(0, |last| last.state.position());
        if state.position() < last.saturating_add(self.interval) {
            return;
        }
        self.snapshots.push(Snapshot {
            state: state.copy(),
            pages: Pages::new(),
        });
        let bytes: usize = self.snapshots.iter().map(|kept| kept.state.bytes()).sum();
        let most = match state.checker {
            Some(_) => MOST_CHECKED,
            None => MOST,
        };
        if self.snapshots.len() > most || bytes > MOST_BYTES && self.snapshots.len() > 2 {
            self.thin();
        }
    }

    /// Forgets every second snapshot but the first: what was as before the one that goes was so before the one in front
    /// of it, unless that knows better.
    fn thin(&mut self) {
        let mut kept: Vec<Snapshot> = Vec::with_capacity(self.snapshots.len() / 2 + 1);
        for (index, snapshot) in self.snapshots.drain(..).enumerate() {
            match kept.last_mut() {
                Some(before) if index % 2 == 1 => {
                    for (page, bytes) in snapshot.pages {
                        before.pages.entry(page).or_insert(bytes);
                    }
                }
                _ => kept.push(snapshot),
            }
        }
        self.snapshots = kept;
        self.interval = self.interval.saturating_mul(2);
    }

    /// Device memory is about to be written.
    pub(super) fn write(&mut self, global: &Table, allocation: usize, offset: usize, bytes: usize) {
        let Some(last) = self.snapshots.last_mut() else {
            return;
        };
        for page in offset / PAGE..=(offset + bytes - 1) / PAGE {
            let saved = || global.words(allocation).saved(page * PAGE, PAGE);
            last.pages.entry((allocation, page)).or_insert_with(saved);
        }
    }

    /// The last snapshot at `position` or before it: device memory is as it was there, and snapshots behind it are
    /// gone.
    pub(super) fn restore(&mut self, global: &Table, position: u64) -> State {
        loop {
            let only = self.snapshots.len() == 1;
            let Some(last) = self.snapshots.last_mut() else {
                return State::default();
            };
            for ((allocation, page), saved) in last.pages.drain() {
                let words = global.words(allocation);
                (0..saved.len())
                    .for_each(|at| words.put_back(page * (PAGE / WORD) + at, 0xF, &saved, at));
            }
            if only || last.state.position() <= position {
                return last.state.copy();
            }
            self.snapshots.pop();
        }
    }
}
