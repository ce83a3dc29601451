//! Plain accesses of a warp to words of one memory, all lanes at once.
//!
//! What is found does not differ from what it would be lane by lane: a warp that uses words that lie beside each other,
//! in the order of its lanes, and that nobody else has used since, is one comparison; otherwise each lane looks at its
//! words.

use super::race::{Earlier, Now};
use super::shadow::{Present, Shadow};
use super::{Checker, LANES, Touched};
use crate::isa::Role;
use crate::launch::{AccessKind, Window};
use crate::sim::decode::program::Op;
use crate::sim::execute::together::{Places, Repeats};
use crate::sim::memory::Location;
use crate::sim::memory::global::Table;
use crate::sim::warp::registers::{GENERAL, lanes};
use smallvec::SmallVec;

/// A memory that others see, as the shadow knows it.
#[derive(Clone, Copy, Debug)]
pub struct MemoryObject {
    /// Shared or global.
    pub window: Window,
    /// The allocation.
    pub memory: usize,
    /// The address of its first byte; of shared memory that is 0.
    pub base: u64,
}

impl MemoryObject {
    /// The CTA's shared memory.
    pub const SHARED: MemoryObject = MemoryObject {
        window: Window::Shared,
        memory: 0,
        base: 0,
    };

    /// An allocation.
    pub fn global(memory: usize, base: u64) -> MemoryObject {
        MemoryObject {
            window: Window::Global,
            memory,
            base,
        }
    }

    /// The plain access of the first lane of `mask` to `N` words at an offset.
    #[inline(always)]
    fn first<const N: usize>(self, offset: usize, mask: u32) -> Touched {
        Touched {
            lane: mask.trailing_zeros() as usize,
            place: match self.window {
                Window::Shared => Location::Shared(offset),
                _ => Location::Global(self.memory, offset),
            },
            address: self.base + offset as u64,
            bytes: (N * WORD) as u32,
            strong: false,
        }
    }
}

/// What a store of a warp changes, lane by lane.
pub trait Target {
    /// Whether a word of what a lane stores, from this offset on, is there already.
    fn is_there(&self, lane: usize, offset: usize, word: usize) -> bool;
    /// Stores what a lane stores.
    fn put(&mut self, lane: usize, offset: usize);
    /// Stores what all lanes store, one behind the other.
    fn put_row(&mut self, offset: usize);
}

/// Whether a store of `N` words a lane changes one of them: mostly it is the first that is looked at.
#[inline(always)]
fn changes<const N: usize>(places: &Places, mask: u32, target: &impl Target) -> bool {
    let changes = |lane, offset| (0..N).any(|word| !target.is_there(lane, offset, word));
    match places {
        Places::Row(offset) => (0..LANES).any(|lane| changes(lane, offset + lane * N * WORD)),
        Places::Each(offsets) => lanes(mask).any(|lane| changes(lane, offsets[lane] as usize)),
    }
}

/// Bytes of a word.
const WORD: usize = size_of::<u32>();
/// Races of lanes: the lane, the number of the word, and the earlier access.
type Races = SmallVec<[(usize, usize, Earlier); 2]>;

/// Plain accesses of a warp to words of one memory, as far as they are judged.
struct Judge<'a> {
    now: Now<'a>,
    shadow: &'a mut Shadow,
    memory: usize,
    present: Present,
    races: Races,
}

impl<'a> Judge<'a> {
    #[inline(always)]
    fn new(now: Now<'a>, shadow: &'a mut Shadow, memory: usize) -> Judge<'a> {
        Judge {
            present: shadow.present(&now),
            now,
            shadow,
            memory,
            races: Races::new(),
        }
    }

    /// All lanes use `N` words each, one lane behind the other from a word on; `same`: whether a lane's word, by its
    /// number in the row, keeps its value.
    #[inline(always)]
    fn row<const N: usize>(&mut self, first: usize, same: impl Fn(usize) -> bool) {
        let Judge {
            now,
            shadow,
            memory,
            present,
            ..
        } = self;
        if !shadow.touch_row::<N>(now, *memory, first, present) {
            for index in 0..N * LANES {
                self.word(index / N, first + index, || same(index));
            }
        }
    }

    /// A lane uses a word.
    #[inline(always)]
    fn word(&mut self, lane: usize, word: usize, same: impl FnOnce() -> bool) {
        let present = (&mut self.present, lane);
        let found = (self.shadow).touch_word(&self.now, self.memory, word, present, same);
        if let Some(earlier) = found {
            self.races.push((lane, word, earlier));
        }
    }
}

impl Checker {
    /// Whether all bytes of the registers that a store stores are defined in all lanes of `mask`.
    #[inline(always)]
    pub fn is_defined(&mut self, op: &Op, mask: u32) -> bool {
        let b = op.operand(Role::B);
        let registers = usize::from(b.column)..usize::from(b.column) + usize::from(b.words);
        let cta = &self.ctas[self.current];
        let (defined, gaps) = (
            &cta.defined[self.warp as usize],
            &cta.gaps[self.warp as usize],
        );
        let is_defined = |register: usize| register >= GENERAL || !defined[register] & mask == 0;
        registers.clone().all(is_defined) && !gaps.meets(registers)
    }

    /// Before the lanes of `mask` load `N` words each.
    #[inline(always)]
    pub fn load_together<const N: usize>(
        &mut self,
        place: MemoryObject,
        places: &Places,
        mask: u32,
        repeats: Repeats,
    ) {
        let first = match places {
            Places::Row(offset) => *offset,
            Places::Each(offsets) => lanes(mask).next().map_or(0, |lane| offsets[lane] as usize),
        };
        self.polls_together(place.first::<N>(first, mask), mask);
        let kind = AccessKind::Load;
        let (now, shadow, _) = self.looking(place, kind, false, false);
        let looking = match shadow.two_stand_for_all() {
            true => repeats.pairs,
            false => mask,
        };
        let mut judge = Judge::new(now, shadow, place.memory);
        match places {
            Places::Row(offset) => judge.row::<N>(offset / WORD, |_| false),
            Places::Each(offsets) => {
                for lane in lanes(looking) {
                    let first = offsets[lane] as usize / WORD;
                    (first..first + N).for_each(|word| judge.word(lane, word, || false));
                }
            }
        }
        let races = judge.races;
        self.tell(place, kind, races);
    }

    /// The lanes of `mask` store `N` words each.
    #[inline(always)]
    pub fn store_together<const N: usize>(
        &mut self,
        global: &Table,
        place: MemoryObject,
        places: &Places,
        mask: u32,
        mut target: impl Target,
    ) {
        self.activity.examine();
        self.activity.changed(changes::<N>(places, mask, &target));
        let kind = AccessKind::Store;
        let (now, shadow, undo) = self.looking(place, kind, true, false);
        let mut judge = Judge::new(now, shadow, place.memory);
        match places {
            Places::Row(offset) => {
                judge.row::<N>(offset / WORD, |index| {
                    let (lane, word) = (index / N, index % N);
                    target.is_there(lane, offset + lane * N * WORD, word)
                });
                if let Some(undo) = undo {
                    undo.save(global, place.memory, *offset, N * LANES * WORD);
                }
                target.put_row(*offset);
            }
            // Lanes may store to the same place, one after the other.
            Places::Each(offsets) => {
                for lane in lanes(mask) {
                    let offset = offsets[lane] as usize;
                    for word in 0..N {
                        let is_there = || target.is_there(lane, offset, word);
                        judge.word(lane, offset / WORD + word, is_there);
                    }
                    if let Some(undo) = undo {
                        undo.save(global, place.memory, offset, N * WORD);
                    }
                    target.put(lane, offset);
                }
            }
        }
        let races = judge.races;
        self.tell(place, kind, races);
    }

    #[inline(always)]
    fn tell(&mut self, place: MemoryObject, kind: AccessKind, races: Races) {
        for (lane, word, earlier) in races {
            self.raced(place, kind, lane, word, earlier);
        }
    }
}
