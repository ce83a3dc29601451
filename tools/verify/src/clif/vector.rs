//! Operations across the lanes of vectors.

use super::lanes::{Saturation, joined, lanes, saturated};
use crate::term::Term;
use cranelift_codegen::ir::{Opcode, Type};

/// An operation of two vectors whose result has other lanes than they have; none if it is no such operation.
pub fn across(opcode: Opcode, x: Term, y: Term, ty: Type) -> Option<Term> {
    let both = || {
        let mut all = lanes(x, ty);
        all.extend(lanes(y, ty));
        all
    };
    let narrowed = |limits: Saturation| {
        let bits = ty.lane_bits() / 2;
        let all: Vec<Term> = both()
            .iter()
            .map(|&lane| saturated(lane, bits, limits))
            .collect();
        joined(&all)
    };
    Some(match opcode {
        Opcode::Snarrow => narrowed(Saturation::Signed),
        Opcode::Unarrow => narrowed(Saturation::Unsigned),
        Opcode::Uunarrow => narrowed(Saturation::BothUnsigned),
        Opcode::IaddPairwise => {
            let sums: Vec<Term> = both().chunks(2).map(|pair| pair[0].plus(pair[1])).collect();
            joined(&sums)
        }
        Opcode::Swizzle | Opcode::X86Pshufb => {
            let table = lanes(x, ty);
            let pick = |&index: &Term| match opcode {
                Opcode::Swizzle => picked(&table, index, index.part(4, 4)),
                _ => picked(&table, index, index.part(7, 1)),
            };
            let all: Vec<Term> = lanes(y, ty).iter().map(pick).collect();
            joined(&all)
        }
        // Sums of the products of unsigned bytes with signed ones.
        Opcode::X86Pmaddubsw => {
            let wide = |t: Term, is_signed: bool| match is_signed {
                true => t.sign_extended(32),
                false => t.zero_extended(32),
            };
            let products: Vec<Term> = lanes(x, ty)
                .iter()
                .zip(lanes(y, ty))
                .map(|(&a, b)| wide(a, false).times(wide(b, true)))
                .collect();
            let sums = products.chunks(2).map(|pair| pair[0].plus(pair[1]));
            let sums: Vec<Term> = sums
                .map(|sum| saturated(sum, 16, Saturation::Signed))
                .collect();
            joined(&sums)
        }
        _ => return None,
    })
}

/// The lane of a table of sixteen with this number, and zero where bits of the number say that there is none.
fn picked(table: &[Term], index: Term, outside: Term) -> Term {
    let zero = Term::number(0, 8);
    let number = index.part(0, 4);
    let found = (0..).zip(table).fold(zero, |found, (i, &lane)| {
        Term::choose(number.equals(Term::number(i, 4)), lane, found)
    });
    let is_inside = outside.equals(Term::number(0, outside.width()));
    Term::choose(is_inside, found, zero)
}
