//! Races: two accesses of different threads to the same byte, one of which writes and one of which is not atomic, with
//! nothing that orders them.
//!
//! Here are the cells whose accesses do not fit the records of [`super::shadow`]: accesses to parts of a word, strong
//! ones, and reads of many threads where what they know of each other is followed one by one. Such a cell is a list of
//! the accesses that a later one may race with: the last plain write, and the reads and strong accesses that none
//! stands for. An access takes the place of an earlier one where whoever races with the earlier one and comes behind
//! this one races with this one too: a plain write of all before it, a strong one of the strong ones that are ordered
//! before it, a read of earlier reads of its own thread and of those before the CTA's last barrier.

use super::order::{Order, Threads};
use crate::launch::AccessKind;
use crate::sim::warp::registers::{LANES, lanes};
use smallvec::SmallVec;

/// Accesses to a word that are kept, at most (assigned): of the readers of a block every warp's.
const KEPT: usize = 64;
/// Strong ones of those, at most (assigned).
const KEPT_STRONG: usize = 8;

/// Accesses of lanes of a warp to bytes of a word.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    /// Number in the launch.
    pub warp: u32,
    /// The lanes.
    pub lanes: u32,
    /// When.
    pub stamp: u32,
    /// Index of the instruction.
    pub pc: u32,
    /// The bytes, as a mask.
    pub bytes: u8,
    /// What the instruction does.
    pub kind: AccessKind,
    /// Whether it writes.
    pub wrote: bool,
    /// Whether it is atomic or STRONG.
    pub strong: bool,
}

impl Touch {
    /// Whether it and a later access are a race where nothing orders them: one of them writes, not both are atomic.
    /// `changed` are the bytes of both in which the later one stores something else than was there.
    fn conflicts(&self, now: &Now, changed: u8) -> bool {
        // Threads that store what is there already with the instruction that stored it.
        let repeated = self.pc == now.pc
            && self.kind == AccessKind::Store
            && now.kind == AccessKind::Store
            && changed == 0;
        (self.wrote || now.wrote) && !(self.strong && now.strong) && !repeated
    }
}

/// What a warp does now.
#[derive(Clone, Copy)]
pub(super) struct Now<'a> {
    /// What is ordered before what.
    pub order: &'a Order,
    /// The CTA.
    pub threads: &'a Threads,
    /// The warp in its CTA.
    pub warp: u32,
    /// Index of the instruction.
    pub pc: u32,
    /// What the instruction does.
    pub kind: AccessKind,
    /// Whether it writes.
    pub wrote: bool,
    /// Whether it is atomic or STRONG.
    pub strong: bool,
}

/// How an earlier access stands to what a warp does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// Ordered before all its lanes, by the CTA's barrier.
    Before,
    /// Of the same warp.
    Own,
    /// Of another warp of the CTA.
    Beside,
    /// Of another CTA.
    Elsewhere,
}

/// What there is in a launch that orders accesses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Means {
    /// CTAs run one after another, and nothing orders their accesses.
    pub apart: bool,
    /// Nothing but its barriers orders the threads of a CTA.
    pub barriers: bool,
}

impl Now<'_> {
    /// The warp's number in the launch.
    pub fn number(&self) -> u32 {
        self.order.warp_number(self.threads, self.warp)
    }

    /// How an access of a warp, by its number in the launch, stands to this.
    pub fn relation(&self, warp: u32, stamp: u32) -> Relation {
        if self.order.is_before_barrier(self.threads, warp, stamp) {
            Relation::Before
        } else if warp == self.number() {
            Relation::Own
        } else if self.order.is_of(self.threads, warp) {
            Relation::Beside
        } else {
            Relation::Elsewhere
        }
    }

    /// Whether an earlier access of a lane of a warp is ordered before this one of a lane.
    pub fn is_behind(&self, lane: usize, warp: u32, other: usize, stamp: u32) -> bool {
        let thread = self.warp * LANES as u32 + lane as u32;
        self.order
            .is_known(self.threads, thread, warp, other, stamp)
    }
}

/// The earlier of two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Earlier {
    /// Number of its warp in the launch.
    pub warp: u32,
    /// Its lane.
    pub lane: u32,
    /// Index of its instruction.
    pub pc: u32,
    /// What its instruction does.
    pub kind: AccessKind,
    /// The first byte of the word that both use.
    pub byte: u32,
}

/// The accesses to a word that a later one may race with.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    touches: SmallVec<[Touch; 2]>,
    /// Bytes of accesses that were forgotten.
    lost: u8,
}

/// Bytes of a word by what they were used for, as masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uses {
    /// Read by plain accesses.
    pub read: u8,
    /// Written by plain accesses.
    pub written: u8,
    /// Used by strong ones.
    pub strong: u8,
    /// Written by strong ones.
    pub changed: u8,
}

impl Uses {
    /// Whether accesses of threads that nothing orders would race.
    pub fn race(self, other: Uses) -> bool {
        let conflict = |a: Uses, b: Uses| {
            a.written & (b.written | b.read | b.strong) != 0 || a.read & b.changed != 0
        };
        conflict(self, other) || conflict(other, self)
    }

    /// Both.
    pub fn or(self, other: Uses) -> Uses {
        Uses {
            read: self.read | other.read,
            written: self.written | other.written,
            strong: self.strong | other.strong,
            changed: self.changed | other.changed,
        }
    }
}

impl Cell {
    /// With one more access, the latest.
    pub fn push(&mut self, touch: Touch) {
        let alike = |t: &&mut Touch| {
            (t.warp, t.stamp, t.pc, t.bytes) == (touch.warp, touch.stamp, touch.pc, touch.bytes)
                && (t.kind, t.wrote, t.strong) == (touch.kind, touch.wrote, touch.strong)
        };
        match self.touches.iter_mut().find(alike) {
            Some(same) => same.lanes |= touch.lanes,
            None => self.touches.push(touch),
        }
    }

    /// What its bytes were used for. What a plain write has taken the place of is covered by that write.
    pub fn uses(&self) -> Uses {
        let mut uses = Uses {
            read: self.lost,
            written: self.lost,
            ..Uses::default()
        };
        for touch in &self.touches {
            match (touch.strong, touch.wrote) {
                (false, false) => uses.read |= touch.bytes,
                (false, true) => uses.written |= touch.bytes,
                (true, wrote) => {
                    uses.strong |= touch.bytes;
                    uses.changed |= if wrote { touch.bytes } else { 0 };
                }
            }
        }
        uses
    }

    /// Notes an access of a lane to the bytes of the mask `bytes`, of which those in `same` keep their value; the
    /// earlier access that it races with, if any.
    pub fn touch(
        &mut self,
        now: &Now,
        lane: usize,
        (bytes, same): (u8, u8),
        means: Means,
    ) -> Option<Earlier> {
        let (warp, own, stamp) = (now.number(), 1u32 << lane, now.order.stamp());
        let mut found = None;
        let mut merged = false;
        // Threads whose accesses stand for this one too: of another CTA, or of this one.
        let (mut elsewhere, mut here) = (false, 0);
        self.touches.retain(|touch| {
            let common = touch.bytes & bytes;
            if common == 0 {
                return true;
            }
            let relation = now.relation(touch.warp, touch.stamp);
            let others = match relation {
                Relation::Own => touch.lanes & !own,
                _ => touch.lanes,
            };
            let is_behind = |other: usize| now.is_behind(lane, touch.warp, other, touch.stamp);
            if found.is_none()
                && relation != Relation::Before
                && touch.conflicts(now, common & !same)
            {
                let racing = lanes(others).find(|other| !is_behind(*other));
                found = racing.map(|other| Earlier {
                    warp: touch.warp,
                    lane: other as u32,
                    pc: touch.pc,
                    kind: touch.kind,
                    byte: common.trailing_zeros(),
                });
            }
            // A strong access says nothing of how a plain one stands to the strong ones to come.
            if now.strong && !touch.strong {
                return true;
            }
            if now.wrote && !now.strong {
                touch.bytes &= !bytes;
                return touch.bytes != 0;
            }
            let covered = touch.bytes & !bytes == 0;
            if now.wrote {
                // Of strong ones those stay that are not ordered before this one: who comes behind this one need not
                // come behind them.
                if covered {
                    touch.lanes = match relation {
                        Relation::Before => 0,
                        _ => lanes(others)
                            .filter(|o| !is_behind(*o))
                            .fold(0, |m, o| m | 1 << o),
                    };
                }
            } else if touch.wrote || !covered {
                return true;
            } else {
                let alike = (touch.warp, touch.pc, touch.stamp, touch.bytes, touch.strong)
                    == (warp, now.pc, stamp, bytes, now.strong);
                if relation == Relation::Before {
                    touch.lanes = 0;
                } else if alike && touch.kind == now.kind {
                    touch.lanes |= own;
                    merged = true;
                } else if relation == Relation::Own {
                    touch.lanes &= !own;
                }
            }
            if touch.lanes != 0
                && bytes & !touch.bytes == 0
                && touch.strong == now.strong
                && touch.wrote == now.wrote
            {
                elsewhere |= relation == Relation::Elsewhere;
                here += touch.lanes.count_ones();
            }
            touch.lanes != 0
        });
        // Who writes plainly later races with one of those, whoever it is.
        let covered = (now.strong || !now.wrote)
            && (means.apart && elsewhere || means.apart && means.barriers && here >= 2);
        if !merged && !covered {
            self.make_room(now.strong);
            self.push(Touch {
                warp,
                lanes: own,
                stamp,
                pc: now.pc,
                bytes,
                kind: now.kind,
                wrote: now.wrote,
                strong: now.strong,
            });
        }
        found
    }

    /// Forgets an access if as many are kept as may be: a strong one for one that is strong, else a read, else the
    /// first.
    fn make_room(&mut self, strong: bool) {
        let kept_strong = self.touches.iter().filter(|touch| touch.strong).count();
        let first = if strong && kept_strong >= KEPT_STRONG {
            self.touches.iter().position(|touch| touch.strong)
        } else if self.touches.len() >= KEPT {
            let read = self.touches.iter().position(|touch| !touch.wrote);
            Some(read.unwrap_or(0))
        } else {
            None
        };
        if let Some(first) = first {
            self.lost |= self.touches.remove(first).bytes;
        }
    }
}
