//! The recorder of timed launches: counts for each instruction, and events of every warp.
//!
//! In: what issues, after which waits, and which places its lanes touch. Out: [`Counts`] by the index of the instruction, and a [`Trace`]'s events. A launch
//! without a recorder does nothing of this.

use super::SimConfig;
use super::memory::Location;
use super::registers::LANES;
use crate::isa::encode::WORD_BYTES;
use crate::launch::profile::{BANKS, Counts, SECTOR_BYTES, Stall};
use crate::launch::trace::{Event, Row, What};

/// Bytes of a word of memory.
const WORD: u64 = 4;

/// What is recorded of a launch.
#[derive(Debug, Default)]
pub struct Recorder {
    /// By the index of the instruction, if a profile is wanted.
    pub counts: Option<Vec<Counts>>,
    /// In the order of their end, if a trace is wanted.
    pub events: Option<Vec<Event>>,
    /// Most events.
    limit: usize,
    /// Events beyond the limit.
    pub dropped: u64,
    /// The launch's cycle in which the resident blocks began.
    pub base: u64,
    /// Coordinates of the block whose turn it is.
    pub block: [u32; 3],
}

impl Recorder {
    /// What the switches ask for, over so many instructions; none if that is nothing.
    pub fn new(config: &SimConfig, instructions: usize) -> Option<Recorder> {
        let recorder = Recorder {
            counts: (config.profile).then(|| vec![Counts::default(); instructions]),
            events: config.trace_events.map(|_| Vec::new()),
            limit: config.trace_events.unwrap_or(0),
            ..Recorder::default()
        };
        (recorder.counts.is_some() || recorder.events.is_some()).then_some(recorder)
    }

    /// A warp issues an instruction.
    pub fn issued(&mut self, warp: u32, cycle: u64, pc: u32, lanes: u32) {
        if let Some(counts) = &mut self.counts {
            let counts = &mut counts[pc as usize];
            counts.issues += 1;
            counts.lanes += u64::from(lanes.count_ones());
        }
        let address = address(pc);
        self.event(
            warp,
            Row::Warp,
            cycle,
            cycle + 1,
            What::Issue { address, lanes },
        );
    }

    /// A warp does not issue an instruction from one cycle to before another.
    pub fn waited(&mut self, warp: u32, from: u64, to: u64, pc: u32, stall: Stall) {
        if from >= to {
            return;
        }
        if let Some(counts) = &mut self.counts {
            counts[pc as usize].stalls.add(stall, to - from);
        }
        let address = address(pc);
        self.event(warp, Row::Warp, from, to, What::Wait { address, stall });
    }

    /// An instruction keeps a scoreboard from being zero from one cycle to before another.
    pub fn raised(&mut self, warp: u32, scoreboard: u8, from: u64, to: u64, pc: u32) {
        let address = address(pc);
        let row = Row::Scoreboard(scoreboard);
        self.event(warp, row, from, to, What::Raised { address });
    }

    fn event(&mut self, warp: u32, row: Row, from: u64, to: u64, what: What) {
        let Some(events) = &mut self.events else {
            return;
        };
        if from >= to {
            return;
        }
        if events.len() == self.limit {
            self.dropped += 1;
            return;
        }
        events.push(Event {
            block: self.block,
            warp,
            row,
            start: self.base + from,
            cycles: to - from,
            what,
        });
    }

    /// The places that an instruction is about to touch, if they are counted.
    pub fn touches(&self, bytes: u32) -> Option<Touches> {
        self.counts.is_some().then(|| Touches::new(bytes))
    }

    /// An instruction has touched places.
    pub fn touched(&mut self, pc: u32, touches: &Touches) {
        if let Some(counts) = &mut self.counts {
            touches.count(&mut counts[pc as usize]);
        }
    }
}

/// The code address of an instruction in bytes.
fn address(pc: u32) -> u32 {
    pc * WORD_BYTES as u32
}

/// The places that the lanes of one instruction touch.
pub struct Touches {
    bytes: u64,
    count: usize,
    /// Lane, place, address in its window.
    places: [(usize, Location, u64); LANES],
}

impl Touches {
    fn new(bytes: u32) -> Touches {
        Touches {
            bytes: u64::from(bytes),
            count: 0,
            places: [(0, Location::Shared(0), 0); LANES],
        }
    }

    /// A lane touches a place at an address.
    pub fn push(&mut self, lane: usize, place: Location, address: u64) {
        self.places[self.count] = (lane, place, address);
        self.count += 1;
    }

    fn count(&self, counts: &mut Counts) {
        let places = &self.places[..self.count];
        counts.bytes += self.bytes * places.len() as u64;
        counts.sectors += self.sectors();
        counts.bank_conflicts += self.bank_conflicts();
    }

    /// Sectors of global and local memory. Local memory has the words of 32 lanes at the same offset beside each other (*assumed*).
    fn sectors(&self) -> u64 {
        let mut sectors: Vec<(bool, u64)> = Vec::with_capacity(self.count);
        for &(lane, place, address) in &self.places[..self.count] {
            match place {
                Location::Global(..) => sectors.push((false, address / SECTOR_BYTES)),
                Location::Local(offset) => {
                    let first = offset as u64 / WORD;
                    let words = first..first + self.bytes.div_ceil(WORD);
                    let at = |word| (word * LANES as u64 + lane as u64) * WORD / SECTOR_BYTES;
                    sectors.extend(words.map(|word| (true, at(word))));
                }
                Location::Shared(_) => {}
            }
        }
        sectors.sort_unstable();
        sectors.dedup();
        sectors.len() as u64
    }

    /// Turns of shared memory beyond one for as many lanes as its banks serve at best: each bank gives one word a turn.
    fn bank_conflicts(&self) -> u64 {
        let words = self.bytes.div_ceil(WORD);
        let lanes = LANES / words as usize;
        let mut conflicts = 0;
        for part in 0..LANES / lanes {
            let mut touched: Vec<u64> = Vec::with_capacity(LANES);
            for &(lane, place, _) in &self.places[..self.count] {
                if let Location::Shared(offset) = place
                    && lane / lanes == part
                {
                    let first = offset as u64 / WORD;
                    touched.extend(first..first + words);
                }
            }
            touched.sort_unstable();
            touched.dedup();
            let mut turns = [0; BANKS];
            for word in touched {
                turns[word as usize % BANKS] += 1;
            }
            let turns: u64 = turns.into_iter().max().unwrap_or(0);
            conflicts += turns.saturating_sub(1);
        }
        conflicts
    }
}
