//! Programs decoded once, before they run.
//!
//! In: words. Out: for each word an [`Op`] whose operands are resolved to columns, predicates and broadcasts, whose branch target is an
//! instruction index, and whose [`Action`] says what to do; for pure operations that is a lane loop with its modifiers decoded. A word
//! that is no instruction becomes an action that faults when it is reached.

use super::footprint::Footprint;
use super::registers::{BROADCAST, DISCARD, LaneLoop, Operand, Operands, PT, Pure, URZ, ZERO};
use crate::isa::generated::*;
use crate::isa::inst::FieldEnum;
use crate::isa::register::{PReg, RegisterClass};
use crate::isa::semantics::PureOperation;
use crate::isa::table::{Direction, Effects, FieldType, FormInfo, OperandInfo};
use crate::isa::{Control, Illegal, Inst, decode};
use crate::sim::fault::{AccessKind, Window};
use crate::sim::semantics::Reference;

/// Bytes of an instruction.
pub const WORD_BYTES: u64 = crate::isa::encode::WORD_BYTES as u64;
/// Instruction index of a label that lies outside of the code.
pub const NOWHERE: u32 = u32::MAX;

/// A program ready to run.
pub struct Program {
    /// One for each word.
    pub ops: Vec<Op>,
    /// The words, for messages.
    pub words: Vec<u128>,
    /// General registers that the program names: the highest number and one.
    pub registers: usize,
    /// Whether it has atomics that can reach global memory: its blocks may wait for each other.
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

/// A memory access.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The window, none for a generic address.
    pub window: Option<Window>,
    /// Size in bytes, 1 to 16.
    pub bytes: u8,
    /// A narrow load extends its sign.
    pub signed: bool,
    /// Uniform operand C is added to the address.
    pub uniform: bool,
    /// Addresses have 64 bits, not 32.
    pub wide: bool,
    /// Byte offset added to the address.
    pub offset: i32,
}

/// An atomic operation.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    /// Where.
    pub access: Access,
    /// Type of the operands.
    pub ty: AtomType,
    /// Operation; none for compare-and-swap.
    pub op: Option<AtomOp>,
}

/// What an instruction does.
pub enum Action {
    /// Nothing of it is legal.
    Illegal(Box<Illegal>),
    /// A pure operation in every lane.
    Pure(Box<dyn LaneLoop>),
    /// A pure operation once, into uniform registers.
    PureOnce(Box<dyn LaneLoop>),
    /// Uniform registers from the broadcast of operand B.
    UniformLoad,
    /// A load.
    Load(Access),
    /// A load from a constant bank.
    LoadConstant {
        /// The bank.
        bank: u8,
        /// Size and offset.
        access: Access,
    },
    /// A store.
    Store(Access),
    /// An atomic.
    Atomic(Atomic),
    /// MEMBAR: memory is sequentially consistent here, so nothing.
    Fence,
    /// S2R.
    ReadSpecial(SReg),
    /// S2UR.
    ReadSpecialOnce(SReg),
    /// R2UR.
    ToUniform,
    /// GETGPR with its offset.
    IndexedRead(i32),
    /// SETGPR with its offset.
    IndexedWrite(i32),
    /// SHFL.
    Shuffle(ShuffleMode),
    /// VOTE.
    Vote(VoteMode),
    /// MATCH.
    Match,
    /// BRA to an instruction.
    Branch(u32),
    /// BRX and RET: each lane to the code address in operand A.
    Indirect,
    /// BRX.REL: each lane to this code address plus operand A.
    IndirectFrom(i64),
    /// CALL of an instruction.
    Call(u32),
    /// CALL of the code address in operand B.
    CallIndirect,
    /// EXIT.
    Exit,
    /// TRAP.
    Trap(u8),
    /// BSSY.
    SetBarrier(u8),
    /// BSYNC.
    Reconverge(u8),
    /// BMOV to a register.
    ReadBarrier(u8),
    /// BMOV from a register.
    WriteBarrier(u8),
    /// WARPSYNC.
    WarpSync,
    /// BAR.SYNC.
    CtaBarrier,
}

impl Program {
    /// Decodes words; `semantics` gives the pure operations their meaning.
    pub fn new(words: &[u128], semantics: Reference) -> Program {
        let ops: Vec<Op> = words
            .iter()
            .enumerate()
            .map(|(i, word)| op(*word, i, words.len(), semantics))
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
        let global_atomics =
            ops.iter().any(|op| matches!(op.action, Action::Atomic(a) if a.access.window.is_none_or(|w| w == Window::Global)));
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

fn op(word: u128, index: usize, count: usize, semantics: Reference) -> Op {
    match decode(word) {
        Ok((inst, control)) => {
            let resolved = resolve(&inst);
            Op {
                action: action(&inst, index, count, semantics),
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
        let invert = info.not.is_some_and(|not| inst.field(not) != 0);
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
        FieldType::Signed => immediate(sign_extend(raw, field.width) as u64),
        // The high word of an f64; its low word is 0.
        FieldType::Float32 if words == 2 => immediate(raw << 32),
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

fn sign_extend(raw: u64, width: u8) -> i64 {
    let shift = 64 - u32::from(width);
    (raw << shift) as i64 >> shift
}

/// What a legal instruction does.
fn action(inst: &Inst<PReg>, index: usize, count: usize, semantics: Reference) -> Action {
    let effects = inst.optype().info().effects;
    if let Some(body) = pure(inst, semantics) {
        let once = inst
            .info()
            .operand(Role::D)
            .is_some_and(|d| d.class == Some(RegisterClass::Uniform));
        return if once {
            Action::PureOnce(body)
        } else {
            Action::Pure(body)
        };
    }
    if effects.contains(Effects::ATOMIC) {
        return Action::Atomic(atomic(inst));
    }
    let label = |name| target(inst, name, index);
    let to = |address: i64| {
        let inside = address >= 0
            && address % WORD_BYTES as i64 == 0
            && ((address / WORD_BYTES as i64) as usize) < count;
        if inside {
            (address / WORD_BYTES as i64) as u32
        } else {
            NOWHERE
        }
    };
    let small = |name| named(inst, name) as u8;
    match inst.optype() {
        Optype::LDG | Optype::LDS | Optype::LDL | Optype::LD => Action::Load(access(inst)),
        Optype::STG | Optype::STS | Optype::STL | Optype::ST => Action::Store(access(inst)),
        Optype::LDC => Action::LoadConstant {
            bank: small("bank"),
            access: access(inst),
        },
        Optype::MEMBAR => Action::Fence,
        Optype::ULDC => Action::UniformLoad,
        Optype::S2R => Action::ReadSpecial(special(inst)),
        Optype::S2UR => Action::ReadSpecialOnce(special(inst)),
        Optype::R2UR => Action::ToUniform,
        Optype::GETGPR => Action::IndexedRead(register_offset(inst)),
        Optype::SETGPR => Action::IndexedWrite(register_offset(inst)),
        Optype::SHFL => Action::Shuffle(shfl::SHFMODE.get(inst.word()).expect("a legal word")),
        Optype::VOTE => Action::Vote(vote::VOTEMODE.get(inst.word()).expect("a legal word")),
        Optype::MATCH => Action::Match,
        Optype::BRA => Action::Branch(to(label("label"))),
        Optype::BRX | Optype::RET => Action::Indirect,
        Optype::BRX_REL => Action::IndirectFrom(label("label")),
        Optype::CALL if inst.form() == Form::CALL_I => Action::Call(to(label("vb"))),
        Optype::CALL => Action::CallIndirect,
        Optype::EXIT => Action::Exit,
        Optype::TRAP => Action::Trap(small("code")),
        Optype::BSSY => Action::SetBarrier(small("bn")),
        Optype::BSYNC => Action::Reconverge(small("bn")),
        Optype::BMOV if inst.form() == Form::BMOV_R => Action::WriteBarrier(small("bn")),
        Optype::BMOV => Action::ReadBarrier(small("bs")),
        Optype::WARPSYNC => Action::WarpSync,
        Optype::BAR => Action::CtaBarrier,
        other => unreachable!(
            "{} is neither pure nor known to the device",
            other.info().name
        ),
    }
}

macro_rules! pure_table {
    ($($name:ident $module:ident;)*) => {
        /// The lane loop of a pure operation; none for one that has effects.
        fn pure(inst: &Inst<PReg>, semantics: Reference) -> Option<Box<dyn LaneLoop>> {
            Some(match inst.optype() {
                $(Optype::$name => {
                    let modifiers = <$module::Operation as PureOperation>::decode(inst.form(), inst.word());
                    Box::new(Pure::<$module::Operation>::new(modifiers, semantics))
                })*
                _ => return None,
            })
        }
    };
}
for_each_pure_operation!(pure_table);

fn named(inst: &Inst<PReg>, name: &str) -> u64 {
    inst.find_field(name).map_or(0, |f| f.get(inst.word()))
}

fn signed(inst: &Inst<PReg>, name: &str) -> i64 {
    inst.find_field(name)
        .map_or(0, |f| sign_extend(f.get(inst.word()), f.width))
}

/// Code address of a label of the instruction at `index`: its offset counts from the next one.
fn target(inst: &Inst<PReg>, name: &str, index: usize) -> i64 {
    (index as i64 + 1) * WORD_BYTES as i64 + signed(inst, name)
}

fn register_offset(inst: &Inst<PReg>) -> i32 {
    signed(inst, "ridx") as i32
}

fn special(inst: &Inst<PReg>) -> SReg {
    SReg::from_code(named(inst, "sreg")).expect("a legal word")
}

/// The window of an operation, from its effects.
fn window(effects: Effects) -> Option<Window> {
    [
        (Effects::GLOBAL, Window::Global),
        (Effects::SHARED, Window::Shared),
        (Effects::LOCAL, Window::Local),
    ]
    .into_iter()
    .find_map(|(effect, window)| effects.contains(effect).then_some(window))
}

/// The name of the member that an enumeration field holds.
fn member(info: &FormInfo, word: u128, name: &str) -> Option<&'static str> {
    let field = info.fields.iter().find(|f| f.name == name)?;
    match field.ty {
        FieldType::Enum(e) => e.name_of(field.get(word)),
        _ => None,
    }
}

fn access(inst: &Inst<PReg>) -> Access {
    // Sizes are numbers of bits, some with the letter of their extension.
    let size = member(inst.info(), inst.word(), "size").unwrap_or("32");
    let bits: u32 = size.trim_start_matches(['U', 'S']).parse().unwrap_or(32);
    Access {
        window: window(inst.optype().info().effects),
        bytes: (bits / 8) as u8,
        signed: size.starts_with('S'),
        uniform: inst
            .operand(Role::C)
            .is_some_and(|c| c.class == Some(RegisterClass::Uniform)),
        wide: inst
            .operand(Role::A)
            .is_some_and(|a| (a.width)(inst.word()) > 32),
        offset: signed(inst, "addr") as i32,
    }
}

fn atomic(inst: &Inst<PReg>) -> Atomic {
    let ty = AtomType::from_code(named(inst, "atype")).expect("a legal word");
    let op = inst
        .find_field("op")
        .map(|f| AtomOp::from_code(f.get(inst.word())).expect("a legal word"));
    let bytes = if matches!(ty, AtomType::U64 | AtomType::S64) {
        8
    } else {
        4
    };
    Atomic {
        access: Access {
            bytes,
            ..access(inst)
        },
        ty,
        op,
    }
}

impl Action {
    /// What kind of access it makes, if any.
    pub fn access_kind(&self) -> Option<AccessKind> {
        match self {
            Action::Load(_) => Some(AccessKind::Load),
            Action::Store(_) => Some(AccessKind::Store),
            Action::Atomic(_) => Some(AccessKind::Atomic),
            _ => None,
        }
    }
}
