//! Checks that can be switched on.
//!
//! In: every instruction before it runs, every access, every barrier. Out: [`RawFinding`]s, each instruction and kind once, races once for
//! each pair of instructions. Nothing here changes what a program does. The detectors, after those of NVIDIA's compute-sanitizer:
//!
//! - *memcheck* ([`stack`]): accesses next to stack slots; what is outside of an allocation is a fault without checks too.
//! - *initcheck* ([`init`]): reads of registers and memory that nothing was written to.
//! - *racecheck* ([`race`], on the order of [`order`]): accesses to shared and global memory that nothing orders.
//! - *synccheck* ([`sync`]): barriers that a part of the block reaches, BSYNC without BSSY, uniform writes in a part of the warp.
//!
//! One [`Checker`] lives as long as the launch, so that accesses of blocks that are not resident together are judged too; what belongs
//! to a CTA begins anew with it.

mod finding;
mod init;
mod order;
mod race;
mod stack;
mod sync;

pub use crate::launch::FindingKind;
pub use finding::{RawFinding, Spot};

use super::decoded::Op;
use super::memory::{Location, Memories};
use super::registers::{DISCARD, LANES};
use super::shape::Shape;
use super::warp::{Group, Warp};
use crate::isa::Role;
use crate::launch::Image;
use crate::launch::{AccessKind, Window};
use hashbrown::HashSet;
use order::{Order, Threads};
use race::{Shadow, Use};

/// What is known of a CTA.
struct CtaState {
    block: [u32; 3],
    defined: init::Defined,
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
pub struct Checker {
    /// What was found.
    pub findings: Vec<RawFinding>,
    shape: Shape,
    warps: usize,
    /// By the room that a CTA runs in.
    ctas: Vec<CtaState>,
    order: Order,
    global: Shadow,
    /// Pairs of instructions that race, the lower index first.
    pairs: HashSet<(u32, u32, Window)>,
    redzones: stack::Redzones,
    current: usize,
    warp: u32,
    pc: u32,
}

impl Checker {
    /// The checks of a launch.
    pub fn new(shape: Shape, image: &Image) -> Checker {
        let warps = (shape.threads() as usize).div_ceil(LANES);
        Checker {
            findings: Vec::new(),
            shape,
            warps,
            ctas: Vec::new(),
            order: Order::new(warps),
            global: Shadow::default(),
            pairs: HashSet::new(),
            redzones: stack::Redzones::of(image),
            current: 0,
            warp: 0,
            pc: 0,
        }
    }

    /// The CTA with this number in the grid begins in a room; rooms are numbered from 0 and first used in this order.
    pub fn start(&mut self, room: usize, number: u64) {
        let state = CtaState {
            block: Shape::coordinates(self.shape.grid, number),
            defined: init::undefined(self.warps),
            threads: Threads::new(number, self.warps),
            shared: Shadow::default(),
            barriers: sync::Barriers::default(),
            callers: vec![stack::Callers::default(); self.warps * LANES],
        };
        match self.ctas.get_mut(room) {
            Some(cta) => *cta = state,
            None => self.ctas.push(state),
        }
    }

    /// What follows happens in the CTA of this room.
    pub fn enter(&mut self, room: usize) {
        self.current = room;
    }

    /// Before an instruction runs in the lanes of `mask`.
    pub fn before(&mut self, warp: &Warp, op: &Op, group: Group, mask: u32) {
        (self.warp, self.pc) = (warp.index, group.pc);
        self.registers(op, group, mask);
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
        self.stack_access(touched, AccessKind::Load);
        if touched.strong {
            self.strong(touched, true, false);
        }
        self.touch(touched, AccessKind::Load, false, 0);
    }

    /// Before a lane stores: the words, as a mask, of what it stores to its own memory that are undefined.
    pub fn store(&mut self, memories: &Memories, op: &Op, touched: Touched, value: u128) -> u8 {
        if let Location::Local(_) = touched.place {
            self.stack_access(touched, AccessKind::Store);
            return self.undefined_words(op, touched.lane);
        }
        self.published(op, touched.lane);
        let old = memories.load(touched.lane, touched.place, touched.bytes);
        let same = old.to_le_bytes().into_iter().zip(value.to_le_bytes());
        let same = same
            .enumerate()
            .fold(0, |m, (i, (old, new))| m | u16::from(old == new) << i);
        self.touch(touched, AccessKind::Store, true, same);
        if touched.strong {
            self.strong(touched, false, true);
        }
        0
    }

    /// Before a lane reads, and if it `writes` writes, in one step.
    pub fn atomic(&mut self, memories: &Memories, op: &Op, touched: Touched, writes: bool) {
        let Touched {
            lane, place, bytes, ..
        } = touched;
        self.loaded(memories, op, lane, place, bytes, true);
        self.stack_access(touched, AccessKind::Atomic);
        // Nobody can act on a result that is not read, so it orders nothing.
        let d = op.operand(Role::D);
        let reads = d.words != 0 && d.column != DISCARD;
        if reads {
            self.strong(touched, true, false);
        }
        self.touch(touched, AccessKind::Atomic, writes, 0);
        if writes {
            self.strong(touched, reads, true);
        }
    }

    /// A strong access orders: see [`order`].
    fn strong(&mut self, touched: Touched, reads: bool, writes: bool) {
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
        let Some(first) = self.word(touched) else {
            return;
        };
        let Touched {
            lane,
            address,
            bytes,
            strong,
            ..
        } = touched;
        let now = Use {
            thread: self.thread(lane),
            pc: self.pc,
            kind,
            wrote,
            strong,
        };
        let window = match touched.place {
            Location::Shared(_) => Window::Shared,
            _ => Window::Global,
        };
        // Only accesses of one or two bytes begin inside a word.
        let inside = (address % 4) as u32;
        for index in 0..bytes.div_ceil(4) {
            let size = (bytes - 4 * index).min(4);
            let (mask, same) = (
                ((1u8 << size) - 1) << inside,
                (same >> (4 * index)) as u8 & 0xF,
            );
            let cta = &mut self.ctas[self.current];
            let shadow = match window {
                Window::Shared => &mut cta.shared,
                _ => &mut self.global,
            };
            let word = first + u64::from(index);
            let found = shadow.touch(&self.order, &cta.threads, now, word, (mask, same << inside));
            let Some(earlier) = found else { continue };
            let (low, high) = (earlier.pc.min(self.pc), earlier.pc.max(self.pc));
            if !self.pairs.insert((low, high, window)) {
                continue;
            }
            let other = Spot {
                block: Shape::coordinates(self.shape.grid, self.order.block_of(earlier.warp)),
                thread: self.order.index_of(earlier.warp) * LANES as u32 + earlier.lane,
                pc: earlier.pc,
            };
            let kind = FindingKind::Race {
                window,
                address: 4 * word + u64::from(earlier.byte),
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
