//! What the machine may leave: all executions of a test's words, by the table "What the machine gives" of
//! `docs/memory.md`.
//!
//! A second derivation of what the simulator does at random (`src/sim/weak`), of which it uses nothing. A [`State`]
//! says how far each thread has come, which accesses it has issued that are not performed, and what memory is for whom.
//! From each state all steps are tried: an access is performed, a weak store that was performed for a block is
//! performed for the device, a MEMBAR.GL. To issue an access, to wait, a MEMBAR.CTA and a meeting change nothing that
//! others see, and forbid nothing that could have come before: they happen as soon as they may.

use crate::lane::Value;
use crate::words::{Access, Kind, What, Words};
use std::collections::{BTreeSet, HashSet};

/// Global memory as a block sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Block {
    /// Weak stores that were performed for the block and not for the device: location and value, first to last.
    stores: Vec<(usize, u32)>,
    /// By location, the oldest of the values it had that the block may have kept.
    since: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// By thread, how many of its events are over.
    passed: Vec<usize>,
    /// Accesses that are issued and not performed, and those that are performed: masks.
    pending: u32,
    performed: u32,
    /// By access, what it has read, if the outcome has that.
    read: Vec<u32>,
    /// By location, the values that the device had, to the last.
    device: Vec<Vec<u32>>,
    /// By block and location.
    shared: Vec<Vec<u32>>,
    blocks: Vec<Block>,
}

/// The search.
struct Search<'a> {
    words: &'a Words,
    /// By thread, the accesses it makes.
    own: Vec<u32>,
    seen: HashSet<State>,
    work: Vec<State>,
}

/// States of a test, at most.
const STATES: usize = 3_000_000;

/// What the machine may leave.
pub fn outcomes(words: &Words, locations: usize) -> BTreeSet<Vec<u32>> {
    let blocks = 1 + words.blocks.iter().max().copied().unwrap_or(0);
    assert!(words.accesses.len() <= 32, "accesses");
    let own = |thread| {
        let accesses = words.accesses.iter().enumerate();
        let own = accesses.filter(|(_, access)| access.thread == thread);
        own.fold(0, |mask, (index, _)| mask | 1 << index)
    };
    let mut search = Search {
        words,
        own: (0..words.threads.len()).map(own).collect(),
        seen: HashSet::new(),
        work: Vec::new(),
    };
    let block = Block {
        stores: Vec::new(),
        since: vec![0; locations],
    };
    search.add(State {
        passed: vec![0; words.threads.len()],
        pending: 0,
        performed: 0,
        read: vec![0; words.accesses.len()],
        device: vec![vec![0]; locations],
        shared: vec![vec![0; locations]; blocks],
        blocks: vec![block; blocks],
    });
    let mut outcomes = BTreeSet::new();
    while let Some(state) = search.work.pop() {
        if !search.steps(&state) {
            outcomes.insert(search.outcome(&state, locations));
        }
    }
    outcomes
}

fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |bit| mask >> bit & 1 != 0)
}

impl State {
    /// All stores of a block to a location are performed for the device.
    fn drain(&mut self, block: usize, location: usize) {
        while self.drain_one(block, location) {}
    }

    /// The first of them is; whether there was one.
    fn drain_one(&mut self, block: usize, location: usize) -> bool {
        let stores = &mut self.blocks[block].stores;
        let Some(first) = stores.iter().position(|store| store.0 == location) else {
            return false;
        };
        let (_, value) = stores.remove(first);
        self.write(block, location, value);
        true
    }

    /// A value for all threads, which the block knows of.
    fn write(&mut self, block: usize, location: usize, value: u32) {
        self.device[location].push(value);
        self.refresh(block, location);
    }

    /// The block has seen what the device has.
    fn refresh(&mut self, block: usize, location: usize) {
        self.blocks[block].since[location] = self.device[location].len() - 1;
    }

    fn now(&self, location: usize) -> u32 {
        self.device[location].last().copied().unwrap_or(0)
    }
}

/// What an access leaves where it finds something; none if it writes nothing.
fn written(kind: Kind, old: u32) -> Option<u32> {
    match kind {
        Kind::Load => None,
        Kind::Store(value) | Kind::Exchange(value) => Some(value),
        Kind::Add(value) => Some(old.wrapping_add(value)),
        Kind::Swap(expected, new) => (old == expected).then_some(new),
    }
}

impl Search<'_> {
    /// A state to go on from, when all has happened that changes nothing.
    fn add(&mut self, mut state: State) {
        while self.issue(&mut state) {}
        self.forget(&mut state);
        if !self.seen.contains(&state) {
            assert!(self.seen.len() < STATES, "states");
            self.seen.insert(state.clone());
            self.work.push(state);
        }
    }

    /// What nobody can look at any more makes no difference.
    fn forget(&self, state: &mut State) {
        let accesses = self.words.accesses.iter().enumerate();
        let mut looks = vec![vec![false; state.device.len()]; state.blocks.len()];
        for (index, access) in accesses {
            let is_over = state.performed >> index & 1 != 0;
            if !is_over && access.kind == Kind::Load && !access.strong && !access.shared {
                looks[self.words.blocks[access.thread]][access.location] = true;
            }
        }
        for location in 0..state.device.len() {
            let last = state.device[location].len() - 1;
            for (block, looks) in state.blocks.iter_mut().zip(&looks) {
                if !looks[location] {
                    block.since[location] = last;
                }
            }
            let since = state.blocks.iter().map(|block| block.since[location]);
            let oldest = since.min().unwrap_or(last);
            state.device[location].drain(..oldest);
            for block in &mut state.blocks {
                block.since[location] -= oldest;
            }
        }
    }

    /// The next event of a thread, if all its threads have come to it and it waits for nothing.
    fn next(&self, state: &State, thread: usize) -> Option<usize> {
        let next = |thread: usize| {
            self.words.threads[thread]
                .get(state.passed[thread])
                .copied()
        };
        let index = next(thread)?;
        let event = &self.words.events[index];
        let mut threads = bits(event.threads.into());
        let may = threads.all(|thread| {
            let own = self.own[thread] & state.pending;
            let all = match event.what {
                What::Fence { by, .. } => by >> thread & 1 != 0,
                What::Meeting => true,
                What::Access(_) => false,
            };
            next(thread) == Some(index) && !(all && own != 0) && own & event.waits == 0
        });
        may.then_some(index)
    }

    fn pass(&self, state: &mut State, event: usize) {
        bits(self.words.events[event].threads.into()).for_each(|thread| state.passed[thread] += 1);
    }

    /// Passes an event that changes no memory; whether there was one.
    fn issue(&self, state: &mut State) -> bool {
        for thread in 0..self.words.threads.len() {
            let Some(event) = self.next(state, thread) else {
                continue;
            };
            match &self.words.events[event].what {
                What::Fence { device: true, by } if *by != 0 => continue,
                What::Access(made) => made.iter().for_each(|a| state.pending |= 1 << a),
                What::Fence { .. } | What::Meeting => {}
            }
            self.pass(state, event);
            return true;
        }
        false
    }

    /// Tries all steps; whether there was one.
    fn steps(&mut self, state: &State) -> bool {
        let mut found = false;
        for access in bits(state.pending) {
            found |= self.perform(state, access);
        }
        for block in 0..state.blocks.len() {
            for location in 0..state.device.len() {
                let mut next = state.clone();
                if next.drain_one(block, location) {
                    self.add(next);
                    found = true;
                }
            }
        }
        for thread in 0..self.words.threads.len() {
            // What is left for a step is a MEMBAR.GL.
            if let Some(event) = self.next(state, thread) {
                let mut next = state.clone();
                self.pass(&mut next, event);
                self.fence(&mut next, event);
                self.add(next);
                found = true;
            }
        }
        found
    }

    fn fence(&self, state: &mut State, event: usize) {
        let What::Fence { by, .. } = self.words.events[event].what else {
            return;
        };
        for thread in bits(by.into()) {
            let block = self.words.blocks[thread];
            for location in 0..state.device.len() {
                state.drain(block, location);
                state.refresh(block, location);
            }
        }
    }

    /// The last access of its thread that is pending, was issued before, and shares its bytes.
    fn same_place(&self, state: &State, index: usize) -> Option<usize> {
        let access = &self.words.accesses[index];
        let place = |a: &Access| (a.location, a.shared);
        let earlier = bits(self.own[access.thread] & state.pending).filter(|a| *a < index);
        let same = earlier.filter(|a| place(&self.words.accesses[*a]) == place(access));
        same.last()
    }

    /// Whether it has to be performed behind an atomic of its thread that is pending.
    fn follows_atomic(&self, state: &State, index: usize) -> bool {
        let access = &self.words.accesses[index];
        let mut earlier = bits(self.own[access.thread] & state.pending).filter(|a| *a < index);
        earlier.any(|a| {
            let other = &self.words.accesses[a];
            other.global_order && access.global_order || other.shared_order && access.shared_order
        })
    }

    /// Performs an access in all ways; whether there is one.
    fn perform(&mut self, state: &State, index: usize) -> bool {
        let words = self.words;
        let access = &words.accesses[index];
        let done = |value: u32| {
            let mut next = state.clone();
            next.pending &= !(1 << index);
            next.performed |= 1 << index;
            if access.is_read {
                next.read[index] = value;
            }
            next
        };
        let weak_load = access.kind == Kind::Load && !access.strong;
        if let Some(earlier) = self.same_place(state, index) {
            if let (Kind::Store(value), true) = (words.accesses[earlier].kind, weak_load) {
                self.add(done(value));
                return true;
            }
            return false;
        }
        if self.follows_atomic(state, index) {
            return false;
        }
        let (block, location) = (words.blocks[access.thread], access.location);
        if access.shared {
            let old = state.shared[block][location];
            let mut next = done(old);
            if let Some(value) = written(access.kind, old) {
                next.shared[block][location] = value;
            }
            self.add(next);
            return true;
        }
        if access.strong {
            let mut drained = state.clone();
            drained.drain(block, location);
            let old = drained.now(location);
            let mut next = done(old);
            next.drain(block, location);
            next.refresh(block, location);
            if let Some(value) = written(access.kind, old) {
                next.write(block, location, value);
            }
            self.add(next);
            return true;
        }
        if let Some(value) = written(access.kind, 0) {
            let mut next = done(0);
            next.blocks[block].stores.push((location, value));
            self.add(next);
            return true;
        }
        let stores = state.blocks[block].stores.iter();
        if let Some((_, value)) = stores.rev().find(|store| store.0 == location) {
            self.add(done(*value));
            return true;
        }
        for version in state.blocks[block].since[location]..state.device[location].len() {
            let mut next = done(state.device[location][version]);
            next.blocks[block].since[location] = version;
            self.add(next);
        }
        true
    }

    /// What is left when all is over.
    fn outcome(&self, state: &State, locations: usize) -> Vec<u32> {
        let results = &self.words.results;
        let value = |(index, result): (usize, &Option<Value>)| match *result {
            Some(Value::Number(number)) => number,
            Some(Value::Read(access)) => state.read[access],
            None => state.now(index + locations - results.len()),
        };
        let over = (0..self.words.threads.len())
            .all(|thread| state.passed[thread] == self.words.threads[thread].len());
        assert!(over && state.pending == 0, "threads wait for each other");
        results.iter().enumerate().map(value).collect()
    }
}
