//! How far a launch is, for other threads to see, and their wish that it ends.
//!
//! The launch counts after each turn of a block, some ten thousand instructions at most, and looks for the wish then. Nothing here
//! changes what a launch computes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of one launch. Shared with whoever watches it.
#[derive(Debug, Default)]
pub struct Progress {
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
        self.blocks.load(Ordering::Relaxed)
    }

    /// Blocks whose threads have all ended.
    pub fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Instructions that warps have issued.
    pub fn warp_instructions(&self) -> u64 {
        self.instructions.load(Ordering::Relaxed)
    }

    /// Asks the launch to end, with the fault [`super::FaultKind::Cancelled`]. It may have ended before it sees this.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// For devices: a launch of so many blocks begins.
    pub fn begin(&self, blocks: u64) {
        self.blocks.store(blocks, Ordering::Relaxed);
    }

    /// For devices: so many blocks have ended, so many instructions have been issued.
    pub fn count(&self, finished: u64, instructions: u64) {
        self.finished.store(finished, Ordering::Relaxed);
        self.instructions.store(instructions, Ordering::Relaxed);
    }
}
