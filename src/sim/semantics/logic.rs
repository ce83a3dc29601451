//! Bits, predicates and selection: LOP3, PLOP3, SEL, P2R, R2P, and the integer comparisons ISETP and ISET (document
//! 002).
//!
//! The set of predicates travels as a byte, P0 in bit 0. Its bit 7 is PT: it reads as one whatever the caller passes,
//! and writing it has no effect.

use super::operands::*;
use crate::bits::{Bits, Truth, Word, byte, word_of_byte};

/// PT in a byte of predicates.
const PT: u64 = 0x80;

/// The result of a comparison combined with the input predicate.
#[inline(always)]
pub(super) fn combine<T: Truth>(comparison: &T, op: BoolOp, pp: &T) -> T {
    match op {
        BoolOp::And => comparison.and(pp),
        BoolOp::Or => comparison.or(pp),
        BoolOp::Xor => comparison.xor(pp),
    }
}

/// The comparison of ISETP and ISET. Under `.X`, where the high words are equal, `pq` (the low words' comparison)
/// decides.
#[inline(always)]
fn compare<W: Word>(a: &W, b: &W, itype: IType, op: CompOp, ext: IExt, pq: &W::Bit) -> W::Bit {
    let holds = compared(a, b, itype == IType::S32, op);
    match ext {
        IExt::NoX => holds,
        IExt::X => {
            let equal = a.equals(b);
            equal.and(pq).or(&equal.not().and(&holds))
        }
    }
}

/// Whether two numbers satisfy a comparison.
#[inline(always)]
pub(super) fn compared<T: Bits>(a: &T, b: &T, signed: bool, op: CompOp) -> T::Bit {
    let less = |a: &T, b: &T| match signed {
        true => a.is_less(b),
        false => a.is_below(b),
    };
    match op {
        CompOp::Eq => a.equals(b),
        CompOp::Ne => a.equals(b).not(),
        CompOp::Lt => less(a, b),
        CompOp::Le => less(b, a).not(),
        CompOp::Gt => less(b, a),
        CompOp::Ge => less(a, b).not(),
    }
}

/// ISETP: `pu` is the comparison combined with `pp`, `pv` its complement combined with `pp` (document 002, ISETP).
#[inline(always)]
pub fn isetp<W: Word>(m: &isetp::Modifiers, s: &isetp::Sources<W>) -> isetp::Results<W> {
    let comparison = compare(&s.a, &s.b, m.itype, m.compop, m.ext, &s.pq);
    isetp::Results {
        pu: combine(&comparison, m.boolop, &s.pp),
        pv: combine(&comparison.not(), m.boolop, &s.pp),
    }
}

/// ISET: the comparison combined with `pp`, as a mask or as 0.0 and 1.0 (document 002, ISET).
#[inline(always)]
pub fn iset<W: Word>(m: &iset::Modifiers, s: &iset::Sources<W>) -> iset::Results<W> {
    let comparison = compare(&s.a, &s.b, m.itype, m.compop, m.ext, &s.pq);
    let holds = combine(&comparison, m.boolop, &s.pp);
    let yes = match m.bmbf {
        BMBF::Bm => W::ones(),
        BMBF::Bf => W::number(u64::from(1.0f32.to_bits())),
    };
    iset::Results {
        d: W::choose(&holds, &yes, &W::zero()),
    }
}

/// SEL: `a` where `pp` is true, else `b` (document 002, SEL).
#[inline(always)]
pub fn sel<W: Word>(_: &sel::Modifiers, s: &sel::Sources<W>) -> sel::Results<W> {
    sel::Results {
        d: W::choose(&s.pp, &s.a, &s.b),
    }
}

/// The function of three bits that the truth table `lut` gives, for all bits of three words.
#[inline(always)]
pub(super) fn by_table<W: Word>(lut: u32, a: &W, b: &W, c: &W) -> W {
    let entry = |index: u32| W::number(u64::from(lut >> index & 1)).negated();
    let select = |which: &W, one: &W, zero: &W| which.and(one).or(&which.complement().and(zero));
    let by_c = |first: u32| select(c, &entry(first + 1), &entry(first));
    let by_b = |first: u32| select(b, &by_c(first + 2), &by_c(first));
    select(a, &by_b(4), &by_b(0))
}

/// LOP3: any function of three bits, by its truth table; `pu` is whether any bit is set, combined with `pp` (document
/// 002, LOP3).
#[inline(always)]
pub fn lop3<W: Word>(m: &lop3::Modifiers, s: &lop3::Sources<W>) -> lop3::Results<W> {
    let d = by_table(s.lut, &s.a, &s.b, &s.c);
    let pu = match m.exbool {
        EXBool::Pand => d.is_any().and(&s.pp),
        EXBool::Por => d.is_any().or(&s.pp),
    };
    lop3::Results { d, pu }
}

/// PLOP3: any function of three predicates, by its truth table (document 002, PLOP3).
pub fn plop3<W: Word>(_: &plop3::Modifiers, s: &plop3::Sources<W>) -> plop3::Results<W> {
    let bits = [&s.pa, &s.pb, &s.pc].map(|p| W::one_if(p));
    let [a, b, c] = bits;
    let d = by_table(s.lut, &a, &b, &c);
    plop3::Results { pu: d.bit(0) }
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
pub fn p2r<W: Word>(m: &p2r::Modifiers, s: &p2r::Sources<W>) -> p2r::Results<W> {
    let shift = byte_shift(m.bsel);
    let mask = s.b.and(&W::number(0xff)).up(shift);
    let predicates: W = word_of_byte(&s.predicates.or(&W::Byte::number(PT)), false);
    p2r::Results {
        d: (s.a.and(&mask.complement())).or(&predicates.up(shift).and(&mask)),
    }
}

/// R2P: the predicates that the mask in `b` selects are replaced by the bits of byte `bsel` of `a` (document 002, R2P).
///
/// Predicates that are not selected keep their values, as the text says; the pseudo-code would clear them.
pub fn r2p<W: Word>(m: &r2p::Modifiers, s: &r2p::Sources<W>) -> r2p::Results<W> {
    let mask = byte(&s.b, 0);
    let bits = byte(&s.a, byte_shift(m.a_bsel) / 8);
    let kept = s.predicates.and(&mask.complement());
    r2p::Results {
        predicates: kept.or(&bits.and(&mask)).or(&W::Byte::number(PT)),
    }
}
