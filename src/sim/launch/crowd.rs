//! What the host threads that run the blocks of a launch at the same time have in common.

use crate::launch::{Fault, Progress, Stats};
use crate::sim::launch::cta::{Cta, Run, WARP_TURN, pieces};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A worker may be ahead of another one by this part of what a warp may issue (assigned).
pub(super) const AHEAD: u64 = 8;
/// How long a worker that is ahead sleeps before it looks again (assigned).
pub(super) const PAUSE: Duration = Duration::from_micros(50);
/// The rounds of a worker that has ended.
pub(super) const ENDED: u64 = u64::MAX;

/// What the workers of a launch have in common.
pub(super) struct Crowd {
    pub(super) blocks: u64,
    /// Blocks that are resident together, at most.
    pub(super) together: u64,
    /// Workers, once all have been started.
    pub(super) workers: OnceLock<u64>,
    /// How often each worker has given all its blocks a turn; as many as workers are wanted.
    pub(super) rounds: Box<[AtomicU64]>,
    /// Rounds that a worker may be ahead.
    pub(super) ahead: u64,
    /// The first block that nobody has taken.
    pub(super) next: AtomicU64,
    pub(super) ended: AtomicU64,
    /// Instructions of all blocks.
    pub(super) issued: AtomicU64,
    /// Instructions of those blocks that have not ended.
    pub(super) unended: AtomicU64,
    /// Blocks that were resident together.
    pub(super) most: AtomicU64,
    /// A worker has found a fault.
    pub(super) is_over: AtomicBool,
    pub(super) outcome: Mutex<Outcome>,
}

/// What the workers that have ended leave.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) stats: Stats,
    pub(super) fault: Option<Fault>,
    /// Blocks that have not ended.
    pub(super) running: Vec<Cta>,
}

impl Crowd {
    pub(super) fn new(run: &Run, workers: usize, together: u64) -> Crowd {
        let warps = together.saturating_mul(pieces(run).count() as u64);
        let fair = run.config.launch_limit() / warps.max(1);
        let ahead = run.config.warp_limit().min(fair) / (AHEAD * u64::from(WARP_TURN));
        Crowd {
            blocks: run.shape.blocks(),
            together,
            workers: OnceLock::new(),
            rounds: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            ahead: ahead.max(1),
            next: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            unended: AtomicU64::new(0),
            most: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            outcome: Mutex::default(),
        }
    }

    pub(super) fn outcome(&self) -> MutexGuard<'_, Outcome> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks that a worker keeps.
    pub(super) fn share(&self, worker: usize) -> usize {
        let wanted = self.rounds.len() as u64;
        let workers = self.workers.get().copied().unwrap_or(wanted);
        let more = u64::from((worker as u64) < self.together % workers);
        (self.together / workers + more) as usize
    }

    /// The next block, or none.
    pub(super) fn take(&self) -> Option<u64> {
        let block = self.next.fetch_add(1, Ordering::Relaxed);
        if block >= self.blocks {
            return None;
        }
        let running = self.standing().running.min(self.together);
        self.most.fetch_max(running, Ordering::Relaxed);
        Some(block)
    }

    /// Blocks that nobody has taken.
    pub(super) fn left(&self) -> u64 {
        self.blocks
            .saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// How far the launch is.
    pub(super) fn standing(&self) -> Standing {
        let ended = self.ended.load(Ordering::Relaxed);
        let taken = self.next.load(Ordering::Relaxed).min(self.blocks);
        Standing {
            ended,
            running: taken.saturating_sub(ended),
            issued: self.unended.load(Ordering::Relaxed),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Counts what a turn has issued, and all that a block has which has ended in it.
    pub(super) fn tell(&self, progress: Option<&Progress>, ended: Option<u64>, new: u64) {
        let issued = self.issued.fetch_add(new, Ordering::Relaxed) + new;
        self.unended.fetch_add(new, Ordering::Relaxed);
        if let Some(instructions) = ended {
            self.unended.fetch_sub(instructions, Ordering::Relaxed);
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(progress) = progress {
            progress.count(self.ended.load(Ordering::Relaxed), issued);
        }
    }

    /// The rounds of the worker that has had the fewest.
    pub(super) fn slowest(&self) -> u64 {
        let workers = self.workers.get().copied().unwrap_or(0) as usize;
        let rounds = self.rounds.iter().take(workers);
        let rounds = rounds.map(|rounds| rounds.load(Ordering::Relaxed));
        rounds.min().unwrap_or(ENDED)
    }
}

/// How far a launch is.
pub(super) struct Standing {
    /// CTAs that have ended.
    pub(super) ended: u64,
    /// CTAs that have begun and not ended.
    pub(super) running: u64,
    /// Instructions that those have issued.
    pub(super) issued: u64,
}
