//! What is on its way in a warp, and which instruction comes too early for it.
//!
//! In: the instructions of a warp in the order in which they issue, with their lanes. Out: the pairs of instructions
//! that the control bits do not keep apart on the path that each *lane* takes.
//!
//! A lane's clock advances by the stalls of the instructions that its group issues (at least one cycle each, false
//! guards included) and by nothing else. The cycles in which other warps or other groups issue, in which a fence or a
//! barrier holds the warp, or which a scoreboard takes to become zero, are none that a program may count on: the same
//! code must hold when they are not there. A wait for a scoreboard completes, for the lanes that wait, what signals
//! that scoreboard, and tells nothing about anything else. This is what [`crate::hazards`] assumes of every path; here
//! it is judged on the paths that run, register by register and lane by lane.
//!
//! Lanes that run together share a clock (a [`Cohort`]); where a group splits, so does the cohort, and where lanes meet
//! with different clocks, what is on its way is brought to one clock. Tables by register make an instruction cost what
//! it touches: what has arrived is found out when its register is touched next, and a wait only notes its number.
//!
//! Uniform registers are followed lane by lane like all others. No control bits keep two groups apart that use a
//! uniform register at the same time; that is for [`crate::sim::check`].

use crate::isa::Scoreboard;
use crate::isa::control::SCOREBOARDS;
use crate::isa::register::RegisterClass;
use crate::launch::HazardKind;
use crate::launch::Resource;
use crate::sim::decode::program::Op;
use crate::sim::timing::foreseen::{Due, Flight, NOTHING, States};
use smallvec::SmallVec;

/// A pair of instructions that are not kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Early {
    /// What is wrong.
    pub kind: HazardKind,
    /// The register.
    pub register: Resource,
    /// Index of the earlier instruction.
    pub earlier: u32,
    /// Lanes in which it happened.
    pub lanes: u32,
}

/// Lanes that issue an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Lanes {
    /// Those that have not exited.
    pub live: u32,
    /// Those of the group.
    pub active: u32,
    /// Those of the group whose guard holds.
    pub mask: u32,
}

/// A result on its way, or a source that may not have been read yet.
#[derive(Clone, Copy, Debug)]
struct Entry {
    lanes: u32,
    /// Index of the instruction.
    pc: u32,
    /// Its number among the instructions of the warp.
    number: u64,
    due: Due,
}

/// Lanes with the same clock.
#[derive(Clone, Copy, Debug)]
struct Cohort {
    lanes: u32,
    /// Cycles of the stalls so far.
    clock: u64,
    /// For each scoreboard: instructions of the warp up to this number have been waited for.
    waited: [u64; SCOREBOARDS as usize],
}

impl Cohort {
    /// All lanes at time 0.
    const ALL: Cohort = Cohort {
        lanes: u32::MAX,
        clock: 0,
        waited: [0; SCOREBOARDS as usize],
    };

    /// Whether something of this cohort is complete.
    fn is_complete(&self, entry: &Entry) -> bool {
        match entry.due {
            Due::At(time) => time <= self.clock,
            Due::Signalled(boards) => boards_of(boards).any(|b| self.waited[b] >= entry.number),
        }
    }
}

/// Few of these exist at a time: those of different lanes, or readers with different scoreboards.
type Entries = SmallVec<[Entry; 2]>;

/// A register and what is on its way to and from it.
#[derive(Clone, Debug)]
struct Slot {
    register: Resource,
    /// Of each lane the latest result.
    writes: Entries,
    /// Of each lane the latest reader for each set of scoreboards: who waits for it waits for the ones before.
    reads: Entries,
    /// From this time of its clock on no lane has a result on its way; [`u64::MAX`] where that is signalled.
    written: u64,
    /// From this time of its clock on no lane has a reader.
    read: u64,
}

impl Slot {
    /// Finds the times anew.
    fn settle(&mut self) {
        self.written = latest(&self.writes);
        self.read = latest(&self.reads);
    }
}

/// The time at which all of these are complete.
fn latest(entries: &Entries) -> u64 {
    entries
        .iter()
        .fold(0, |latest, entry| latest.max(entry.due.time()))
}

/// No slot.
const NONE: u16 = u16::MAX;

/// What is on its way in a warp.
#[derive(Clone, Debug)]
pub struct Pending {
    /// Instructions so far.
    number: u64,
    /// Disjoint; every live lane is in one.
    cohorts: SmallVec<[Cohort; 1]>,
    slots: Vec<Slot>,
    /// By register the index of its slot.
    index: Vec<u16>,
    /// What is on its way where that depends on no lane: nothing is in cohorts and slots then.
    folded: Option<Folded>,
    /// Instructions to wait before it is tried again to fold it.
    patience: u32,
}

/// All of its lanes are in one cohort, and what is on its way is on its way in all of them.
#[derive(Clone, Copy, Debug)]
struct Folded {
    state: u32,
    lanes: u32,
    clock: u64,
}

impl Folded {
    /// All lanes at time 0 with nothing on its way.
    const NOTHING: Folded = Folded {
        state: NOTHING,
        lanes: u32::MAX,
        clock: 0,
    };
}

/// Instructions after which it is tried again to fold what could not be folded (assigned): about as long as results of
/// fixed latency take.
const PATIENCE: u32 = 8;

impl Default for Pending {
    /// Nothing, at time 0.
    fn default() -> Pending {
        Pending {
            number: 0,
            cohorts: SmallVec::new(),
            slots: Vec::new(),
            index: vec![NONE; Resource::COUNT],
            folded: Some(Folded::NOTHING),
            patience: 0,
        }
    }
}

impl Pending {
    /// Forgets everything; the clocks are at 0 again.
    pub fn reset(&mut self) {
        if self.folded.is_none() {
            self.clear();
        }
        (self.folded, self.patience) = (Some(Folded::NOTHING), 0);
    }

    /// Takes everything out of cohorts and slots.
    fn clear(&mut self) {
        self.number = 0;
        self.cohorts.clear();
        for slot in &mut self.slots {
            slot.writes.clear();
            slot.reads.clear();
            slot.settle();
        }
    }

    /// An instruction issues: adds the pairs for which it comes too early to `found`, which has none. What was found
    /// counts as complete.
    #[inline]
    pub fn issue(
        &mut self,
        states: &mut States,
        op: &Op,
        pc: u32,
        lanes: Lanes,
        found: &mut Vec<Early>,
    ) {
        let runs = lanes.mask != 0;
        let alike = lanes.active == lanes.live && (lanes.mask == lanes.active || !runs);
        if let Some(folded) = &mut self.folded
            && alike
            && lanes.live & !folded.lanes == 0
            && let Some(state) = states.successor(folded.state, pc, runs)
        {
            folded.state = state;
            folded.lanes = lanes.live;
            folded.clock += u64::from(op.control.stall().max(1));
            return;
        }
        let before = self.folded.take();
        if let Some(folded) = before {
            self.unfold(states, folded);
        }
        self.issue_lanes(op, pc, lanes, found);
        if !alike {
            self.patience = PATIENCE;
            return;
        }
        if before.is_none() && self.patience != 0 {
            self.patience -= 1;
            return;
        }
        self.fold(states, lanes.live);
        match (before, self.folded) {
            (_, None) => self.patience = PATIENCE,
            (Some(before), Some(after)) if found.is_empty() => {
                states.remember(before.state, pc, runs, after.state);
            }
            _ => {}
        }
    }

    /// Puts what is on its way into cohorts and slots, where there is nothing.
    fn unfold(&mut self, states: &States, folded: Folded) {
        let Folded {
            state,
            lanes,
            clock,
        } = folded;
        self.cohorts.push(Cohort {
            lanes,
            clock,
            ..Cohort::ALL
        });
        // Nothing of it has been waited for.
        self.number = 1;
        for flight in states.flights(state) {
            let entry = Entry {
                lanes,
                pc: flight.pc,
                number: self.number,
                due: match flight.due {
                    Due::At(time) => Due::At(clock + time),
                    signalled => signalled,
                },
            };
            let slot = self.slot(flight.register);
            if flight.source {
                slot.reads.push(entry);
            } else {
                slot.writes.push(entry);
            }
            slot.settle();
        }
    }

    /// Takes what is on its way out of cohorts and slots if it depends on no live lane.
    fn fold(&mut self, states: &mut States, live: u32) {
        let mut cohorts = self.cohorts.iter().filter(|c| c.lanes & live != 0);
        let (Some(cohort), None) = (cohorts.next(), cohorts.next()) else {
            return;
        };
        let mut flights: SmallVec<[Flight; 16]> = SmallVec::new();
        for slot in &self.slots {
            for (source, list) in [(false, &slot.writes), (true, &slot.reads)] {
                for entry in list {
                    let lanes = entry.lanes & live;
                    if lanes == 0 || cohort.is_complete(entry) {
                        continue;
                    }
                    if lanes != live {
                        return;
                    }
                    flights.push(Flight {
                        register: slot.register,
                        source,
                        pc: entry.pc,
                        due: match entry.due {
                            Due::At(time) => Due::At(time - cohort.clock),
                            signalled => signalled,
                        },
                    });
                }
            }
        }
        flights.sort_by_key(|flight| flight.register.index());
        let (lanes, clock) = (live, cohort.clock);
        self.folded = states.number(&flights).map(|state| Folded {
            state,
            lanes,
            clock,
        });
        if self.folded.is_some() {
            self.clear();
        }
    }

    /// The same for instructions that issue in any lanes.
    fn issue_lanes(&mut self, op: &Op, pc: u32, lanes: Lanes, found: &mut Vec<Early>) {
        let own = self.gather(lanes.active, lanes.live);
        let wait = op.control.wait();
        if wait != 0 {
            for board in boards_of(wait) {
                self.cohorts[own].waited[board] = self.number;
            }
        }
        self.number += 1;
        let footprint = &op.footprint;
        let guard = footprint.guard.iter().map(|r| (*r, lanes.active));
        for (register, lanes) in guard.chain(footprint.reads.iter().map(|r| (*r, lanes.mask))) {
            self.read(register, own, lanes, found);
        }
        if lanes.mask != 0 {
            for (register, cycles) in &footprint.writes {
                // A result of variable latency may arrive in the next cycle.
                let arrives = if footprint.variable { 1 } else { *cycles };
                let arrives = self.cohorts[own].clock + u64::from(arrives);
                self.overwrite(*register, own, lanes.mask, arrives, found);
            }
            self.record(op, pc, self.cohorts[own].clock, lanes.mask);
        }
        self.cohorts[own].clock += u64::from(op.control.stall().max(1));
    }

    /// Finds the results that have not arrived when lanes of a cohort read `register`.
    fn read(&mut self, register: Resource, cohort: usize, lanes: u32, found: &mut Vec<Early>) {
        let cohort = &self.cohorts[cohort];
        for index in self.meeting(register) {
            let slot = &mut self.slots[index];
            if slot.written <= cohort.clock {
                continue;
            }
            look(&mut slot.writes, cohort, lanes, |entry, lanes| {
                found.push(Early {
                    kind: HazardKind::ReadAfterWrite,
                    register,
                    earlier: entry.pc,
                    lanes,
                });
                true
            });
            slot.settle();
        }
    }

    /// Finds the results that would not arrive before one at the time `arrives`, and who may still read `register`.
    fn overwrite(
        &mut self,
        register: Resource,
        cohort: usize,
        lanes: u32,
        arrives: u64,
        found: &mut Vec<Early>,
    ) {
        let cohort = &self.cohorts[cohort];
        for index in self.meeting(register) {
            let slot = &mut self.slots[index];
            if slot.written < arrives && slot.read <= cohort.clock {
                continue;
            }
            let mut report = |kind, entry: &Entry, lanes| {
                found.push(Early {
                    kind,
                    register,
                    earlier: entry.pc,
                    lanes,
                });
                true
            };
            look(&mut slot.writes, cohort, lanes, |entry, lanes| {
                let early = match entry.due {
                    Due::At(time) => time >= arrives,
                    Due::Signalled(_) => true,
                };
                early && report(HazardKind::WriteAfterWrite, entry, lanes)
            });
            look(&mut slot.reads, cohort, lanes, |entry, lanes| {
                report(HazardKind::WriteAfterRead, entry, lanes)
            });
            slot.settle();
        }
    }

    /// The results of an instruction are on their way, and its slow sources are being read.
    fn record(&mut self, op: &Op, pc: u32, now: u64, lanes: u32) {
        let footprint = &op.footprint;
        let bit = |board: Option<Scoreboard>| board.map_or(0, |b| 1 << b.number());
        let (write, read) = (bit(op.control.write), bit(op.control.read));
        let due = |signals: u8, cycles: u16| match footprint.variable {
            true => Due::Signalled(signals),
            false => Due::At(now + u64::from(cycles)),
        };
        let number = self.number;
        let entry = |due| Entry {
            lanes,
            pc,
            number,
            due,
        };
        for (register, cycles) in &footprint.writes {
            let due = due(write, *cycles);
            let slot = self.slot(*register);
            // The later of two results counts.
            if slot.writes.iter().all(|old| old.lanes & !lanes == 0) {
                slot.writes.clear();
                slot.written = due.time();
            } else {
                forget(&mut slot.writes, lanes, |_| true);
                slot.written = latest(&slot.writes).max(due.time());
            }
            slot.writes.push(entry(due));
        }
        if footprint.sources == 0 {
            return;
        }
        // Who has waited for the result knows that the sources were read.
        let due = due(read | write, footprint.sources);
        for register in &footprint.reads {
            let slot = self.slot(*register);
            forget(&mut slot.reads, lanes, |old| match (old.due, due) {
                (Due::At(old), Due::At(new)) => old <= new,
                (old, new) => old == new,
            });
            slot.reads.push(entry(due));
            slot.read = latest(&slot.reads);
        }
    }

    /// The slot of a register.
    fn slot(&mut self, register: Resource) -> &mut Slot {
        let index = &mut self.index[register.index()];
        if *index == NONE {
            *index = self.slots.len() as u16;
            self.slots.push(Slot {
                register,
                writes: Entries::new(),
                reads: Entries::new(),
                written: 0,
                read: 0,
            });
        }
        &mut self.slots[usize::from(*index)]
    }

    /// Slots of the registers that may be `register`.
    #[inline]
    fn meeting(&self, register: Resource) -> Meeting {
        if register == Resource::ANY_GENERAL {
            let all = (0u16..).zip(&self.slots);
            let all = all.filter(|(_, slot)| slot.register.meets(register));
            let all: Vec<u16> = all.map(|(index, _)| index).collect();
            return Meeting::Many(all.into_iter());
        }
        let own = self.index[register.index()];
        let any = match register.class() {
            Some(RegisterClass::Gpr) => self.index[Resource::ANY_GENERAL.index()],
            _ => NONE,
        };
        Meeting::Two([own, any])
    }

    /// Makes the lanes of a group one cohort; its index.
    fn gather(&mut self, active: u32, live: u32) -> usize {
        if let Some(index) = self.cohorts.iter().position(|c| c.lanes == active) {
            return index;
        }
        let mut parts: SmallVec<[Cohort; 4]> = SmallVec::new();
        for cohort in &mut self.cohorts {
            let lanes = cohort.lanes & active;
            if lanes != 0 {
                parts.push(Cohort { lanes, ..*cohort });
                cohort.lanes &= !lanes;
            }
        }
        self.cohorts.retain(|c| c.lanes & live != 0);
        let joined = match parts[..] {
            [part] => part,
            _ => self.join(&parts),
        };
        self.cohorts.push(joined);
        self.cohorts.len() - 1
    }

    /// Brings lanes of different clocks to the latest of them; what is on its way has as long to go as before.
    fn join(&mut self, parts: &[Cohort]) -> Cohort {
        let mut joined = Cohort {
            lanes: 0,
            clock: 0,
            waited: [u64::MAX; SCOREBOARDS as usize],
        };
        for part in parts {
            joined.lanes |= part.lanes;
            joined.clock = joined.clock.max(part.clock);
            for (mine, theirs) in joined.waited.iter_mut().zip(part.waited) {
                *mine = (*mine).min(theirs);
            }
        }
        for slot in &mut self.slots {
            if slot.writes.is_empty() && slot.reads.is_empty() {
                continue;
            }
            bring_along(&mut slot.writes, parts, &joined);
            bring_along(&mut slot.reads, parts, &joined);
            slot.settle();
        }
        joined
    }
}

/// Brings what is on its way in parts of a cohort to its clock.
fn bring_along(list: &mut Entries, parts: &[Cohort], joined: &Cohort) {
    let mut kept = Entries::new();
    for entry in &mut *list {
        for part in parts {
            let lanes = entry.lanes & part.lanes;
            if lanes == 0 || part.is_complete(entry) {
                continue;
            }
            let due = match entry.due {
                Due::At(time) => Due::At(time + (joined.clock - part.clock)),
                signalled => signalled,
            };
            let same = |e: &&mut Entry| (e.number, e.due) == (entry.number, due);
            match kept.iter_mut().find(same) {
                Some(same) => same.lanes |= lanes,
                None => kept.push(Entry {
                    lanes,
                    due,
                    ..*entry
                }),
            }
        }
    }
    forget(list, joined.lanes, |_| true);
    list.extend(kept);
}

/// Slots, some of which may be none.
enum Meeting {
    Two([u16; 2]),
    Many(std::vec::IntoIter<u16>),
}

impl Iterator for Meeting {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        match self {
            Meeting::Two(slots) => {
                let found = slots.iter_mut().find(|slot| **slot != NONE)?;
                Some(usize::from(std::mem::replace(found, NONE)))
            }
            Meeting::Many(slots) => slots.next().map(usize::from),
        }
    }
}

/// Shows what of a list is not complete in these lanes of a cohort to `early`; what it takes is over, and so is what is
/// complete.
fn look(
    list: &mut Entries,
    cohort: &Cohort,
    lanes: u32,
    mut early: impl FnMut(&Entry, u32) -> bool,
) {
    list.retain(|entry| {
        let lanes = entry.lanes & lanes;
        if lanes != 0 && (cohort.is_complete(entry) || early(entry, lanes)) {
            entry.lanes &= !lanes;
        }
        entry.lanes != 0
    });
}

/// Takes lanes away from the entries that `which` names.
fn forget(list: &mut Entries, lanes: u32, which: impl Fn(&Entry) -> bool) {
    list.retain(|entry| {
        if which(entry) {
            entry.lanes &= !lanes;
        }
        entry.lanes != 0
    });
}

/// The scoreboards of a mask.
fn boards_of(mask: u8) -> impl Iterator<Item = usize> {
    (0..usize::from(SCOREBOARDS)).filter(move |b| mask >> b & 1 != 0)
}

#[cfg(test)]
mod tests;
