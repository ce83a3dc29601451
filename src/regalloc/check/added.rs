//! What an instruction does that the allocator has added.
//!
//! The encodings that count as a copy are said again here, not taken from where the allocator makes them.

use super::layout::Layout;
use super::location::StorageLocation;
use crate::abi;
use crate::isa::generated::{
    BoolOp, CompOp, EXBool, IExt, IType, LoadSize, MOVW, StoreSize, iadd, isetp, ldl, lop3, mov,
    p2r, stl, uiadd,
};
use crate::isa::operand::{Constant, PT, RZ, not};
use crate::isa::table::Effects;
use crate::isa::{Form, Inst, PInst, PReg, Register, RegisterClass, Role, build};
use crate::vcode::Entry;
use smallvec::{SmallVec, smallvec};

/// An effect on places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::regalloc) enum Action {
    /// Each first place takes over what the second held: copies, stores and loads, and exchanges, which are three
    /// instructions.
    Move(Pairs),
    /// Predicates become bits of a register from `shift` on, those that `mask` names.
    Pack { to: PReg, shift: u8, mask: u8 },
    /// All predicates are written, those that `mask` names from the bits of a register from `shift` on.
    Unpack { from: PReg, shift: u8, mask: u8 },
    /// A predicate gets bit `bit` of a register.
    Test { to: PReg, from: PReg, bit: u8 },
    /// R1 moves by so many bytes.
    Adjust(i32),
    /// R1 gets the value that a kernel starts with.
    Start,
    /// Something is computed; only what needs the result can tell whether it is the right thing.
    Compute,
}

/// Targets with their sources.
pub(in crate::regalloc) type Pairs = SmallVec<[(StorageLocation, StorageLocation); 4]>;

/// Predicates that exist.
const PREDICATES: u8 = RegisterClass::Predicate.hardwired();
/// Truth tables of LOP3 and PLOP3 (document 002): the first operand, the exclusive or of the first two, and both of
/// them.
const FIRST: u64 = 0xf0;
const XOR: u64 = 0x3c;
const BOTH: u64 = 0xc0;

/// What the instruction that `rest` begins with does, and how many instructions do it together.
///
/// # Errors
/// When it is nothing that an allocator may add.
pub(in crate::regalloc) fn action(
    rest: &[Entry<PReg>],
    layout: &Layout,
) -> Result<(Action, usize), String> {
    let inst = &rest[0].inst;
    if !inst.is_unguarded() {
        return Err("is added and has a guard".to_string());
    }
    if let Some(step) = stack_pointer(inst) {
        return Ok((step, 1));
    }
    if inst.definitions().any(|r| r == abi::STACK_POINTER) {
        return Err("writes the stack pointer".to_string());
    }
    if rest[0].attachment.is_none() {
        if exchanged(inst).is_some() {
            if let Some(pairs) = exchange_of(rest) {
                return Ok((Action::Move(pairs), 3));
            }
        } else if let Some(pairs) = copy(inst) {
            return Ok((Action::Move(pairs), 1));
        }
        if let Some(pairs) = memory(inst, layout)? {
            return Ok((Action::Move(pairs), 1));
        }
        if let Some(tested) = tested(inst) {
            return Ok((tested, 1));
        }
        if let Some(packed) = packed(inst) {
            return Ok((packed, 1));
        }
    }
    if is_fixed(inst) {
        Ok((Action::Compute, 1))
    } else {
        Err("is nothing that may be added".to_string())
    }
}

fn registers(inst: &PInst, role: Role) -> SmallVec<[PReg; 4]> {
    let operand = inst.operand(role);
    operand
        .map(|o| inst.operand_regs(o).iter().copied().flatten().collect())
        .unwrap_or_default()
}

fn pairs(to: &[PReg], from: &[PReg]) -> Option<Pairs> {
    let all = to
        .iter()
        .zip(from)
        .map(|(t, f)| (StorageLocation::from(*t), StorageLocation::from(*f)));
    (to.len() == from.len() && !to.is_empty()).then(|| all.collect())
}

/// A change of R1.
pub(in crate::regalloc) fn stack_pointer(inst: &PInst) -> Option<Action> {
    let r1 = abi::STACK_POINTER;
    let start = Constant {
        bank: abi::LAUNCH_BANK,
        offset: abi::bank0::STACK_POINTER,
    };
    if *inst == build::mov_c(mov::Options::new(MOVW::W32), r1, start) {
        return Some(Action::Start);
    }
    let amount = inst.number(Role::B)? as u32 as i32;
    let plain = iadd::Options::new(IExt::NoX);
    (*inst == build::iadd_ri(plain, r1, PT, r1, amount, !PT)).then_some(Action::Adjust(amount))
}

/// A copy in a file or between files, as pairs of places.
pub(in crate::regalloc) fn copy(inst: &PInst) -> Option<Pairs> {
    let one = |to: Role, from: Role| Some((inst.reg(to)?, inst.reg(from)?));
    match inst.form() {
        Form::MOV_R | Form::UMOV_U => pairs(&registers(inst, Role::D), &registers(inst, Role::B)),
        Form::SEL_RI => {
            let (to, from) = one(Role::D, Role::Pp)?;
            let expected: PInst = build::sel_ri(to, RZ, 1, not(from));
            (*inst == expected).then(|| pairs(&[to], &[from]))?
        }
        Form::ISETP_RI => {
            let (to, from) = one(Role::Pu, Role::A)?;
            let options = isetp::Options::new(IExt::NoX, IType::S32, CompOp::Ne, BoolOp::And);
            let expected: PInst = build::isetp_ri(options, to, PT, from, 0, PT, PT);
            (*inst == expected).then(|| pairs(&[to], &[from]))?
        }
        Form::MOV_U => {
            let (to, from) = one(Role::D, Role::B)?;
            let expected: PInst = build::mov_u(mov::Options::new(MOVW::W32), to, from);
            (*inst == expected).then(|| pairs(&[to], &[from]))?
        }
        Form::R2UR_R => {
            let (to, from) = one(Role::D, Role::B)?;
            let expected: PInst = build::r2ur_r(to, from);
            (*inst == expected).then(|| pairs(&[to], &[from]))?
        }
        Form::PLOP3_X if inst.number(Role::Lut) == Some(FIRST) => {
            let (to, from) = one(Role::Pu, Role::Pa)?;
            let expected: PInst = build::plop3_x(to, from, PT, PT, FIRST as u8);
            (*inst == expected).then(|| pairs(&[to], &[from]))?
        }
        _ => None,
    }
}

/// The registers of an operation that could be a third of an exchange.
fn exchanged(inst: &PInst) -> Option<[PReg; 2]> {
    let xor = inst.number(Role::Lut) == Some(XOR);
    let (a, b) = match inst.form() {
        Form::PLOP3_X if xor => (Role::Pa, Role::Pb),
        Form::LOP3_RRR if xor => (Role::A, Role::B),
        Form::UIADD_RU => (Role::A, Role::B),
        _ => return None,
    };
    let registers = [inst.reg(a)?, inst.reg(b)?];
    (registers[0] != registers[1]).then_some(registers)
}

/// What `rest` exchanges, if it begins with the three operations that do that.
pub(in crate::regalloc) fn exchange_of(rest: &[Entry<PReg>]) -> Option<Pairs> {
    let [a, b] = exchanged(&rest.first()?.inst)?;
    let is_one = exchange(rest, a, b);
    let (a, b) = (StorageLocation::from(a), StorageLocation::from(b));
    is_one.then(|| smallvec![(a, b), (b, a)])
}

/// Whether `rest` begins with three operations on `a` and `b` after which each has what the other had: a, b and a in
/// turn get their exclusive or; in uniform registers a += b, b = a − b, a −= b.
fn exchange(rest: &[Entry<PReg>], a: PReg, b: PReg) -> bool {
    let step = |(to, minus): (PReg, bool)| -> PInst {
        match to.class() {
            RegisterClass::Predicate => build::plop3_x(to, a, b, PT, XOR as u8),
            RegisterClass::Gpr => {
                let options = lop3::Options::new(EXBool::Por);
                build::lop3_rrr(options, PT, to, a, b, RZ, XOR as u8, !PT)
            }
            RegisterClass::Uniform => {
                let sum: PInst = build::uiadd_ru(uiadd::Options::new(MOVW::W32), to, a, b);
                sum.with_negated(Role::B, minus)
            }
        }
    };
    let steps = [(a, false), (b, true), (a, true)].map(step);
    rest.len() >= steps.len()
        && steps
            .iter()
            .zip(rest)
            .all(|(step, entry)| *step == entry.inst)
}

/// A store to the spill area or a load from it.
pub(in crate::regalloc) fn memory(inst: &PInst, layout: &Layout) -> Result<Option<Pairs>, String> {
    let data = match inst.form() {
        Form::STL_RR => registers(inst, Role::B),
        Form::LDL_R => registers(inst, Role::D),
        _ => return Ok(None),
    };
    if inst.reg(Role::A) != Some(abi::STACK_POINTER) {
        return Err("is added and does not address from R1".to_string());
    }
    let offset = inst.number(Role::Addr).unwrap_or(u64::MAX);
    let words = layout.places(offset, data.len())?;
    let r1 = abi::STACK_POINTER;
    let load = inst.form() == Form::LDL_R;
    let expected: Option<PInst> = match (load, data.len()) {
        (true, 1..=4) => {
            let size =
                [LoadSize::W32, LoadSize::W64, LoadSize::W128, LoadSize::W128][data.len() - 1];
            Some(build::ldl_r(
                ldl::Options::new(size),
                &data[..],
                r1,
                offset as i32,
            ))
        }
        (false, 1..=4) => {
            let size = [
                StoreSize::W32,
                StoreSize::W64,
                StoreSize::W128,
                StoreSize::W128,
            ][data.len() - 1];
            Some(build::stl_rr(
                stl::Options::new(size),
                r1,
                offset as i32,
                &data[..],
            ))
        }
        _ => None,
    };
    if expected != Some(*inst) {
        return Err("is added and does not move whole words".to_string());
    }
    let pair = |(word, r): (StorageLocation, &PReg)| {
        if load {
            (StorageLocation::from(*r), word)
        } else {
            (word, StorageLocation::from(*r))
        }
    };
    Ok(Some(words.zip(&data).map(pair).collect()))
}

/// A LOP3 whose only result is whether one bit is set.
fn tested(inst: &PInst) -> Option<Action> {
    if inst.form() != Form::LOP3_RIR {
        return None;
    }
    let (to, from) = (inst.reg(Role::Pu)?, inst.reg(Role::A)?);
    let mask = inst.number(Role::B)? as u32;
    let options = lop3::Options::new(EXBool::Por);
    let expected: PInst = build::lop3_rir(options, to, RZ, from, mask, RZ, BOTH as u8, !PT);
    (mask.is_power_of_two() && *inst == expected).then_some(Action::Test {
        to,
        from,
        bit: mask.trailing_zeros() as u8,
    })
}

/// P2R and R2P with a mask in the word. What they leave as it is counts as lost, because the documents can be read in
/// more than one way.
fn packed(inst: &PInst) -> Option<Action> {
    let mask = |inst: &PInst| {
        inst.number(Role::B)
            .map(|n| n as u8 & ((1 << PREDICATES) - 1))
    };
    let select = |inst: &PInst| inst.operand(Role::A)?.select.map(|f| inst.field(f));
    match inst.form() {
        Form::P2R_RI => Some(Action::Pack {
            to: inst.reg(Role::D)?,
            shift: 8 * p2r::BSEL.raw(inst.word()) as u8,
            mask: mask(inst)?,
        }),
        Form::R2P_RI => Some(Action::Unpack {
            from: inst.reg(Role::A)?,
            shift: 8 * select(inst)? as u8,
            mask: mask(inst)?,
        }),
        _ => None,
    }
}

/// Whether an instruction does nothing but to give results that follow from its operands.
pub(super) fn is_fixed<R: Register>(inst: &Inst<R>) -> bool {
    let effects = inst.optype().info().effects;
    let constant = Effects::LOAD.union(Effects::CONSTANT);
    effects == Effects::default()
        || effects == constant
        || effects == Effects::CONSTANT
        || effects == Effects::SPECIAL && !reads_what_changes(inst)
}

/// Whether it reads a special register that has another value later: a clock, the lanes that are active.
fn reads_what_changes<R: Register>(inst: &Inst<R>) -> bool {
    use crate::isa::table::FieldType;
    let mut names = inst.info().fields.iter().filter_map(|f| match f.ty {
        FieldType::Enum(names) if f.type_name == "SReg" => {
            Some(names.name_of(f.get(inst.word())).unwrap_or("CLOCK"))
        }
        _ => None,
    });
    names.any(|n| n.contains("CLOCK") || n.contains("ACTIVEMASK"))
}

/// Whether `inst` is the addition for word `word` of an address: the carry out of the lower word goes in.
pub(super) fn is_address_addition(inst: &PInst, word: u8) -> bool {
    let (Some(d), Some(a), Some(b)) = (inst.reg(Role::D), inst.reg(Role::A), inst.reg(Role::B))
    else {
        return false;
    };
    let out = |inst: &PInst| inst.reg(Role::Pu);
    let carry_in = inst.reg(Role::Pp);
    let sum = |extended: IExt| -> PInst {
        let options = iadd::Options::new(extended);
        match (out(inst), carry_in) {
            (Some(out), Some(c)) => build::iadd_rr(options, d, out, a, b, c),
            (Some(out), None) => build::iadd_rr(options, d, out, a, b, !PT),
            (None, Some(c)) => build::iadd_rr(options, d, PT, a, b, c),
            (None, None) => build::iadd_rr(options, d, PT, a, b, !PT),
        }
    };
    inst.form() == Form::IADD_RR
        && (word == 0) == carry_in.is_none()
        && (*inst == sum(IExt::X) || word == 0 && *inst == sum(IExt::NoX))
}
