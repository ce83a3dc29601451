//! How many values are alive at once, and which live across calls.

use super::capacity::Capacity;
use crate::abi;
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::liveness::Liveness;
use crate::vcode::{SourceLine, VCode};

const GPR: usize = RegisterClass::Gpr as usize;

/// A set of values with constant-time insertion and removal and fast iteration.
#[derive(Debug, Default)]
pub(crate) struct LiveSet {
    place: Vec<u32>,
    members: Vec<VReg>,
    count: [u32; 3],
}

const ABSENT: u32 = u32::MAX;

impl LiveSet {
    /// Empties the set and makes room for `values` values.
    pub fn reset(&mut self, values: usize) {
        for v in self.members.drain(..) {
            if let Some(place) = self.place.get_mut(v.index()) {
                *place = ABSENT;
            }
        }
        self.place.resize(values, ABSENT);
        self.count = [0; 3];
    }

    /// Whether it is in.
    pub fn contains(&self, v: VReg) -> bool {
        self.place[v.index()] != ABSENT
    }

    /// Adds a value; false if it was in.
    pub fn insert(&mut self, v: VReg) -> bool {
        let place = &mut self.place[v.index()];
        if *place != ABSENT {
            return false;
        }
        *place = self.members.len() as u32;
        self.members.push(v);
        self.count[v.class() as usize] += 1;
        true
    }

    /// Takes a value out; false if it was not in.
    pub fn remove(&mut self, v: VReg) -> bool {
        let place = std::mem::replace(&mut self.place[v.index()], ABSENT);
        if place == ABSENT {
            return false;
        }
        self.members.swap_remove(place as usize);
        if let Some(moved) = self.members.get(place as usize) {
            self.place[moved.index()] = place;
        }
        self.count[v.class() as usize] -= 1;
        true
    }

    /// Members of a class.
    pub fn count(&self, class: RegisterClass) -> u32 {
        self.count[class as usize]
    }

    /// The members in no order.
    pub fn iter(&self) -> impl Iterator<Item = VReg> + '_ {
        self.members.iter().copied()
    }
}

/// Pressure of a function.
#[derive(Debug, Default)]
pub(in crate::regalloc) struct Pressure {
    /// Most values of each class that are alive at once.
    pub max_live: [u32; 3],
    /// The line where most general-purpose registers are.
    pub fullest: SourceLine,
    /// As `max_live`, with guarded results that need a register beside the value that they keep.
    max_needed: [u32; 3],
    /// Most values of each class that are alive across a call.
    max_across_call: [u32; 3],
    /// Whether a value is alive on both sides of a call, by value.
    pub across_call: Vec<bool>,
    alive: LiveSet,
}

/// The value that holds the stack pointer: it lives in R1 everywhere and takes part in nothing.
pub(in crate::regalloc) fn stack_pointer(code: &VCode<VReg>) -> Option<VReg> {
    code.entry
        .iter()
        .find(|(_, r)| *r == abi::STACK_POINTER)
        .map(|(v, _)| *v)
}

/// Makes each of `most` at least what there is now.
fn most(most: &mut [u32; 3], now: [u32; 3]) {
    for (most, now) in most.iter_mut().zip(now) {
        *most = (*most).max(now);
    }
}

impl Pressure {
    /// Walks every block backwards.
    pub fn compute(&mut self, code: &VCode<VReg>, live: &Liveness) {
        self.max_live = [0; 3];
        self.fullest = SourceLine::default();
        self.max_needed = [0; 3];
        self.max_across_call = [0; 3];
        self.across_call.clear();
        self.across_call.resize(code.vreg_count as usize, false);
        let pinned = stack_pointer(code);
        let alive = &mut self.alive;
        for (block, data) in code.blocks.iter() {
            alive.reset(code.vreg_count as usize);
            for v in live.live_out(block).chain(data.terminator.uses()) {
                alive.insert(v);
            }
            if let Some(v) = pinned {
                alive.remove(v);
            }
            for entry in code.block_insts(block).iter().rev() {
                // Not fewer than behind the instruction: a result that nobody reads needs a register too, for a moment.
                code.definitions(entry).for_each(|v| {
                    alive.insert(v);
                });
                if alive.count[GPR] > self.max_live[GPR] && entry.line != SourceLine::default() {
                    self.fullest = entry.line;
                }
                most(&mut self.max_live, alive.count);
                code.definitions(entry).for_each(|v| {
                    alive.remove(v);
                });
                if code.call(entry).is_some() {
                    most(&mut self.max_across_call, alive.count);
                    for v in alive.iter() {
                        self.across_call[v.index()] = true;
                    }
                }
                let uses = code.uses(entry).filter(|v| Some(*v) != pinned);
                uses.for_each(|v| {
                    alive.insert(v);
                });
                let kept = code.else_values(entry);
                for v in kept.iter().flatten() {
                    let needed = &mut self.max_needed[v.class() as usize];
                    *needed = (*needed).max(alive.count(v.class()) + kept.len() as u32);
                }
            }
            for &v in &data.params {
                alive.insert(v);
            }
            most(&mut self.max_live, alive.count);
        }
    }

    /// Most GPR values that are alive across a call.
    pub fn across_calls(&self) -> u32 {
        self.max_across_call[RegisterClass::Gpr as usize]
    }

    /// Whether every value of `class` fits into its registers everywhere. May say no where all would fit.
    pub fn fits(&self, class: RegisterClass, capacity: &Capacity) -> bool {
        let most = self.max_live[class as usize].max(self.max_needed[class as usize]);
        let across = self.max_across_call[class as usize];
        most <= capacity.registers[class as usize] && across <= capacity.across(class)
    }
}
