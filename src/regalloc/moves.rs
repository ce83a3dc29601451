//! Machine instructions that copy and exchange registers, and that store and load them.

use super::parallel::{Copy, Step};
use crate::abi;
use crate::isa::{Form, Inst, PInst, PReg, Register, RegisterClass, Role, VInst, VReg};

/// Truth table of PLOP3 and LOP3 for "the first operand" and "the exclusive or of the first two" (documents 002, LOP3: bit 4a + 2b + c).
const FIRST: u64 = 0xf0;
const XOR: u64 = 0x3c;

/// `to` = `from`; a predicate in a GPR is 0 or 1.
///
/// # Panics
/// For a copy between predicates and uniform registers, which nothing asks for.
pub(super) fn copy(copy: Copy) -> PInst {
    let Copy { from, to } = copy;
    match (from.class(), to.class()) {
        (RegisterClass::Gpr, RegisterClass::Gpr) => unary(Form::MOV_R, to, from),
        (RegisterClass::Uniform, RegisterClass::Uniform) => unary(Form::UMOV_U, to, from),
        (RegisterClass::Predicate, RegisterClass::Predicate) => predicates(to, from, None, FIRST),
        (RegisterClass::Predicate, RegisterClass::Gpr) => predicate_to_gpr(to, from),
        (RegisterClass::Gpr, RegisterClass::Predicate) => gpr_to_predicate(to, from),
        (RegisterClass::Uniform, RegisterClass::Gpr) => uniform_to_gpr(to, from),
        (RegisterClass::Gpr, RegisterClass::Uniform) => gpr_to_uniform(to, from),
        (from, to) => unreachable!("no copy from {from:?} to {to:?}"),
    }
}

fn unary(form: Form, to: PReg, from: PReg) -> PInst {
    let mut inst = Inst::new(form);
    inst.set(Role::D, to);
    inst.set(Role::B, from);
    inst
}

/// `to` and `to + 1` = `from` and `from + 1`; both even.
pub(super) fn copy_pair(first: Copy) -> PInst {
    let next = |r: PReg| PReg::new(r.class(), r.number() + 1);
    let form = if first.to.class() == RegisterClass::Uniform {
        Form::UMOV_U
    } else {
        Form::MOV_R
    };
    let mut inst = Inst::new(form);
    inst.set_named("width", 1);
    for (role, r) in [(Role::D, first.to), (Role::B, first.from)] {
        let operand = inst.operand(role).expect("moves have both");
        inst.set_regs(operand, &[Some(r), Some(next(r))]);
    }
    inst
}

fn predicates(to: PReg, a: PReg, b: Option<PReg>, table: u64) -> PInst {
    let mut inst = Inst::new(Form::PLOP3_X);
    inst.set_named("lut", table);
    inst.set(Role::Pu, to);
    inst.set(Role::Pa, a);
    for (role, r) in [(Role::Pb, b), (Role::Pc, None)] {
        let operand = inst.operand(role).expect("PLOP3 has three sources");
        inst.set_regs(operand, &[r]);
    }
    inst
}

/// Exchanges two registers by three operations on both.
fn swap(a: PReg, b: PReg, out: &mut Vec<PInst>) {
    match a.class() {
        RegisterClass::Predicate => {
            out.push(predicates(a, a, Some(b), XOR));
            out.push(predicates(b, a, Some(b), XOR));
            out.push(predicates(a, a, Some(b), XOR));
        }
        RegisterClass::Gpr => {
            for to in [a, b, a] {
                let mut inst = Inst::new(Form::LOP3_RRR);
                inst.set_named("lut", XOR);
                inst.set(Role::D, to);
                inst.set(Role::A, a);
                inst.set(Role::B, b);
                let c = inst.operand(Role::C).expect("LOP3 has three sources");
                inst.set_regs(c, &[None]);
                let pp = inst.operand(Role::Pp).expect("LOP3 has a predicate source");
                inst.set_regs(pp, &[None]);
                inst.set_named("pp.not", 1);
                out.push(inst);
            }
        }
        RegisterClass::Uniform => {
            // a += b; b = a − b; a −= b.
            for (to, negated) in [(a, false), (b, true), (a, true)] {
                let mut inst = Inst::new(Form::UIADD_RU);
                inst.set(Role::D, to);
                inst.set(Role::A, a);
                inst.set(Role::B, b);
                inst.set_named("urb.neg", u64::from(negated));
                out.push(inst);
            }
        }
    }
}

/// The instructions for a sequence of steps; two moves that carry an aligned pair become one.
pub(super) fn instructions(steps: &[Step], out: &mut Vec<PInst>) {
    let mut i = 0;
    while i < steps.len() {
        match (steps[i], steps.get(i + 1)) {
            (Step::Move(x), Some(Step::Move(y))) if let Some(first) = pair(x, *y) => {
                out.push(copy_pair(first));
                i += 1;
            }
            (Step::Move(x), _) => out.push(copy(x)),
            (Step::Swap(a, b), _) => swap(a, b, out),
        }
        i += 1;
    }
}

/// The copy of the low half, if `x` before `y` copies an aligned pair to an aligned pair.
fn pair(x: Copy, y: Copy) -> Option<Copy> {
    let (low, high) = if x.to.number() < y.to.number() {
        (x, y)
    } else {
        (y, x)
    };
    let follows = |a: PReg, b: PReg| {
        a.class() == b.class() && a.number().is_multiple_of(2) && b.number() == a.number() + 1
    };
    let one_file = low.to.class() == low.from.class() && high.to.class() == high.from.class();
    let wide = one_file
        && low.to.class() != RegisterClass::Predicate
        && follows(low.to, high.to)
        && follows(low.from, high.from);
    // The second must not read what the first wrote: it never does, a low half is even and a high half odd.
    wide.then_some(low)
}

/// Stores `width` registers from `from` on to local memory at `offset` from R1.
pub(super) fn store(from: PReg, width: u8, offset: u32) -> PInst {
    let mut inst = Inst::new(Form::STL_RR);
    local(&mut inst, width, offset);
    let data = inst.operand(Role::B).expect("STL stores a register");
    inst.set_regs(data, &run(from, width)[..usize::from(width)]);
    inst
}

/// Loads `width` registers from `to` on from local memory at `offset` from R1.
pub(super) fn load(to: PReg, width: u8, offset: u32) -> PInst {
    let mut inst = Inst::new(Form::LDL_R);
    local(&mut inst, width, offset);
    let data = inst.operand(Role::D).expect("LDL loads a register");
    inst.set_regs(data, &run(to, width)[..usize::from(width)]);
    inst
}

fn run(first: PReg, width: u8) -> [Option<PReg>; 4] {
    std::array::from_fn(|i| (i < usize::from(width)).then(|| PReg::gpr(first.number() + i as u8)))
}

/// Sets address and size of an access to local memory.
fn local(inst: &mut PInst, width: u8, offset: u32) {
    set_access(inst, width, offset);
    inst.set(Role::A, abi::STACK_POINTER);
}

/// Sets offset and size, in registers, of an access to local memory.
pub(super) fn set_access<R: Register>(inst: &mut Inst<R>, width: u8, offset: u32) {
    let size = match width {
        1 => "32",
        2 => "64",
        _ => "128",
    };
    let field = inst.find_field("size").expect("accesses have a size");
    let crate::isa::table::FieldType::Enum(sizes) = field.ty else {
        unreachable!("a size is an enumeration")
    };
    let code = sizes
        .members
        .iter()
        .find(|(name, _)| *name == size)
        .expect("all sizes have members")
        .1;
    inst.set_named("size", code);
    inst.set_named("addr", u64::from(offset));
}

/// R1 = R1 + `amount`.
pub(super) fn adjust_stack_pointer(amount: i32) -> PInst {
    let mut inst = Inst::new(Form::IADD_RI);
    inst.set(Role::D, abi::STACK_POINTER);
    inst.set(Role::A, abi::STACK_POINTER);
    inst.set_named("vb", u64::from(amount as u32));
    inst
}

/// R1 = its initial value.
pub(super) fn initial_stack_pointer() -> PInst {
    let mut inst = Inst::new(Form::MOV_C);
    inst.set(Role::D, abi::STACK_POINTER);
    inst.set_named(
        "vb",
        u64::from(abi::LAUNCH_BANK) << 17 | u64::from(abi::bank0::STACK_POINTER),
    );
    inst
}

/// Stores a value to local memory at `offset` from `pointer`, which is in R1.
pub(super) fn spill_store(v: VReg, pointer: VReg, offset: u32) -> VInst {
    let mut inst = Inst::new(Form::STL_RR);
    set_access(&mut inst, 1, offset);
    inst.set(Role::A, pointer);
    inst.set(Role::B, v);
    inst
}

/// Loads a value from local memory at `offset` from `pointer`, which is in R1.
pub(super) fn spill_load(v: VReg, pointer: VReg, offset: u32) -> VInst {
    let mut inst = Inst::new(Form::LDL_R);
    set_access(&mut inst, 1, offset);
    inst.set(Role::A, pointer);
    inst.set(Role::D, v);
    inst
}

/// `to` = 1 if the predicate holds, else 0.
pub(super) fn predicate_to_gpr<R: Register>(to: R, predicate: R) -> Inst<R> {
    // SEL gives its first operand where the predicate holds: zero where the negated one does, else one.
    let mut inst = Inst::new(Form::SEL_RI);
    inst.set(Role::D, to);
    let zero = inst.operand(Role::A).expect("SEL has a first operand");
    inst.set_regs(zero, &[None]);
    inst.set_named("vb", 1);
    inst.set(Role::Pp, predicate);
    inst.set_named("pp.not", 1);
    inst
}

/// The predicate `to` holds if `from` is not 0.
pub(super) fn gpr_to_predicate<R: Register>(to: R, from: R) -> Inst<R> {
    let mut inst = Inst::new(Form::ISETP_RI);
    inst.set(Role::Pu, to);
    inst.set(Role::A, from);
    inst.set_named("vb", 0);
    inst.set_named("compop", 1);
    let all = inst
        .operand(Role::Pp)
        .expect("ISETP has a predicate operand");
    inst.set_regs(all, &[None]);
    inst
}

/// The uniform register `to` = `from`, which is the same for all lanes.
pub(super) fn gpr_to_uniform<R: Register>(to: R, from: R) -> Inst<R> {
    let mut inst = Inst::new(Form::R2UR_R);
    inst.set(Role::D, to);
    inst.set(Role::B, from);
    inst
}

/// `to` = the uniform value `from`.
pub(super) fn uniform_to_gpr<R: Register>(to: R, from: R) -> Inst<R> {
    let mut inst = Inst::new(Form::MOV_U);
    inst.set(Role::D, to);
    inst.set(Role::B, from);
    inst
}
