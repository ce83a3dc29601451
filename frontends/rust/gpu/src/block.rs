//! What all threads of a block do together, whatever their number and dimensions.
//!
//! All threads of the block must come to the same call, which has barriers in it. Values have up to 16 words of 32
//! bits; each is passed on through 33 words of shared memory, which calls share.

use crate::element::Element;
use crate::shared::Shared;
use crate::thread;
use crate::warp;
use core::cell::Cell;

/// Places for a word: one for each warp of a block, and one behind them.
const PLACES: usize = warp::LANES as usize + 1;
/// The place that no warp has.
const RESULT: usize = warp::LANES as usize;
/// Most words of a value.
const MOST_WORDS: usize = 16;

/// Shared memory with a place for a value of each warp: word after word, so that warps are in different banks.
struct Places(*const Shared<u32>);

impl Places {
    /// The smallest of a few pieces that has room for values of a type. A kernel has those that it uses.
    #[inline(always)]
    fn of<T: Element>() -> Places {
        const {
            assert!(
                T::WORDS <= MOST_WORDS,
                "a value that goes through a block has 64 bytes at most"
            );
        }
        Places(match T::WORDS {
            0..=1 => (&raw const *crate::shared!([u32; PLACES])).cast(),
            2 => (&raw const *crate::shared!([u32; 2 * PLACES])).cast(),
            3..=4 => (&raw const *crate::shared!([u32; 4 * PLACES])).cast(),
            _ => (&raw const *crate::shared!([u32; MOST_WORDS * PLACES])).cast(),
        })
    }

    /// The words of a place, one after the other.
    #[inline(always)]
    fn words(&self, place: usize) -> impl Fn() -> &'static Shared<u32> {
        let (start, next) = (self.0, Cell::new(place));
        move || {
            let index = next.replace(next.get() + PLACES);
            // SAFETY: there is a word at each place for each word of the type.
            unsafe { &*start.add(index) }
        }
    }

    #[inline(always)]
    fn put<T: Element>(&self, place: usize, value: T) {
        let next = self.words(place);
        value.each_word(&|word| {
            next().write(word);
            word
        });
    }

    /// What was put there. `like` gives it what is no word of it.
    #[inline(always)]
    fn get<T: Element>(&self, place: usize, like: T) -> T {
        let next = self.words(place);
        like.each_word(&|_| next().read())
    }
}

/// Where this thread is.
#[derive(Clone, Copy)]
struct Here {
    lane: u32,
    warp: u32,
    /// Lanes of this warp.
    lanes: u32,
    /// Warps of the block.
    warps: u32,
}

impl Here {
    #[inline(always)]
    fn this() -> Here {
        let (size, warp) = (thread::block_size(), warp::warp());
        Here {
            lane: warp::lane(),
            warp,
            lanes: (size - warp * warp::LANES).min(warp::LANES),
            warps: size.div_ceil(warp::LANES),
        }
    }

    /// What the first `count` lanes have together, in the first one. Lanes are here as far as `self.lanes` says.
    #[inline(always)]
    fn reduce<T: Element>(self, value: T, count: u32, operation: &impl Fn(T, T) -> T) -> T {
        let step = |value: T, distance: u32| {
            let above = self.lane + distance;
            let other = warp::shuffle(value, above.min(self.lanes - 1));
            if above < count {
                operation(value, other)
            } else {
                value
            }
        };
        step(step(step(step(step(value, 1), 2), 4), 8), 16)
    }

    /// What the lanes up to each have together, of the first `count` ones.
    #[inline(always)]
    fn scan<T: Element>(self, value: T, count: u32, operation: &impl Fn(T, T) -> T) -> T {
        let step = |value: T, distance: u32| {
            let below = warp::shuffle_up(value, distance);
            if self.lane >= distance && self.lane < count {
                operation(below, value)
            } else {
                value
            }
        };
        step(step(step(step(step(value, 1), 2), 4), 8), 16)
    }

    /// What the lanes up to this one have together, and, from the second warp on, all warps before this one.
    #[inline(always)]
    fn prefix<T: Element>(self, value: T, operation: &impl Fn(T, T) -> T) -> (T, Option<T>) {
        let places = Places::of::<T>();
        let value = self.scan(value, self.lanes, operation);
        // What an earlier call has put there is read.
        thread::barrier();
        if self.lane == self.lanes - 1 {
            places.put(self.warp as usize, value);
        }
        thread::barrier();
        if self.warp == 0 {
            let place = self.lane as usize;
            let is_used = self.lane < self.warps;
            let total = if is_used {
                places.get(place, value)
            } else {
                value
            };
            let totals = self.scan(total, self.warps, operation);
            if is_used {
                places.put(place, totals);
            }
        }
        thread::barrier();
        let before = self.warp.checked_sub(1);
        (
            value,
            before.map(|before| places.get(before as usize, value)),
        )
    }
}

/// What all threads of the block have together, in the order of their numbers, by an operation that is associative;
/// every thread gets it.
#[inline(always)]
pub fn reduce<T: Element>(value: T, operation: impl Fn(T, T) -> T) -> T {
    if !crate::ON_DEVICE {
        return value;
    }
    let (here, places) = (Here::this(), Places::of::<T>());
    let value = here.reduce(value, here.lanes, &operation);
    // What an earlier call has put there is read.
    thread::barrier();
    if here.lane == 0 {
        places.put(here.warp as usize, value);
    }
    thread::barrier();
    if here.warp == 0 {
        let is_used = here.lane < here.warps;
        let of_warp = if is_used {
            places.get(here.lane as usize, value)
        } else {
            value
        };
        let all = here.reduce(of_warp, here.warps, &operation);
        if here.lane == 0 {
            places.put(RESULT, all);
        }
    }
    thread::barrier();
    places.get(RESULT, value)
}

/// The sum over all threads of the block.
#[inline(always)]
pub fn sum<T: Element + core::ops::Add<Output = T>>(value: T) -> T {
    reduce(value, |a, b| a + b)
}

/// For how many threads of the block it holds.
#[inline(always)]
pub fn count(holds: bool) -> u32 {
    sum(u32::from(holds))
}

/// Whether it holds for all threads of the block.
#[inline(always)]
pub fn all(holds: bool) -> bool {
    count(!holds) == 0
}

/// Whether it holds for some thread of the block.
#[inline(always)]
pub fn any(holds: bool) -> bool {
    count(holds) != 0
}

/// What the threads up to this one have together, this one included, by an operation that is associative.
#[inline(always)]
pub fn scan<T: Element>(value: T, operation: impl Fn(T, T) -> T) -> T {
    if !crate::ON_DEVICE {
        return value;
    }
    match Here::this().prefix(value, &operation) {
        (value, Some(before)) => operation(before, value),
        (value, None) => value,
    }
}

/// What the threads below this one have together, by an operation that is associative; in the first thread `first`.
#[inline(always)]
pub fn scan_exclusive<T: Element>(value: T, first: T, operation: impl Fn(T, T) -> T) -> T {
    if !crate::ON_DEVICE {
        return first;
    }
    let here = Here::this();
    let (value, before) = here.prefix(value, &operation);
    let below = warp::shuffle_up(value, 1);
    match (before, here.lane) {
        (None, 0) => first,
        (None, _) => below,
        (Some(before), 0) => before,
        (Some(before), _) => operation(before, below),
    }
}

/// The value of the thread with this number in its block, along x first, then y, then z, which must be the same for all
/// threads.
///
/// # Panics
/// The block has no such thread.
#[inline(always)]
#[track_caller]
pub fn broadcast<T: Element>(value: T, number: u32) -> T {
    if number >= thread::block_size() {
        crate::memory::past_the_end();
    }
    let places = Places::of::<T>();
    thread::barrier();
    if thread::number_in_block() == number {
        places.put(RESULT, value);
    }
    thread::barrier();
    places.get(RESULT, value)
}
