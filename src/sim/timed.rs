//! Timed mode: when instructions issue, and whether their control bits keep them apart.
//!
//! One scheduler a CTA issues one instruction a cycle, warps in turn, each in order. A warp issues when its stall is over and the
//! scoreboards it waits for are zero. Results of fixed latency arrive after the cycles of the latency table; those of variable latency
//! have arrived only for who has waited for their scoreboard, however long ago they were issued, because no program may count on such a
//! time. The same holds for slow readers and their read scoreboard; who has waited for the result knows that the sources were read.
//!
//! What is found: a register read before its result has arrived (RAW), written while an earlier write would arrive at the same time or
//! later (WAW), written while a slow reader may still read it (WAR). Registers are tracked for each lane, so that the groups of a
//! divergent warp do not disturb each other; uniform registers belong to the warp.
//!
//! The values that instructions compute never depend on this.

use super::decoded::Op;
use super::footprint::Resource;
use super::warp::Warp;
use crate::isa::Optype;
use crate::isa::control::SCOREBOARDS;
use crate::isa::register::RegisterClass;

/// What a hazard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HazardKind {
    /// Read before the result has arrived.
    ReadAfterWrite,
    /// Overwritten before an earlier result has arrived.
    WriteAfterWrite,
    /// Overwritten while it may still be read.
    WriteAfterRead,
}

impl std::fmt::Display for HazardKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HazardKind::ReadAfterWrite => "is read before the result has arrived that",
            HazardKind::WriteAfterWrite => "is overwritten before the result has arrived that",
            HazardKind::WriteAfterRead => {
                "is overwritten while it may still be read by the instruction that"
            }
        })
    }
}

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

/// A result on its way.
#[derive(Clone, Copy, Debug)]
struct Write {
    register: Resource,
    mask: u32,
    arrives: u64,
    /// The time is not fixed.
    variable: bool,
    scoreboard: Option<u8>,
    pc: u32,
}

/// A source that may not have been read yet.
#[derive(Clone, Copy, Debug)]
struct SlowRead {
    register: Resource,
    mask: u32,
    until: u64,
    variable: bool,
    /// Waiting for any of these tells that it has been read.
    scoreboards: [Option<u8>; 2],
    pc: u32,
}

/// The clock of a warp.
#[derive(Clone, Debug, Default)]
struct WarpTiming {
    ready: u64,
    /// When each scoreboard is zero again.
    zero: [u64; SCOREBOARDS as usize],
    writes: Vec<Write>,
    reads: Vec<SlowRead>,
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
        let (now, pc) = (self.cycle, warp.group().pc);
        let timing = &mut self.warps[index];
        timing.settle(now, op.control.wait());
        let mut found: Vec<RawHazard> = Vec::new();
        let mut report = |kind, register, earlier, lanes: u32| {
            let thread = warp.index * 32 + lanes.trailing_zeros();
            found.push(RawHazard {
                kind,
                register,
                pc,
                earlier,
                cycle: now,
                thread,
            });
        };
        let guard = op.footprint.guard.iter().map(|r| (*r, active));
        for (register, lanes) in guard.chain(op.footprint.reads.iter().map(|r| (*r, mask))) {
            for write in timing
                .writes
                .iter()
                .filter(|w| w.register.meets(register) && w.mask & reach(register, lanes) != 0)
            {
                report(
                    HazardKind::ReadAfterWrite,
                    register,
                    write.pc,
                    write.mask & lanes,
                );
            }
        }
        if mask != 0 {
            for (register, cycles) in &op.footprint.writes {
                let lanes = reach(*register, mask);
                let arrives = now + u64::from(*cycles);
                for write in timing
                    .writes
                    .iter()
                    .filter(|w| w.register.meets(*register) && w.mask & lanes != 0)
                {
                    if write.variable || write.arrives >= arrives {
                        report(
                            HazardKind::WriteAfterWrite,
                            *register,
                            write.pc,
                            write.mask & lanes,
                        );
                    }
                }
                for read in timing
                    .reads
                    .iter()
                    .filter(|r| r.register.meets(*register) && r.mask & lanes != 0)
                {
                    report(
                        HazardKind::WriteAfterRead,
                        *register,
                        read.pc,
                        read.mask & lanes,
                    );
                }
            }
        }
        // Reported once: the register counts as settled.
        for hazard in &found {
            timing
                .writes
                .retain(|w| (w.register, w.pc) != (hazard.register, hazard.earlier));
            timing
                .reads
                .retain(|r| (r.register, r.pc) != (hazard.register, hazard.earlier));
        }
        self.count += found.len() as u64;
        for hazard in found {
            let same = |h: &RawHazard| {
                (h.kind, h.register, h.pc, h.earlier)
                    == (hazard.kind, hazard.register, hazard.pc, hazard.earlier)
            };
            if !self.hazards.iter().any(same) {
                self.hazards.push(hazard);
            }
        }
    }

    /// After the instruction issued: its results are on their way, and the warp's next instruction waits for its stall.
    pub fn after(&mut self, warp: usize, op: &Op, pc: u32, mask: u32) {
        let now = self.cycle;
        let timing = &mut self.warps[warp];
        let footprint = &op.footprint;
        let (write, read) = (
            op.control.write.map(|s| s.number()),
            op.control.read.map(|s| s.number()),
        );
        if mask != 0 {
            for (register, cycles) in &footprint.writes {
                let lanes = reach(*register, mask);
                // The later of two results counts.
                for old in timing.writes.iter_mut().filter(|w| w.register == *register) {
                    old.mask &= !lanes;
                }
                timing.writes.push(Write {
                    register: *register,
                    mask: lanes,
                    arrives: now + u64::from(*cycles),
                    variable: footprint.variable,
                    scoreboard: write,
                    pc,
                });
            }
            timing.writes.retain(|w| w.mask != 0);
            if footprint.sources != 0 {
                timing
                    .reads
                    .extend(footprint.reads.iter().map(|register| SlowRead {
                        register: *register,
                        mask: reach(*register, mask),
                        until: now + u64::from(footprint.sources),
                        variable: footprint.variable,
                        scoreboards: [read, write],
                        pc,
                    }));
            }
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

    /// Forgets what has arrived or been read at cycle `now`, when these scoreboards were waited for.
    fn settle(&mut self, now: u64, wait: u8) {
        let waited = |scoreboard: Option<u8>| scoreboard.is_some_and(|s| wait >> s & 1 != 0);
        self.writes.retain(|w| {
            if w.variable {
                !waited(w.scoreboard)
            } else {
                w.arrives > now
            }
        });
        self.reads.retain(|r| {
            if r.variable {
                !r.scoreboards.into_iter().any(waited)
            } else {
                r.until > now
            }
        });
    }
}

/// The lanes that share a register with those of `mask`.
fn reach(register: Resource, mask: u32) -> u32 {
    if register.class() == Some(RegisterClass::Uniform) {
        u32::MAX
    } else {
        mask
    }
}
