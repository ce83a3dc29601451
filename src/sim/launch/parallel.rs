//! The blocks of a launch on several threads, with the outcome of running them one after another.
//!
//! Workers take blocks in the order of their numbers, a few at a time. What they count is added up in that order, so a
//! launch that faults has the counts of the blocks before the faulting one and of that one up to the fault, and of
//! several faults that of the lowest block is reported: all blocks below it have ended, since they were taken before
//! it. What blocks behind it have written is not taken back.

use crate::launch::{Fault, Progress, Stats};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

/// Blocks that a worker takes at once, at most (assigned).
const TAKEN: u64 = 64;
/// Times that each worker takes blocks, about, if all last as long: the more, the more evenly they end (assigned).
const TIMES: u64 = 32;
/// Instructions of warps that a launch issues before it has other threads: as long as it takes to start some
/// (assigned).
pub const ALONE: u64 = 1 << 14;

/// The threads that a launch may have; 0 stands for as many as the host runs at a time.
pub fn threads(wanted: u32) -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    match wanted {
        0 => *CORES.get_or_init(|| available_parallelism().map_or(1, NonZero::get)),
        _ => wanted as usize,
    }
}

/// What the workers of a launch have in common.
pub struct Tally {
    blocks: u64,
    workers: u64,
    /// The first block that nobody has taken.
    next: AtomicU64,
    /// The lowest block that has faulted.
    lowest: AtomicU64,
    /// What the blocks have done will be taken back.
    abandoned: AtomicBool,
    ended: AtomicU64,
    instructions: AtomicU64,
    order: Mutex<Order>,
}

/// What was counted, in the order of the blocks.
#[derive(Default)]
struct Order {
    /// All blocks below this one are in `stats`.
    below: u64,
    stats: Stats,
    /// By their first block those that ended before a lower one: the block behind them, and their counts.
    later: BTreeMap<u64, (u64, Stats)>,
    fault: Option<(u64, Stats, Fault)>,
}

/// Adds what blocks have issued.
pub fn add(all: &mut Stats, stats: Stats) {
    all.warp_instructions += stats.warp_instructions;
    all.thread_instructions += stats.thread_instructions;
}

impl Tally {
    /// For a launch of so many blocks.
    pub fn new(blocks: u64, workers: usize) -> Tally {
        Tally {
            blocks,
            workers: workers as u64,
            next: AtomicU64::new(0),
            lowest: AtomicU64::new(u64::MAX),
            abandoned: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            instructions: AtomicU64::new(0),
            order: Mutex::default(),
        }
    }

    /// The next blocks, or none.
    pub fn take(&self) -> Option<Range<u64>> {
        let seen = self.next.load(Ordering::Relaxed).min(self.blocks);
        let count = ((self.blocks - seen) / (self.workers * TIMES)).clamp(1, TAKEN);
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        (first < self.blocks).then(|| first..(first + count).min(self.blocks))
    }

    /// Blocks that nobody has taken.
    pub fn left(&self) -> u64 {
        self.blocks
            .saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// Whether a block need not run, since a lower one has faulted or all are for nothing.
    pub fn is_over(&self, block: u64) -> bool {
        block > self.lowest.load(Ordering::Relaxed) || self.abandoned.load(Ordering::Relaxed)
    }

    /// No block need run any more: what they have done will be taken back.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// These blocks have ended.
    pub fn done(&self, blocks: Range<u64>, stats: Stats) {
        let mut guard = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let order = &mut *guard;
        order.later.insert(blocks.start, (blocks.end, stats));
        while let Some((end, stats)) = order.later.remove(&order.below) {
            order.below = end;
            add(&mut order.stats, stats);
        }
    }

    /// A block has faulted; the counts are those of the blocks that were taken with it and are below, and its own.
    pub fn fault(&self, block: u64, stats: Stats, fault: Fault) {
        self.lowest.fetch_min(block, Ordering::Relaxed);
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if order
            .fault
            .as_ref()
            .is_none_or(|(lowest, ..)| block < *lowest)
        {
            order.fault = Some((block, stats, fault));
        }
    }

    /// Counts for who watches: blocks that have ended, instructions that were issued.
    pub fn tell(&self, progress: &Progress, ended: u64, instructions: u64) {
        let ended = self.ended.fetch_add(ended, Ordering::Relaxed) + ended;
        let all = self.instructions.fetch_add(instructions, Ordering::Relaxed) + instructions;
        progress.count(ended, all);
    }

    /// What came of all: what was counted, and the fault with its block.
    pub fn outcome(self) -> (Stats, Option<(u64, Fault)>) {
        let mut order = self
            .order
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let fault = order.fault.take().map(|(block, stats, fault)| {
            add(&mut order.stats, stats);
            (block, fault)
        });
        (order.stats, fault)
    }
}
