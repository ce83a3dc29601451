//! The integer instructions of the special-function unit: POPC, FLO, BREV (document 003).

use super::BrevReading;
use super::operands::*;
use crate::bits::Word;

/// POPC: the number of ones (document 003, POPC).
pub fn popc<W: Word>(m: &popc::Modifiers, s: &popc::Sources<W>) -> popc::Results<W> {
    popc::Results {
        d: s.b.complement_if(m.b_bitnot).count_ones(),
    }
}

/// FLO: the position of the highest one, or all ones where there is none (document 003, FLO).
///
/// `.S32` looks for the highest bit that differs from the sign: it complements negative inputs (the pseudo-code
/// complements all of them, against its own description). `.SH` gives the left shift that brings the bit to the top;
/// with no bit found the result stays all ones, as the documents' example shows.
pub fn flo<W: Word>(m: &flo::Modifiers, s: &flo::Sources<W>) -> flo::Results<W> {
    let b = s.b.complement_if(m.b_bitnot);
    let searched = match m.itype {
        IType::S32 => b.xor(&b.signs()),
        IType::U32 => b,
    };
    let zeros = searched.leading_zeros();
    let found = match m.sh {
        FLOSH::NoSh => W::number(31).minus(&zeros),
        FLOSH::Sh => zeros,
    };
    flo::Results {
        d: W::choose(&searched.is_any(), &found, &W::ones()),
    }
}

/// BREV: the complement of `b`, as the document states three times, or its bits in reverse order, as the mnemonic says
/// (document 003, BREV; [`super::Readings`] chooses).
pub fn brev<W: Word>(
    reading: BrevReading,
    _: &brev::Modifiers,
    s: &brev::Sources<W>,
) -> brev::Results<W> {
    let d = match reading {
        BrevReading::Complement => s.b.complement(),
        BrevReading::Reverse => s.b.reversed(),
    };
    brev::Results { d }
}
