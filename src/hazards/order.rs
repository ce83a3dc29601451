//! Whether finished words keep the orders of memory that CLIF promises (`docs/memory.md`).
//!
//! A second derivation that shares nothing with what places fences (`analysis::ordering`) or keeps instructions in
//! order and has them wait (`sched`). Two halves:
//!
//! - *program order*: no access has come to the other side of an ordered one or a fence since it was lowered
//!   ([`super::program`]);
//! - *machine order*: what is ordered in the program is ordered by the machine. All paths through the words are
//!   followed with the accesses that may not have been performed, or not for everybody, on the worst of them; each pair
//!   that the page orders must have been brought in order by a scoreboard that was waited for, a MEMBAR, a meeting, or
//!   because both are atomic operations of one space.
//!
//! What of an access CLIF says is no part of a word, so that stands beside them ([`Code::accesses`]). A MEMBAR under a
//! guard counts for what has the same guard. An access that the program has on another side of a branch than the later
//! one is not before it.

use super::program::{Crossing, Event, Pairs, Program, crossings};
use super::verify::{Op, offset, operations};
use crate::analysis::graph::Graph;
use crate::emit::{Code, Noted};
use crate::isa::generated::{AccessOrder, MemScope, ld, membar};
use crate::isa::table::Effects;
use crate::isa::{Form, Optype, PInst, PReg, Register, RegisterClass, Role};
use crate::vcode::{FunctionKind, MemoryEffect, MemoryOrder};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisorderKind {
    /// An access has come to the other side of an ordered one.
    Crossed,
    /// The earlier access may not have been performed when the later one is.
    Unordered,
    /// What is performed for the block by then may not be for the device.
    NotForDevice,
    /// The later one may find something older than what was acquired.
    Stale,
    /// The word of a strong access is not STRONG.
    Weak,
}

impl fmt::Display for DisorderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DisorderKind::Crossed => "has changed sides with an access or fence",
            DisorderKind::Unordered => "does not wait until another access has been performed",
            DisorderKind::NotForDevice => "is seen by the device before an earlier access is",
            DisorderKind::Stale => "may find something older than what was acquired",
            DisorderKind::Weak => "is not STRONG",
        })
    }
}

/// Two accesses that are not in the order that CLIF promises.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disorder {
    /// What.
    pub kind: DisorderKind,
    /// Byte offset of the earlier one; none if it is one of another function, before this one was called or by one that
    /// it calls.
    pub earlier: Option<u32>,
    /// Byte offset of the later one.
    pub offset: u32,
    /// It.
    pub instruction: String,
}

impl fmt::Display for Disorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}: {} {}", self.offset, self.instruction, self.kind)?;
        match self.earlier {
            Some(earlier) => write!(f, ": {earlier:#x}"),
            None => f.write_str(": one of another function"),
        }
    }
}

/// What is not settled of an earlier access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Open(u8);

impl Open {
    /// It may not have been performed for the block.
    const ISSUED: Open = Open(1);
    /// It may not have been performed for the device.
    const DEVICE: Open = Open(1 << 1);
    /// It may have acquired what the device does not see yet.
    const RELAYED: Open = Open(1 << 2);
    /// It may have acquired what others of the device did, and the block may have kept something older.
    const KEPT: Open = Open(1 << 3);
    /// It may have read that without acquiring it.
    const READ: Open = Open(1 << 4);

    fn and(self, other: Open) -> Open {
        Open(self.0 | other.0)
    }

    fn has(self, other: Open) -> bool {
        self.0 & other.0 != 0
    }

    fn without(self, other: Open) -> Open {
        Open(self.0 & !other.0)
    }
}

/// Guards: predicates, as they are and negated.
const GUARDS: usize = 2 * RegisterClass::Predicate.hardwired() as usize;

/// The number of a guard that is not always true.
fn guard_number((reg, negated): (Option<PReg>, bool)) -> Option<usize> {
    let reg = reg.filter(|reg| reg.class() == RegisterClass::Predicate)?;
    Some(2 * usize::from(reg.number()) + usize::from(negated))
}

/// The guard that is true where this one is not.
fn opposite(guard: usize) -> usize {
    guard ^ 1
}

/// Which guards are true wherever another one is: a set for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Implications([u16; GUARDS]);

impl Implications {
    /// Whether a guard is true wherever `guard` is.
    fn has(&self, guard: usize, other: usize) -> bool {
        guard == other || self.0[guard] >> other & 1 != 0
    }

    /// The guards that are false wherever `guard` is.
    fn narrower(self, guard: usize) -> impl Iterator<Item = usize> {
        (0..GUARDS).filter(move |&other| self.has(other, guard))
    }

    /// A predicate gets a value that is true only where these guards are.
    fn define(&mut self, predicate: PReg, implied: &[usize]) {
        let Some(guard) = guard_number((Some(predicate), false)) else {
            return;
        };
        let both = 1 << guard | 1 << opposite(guard);
        self.0.iter_mut().for_each(|set| *set &= !both);
        (self.0[guard], self.0[opposite(guard)]) = (0, 0);
        for &wider in implied.iter().filter(|&&wider| both >> wider & 1 == 0) {
            self.0[guard] |= 1 << wider | self.0[wider];
            // Where the wider one is false, this one is.
            let nowhere = self.0[opposite(guard)] | 1 << opposite(guard);
            self.0[opposite(wider)] |= nowhere;
        }
    }

    /// Keeps what holds on another path as well; whether that is less.
    fn join(&mut self, other: &Implications) -> bool {
        let old = *self;
        (self.0.iter_mut().zip(other.0)).for_each(|(set, other)| *set &= other);
        *self != old
    }
}

/// An earlier access on a path: what is open, and what of that is settled for lanes with a guard, by fences or because
/// they have not made the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight {
    open: Open,
    settled: [Open; GUARDS],
}

impl Flight {
    fn new(open: Open) -> Flight {
        Flight {
            open,
            settled: [Open::default(); GUARDS],
        }
    }

    /// What is open for an instruction under a guard.
    fn open_for(&self, guard: (Option<PReg>, bool)) -> Open {
        match guard_number(guard) {
            Some(guard) => self.open.without(self.settled[guard]),
            None => self.open,
        }
    }

    /// Something is settled for lanes with a guard. A guard and its opposite are all lanes.
    fn settle(&mut self, guard: usize, settled: Open, implications: Implications) {
        for guard in implications.narrower(guard) {
            self.settled[guard] = self.settled[guard].and(settled);
            let everywhere = self.settled[guard].0 & self.settled[opposite(guard)].0;
            self.open = self.open.without(Open(everywhere));
        }
    }

    /// A predicate gets a value that is true only where these guards were.
    fn define(&mut self, predicate: PReg, implied: &[usize]) {
        let settled = implied.iter().map(|&guard| self.settled[guard]);
        let settled = settled.fold(Open::default(), Open::and);
        // What was settled for lanes with the predicate is not for those that have it from now on.
        for (negated, now) in [(false, settled), (true, Open::default())] {
            if let Some(guard) = guard_number((Some(predicate), negated)) {
                self.settled[guard] = now;
            }
        }
    }
}

/// The guards that are true wherever the predicate is that an instruction defines: inputs of a table that has no other
/// rows.
fn implied(inst: &PInst) -> SmallVec<[usize; 3]> {
    let table = inst.number(Role::Lut).filter(|_| inst.is_unguarded());
    let (Form::PLOP3_X, Some(table)) = (inst.form(), table) else {
        return SmallVec::new();
    };
    let inputs = [(Role::Pa, 0xF0_u64), (Role::Pb, 0xCC), (Role::Pc, 0xAA)];
    let needed = inputs.iter().filter(|(_, rows)| table & !rows & 0xFF == 0);
    let guard = |role: Role| {
        let negated = inst
            .operand(role)?
            .not
            .is_some_and(|not| inst.field(not) != 0);
        guard_number((inst.reg(role), negated))
    };
    needed.filter_map(|(role, _)| guard(*role)).collect()
}

/// What is known where a path has come to.
#[derive(Clone, Debug, Default)]
struct PathState {
    /// The earlier accesses, by the number of the instruction; [`OTHERS`] are those of other functions.
    flights: BTreeMap<usize, Flight>,
    implications: Implications,
}

/// Number of the accesses of other functions.
const OTHERS: usize = usize::MAX;

/// An access as the page's table sees it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    part: MemoryEffect,
    order: MemoryOrder,
    /// Whether it is to memory that the device sees.
    by_device: bool,
    /// Whether it is to memory that only the block may see.
    by_block: bool,
    label: u32,
}

/// What other functions may have done.
const OF_OTHERS: Seen = Seen {
    part: MemoryEffect::Store,
    order: MemoryOrder::Ordered,
    by_device: true,
    by_block: true,
    label: 0,
};

impl Seen {
    fn is_acquire(&self) -> bool {
        self.order == MemoryOrder::Ordered
            && matches!(self.part, MemoryEffect::Load | MemoryEffect::Atomic(_))
    }

    fn is_release(&self) -> bool {
        self.order == MemoryOrder::Ordered
            && matches!(self.part, MemoryEffect::Store | MemoryEffect::Atomic(_))
    }

    fn is_weak(&self, part: MemoryEffect) -> bool {
        self.order == MemoryOrder::Weak && self.part == part
    }

    /// Whether it must have been performed before `later` is.
    fn is_before(&self, later: &Seen) -> bool {
        if let (MemoryEffect::Atomic(a), MemoryEffect::Atomic(b)) = (self.part, later.part)
            && a.is_ordered_with(b)
        {
            // The machine sees to it.
            return false;
        }
        let both = self.order == MemoryOrder::Ordered && later.order == MemoryOrder::Ordered;
        both || self.is_acquire() || later.is_release()
    }
}

/// The function with what is said of its words.
struct Check<'a> {
    ops: &'a [Op],
    /// By instruction.
    seen: Vec<Option<Seen>>,
    /// Which accesses may be before which as lowered, if that is known.
    pairs: Option<Pairs>,
    /// Threads of the block may have done what the device does not see yet: weak stores.
    stores: bool,
    /// Threads of the block may look at what it has kept: weak loads.
    loads: bool,
}

/// Everything that is out of order; `lowered` is the program as it was lowered. Nothing where words are illegal, which
/// [`super::verify()`] says.
pub fn disorders(code: &Code, lowered: Option<&Program>) -> Vec<Disorder> {
    let mut hazards = BTreeSet::new();
    let ops = match code.accesses.is_empty() {
        true => Vec::new(),
        false => operations(code, &mut hazards),
    };
    if ops.is_empty() || !hazards.is_empty() {
        return Vec::new();
    }
    let mut found = in_machine(code, &ops, lowered);
    if let Some(lowered) = lowered {
        let crossed = crossings(lowered, &program(code, &ops));
        found.extend(crossed.iter().map(|crossing| disorder_of(&ops, crossing)));
    }
    found.into_iter().collect()
}

/// Whether the machine keeps the orders of some operations.
pub(super) fn holds(code: &Code, ops: &[Op]) -> bool {
    code.accesses.is_empty() || in_machine(code, ops, None).is_empty()
}

/// The accesses of finished words, if those are legal.
#[cfg(test)]
pub(super) fn program_of(code: &Code) -> Option<Program> {
    let mut hazards = BTreeSet::new();
    let ops = operations(code, &mut hazards);
    hazards.is_empty().then(|| program(code, &ops))
}

fn disorder_of(ops: &[Op], crossing: &Crossing) -> Disorder {
    let [a, b] = [crossing.ordered, crossing.other].map(|event| event.position as usize);
    let later = a.max(b);
    Disorder {
        kind: DisorderKind::Crossed,
        earlier: Some(offset(a.min(b))),
        offset: offset(later),
        instruction: ops[later].inst.to_string(),
    }
}

/// The accesses of finished words and the ways between them.
fn program(code: &Code, ops: &[Op]) -> Program {
    let mut starts = vec![false; ops.len()];
    starts[0] = true;
    for (index, op) in ops.iter().enumerate() {
        if op.next[..] != [index + 1] {
            op.next.iter().for_each(|&next| starts[next] = true);
            if let Some(behind) = starts.get_mut(index + 1) {
                *behind = true;
            }
        }
    }
    let mut block = 0;
    let blocks: Vec<usize> = (starts.iter().enumerate())
        .map(|(index, &start)| {
            block += usize::from(start && index > 0);
            block
        })
        .collect();
    let mut graph = Graph::new(block + 1);
    for (index, op) in ops.iter().enumerate() {
        let is_last = blocks.get(index + 1) != Some(&blocks[index]);
        if is_last {
            (op.next.iter()).for_each(|&next| graph.add_edge(blocks[index], blocks[next]));
        }
    }
    let events = code.accesses.iter().filter_map(|noted| {
        let position = noted.position as usize;
        let part = MemoryEffect::of(&ops[position].inst)?;
        Some(Event::new(
            noted.label,
            part,
            noted.order,
            (blocks[position], position),
        ))
    });
    Program::new(events.collect(), graph)
}

fn in_machine(code: &Code, ops: &[Op], lowered: Option<&Program>) -> BTreeSet<Disorder> {
    let mut seen = vec![None; ops.len()];
    let mut found = BTreeSet::new();
    for noted in &code.accesses {
        let position = noted.position as usize;
        let inst = &ops[position].inst;
        seen[position] = MemoryEffect::of(inst).map(|part| see(inst, part, noted));
        if noted.order != MemoryOrder::Weak && is_weak_word(inst) {
            found.insert(Disorder {
                kind: DisorderKind::Weak,
                earlier: Some(offset(position)),
                offset: offset(position),
                instruction: inst.to_string(),
            });
        }
    }
    let calls = |op: &Op| op.inst.optype().info().effects.contains(Effects::CALL);
    let alone = matches!(code.kind, FunctionKind::Kernel(_)) && !ops.iter().any(calls);
    let weak = |part| {
        let mut all = seen.iter().flatten();
        all.any(|s: &Seen| s.by_device && s.is_weak(part))
    };
    let check = Check {
        ops,
        stores: !alone || weak(MemoryEffect::Store),
        loads: !alone || weak(MemoryEffect::Load),
        pairs: lowered.map(Program::pairs),
        seen,
    };
    let mut start = PathState::default();
    if !matches!(code.kind, FunctionKind::Kernel(_)) {
        start.flights.insert(OTHERS, check.others());
    }
    check.follow(start, &mut found);
    found
}

/// An access by its word and what CLIF says of it.
fn see(inst: &PInst, part: MemoryEffect, noted: &Noted) -> Seen {
    let effects = inst.optype().info().effects;
    let generic = effects.contains(Effects::GENERIC);
    Seen {
        part,
        order: noted.order,
        by_device: generic || effects.contains(Effects::GLOBAL),
        // Ordered REDs are of global memory.
        by_block: generic && inst.optype() != Optype::RED || effects.contains(Effects::SHARED),
        label: noted.label,
    }
}

/// Whether a load or store is one that is not performed for all at one time.
fn is_weak_word(inst: &PInst) -> bool {
    let plain = matches!(
        MemoryEffect::of(inst),
        Some(MemoryEffect::Load | MemoryEffect::Store)
    );
    plain && ld::ORDER.get(inst.word()) != Some(AccessOrder::Strong)
}

/// The scope of a fence: the device or the block.
fn is_device_fence(inst: &PInst) -> bool {
    inst.optype() == Optype::MEMBAR && membar::SCOPE.get(inst.word()) != Some(MemScope::Cta)
}

impl Check<'_> {
    /// What other functions may have left open.
    fn others(&self) -> Flight {
        let open = [Open::DEVICE, Open::RELAYED, Open::KEPT, Open::READ];
        Flight::new(open.into_iter().fold(Open::ISSUED, Open::and))
    }

    fn of(&self, index: usize) -> Seen {
        self.seen.get(index).copied().flatten().unwrap_or(OF_OTHERS)
    }

    /// Follows all paths until nothing new is found.
    fn follow(&self, start: PathState, found: &mut BTreeSet<Disorder>) {
        let mut entry: Vec<Option<PathState>> = vec![None; self.ops.len()];
        entry[0] = Some(start);
        let mut entered = vec![false; self.ops.len()];
        for (index, op) in self.ops.iter().enumerate() {
            if op.next[..] != [index + 1] {
                op.next.iter().for_each(|&next| entered[next] = true);
            }
        }
        let mut work = BTreeSet::from([0]);
        while let Some(index) = work.pop_first() {
            let mut state = entry[index].clone().unwrap_or_default();
            let mut at = index;
            loop {
                self.step(at, &mut state, found);
                let next = &self.ops[at].next;
                // A place that only the one before leads to has no state of its own.
                if let [only] = next[..]
                    && only == at + 1
                    && !entered[only]
                {
                    at = only;
                    continue;
                }
                for &to in next {
                    if merge(&mut entry[to], &state) {
                        work.insert(to);
                    }
                }
                break;
            }
        }
    }

    /// Passes an instruction.
    fn step(&self, index: usize, state: &mut PathState, found: &mut BTreeSet<Disorder>) {
        let op = &self.ops[index];
        let inst = &op.inst;
        for (&earlier, flight) in &mut state.flights {
            let board = self.ops.get(earlier).and_then(|op| op.control.write);
            if op.waits_for(board) {
                flight.open = flight.open.without(Open::ISSUED);
            }
        }
        let guard = inst.guard();
        let seen = self.seen[index];
        let part = MemoryEffect::of(inst);
        for (&earlier, flight) in &state.flights {
            let open = flight.open_for(guard);
            let kind = match (seen, part) {
                (
                    Some(later),
                    Some(MemoryEffect::Load | MemoryEffect::Store | MemoryEffect::Atomic(_)),
                ) => self.violation(&self.of(earlier), open, &later),
                // One that stands there for an access is nothing that other threads rely on.
                (Some(fence), Some(MemoryEffect::Fence))
                    if fence.order != MemoryOrder::Ordered
                        && !is_device_fence(inst)
                        && self.loads =>
                {
                    let kept = Open::KEPT.and(Open::READ);
                    open.has(kept).then_some(DisorderKind::Stale)
                }
                _ => None,
            };
            if let Some(kind) = kind
                && self.is_before(earlier, index)
            {
                found.insert(Disorder {
                    kind,
                    earlier: (earlier != OTHERS).then(|| offset(earlier)),
                    offset: offset(index),
                    instruction: inst.to_string(),
                });
            }
        }
        if part == Some(MemoryEffect::Fence) {
            self.fence(index, state);
        } else if let Some(seen) = seen {
            let mut flight = Flight::new(self.opened(inst, &seen));
            if let Some(guard) = guard_number(guard) {
                // Other lanes do not make it.
                flight.settle(opposite(guard), flight.open, state.implications);
            }
            merge_one(&mut state.flights, index, flight);
        }
        if inst.optype().info().effects.contains(Effects::CALL) {
            merge_one(&mut state.flights, OTHERS, self.others());
        }
        let implied = implied(inst);
        for defined in inst.definitions() {
            let flights = state.flights.values_mut();
            flights.for_each(|flight| flight.define(defined, &implied));
            state.implications.define(defined, &implied);
        }
        state
            .flights
            .retain(|_, flight| flight.open != Open::default());
    }

    /// Whether the program has an access before another on some way. Of what is not known it is assumed.
    fn is_before(&self, earlier: usize, later: usize) -> bool {
        let Some(pairs) = &self.pairs else {
            return true;
        };
        let [a, b] = [earlier, later].map(|index| self.of(index).label);
        let relates =
            |seen: Seen| seen.order == MemoryOrder::Ordered || seen.part == MemoryEffect::Fence;
        let known = relates(self.of(earlier)) || relates(self.of(later));
        a == 0 || b == 0 || !known || pairs.has(a, b)
    }

    /// What is wrong if `later` comes while something of `earlier` is open.
    fn violation(&self, earlier: &Seen, open: Open, later: &Seen) -> Option<DisorderKind> {
        let releases = later.is_release() && later.by_device;
        if open.has(Open::ISSUED) && earlier.is_before(later) {
            Some(DisorderKind::Unordered)
        } else if releases && (open.has(Open::DEVICE) || open.has(Open::RELAYED) && self.stores) {
            Some(DisorderKind::NotForDevice)
        } else {
            // Others of the block will be ordered behind a release for the block.
            let hands_on = later.is_release() && !later.by_device && self.loads;
            let reads = later.is_weak(MemoryEffect::Load) && later.by_device;
            (open.has(Open::KEPT) && (reads || hands_on)).then_some(DisorderKind::Stale)
        }
    }

    /// What an access leaves open.
    fn opened(&self, inst: &PInst, seen: &Seen) -> Open {
        let mut open = Open::ISSUED;
        if seen.is_weak(MemoryEffect::Store) && seen.by_device {
            open = open.and(Open::DEVICE);
        }
        if seen.is_acquire() {
            if seen.by_device {
                open = open.and(Open::KEPT);
            }
            if seen.by_block {
                open = open.and(Open::RELAYED);
            }
        } else if seen.order == MemoryOrder::Relaxed
            && seen.by_device
            && inst.definitions().next().is_some()
        {
            open = open.and(Open::READ);
        }
        open
    }

    /// Settles what a fence does.
    fn fence(&self, index: usize, state: &mut PathState) {
        let inst = &self.ops[index].inst;
        let device = is_device_fence(inst);
        let settled = match device {
            true => Open(u8::MAX),
            false => Open::ISSUED,
        };
        for flight in state.flights.values_mut() {
            match guard_number(inst.guard()) {
                None if inst.is_unguarded() => flight.open = flight.open.without(settled),
                None => {}
                Some(guard) => flight.settle(guard, settled, state.implications),
            }
        }
        if !device && self.stores {
            merge_one(&mut state.flights, index, Flight::new(Open::RELAYED));
        }
    }
}

/// Adds a flight to those of an access.
fn merge_one(flights: &mut BTreeMap<usize, Flight>, index: usize, flight: Flight) -> bool {
    let Some(old) = flights.get_mut(&index) else {
        flights.insert(index, flight);
        return true;
    };
    let open = old.open.and(flight.open);
    // What is not open on a path is settled there for all lanes.
    let by = |flight: &Flight, guard: usize| flight.settled[guard].0 | !flight.open.0;
    let both = |guard: usize| Open(open.0 & by(old, guard) & by(&flight, guard));
    let settled = std::array::from_fn(both);
    let joined = Flight { open, settled };
    joined != std::mem::replace(old, joined)
}

/// Joins what another path brings; whether that is worse.
fn merge(into: &mut Option<PathState>, from: &PathState) -> bool {
    let Some(old) = into else {
        *into = Some(from.clone());
        return true;
    };
    let mut changed = old.implications.join(&from.implications);
    for (&index, &flight) in &from.flights {
        changed |= merge_one(&mut old.flights, index, flight);
    }
    changed
}
