//! What is on its way in warps whose live lanes all run together: states with numbers, and what follows on each.
//!
//! As long as all live lanes of a warp issue the same instructions, with guards that hold in all of them or in none,
//! what is on its way depends on no lane: for each register who writes or reads it, and how many cycles that takes from
//! now, or which scoreboards tell. What is on its way after an instruction follows from that and the instruction, so
//! [`crate::sim::timing::pending`] finds it out once and looks it up from then on. A hazard is no such step: it is
//! found anew every time.

use crate::launch::Resource;
use hashbrown::HashMap;

/// The state in which nothing is on its way.
pub const NOTHING: u32 = 0;
/// States that are kept, at most (assigned): few, unless paths of ever new lengths meet.
const KEPT: usize = 1 << 14;
/// No state.
const NONE: u32 = u32::MAX;

/// When something is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// At this time of its lanes' clock.
    At(u64),
    /// When one of these scoreboards, a mask, has been waited for.
    Signalled(u8),
}

impl Due {
    /// The time of a clock at which it is complete; [`u64::MAX`] where that is signalled.
    pub fn time(self) -> u64 {
        match self {
            Due::At(time) => time,
            Due::Signalled(_) => u64::MAX,
        }
    }
}

/// A result on its way, or a source that may not have been read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// Of this register.
    pub register: Resource,
    /// Whether it is a source.
    pub source: bool,
    /// Index of the instruction.
    pub pc: u32,
    /// When it is complete, times counted from now.
    pub due: Due,
}

/// The states that warps of a program have been in.
#[derive(Clone, Debug)]
pub struct States {
    /// By number.
    all: Vec<Box<[Flight]>>,
    numbers: HashMap<Box<[Flight]>, u32>,
    /// By state and step the state that follows.
    successors: HashMap<(u32, u32), u32>,
    /// By step the state before and after the last time.
    last: Vec<(u32, u32)>,
}

/// An instruction and whether its guard holds.
fn step(pc: u32, runs: bool) -> u32 {
    pc << 1 | u32::from(runs)
}

impl Default for States {
    fn default() -> States {
        let nothing: Box<[Flight]> = Box::default();
        States {
            all: vec![nothing.clone()],
            numbers: [(nothing, NOTHING)].into_iter().collect(),
            successors: HashMap::new(),
            last: Vec::new(),
        }
    }
}

impl States {
    /// What follows on a state by the instruction at `pc`, if that is known; `runs`: its guard holds.
    #[inline]
    pub fn successor(&mut self, state: u32, pc: u32, runs: bool) -> Option<u32> {
        let step = step(pc, runs);
        if let Some((before, after)) = self.last.get(step as usize)
            && *before == state
        {
            return Some(*after);
        }
        let after = *self.successors.get(&(state, step))?;
        self.note(step, state, after);
        Some(after)
    }

    /// Remembers what follows.
    pub fn remember(&mut self, state: u32, pc: u32, runs: bool, after: u32) {
        let step = step(pc, runs);
        self.successors.insert((state, step), after);
        self.note(step, state, after);
    }

    fn note(&mut self, step: u32, before: u32, after: u32) {
        let index = step as usize;
        if index >= self.last.len() {
            self.last.resize(index + 1, (NONE, NONE));
        }
        self.last[index] = (before, after);
    }

    /// What is on its way in a state.
    pub fn flights(&self, state: u32) -> &[Flight] {
        &self.all[state as usize]
    }

    /// The number of a state; none if there are too many.
    pub fn number(&mut self, flights: &[Flight]) -> Option<u32> {
        if let Some(number) = self.numbers.get(flights) {
            return Some(*number);
        }
        let number = self.all.len();
        if number >= KEPT {
            return None;
        }
        self.all.push(flights.into());
        self.numbers.insert(flights.into(), number as u32);
        Some(number as u32)
    }
}
