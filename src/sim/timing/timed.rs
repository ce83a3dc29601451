//! Timed mode: when instructions issue, and whether their control bits keep them apart.
//!
//! One scheduler a CTA issues one instruction a cycle, warps in turn, each in order. A warp issues when its stall is
//! over and the scoreboards it waits for are zero. This gives the cycles.
//!
//! Whether the control bits suffice is judged apart from that, by [`crate::sim::timing::pending`], on clocks that only
//! the stalls of a lane's own instructions advance: which warps run beside it, and how long they take, changes nothing.
//! Found is a register read before its result has arrived (RAW), written while an earlier write would arrive at the
//! same time or later (WAW), written while a slow reader may still read it (WAR).
//!
//! The values that instructions compute never depend on this.

use crate::isa::Optype;
use crate::isa::control::SCOREBOARDS;
use crate::launch::profile::Stall;
use crate::launch::{HazardKind, Resource};
use crate::sim::decode::program::Op;
use crate::sim::timing::foreseen::States;
use crate::sim::timing::pending::{Early, Lanes, Pending};
use crate::sim::timing::profile::Recorder;
use crate::sim::warp::{Warp, WarpState};
use hashbrown::HashSet;

/// A hazard inside the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawHazard {
    /// What.
    pub kind: HazardKind,
    /// The register.
    pub register: Resource,
    /// Index of the instruction that comes too early.
    pub pc: u32,
    /// Index of the earlier instruction.
    pub earlier: u32,
    /// Cycle.
    pub cycle: u64,
    /// Thread index in the CTA.
    pub thread: u32,
}

/// The clock of a warp.
#[derive(Clone, Debug, Default)]
struct WarpTiming {
    ready: u64,
    /// When each scoreboard is zero again.
    zero: [u64; SCOREBOARDS as usize],
    pending: Pending,
    past: Past,
}

/// What a warp did last, for those who ask why it does not go on.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// The cycle after its last issue.
    since: u64,
    /// When the stall of its last instruction was over.
    stalled: u64,
    /// The barrier at which it waits for its block, until the cycle in which that opened.
    barrier: Option<(u32, u64)>,
    /// For each scoreboard what the last to signal it is.
    raised: [Stall; SCOREBOARDS as usize],
}

impl Default for Past {
    fn default() -> Self {
        Past {
            since: 0,
            stalled: 0,
            barrier: None,
            raised: [Stall::FIXED; SCOREBOARDS as usize],
        }
    }
}

/// The clock of a CTA.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// The cycle in which the next instruction may issue.
    pub cycle: u64,
    /// Hazards, once for each pair of instructions and register.
    pub hazards: Vec<RawHazard>,
    /// All hazards.
    pub count: u64,
    /// What is in `hazards`.
    known: HashSet<(HazardKind, Resource, u32, u32)>,
    /// What one instruction comes too early for; empty between instructions.
    found: Vec<Early>,
    warps: Vec<WarpTiming>,
    /// What warps have had on its way.
    states: States,
    /// For each warp the first cycle in which its next instruction can issue; [`u64::MAX`] for one that cannot.
    next: Vec<u64>,
    last: usize,
}

impl Timing {
    /// The clock of a CTA with so many warps, at cycle 0.
    pub fn new(warps: usize) -> Timing {
        Timing {
            warps: vec![WarpTiming::default(); warps],
            next: vec![u64::MAX; warps],
            ..Timing::default()
        }
    }

    /// At cycle 0 again, with nothing found.
    pub fn reset(&mut self) {
        (self.cycle, self.count, self.last) = (0, 0, 0);
        self.hazards.clear();
        self.known.clear();
        for warp in &mut self.warps {
            (warp.ready, warp.zero, warp.past) = (0, Default::default(), Past::default());
            warp.pending.reset();
        }
    }

    /// The next instruction of the warp at `index`; none where it has none to issue.
    #[inline]
    pub fn plan(&mut self, index: usize, next: Option<&Op>) {
        let timing = &self.warps[index];
        self.next[index] = next.map_or(u64::MAX, |op| timing.earliest(op.control.wait()));
    }

    /// The warp that issues next, its time come; none when no warp can.
    #[inline]
    pub fn select(&mut self) -> Option<usize> {
        let (mut best, mut index) = (u64::MAX, 0);
        // Who comes behind the last has its turn first, of those that have to wait who waits least.
        let (first, behind) = self.next.split_at(self.last + 1);
        for (part, start) in [(behind, self.last + 1), (first, 0)] {
            for (offset, &next) in part.iter().enumerate() {
                if next <= self.cycle {
                    self.last = start + offset;
                    return Some(self.last);
                }
                if next < best {
                    (best, index) = (next, start + offset);
                }
            }
        }
        if best == u64::MAX {
            return None;
        }
        (self.cycle, self.last) = (best, index);
        Some(index)
    }

    /// Before the warp at `index` issues an instruction in the lanes of `mask`, those of its group being `active`:
    /// looks for hazards.
    #[inline]
    pub fn before(&mut self, index: usize, warp: &Warp, op: &Op, active: u32, mask: u32) {
        let pc = warp.group().pc;
        let lanes = Lanes {
            live: warp.live,
            active,
            mask,
        };
        let timing = &mut self.warps[index];
        timing
            .pending
            .issue(&mut self.states, op, pc, lanes, &mut self.found);
        if self.found.is_empty() {
            return;
        }
        self.count += self.found.len() as u64;
        for early in self.found.drain(..) {
            if (self.known).insert((early.kind, early.register, pc, early.earlier)) {
                self.hazards.push(RawHazard {
                    kind: early.kind,
                    register: early.register,
                    pc,
                    earlier: early.earlier,
                    cycle: self.cycle,
                    thread: warp.index * 32 + early.lanes.trailing_zeros(),
                });
            }
        }
    }

    /// After the instruction at `pc` issued in the lanes of `mask`: its scoreboards are raised, and the warp's next
    /// instruction waits for its stall.
    #[inline]
    pub fn after(
        &mut self,
        index: usize,
        warp: &Warp,
        op: &Op,
        (pc, mask): (u32, u32),
        mut recorder: Option<&mut Recorder>,
    ) {
        let now = self.cycle;
        let timing = &mut self.warps[index];
        if let Some(recorder) = recorder.as_deref_mut() {
            timing.explain(index as u32, pc, op.control.wait(), now, recorder);
            recorder.issued(index as u32, now, pc, mask);
        }
        let footprint = &op.footprint;
        let (write, read) = (
            op.control.write.map(|s| s.number()),
            op.control.read.map(|s| s.number()),
        );
        if mask != 0
            && (write.is_some() || read.is_some())
            && let Some(optype) = op.optype
        {
            let results = footprint.writes.iter().map(|w| w.1).max();
            let result = results.unwrap_or(optype.info().latency.result);
            for (scoreboard, cycles) in [(write, result), (read, footprint.sources)] {
                let Some(scoreboard) = scoreboard else {
                    continue;
                };
                let zero = &mut timing.zero[usize::from(scoreboard)];
                let (before, end) = (*zero, now + u64::from(cycles));
                if end > before {
                    *zero = end;
                    if let Some(recorder) = recorder.as_deref_mut() {
                        timing.past.raised[usize::from(scoreboard)] = Stall::scoreboard(optype);
                        recorder.raised(index as u32, scoreboard, before.max(now), end, pc);
                    }
                }
            }
        }
        timing.ready = now + u64::from(op.control.stall().max(1));
        if recorder.is_some() {
            let waits = warp.state() == WarpState::AtCtaBarrier;
            let past = &mut timing.past;
            (past.since, past.stalled) = (now + 1, timing.ready);
            past.barrier = waits.then_some((pc, 0));
        }
        if let (Some(Optype::MEMBAR), Some(optype)) = (op.optype, op.optype) {
            // A fence has no result: its latency is the time it holds the warp.
            timing.ready = timing
                .ready
                .max(now + u64::from(optype.info().latency.result));
        }
        self.cycle += 1;
    }

    /// The barrier of the block has opened: its warps can go on.
    pub fn open_barrier(&mut self) {
        for timing in &mut self.warps {
            if let Some((_, opened)) = &mut timing.past.barrier {
                *opened = self.cycle;
            }
        }
    }
}

impl WarpTiming {
    /// Tells why the instruction at `pc`, which waits for these scoreboards, did not issue between the one before and
    /// now.
    fn explain(&self, warp: u32, pc: u32, wait: u8, now: u64, recorder: &mut Recorder) {
        let past = &self.past;
        let mut from = past.since;
        let mut until = |to: u64, pc: u32, stall: Stall| {
            let to = to.clamp(from, now);
            recorder.waited(warp, from, to, pc, stall);
            from = to;
        };
        until(past.stalled, pc, Stall::FIXED);
        until(self.ready, pc, Stall::FENCE);
        if let Some((barrier, opened)) = past.barrier {
            until(opened, barrier, Stall::BARRIER);
        }
        // The scoreboard that is zero last explains the whole time.
        let waits = (0..SCOREBOARDS).filter(|s| wait >> s & 1 != 0);
        if let Some(last) = waits.max_by_key(|s| self.zero[usize::from(*s)]) {
            let last = usize::from(last);
            until(self.zero[last], pc, past.raised[last]);
        }
        until(now, pc, Stall::NOT_SELECTED);
    }

    /// The first cycle in which an instruction that waits for these scoreboards can issue.
    #[inline]
    fn earliest(&self, wait: u8) -> u64 {
        if wait == 0 {
            return self.ready;
        }
        let waits = (0..SCOREBOARDS)
            .filter(|s| wait >> s & 1 != 0)
            .map(|s| self.zero[usize::from(s)]);
        waits.fold(self.ready, u64::max)
    }
}
