//! The shadow against the definition of a race: vector clocks of all threads, and every access to every byte.

use super::order::{Order, Threads};
use super::race::{Earlier, Means, Now};
use super::shadow::Shadow;
use crate::isa::random::Random;
use crate::launch::AccessKind;
use crate::sim::warp::registers::{LANES, lanes};
use hashbrown::{HashMap, HashSet};

/// CTAs, their warps, and the lanes of a warp that do something.
const BLOCKS: usize = 2;
const WARPS: usize = 2;
const LANES_USED: usize = 2;
/// All threads.
const THREADS: usize = BLOCKS * WARPS * LANES;
/// Words that are used: few, so that threads meet.
const WORDS: usize = 5;

/// An access of a thread to a byte.
#[derive(Clone, Copy)]
struct Access {
    thread: usize,
    clock: u32,
    pc: u32,
    kind: AccessKind,
    wrote: bool,
    strong: bool,
}

/// What happened, and who knows of it.
struct Reference {
    threads: Vec<Vec<u32>>,
    places: HashMap<u64, Vec<u32>>,
    bytes: Vec<Vec<Access>>,
    /// Bytes of which a race was told: what it hides may go untold.
    raced: HashSet<usize>,
}

fn join(into: &mut [u32], from: &[u32]) {
    for (a, b) in into.iter_mut().zip(from) {
        *a = (*a).max(*b);
    }
}

impl Reference {
    fn new() -> Reference {
        Reference {
            threads: vec![vec![0; THREADS]; THREADS],
            places: HashMap::new(),
            bytes: vec![Vec::new(); 4 * WORDS],
            raced: HashSet::new(),
        }
    }

    fn meet(&mut self, all: &[usize]) {
        let mut clock = vec![0; THREADS];
        all.iter().for_each(|&t| join(&mut clock, &self.threads[t]));
        for &t in all {
            join(&mut self.threads[t], &clock);
        }
    }

    fn strong(&mut self, thread: usize, place: u64, reads: bool, writes: bool) {
        let place = self.places.entry(place).or_insert_with(|| vec![0; THREADS]);
        if reads {
            join(&mut self.threads[thread], place);
        }
        if writes {
            join(place, &self.threads[thread]);
        }
    }

    /// Notes an access and holds what was found against all that it races with.
    fn judge(&mut self, now: Access, bytes: &[usize], found: Option<Earlier>, seed: u64) -> bool {
        let races = |byte: usize| {
            let earlier = self.bytes[byte].iter().filter(|a| {
                a.thread != now.thread
                    && (a.wrote || now.wrote)
                    && !(a.strong && now.strong)
                    && self.threads[now.thread][a.thread] < a.clock
            });
            earlier.copied().collect::<Vec<Access>>()
        };
        let all: Vec<(usize, Vec<Access>)> = bytes.iter().map(|&b| (b, races(b))).collect();
        if let Some(found) = found {
            let thread = found.warp as usize * LANES + found.lane as usize;
            let byte = bytes[0] / 4 * 4 + found.byte as usize;
            let is_there = all.iter().filter(|(b, _)| *b == byte).any(|(_, races)| {
                races
                    .iter()
                    .any(|a| (a.thread, a.pc, a.kind) == (thread, found.pc, found.kind))
            });
            assert!(is_there, "seed {seed}: {found:?} does not race");
        }
        let fresh = |byte: &usize| !self.raced.contains(byte);
        let first = all.iter().any(|(b, races)| !races.is_empty() && fresh(b));
        let known = all.iter().all(|(b, _)| fresh(b));
        assert!(
            found.is_some() || !first || !known,
            "seed {seed}: a race of thread {} at {} was not found",
            now.thread,
            now.pc
        );
        for (byte, races) in &all {
            if !races.is_empty() {
                self.raced.insert(*byte);
            }
            self.bytes[*byte].push(now);
        }
        first
    }
}

/// Random accesses and synchronisation; `means`: what of it there is. How many accesses raced, and how many did not.
fn compare(seed: u64, means: Means) -> [usize; 2] {
    let mut random = Random::new(seed);
    let mut pick = |n: usize| random.below(n);
    let mut order = Order::new(WARPS);
    let mut blocks: Vec<Threads> = (0..BLOCKS as u64).map(|b| Threads::new(b, WARPS)).collect();
    let mut shadow = Shadow::new(means);
    let mut reference = Reference::new();
    let mut counts = [0; 2];
    let steps = 120;
    for step in 0..steps {
        // CTAs that are apart run one after another.
        let block = match means.apart {
            true => step * BLOCKS / steps,
            false => pick(BLOCKS),
        };
        let (warp, lane) = (pick(WARPS), pick(LANES_USED));
        let thread = (block * WARPS + warp) * LANES + lane;
        let in_block = (warp * LANES + lane) as u32;
        match pick(16) {
            0..11 => {
                let strong = pick(4) == 0;
                let (reads, wrote) =
                    [(true, false), (false, true), (true, true)][pick(if strong { 3 } else { 2 })];
                // Where nothing but barriers orders, strong accesses do not read.
                let (reads, wrote) = match strong && (means.barriers || means.apart) {
                    true => (false, true),
                    false => (reads, wrote),
                };
                let kind = match (strong, wrote) {
                    (true, true) => AccessKind::Atomic,
                    (_, true) => AccessKind::Store,
                    _ => AccessKind::Load,
                };
                let word = pick(WORDS);
                let mask: u8 = [15, 15, 15, 15, 1, 2, 12][if strong { 0 } else { pick(7) }];
                if strong && reads {
                    order.strong(&mut blocks[block], in_block, word as u64, true, false);
                    reference.strong(thread, word as u64, true, false);
                }
                reference.threads[thread][thread] += 1;
                let now = Now {
                    order: &order,
                    threads: &blocks[block],
                    warp: warp as u32,
                    pc: pick(3) as u32,
                    kind,
                    wrote,
                    strong,
                };
                let access = Access {
                    thread,
                    clock: reference.threads[thread][thread],
                    pc: now.pc,
                    kind,
                    wrote,
                    strong,
                };
                let found = shadow.touch(&now, 0, word, lane, (mask, 0));
                let bytes: Vec<usize> = lanes(mask.into()).map(|byte| 4 * word + byte).collect();
                let raced = reference.judge(access, &bytes, found, seed);
                counts[usize::from(!raced)] += 1;
                if strong && wrote {
                    order.strong(&mut blocks[block], in_block, word as u64, reads, true);
                    reference.strong(thread, word as u64, reads, true);
                }
            }
            11 | 12 if !means.barriers => {
                let mask = 1 + pick((1 << LANES_USED) - 1) as u32;
                let threads = &mut blocks[block];
                order.arrive(threads, warp as u32, mask, mask);
                order.resume(threads, warp as u32, mask);
                let first = thread - lane;
                let met: Vec<usize> = lanes(mask).map(|l| first + l).collect();
                reference.meet(&met);
            }
            13 | 14 if !means.apart => {
                // A flag beside the words.
                let (place, reads) = (100 + pick(2) as u64, pick(2) == 0);
                order.strong(&mut blocks[block], in_block, place, reads, !reads);
                reference.strong(thread, place, reads, !reads);
            }
            15 => {
                order.barrier(&mut blocks[block]);
                let size = WARPS * LANES;
                let met: Vec<usize> = (block * size..(block + 1) * size).collect();
                reference.meet(&met);
            }
            _ => {}
        }
    }
    counts
}

#[test]
fn finds_the_races_that_there_are() {
    for (apart, barriers) in [(true, true), (true, false), (false, false)] {
        let means = Means { apart, barriers };
        let (mut raced, mut ordered) = (0, 0);
        for seed in 0..600 {
            let [a, b] = compare(seed, means);
            (raced, ordered) = (raced + a, ordered + b);
        }
        assert!(
            raced > 1000 && ordered > 1000,
            "{raced} races, {ordered} others"
        );
    }
}

/// Events that nobody names any more go, and the records that are left say the same.
#[test]
fn dropping_events_changes_nothing() {
    let means = Means {
        apart: true,
        barriers: true,
    };
    let mut order = Order::new(1);
    let mut shadow = Shadow::new(means);
    let mut threads = Threads::new(0, 1);
    let rounds = 200_000;
    for round in 0..rounds {
        let now = Now {
            order: &order,
            threads: &threads,
            warp: 0,
            pc: round % 7,
            kind: AccessKind::Store,
            wrote: true,
            strong: false,
        };
        let found = shadow.touch(&now, 0, (round % 300) as usize, 5, (15, 0));
        assert_eq!(found, None);
        order.barrier(&mut threads);
    }
    assert!(shadow.events() < rounds as usize, "{}", shadow.events());
    // Another CTA finds the last of them, with its instruction.
    let other = Threads::new(1, 1);
    let now = Now {
        order: &order,
        threads: &other,
        warp: 0,
        pc: 100,
        kind: AccessKind::Load,
        wrote: false,
        strong: false,
    };
    for word in 0..300 {
        let last = (0..rounds).rev().find(|round| round % 300 == word);
        let found = shadow.touch(&now, 0, word as usize, 9, (15, 0));
        let found = found.expect("a race");
        assert_eq!((found.warp, found.lane), (0, 5));
        assert_eq!(Some(found.pc), last.map(|round| round % 7));
    }
}
