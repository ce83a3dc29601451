//! Registers for the intermediate results of a sequence.
//!
//! In: a sequence of [`Place`]s. Out: the same with registers. A sequence has no branches and each value is written
//! once and read soon after, so one walk suffices: a value takes the destination where nothing needs its old contents
//! any more, else the first free scratch register. What is read for the last time gives its register to the result of
//! the same instruction.

use super::sequence::Place;
use cranelift_thisgpu::unstable::isa::{Inst, PReg};

/// How many scratch registers a sequence needs.
pub(super) fn needed(steps: &[Inst<Place>], destination: Option<PReg>) -> usize {
    let mut holders = Holders::new(steps, destination);
    (0..steps.len()).for_each(|index| holders.step(index));
    holders.scratch.len()
}

/// Gives registers to values; none if the scratch registers do not suffice.
pub(super) fn assign(
    steps: &[Inst<Place>],
    destination: Option<PReg>,
    scratch: &[PReg],
) -> Option<Vec<Inst<PReg>>> {
    let mut holders = Holders::new(steps, destination);
    let mut assigned = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        holders.step(index);
        let mut complete = true;
        let register = |place: Place| match place {
            Place::Named(register) => register,
            Place::Value(value) => match holders.homes[usize::from(value)] {
                Some(Home::Destination(register)) => register,
                Some(Home::Scratch(number)) if number < scratch.len() => scratch[number],
                _ => {
                    complete = false;
                    PReg::gpr(0)
                }
            },
        };
        let step = step.map(register);
        if !complete {
            return None;
        }
        assigned.push(step);
    }
    Some(assigned)
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Destination(PReg),
    /// By its place among the scratch registers.
    Scratch(usize),
}

struct Holders<'s> {
    steps: &'s [Inst<Place>],
    destination: Option<PReg>,
    /// By value.
    homes: Vec<Option<Home>>,
    /// Which value each scratch register holds.
    scratch: Vec<Option<u8>>,
    /// The value in the destination.
    in_destination: Option<u8>,
}

impl<'s> Holders<'s> {
    fn new(steps: &'s [Inst<Place>], destination: Option<PReg>) -> Self {
        let values = |step: &Inst<Place>| step.definitions().filter_map(value).max();
        let count = steps.iter().filter_map(values).max().map_or(0, |v| v + 1);
        Holders {
            steps,
            destination,
            homes: vec![None; count.into()],
            scratch: Vec::new(),
            in_destination: None,
        }
    }

    /// Whether an instruction behind `index` reads it before the end.
    fn is_read_behind(&self, place: Place, index: usize) -> bool {
        let mut rest = self.steps[index + 1..].iter();
        rest.any(|step| step.uses().any(|used| used == place))
    }

    fn step(&mut self, index: usize) {
        for holder in self.scratch.iter_mut().chain([&mut self.in_destination]) {
            let rest = &self.steps[index + 1..];
            let read = |value: &u8| {
                let mut uses = rest.iter().flat_map(|step| step.uses());
                uses.any(|used| used == Place::Value(*value))
            };
            *holder = holder.filter(read);
        }
        let Some(value) = self.steps[index].definitions().find_map(value) else {
            return;
        };
        let destination = self.destination.filter(|d| {
            self.in_destination.is_none() && !self.is_read_behind(Place::Named(*d), index)
        });
        let home = match destination {
            Some(destination) => {
                self.in_destination = Some(value);
                Home::Destination(destination)
            }
            None => {
                let free = self.scratch.iter().position(Option::is_none);
                let number = free.unwrap_or_else(|| {
                    self.scratch.push(None);
                    self.scratch.len() - 1
                });
                self.scratch[number] = Some(value);
                Home::Scratch(number)
            }
        };
        self.homes[usize::from(value)] = Some(home);
    }
}

fn value(place: Place) -> Option<u8> {
    match place {
        Place::Value(value) => Some(value),
        Place::Named(_) => None,
    }
}
