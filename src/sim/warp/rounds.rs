//! What is known of a warp that may go round in a circle ([`crate::sim::execute::rounds`] looks for it).

use crate::sim::warp::group::Standing;
use crate::sim::warp::registers::Column;

/// What a warp does next depends on this and on memory alone.
#[derive(Clone, Debug, Hash)]
pub(in crate::sim) struct WarpSnapshot {
    /// Changes of memory before it.
    pub(in crate::sim) changes: u64,
    /// Instructions the warp had issued.
    pub(in crate::sim) issued: u64,
    /// And in how many lanes.
    pub(in crate::sim) lanes: u64,
    /// Calls that its threads are in, together: faults tell how many.
    pub(in crate::sim) calls: u64,
    pub(in crate::sim) standing: Standing,
    pub(in crate::sim) general: Vec<Column>,
    pub(in crate::sim) uniform: [u32; 64],
    pub(in crate::sim) predicates: [u32; 8],
}

/// What is known of a warp's rounds.
#[derive(Clone, Debug, Default, Hash)]
pub struct Rounds {
    pub(in crate::sim) kept: Option<Box<WarpSnapshot>>,
    /// Turns since a state was kept, and after how many the next one is.
    pub(in crate::sim) turns: u32,
    pub(in crate::sim) gap: u32,
    /// Lanes in which it issued.
    pub(in crate::sim) lanes: u64,
    /// Changes of memory when it was found going round.
    pub(in crate::sim) found: Option<u64>,
}

impl Rounds {
    /// Whether the warp goes round as long as memory has changed so often.
    pub fn is_endless(&self, changes: u64) -> bool {
        self.found == Some(changes)
    }
}
