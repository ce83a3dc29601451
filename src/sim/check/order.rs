//! What happens before what: the order of the accesses of different threads.
//!
//! In: barriers, WARPSYNCs and strong accesses as they happen. Out: whether an earlier access of another thread is
//! ordered before what a thread does now.
//!
//! Happens-before is the one of FastTrack (Flanagan and Freund, PLDI 2009), with clocks that fit tens of thousands of
//! threads. The launch has one counter, the *tick*, that grows with each release; an access is stamped with it. What a
//! thread knows of the others is not kept thread by thread but by what it has synchronised *through*: the CTA's barrier
//! (every access of the CTA with a stamp up to the barrier's tick is known), WARPSYNC (the same for the lanes of its
//! mask), and the places used by strong accesses, with the tick up to which their releases are known ([`Clock`]). A
//! strong store or atomic releases, a strong load or an atomic whose result is read acquires: memory is sequentially
//! consistent here, so a missing MEMBAR is not found. An access of a thread is known through a place if the thread
//! released there after the access and up to that tick: each warp keeps a log of its releases. A lock is one entry of a
//! clock however many threads took it, while a vector clock would have one for each of them.
//!
//! Everything that bounds the memory errs to the side of order, so that it may hide a race but never makes one up: a
//! clock of more than [`CLOCK_ENTRIES`] places forgets the oldest and takes all up to there as known; of more than
//! [`LOG_ENTRIES`] releases the oldest count as known to everybody.

use crate::sim::warp::registers::{LANES, lanes};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::Arc;

/// Places in a clock, at most (assigned).
const CLOCK_ENTRIES: usize = 256;
/// Releases that the logs of a launch hold, at most (assigned): 96 MiB.
const LOG_ENTRIES: usize = 1 << 22;
/// Key of a CTA's barrier: this and the CTA's number.
const BARRIER: u64 = 1 << 63;
/// Key of a word of shared memory: this, the CTA's number, and the number of the word in the low bits.
const SHARED: u64 = 1 << 62;
/// Bits for the number of a word of shared memory.
const SHARED_BITS: u32 = 16;

/// What a thread, or whoever reads a place, knows: through each place the releases up to a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Clock {
    /// Everything stamped up to here is known.
    floor: u32,
    /// Sorted by key.
    entries: SmallVec<[(u64, u32); 2]>,
}

impl Clock {
    fn get(&self, key: u64) -> u32 {
        match self.entries.binary_search_by_key(&key, |e| e.0) {
            Ok(index) => self.entries[index].1,
            Err(_) => 0,
        }
    }

    fn raise(&mut self, key: u64, tick: u32) {
        match self.entries.binary_search_by_key(&key, |e| e.0) {
            Ok(index) => self.entries[index].1 = self.entries[index].1.max(tick),
            Err(index) => {
                self.entries.insert(index, (key, tick));
                self.bound();
            }
        }
    }

    /// Whether all that the other knows is known here.
    fn covers(&self, other: &Clock) -> bool {
        let mut own = self.entries.iter();
        self.floor >= other.floor
            && (other.entries.iter()).all(|(key, tick)| {
                own.find(|e| e.0 >= *key)
                    .is_some_and(|e| e.0 == *key && e.1 >= *tick)
            })
    }

    fn join(&mut self, other: &Clock) {
        self.floor = self.floor.max(other.floor);
        if let [(key, tick)] = other.entries[..] {
            self.raise(key, tick);
            return;
        }
        // Both are sorted by key.
        let mut entries = SmallVec::with_capacity(self.entries.len() + other.entries.len());
        let (mut own, mut others) = (&self.entries[..], &other.entries[..]);
        while let ([(key, tick), own_rest @ ..], [(other_key, other_tick), others_rest @ ..]) =
            (own, others)
        {
            let order = key.cmp(other_key);
            entries.push(match order {
                Ordering::Less => (*key, *tick),
                Ordering::Equal => (*key, *tick.max(other_tick)),
                Ordering::Greater => (*other_key, *other_tick),
            });
            own = if order.is_le() { own_rest } else { own };
            others = if order.is_ge() { others_rest } else { others };
        }
        entries.extend_from_slice(own);
        entries.extend_from_slice(others);
        self.entries = entries;
        self.bound();
    }

    /// Forgets the older half of too many entries.
    fn bound(&mut self) {
        if self.entries.len() <= CLOCK_ENTRIES {
            return;
        }
        let mut ticks: Vec<u32> = self.entries.iter().map(|e| e.1).collect();
        ticks.sort_unstable();
        self.floor = self.floor.max(ticks[ticks.len() / 2]);
        let floor = self.floor;
        self.entries.retain(|e| e.1 > floor);
    }
}

/// What a thread knows; many threads share one clock.
type Known = Option<Arc<Clock>>;

/// Adds a clock to what is known.
fn learn(known: &mut Known, clock: &Arc<Clock>) {
    match known {
        None => *known = Some(clock.clone()),
        Some(own) if Arc::ptr_eq(own, clock) => {}
        Some(own) if clock.covers(own) => *own = clock.clone(),
        Some(own) if own.covers(clock) => {}
        Some(own) => Arc::make_mut(own).join(clock),
    }
}

/// A release: accesses of `lanes` stamped up to `until` are known to who knows the place up to `tick`.
#[derive(Clone, Copy, Debug)]
struct Release {
    tick: u32,
    until: u32,
    key: u64,
    lanes: u32,
}

/// The releases of a warp.
#[derive(Clone, Debug, Default)]
struct Log {
    /// Everything stamped up to here is taken as known to all: its releases have been dropped.
    floor: u32,
    /// By tick.
    releases: Vec<Release>,
}

/// The order of a launch.
#[derive(Clone, Debug)]
pub(super) struct Order {
    tick: u32,
    warps: u32,
    /// Words of global memory that were released.
    places: HashMap<u64, Arc<Clock>>,
    logs: HashMap<u32, Log>,
    logged: usize,
}

/// The lanes of a warp among each other.
#[derive(Clone, Debug, Default)]
struct Lanes {
    /// For each lane the mask of the WARPSYNC that it has come to and not gone on from; 0: none.
    wanted: [u32; LANES],
    /// Lanes for which that is so.
    pending: u32,
    /// For each lane the tick of its last WARPSYNC.
    arrived: [u32; LANES],
    /// For each lane and other lane the tick up to which its accesses are known.
    known: Option<Box<[[u32; LANES]; LANES]>>,
}

/// What the threads of a CTA know.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    /// Number of the CTA in the grid.
    pub block: u64,
    /// Tick of the last barrier.
    barrier: u32,
    known: Vec<Known>,
    lanes: Vec<Lanes>,
    /// Words of the CTA's shared memory that were released.
    places: HashMap<u64, Arc<Clock>>,
}

impl Threads {
    /// The threads of a CTA that begins.
    pub fn new(block: u64, warps: usize) -> Threads {
        Threads {
            block,
            barrier: 0,
            known: vec![None; warps * LANES],
            lanes: vec![Lanes::default(); warps],
            places: HashMap::new(),
        }
    }

    /// Key of a word of the CTA's shared memory.
    pub fn shared_key(&self, word: u64) -> u64 {
        SHARED | (self.block << SHARED_BITS & (SHARED - 1)) | word
    }
}

impl Order {
    /// The order of a launch whose CTAs have so many warps.
    pub fn new(warps: usize) -> Order {
        Order {
            tick: 1,
            warps: warps as u32,
            places: HashMap::new(),
            logs: HashMap::new(),
            logged: 0,
        }
    }

    /// The stamp of an access now.
    pub fn stamp(&self) -> u32 {
        self.tick
    }

    /// The number of a warp in the launch; it wraps after 2^32 warps.
    pub fn warp_number(&self, threads: &Threads, warp: u32) -> u32 {
        (threads.block as u32)
            .wrapping_mul(self.warps)
            .wrapping_add(warp)
    }

    /// CTA of a warp by its number in the launch.
    pub fn block_of(&self, warp: u32) -> u64 {
        u64::from(warp / self.warps)
    }

    /// Warp in its CTA, by its number in the launch.
    pub fn index_of(&self, warp: u32) -> u32 {
        warp % self.warps
    }

    /// Whether a warp, by its number in the launch, is of a CTA.
    pub fn is_of(&self, threads: &Threads, warp: u32) -> bool {
        warp.wrapping_sub(self.warp_number(threads, 0)) < self.warps
    }

    /// Whether a barrier of the CTA lies between an access stamped so and now.
    pub fn is_before_barrier(&self, threads: &Threads, warp: u32, stamp: u32) -> bool {
        stamp <= threads.barrier && self.is_of(threads, warp)
    }

    fn next_tick(&mut self) -> u32 {
        let tick = self.tick;
        self.tick = self.tick.saturating_add(1);
        tick
    }

    /// Whether an access that another thread made before is ordered before what the thread `thread` of a CTA does now.
    pub fn is_known(
        &self,
        threads: &Threads,
        thread: u32,
        warp: u32,
        lane: usize,
        stamp: u32,
    ) -> bool {
        let (own_warp, own_lane) = (thread / LANES as u32, thread as usize % LANES);
        let own_number = self.warp_number(threads, own_warp);
        if self.is_before_barrier(threads, warp, stamp) {
            return true;
        }
        let lanes = &threads.lanes[own_warp as usize];
        if warp == own_number
            && (lane == own_lane
                || lanes
                    .known
                    .as_ref()
                    .is_some_and(|k| stamp <= k[own_lane][lane]))
        {
            return true;
        }
        let Some(known) = &threads.known[thread as usize] else {
            return false;
        };
        if stamp <= known.floor || stamp <= known.get(BARRIER | self.block_of(warp)) {
            return true;
        }
        let Some(log) = self.logs.get(&warp) else {
            return false;
        };
        let first = log.releases.partition_point(|r| r.tick < stamp);
        stamp <= log.floor
            || log.releases[first..]
                .iter()
                .any(|r| r.lanes >> lane & 1 != 0 && stamp <= r.until && r.tick <= known.get(r.key))
    }

    /// A strong access to the word `key`: who `reads` acquires, who `writes` releases; what was known there stays
    /// known.
    pub fn strong(
        &mut self,
        threads: &mut Threads,
        thread: u32,
        key: u64,
        reads: bool,
        writes: bool,
    ) {
        let barrier = BARRIER | self.block_of(self.warp_number(threads, 0));
        let tick = if writes { self.next_tick() } else { self.tick };
        let places = match key & SHARED {
            0 => &mut self.places,
            _ => &mut threads.places,
        };
        if reads && let Some(place) = places.get(&key) {
            learn(&mut threads.known[thread as usize], place);
        }
        if !writes {
            return;
        }
        let known = &mut threads.known[thread as usize];
        let place = places.entry(key).or_default();
        if reads {
            // The thread knows all that the place knows: one clock for both.
            let mut clock = std::mem::take(place);
            if let Some(own) = known.take() {
                clock = own;
            }
            *place = clock;
        } else if let Some(own) = known {
            learn_place(place, own);
        }
        let clock = Arc::make_mut(place);
        if threads.barrier > 0 {
            clock.raise(barrier, threads.barrier);
        }
        clock.raise(key, tick);
        if reads {
            *known = Some(place.clone());
        }
        self.log(threads, thread, key, tick);
    }

    /// Notes that a thread released, and with it the lanes that it has synchronised with.
    fn log(&mut self, threads: &Threads, thread: u32, key: u64, tick: u32) {
        let (warp, lane) = (thread / LANES as u32, thread as usize % LANES);
        let number = self.warp_number(threads, warp);
        if self.logged >= LOG_ENTRIES {
            self.forget();
        }
        let log = self.logs.entry(number).or_default();
        let before = log.releases.len();
        let own = Release {
            tick,
            until: tick,
            key,
            lanes: 1 << lane,
        };
        log.releases.push(own);
        let row = threads.lanes[warp as usize].known.as_ref();
        let mut rest = row.map_or(0, |_| !own.lanes);
        while rest != 0 {
            let row = &row.expect("lanes are left")[lane];
            let until = row[rest.trailing_zeros() as usize];
            let same = lanes(rest)
                .filter(|l| row[*l] == until)
                .fold(0, |m, l| m | 1 << l);
            rest &= !same;
            if until != 0 {
                log.releases.push(Release {
                    until,
                    lanes: same,
                    ..own
                });
            }
        }
        self.logged += log.releases.len() - before;
    }

    /// Drops the older half of all releases.
    fn forget(&mut self) {
        for log in self.logs.values_mut() {
            let half = log.releases.len().div_ceil(2);
            if let Some(last) = log.releases[..half].last() {
                log.floor = last.tick;
            }
            log.releases.drain(..half);
        }
        self.logged = self.logs.values().map(|l| l.releases.len()).sum();
    }

    /// The barrier of a CTA opened: all its threads know what any of them has done and knows.
    pub fn barrier(&mut self, threads: &mut Threads) {
        threads.barrier = self.next_tick();
        let mut all: Known = None;
        for known in threads.known.iter().flatten() {
            learn(&mut all, known);
        }
        threads.known.fill(all);
    }

    /// The lanes of `mask` come to a WARPSYNC of the lanes `wanted`.
    pub fn arrive(&mut self, threads: &mut Threads, warp: u32, mask: u32, wanted: u32) {
        let tick = self.next_tick();
        let state = &mut threads.lanes[warp as usize];
        for lane in lanes(mask) {
            (state.wanted[lane], state.arrived[lane]) = (wanted, tick);
        }
        state.pending |= mask;
    }

    /// The lanes of `mask` end: nobody waits for them, and what they did lies before every later WARPSYNC.
    pub fn leave(&mut self, threads: &mut Threads, warp: u32, mask: u32) {
        let tick = self.next_tick();
        let state = &mut threads.lanes[warp as usize];
        for lane in lanes(mask) {
            state.arrived[lane] = tick;
        }
    }

    /// The lanes of `mask` run: those that came to a WARPSYNC know the lanes they waited for.
    pub fn resume(&mut self, threads: &mut Threads, warp: u32, mask: u32) {
        let state = &mut threads.lanes[warp as usize];
        let resumed = state.pending & mask;
        if resumed == 0 {
            return;
        }
        state.pending &= !resumed;
        let first = warp as usize * LANES;
        let rows = state.known.get_or_insert_default();
        let (before, clocks) = (rows.clone(), threads.known[first..first + LANES].to_vec());
        for lane in lanes(resumed) {
            for other in lanes(state.wanted[lane]) {
                for (own, others) in rows[lane].iter_mut().zip(before[other]) {
                    *own = (*own).max(others);
                }
                rows[lane][other] = rows[lane][other].max(state.arrived[other]);
                if let Some(clock) = &clocks[other] {
                    learn(&mut threads.known[first + lane], clock);
                }
            }
        }
    }
}

/// Adds what a thread knows to a place.
fn learn_place(place: &mut Arc<Clock>, known: &Arc<Clock>) {
    if !Arc::ptr_eq(place, known) && !place.covers(known) {
        Arc::make_mut(place).join(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::random::Random;

    /// Vector clocks of all threads, and of the places: the definition, thread by thread.
    struct Definition {
        threads: Vec<Vec<u32>>,
        places: HashMap<u64, Vec<u32>>,
    }

    fn join(into: &mut [u32], from: &[u32]) {
        for (a, b) in into.iter_mut().zip(from) {
            *a = (*a).max(*b);
        }
    }

    impl Definition {
        fn meet(&mut self, all: &[usize]) {
            let mut clock = vec![0; self.threads.len()];
            all.iter().for_each(|&t| join(&mut clock, &self.threads[t]));
            for &t in all {
                join(&mut self.threads[t], &clock);
            }
        }
    }

    /// Random accesses and synchronisation of two blocks of two warps, of which four lanes each are used.
    #[test]
    fn agrees_with_vector_clocks() {
        const BLOCKS: usize = 2;
        const WARPS: usize = 2;
        const PLACES: u64 = 3;
        let thread_of = |lane: usize, warp: usize| (warp * LANES + lane) as u32;
        let (mut known, mut unknown) = (0, 0);
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut pick = |n: usize| random.below(n);
            let mut order = Order::new(WARPS);
            let mut blocks: Vec<Threads> =
                (0..BLOCKS as u64).map(|b| Threads::new(b, WARPS)).collect();
            let count = BLOCKS * WARPS * LANES;
            let mut definition = Definition {
                threads: vec![vec![0; count]; count],
                places: HashMap::new(),
            };
            // Thread among all, and stamp and own clock of the access.
            let mut accesses: Vec<(usize, u32, u32)> = Vec::new();
            for _ in 0..150 {
                let (block, warp, lane) = (pick(BLOCKS), pick(WARPS), pick(4));
                let (thread, all) = (thread_of(lane, warp), (block * WARPS + warp) * LANES + lane);
                let threads = &mut blocks[block];
                match pick(12) {
                    0..6 => {
                        definition.threads[all][all] += 1;
                        for &(other, stamp, clock) in accesses.iter().filter(|a| a.0 != all) {
                            let number = (other / LANES) as u32;
                            let found =
                                order.is_known(threads, thread, number, other % LANES, stamp);
                            let expected = definition.threads[all][other] >= clock;
                            assert_eq!(found, expected, "seed {seed}: {other} before {all}");
                            *(if expected { &mut known } else { &mut unknown }) += 1;
                        }
                        accesses.push((all, order.stamp(), definition.threads[all][all]));
                    }
                    step @ 6..10 => {
                        let word = pick(PLACES as usize) as u64;
                        let key = if word == 0 && block == 0 {
                            threads.shared_key(0)
                        } else {
                            word + 1
                        };
                        let (reads, writes) =
                            [(true, false), (false, true), (true, true)][step % 3];
                        order.strong(threads, thread, key, reads, writes);
                        let place = definition
                            .places
                            .entry(key)
                            .or_insert_with(|| vec![0; count]);
                        if reads {
                            join(&mut definition.threads[all], place);
                        }
                        if writes {
                            join(place, &definition.threads[all]);
                        }
                    }
                    10 => {
                        let mask = 1 + pick(15) as u32;
                        order.arrive(threads, warp as u32, mask, mask);
                        order.resume(threads, warp as u32, mask);
                        let first = all - lane;
                        let met: Vec<usize> = lanes(mask).map(|l| first + l).collect();
                        definition.meet(&met);
                    }
                    _ if pick(3) == 0 => {
                        order.barrier(threads);
                        let size = WARPS * LANES;
                        let met: Vec<usize> = (block * size..(block + 1) * size).collect();
                        definition.meet(&met);
                    }
                    _ => {}
                }
            }
        }
        assert!(
            known > 1000 && unknown > 1000,
            "{known} known, {unknown} not"
        );
    }

    #[test]
    fn what_is_forgotten_counts_as_known() {
        let mut order = Order::new(1);
        let mut threads: Vec<Threads> = (0..3).map(|b| Threads::new(b, 1)).collect();
        let stamp = order.stamp();
        for place in 0..2 * CLOCK_ENTRIES as u64 {
            order.strong(&mut threads[0], 0, place, false, true);
            order.strong(&mut threads[1], 0, place, true, false);
        }
        let clock = threads[1].known[0].clone().expect("much is known");
        assert!(clock.entries.len() <= CLOCK_ENTRIES && clock.floor > 0);
        assert!(order.is_known(&threads[1], 0, 0, 0, stamp));
        assert!(!order.is_known(&threads[2], 0, 0, 0, stamp));
        order.forget();
        assert!(order.is_known(&threads[1], 0, 0, 0, stamp));
        let last = order.stamp();
        assert!(!order.is_known(&threads[1], 0, 0, 0, last));
    }
}
