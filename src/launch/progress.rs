//! How far a launch is, for other threads to see, and their wish that it ends.
//!
//! The launch counts after each turn of a block, some ten thousand instructions at most, and looks for the wish after
//! each of a warp, a thousand. Nothing here changes what a launch computes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The progress of one launch. Clones are of the same launch: one for who runs it, others for who watches it.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    state: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    blocks: AtomicU64,
    finished: AtomicU64,
    instructions: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Of a launch that has not begun.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Blocks of the launch; 0 before it has begun.
    pub fn blocks(&self) -> u64 {
        self.state.blocks.load(Ordering::Relaxed)
    }

    /// Blocks whose threads have all ended.
    pub fn finished(&self) -> u64 {
        self.state.finished.load(Ordering::Relaxed)
    }

    /// Instructions that warps have issued.
    pub fn warp_instructions(&self) -> u64 {
        self.state.instructions.load(Ordering::Relaxed)
    }

    /// Asks the launch to end, with the fault [`super::FaultKind::Cancelled`]. It may have ended before it sees this.
    pub fn cancel(&self) {
        self.state.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.state.cancelled.load(Ordering::Relaxed)
    }

    /// For devices: a launch of so many blocks begins.
    pub fn begin(&self, blocks: u64) {
        self.state.finished.store(0, Ordering::Relaxed);
        self.state.instructions.store(0, Ordering::Relaxed);
        self.state.blocks.store(blocks, Ordering::Relaxed);
    }

    /// For devices: so many blocks have ended, so many instructions have been issued. Of counts that several threads
    /// give the greatest holds.
    pub fn count(&self, finished: u64, instructions: u64) {
        self.state.finished.fetch_max(finished, Ordering::Relaxed);
        self.state
            .instructions
            .fetch_max(instructions, Ordering::Relaxed);
    }
}

/// Why a launch may have to end before its program does.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interrupt<'a> {
    /// Somebody may wish so.
    progress: Option<&'a Progress>,
    /// When it has taken as long as it may, and how long that is.
    limit: Option<(Instant, Duration)>,
}

/// Why a launch ends before its program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interruption {
    /// Somebody wishes so.
    Cancelled,
    /// It has taken this long.
    TimeLimit(Duration),
}

impl<'a> Interrupt<'a> {
    /// For a launch that begins now.
    pub fn new(progress: Option<&'a Progress>, limit: Option<Duration>) -> Interrupt<'a> {
        // A limit behind the end of all time is none.
        let limit = limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit)));
        Interrupt { progress, limit }
    }

    /// Whether the launch has to end now, and why.
    pub fn look(&self) -> Option<Interruption> {
        if self.progress.is_some_and(Progress::is_cancelled) {
            return Some(Interruption::Cancelled);
        }
        let (_, limit) = self.limit.filter(|(end, _)| Instant::now() >= *end)?;
        Some(Interruption::TimeLimit(limit))
    }
}
