//! Lanes of a warp that run together, and the barriers at which they meet others.

use smallvec::SmallVec;

/// Convergence barriers of a warp.
pub const BARRIERS: usize = 16;

/// Why a group does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GroupState {
    /// It runs.
    Ready,
    /// At BSYNC of this barrier.
    AtBarrier(u8),
    /// At WARPSYNC with this mask.
    AtWarpSync(u32),
    /// At BAR.SYNC.
    AtCtaBarrier,
}

/// Lanes that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// Index of the next instruction.
    pub pc: u32,
    /// The lanes, never none.
    pub mask: u32,
    /// Whether it runs.
    pub state: GroupState,
}

/// Lanes with the same view of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct View {
    /// They, never none.
    pub(super) lanes: u32,
    /// The lanes that they wait for.
    pub(super) region: u32,
}

/// How lanes see a barrier: disjoint lanes, no region twice. Lanes that are in none wait for nobody.
pub(super) type Views = SmallVec<[View; 2]>;

/// Where a warp is: its groups and their barriers.
#[derive(Clone, Debug, Hash)]
pub(in crate::sim) struct Standing {
    pub(super) groups: Vec<Group>,
    pub(super) current: usize,
    pub(super) live: u32,
    pub(super) turn: u32,
    pub(super) barriers: [Views; BARRIERS],
}
