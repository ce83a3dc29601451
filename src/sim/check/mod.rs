//! Checks that can be switched on.
//!
//! In: every instruction before it runs, every access, every barrier. Out: [`RawFinding`]s, each instruction and kind
//! once, races once for each pair of instructions. Nothing here changes what a program does. The detectors, after those
//! of NVIDIA's compute-sanitizer:
//!
//! - *memcheck* ([`stack`], [`foreign`]): accesses next to stack slots, to frames that have returned, to other threads'
//!   stacks; what is outside of an allocation is a fault without checks too.
//! - *initcheck* ([`init`]): reads of registers and memory that nothing was written to.
//! - *racecheck* ([`shadow`] and [`race`], on the order of [`order`]): accesses to shared and global memory that
//!   nothing orders.
//! - *synccheck* ([`sync`]): barriers that a part of the block reaches, BSYNC without BSSY, uniform writes in a part of
//!   the warp.
//!
//! One [`Checker`] lives as long as the launch, so that accesses of blocks that are not resident together are judged
//! too; what belongs to a CTA begins anew with it. Where blocks run on several threads, each thread has one of its own
//! ([`together`] is about the lanes of a warp, [`merge`] about those threads).

mod activity;
mod finding;
mod foreign;
mod gaps;
mod init;
mod merge;
mod order;
mod race;
#[cfg(test)]
mod reference;
mod shadow;
mod stack;
mod sync;
mod together;
mod undo;

pub use crate::launch::FindingKind;
pub use activity::{Activity, Poll};
pub use finding::{RawFinding, Spot};
pub use merge::Outcome;
pub use together::{MemoryObject, Target};
pub use undo::Undo;

use super::memory::{Location, Memories};
use super::warp::{Group, Warp};
use crate::launch::Image;
use crate::launch::{AccessKind, Window};
use crate::sim::decode::program::{Op, Program};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::global::Table;
use crate::sim::warp::registers::LANES;
use hashbrown::HashSet;
use order::{Order, Threads};
use race::{Earlier, Means, Now};
use shadow::Shadow;
use std::sync::Arc;

/// What is known of a CTA.
#[derive(Clone)]
struct CtaState {
    block: [u32; 3],
    defined: init::Defined,
    gaps: Vec<gaps::Gaps>,
    threads: Threads,
    shared: Shadow,
    barriers: sync::Barriers,
    callers: Vec<stack::Callers>,
}

/// An access of a lane to a place that it may use.
#[derive(Clone, Copy, Debug)]
pub struct Touched {
    /// The lane.
    pub lane: usize,
    /// Where.
    pub place: Location,
    /// The address of a place in global memory.
    pub address: u64,
    /// Size.
    pub bytes: u32,
    /// The access is STRONG; atomics are.
    pub strong: bool,
}

/// The checks of a launch.
#[derive(Clone)]
pub struct Checker {
    /// What was found.
    pub findings: Vec<RawFinding>,
    /// What threads read and change.
    pub activity: Activity,
    foreign: foreign::Marks,
    shape: Shape,
    warps: usize,
    /// By the room that a CTA runs in.
    ctas: Vec<CtaState>,
    order: Order,
    global: Shadow,
    means: Means,
    /// What the launch writes can be taken back by this.
    undo: Option<Arc<Undo>>,
    /// Accesses to words by one lane at a time since a CTA ended last: what takes the time of a launch that does not
    /// end.
    pub accesses: u64,
    /// Threads of different CTAs race.
    crossed: bool,
    /// Pairs of instructions that race, the lower index first.
    pairs: HashSet<(u32, u32, Window)>,
    redzones: stack::Redzones,
    plans: init::Plans,
    current: usize,
    warp: u32,
    pc: u32,
}

impl Checker {
    /// The checks of a launch; `apart`: its CTAs run one after another. With `undo`, what they overwrite is saved
    /// there.
    pub fn new(
        shape: Shape,
        image: &Image,
        program: &Program,
        apart: bool,
        undo: Option<Arc<Undo>>,
    ) -> Checker {
        let means = Means {
            apart: apart && !program.is_ordered,
            barriers: !program.orders_threads,
        };
        let warps = (shape.threads() as usize).div_ceil(LANES);
        Checker {
            findings: Vec::new(),
            activity: Activity::new(warps),
            foreign: foreign::Marks::new(warps),
            shape,
            warps,
            ctas: Vec::new(),
            order: Order::new(warps),
            global: Shadow::new(means),
            means,
            undo,
            accesses: 0,
            crossed: false,
            pairs: HashSet::new(),
            redzones: stack::Redzones::of(image),
            plans: init::Plans::of(program),
            current: 0,
            warp: 0,
            pc: 0,
        }
    }

    /// The CTA with this number in the grid begins in a room; rooms are numbered from 0 and first used in this order.
    pub fn start(&mut self, room: usize, number: u64) {
        self.activity.start(room);
        self.foreign.start(room);
        let block = Shape::coordinates(self.shape.grid, number);
        let threads = Threads::new(number, self.warps);
        let callers = match self.redzones.is_empty() {
            true => Vec::new(),
            false => vec![stack::Callers::default(); self.warps * LANES],
        };
        // The rest of the CTA before is used again.
        if let Some(cta) = self.ctas.get_mut(room) {
            (cta.block, cta.threads, cta.callers) = (block, threads, callers);
            self.plans.reset(&mut cta.defined);
            cta.gaps.iter_mut().for_each(gaps::Gaps::clear);
            cta.shared.reset();
            cta.barriers = sync::Barriers::default();
            return;
        }
        self.ctas.push(CtaState {
            block,
            defined: init::undefined(self.warps),
            gaps: vec![gaps::Gaps::default(); self.warps],
            threads,
            shared: Shadow::new(self.means),
            barriers: sync::Barriers::default(),
            callers,
        });
    }

    /// What follows happens in the CTA of this room.
    pub fn enter(&mut self, room: usize) {
        self.current = room;
        self.activity.enter(room);
    }

    /// Before an instruction runs in the lanes of `mask`.
    pub fn before(&mut self, warp: &Warp, op: &Op, group: Group, mask: u32) {
        (self.warp, self.pc) = (warp.index, group.pc);
        self.activity.before(op, mask);
        self.carry_marks(warp, op, mask);
        self.registers(warp, op, group, mask);
        self.frames(warp, op, mask);
        self.synchronisation(warp, op, group, mask);
    }

    /// Before a lane loads.
    pub fn load(&mut self, memories: &Memories, op: &Op, touched: Touched) {
        let Touched {
            lane,
            place,
            bytes,
            strong,
            ..
        } = touched;
        self.loaded(memories, op, lane, place, bytes, strong);
        self.polls(touched);
        self.stack_access(touched, AccessKind::Load);
        self.foreign_access(op, touched, AccessKind::Load);
        self.loads_marks(op, touched);
        if touched.strong {
            self.strong(touched, true, false);
        }
        self.touch(touched, AccessKind::Load, false, 0);
    }

    /// Before a lane stores: the bytes, as a mask, of what it stores that are undefined.
    pub fn store(&mut self, memories: &Memories, op: &Op, touched: Touched, value: u128) -> u16 {
        self.foreign_access(op, touched, AccessKind::Store);
        self.stores_marks(op, touched, value);
        let undefined = self.undefined_bytes(op, touched.lane, touched.bytes);
        match touched.place {
            Location::Local(_) => {
                self.stack_access(touched, AccessKind::Store);
                return undefined;
            }
            Location::Global(index, _) if !memories.global.is_private(index) => {
                self.published(op, touched.lane);
            }
            _ => {}
        }
        self.save(memories.global, touched.place, touched.bytes);
        let old = memories.load(touched.lane, touched.place, touched.bytes);
        let same = old.to_le_bytes().into_iter().zip(value.to_le_bytes());
        let same = same
            .enumerate()
            .fold(0, |m, (i, (old, new))| m | u16::from(old == new) << i);
        self.touch(touched, AccessKind::Store, true, same);
        if touched.strong {
            self.strong(touched, false, true);
        }
        undefined
    }

    /// Before a lane reads, and if it `writes` writes, in one step.
    pub fn atomic(&mut self, memories: &Memories, op: &Op, touched: Touched, writes: bool) {
        let Touched {
            lane, place, bytes, ..
        } = touched;
        self.loaded(memories, op, lane, place, bytes, true);
        self.polls(touched);
        self.stack_access(touched, AccessKind::Atomic);
        if writes {
            self.save(memories.global, place, bytes);
        }
        // Which block is the first to use what was never written is up to their order.
        if let (Some(_), Location::Global(..)) = (&self.undo, place) {
            self.crossed |= !memories.is_written(lane, place, bytes);
        }
        self.foreign_access(op, touched, AccessKind::Atomic);
        self.loads_marks(op, touched);
        if writes {
            // Whose address an atomic leaves is not followed.
            self.stores_marks(op, touched, 0);
        }
        // Nobody can act on a result that is not read, so it orders nothing.
        let reads = op.is_read();
        if reads {
            self.strong(touched, true, false);
        }
        self.touch(touched, AccessKind::Atomic, writes, 0);
        if writes {
            self.strong(touched, reads, true);
        }
    }

    /// Whether threads of different CTAs race.
    pub fn is_crossed(&self) -> bool {
        self.crossed
    }

    /// A place is about to be written.
    fn save(&self, global: &Table, place: Location, bytes: u32) {
        if let (Some(undo), Location::Global(index, offset)) = (&self.undo, place) {
            undo.save(global, index, offset, bytes as usize);
        }
    }

    /// A lane reads what it may wait for.
    fn polls(&mut self, touched: Touched) {
        self.polls_together(touched, 1 << touched.lane);
    }

    /// The lanes of `mask` read what they may wait for; `touched` is the access of the first of them.
    #[inline(always)]
    fn polls_together(&mut self, touched: Touched, mask: u32) {
        let poll = Poll {
            pc: self.pc,
            lanes: mask,
            place: touched.place,
            address: match touched.place {
                Location::Shared(offset) => offset as u64,
                _ => touched.address,
            },
            bytes: touched.bytes,
            strong: touched.strong,
        };
        self.activity.read(self.warp, poll);
    }

    /// A lane stores to its place, or leaves what is there.
    pub fn writes(&mut self, touched: Touched, changed: bool) {
        self.activity.changed(changed);
        if changed && touched.strong {
            let at = self.spot(touched.lane as u32);
            self.activity
                .strong_write(touched.place, touched.address, at);
        }
    }

    /// A strong access orders: see [`order`].
    fn strong(&mut self, touched: Touched, reads: bool, writes: bool) {
        // What nobody can act on orders nothing.
        if self.means.apart && self.means.barriers {
            return;
        }
        let Some(first) = self.word(touched) else {
            return;
        };
        let thread = self.thread(touched.lane);
        let cta = &mut self.ctas[self.current];
        for word in first..first + u64::from(touched.bytes.div_ceil(4)) {
            let key = match touched.place {
                Location::Shared(_) => cta.threads.shared_key(word),
                _ => word,
            };
            self.order
                .strong(&mut cta.threads, thread, key, reads, writes);
        }
    }

    /// Notes an access to memory that others see; bytes in `same` keep their value.
    fn touch(&mut self, touched: Touched, kind: AccessKind, wrote: bool, same: u16) {
        let (lane, bytes, strong) = (touched.lane, touched.bytes, touched.strong);
        self.accesses += 1;
        let (place, offset) = match touched.place {
            Location::Shared(offset) => (MemoryObject::SHARED, offset),
            Location::Global(index, offset) => (
                MemoryObject::global(index, touched.address - offset as u64),
                offset,
            ),
            Location::Local(_) => return,
        };
        // Only accesses of one or two bytes begin inside a word.
        let inside = offset % 4;
        for index in 0..bytes.div_ceil(4) {
            let size = (bytes - 4 * index).min(4);
            let (mask, same) = (
                ((1u8 << size) - 1) << inside,
                (same >> (4 * index)) as u8 & 0xF,
            );
            let word = offset / 4 + index as usize;
            let (now, shadow, _) = self.looking(place, kind, wrote, strong);
            let found = shadow.touch(&now, place.memory, word, lane, (mask, same << inside));
            if let Some(earlier) = found {
                self.raced(place, kind, lane, word, earlier);
            }
        }
    }

    /// What the present instruction does to a memory, the shadow of that, and what its bytes are saved in.
    fn looking(
        &mut self,
        place: MemoryObject,
        kind: AccessKind,
        wrote: bool,
        strong: bool,
    ) -> (Now<'_>, &mut Shadow, Option<&Undo>) {
        let cta = &mut self.ctas[self.current];
        let now = Now {
            order: &self.order,
            threads: &cta.threads,
            warp: self.warp,
            pc: self.pc,
            kind,
            wrote,
            strong,
        };
        match place.window {
            Window::Shared => (now, &mut cta.shared, None),
            _ => (now, &mut self.global, self.undo.as_deref()),
        }
    }

    /// A lane races in a word with what happened earlier.
    #[cold]
    fn raced(
        &mut self,
        place: MemoryObject,
        kind: AccessKind,
        lane: usize,
        word: usize,
        earlier: Earlier,
    ) {
        let block = self.order.block_of(earlier.warp);
        self.crossed |= !self
            .order
            .is_of(&self.ctas[self.current].threads, earlier.warp);
        let (low, high) = (earlier.pc.min(self.pc), earlier.pc.max(self.pc));
        if !self.pairs.insert((low, high, place.window)) {
            return;
        }
        let other = Spot {
            block: Shape::coordinates(self.shape.grid, block),
            thread: self.order.index_of(earlier.warp) * LANES as u32 + earlier.lane,
            pc: earlier.pc,
        };
        let kind = FindingKind::Race {
            window: place.window,
            address: place.base + 4 * word as u64 + u64::from(earlier.byte),
            access: kind,
            earlier: earlier.kind,
        };
        let at = self.spot(lane as u32);
        self.findings.push(RawFinding {
            kind,
            at,
            other: Some(other),
        });
    }

    /// Number of the first word of an access to memory that other threads see.
    fn word(&self, touched: Touched) -> Option<u64> {
        match touched.place {
            Location::Shared(offset) => Some(offset as u64 / 4),
            Location::Global(..) => Some(touched.address / 4),
            Location::Local(_) => None,
        }
    }

    fn thread(&self, lane: usize) -> u32 {
        self.warp * LANES as u32 + lane as u32
    }

    fn spot(&self, lane: u32) -> Spot {
        Spot {
            block: self.ctas[self.current].block,
            thread: self.warp * LANES as u32 + lane,
            pc: self.pc,
        }
    }

    /// Notes a finding of the present instruction, once for each kind.
    fn report(&mut self, kind: FindingKind, lane: u32, other: Option<Spot>) {
        let same = |f: &RawFinding| {
            f.at.pc == self.pc && std::mem::discriminant(&f.kind) == std::mem::discriminant(&kind)
        };
        if !self.findings.iter().any(same) {
            let at = self.spot(lane);
            self.findings.push(RawFinding { kind, at, other });
        }
    }
}
