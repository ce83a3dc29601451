//! The arithmetic of the uniform datapath: ULDC, UMOV, UIADD, UIMAD, UIMAD_WIDE, USHF, USHF_64, ULOP3, ULEA, UMNMX,
//! USEL, UISETP (companion instructions).
//!
//! Operands of 32 or 64 bits come as 64 bits, of which the instruction's own width is read. Where an instruction is one
//! of the documents' in uniform registers, its function calls that one.

use super::operands::*;
use super::{integer, logic, shift};
use crate::bits::{Bits, Joined, Truth, Word};

/// `value` in the width of the instruction.
fn limited<P: Joined>(value: &P, width: MOVW) -> P {
    match width {
        MOVW::W32 => P::of_unsigned(&value.low()),
        MOVW::W64 => value.clone(),
    }
}

/// ULDC: `b`, which comes from constant memory (companion).
pub fn uldc<W: Word>(m: &uldc::Modifiers, s: &uldc::Sources<W>) -> uldc::Results<W> {
    uldc::Results {
        d: limited(&s.b, m.width),
    }
}

/// UMOV: `b` (companion).
pub fn umov<W: Word>(m: &umov::Modifiers, s: &umov::Sources<W>) -> umov::Results<W> {
    umov::Results {
        d: limited(&s.b, m.width),
    }
}

/// UIADD: `a + b` modulo 2^32 or 2^64, either one negated on request (companion).
pub fn uiadd<W: Word>(m: &uiadd::Modifiers, s: &uiadd::Sources<W>) -> uiadd::Results<W> {
    let sum = s.a.negated_if(m.a_neg).plus(&s.b.negated_if(m.b_neg));
    uiadd::Results {
        d: limited(&sum, m.width),
    }
}

/// UIMAD: the low or the high word of `a * b`, plus `c` (companion; IMAD without carries).
pub fn uimad<W: Word>(m: &uimad::Modifiers, s: &uimad::Sources<W>) -> uimad::Results<W> {
    let product = integer::word(&integer::product(&s.a, &s.b, m.itype), m.lohi);
    uimad::Results {
        d: product.plus(&s.c.negated_if(m.c_neg)),
    }
}

/// UIMAD_WIDE: all 64 bits of `a * b`, plus the 64-bit `c` (companion; IMAD_WIDE without carries).
pub fn uimad_wide<W: Word>(
    m: &uimad_wide::Modifiers,
    s: &uimad_wide::Sources<W>,
) -> uimad_wide::Results<W> {
    let product = integer::product(&s.a, &s.b, m.itype);
    uimad_wide::Results {
        d: product.plus(&s.c.negated_if(m.c_neg)),
    }
}

/// USHF: a word of `{c, a}` shifted by `b` (companion; SHF).
pub fn ushf<W: Word>(m: &ushf::Modifiers, s: &ushf::Sources<W>) -> ushf::Results<W> {
    let modifiers = shf::Modifiers {
        lohi: m.lohi,
        itype: m.itype,
        cwmod: m.cwmod,
        direction: m.direction,
    };
    let sources = shf::Sources {
        a: s.a.clone(),
        b: s.b.clone(),
        c: s.c.clone(),
    };
    ushf::Results {
        d: shift::shf(&modifiers, &sources).d,
    }
}

/// USHF_64: the 64 bits of `a` shifted by `b`, which is limited to 64 by clamping or modulo (companion).
pub fn ushf_64<W: Word>(m: &ushf_64::Modifiers, s: &ushf_64::Sources<W>) -> ushf_64::Results<W> {
    let amount = W::Pair::of_unsigned(&shift::limited(&s.b, 64, m.cwmod));
    ushf_64::Results {
        d: shift::shift_pair(&s.a, &amount, m.direction, m.itype == IXType::S64),
    }
}

/// ULOP3: any function of three bits, by its truth table (companion; LOP3 without its predicate).
pub fn ulop3<W: Word>(_: &ulop3::Modifiers, s: &ulop3::Sources<W>) -> ulop3::Results<W> {
    ulop3::Results {
        d: logic::by_table(s.lut, &s.a, &s.b, &s.c),
    }
}

/// ULEA: `(a << shiftamt) + b` modulo 2^32 or 2^64, either term negated on request (companion).
pub fn ulea<W: Word>(m: &ulea::Modifiers, s: &ulea::Sources<W>) -> ulea::Results<W> {
    let scaled = s.a.up(s.shiftamt & 31);
    let sum = scaled.negated_if(m.a_neg).plus(&s.b.negated_if(m.b_neg));
    ulea::Results {
        d: limited(&sum, m.width),
    }
}

/// The width of integers of a type.
fn width(itype: SHFDType) -> MOVW {
    match itype {
        SHFDType::S32 | SHFDType::U32 => MOVW::W32,
        SHFDType::S64 | SHFDType::U64 => MOVW::W64,
    }
}

/// Whether `a` and `b` of the type satisfy a comparison.
fn compared<P: Joined>(a: &P, b: &P, itype: SHFDType, op: CompOp) -> P::Bit {
    let signed = matches!(itype, SHFDType::S32 | SHFDType::S64);
    match width(itype) {
        MOVW::W32 => logic::compared(&a.low(), &b.low(), signed, op),
        MOVW::W64 => logic::compared(a, b, signed, op),
    }
}

/// UMNMX: the smaller of `a` and `b` where `pp` is true, else the greater (companion; IMNMX).
pub fn umnmx<W: Word>(m: &umnmx::Modifiers, s: &umnmx::Sources<W>) -> umnmx::Results<W> {
    let a_is_less = compared(&s.a, &s.b, m.itype, CompOp::Lt);
    let chosen = W::Pair::choose(&a_is_less.xor(&s.pp), &s.b, &s.a);
    umnmx::Results {
        d: limited(&chosen, width(m.itype)),
    }
}

/// USEL: `a` where `pp` is true, else `b` (companion; SEL).
pub fn usel<W: Word>(m: &usel::Modifiers, s: &usel::Sources<W>) -> usel::Results<W> {
    usel::Results {
        d: limited(&W::Pair::choose(&s.pp, &s.a, &s.b), m.width),
    }
}

/// UISETP: the comparison of `a` with `b`, combined with `pp` (companion; ISETP).
pub fn uisetp<W: Word>(m: &uisetp::Modifiers, s: &uisetp::Sources<W>) -> uisetp::Results<W> {
    let comparison = compared(&s.a, &s.b, m.itype, m.compop);
    uisetp::Results {
        pu: logic::combine(&comparison, m.boolop, &s.pp),
    }
}
