//! Machine instructions that copy and exchange registers, and that store and load them.

use super::parallel::{Copy, CopyStep};
use crate::abi;
use crate::isa::generated::{
    BSel, BoolOp, CompOp, EXBool, IExt, IType, LoadSize, MOVW, StoreSize, iadd, isetp, ldl, lop3,
    mov, p2r, stl, uiadd, umov,
};
use crate::isa::operand::{Constant, PT, RZ, not};
use crate::isa::{Inst, PInst, PReg, Register, RegisterClass, Role, VInst, VReg, build};
use smallvec::SmallVec;

/// Truth table of PLOP3 and LOP3 for "the first operand" and "the exclusive or of the first two" (documents 002, LOP3:
/// bit 4a + 2b + c).
const FIRST: u8 = 0xf0;
const XOR: u8 = 0x3c;
/// "Both of the first two".
const AND: u8 = 0xc0;

/// `to` = `from`; a predicate in a GPR is 0 or 1.
///
/// # Panics
/// For a copy between predicates and uniform registers, which nothing asks for.
pub(super) fn copy(copy: Copy) -> PInst {
    let Copy { from, to } = copy;
    match (from.class(), to.class()) {
        (RegisterClass::Gpr, RegisterClass::Gpr) => {
            build::mov_r(mov::Options::new(MOVW::W32), to, from)
        }
        (RegisterClass::Uniform, RegisterClass::Uniform) => {
            build::umov_u(umov::Options::new(MOVW::W32), to, from)
        }
        (RegisterClass::Predicate, RegisterClass::Predicate) => {
            build::plop3_x(to, from, PT, PT, FIRST)
        }
        (RegisterClass::Predicate, RegisterClass::Gpr) => predicate_to_gpr(to, from),
        (RegisterClass::Gpr, RegisterClass::Predicate) => gpr_to_predicate(to, from),
        (RegisterClass::Uniform, RegisterClass::Gpr) => uniform_to_gpr(to, from),
        (RegisterClass::Gpr, RegisterClass::Uniform) => gpr_to_uniform(to, from),
        (from, to) => unreachable!("no copy from {from:?} to {to:?}"),
    }
}

/// `to` and `to + 1` = `from` and `from + 1`; both even.
pub(super) fn copy_pair(first: Copy) -> PInst {
    let pair = |r: PReg| [r, PReg::new(r.class(), r.number() + 1)];
    let [to, from] = [first.to, first.from].map(pair);
    if first.to.class() == RegisterClass::Uniform {
        build::umov_u(umov::Options::new(MOVW::W64), to, from)
    } else {
        build::mov_r(mov::Options::new(MOVW::W64), to, from)
    }
}

/// Exchanges two registers by three operations on both.
fn swap(a: PReg, b: PReg, out: &mut Vec<PInst>) {
    match a.class() {
        RegisterClass::Predicate => {
            out.extend([a, b, a].map(|to| build::plop3_x(to, a, b, PT, XOR)));
        }
        RegisterClass::Gpr => {
            let options = lop3::Options::new(EXBool::Por);
            let xor = |to| build::lop3_rrr(options, PT, to, a, b, RZ, XOR, !PT);
            out.extend([a, b, a].map(xor));
        }
        RegisterClass::Uniform => {
            // a += b; b = a − b; a −= b.
            for (to, negated) in [(a, false), (b, true), (a, true)] {
                let sum: PInst = build::uiadd_ru(uiadd::Options::new(MOVW::W32), to, a, b);
                out.push(sum.with_negated(Role::B, negated));
            }
        }
    }
}

/// The instructions for a sequence of steps; two moves that carry an aligned pair become one.
pub(super) fn instructions(steps: &[CopyStep], out: &mut Vec<PInst>) {
    let mut i = 0;
    while i < steps.len() {
        match (steps[i], steps.get(i + 1)) {
            (CopyStep::Move(x), Some(CopyStep::Move(y))) if let Some(first) = pair(x, *y) => {
                out.push(copy_pair(first));
                i += 1;
            }
            (CopyStep::Move(x), _) => out.push(copy(x)),
            (CopyStep::Swap(a, b), _) => swap(a, b, out),
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
    let options = stl::Options::new(match width {
        1 => StoreSize::W32,
        2 => StoreSize::W64,
        _ => StoreSize::W128,
    });
    let data = &run(from, width)[..];
    build::stl_rr(options, abi::STACK_POINTER, offset as i32, data)
}

/// Loads `width` registers from `to` on from local memory at `offset` from R1.
pub(super) fn load(to: PReg, width: u8, offset: u32) -> PInst {
    let options = ldl::Options::new(match width {
        1 => LoadSize::W32,
        2 => LoadSize::W64,
        _ => LoadSize::W128,
    });
    let data = &run(to, width)[..];
    build::ldl_r(options, data, abi::STACK_POINTER, offset as i32)
}

fn run(first: PReg, width: u8) -> SmallVec<[PReg; 4]> {
    (0..width).map(|i| PReg::gpr(first.number() + i)).collect()
}

/// R1 = R1 + `amount`.
pub(super) fn adjust_stack_pointer(amount: i32) -> PInst {
    let pointer = abi::STACK_POINTER;
    build::iadd_ri(
        iadd::Options::new(IExt::NoX),
        pointer,
        PT,
        pointer,
        amount,
        !PT,
    )
}

/// R1 = its initial value.
pub(super) fn initial_stack_pointer() -> PInst {
    let place = Constant {
        bank: abi::LAUNCH_BANK,
        offset: abi::bank0::STACK_POINTER,
    };
    build::mov_c(mov::Options::new(MOVW::W32), abi::STACK_POINTER, place)
}

/// Stores a value to local memory at `offset` from `pointer`, which is in R1.
pub(super) fn spill_store(v: VReg, pointer: VReg, offset: u32) -> VInst {
    let options = stl::Options::new(StoreSize::W32);
    build::stl_rr(options, pointer, offset as i32, v)
}

/// Loads a value from local memory at `offset` from `pointer`, which is in R1.
pub(super) fn spill_load(v: VReg, pointer: VReg, offset: u32) -> VInst {
    let options = ldl::Options::new(LoadSize::W32);
    build::ldl_r(options, v, pointer, offset as i32)
}

/// `to` = 1 if the predicate holds, else 0.
pub(super) fn predicate_to_gpr<R: Register>(to: R, predicate: R) -> Inst<R> {
    // SEL gives its first operand where the predicate holds: zero where the negated one does, else one.
    build::sel_ri(to, RZ, 1, not(predicate))
}

/// The predicate `to` holds if `from` is not 0.
pub(super) fn gpr_to_predicate<R: Register>(to: R, from: R) -> Inst<R> {
    let options = isetp::Options::new(IExt::NoX, IType::S32, CompOp::Ne, BoolOp::And);
    build::isetp_ri(options, to, PT, from, 0, PT, PT)
}

/// `to` = a word in which all of `predicates` that are yet to have registers are to have their bits ([`set_mask`]).
pub(super) fn pack<R: Register>(to: R) -> Inst<R> {
    // The bits that the mask does not select are those of RZ.
    build::p2r_ri(p2r::Options::new(BSel::B0), to, RZ, 0)
}

/// The predicate `to` holds if a bit of `from` that is yet to be chosen is set ([`set_mask`]).
pub(super) fn test_bit<R: Register>(to: R, from: R) -> Inst<R> {
    let options = lop3::Options::new(EXBool::Por);
    build::lop3_rir(options, to, RZ, from, 0, RZ, AND, !PT)
}

/// The predicates of `mask` = the bits of `from`; all others may be lost (docs/semantics.md).
pub(super) fn to_predicates(from: PReg, mask: u8) -> PInst {
    build::r2p_ri(from, u32::from(mask))
}

/// Chooses the bits of [`pack`] and [`test_bit`], the first being P0's.
pub(super) fn set_mask<R: Register>(inst: &mut Inst<R>, mask: u8) {
    inst.set_number(Role::B, u64::from(mask));
}

/// The uniform register `to` = `from`, which is the same for all lanes.
pub(super) fn gpr_to_uniform<R: Register>(to: R, from: R) -> Inst<R> {
    build::r2ur_r(to, from)
}

/// `to` = the uniform value `from`.
pub(super) fn uniform_to_gpr<R: Register>(to: R, from: R) -> Inst<R> {
    build::mov_u(mov::Options::new(MOVW::W32), to, from)
}
