//! The arithmetic of the uniform datapath: ULDC, UMOV, UIADD (companion instructions).

use super::operands::*;

/// `value` in the width of the instruction.
fn limited(value: u64, width: MOVW) -> u64 {
    match width {
        MOVW::W32 => u64::from(value as u32),
        MOVW::W64 => value,
    }
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
    let a = if m.a_neg { s.a.wrapping_neg() } else { s.a };
    let b = if m.b_neg { s.b.wrapping_neg() } else { s.b };
    uiadd::Results {
        d: limited(a.wrapping_add(b), m.width),
    }
}
