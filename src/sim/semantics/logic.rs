//! Bits, predicates and selection: LOP3, PLOP3, SEL, P2R, R2P, and the integer comparisons ISETP and ISET (document
//! 002).
//!
//! The set of predicates travels as a byte, P0 in bit 0. Its bit 7 is PT: it reads as one whatever the caller passes,
//! and writing it has no effect.

use super::operands::*;
use std::cmp::Ordering;

/// PT in a byte of predicates.
const PT: u8 = 0x80;

/// The result of a comparison combined with the input predicate.
#[inline(always)]
pub(super) fn combine(comparison: bool, op: BoolOp, pp: bool) -> bool {
    match op {
        BoolOp::And => comparison & pp,
        BoolOp::Or => comparison | pp,
        BoolOp::Xor => comparison ^ pp,
    }
}

/// The comparison of ISETP and ISET. Under `.X`, where the high words are equal, `pq` (the low words' comparison)
/// decides.
#[inline(always)]
fn compare(a: u32, b: u32, itype: IType, op: CompOp, ext: IExt, pq: bool) -> bool {
    if ext == IExt::X && a == b {
        return pq;
    }
    let order = match itype {
        IType::S32 => (a as i32).cmp(&(b as i32)),
        IType::U32 => a.cmp(&b),
    };
    satisfies(order, op)
}

/// Whether numbers in this order satisfy a comparison.
#[inline(always)]
pub(super) fn satisfies(order: Ordering, op: CompOp) -> bool {
    match op {
        CompOp::Eq => order.is_eq(),
        CompOp::Ne => order.is_ne(),
        CompOp::Lt => order.is_lt(),
        CompOp::Le => order.is_le(),
        CompOp::Gt => order.is_gt(),
        CompOp::Ge => order.is_ge(),
    }
}

/// ISETP: `pu` is the comparison combined with `pp`, `pv` its complement combined with `pp` (document 002, ISETP).
#[inline(always)]
pub fn isetp(m: &isetp::Modifiers, s: &isetp::Sources) -> isetp::Results {
    let comparison = compare(s.a, s.b, m.itype, m.compop, m.ext, s.pq);
    isetp::Results {
        pu: combine(comparison, m.boolop, s.pp),
        pv: combine(!comparison, m.boolop, s.pp),
    }
}

/// ISET: the comparison combined with `pp`, as a mask or as 0.0 and 1.0 (document 002, ISET).
#[inline(always)]
pub fn iset(m: &iset::Modifiers, s: &iset::Sources) -> iset::Results {
    let holds = combine(
        compare(s.a, s.b, m.itype, m.compop, m.ext, s.pq),
        m.boolop,
        s.pp,
    );
    let d = match (holds, m.bmbf) {
        (false, _) => 0,
        (true, BMBF::Bm) => u32::MAX,
        (true, BMBF::Bf) => 1.0f32.to_bits(),
    };
    iset::Results { d }
}

/// SEL: `a` where `pp` is true, else `b` (document 002, SEL).
#[inline(always)]
pub fn sel(_: &sel::Modifiers, s: &sel::Sources) -> sel::Results {
    sel::Results {
        d: if s.pp { s.a } else { s.b },
    }
}

/// The function of three bits that the truth table `lut` gives, for all bits of three words.
#[inline(always)]
pub(super) fn by_table(lut: u32, a: u32, b: u32, c: u32) -> u32 {
    let entry = |index: u32| 0u32.wrapping_sub(lut >> index & 1);
    let select = |which: u32, one: u32, zero: u32| (which & one) | (!which & zero);
    let by_c = |first: u32| select(c, entry(first + 1), entry(first));
    let by_b = |first: u32| select(b, by_c(first + 2), by_c(first));
    select(a, by_b(4), by_b(0))
}

/// LOP3: any function of three bits, by its truth table; `pu` is whether any bit is set, combined with `pp` (document
/// 002, LOP3).
#[inline(always)]
pub fn lop3(m: &lop3::Modifiers, s: &lop3::Sources) -> lop3::Results {
    let d = by_table(s.lut, s.a, s.b, s.c);
    let pu = match m.exbool {
        EXBool::Pand => (d != 0) & s.pp,
        EXBool::Por => (d != 0) | s.pp,
    };
    lop3::Results { d, pu }
}

/// PLOP3: any function of three predicates, by its truth table (document 002, PLOP3).
pub fn plop3(_: &plop3::Modifiers, s: &plop3::Sources) -> plop3::Results {
    let index = u32::from(s.pa) << 2 | u32::from(s.pb) << 1 | u32::from(s.pc);
    plop3::Results {
        pu: s.lut >> index & 1 != 0,
    }
}

/// How far up the byte is that `bsel` names.
fn byte_shift(bsel: BSel) -> u32 {
    match bsel {
        BSel::B0 => 0,
        BSel::B1 => 8,
        BSel::B2 => 16,
        BSel::B3 => 24,
    }
}

/// P2R: `a` with those bits of byte `bsel` replaced by predicates that the mask in `b` selects (document 002, P2R).
///
/// The documents assign that byte alone; the other bytes are `a`'s.
pub fn p2r(m: &p2r::Modifiers, s: &p2r::Sources) -> p2r::Results {
    let shift = byte_shift(m.bsel);
    let mask = (s.b & 0xff) << shift;
    p2r::Results {
        d: (s.a & !mask) | (u32::from(s.predicates | PT) << shift & mask),
    }
}

/// R2P: the predicates that the mask in `b` selects are replaced by the bits of byte `bsel` of `a` (document 002, R2P).
///
/// Predicates that are not selected keep their values, as the text says; the pseudo-code would clear them.
pub fn r2p(m: &r2p::Modifiers, s: &r2p::Sources) -> r2p::Results {
    let mask = s.b as u8;
    let bits = (s.a >> byte_shift(m.a_bsel)) as u8;
    r2p::Results {
        predicates: (s.predicates & !mask) | (bits & mask) | PT,
    }
}
