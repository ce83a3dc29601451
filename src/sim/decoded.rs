//! Programs decoded once, before they run.
//!
//! In: words. Out: for each word an [`Op`] whose operands are resolved to columns, predicates and broadcasts, whose branch target is an
//! instruction index, and whose [`Action`] says what to do; for pure operations that is a lane loop with its modifiers decoded. A word
//! that is no instruction becomes an action that faults when it is reached.

use super::action::{Action, action};
use super::footprint::Footprint;
use super::registers::{BROADCAST, DISCARD, Operand, Operands, PT, URZ, ZERO};
use super::specialised::{Decoding, Resolving};
use crate::isa::literal::sign_extend;
use crate::isa::register::{PReg, RegisterClass};
use crate::isa::table::{Direction, FieldType, OperandInfo};
use crate::isa::{Control, Inst, Optype, Role, decode};
use crate::launch::Window;

/// Bytes of an instruction.
pub const WORD_BYTES: u64 = crate::isa::encode::WORD_BYTES as u64;

/// A program ready to run.
pub struct Program {
    /// One for each word.
    pub ops: Vec<Op>,
    /// The words, for messages.
    pub words: Vec<u128>,
    /// General registers that the program names: the highest number and one.
    pub registers: usize,
    /// Whether it has atomics, or STRONG loads and stores, that can reach global memory: its blocks may wait for each other.
    pub global_atomics: bool,
}

/// A decoded instruction.
pub struct Op {
    /// What it does.
    pub action: Action,
    /// Its operands.
    pub operands: Operands,
    /// Sources to broadcast before it runs.
    pub broadcasts: Box<[Broadcast]>,
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
#[derive(Clone, Copy, Debug)]
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

impl Program {
    /// Decodes words; `decoding` may be the semantics alone.
    pub fn new(words: &[u128], decoding: impl Into<Decoding>) -> Program {
        let decoding = decoding.into();
        let ops: Vec<Op> = words
            .iter()
            .enumerate()
            .map(|(i, word)| op(*word, i, words.len(), decoding))
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
        let global_atomics = ops.iter().any(|op| {
            let access = match op.action {
                Action::Atomic(atomic) => atomic.access,
                Action::Load(access) | Action::Store(access) if access.strong => access,
                _ => return false,
            };
            access.window.is_none_or(|w| w == Window::Global)
        });
        let registers = if indexed {
            super::registers::GENERAL
        } else {
            registers
        };
        Program {
            ops,
            words: words.to_vec(),
            registers,
            global_atomics,
        }
    }
}

impl Op {
    /// The operand of a role.
    #[inline(always)]
    pub fn operand(&self, role: Role) -> Operand {
        self.operands[role as usize]
    }
}

fn op(word: u128, index: usize, count: usize, decoding: Decoding) -> Op {
    match decode(word) {
        Ok((inst, control)) => {
            let resolved = resolve(&inst);
            let resolving = Resolving {
                inst: &inst,
                operands: &resolved.operands,
                broadcasts: &resolved.broadcasts,
            };
            Op {
                action: action(resolving, index, count, decoding),
                operands: resolved.operands,
                broadcasts: resolved.broadcasts.into_boxed_slice(),
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
    broadcasts: Vec<Broadcast>,
}

/// Finds the place of every operand.
fn resolve(inst: &Inst<PReg>) -> Resolved {
    let mut resolved = Resolved {
        operands: [Operand::ABSENT; Role::COUNT],
        broadcasts: Vec::new(),
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
                    let base = next;
                    next += 4;
                    resolved.broadcasts.extend(
                        sources
                            .into_iter()
                            .zip(base..)
                            .map(|(source, column)| Broadcast { column, source }),
                    );
                    base
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

/// The words of a source that is the same for all lanes; none for what is no value (labels, barriers, uniform predicates, codes).
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
