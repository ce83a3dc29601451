//! The recorder of timed launches: counts for each instruction, and events of every warp.
//!
//! In: what issues, after which waits, and which places its lanes touch. Out: [`Counts`] by the index of the
//! instruction, and a [`Trace`]'s events. A launch without a recorder does nothing of this.

use crate::isa::encode::WORD_BYTES;
use crate::launch::profile::{BANKS, Counts, SECTOR_BYTES, Stall};
use crate::launch::trace::{Event, Row, What};
use crate::sim::SimConfig;
use crate::sim::memory::Location;
use crate::sim::warp::registers::LANES;

/// Bytes of a word of memory.
const WORD: u64 = 4;

/// What is recorded of a launch.
#[derive(Debug, Default)]
pub struct Recorder {
    /// By the index of the instruction, if a profile is wanted.
    pub counts: Option<Vec<Counts>>,
    /// As the blocks ran, if a trace is wanted.
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

    /// Sectors of global and local memory. Local memory has the words of 32 lanes at the same offset beside each other
    /// (*assumed*).
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The sectors of one access, byte by byte.
    fn sectors(touches: &Touches) -> u64 {
        let mut sectors = BTreeSet::new();
        for &(lane, place, address) in &touches.places[..touches.count] {
            for byte in 0..touches.bytes {
                match place {
                    Location::Global(..) => sectors.insert((0, (address + byte) / SECTOR_BYTES)),
                    Location::Local(offset) => {
                        let (word, inside) =
                            ((offset as u64 + byte) / 4, (offset as u64 + byte) % 4);
                        let at = word * 128 + lane as u64 * 4 + inside;
                        sectors.insert((1, at / SECTOR_BYTES))
                    }
                    Location::Shared(_) => false,
                };
            }
        }
        sectors.len() as u64
    }

    /// Turns beyond the first of each part of the lanes, turn by turn: a bank gives all lanes that ask for it one word.
    fn conflicts(touches: &Touches) -> u64 {
        let lanes_a_part = match touches.bytes {
            16 => 8,
            8 => 16,
            _ => 32,
        };
        let mut conflicts = 0;
        for first in (0..LANES).step_by(lanes_a_part) {
            let mut wanted = BTreeSet::new();
            for &(lane, place, _) in &touches.places[..touches.count] {
                if let Location::Shared(offset) = place
                    && (first..first + lanes_a_part).contains(&lane)
                {
                    wanted.extend((0..touches.bytes).map(|byte| (offset as u64 + byte) / 4));
                }
            }
            let mut turns: u64 = 0;
            while !wanted.is_empty() {
                let mut busy = BTreeSet::new();
                wanted.retain(|word| !busy.insert(word % 32));
                turns += 1;
            }
            conflicts += turns.saturating_sub(1);
        }
        conflicts
    }

    #[test]
    fn sectors_and_conflicts_are_those_counted_byte_by_byte() {
        let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut below = move |end: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) % end
        };
        let (mut counted, mut conflicting) = (0, 0);
        for round in 0..3000 {
            let bytes = 1 << below(5);
            let mut touches = Touches::new(bytes);
            let mask = below(1 << 32) as u32 | if round % 2 == 0 { u32::MAX } else { 0 };
            // Everywhere in a window, near each other, or a stride apart.
            let window = [4096, 256, 64][below(3) as usize];
            let (stride, kind) = (below(40), below(3));
            for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
                let index = match round % 3 {
                    0 => lane as u64 * stride,
                    _ => below(window),
                };
                let at = index * u64::from(bytes);
                let place = match kind {
                    0 => Location::Global(0, at as usize),
                    1 => Location::Local(at as usize),
                    _ => Location::Shared(at as usize),
                };
                touches.push(lane, place, 0x1_0000_0000 + at);
            }
            let mut counts = Counts::default();
            touches.count(&mut counts);
            assert_eq!(counts.bytes, u64::from(bytes * mask.count_ones()));
            assert_eq!(counts.sectors, sectors(&touches), "{round}");
            assert_eq!(counts.bank_conflicts, conflicts(&touches), "{round}");
            counted += u32::from(counts.sectors > 0);
            conflicting += u32::from(counts.bank_conflicts > 0);
        }
        assert!(
            counted > 1000 && conflicting > 300,
            "{counted}, {conflicting}"
        );
    }
}
