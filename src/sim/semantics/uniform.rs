//! The arithmetic of the uniform datapath: ULDC, UMOV, UIADD, UIMAD, UIMAD_WIDE, USHF, USHF_64, ULOP3, ULEA, UMNMX,
//! USEL, UISETP (companion instructions).
//!
//! Operands of 32 or 64 bits come as 64 bits, of which the instruction's own width is read. Where an instruction is one
//! of the documents' in uniform registers, its function calls that one.

use super::operands::*;
use super::{integer, logic, shift};
use std::cmp::Ordering;

/// `value` in the width of the instruction.
fn limited(value: u64, width: MOVW) -> u64 {
    match width {
        MOVW::W32 => u64::from(value as u32),
        MOVW::W64 => value,
    }
}

/// `value`, or its negation modulo 2^64.
fn signed(value: u64, negated: bool) -> u64 {
    if negated { value.wrapping_neg() } else { value }
}

/// ULDC: `b`, which comes from constant memory (companion).
pub fn uldc(m: &uldc::Modifiers, s: &uldc::Sources) -> uldc::Results {
    uldc::Results {
        d: limited(s.b, m.width),
    }
}

/// UMOV: `b` (companion).
pub fn umov(m: &umov::Modifiers, s: &umov::Sources) -> umov::Results {
    umov::Results {
        d: limited(s.b, m.width),
    }
}

/// UIADD: `a + b` modulo 2^32 or 2^64, either one negated on request (companion).
pub fn uiadd(m: &uiadd::Modifiers, s: &uiadd::Sources) -> uiadd::Results {
    let sum = signed(s.a, m.a_neg).wrapping_add(signed(s.b, m.b_neg));
    uiadd::Results {
        d: limited(sum, m.width),
    }
}

/// UIMAD: the low or the high word of `a * b`, plus `c` (companion; IMAD without carries).
pub fn uimad(m: &uimad::Modifiers, s: &uimad::Sources) -> uimad::Results {
    let product = integer::word(integer::product(s.a, s.b, m.itype), m.lohi);
    let c = if m.c_neg { s.c.wrapping_neg() } else { s.c };
    uimad::Results {
        d: product.wrapping_add(c),
    }
}

/// UIMAD_WIDE: all 64 bits of `a * b`, plus the 64-bit `c` (companion; IMAD_WIDE without carries).
pub fn uimad_wide(m: &uimad_wide::Modifiers, s: &uimad_wide::Sources) -> uimad_wide::Results {
    let product = integer::product(s.a, s.b, m.itype);
    uimad_wide::Results {
        d: product.wrapping_add(signed(s.c, m.c_neg)),
    }
}

/// USHF: a word of `{c, a}` shifted by `b` (companion; SHF).
pub fn ushf(m: &ushf::Modifiers, s: &ushf::Sources) -> ushf::Results {
    let modifiers = shf::Modifiers {
        lohi: m.lohi,
        itype: m.itype,
        cwmod: m.cwmod,
        direction: m.direction,
    };
    let sources = shf::Sources {
        a: s.a,
        b: s.b,
        c: s.c,
    };
    ushf::Results {
        d: shift::shf(&modifiers, &sources).d,
    }
}

/// USHF_64: the 64 bits of `a` shifted by `b`, which is limited to 64 by clamping or modulo (companion).
pub fn ushf_64(m: &ushf_64::Modifiers, s: &ushf_64::Sources) -> ushf_64::Results {
    let amount = match m.cwmod {
        CWMode::C => s.b.min(64),
        CWMode::W => s.b % 64,
    };
    ushf_64::Results {
        d: shift::shift_pair(s.a, amount, m.direction, m.itype == IXType::S64),
    }
}

/// ULOP3: any function of three bits, by its truth table (companion; LOP3 without its predicate).
pub fn ulop3(_: &ulop3::Modifiers, s: &ulop3::Sources) -> ulop3::Results {
    ulop3::Results {
        d: logic::by_table(s.lut, s.a, s.b, s.c),
    }
}

/// ULEA: `(a << shiftamt) + b` modulo 2^32 or 2^64, either term negated on request (companion).
pub fn ulea(m: &ulea::Modifiers, s: &ulea::Sources) -> ulea::Results {
    let scaled = s.a << (s.shiftamt & 31);
    let sum = signed(scaled, m.a_neg).wrapping_add(signed(s.b, m.b_neg));
    ulea::Results {
        d: limited(sum, m.width),
    }
}

/// The width of integers of a type.
fn width(itype: SHFDType) -> MOVW {
    match itype {
        SHFDType::S32 | SHFDType::U32 => MOVW::W32,
        SHFDType::S64 | SHFDType::U64 => MOVW::W64,
    }
}

/// How `a` and `b` of the type compare.
fn order(a: u64, b: u64, itype: SHFDType) -> Ordering {
    match itype {
        SHFDType::S32 => (a as i32).cmp(&(b as i32)),
        SHFDType::U32 => (a as u32).cmp(&(b as u32)),
        SHFDType::S64 => (a as i64).cmp(&(b as i64)),
        SHFDType::U64 => a.cmp(&b),
    }
}

/// UMNMX: the smaller of `a` and `b` where `pp` is true, else the greater (companion; IMNMX).
pub fn umnmx(m: &umnmx::Modifiers, s: &umnmx::Sources) -> umnmx::Results {
    let chosen = if order(s.a, s.b, m.itype).is_lt() == s.pp {
        s.a
    } else {
        s.b
    };
    umnmx::Results {
        d: limited(chosen, width(m.itype)),
    }
}

/// USEL: `a` where `pp` is true, else `b` (companion; SEL).
pub fn usel(m: &usel::Modifiers, s: &usel::Sources) -> usel::Results {
    usel::Results {
        d: limited(if s.pp { s.a } else { s.b }, m.width),
    }
}

/// UISETP: the comparison of `a` with `b`, combined with `pp` (companion; ISETP).
pub fn uisetp(m: &uisetp::Modifiers, s: &uisetp::Sources) -> uisetp::Results {
    let comparison = logic::satisfies(order(s.a, s.b, m.itype), m.compop);
    uisetp::Results {
        pu: logic::combine(comparison, m.boolop, s.pp),
    }
}
