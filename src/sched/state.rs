//! What is still on its way at a point of the program, for the worst of all paths to it.
//!
//! [`InFlight`] is a table by resource that is walked through the code; [`Border`] is the short list of what is in it
//! between blocks. Both are emptied at the cost of what they hold, so that they can be used for one function after the
//! other.

use super::access::{Accesses, Resource};
use super::readers::{Readers, merge};
use super::synchronization::Boards;

/// Results and reads that are not complete.
#[derive(Debug)]
pub struct InFlight {
    /// Cycles that have passed since some moment.
    now: u32,
    /// For each resource the cycle in which a result of fixed latency has arrived, counted from the same moment.
    ready: [u32; Resource::COUNT],
    /// When all results of fixed latency have arrived.
    latest: u32,
    /// Resources for which `ready` was set since the state was emptied; some more than once.
    set: Vec<Resource>,
    /// For each resource the scoreboards of results of variable latency.
    written: [u8; Resource::COUNT],
    /// Resources for which `written` is not 0.
    awaited: Vec<Resource>,
    /// Instructions that may still read something.
    readers: Readers,
}

/// What an instruction must wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Cycles between the instruction before it and this one.
    pub cycles: u16,
    /// Scoreboards.
    pub wait: u8,
}

impl Default for InFlight {
    /// Nothing is on its way.
    fn default() -> Self {
        InFlight {
            now: 0,
            ready: [0; Resource::COUNT],
            latest: 0,
            set: Vec::new(),
            written: [0; Resource::COUNT],
            awaited: Vec::new(),
            readers: Readers::default(),
        }
    }
}

impl InFlight {
    /// Cycles until a result of fixed latency has arrived.
    fn left(&self, resource: usize) -> u16 {
        self.ready[resource].saturating_sub(self.now) as u16
    }

    /// Nothing is on its way any more.
    pub fn clear(&mut self) {
        self.now = self.now.max(self.latest);
        if self.now > u32::MAX / 2 {
            (self.now, self.latest) = (0, 0);
            self.ready.fill(0);
        }
        self.set.clear();
        (self.awaited.drain(..)).for_each(|resource| self.written[resource.index()] = 0);
        self.readers.clear();
    }

    /// What an instruction with these accesses must wait for.
    pub fn needs(&self, accesses: &Accesses<'_>) -> Needs {
        let mut needs = Needs { cycles: 1, wait: 0 };
        for r in accesses.reads.iter().map(|r| r.index()) {
            needs.cycles = needs.cycles.max(self.left(r));
            needs.wait |= self.written[r];
        }
        for write in accesses.registers() {
            let r = write.resource.index();
            // Results arrive in the order of the writes. One of variable latency may arrive at once.
            let own = if accesses.variable { 1 } else { write.latency };
            needs.cycles = needs.cycles.max((self.left(r) + 1).saturating_sub(own));
            needs.wait |= self.written[r];
        }
        // Often the results that are waited for anyway tell that the sources were read.
        let written = accesses.writes.iter().map(|w| w.resource);
        needs.wait |= self.readers.of(written).missing(needs.wait);
        needs
    }

    /// Scoreboards that are to be waited for, beside those of `wait`, until nothing is on its way.
    pub fn pending(&self, wait: u8) -> u8 {
        let boards = (self.awaited.iter()).map(|r| self.written[r.index()]);
        let results = boards.fold(wait, |all, mask| all | mask);
        results | self.readers.all().missing(results)
    }

    /// Cycles until everything of fixed latency has arrived.
    pub fn longest(&self) -> u16 {
        self.latest.saturating_sub(self.now) as u16
    }

    /// Scoreboards have become zero.
    pub fn waited(&mut self, wait: u8) {
        if wait != 0 {
            let InFlight {
                awaited, written, ..
            } = self;
            awaited.retain(|resource| {
                let boards = &mut written[resource.index()];
                *boards &= !wait;
                *boards != 0
            });
            self.readers.waited(wait);
        }
    }

    /// Cycles have passed.
    pub fn advance(&mut self, cycles: u16) {
        self.now += u32::from(cycles);
    }

    /// An instruction has issued; what it needed has been waited for.
    pub fn issue(&mut self, accesses: &Accesses<'_>, boards: Boards) {
        for write in accesses.writes {
            if accesses.variable {
                self.add_awaited(write.resource, boards.write);
            } else {
                self.add_ready(write.resource, write.latency);
            }
        }
        if accesses.fences {
            self.fence();
        }
        if boards != Boards::default() {
            for &resource in accesses.slow_reads {
                self.readers.add(resource, boards);
            }
        }
    }

    /// What is issued from now on is performed behind what was issued.
    fn fence(&mut self) {
        let InFlight {
            awaited, written, ..
        } = self;
        awaited.retain(|resource| {
            if resource.is_memory() {
                written[resource.index()] = 0;
            }
            !resource.is_memory()
        });
    }

    fn add_ready(&mut self, resource: Resource, cycles: u16) {
        let ready = &mut self.ready[resource.index()];
        *ready = (*ready).max(self.now + u32::from(cycles));
        self.latest = self.latest.max(*ready);
        self.set.push(resource);
    }

    fn add_awaited(&mut self, resource: Resource, boards: u8) {
        let written = &mut self.written[resource.index()];
        if *written == 0 && boards != 0 {
            self.awaited.push(resource);
        }
        *written |= boards;
    }

    /// Writes down what is on its way.
    pub fn leave(&mut self, border: &mut Border) {
        let left = |&resource: &Resource| (resource, self.left(resource.index()));
        border.fixed.clear();
        (border.fixed).extend(self.set.iter().map(left).filter(|entry| entry.1 > 0));
        border.fixed.sort_unstable();
        border.fixed.dedup();
        self.awaited.sort_unstable();
        let written = |&resource: &Resource| (resource, self.written[resource.index()]);
        border.awaited.clear();
        border.awaited.extend(self.awaited.iter().map(written));
        border.readers.copy_from(&self.readers);
    }

    /// Becomes what was written down.
    pub fn enter(&mut self, border: &Border) {
        self.clear();
        for &(resource, cycles) in &border.fixed {
            self.add_ready(resource, cycles);
        }
        for &(resource, boards) in &border.awaited {
            self.add_awaited(resource, boards);
        }
        self.readers.copy_from(&border.readers);
    }
}

/// What is on its way where a block is entered, for the worst of the paths looked at.
#[derive(Debug, Default)]
pub struct Border {
    /// Whether a path leads there.
    pub reached: bool,
    /// Cycles until results of fixed latency have arrived, by resource in ascending order.
    fixed: Vec<(Resource, u16)>,
    /// Scoreboards of results of variable latency, by resource in ascending order.
    awaited: Vec<(Resource, u8)>,
    readers: Readers,
}

impl Border {
    /// No path leads there as yet.
    pub fn clear(&mut self) {
        self.reached = false;
        self.fixed.clear();
        self.awaited.clear();
        self.readers.clear();
    }

    /// Takes over what is worse on another path; whether anything was, or this is the first.
    pub fn merge(&mut self, other: &Border) -> bool {
        let mut changed = !std::mem::replace(&mut self.reached, true);
        changed |= merge(&mut self.fixed, &other.fixed, u16::max);
        changed |= merge(&mut self.awaited, &other.awaited, |a, b| a | b);
        changed | self.readers.merge(&other.readers)
    }
}
