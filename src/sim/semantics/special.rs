//! The integer instructions of the special-function unit: POPC, FLO, BREV (document 003).

use super::BrevReading;
use super::operands::*;

/// `b`, complemented where the modifier says so.
fn complemented(b: u32, bitnot: bool) -> u32 {
    if bitnot { !b } else { b }
}

/// POPC: the number of ones (document 003, POPC).
pub fn popc(m: &popc::Modifiers, s: &popc::Sources) -> popc::Results {
    popc::Results {
        d: complemented(s.b, m.b_bitnot).count_ones(),
    }
}

/// FLO: the position of the highest one, or all ones where there is none (document 003, FLO).
///
/// `.S32` looks for the highest bit that differs from the sign: it complements negative inputs (the pseudo-code
/// complements all of them, against its own description). `.SH` gives the left shift that brings the bit to the top;
/// with no bit found the result stays all ones, as the documents' example shows.
pub fn flo(m: &flo::Modifiers, s: &flo::Sources) -> flo::Results {
    let b = complemented(s.b, m.b_bitnot);
    let searched = if m.itype == IType::S32 && (b as i32) < 0 {
        !b
    } else {
        b
    };
    let d = match (searched, m.sh) {
        (0, _) => u32::MAX,
        (_, FLOSH::NoSh) => 31 - searched.leading_zeros(),
        (_, FLOSH::Sh) => searched.leading_zeros(),
    };
    flo::Results { d }
}

/// BREV: the complement of `b`, as the document states three times, or its bits in reverse order, as the mnemonic says
/// (document 003, BREV; [`super::Readings`] chooses).
pub fn brev(reading: BrevReading, _: &brev::Modifiers, s: &brev::Sources) -> brev::Results {
    let d = match reading {
        BrevReading::Complement => !s.b,
        BrevReading::Reverse => s.b.reverse_bits(),
    };
    brev::Results { d }
}
