//! Checks that can be switched on: uninitialised registers and memory, races in shared memory, uniform writes in divergent code.
//!
//! A register or byte is *defined* once something was written to it. Reading an undefined one is a finding, except by the instructions
//! that only move values (MOV, LDL, STL: saving and restoring registers that hold nothing is no error): they carry the mark along.
//!
//! Two accesses of a CTA to the same byte of shared memory race when different threads make them, at least one writes, not both are
//! atomic, and neither BAR.SYNC of the CTA nor, in one warp, WARPSYNC lies between. Threads that store the same value with the same
//! instruction do not race. Order that comes from atomics (a lock) is not followed.

use super::action::Action;
use super::decoded::Op;
use super::fault::Window;
use super::footprint::Resource;
use super::memory::{Location, Memories};
use super::warp::{Group, Warp};
use crate::isa::Optype;
use crate::isa::Role;
use crate::isa::register::RegisterClass;
use crate::isa::table::Effects;
use std::fmt;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A register was read that nothing was written to.
    UndefinedRegister(Resource),
    /// Memory was read that nothing was written to.
    UndefinedMemory {
        /// Where.
        window: Window,
        /// Offset in the window or the allocation.
        offset: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// Two threads used the same byte of shared memory with nothing between that orders them.
    SharedRace {
        /// The byte.
        offset: u32,
        /// Thread index in the CTA of the earlier access.
        other_thread: u32,
        /// Code address of the earlier access in bytes.
        other_pc: u32,
        /// Whether the earlier access wrote.
        other_wrote: bool,
    },
    /// A uniform register was written while only a part of the warp's live lanes ran.
    DivergentUniformWrite {
        /// The register.
        register: Resource,
        /// The lanes that ran.
        active: u32,
        /// The live lanes.
        live: u32,
    },
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindingKind::UndefinedRegister(register) => {
                write!(f, "{register} is read before anything was written to it")
            }
            FindingKind::UndefinedMemory {
                window,
                offset,
                bytes,
            } => {
                write!(
                    f,
                    "{bytes} bytes of {window} memory at offset {offset:#x} are read before anything was written to them"
                )
            }
            FindingKind::SharedRace {
                offset,
                other_thread,
                other_pc,
                other_wrote,
            } => {
                let verb = if *other_wrote { "wrote" } else { "read" };
                write!(
                    f,
                    "race on byte {offset:#x} of shared memory: thread {other_thread} {verb} it at pc {other_pc:#x}, no barrier between"
                )
            }
            FindingKind::DivergentUniformWrite {
                register,
                active,
                live,
            } => {
                write!(
                    f,
                    "{register} is written by the lanes {active:#010x} only, {live:#010x} are live"
                )
            }
        }
    }
}

/// A finding inside the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFinding {
    /// What.
    pub kind: FindingKind,
    /// Index of the instruction.
    pub pc: u32,
    /// Thread index in the CTA.
    pub thread: u32,
}

/// An access to a byte of shared memory.
#[derive(Clone, Copy, Debug, Default)]
struct Touch {
    /// Thread and one; 0: none.
    thread: u32,
    pc: u32,
    /// BAR.SYNCs of the CTA and WARPSYNCs of the warp before it.
    epoch: (u32, u32),
    atomic: bool,
}

/// The last accesses to a byte: the last write, and the last reads of two different threads.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Touch,
    reads: [Touch; 2],
    value: u8,
}

/// The checks of a CTA.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// What was found, once for each instruction and kind.
    pub findings: Vec<RawFinding>,
    /// For each warp and register the lanes in which it is defined.
    defined: Vec<Box<[u32]>>,
    cells: Vec<Cell>,
    epoch: u32,
    warp_epochs: Vec<u32>,
    warp: u32,
    pc: u32,
}

impl Checker {
    /// The checks of a CTA with so many warps and bytes of shared memory.
    pub fn new(warps: usize, shared: usize) -> Checker {
        Checker {
            defined: vec![vec![0; Resource::COUNT].into_boxed_slice(); warps],
            cells: vec![Cell::default(); shared],
            warp_epochs: vec![0; warps],
            ..Checker::default()
        }
    }

    /// The CTA's barrier opened.
    pub fn cta_synchronised(&mut self) {
        self.epoch += 1;
    }

    /// WARPSYNC.
    pub fn warp_synchronised(&mut self, warp: u32) {
        self.warp_epochs[warp as usize] += 1;
    }

    /// Before an instruction runs in the lanes of `mask`.
    pub fn before(&mut self, warp: &Warp, op: &Op, group: Group, mask: u32) {
        (self.warp, self.pc) = (warp.index, group.pc);
        if let Some(guard) = op.footprint.guard {
            self.expect_defined(guard, group.mask);
        }
        if mask == 0 {
            return;
        }
        let effects = op.optype.map_or(Effects::default(), |o| o.info().effects);
        let moves = op.optype == Some(Optype::MOV)
            || (effects.contains(Effects::LOCAL) && !effects.contains(Effects::ATOMIC));
        let spills = moves && matches!(op.action, Action::Store(_));
        // P2R of all predicates saves what may hold nothing.
        for &register in op
            .footprint
            .reads
            .iter()
            .filter(|_| !effects.contains(Effects::PREDICATES))
        {
            let moved = match op.optype {
                Some(Optype::MOV) => true,
                _ => spills && Checker::is_data(op, register),
            };
            if !moved {
                self.expect_defined(register, mask);
            }
        }
        for (i, (register, _)) in op.footprint.writes.iter().enumerate() {
            if register.class() == Some(RegisterClass::Uniform) {
                if group.mask != warp.live {
                    let kind = FindingKind::DivergentUniformWrite {
                        register: *register,
                        active: group.mask,
                        live: warp.live,
                    };
                    self.report(kind, mask.trailing_zeros());
                }
                self.defined[self.warp as usize][register.index()] = u32::MAX;
                continue;
            }
            let source = op
                .footprint
                .reads
                .get(i)
                .filter(|_| op.optype == Some(Optype::MOV));
            let from = source.map_or(u32::MAX, |r| self.defined[self.warp as usize][r.index()]);
            let defined = &mut self.defined[self.warp as usize][register.index()];
            *defined = (*defined & !mask) | (from & mask);
        }
        if matches!(op.action, Action::IndexedWrite(_)) {
            self.defined[self.warp as usize][..256]
                .iter_mut()
                .for_each(|d| *d |= mask);
        }
    }

    /// Whether a register is the data of a store, not its address.
    fn is_data(op: &Op, register: Resource) -> bool {
        let b = op.operand(Role::B);
        register.class() == Some(RegisterClass::Gpr)
            && (b.column..b.column + u16::from(b.words)).contains(&u16::from(register.number()))
    }

    fn expect_defined(&mut self, register: Resource, mask: u32) {
        if register.class().is_none() {
            return;
        }
        let undefined = mask & !self.defined[self.warp as usize][register.index()];
        if undefined != 0 {
            self.report(
                FindingKind::UndefinedRegister(register),
                undefined.trailing_zeros(),
            );
        }
    }

    fn report(&mut self, kind: FindingKind, lane: u32) {
        let same = |f: &RawFinding| {
            f.pc == self.pc && std::mem::discriminant(&f.kind) == std::mem::discriminant(&kind)
        };
        if !self.findings.iter().any(same) {
            let thread = self.warp * 32 + lane;
            self.findings.push(RawFinding {
                kind,
                pc: self.pc,
                thread,
            });
        }
    }

    /// Before a lane loads, or reads and writes in one step.
    pub fn load(
        &mut self,
        memories: &Memories,
        op: &Op,
        lane: usize,
        place: Location,
        bytes: u32,
        atomic: bool,
    ) {
        if !memories.is_written(lane, place, bytes) {
            match place {
                Location::Local(_) => {
                    for (register, _) in &op.footprint.writes {
                        self.defined[self.warp as usize][register.index()] &= !(1 << lane);
                    }
                }
                Location::Shared(offset) => {
                    self.report(
                        FindingKind::UndefinedMemory {
                            window: Window::Shared,
                            offset: offset as u64,
                            bytes,
                        },
                        lane as u32,
                    );
                }
                Location::Global(_, offset) => {
                    self.report(
                        FindingKind::UndefinedMemory {
                            window: Window::Global,
                            offset: offset as u64,
                            bytes,
                        },
                        lane as u32,
                    );
                }
            }
        }
        if let Location::Shared(offset) = place {
            for byte in offset..offset + bytes as usize {
                let touch = self.touch(lane, atomic);
                self.race(byte, self.cells[byte].write, touch, true);
                if atomic {
                    let reads = self.cells[byte].reads;
                    reads
                        .into_iter()
                        .for_each(|read| self.race(byte, read, touch, false));
                    self.cells[byte].write = touch;
                } else {
                    self.cells[byte].reads = match self.cells[byte].reads {
                        [last, _] if last.thread == touch.thread => {
                            [touch, self.cells[byte].reads[1]]
                        }
                        [last, _] => [touch, last],
                    };
                }
            }
        }
    }

    /// Before a lane stores; false when what it stores is undefined.
    pub fn store(
        &mut self,
        op: &Op,
        lane: usize,
        place: Location,
        bytes: u32,
        value: u128,
    ) -> bool {
        match place {
            Location::Shared(offset) => {
                for (i, byte) in (offset..offset + bytes as usize).enumerate() {
                    let touch = self.touch(lane, false);
                    let cell = self.cells[byte];
                    let data = (value >> (8 * i)) as u8;
                    if cell.write.pc != touch.pc || cell.value != data {
                        self.race(byte, cell.write, touch, true);
                    }
                    cell.reads
                        .into_iter()
                        .for_each(|read| self.race(byte, read, touch, false));
                    (self.cells[byte].write, self.cells[byte].value) = (touch, data);
                }
                true
            }
            Location::Local(_) => {
                let b = op.operand(Role::B);
                let defined = &self.defined[self.warp as usize];
                let data = (b.column..b.column + u16::from(b.words)).filter(|c| *c < 256);
                data.into_iter()
                    .all(|column| defined[usize::from(column)] >> lane & 1 != 0)
            }
            Location::Global(..) => true,
        }
    }

    fn touch(&self, lane: usize, atomic: bool) -> Touch {
        let thread = self.warp * 32 + lane as u32 + 1;
        Touch {
            thread,
            pc: self.pc,
            epoch: (self.epoch, self.warp_epochs[self.warp as usize]),
            atomic,
        }
    }

    /// Reports `now` if it races with an earlier access, one of which writes.
    fn race(&mut self, byte: usize, earlier: Touch, now: Touch, other_wrote: bool) {
        let same_warp = earlier.thread.wrapping_sub(1) / 32 == (now.thread - 1) / 32;
        let ordered =
            earlier.epoch.0 != now.epoch.0 || (same_warp && earlier.epoch.1 != now.epoch.1);
        if earlier.thread == 0
            || earlier.thread == now.thread
            || ordered
            || (earlier.atomic && now.atomic)
        {
            return;
        }
        let (other_thread, other_pc) = (
            earlier.thread - 1,
            earlier.pc * super::decoded::WORD_BYTES as u32,
        );
        let kind = FindingKind::SharedRace {
            offset: byte as u32,
            other_thread,
            other_pc,
            other_wrote,
        };
        self.report(kind, (now.thread - 1) % 32);
    }
}
