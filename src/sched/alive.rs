//! Sets of values that are alive, and how many there are of each class.

use crate::isa::{Register, RegisterClass, VReg};
use crate::vcode::{Entry, VCode};

/// Numbers of values alive, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure(pub [u32; 3]);

impl Pressure {
    /// That of a class.
    pub fn of(&self, class: RegisterClass) -> u32 {
        self.0[class as usize]
    }

    /// More of a class.
    pub fn add(&mut self, class: RegisterClass, count: u32) {
        self.0[class as usize] += count;
    }

    /// Fewer of a class.
    pub fn take(&mut self, class: RegisterClass, count: u32) {
        self.0[class as usize] -= count;
    }

    /// Both together.
    pub fn plus(self, other: Pressure) -> Pressure {
        Pressure(std::array::from_fn(|c| self.0[c] + other.0[c]))
    }

    /// Without the other, which is part of it.
    pub fn less(self, other: Pressure) -> Pressure {
        Pressure(std::array::from_fn(|c| self.0[c] - other.0[c]))
    }

    /// What is left of this beside the other; none where that is more.
    pub fn beyond(self, other: Pressure) -> Pressure {
        Pressure(std::array::from_fn(|c| {
            self.0[c].saturating_sub(other.0[c])
        }))
    }

    /// By class the larger number.
    pub fn max(self, other: Pressure) -> Pressure {
        Pressure(std::array::from_fn(|c| self.0[c].max(other.0[c])))
    }

    /// Whether there are at most so many of each class.
    pub fn fits(self, limit: Pressure) -> bool {
        (0..3).all(|c| self.0[c] <= limit.0[c])
    }
}

/// A set of values that is emptied at no cost.
#[derive(Debug, Default)]
pub struct Alive {
    /// By value the filling in which it was last added; 0 when it was taken out.
    added: Vec<u32>,
    filling: u32,
    count: Pressure,
}

impl Alive {
    /// Empties the set and makes room for `values` values.
    pub fn reset(&mut self, values: usize) {
        if self.added.len() < values {
            self.added.resize(values, 0);
        }
        self.filling = self.filling.checked_add(1).unwrap_or_else(|| {
            self.added.fill(0);
            1
        });
        self.count = Pressure::default();
    }

    /// Whether it is in.
    pub fn contains(&self, v: VReg) -> bool {
        self.added[v.index()] == self.filling
    }

    /// Adds a value.
    pub fn insert(&mut self, v: VReg) {
        let added = &mut self.added[v.index()];
        let new = *added != self.filling;
        *added = self.filling;
        self.count.add(v.class(), u32::from(new));
    }

    /// Takes a value out.
    pub fn remove(&mut self, v: VReg) {
        let added = &mut self.added[v.index()];
        let known = *added == self.filling;
        *added = 0;
        self.count.take(v.class(), u32::from(known));
    }

    /// How many there are.
    pub fn count(&self) -> Pressure {
        self.count
    }

    /// Goes from behind an instruction to before it.
    pub fn step_back(&mut self, code: &VCode<VReg>, entry: &Entry<VReg>) {
        code.definitions(entry).for_each(|reg| self.remove(reg));
        code.uses(entry).for_each(|reg| self.insert(reg));
    }
}
