//! What is still on its way at a point of the program, for the worst of all paths to it.

use super::access::{Accesses, Resource};
use super::readers::Readers;

/// Results and reads that are not complete.
#[derive(Clone, Debug)]
pub struct State {
    /// Cycles that have passed since some moment.
    now: u32,
    /// For each resource the cycle in which a result of fixed latency has arrived, counted from the same moment.
    ready: [u32; Resource::COUNT],
    /// For each resource the scoreboards of results of variable latency.
    written: [u8; Resource::COUNT],
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

/// Scoreboards of an instruction, as masks of one bit or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boards {
    /// Lowered when the results have arrived.
    pub write: u8,
    /// Lowered when the sources have been read.
    pub read: u8,
}

impl Default for State {
    /// Nothing is on its way.
    fn default() -> Self {
        State {
            now: 0,
            ready: [0; Resource::COUNT],
            written: [0; Resource::COUNT],
            readers: Readers::default(),
        }
    }
}

impl State {
    /// Cycles until a result of fixed latency has arrived.
    fn left(&self, resource: usize) -> u16 {
        self.ready[resource].saturating_sub(self.now) as u16
    }

    /// What an instruction with these accesses must wait for.
    pub fn needs(&self, accesses: &Accesses) -> Needs {
        let mut needs = Needs { cycles: 1, wait: 0 };
        for r in accesses.reads.iter().map(|r| r.index()) {
            needs.cycles = needs.cycles.max(self.left(r));
            needs.wait |= self.written[r];
        }
        for write in &accesses.writes {
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
        let results = self.written.iter().fold(wait, |all, m| all | m);
        results | self.readers.all().missing(results)
    }

    /// Cycles until everything of fixed latency has arrived.
    pub fn longest(&self) -> u16 {
        let last = self.ready.iter().copied().max().unwrap_or(0);
        last.saturating_sub(self.now) as u16
    }

    /// Scoreboards have become zero.
    pub fn waited(&mut self, wait: u8) {
        if wait != 0 {
            self.written.iter_mut().for_each(|m| *m &= !wait);
            self.readers.waited(wait);
        }
    }

    /// Cycles have passed.
    pub fn advance(&mut self, cycles: u16) {
        self.now += u32::from(cycles);
    }

    /// An instruction has issued; what it needed has been waited for.
    pub fn issue(&mut self, accesses: &Accesses, boards: Boards) {
        for write in &accesses.writes {
            let r = write.resource.index();
            if accesses.variable {
                self.written[r] |= boards.write;
            } else {
                self.ready[r] = self.ready[r].max(self.now + u32::from(write.latency));
            }
        }
        if boards != Boards::default() {
            for &resource in &accesses.slow_reads {
                self.readers.add(resource, boards);
            }
        }
    }

    /// Takes over what is worse on another path; whether anything was.
    pub fn merge(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.ready.iter_mut().zip(&other.ready) {
            let theirs = theirs.saturating_sub(other.now);
            if theirs > mine.saturating_sub(self.now) {
                *mine = self.now + theirs;
                changed = true;
            }
        }
        for (mine, theirs) in self.written.iter_mut().zip(&other.written) {
            changed |= *theirs & !*mine != 0;
            *mine |= theirs;
        }
        changed | self.readers.merge(&other.readers)
    }
}
