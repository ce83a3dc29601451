//! Addresses of other threads' stacks.
//!
//! A generic address of local memory means the memory of the thread that uses it, and it is the same number in every
//! thread. So a pointer to a slot that one thread gives to another means something else there. What tells is the high
//! word, that of the window. A *mark* says which thread gave a high word away, and where: a store of such a word to
//! shared or global memory makes one at the place, a load carries it into a register, and from there it goes through
//! moves, sums, choices, shuffles, uniform registers and the own stack. An access by a marked address that is another
//! thread's is a finding.
//!
//! A mark goes on from an instruction only if its result is such a word and exactly one of its sources is; of SEL, the
//! one that is chosen. Where two are, where an address is taken apart and put together otherwise, or passed on by an
//! atomic, the mark is lost. Losing one hides a mistake, it never makes one up: comparing such addresses and keeping
//! them for their owner is no access.

use super::{Checker, Spot, Touched};
use crate::abi::LOCAL_WINDOW;
use crate::isa::register::RegisterClass;
use crate::isa::{Optype, Role};
use crate::launch::{AccessKind, FindingKind, Resource, Window};
use crate::sim::decode::action::Action;
use crate::sim::decode::program::Op;
use crate::sim::memory::Location;
use crate::sim::warp::Warp;
use crate::sim::warp::registers::{Column, GENERAL, LANES, Registers, lanes};
use hashbrown::HashMap;

/// The high word of every generic address of local memory.
const HIGH: u32 = (LOCAL_WINDOW >> 32) as u32;

/// A register of a lane; of the uniform ones the lane is 0.
type Held = (Resource, u8);

/// The marks of a warp's registers.
#[derive(Clone, Debug, Default)]
struct WarpMarks {
    held: HashMap<Held, Spot>,
    /// What the present instruction overwrites, in these lanes.
    written: Vec<Resource>,
    mask: u32,
    /// What it may mark, if the result is such a word.
    coming: Vec<(Held, Spot)>,
}

/// The marks of a launch.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    per_room: usize,
    /// By room and warp.
    warps: Vec<WarpMarks>,
    /// By word.
    global: HashMap<u64, Spot>,
    /// By room, and word.
    shared: Vec<HashMap<u64, Spot>>,
    /// By room, and thread and word.
    local: Vec<HashMap<(u32, u64), Spot>>,
}

impl Marks {
    /// None, for CTAs of so many warps.
    pub fn new(warps: usize) -> Marks {
        Marks {
            per_room: warps,
            ..Marks::default()
        }
    }

    /// A CTA begins in a room.
    pub fn start(&mut self, room: usize) {
        if room >= self.shared.len() {
            self.shared.resize_with(room + 1, HashMap::new);
            self.local.resize_with(room + 1, HashMap::new);
            let warps = (room + 1) * self.per_room;
            self.warps.resize_with(warps, WarpMarks::default);
        }
        self.shared[room].clear();
        self.local[room].clear();
        let first = room * self.per_room;
        for warp in &mut self.warps[first..first + self.per_room] {
            *warp = WarpMarks::default();
        }
    }
}

/// The value of a register in a lane.
fn value(registers: &Registers, (register, lane): Held) -> u32 {
    let number = register.number();
    match register.class() {
        Some(RegisterClass::Gpr) => registers.column(number.into())[usize::from(lane)],
        Some(RegisterClass::Uniform) => registers.uniform[usize::from(number) & 63],
        _ => 0,
    }
}

/// How a register is held by a lane.
fn held(register: Resource, lane: usize) -> Held {
    match register.class() {
        Some(RegisterClass::Uniform) => (register, 0),
        _ => (register, lane as u8),
    }
}

/// A general register, unless it is RZ or a source of another kind.
fn general(column: u16) -> Option<Resource> {
    let number = u8::try_from(column).ok()?;
    (usize::from(number) < GENERAL).then(|| Resource::register(RegisterClass::Gpr, number))
}

impl WarpMarks {
    /// The instruction before this one has written its results.
    fn settle(&mut self, registers: &Registers) {
        if self.written.is_empty() && self.coming.is_empty() {
            return;
        }
        let (written, mask) = (&self.written, self.mask);
        if written.contains(&Resource::ANY_GENERAL) {
            self.held.clear();
        }
        self.held.retain(|(register, lane), _| {
            let is_uniform = register.class() == Some(RegisterClass::Uniform);
            !written.contains(register) || !is_uniform && mask >> *lane & 1 == 0
        });
        for (held, spot) in self.coming.drain(..) {
            if value(registers, held) == HIGH {
                self.held.insert(held, spot);
            }
        }
        self.written.clear();
    }

    /// The mark that goes on from the sources of an instruction in a lane.
    fn source(&self, warp: &Warp, op: &Op, mask: u32, lane: usize, here: Spot) -> Option<Spot> {
        let registers = &warp.registers;
        let marked = |held: Held| self.held.get(&held).copied();
        match op.action {
            Action::Shuffle(mode) => {
                let from = registers.column(op.operand(Role::B).column)[lane];
                let from = mode.source(lane, from).unwrap_or(lane);
                let given = held(general(op.operand(Role::A).column)?, from);
                // An address of the own stack is given away by the shuffle itself.
                let is_given = from != lane && value(registers, given) == HIGH;
                let thread = warp.index * LANES as u32 + from as u32;
                marked(given).or_else(|| is_given.then_some(Spot { thread, ..here }))
            }
            Action::ToUniform => {
                let first = mask.trailing_zeros() as usize;
                let b = op.operand(Role::B);
                let words = (b.column..b.column + u16::from(b.words)).filter_map(general);
                let mut marks = words.filter_map(|register| marked(held(register, first)));
                marks.next()
            }
            Action::Pure(_) if op.optype == Some(Optype::SEL) => {
                let chosen = match registers.holds(op.operand(Role::Pp)) >> lane & 1 {
                    1 => op.operand(Role::A),
                    _ => op.operand(Role::B),
                };
                marked(held(general(chosen.column)?, lane))
            }
            Action::Pure(_) | Action::PureOnce(_) => {
                let reads = op.footprint.reads.iter();
                let words = reads.map(|register| held(*register, lane));
                let mut words = words.filter(|held| value(registers, *held) == HIGH);
                let (first, second) = (words.next()?, words.next());
                marked(first).filter(|_| second.is_none())
            }
            _ => None,
        }
    }
}

impl Checker {
    fn marks(&mut self) -> &mut WarpMarks {
        &mut self.foreign.warps[self.current * self.foreign.per_room + self.warp as usize]
    }

    /// Before an instruction runs in the lanes of `mask`: which marks go on.
    pub(super) fn carry_marks(&mut self, warp: &Warp, op: &Op, mask: u32) {
        let marks = self.marks();
        marks.settle(&warp.registers);
        let shuffles = matches!(op.action, Action::Shuffle(_));
        if marks.held.is_empty() && !shuffles || mask == 0 {
            return;
        }
        let here = self.spot(0);
        let marks = self.marks();
        marks.mask = mask;
        let writes = op.footprint.writes.iter().map(|write| write.0);
        marks.written.extend(writes);
        let mut coming = std::mem::take(&mut marks.coming);
        let is_value = |register: &&Resource| {
            matches!(
                register.class(),
                Some(RegisterClass::Gpr | RegisterClass::Uniform)
            )
        };
        for lane in lanes(mask) {
            let Some(spot) = marks.source(warp, op, mask, lane, here) else {
                continue;
            };
            let results = marks.written.iter().filter(is_value);
            coming.extend(results.map(|register| (held(*register, lane), spot)));
        }
        marks.coming = coming;
    }

    /// Whether plain accesses to a memory that others see leave all marks as they are: it has none, and a store gives
    /// no address of a stack away. Of a load there are no values.
    #[inline(always)]
    pub fn keeps_marks(&self, window: Window, values: &[&Column]) -> bool {
        let places = match window {
            Window::Shared => &self.foreign.shared[self.current],
            _ => &self.foreign.global,
        };
        places.is_empty() && !values.iter().any(|column| column.contains(&HIGH))
    }

    /// A lane's access by a generic address.
    pub(super) fn foreign_access(&mut self, op: &Op, touched: Touched, access: AccessKind) {
        let Location::Local(offset) = touched.place else {
            return;
        };
        let thread = self.thread(touched.lane);
        let block = self.ctas[self.current].block;
        let marks = self.marks();
        if marks.held.is_empty() {
            return;
        }
        let a = op.operand(Role::A);
        let high = (a.words == 2).then(|| general(a.column + 1)).flatten();
        let is_uniform = |r: &&Resource| r.class() == Some(RegisterClass::Uniform);
        let uniform = op.footprint.reads.iter().filter(is_uniform).copied();
        let mut parts = high.into_iter().chain(uniform);
        let mark = parts.find_map(|part| marks.held.get(&held(part, touched.lane)).copied());
        let Some(owner) = mark.filter(|at| (at.block, at.thread) != (block, thread)) else {
            return;
        };
        let kind = FindingKind::ForeignStack {
            access,
            offset: offset as u64,
            bytes: touched.bytes,
        };
        self.report(kind, touched.lane as u32, Some(owner));
    }

    /// The marks of places, and the key of a place's first word.
    fn places(&mut self, touched: Touched) -> (Places<'_>, u64) {
        let thread = self.thread(touched.lane);
        let (marks, room) = (&mut self.foreign, self.current);
        match touched.place {
            Location::Global(..) => (Places::Words(&mut marks.global), touched.address / 4),
            Location::Shared(offset) => (Places::Words(&mut marks.shared[room]), offset as u64 / 4),
            Location::Local(offset) => (
                Places::Own(thread, &mut marks.local[room]),
                offset as u64 / 4,
            ),
        }
    }

    /// A lane loads, or an atomic gives it what was there.
    pub(super) fn loads_marks(&mut self, op: &Op, touched: Touched) {
        let d = op.operand(Role::D);
        let lane = touched.lane;
        let (places, first) = self.places(touched);
        if places.is_empty() {
            return;
        }
        let mut found: [Option<Spot>; 4] = [None; 4];
        for (found, word) in found
            .iter_mut()
            .zip(first..first + u64::from(touched.bytes / 4))
        {
            *found = places.get(word);
        }
        let marks = self.marks();
        for (column, spot) in (d.column..d.column + u16::from(d.words)).zip(found) {
            if let (Some(register), Some(spot)) = (general(column), spot) {
                marks.coming.push((held(register, lane), spot));
            }
        }
    }

    /// A lane stores.
    pub(super) fn stores_marks(&mut self, op: &Op, touched: Touched, value: u128) {
        let b = op.operand(Role::B);
        let is_own = matches!(touched.place, Location::Local(_));
        let spot = self.spot(touched.lane as u32);
        for word in 0..u64::from(touched.bytes.div_ceil(4)) {
            let is_high = touched.bytes >= 4 && (value >> (32 * word)) as u32 == HIGH;
            let register = general(b.column + word as u16).filter(|_| is_high);
            let known = register.and_then(|register| {
                let held = held(register, touched.lane);
                self.marks().held.get(&held).copied()
            });
            // On the own stack only what came from elsewhere needs a mark.
            let mark = known.or_else(|| (is_high && !is_own).then_some(spot));
            let (mut places, first) = self.places(touched);
            places.set(first + word, mark);
        }
    }
}

/// The marks of a memory.
enum Places<'a> {
    /// That all threads see.
    Words(&'a mut HashMap<u64, Spot>),
    /// Of this thread.
    Own(u32, &'a mut HashMap<(u32, u64), Spot>),
}

impl Places<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Places::Words(all) => all.is_empty(),
            Places::Own(_, all) => all.is_empty(),
        }
    }

    fn get(&self, word: u64) -> Option<Spot> {
        match self {
            Places::Words(all) => all.get(&word).copied(),
            Places::Own(thread, all) => all.get(&(*thread, word)).copied(),
        }
    }

    fn set(&mut self, word: u64, mark: Option<Spot>) {
        if mark.is_none() && self.is_empty() {
            return;
        }
        match (self, mark) {
            (Places::Words(all), Some(spot)) => drop(all.insert(word, spot)),
            (Places::Words(all), None) => drop(all.remove(&word)),
            (Places::Own(thread, all), Some(spot)) => drop(all.insert((*thread, word), spot)),
            (Places::Own(thread, all), None) => drop(all.remove(&(*thread, word))),
        }
    }
}
