//! What threads read again and again, and who changed it last.
//!
//! Counts the instructions that change memory: a store of what is there already changes nothing. A launch in which all
//! warps go round while this number stays can never go on ([`crate::sim::warp::rounds`]). For the message: of each warp
//! the places that it read since its state was kept, and of each place that atomics and strong stores changed the last
//! one that did: the holder of a lock.

use super::Spot;
use crate::isa::generated::SReg;
use crate::sim::decode::action::Action;
use crate::sim::decode::program::Op;
use crate::sim::memory::Location;
use crate::sim::warp::registers::LANES;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Reads that are kept of a warp, at most (assigned): a loop that waits reads few places, but each lane may have its
/// own.
const KEPT: usize = 8 + LANES;
/// Plain ones of those, at most (assigned).
const KEPT_PLAIN: usize = 8;

/// A read of a place that others see.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    /// Index of the instruction.
    pub pc: u32,
    /// The lanes that have read since: with a strong read this place last, with a plain one not all of them this one.
    pub lanes: u32,
    /// That of the first lane.
    pub place: Location,
    /// Its address in global memory, or offset in shared memory.
    pub address: u64,
    /// Size.
    pub bytes: u32,
    /// Strong or atomic: more likely what it waits for than a plain read.
    pub strong: bool,
}

/// What an instruction did.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Instructions that changed memory, from the beginning of the launch.
    pub changes: u64,
    /// It read the clock.
    pub reads_clock: bool,
}

/// What threads read and change.
#[derive(Clone, Debug, Default)]
pub struct Activity {
    changes: u64,
    /// The present instruction changes memory, as far as is known.
    pending: bool,
    reads_clock: bool,
    warps: usize,
    room: usize,
    /// By room and warp.
    polls: Vec<SmallVec<[Poll; 2]>>,
    global: HashMap<u64, Spot>,
    /// By room.
    shared: Vec<HashMap<u64, Spot>>,
}

impl Activity {
    /// For CTAs of so many warps.
    pub fn new(warps: usize) -> Activity {
        Activity {
            warps,
            ..Activity::default()
        }
    }

    /// A CTA begins in a room.
    pub(super) fn start(&mut self, room: usize) {
        if room >= self.shared.len() {
            self.shared.resize_with(room + 1, HashMap::new);
            let polls = (room + 1) * self.warps;
            self.polls.resize_with(polls, SmallVec::new);
        }
        self.shared[room].clear();
        let first = room * self.warps;
        self.polls[first..first + self.warps]
            .iter_mut()
            .for_each(SmallVec::clear);
    }

    /// What follows happens in this room.
    pub(super) fn enter(&mut self, room: usize) {
        self.room = room;
    }

    /// Before an instruction runs in the lanes of `mask`. One that stores changes memory, unless [`Activity::examine`]
    /// is told of every lane.
    pub(super) fn before(&mut self, op: &Op, mask: u32) {
        self.pending = mask != 0 && matches!(op.action, Action::Store(_) | Action::Atomic(_));
        self.reads_clock = matches!(
            op.action,
            Action::ReadSpecial(SReg::SrClocklo) | Action::ReadSpecialOnce(SReg::SrClocklo)
        );
    }

    /// All lanes of the present instruction will be told by [`Activity::changed`].
    pub fn examine(&mut self) {
        self.pending = false;
    }

    /// A lane has changed its place, or left it as it was.
    pub fn changed(&mut self, changed: bool) {
        self.pending |= changed;
    }

    /// After an instruction.
    pub fn settle(&mut self) -> Seen {
        self.changes += u64::from(std::mem::take(&mut self.pending));
        Seen {
            changes: self.changes,
            reads_clock: std::mem::take(&mut self.reads_clock),
        }
    }

    /// Instructions that have changed memory.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Lanes of a warp read.
    pub(super) fn read(&mut self, warp: u32, poll: Poll) {
        if let Location::Local(_) = poll.place {
            return;
        }
        let Some(polls) = self.polls.get_mut(self.room * self.warps + warp as usize) else {
            return;
        };
        let mut is_known = false;
        for known in polls.iter_mut().filter(|known| known.pc == poll.pc) {
            if !poll.strong || known.address == poll.address {
                known.lanes |= poll.lanes;
                is_known = true;
            } else {
                known.lanes &= !poll.lanes;
            }
        }
        if is_known {
            return;
        }
        polls.retain(|known| known.lanes != 0);
        let most = if poll.strong { KEPT } else { KEPT_PLAIN };
        if polls.len() < most {
            polls.push(poll);
        }
    }

    /// The next reads of a warp are all that count.
    pub fn forget_polls(&mut self, warp: u32) {
        if let Some(polls) = self.polls.get_mut(self.room * self.warps + warp as usize) {
            polls.clear();
        }
    }

    /// What lanes of a warp seem to wait for: the last strong read, else the last one.
    pub fn poll(&self, room: usize, warp: u32, lanes: u32) -> Option<Poll> {
        let polls = self.polls.get(room * self.warps + warp as usize)?;
        let of_these = || polls.iter().rev().filter(|poll| poll.lanes & lanes != 0);
        let found = of_these().find(|poll| poll.strong);
        found.or_else(|| of_these().next()).copied()
    }

    /// An atomic or a strong store changes a place.
    pub(super) fn strong_write(&mut self, place: Location, address: u64, at: Spot) {
        match place {
            Location::Global(..) => self.global.insert(address / 4, at),
            Location::Shared(offset) => self.shared[self.room].insert(offset as u64 / 4, at),
            Location::Local(_) => None,
        };
    }

    /// Who changed a place last.
    pub fn writer(&self, room: usize, poll: &Poll) -> Option<Spot> {
        let words = poll.address / 4..(poll.address + u64::from(poll.bytes)).div_ceil(4);
        let all = match poll.place {
            Location::Global(..) => &self.global,
            _ => self.shared.get(room)?,
        };
        words.into_iter().find_map(|word| all.get(&word)).copied()
    }
}
