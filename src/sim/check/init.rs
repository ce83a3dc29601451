//! Reads of what nothing was written to.
//!
//! A register or byte is *defined* once something was written to it. Reading an undefined one is a finding, except by
//! the instructions that only move values (MOV, PRMT, LDL, STL: saving registers that hold nothing, or copying a
//! structure with gaps, is no error): they carry the mark along, word by word. A word of which some bytes are defined
//! counts as defined, so a gap is never blamed on what lies beside it.

use super::Checker;
use crate::isa::Optype;
use crate::isa::Role;
use crate::isa::register::RegisterClass;
use crate::isa::table::Effects;
use crate::launch::FindingKind;
use crate::launch::Resource;
use crate::launch::Window;
use crate::sim::decode::action::Action;
use crate::sim::decode::program::{Op, Program};
use crate::sim::memory::{Location, Memories};
use crate::sim::warp::Group;
use crate::sim::warp::registers::GENERAL;

/// For each warp and register the lanes in which it is defined.
pub(super) type Defined = Vec<Box<[u32]>>;

/// Registers of so many warps that begin.
pub(super) fn undefined(warps: usize) -> Defined {
    vec![vec![0; Resource::COUNT].into_boxed_slice(); warps]
}

/// What an instruction needs defined and defines, where that depends on nothing but the lanes it runs in.
#[derive(Clone, Debug)]
struct Needs {
    guard: Option<u16>,
    reads: Box<[u16]>,
    /// With the lanes that are defined whoever runs: those of a uniform register.
    writes: Box<[(u16, u32)]>,
}

/// The needs of the instructions of a program, by their index.
#[derive(Clone, Debug, Default)]
pub(super) struct Plans {
    needs: Vec<Option<Needs>>,
    /// Registers that some instruction writes.
    written: Vec<u16>,
}

impl Plans {
    /// Of a program.
    pub fn of(program: &Program) -> Plans {
        let indexed = |op: &Op| matches!(op.action, Action::IndexedWrite(_));
        let writes = program.ops.iter().flat_map(|op| op.footprint.writes.iter());
        let mut written: Vec<u16> = writes.map(|w| w.0.index() as u16).collect();
        if program.ops.iter().any(indexed) {
            written.extend(0..GENERAL as u16);
        }
        written.sort_unstable();
        written.dedup();
        let needs = program.ops.iter().map(|op| {
            let index = |register: Resource| register.index() as u16;
            let known = |register: &Resource| register.class().is_some();
            let all = |register: Resource| match register.class() {
                Some(RegisterClass::Uniform) => u32::MAX,
                _ => 0,
            };
            let moves = matches!(op.optype, Some(Optype::MOV | Optype::PRMT));
            (!moves && !indexed(op)).then(|| Needs {
                guard: op.footprint.guard.filter(known).map(index),
                reads: expected(op).filter(known).map(index).collect(),
                writes: (op.footprint.writes.iter())
                    .map(|(register, _)| (index(*register), all(*register)))
                    .collect(),
            })
        });
        Plans {
            needs: needs.collect(),
            written,
        }
    }

    /// The registers of warps that begin.
    pub fn reset(&self, defined: &mut Defined) {
        for registers in defined {
            for register in &self.written {
                registers[usize::from(*register)] = 0;
            }
        }
    }
}

/// The registers that an instruction uses for more than moving what they hold.
fn expected(op: &Op) -> impl Iterator<Item = Resource> {
    let effects = op.optype.map_or(Effects::default(), |o| o.info().effects);
    let moves = matches!(op.optype, Some(Optype::MOV | Optype::PRMT));
    // Where generic stores go is known lane by lane.
    let own = effects.contains(Effects::LOCAL) || effects.contains(Effects::GENERIC);
    let spills = own && !effects.contains(Effects::ATOMIC) && matches!(op.action, Action::Store(_));
    // P2R of all predicates saves what may hold nothing.
    let reads = (op.footprint.reads.iter().copied())
        .filter(move |_| !effects.contains(Effects::PREDICATES));
    reads.filter(move |&register| {
        let is_general = register.class() == Some(RegisterClass::Gpr);
        let moved = op.optype == Some(Optype::MOV)
            || (moves && is_general)
            || (spills && is_data(op, register));
        !moved
    })
}

impl Checker {
    /// The registers that an instruction reads and writes.
    #[inline]
    pub(super) fn registers(&mut self, op: &Op, group: Group, mask: u32) {
        if let Some(needs) = &self.plans.needs[self.pc as usize] {
            let defined = &mut self.ctas[self.current].defined[self.warp as usize];
            let guard = needs.guard.map_or(0, |guard| !defined[usize::from(guard)]);
            let reads = needs.reads.iter().map(|read| !defined[usize::from(*read)]);
            let missing = guard & group.mask | reads.fold(0, |all, lanes| all | lanes) & mask;
            if missing == 0 {
                for (register, all) in &needs.writes {
                    let all = if mask == 0 { 0 } else { *all };
                    defined[usize::from(*register)] |= mask | all;
                }
                return;
            }
        }
        self.registers_in_full(op, group, mask);
    }

    fn registers_in_full(&mut self, op: &Op, group: Group, mask: u32) {
        if let Some(guard) = op.footprint.guard {
            self.expect_defined(guard, group.mask);
        }
        if mask == 0 {
            return;
        }
        for register in expected(op) {
            self.expect_defined(register, mask);
        }
        for (i, (register, _)) in op.footprint.writes.iter().enumerate() {
            if register.class() == Some(RegisterClass::Uniform) {
                self.lanes_mut()[register.index()] = u32::MAX;
                continue;
            }
            let reads = &op.footprint.reads;
            let defined = self.lanes_mut();
            let from = match op.optype {
                Some(Optype::MOV) => reads.get(i).map_or(u32::MAX, |r| defined[r.index()]),
                Some(Optype::PRMT) => {
                    let sources = reads
                        .iter()
                        .filter(|r| r.class() == Some(RegisterClass::Gpr));
                    let from = sources.map(|r| defined[r.index()]);
                    from.reduce(|a, b| a | b).unwrap_or(u32::MAX)
                }
                _ => u32::MAX,
            };
            let lanes = &mut defined[register.index()];
            *lanes = (*lanes & !mask) | (from & mask);
        }
        if matches!(op.action, Action::IndexedWrite(_)) {
            self.lanes_mut()[..GENERAL]
                .iter_mut()
                .for_each(|d| *d |= mask);
        }
    }

    /// For each register the lanes of the present warp in which it is defined.
    fn lanes_mut(&mut self) -> &mut [u32] {
        &mut self.ctas[self.current].defined[self.warp as usize]
    }

    fn expect_defined(&mut self, register: Resource, mask: u32) {
        if register.class().is_none() {
            return;
        }
        let undefined = mask & !self.lanes_mut()[register.index()];
        if undefined != 0 {
            self.report(
                FindingKind::UndefinedRegister(register),
                undefined.trailing_zeros(),
                None,
            );
        }
    }

    /// What a lane loads: from its own memory undefined words make undefined registers, elsewhere they are a finding.
    pub(super) fn loaded(
        &mut self,
        memories: &Memories,
        op: &Op,
        lane: usize,
        place: Location,
        bytes: u32,
        strong: bool,
    ) {
        if memories.is_written(lane, place, bytes) {
            return;
        }
        // An atomic on one or two bytes reads the word around them.
        let part =
            || (0..bytes).any(|byte| memories.is_written(lane, place.plus(byte as usize), 1));
        if strong && part() {
            return;
        }
        let (window, offset) = match place {
            Location::Local(_) => {
                let d = op.operand(Role::D);
                for (word, at) in (0..bytes).step_by(4).enumerate() {
                    let register = usize::from(d.column) + word;
                    let written = (at..bytes.min(at + 4))
                        .any(|byte| memories.is_written(lane, place.plus(byte as usize), 1));
                    if register < GENERAL && !written {
                        self.lanes_mut()[register] &= !(1 << lane);
                    }
                }
                return;
            }
            Location::Shared(offset) => (Window::Shared, offset as u64),
            Location::Global(_, offset) => (Window::Global, offset as u64),
        };
        let kind = FindingKind::UndefinedMemory {
            window,
            offset,
            bytes,
        };
        self.report(kind, lane as u32, None);
    }

    /// What a lane stores where others see it.
    pub(super) fn published(&mut self, op: &Op, lane: usize) {
        let words = self.undefined_words(op, lane);
        // A part of a value may be a gap.
        if words != 0 && u32::from(op.operand(Role::B).words) == words.count_ones() {
            let first = op.operand(Role::B).column + words.trailing_zeros() as u16;
            let register = op.footprint.reads.iter().copied().find(|register| {
                register.class() == Some(RegisterClass::Gpr)
                    && u16::from(register.number()) == first
            });
            if let Some(register) = register {
                self.report(FindingKind::UndefinedRegister(register), lane as u32, None);
            }
        }
    }

    /// The words, as a mask, of what a lane stores to its own memory that are undefined.
    pub(super) fn undefined_words(&mut self, op: &Op, lane: usize) -> u8 {
        let b = op.operand(Role::B);
        let registers = (b.column..b.column + u16::from(b.words)).map(usize::from);
        let defined = self.lanes_mut();
        registers
            .enumerate()
            .filter(|(_, register)| *register < GENERAL && defined[*register] >> lane & 1 == 0)
            .fold(0, |words, (word, _)| words | 1 << word)
    }
}

/// Whether a register is the data of a store, not its address.
fn is_data(op: &Op, register: Resource) -> bool {
    let b = op.operand(Role::B);
    register.class() == Some(RegisterClass::Gpr)
        && (b.column..b.column + u16::from(b.words)).contains(&u16::from(register.number()))
}
