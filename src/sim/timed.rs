//! Timed mode: when instructions issue, and whether their control bits keep them apart.
//!
//! One scheduler a CTA issues one instruction a cycle, warps in turn, each in order. A warp issues when its stall is over and the
//! scoreboards it waits for are zero. This gives the cycles.
//!
//! Whether the control bits suffice is judged apart from that, by [`super::pending`], on clocks that only the stalls of a lane's own
//! instructions advance: which warps run beside it, and how long they take, changes nothing. Found is a register read before its result
//! has arrived (RAW), written while an earlier write would arrive at the same time or later (WAW), written while a slow reader may still
//! read it (WAR).
//!
//! The values that instructions compute never depend on this.

use super::decoded::Op;
use super::pending::{Early, Lanes, Pending};
use super::warp::Warp;
use crate::isa::Optype;
use crate::isa::control::SCOREBOARDS;
use crate::launch::{HazardKind, Resource};
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
    last: usize,
}

impl Timing {
    /// The clock of a CTA with so many warps, at cycle 0.
    pub fn new(warps: usize) -> Timing {
        Timing {
            warps: vec![WarpTiming::default(); warps],
            ..Timing::default()
        }
    }

    /// The warp that issues next, its time come; `next` gives the next instruction of a warp that can issue. None when no warp can.
    pub fn select<'p>(&mut self, next: impl Fn(usize) -> Option<&'p Op>) -> Option<usize> {
        let count = self.warps.len();
        let mut best: Option<(u64, usize)> = None;
        for step in 1..=count {
            let index = (self.last + step) % count;
            let Some(op) = next(index) else { continue };
            let earliest = self.warps[index].earliest(op.control.wait());
            if earliest <= self.cycle {
                best = Some((self.cycle, index));
                break;
            }
            if best.is_none_or(|(time, _)| earliest < time) {
                best = Some((earliest, index));
            }
        }
        let (time, index) = best?;
        (self.cycle, self.last) = (time, index);
        Some(index)
    }

    /// Before the warp at `index` issues an instruction in the lanes of `mask`, those of its group being `active`: looks for hazards.
    pub fn before(&mut self, index: usize, warp: &Warp, op: &Op, active: u32, mask: u32) {
        let pc = warp.group().pc;
        let lanes = Lanes {
            live: warp.live,
            active,
            mask,
        };
        let timing = &mut self.warps[index];
        timing.pending.issue(op, pc, lanes, &mut self.found);
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

    /// After the instruction issued: its scoreboards are raised, and the warp's next instruction waits for its stall.
    pub fn after(&mut self, warp: usize, op: &Op, mask: u32) {
        let now = self.cycle;
        let timing = &mut self.warps[warp];
        let footprint = &op.footprint;
        let (write, read) = (
            op.control.write.map(|s| s.number()),
            op.control.read.map(|s| s.number()),
        );
        if mask != 0 {
            let latency = op.optype.map(|o| o.info().latency);
            let result = footprint
                .writes
                .iter()
                .map(|w| w.1)
                .max()
                .or(latency.map(|l| l.result))
                .unwrap_or(0);
            for (scoreboard, cycles) in [(write, result), (read, footprint.sources)] {
                if let Some(scoreboard) = scoreboard {
                    let zero = &mut timing.zero[usize::from(scoreboard)];
                    *zero = (*zero).max(now + u64::from(cycles));
                }
            }
        }
        timing.ready = now + u64::from(op.control.stall().max(1));
        if let (Some(Optype::MEMBAR), Some(optype)) = (op.optype, op.optype) {
            // A fence has no result: its latency is the time it holds the warp.
            timing.ready = timing
                .ready
                .max(now + u64::from(optype.info().latency.result));
        }
        self.cycle += 1;
    }
}

impl WarpTiming {
    /// The first cycle in which an instruction that waits for these scoreboards can issue.
    fn earliest(&self, wait: u8) -> u64 {
        let waits = (0..SCOREBOARDS)
            .filter(|s| wait >> s & 1 != 0)
            .map(|s| self.zero[usize::from(s)]);
        waits.fold(self.ready, u64::max)
    }
}
