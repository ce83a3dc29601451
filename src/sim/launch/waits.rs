//! Who waits for whom, of the CTAs that a launch could not end.
//!
//! In: the CTAs that have begun and not ended, and what checks know of them. Out: the [`Wait`]s for the fault, threads
//! that wait alike taken together: those at the same instruction for the same place, or at the same barrier.

use crate::launch::{Awaited, LaunchRequest, Wait, Window};
use crate::sim::check::Checker;
use crate::sim::launch::cta::Cta;
use crate::sim::launch::loaded::Loaded;
use crate::sim::memory::Location;
use crate::sim::memory::global::Table;
use crate::sim::warp::registers::LANES;
use crate::sim::warp::{Group, GroupState, Warp};
use hashbrown::HashMap;

/// Waits of a fault, at most (assigned).
const KEPT: usize = 64;

/// What threads that wait alike have in common: their instruction, the kind of the wait, and its place, lanes or
/// counts.
type Alike = (u32, std::mem::Discriminant<Awaited>, (u64, u64));

/// What tells waits of a kind apart, in the CTA of this number.
fn detail(awaited: &Awaited, number: usize) -> (u64, u64) {
    match *awaited {
        // Shared memory of another block is another place.
        Awaited::Memory {
            window: Window::Shared,
            address,
            ..
        } => (number as u64, address),
        Awaited::Memory { address, .. } => (u64::MAX, address),
        Awaited::Barrier { arrived, live } => (arrived.into(), live.into()),
        Awaited::Lanes(mask) => (0, mask.into()),
        Awaited::Nothing => (0, 0),
    }
}

impl Loaded {
    /// Who waits for whom in CTAs that have not ended.
    pub(in crate::sim) fn waits(
        &self,
        request: &LaunchRequest,
        ctas: &[Cta],
        checker: Option<&Checker>,
        global: &Table,
    ) -> Vec<Wait> {
        let mut waits: Vec<Wait> = Vec::new();
        let mut known: HashMap<Alike, (usize, usize)> = HashMap::new();
        for (number, cta) in ctas.iter().enumerate() {
            for warp in &cta.warps {
                for (group, pc, awaited) in
                    self.awaited_by_parts(request, cta, warp, checker, global)
                {
                    let alike = (
                        pc,
                        std::mem::discriminant(&awaited),
                        detail(&awaited, number),
                    );
                    let (index, last) = *known.entry(alike).or_insert((waits.len(), number));
                    let threads = u64::from(group.mask.count_ones());
                    if let Some(wait) = waits.get_mut(index) {
                        wait.threads += threads;
                        wait.blocks += u64::from(last != number);
                    } else if index == waits.len() && index < KEPT {
                        let thread = warp.index * LANES as u32 + group.mask.trailing_zeros();
                        waits.push(Wait {
                            place: self.place(request, cta.block, thread, pc),
                            threads,
                            blocks: 1,
                            awaited,
                        });
                    }
                    known.insert(alike, (index, number));
                }
            }
        }
        waits
    }

    /// The groups of a warp, in parts of lanes that wait for one thing, with its instruction.
    fn awaited_by_parts(
        &self,
        request: &LaunchRequest,
        cta: &Cta,
        warp: &Warp,
        checker: Option<&Checker>,
        global: &Table,
    ) -> Vec<(Group, u32, Awaited)> {
        let mut parts = Vec::new();
        for group in warp.groups() {
            let mut left = *group;
            while left.mask != 0 {
                let (pc, awaited, lanes) = self.awaited(request, cta, warp, left, checker, global);
                let part = Group {
                    mask: lanes,
                    ..left
                };
                left.mask &= !lanes;
                parts.push((part, pc, awaited));
            }
        }
        parts
    }

    /// What the first lane of a group waits for, its instruction, and the lanes of the group that wait for the same.
    fn awaited(
        &self,
        request: &LaunchRequest,
        cta: &Cta,
        warp: &Warp,
        group: Group,
        checker: Option<&Checker>,
        global: &Table,
    ) -> (u32, Awaited, u32) {
        let awaited = match group.state {
            GroupState::Ready => {
                let activity = checker.map(|checker| &checker.activity);
                let first = group.mask & group.mask.wrapping_neg();
                let poll = |lanes| {
                    let activity = activity?;
                    Some((activity, activity.poll(cta.room, warp.index, lanes)?))
                };
                // Lanes of which nothing is known wait as others do that run with them.
                let Some((activity, poll)) = poll(first).or_else(|| poll(group.mask)) else {
                    return (group.pc, Awaited::Nothing, group.mask);
                };
                let lanes = first | poll.lanes & group.mask;
                let (window, allocation) = match poll.place {
                    Location::Global(index, _) => (Window::Global, Some(global.extent(index))),
                    _ => (Window::Shared, None),
                };
                let writer = activity.writer(cta.room, &poll);
                let writer =
                    writer.map(|at| Box::new(self.place(request, at.block, at.thread, at.pc)));
                let awaited = Awaited::Memory {
                    window,
                    address: poll.address,
                    bytes: poll.bytes,
                    allocation,
                    writer,
                };
                return (poll.pc, awaited, lanes);
            }
            GroupState::AtCtaBarrier => {
                let at_barrier = |warp: &Warp| {
                    let groups = warp.groups().iter();
                    let there = groups.filter(|g| g.state == GroupState::AtCtaBarrier);
                    there.map(|g| g.mask.count_ones()).sum::<u32>()
                };
                Awaited::Barrier {
                    arrived: cta.warps.iter().map(at_barrier).sum(),
                    live: cta.warps.iter().map(|warp| warp.live.count_ones()).sum(),
                }
            }
            GroupState::AtBarrier(number) => {
                let region = crate::sim::warp::registers::lanes(group.mask)
                    .fold(0, |all, lane| all | warp.barrier(number, lane));
                Awaited::Lanes(region & warp.live & !group.mask)
            }
            GroupState::AtWarpSync(wanted) => Awaited::Lanes(wanted & warp.live & !group.mask),
        };
        (group.pc, awaited, group.mask)
    }
}
