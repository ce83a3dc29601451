//! Programs decoded once, before they run.
//!
//! In: words. Out: for each word an [`Op`] whose operands are resolved to columns, predicates and broadcasts, whose
//! branch target is an instruction index, and whose [`Action`] says what to do; for pure operations that is a lane loop
//! with its modifiers decoded. A word that is no instruction becomes an action that faults when it is reached.

use crate::isa::literal::sign_extend;
use crate::isa::register::{PReg, RegisterClass};
use crate::isa::table::{Direction, FieldType, OperandInfo};
use crate::isa::{Control, Inst, Optype, Role, decode};
use crate::launch::{FaultKind, Window};
use crate::sim::decode::action::{Access, Action, action};
use crate::sim::decode::footprint::Footprint;
use crate::sim::decode::host::Detected;
use crate::sim::decode::specialised::{Decoding, Resolving};
use crate::sim::memory::banks::Banks;
use crate::sim::warp::registers::{
    BROADCAST, CONSTANTS, DISCARD, Operand, Operands, PT, THREADS, URZ, ZERO,
};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Bytes of an instruction.
pub const WORD_BYTES: u64 = crate::isa::encode::WORD_BYTES as u64;
/// Bytes of a register.
const WORD: u32 = size_of::<u32>() as u32;

/// A program ready to run.
pub struct Program {
    /// One for each word.
    pub ops: Vec<Op>,
    /// Sources of its instructions that stay the same for a launch.
    pub constants: Box<[Broadcast]>,
    /// The host's instructions that it uses.
    pub host: Detected,
    /// The words, for messages.
    pub words: Vec<u128>,
    /// General registers that the program names: the highest number and one.
    pub registers: usize,
    /// Whether it has atomics, or STRONG loads and stores, that can reach global memory.
    pub global_atomics: bool,
    /// Whether these do more than what any order of the blocks leaves the same. Its blocks may wait for each other.
    pub is_ordered: bool,
    /// Whether some of the atomics are longer than a word.
    pub wide_atomics: bool,
    /// Whether anything but the barriers of blocks can order accesses of threads of a block: WARPSYNC, and strong
    /// accesses that read.
    pub orders_threads: bool,
}

/// A decoded instruction.
pub struct Op {
    /// What it does.
    pub action: Action,
    /// Its operands.
    pub operands: Operands,
    /// Sources to broadcast before it runs.
    pub broadcasts: Box<[Broadcast]>,
    /// Those of its sources that the launch has, and that may not be there.
    pub constants: Box<[BroadcastSource]>,
    /// The guard.
    pub guard: Operand,
    /// Scheduling control.
    pub control: Control,
    /// Registers read and written, for checks and timing.
    pub footprint: Footprint,
    /// The operation; none for an illegal word.
    pub optype: Option<Optype>,
}

/// A source that is the same for all lanes, 32 bits of it.
#[derive(Clone, Copy, Debug)]
pub struct Broadcast {
    /// The column it fills.
    pub column: u16,
    /// Where it comes from.
    pub source: BroadcastSource,
}

/// Where a broadcast comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastSource {
    /// The instruction.
    Immediate(u32),
    /// A uniform register.
    Uniform(u8),
    /// A constant bank at a byte offset.
    Constant {
        /// Bank.
        bank: u8,
        /// Byte offset.
        offset: u32,
    },
}

impl BroadcastSource {
    /// Its value in a launch with these banks; 0 for a uniform register.
    ///
    /// # Errors
    /// Out of bounds or misaligned.
    #[inline]
    pub fn fixed(self, banks: &Banks) -> Result<u32, FaultKind> {
        match self {
            BroadcastSource::Immediate(value) => Ok(value),
            BroadcastSource::Uniform(_) => Ok(0),
            BroadcastSource::Constant { bank, offset } => {
                let value = banks.load(bank, u64::from(offset), WORD)?;
                Ok(value as u32)
            }
        }
    }
}

impl Program {
    /// Decodes words; `decoding` may be the semantics alone.
    pub fn new(words: &[u128], decoding: impl Into<Decoding>) -> Program {
        let decoding = decoding.into();
        let mut constants = Constants::default();
        let ops: Vec<Op> = words
            .iter()
            .enumerate()
            .map(|(i, word)| op(*word, i, words.len(), decoding, &mut constants))
            .collect();
        let named = ops.iter().flat_map(|op| {
            op.footprint
                .reads
                .iter()
                .copied()
                .chain(op.footprint.writes.iter().map(|w| w.0))
        });
        let registers = named
            .filter(|r| r.class() == Some(RegisterClass::Gpr))
            .map(|r| usize::from(r.number()) + 1)
            .max()
            .unwrap_or(0);
        let indexed = ops
            .iter()
            .any(|op| matches!(op.action, Action::IndexedRead(_) | Action::IndexedWrite(_)));
        let is_ordered = is_ordered(&ops);
        let atomics = || ops.iter().filter_map(global_atomic);
        let global_atomics = atomics().next().is_some();
        let wide_atomics = atomics().any(|access| u32::from(access.bytes) > WORD);
        let orders_threads = ops.iter().any(orders_threads);
        let registers = if indexed {
            crate::sim::warp::registers::GENERAL
        } else {
            registers
        };
        Program {
            ops,
            constants: constants.list.into_boxed_slice(),
            host: decoding.host,
            words: words.to_vec(),
            registers,
            global_atomics,
            is_ordered,
            wide_atomics,
            orders_threads,
        }
    }
}

/// The columns of sources that stay the same for a launch.
#[derive(Default)]
struct Constants {
    list: Vec<Broadcast>,
    /// The first column of what is in the list.
    columns: HashMap<SmallVec<[BroadcastSource; 2]>, u16>,
}

impl Constants {
    /// The first of the columns with these sources, as far as they stay the same and there is room.
    fn columns(&mut self, sources: &[BroadcastSource]) -> Option<u16> {
        let stays = |source: &BroadcastSource| !matches!(source, BroadcastSource::Uniform(_));
        if !sources.iter().all(stays) {
            return None;
        }
        if let Some(first) = self.columns.get(sources) {
            return Some(*first);
        }
        let first = CONSTANTS + self.list.len() as u16;
        if usize::from(first) + sources.len() > usize::from(THREADS) {
            return None;
        }
        self.columns.insert(sources.into(), first);
        let all = (first..).zip(sources);
        let all = all.map(|(column, &source)| Broadcast { column, source });
        self.list.extend(all);
        Some(first)
    }
}

/// The atomic access of an instruction that can reach global memory.
fn global_atomic(op: &Op) -> Option<Access> {
    let access = match op.action {
        Action::Atomic(atomic) => atomic.access,
        Action::Load(access) | Action::Store(access) if access.strong => access,
        _ => return None,
    };
    (access.window.is_none_or(|w| w == Window::Global)).then_some(access)
}

/// Whether atomics on global memory depend on the order of the blocks.
fn is_ordered(ops: &[Op]) -> bool {
    let mut kinds = None;
    let mut atomics = ops.iter().filter(|op| global_atomic(op).is_some());
    atomics.any(|op| {
        let Action::Atomic(atomic) = op.action else {
            return true;
        };
        let is_read = op.is_read();
        // Of two kinds, which may meet at one place, the order matters.
        let kind = atomic.commutes();
        is_read || kind.is_none() || *kinds.get_or_insert(kind) != kind
    })
}

/// Whether threads may know by an instruction what others of the block have done, barriers of the block left out.
fn orders_threads(op: &Op) -> bool {
    match op.action {
        Action::WarpSync => true,
        Action::Load(access) => access.strong,
        Action::Atomic(_) => op.is_read(),
        _ => false,
    }
}

impl Op {
    /// Whether its result can be read.
    pub fn is_read(&self) -> bool {
        let d = self.operand(Role::D);
        d.words != 0 && d.column != DISCARD
    }

    /// The operand of a role.
    #[inline(always)]
    pub fn operand(&self, role: Role) -> Operand {
        self.operands[role as usize]
    }
}

fn op(word: u128, index: usize, count: usize, decoding: Decoding, constants: &mut Constants) -> Op {
    match decode(word) {
        Ok((inst, control)) => {
            let resolved = resolve(&inst, constants);
            let resolving = Resolving {
                inst: &inst,
                operands: &resolved.operands,
                immediates: &resolved.immediates,
            };
            Op {
                action: action(resolving, index, count, decoding),
                operands: resolved.operands,
                broadcasts: resolved.broadcasts.into_boxed_slice(),
                constants: resolved.constants.into_boxed_slice(),
                guard: resolved.operands[Role::Pg as usize],
                control,
                footprint: Footprint::of(&inst),
                optype: Some(inst.optype()),
            }
        }
        Err(reason) => Op {
            action: Action::Illegal(Box::new(reason)),
            operands: [Operand::ABSENT; Role::COUNT],
            broadcasts: Box::default(),
            constants: Box::default(),
            guard: Operand {
                column: PT as u16,
                words: 1,
                invert: false,
            },
            control: Control::default(),
            footprint: Footprint::default(),
            optype: None,
        },
    }
}

struct Resolved {
    operands: Operands,
    /// What is broadcast before the instruction.
    broadcasts: Vec<Broadcast>,
    /// What the launch has.
    constants: Vec<BroadcastSource>,
    /// First words of the operands that are immediates.
    immediates: Vec<(Role, u32)>,
}

/// Finds the place of every operand.
fn resolve(inst: &Inst<PReg>, constants: &mut Constants) -> Resolved {
    let mut resolved = Resolved {
        operands: [Operand::ABSENT; Role::COUNT],
        broadcasts: Vec::new(),
        constants: Vec::new(),
        immediates: Vec::new(),
    };
    let mut next = BROADCAST;
    for info in inst.info().operands.iter().filter(|o| o.field != u8::MAX) {
        let words = u32::from((info.width)(inst.word())).div_ceil(32).max(1) as u8;
        let negated = info.not.is_some_and(|not| inst.field(not) != 0);
        let invert = negated != is_unset_uniform_predicate(inst, info);
        let first = info
            .class
            .and_then(|_| inst.operand_regs(info)[0])
            .map(PReg::number);
        let column = match (info.class, info.direction) {
            (Some(RegisterClass::Predicate), _) => first.map_or(PT as u16, u16::from),
            (Some(RegisterClass::Gpr), Direction::Out) => first.map_or(DISCARD, u16::from),
            (Some(RegisterClass::Gpr), _) => first.map_or(ZERO, u16::from),
            (Some(RegisterClass::Uniform), Direction::Out) => first.map_or(URZ as u16, u16::from),
            (Some(RegisterClass::Uniform), _) | (None, _) => match sources(inst, info, words) {
                Some(sources) => {
                    if let Some(BroadcastSource::Immediate(value)) = sources.first() {
                        resolved.immediates.push((info.role, *value));
                    }
                    constants.columns(&sources).map_or_else(
                        || {
                            let base = next;
                            next += 4;
                            let columns = (base..).zip(&sources);
                            let all = columns.map(|(column, &source)| Broadcast { column, source });
                            resolved.broadcasts.extend(all);
                            base
                        },
                        |base| {
                            let fixed = |s: &&BroadcastSource| {
                                matches!(s, BroadcastSource::Constant { .. })
                            };
                            resolved.constants.extend(sources.iter().filter(fixed));
                            base
                        },
                    )
                }
                None => PT as u16,
            },
        };
        resolved.operands[info.role as usize] = Operand {
            column,
            words,
            invert,
        };
    }
    resolved
}

/// Whether an operand is one of UP0 to UP6, which no instruction writes: they read false, as `!PT`.
fn is_unset_uniform_predicate(inst: &Inst<PReg>, info: &OperandInfo) -> bool {
    let field = &inst.info().fields[info.field as usize];
    matches!(field.ty, FieldType::UniformPredicate) && field.get(inst.word()) != PT as u64
}

/// The words of a source that is the same for all lanes; none for what is no value (labels, barriers, uniform
/// predicates, codes).
fn sources(inst: &Inst<PReg>, info: &OperandInfo, words: u8) -> Option<Vec<BroadcastSource>> {
    let field = &inst.info().fields[info.field as usize];
    let raw = field.get(inst.word());
    let immediate = |value: u64| {
        vec![
            BroadcastSource::Immediate(value as u32),
            BroadcastSource::Immediate((value >> 32) as u32),
        ]
    };
    let mut list = match field.ty {
        FieldType::Register(RegisterClass::Uniform) => inst
            .operand_regs(info)
            .iter()
            .map(|r| BroadcastSource::Uniform(r.map_or(URZ as u8, PReg::number)))
            .collect(),
        FieldType::Signed => immediate(sign_extend(raw, field.width.into()) as u64),
        // The high word of an f64; its low word is 0.
        FieldType::Float32 | FieldType::Unsigned if words == 2 => immediate(raw << 32),
        FieldType::Unsigned | FieldType::Float32 | FieldType::Half2 => immediate(raw),
        FieldType::ConstantMemory => {
            let (bank, offset) = ((raw >> 17) as u8, raw as u32 & 0x1_ffff);
            (0..u32::from(words))
                .map(|i| BroadcastSource::Constant {
                    bank,
                    offset: offset + 4 * i,
                })
                .collect()
        }
        _ => return None,
    };
    list.truncate(words as usize);
    Some(list)
}
