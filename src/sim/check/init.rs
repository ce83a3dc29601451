//! Reads of what nothing was written to.
//!
//! A register or byte is *defined* once something was written to it. Using an undefined one is a finding. Moving it is
//! none: MOV, SEL, PRMT, LOP3, SHF, loads and stores carry the mark along, so saving registers that hold nothing, or
//! copying a structure with gaps, is no error. A finding about what was loaded names the load, too ([`super::gaps`]).
//! Uses are everything else: an address, a branch, arithmetic, an atomic or strong access, and a store to global
//! memory, which the host may read, unless the allocation is the kernels' own (`Driver::make_private`).
//!
//! A word of which some bytes are defined counts as defined, so a gap is never blamed on what lies beside it: code
//! takes words apart. Only addresses and floats need all of it. Marks move word by word through PRMT, LOP3 and SHF,
//! else byte by byte.

use super::Checker;
use super::gaps::{Gap, Gaps, WHOLE};
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
use crate::sim::warp::registers::{GENERAL, Registers};
use crate::sim::warp::{Group, Warp};

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
            let reads = op.footprint.reads.iter().copied();
            // Moves, too: of what is defined, defined registers come.
            (!indexed(op)).then(|| Needs {
                guard: op.footprint.guard.filter(known).map(index),
                reads: reads.filter(known).map(index).collect(),
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

/// Whether an instruction only moves the words it reads, or pieces of them.
fn moves(op: &Op) -> bool {
    matches!(op.optype, Some(Optype::MOV | Optype::SEL | Optype::FSEL)) || takes_apart(op)
}

/// Whether an instruction takes words apart and puts pieces together, as copies do that were split. With a predicate as
/// a result it looks at them.
fn takes_apart(op: &Op) -> bool {
    let mut writes = op.footprint.writes.iter();
    matches!(op.optype, Some(Optype::PRMT | Optype::LOP3 | Optype::SHF))
        && writes.all(|(register, _)| register.class() == Some(RegisterClass::Gpr))
}

/// Whether a register says by how many bits a word is shifted.
fn is_amount(op: &Op, register: Resource) -> bool {
    op.optype == Some(Optype::SHF)
        && register == Resource::register(RegisterClass::Gpr, register.number())
        && u16::from(register.number()) == op.operand(Role::B).column
}

/// The registers that an instruction uses for more than moving what they hold.
fn expected(op: &Op) -> impl Iterator<Item = Resource> {
    let effects = op.optype.map_or(Effects::default(), |o| o.info().effects);
    let moves = moves(op);
    // Where the data of plain stores go is known lane by lane.
    let stores = matches!(op.action, Action::Store(access) if !access.strong)
        && !effects.contains(Effects::ATOMIC);
    // P2R of all predicates saves what may hold nothing.
    let reads = (op.footprint.reads.iter().copied())
        .filter(move |_| !effects.contains(Effects::PREDICATES));
    reads.filter(move |&register| {
        let is_general = register.class() == Some(RegisterClass::Gpr);
        let moved = op.optype == Some(Optype::MOV)
            || (moves && is_general && !is_amount(op, register))
            || (stores && is_data(op, register));
        !moved
    })
}

/// Whether the value of an instruction depends on each byte of the words it reads: floats, and addresses.
fn needs_whole_words(op: &Op) -> bool {
    match op.action {
        Action::Load(_) | Action::Store(_) | Action::Atomic(_) => true,
        _ => matches!(
            op.optype,
            Some(
                Optype::FADD
                    | Optype::FMUL
                    | Optype::FFMA
                    | Optype::FMNMX
                    | Optype::FSETP
                    | Optype::FSET
                    | Optype::DADD
                    | Optype::DMUL
                    | Optype::DFMA
                    | Optype::DSETP
                    | Optype::MUFU
            )
        ),
    }
}

impl Checker {
    /// The registers that an instruction reads and writes.
    #[inline]
    pub(super) fn registers(&mut self, warp: &Warp, op: &Op, group: Group, mask: u32) {
        if let Some(needs) = &self.plans.needs[self.pc as usize] {
            let cta = &mut self.ctas[self.current];
            let defined = &mut cta.defined[self.warp as usize];
            let guard = needs.guard.map_or(0, |guard| !defined[usize::from(guard)]);
            let reads = needs.reads.iter().map(|read| !defined[usize::from(*read)]);
            let missing = guard & group.mask | reads.fold(0, |all, lanes| all | lanes) & mask;
            let gaps = &cta.gaps[self.warp as usize];
            let has_gaps = || {
                let registers = needs.writes.iter().map(|write| write.0);
                gaps.meets(
                    registers
                        .chain(needs.reads.iter().copied())
                        .map(usize::from),
                )
            };
            if missing == 0 && !has_gaps() {
                for (register, all) in &needs.writes {
                    let all = if mask == 0 { 0 } else { *all };
                    defined[usize::from(*register)] |= mask | all;
                }
                return;
            }
        }
        self.registers_in_full(&warp.registers, op, group, mask);
    }

    fn registers_in_full(&mut self, registers: &Registers, op: &Op, group: Group, mask: u32) {
        if let Some(guard) = op.footprint.guard {
            self.expect_defined(guard, group.mask);
        }
        if mask == 0 {
            return;
        }
        let whole = needs_whole_words(op);
        for register in expected(op) {
            self.expect_defined(register, mask);
            if whole {
                let partial = self.gaps().partial(register, mask);
                self.blame(register, partial);
            }
        }
        for (i, (register, _)) in op.footprint.writes.iter().enumerate() {
            if register.class() == Some(RegisterClass::Uniform) {
                self.lanes_mut()[register.index()] = u32::MAX;
                continue;
            }
            let sources = Sources::of(op, registers, i, self.lanes_mut());
            let from = sources.defined;
            let lanes = &mut self.lanes_mut()[register.index()];
            *lanes = (*lanes & !mask) | (from & mask);
            if register.class() == Some(RegisterClass::Gpr) {
                let gap = |gaps: &Gaps, lane: usize| sources.gap(gaps, lane);
                self.gaps_mut().write(*register, mask, gap);
            }
        }
        if matches!(op.action, Action::IndexedWrite(_)) {
            self.lanes_mut()[..GENERAL]
                .iter_mut()
                .for_each(|d| *d |= mask);
            self.gaps_mut().clear();
        }
    }

    /// For each register the lanes of the present warp in which it is defined.
    fn lanes_mut(&mut self) -> &mut [u32] {
        &mut self.ctas[self.current].defined[self.warp as usize]
    }

    /// The gaps of the present warp's registers.
    fn gaps(&self) -> &Gaps {
        &self.ctas[self.current].gaps[self.warp as usize]
    }

    fn gaps_mut(&mut self) -> &mut Gaps {
        &mut self.ctas[self.current].gaps[self.warp as usize]
    }

    fn expect_defined(&mut self, register: Resource, mask: u32) {
        if register.class().is_some() {
            let undefined = mask & !self.lanes_mut()[register.index()];
            self.blame(register, undefined);
        }
    }

    /// The present instruction uses a register that holds what nobody wrote, in these lanes.
    fn blame(&mut self, register: Resource, undefined: u32) {
        if undefined == 0 {
            return;
        }
        let lane = undefined.trailing_zeros();
        let gap = self.gaps().get(register.index(), lane as usize);
        let kind = match gap {
            Some(gap) if gap.window != Window::Local => FindingKind::UndefinedMemory {
                window: gap.window,
                offset: gap.offset,
                bytes: gap.bytes,
            },
            _ => FindingKind::UndefinedRegister(register),
        };
        self.report(kind, lane, gap.map(|gap| gap.loaded));
    }

    /// What a lane loads. A plain load leaves gaps in its registers; a strong one, and an atomic, uses what is there.
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
        let gap = Gap::of(place, bytes, self.spot(lane as u32));
        let is_missing = |byte: &u32| !memories.is_written(lane, place.plus(*byte as usize), 1);
        if strong && gap.window != Window::Local {
            // An atomic on one or two bytes reads the word around them.
            if (0..bytes).all(|byte| is_missing(&byte)) {
                let kind = FindingKind::UndefinedMemory {
                    window: gap.window,
                    offset: gap.offset,
                    bytes,
                };
                self.report(kind, lane as u32, None);
            }
            return;
        }
        let first = usize::from(op.operand(Role::D).column);
        for (word, at) in (0..bytes).step_by(4).enumerate() {
            let end = bytes.min(at + 4);
            let missing = (at..end)
                .filter(is_missing)
                .fold(0, |all, byte| all | 1 << (byte - at));
            let register = first + word;
            if missing == 0 || register >= GENERAL {
                continue;
            }
            // What one or two bytes are extended by is as good as they are.
            let missing = match missing == WHOLE >> (4 - (end - at)) {
                true => WHOLE,
                false => missing,
            };
            if missing == WHOLE {
                self.lanes_mut()[register] &= !(1 << lane);
            }
            self.gaps_mut().open(register, lane, Gap { missing, ..gap });
        }
    }

    /// What a lane stores to global memory: the host may read it.
    pub(super) fn published(&mut self, op: &Op, lane: usize) {
        let b = op.operand(Role::B);
        let mut registers = (b.column..b.column + u16::from(b.words)).map(usize::from);
        let defined = self.lanes_mut();
        let is_undefined =
            |register: usize| register < GENERAL && defined[register] >> lane & 1 == 0;
        // A part of a value may be a gap.
        if registers.clone().all(is_undefined)
            && let Some(first) = registers.next()
        {
            let register = Resource::register(RegisterClass::Gpr, first as u8);
            self.blame(register, 1 << lane);
        }
    }

    /// The bytes, as a mask, of what a lane stores that are undefined.
    pub(super) fn undefined_bytes(&self, op: &Op, lane: usize, bytes: u32) -> u16 {
        let cta = &self.ctas[self.current];
        let (defined, gaps) = (&cta.defined[self.warp as usize], self.gaps());
        let b = op.operand(Role::B);
        let registers = (b.column..b.column + u16::from(b.words)).map(usize::from);
        let missing = registers
            .enumerate()
            .filter(|(_, register)| *register < GENERAL);
        let missing = missing.fold(0, |all, (word, register)| {
            let missing = match defined[register] >> lane & 1 {
                0 => WHOLE,
                _ => gaps.get(register, lane).map_or(0, |gap| gap.missing),
            };
            all | u16::from(missing) << (4 * word)
        });
        missing & (u16::MAX >> (16 - bytes))
    }
}

/// Where a result comes from.
struct Sources {
    /// The lanes in which it is defined.
    defined: u32,
    /// The registers, and the lanes that have it from the first.
    registers: [Option<usize>; 2],
    first: u32,
    /// Bytes of several words are put together.
    pieces: bool,
}

impl Sources {
    /// Of the result with this number.
    fn of(op: &Op, registers: &Registers, result: usize, defined: &[u32]) -> Sources {
        let reads = &op.footprint.reads;
        // How far a word is shifted is no piece of it.
        let is_general =
            |r: &&Resource| r.class() == Some(RegisterClass::Gpr) && !is_amount(op, **r);
        let general = || reads.iter().filter(is_general).map(|r| r.index());
        let of = |register: Option<usize>| register.map_or(u32::MAX, |r| defined[r]);
        let column = |role| Some(usize::from(op.operand(role).column)).filter(|c| *c < GENERAL);
        let (all, registers, first) = match op.optype {
            Some(Optype::MOV) => {
                let from = reads.get(result).map(|r| r.index());
                (of(from), [from, None], u32::MAX)
            }
            // Of pieces the first that has a gap.
            Some(_) if takes_apart(op) => {
                let all = general()
                    .map(|register| defined[register])
                    .reduce(|a, b| a | b);
                let [a, b] = [general().next(), general().nth(1)];
                (
                    all.unwrap_or(u32::MAX),
                    [a, b],
                    a.map_or(0, |a| !defined[a]),
                )
            }
            Some(Optype::SEL | Optype::FSEL) => {
                let [a, b] = [Role::A, Role::B].map(column);
                let first = registers.holds(op.operand(Role::Pp));
                (of(a) & first | of(b) & !first, [a, b], first)
            }
            _ => (u32::MAX, [None, None], 0),
        };
        Sources {
            defined: all,
            registers,
            first,
            pieces: takes_apart(op),
        }
    }

    /// The gap of a lane's result. What is made of pieces has none as long as it is defined.
    fn gap(&self, gaps: &Gaps, lane: usize) -> Option<Gap> {
        if self.pieces && self.defined >> lane & 1 != 0 {
            return None;
        }
        let [first, second] = self.registers;
        let from = if self.first >> lane & 1 != 0 {
            first
        } else {
            second
        };
        gaps.get(from?, lane)
    }
}

/// Whether a register is the data of a store, not its address.
fn is_data(op: &Op, register: Resource) -> bool {
    let b = op.operand(Role::B);
    register.class() == Some(RegisterClass::Gpr)
        && (b.column..b.column + u16::from(b.words)).contains(&u16::from(register.number()))
}
