//! What instructions do: the choice of an [`Action`] for a word.
//!
//! Pure operations become lane loops ([`crate::sim::decode::specialised`]). The others are the device's own; their
//! windows, sizes and offsets are read off the description's effects, enumerations and fields.

use crate::isa::encode::WORD_BYTES;
use crate::isa::generated::*;
use crate::isa::inst::FieldEnum;
use crate::isa::literal::sign_extend;
use crate::isa::register::{PReg, RegisterClass};
use crate::isa::table::{Effects, FieldType, FormInfo};
use crate::isa::{Illegal, Inst};
use crate::launch::Window;
use crate::sim::decode::lane_loop::LaneLoop;
use crate::sim::decode::specialised::{Decoding, Resolving, lane_loop};
use crate::sim::memory::atomic;

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
    /// A load or store marked STRONG: other threads may use the place at the same time.
    pub strong: bool,
    /// Byte offset added to the address.
    pub offset: i32,
}

/// An atomic operation.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    /// Where.
    pub access: Access,
    /// Operation and type of the operands; none for compare-and-swap.
    pub op: Option<(AtomOp, AtomType)>,
}

impl Atomic {
    /// Its kind if those of this kind leave the same in memory whatever their order: exact ones that combine what is
    /// there with what they bring.
    pub fn commutes(self) -> Option<(AtomOp, Option<AtomType>, u8)> {
        let (op, ty) = self.op.filter(|(op, _)| *op != AtomOp::Exch)?;
        let exact = !matches!(ty, AtomType::F32 | AtomType::F16V2);
        let compares = matches!(op, AtomOp::Min | AtomOp::Max);
        exact.then_some((op, compares.then_some(ty), self.access.bytes))
    }
}

/// Instruction index of a label that lies outside of the code.
pub const NOWHERE: u32 = u32::MAX;

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
    /// MEMBAR of a scope: nothing, but where memory keeps no order ([`crate::sim::weak`]).
    Fence(MemScope),
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

/// What a legal instruction does.
pub(in crate::sim) fn action(
    resolved: Resolving<'_>,
    index: usize,
    count: usize,
    decoding: Decoding,
) -> Action {
    let inst = resolved.inst;
    let effects = inst.optype().info().effects;
    if let Some(body) = lane_loop(resolved, decoding) {
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
        return Action::Atomic(atomic_of(inst));
    }
    let label = || target(inst, index);
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
    let small = |role| number(inst, role) as u8;
    match inst.optype() {
        Optype::LDG | Optype::LDS | Optype::LDL | Optype::LD => Action::Load(access(inst)),
        Optype::STG | Optype::STS | Optype::STL | Optype::ST => Action::Store(access(inst)),
        Optype::LDC => Action::LoadConstant {
            bank: small(Role::Bank),
            access: access(inst),
        },
        Optype::MEMBAR => Action::Fence(membar::SCOPE.get(inst.word()).expect("a legal word")),
        Optype::ULDC => Action::UniformLoad,
        Optype::S2R => Action::ReadSpecial(special(inst)),
        Optype::S2UR => Action::ReadSpecialOnce(special(inst)),
        Optype::R2UR => Action::ToUniform,
        Optype::GETGPR => Action::IndexedRead(register_offset(inst)),
        Optype::SETGPR => Action::IndexedWrite(register_offset(inst)),
        Optype::SHFL => Action::Shuffle(shfl::SHFMODE.get(inst.word()).expect("a legal word")),
        Optype::VOTE => Action::Vote(vote::VOTEMODE.get(inst.word()).expect("a legal word")),
        Optype::MATCH => Action::Match,
        Optype::BRA => Action::Branch(to(label())),
        Optype::BRX | Optype::RET => Action::Indirect,
        Optype::BRX_REL => Action::IndirectFrom(label()),
        Optype::CALL if inst.form() == Form::CALL_I => Action::Call(to(label())),
        Optype::CALL => Action::CallIndirect,
        Optype::EXIT => Action::Exit,
        Optype::TRAP => Action::Trap(small(Role::Code)),
        Optype::BSSY => Action::SetBarrier(small(Role::Bn)),
        Optype::BSYNC => Action::Reconverge(small(Role::Bn)),
        Optype::BMOV if inst.form() == Form::BMOV_R => Action::WriteBarrier(small(Role::Bn)),
        Optype::BMOV => Action::ReadBarrier(small(Role::Bs)),
        Optype::WARPSYNC => Action::WarpSync,
        Optype::BAR => Action::CtaBarrier,
        other => unreachable!(
            "{} is neither pure nor known to the device",
            other.info().name
        ),
    }
}

fn number(inst: &Inst<PReg>, role: Role) -> u64 {
    inst.number(role).unwrap_or(0)
}

/// The signed value of a field; 0 where there is none.
fn signed(inst: &Inst<PReg>, field: Option<u8>) -> i64 {
    field.map_or(0, |f| {
        sign_extend(inst.field(f), inst.info().fields[f as usize].width.into())
    })
}

/// Code address of the label of the instruction at `index`: its offset counts from the next one.
fn target(inst: &Inst<PReg>, index: usize) -> i64 {
    let distance = signed(inst, inst.label().map(|o| o.field));
    (index as i64 + 1) * WORD_BYTES as i64 + distance
}

fn register_offset(inst: &Inst<PReg>) -> i32 {
    let operands = inst.info().operands;
    signed(inst, operands.iter().find_map(|o| o.index)) as i32
}

fn special(inst: &Inst<PReg>) -> SReg {
    SReg::from_code(number(inst, Role::Sreg)).expect("a legal word")
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
        strong: member(inst.info(), inst.word(), "order") == Some("STRONG"),
        offset: signed(inst, inst.number_operand(Role::Addr).map(|o| o.field)) as i32,
    }
}

fn atomic_of(inst: &Inst<PReg>) -> Atomic {
    let atype = inst.find_field("atype").map_or(0, |f| f.get(inst.word()));
    let op = inst.find_field("op").map(|f| {
        let op = AtomOp::from_code(f.get(inst.word())).expect("a legal word");
        (op, AtomType::from_code(atype).expect("a legal word"))
    });
    let bytes = match op {
        Some((_, ty)) => atomic::bytes(ty),
        None => atomic::swapped_bytes(CASType::from_code(atype).expect("a legal word")),
    };
    Atomic {
        access: Access {
            bytes,
            ..access(inst)
        },
        op,
    }
}
