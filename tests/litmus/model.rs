//! What a litmus test may leave, by axioms: all executions are enumerated, and those kept that the model allows.
//!
//! An execution says for each read which write it reads from, and for each location in which order it is written. It is
//! allowed if it is consistent in the sense of RC11 (Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing sequential
//! consistency in C/C++11", 2017) with the scopes of PTX (Lustig, Sahasrabuddhe and Giroux, "A formal analysis of the
//! NVIDIA PTX memory consistency model", 2019): a fence of block scope synchronises with threads of its block only.
//! Unlike in RC11, and as in PTX, a load may read from a store that depends on it in no way and comes later.
//!
//! Plain accesses count as relaxed ones. This shares nothing with the simulator and the compiler but the program.

use crate::shapes::{Kind, Order, Program, Step};
use std::collections::BTreeSet;

/// An event: a step of a thread, or what a location holds first.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// None for an initial write.
    thread: Option<usize>,
    step: Step,
    /// The location of an access.
    location: Option<usize>,
    reads: bool,
    writes: bool,
}

/// A relation between at most 32 events, by rows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Relation(Vec<u32>);

impl Relation {
    fn new(count: usize, holds: impl Fn(usize, usize) -> bool) -> Relation {
        let row = |a: usize| {
            (0..count)
                .filter(|b| holds(a, *b))
                .fold(0, |r, b| r | 1 << b)
        };
        Relation((0..count).map(row).collect())
    }

    fn has(&self, a: usize, b: usize) -> bool {
        self.0[a] >> b & 1 != 0
    }

    fn or(&self, other: &Relation) -> Relation {
        Relation(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }

    /// First the one, then the other.
    fn then(&self, other: &Relation) -> Relation {
        let row = |row: &u32| {
            let through = (0..self.0.len()).filter(|b| row >> b & 1 != 0);
            through.fold(0, |r, b| r | other.0[b])
        };
        Relation(self.0.iter().map(row).collect())
    }

    fn closure(&self) -> Relation {
        let mut all = self.clone();
        loop {
            let more = all.or(&all.then(&all));
            if more == all {
                return all;
            }
            all = more;
        }
    }

    fn identity(count: usize) -> Relation {
        Relation::new(count, |a, b| a == b)
    }

    fn is_irreflexive(&self) -> bool {
        (0..self.0.len()).all(|a| !self.has(a, a))
    }

    /// Between events of which the first is one of `from`, the second one of `to`.
    fn between(&self, from: impl Fn(usize) -> bool, to: impl Fn(usize) -> bool) -> Relation {
        Relation::new(self.0.len(), |a, b| self.has(a, b) && from(a) && to(b))
    }
}

fn events(program: &Program) -> Vec<Event> {
    let initial = |location| Event {
        thread: None,
        step: Step::Access(location, Kind::Store(0), Order::Plain),
        location: Some(location),
        reads: false,
        writes: true,
    };
    let mut events: Vec<Event> = (0..program.locations()).map(initial).collect();
    for (thread, steps) in program.threads.iter().enumerate() {
        events.extend(steps.iter().map(|&step| {
            let (location, reads, writes) = match step {
                Step::Access(location, kind, _) => {
                    let reads = !matches!(kind, Kind::Store(_));
                    (Some(location), reads, kind != Kind::Load)
                }
                Step::Fence | Step::BlockFence | Step::Barrier => (None, false, false),
            };
            Event {
                thread: Some(thread),
                step,
                location,
                reads,
                writes,
            }
        }));
    }
    events
}

/// The value that a write leaves where it finds another.
fn written(kind: Kind, old: u32) -> u32 {
    match kind {
        Kind::Load => old,
        Kind::Store(value) | Kind::Exchange(value, _) => value,
        Kind::Add(value, _) => old.wrapping_add(value),
        Kind::Swap(expected, new) => {
            if old == expected {
                new
            } else {
                old
            }
        }
    }
}

fn kind(event: &Event) -> Option<Kind> {
    match event.step {
        Step::Access(_, kind, _) => Some(kind),
        _ => None,
    }
}

fn is_strong(event: &Event) -> bool {
    event.thread.is_some() && matches!(event.step, Step::Access(_, _, Order::Strong))
}

/// What stays the same in all executions of a program.
struct Model<'a> {
    program: &'a Program,
    events: Vec<Event>,
    /// Sequenced before.
    sb: Relation,
    one_block: bool,
}

/// Outcomes that the program may have.
pub fn allowed(program: &Program) -> BTreeSet<Vec<u32>> {
    let events = events(program);
    let count = events.len();
    assert!(count <= 32, "{program}");
    let sb = Relation::new(count, |a, b| match (events[a].thread, events[b].thread) {
        (None, Some(_)) => true,
        (Some(one), Some(other)) => one == other && a < b,
        (_, None) => false,
    });
    let threads = 0..program.threads.len();
    let model = Model {
        program,
        sb,
        one_block: threads.clone().all(|t| program.placement.block(t) == 0),
        events,
    };
    let mut outcomes = BTreeSet::new();
    let mut orders = vec![Vec::new()];
    for location in 0..program.locations() {
        let writes = |e: &usize| {
            let event = &model.events[*e];
            event.writes && event.location == Some(location) && event.thread.is_some()
        };
        let writes: Vec<usize> = (0..count).filter(writes).collect();
        let all = permutations(&writes);
        let longer = |order: &Vec<Vec<usize>>| {
            let order = order.clone();
            all.iter().map(move |last| {
                let mut order = order.clone();
                order.push([&[location][..], last].concat());
                order
            })
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    let reads: Vec<usize> = (0..count).filter(|e| model.events[*e].reads).collect();
    for order in &orders {
        model.choose(order, &reads, &mut vec![usize::MAX; count], &mut outcomes);
    }
    outcomes
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let with = |first: usize| {
        let rest: Vec<usize> = items.iter().copied().filter(|i| *i != first).collect();
        let rest = permutations(&rest).into_iter();
        rest.map(move |rest| [&[first][..], &rest].concat())
    };
    items.iter().flat_map(|first| with(*first)).collect()
}

impl Model<'_> {
    /// Tries all writes that the reads may read from.
    fn choose(
        &self,
        order: &[Vec<usize>],
        reads: &[usize],
        from: &mut Vec<usize>,
        outcomes: &mut BTreeSet<Vec<u32>>,
    ) {
        let Some((&read, rest)) = reads.split_first() else {
            if let Some(outcome) = self.outcome(order, from) {
                outcomes.insert(outcome);
            }
            return;
        };
        let event = &self.events[read];
        let location = event.location.unwrap_or(0);
        for (place, &write) in order[location].iter().enumerate() {
            // An atomic comes directly behind what it reads.
            let next = order[location].get(place + 1);
            if write != read && (!event.writes || next == Some(&read)) {
                from[read] = write;
                self.choose(order, rest, from, outcomes);
            }
        }
    }

    /// The outcome of an execution if it is allowed.
    fn outcome(&self, order: &[Vec<usize>], from: &[usize]) -> Option<Vec<u32>> {
        let count = self.events.len();
        let mut values = vec![None; count];
        // Atomics take their value from others, so in as many rounds as there are events all are known.
        for _ in 0..count {
            for (index, event) in self.events.iter().enumerate() {
                let old = if event.reads {
                    values[from[index]]
                } else {
                    Some(0)
                };
                let kind = kind(event);
                values[index] = old.zip(kind).map(|(old, kind)| written(kind, old));
            }
        }
        let mut outcome = Vec::new();
        for (index, event) in self.events.iter().enumerate() {
            if event.step.is_read() {
                outcome.push(values[from[index]]?);
            }
        }
        for order in order {
            outcome.push(values[*order.last()?]?);
        }
        self.is_consistent(order, from).then_some(outcome)
    }

    fn is_consistent(&self, order: &[Vec<usize>], from: &[usize]) -> bool {
        let (events, count) = (&self.events, self.events.len());
        let place = |event: usize| {
            let location = events[event].location?;
            let place = order[location].iter().position(|e| *e == event)?;
            Some((location, place))
        };
        let mo = Relation::new(count, |a, b| match (place(a), place(b)) {
            (Some((x, a)), Some((y, b))) => x == y && a < b,
            _ => false,
        });
        let rf = Relation::new(count, |a, b| events[b].reads && from[b] == a);
        // A read comes before the writes behind the one that it reads from.
        let rb = Relation::new(count, |a, b| {
            events[a].reads && a != b && mo.has(from[a], b)
        });
        let eco = rf.or(&mo).or(&rb).closure();
        let hb = self.sb.or(&self.synchronises(&rf)).closure();
        let identity = Relation::identity(count);
        let coherent = hb.is_irreflexive() && hb.then(&eco.or(&identity)).is_irreflexive();
        coherent && self.is_sequential(&hb, &eco, &mo, &rb)
    }

    /// Whether a fence, or an atomic, of one event reaches the thread of another.
    fn reaches(&self, a: usize, b: usize) -> bool {
        let block = |e: usize| {
            self.events[e]
                .thread
                .map(|t| self.program.placement.block(t))
        };
        let is_block = |e: usize| matches!(self.events[e].step, Step::BlockFence);
        block(a) == block(b) || !is_block(a) && !is_block(b)
    }

    fn is_fence(&self, event: usize) -> bool {
        matches!(self.events[event].step, Step::Fence | Step::BlockFence)
    }

    /// Synchronises with.
    fn synchronises(&self, rf: &Relation) -> Relation {
        let (events, count) = (&self.events, self.events.len());
        let identity = Relation::identity(count);
        // A write and the atomics that read from it, one after another.
        let modify = |e: usize| events[e].reads && events[e].writes;
        let sequence = rf.between(|_| true, modify).closure().or(&identity);
        let read = sequence.then(rf).between(|e| events[e].writes, |_| true);
        let fenced = |fence: usize, event: usize| {
            self.is_fence(fence) && self.sb.has(fence, event) && events[event].writes
        };
        let releases = Relation::new(count, |a, b| {
            a == b && is_strong(&events[a]) || fenced(a, b)
        });
        let acquires = Relation::new(count, |a, b| {
            let fence = self.is_fence(b) && self.sb.has(a, b) && events[a].reads;
            a == b && is_strong(&events[a]) || fence
        });
        let synchronises = releases.then(&read).then(&acquires);
        let synchronises =
            Relation::new(count, |a, b| synchronises.has(a, b) && self.reaches(a, b));
        // The n-th barrier of a thread meets the n-th of the others of its block.
        let number = |e: usize| {
            let before = (0..e).filter(|b| self.sb.has(*b, e));
            before.filter(|b| events[*b].step == Step::Barrier).count()
        };
        let is_barrier = |e: usize| events[e].step == Step::Barrier;
        let meets = |a: usize, b: usize| {
            is_barrier(a) && is_barrier(b) && number(a) == number(b) && self.reaches(a, b)
        };
        // What comes before one of them comes before what is behind the other.
        let barriers = Relation::new(count, |a, b| {
            let before = (0..count).filter(|m| self.sb.has(a, *m) && is_barrier(*m));
            before
                .into_iter()
                .any(|m| (0..count).any(|n| m != n && meets(m, n) && self.sb.has(n, b)))
        });
        synchronises.or(&barriers)
    }

    /// Whether there is an order of all sequentially consistent accesses and fences.
    fn is_sequential(&self, hb: &Relation, eco: &Relation, mo: &Relation, rb: &Relation) -> bool {
        let (events, count) = (&self.events, self.events.len());
        let identity = Relation::identity(count);
        let fence = |e: usize| match events[e].step {
            Step::Fence => true,
            // Where there is no other block, those are all.
            Step::BlockFence => self.one_block,
            _ => false,
        };
        let same = |a: usize, b: usize| {
            events[a].location.is_some() && events[a].location == events[b].location
        };
        let elsewhere = Relation::new(count, |a, b| self.sb.has(a, b) && !same(a, b));
        let here = Relation::new(count, |a, b| hb.has(a, b) && same(a, b));
        let scb = self
            .sb
            .or(&elsewhere.then(hb).then(&elsewhere))
            .or(&here)
            .or(mo)
            .or(rb);
        let maybe = hb.or(&identity);
        let strong = Relation::new(count, |a, b| a == b && is_strong(&events[a]));
        let from = strong.or(&maybe.between(fence, |_| true));
        let to = strong.or(&maybe.between(|_| true, fence));
        let base = from.then(&scb).then(&to);
        let fences = hb.or(&hb.then(eco).then(hb)).between(fence, fence);
        base.or(&fences).closure().is_irreflexive()
    }
}
