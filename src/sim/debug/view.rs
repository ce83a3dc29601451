//! What can be seen of a launch that stands.

use super::state::State;
use super::stop::Thread;
use crate::launch::AccessKind;
use crate::sim::launch::shape::Shape;
use crate::sim::warp::registers::LANES;
use crate::sim::warp::{Group, GroupState, Warp};
use serde::Serialize;

/// A warp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WarpView {
    /// Number of its block in the grid.
    pub block: u64,
    /// Coordinates of its block.
    pub coordinates: [u32; 3],
    /// Number in its block.
    pub warp: u32,
    /// Lanes that have not ended.
    pub live: u32,
    /// Instructions that it has issued.
    pub issued: u64,
    /// Its lanes, those together that run together; the one that issues next is first.
    pub groups: Vec<GroupView>,
}

/// Lanes that run together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupView {
    /// They.
    pub lanes: u32,
    /// Code address of their next instruction, in bytes.
    pub pc: u32,
    /// What they wait for.
    pub wait: WaitView,
}

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum WaitView {
    /// Nothing: they go on when it is their turn.
    Nothing,
    /// BSYNC.
    Barrier {
        /// Number of the convergence barrier.
        number: u8,
        /// Lanes that have to come, and have not ended.
        missing: u32,
    },
    /// WARPSYNC.
    Warp {
        /// Lanes that have to come, and have not ended.
        missing: u32,
    },
    /// BAR.SYNC.
    Block {
        /// Threads of the block that have to come, and have not ended.
        missing: u32,
    },
}

/// What lanes are about to access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessView {
    /// How.
    pub kind: AccessKind,
    /// Size in bytes.
    pub bytes: u32,
    /// Lanes and their addresses, or offsets where the instruction says which memory.
    pub addresses: Vec<(usize, u64)>,
}

/// A value in the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// By lane.
    pub lanes: [u64; LANES],
    /// The lanes that have not ended.
    pub live: u32,
}

impl State {
    /// All warps of the blocks that run.
    pub(super) fn warps(&self, grid: [u32; 3], word: u32) -> Vec<WarpView> {
        let mut views = Vec::new();
        for cta in &self.running {
            let at_barrier: u32 = (cta.warps.iter().flat_map(Warp::groups))
                .filter(|group| group.state == GroupState::AtCtaBarrier)
                .map(|group| group.mask.count_ones())
                .sum();
            let live: u32 = cta.warps.iter().map(|warp| warp.live.count_ones()).sum();
            for warp in &cta.warps {
                let view = |group: &Group| GroupView {
                    lanes: group.mask,
                    pc: group.pc * word,
                    wait: wait(warp, group, live - at_barrier),
                };
                let first = warp
                    .groups()
                    .iter()
                    .position(|group| warp.live != 0 && group == &warp.group());
                let mut groups: Vec<GroupView> = warp.groups().iter().map(view).collect();
                groups.rotate_left(first.unwrap_or(0));
                views.push(WarpView {
                    block: Shape::number(grid, cta.block),
                    coordinates: cta.block,
                    warp: warp.index,
                    live: warp.live,
                    issued: warp.issued,
                    groups,
                });
            }
        }
        views
    }

    /// The warp of a thread, if its block runs.
    pub(super) fn warp_of(&self, grid: [u32; 3], thread: Thread) -> Option<&Warp> {
        let block = Shape::coordinates(grid, thread.block);
        let cta = self.running.iter().find(|cta| cta.block == block)?;
        let lane = 1u32 << thread.lane();
        cta.warps
            .iter()
            .find(|warp| warp.index == thread.warp() && warp.apart & lane == 0)
    }

    /// The same, to be changed.
    pub(super) fn warp_of_mut(&mut self, grid: [u32; 3], thread: Thread) -> Option<&mut Warp> {
        let block = Shape::coordinates(grid, thread.block);
        let cta = self.running.iter_mut().find(|cta| cta.block == block)?;
        let lane = 1u32 << thread.lane();
        cta.warps
            .iter_mut()
            .find(|warp| warp.index == thread.warp() && warp.apart & lane == 0)
    }

    /// Whether a thread has begun and ended.
    pub(super) fn has_ended(&self, grid: [u32; 3], thread: Thread) -> bool {
        self.has_begun(thread.block) && self.group_of(grid, thread).is_none()
    }

    /// The group of a thread, if it has not ended.
    pub(super) fn group_of(&self, grid: [u32; 3], thread: Thread) -> Option<Group> {
        let warp = self.warp_of(grid, thread)?;
        let lane = 1u32 << thread.lane();
        let mut groups = warp.groups().iter();
        groups.find(|group| group.mask & lane != 0).copied()
    }
}

fn wait(warp: &Warp, group: &Group, missing: u32) -> WaitView {
    let live = warp.live & !group.mask;
    match group.state {
        GroupState::Ready => WaitView::Nothing,
        GroupState::AtBarrier(number) => {
            let lanes = (0..LANES).filter(|lane| group.mask >> lane & 1 != 0);
            let region = lanes.fold(0, |all, lane| all | warp.barrier(number, lane));
            WaitView::Barrier {
                number,
                missing: region & live,
            }
        }
        GroupState::AtWarpSync(mask) => WaitView::Warp {
            missing: mask & live,
        },
        GroupState::AtCtaBarrier => WaitView::Block { missing },
    }
}
