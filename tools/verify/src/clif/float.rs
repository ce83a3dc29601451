//! Operations on floats. What compares and selects is said exactly. Sums and products are the functions that the
//! machine's instructions are, by their names. What rounds in other ways is what its code computes ([`super::alone`]).

use super::lanes::sign_bit;
use crate::term::{Sort, Term, Unknown, mask};
use cranelift_codegen::ir::Opcode;
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_thisgpu::unstable::sim::semantics::softfloat::{F16, F32, F64, Format};

/// The format of floats of so many bits.
fn format(width: u32) -> Option<Format> {
    match width {
        16 => Some(F16),
        32 => Some(F32),
        64 => Some(F64),
        _ => None,
    }
}

/// Whether a number is NaN: the exponent is all ones and the fraction is not zero.
fn is_nan(x: Term, format: Format) -> Term {
    let fraction = format.precision - 1;
    let exponent = x.part(fraction, format.exponent_bits);
    let all = Term::number(mask(format.exponent_bits), format.exponent_bits);
    let none = Term::number(0, fraction);
    exponent
        .equals(all)
        .and(x.part(0, fraction).equals(none).not())
}

/// Whether a number is less than another: by their signs, then by their magnitudes. −0 is less than +0.
fn is_lower(x: Term, y: Term) -> Term {
    let width = x.width();
    let is_negative = |t: Term| t.part(width - 1, 1).equals(Term::number(1, 1));
    let magnitude = |t: Term| t.part(0, width - 1);
    let both_positive = magnitude(x).is_below(magnitude(y));
    let both_negative = magnitude(y).is_below(magnitude(x));
    let of_positive = is_negative(y).not().and(both_positive);
    let of_negative = is_negative(y).not().or(both_negative);
    let negative = is_negative(x);
    negative
        .and(of_negative)
        .or(negative.not().and(of_positive))
}

/// Whether two numbers compare so.
pub fn compare(condition: FloatCC, x: Term, y: Term) -> Option<Term> {
    let format = format(x.width())?;
    let unordered = is_nan(x, format).or(is_nan(y, format));
    let ordered = unordered.not();
    let magnitudes = x.or(y).and(sign_bit(x.width()).not());
    let zeros = magnitudes.equals(Term::number(0, x.width()));
    let equal = x.equals(y).or(zeros);
    let less = |x: Term, y: Term| is_lower(x, y).and(zeros.not());
    Some(match condition {
        FloatCC::Ordered => ordered,
        FloatCC::Unordered => unordered,
        FloatCC::Equal => ordered.and(equal),
        FloatCC::NotEqual => unordered.or(equal.not()),
        FloatCC::OrderedNotEqual => ordered.and(equal.not()),
        FloatCC::UnorderedOrEqual => unordered.or(equal),
        FloatCC::LessThan => ordered.and(less(x, y)),
        FloatCC::LessThanOrEqual => ordered.and(less(x, y).or(equal)),
        FloatCC::GreaterThan => ordered.and(less(y, x)),
        FloatCC::GreaterThanOrEqual => ordered.and(less(y, x).or(equal)),
        FloatCC::UnorderedOrLessThan => unordered.or(less(x, y)),
        FloatCC::UnorderedOrLessThanOrEqual => unordered.or(less(x, y)).or(equal),
        FloatCC::UnorderedOrGreaterThan => unordered.or(less(y, x)),
        FloatCC::UnorderedOrGreaterThanOrEqual => unordered.or(less(y, x)).or(equal),
    })
}

/// The lesser or the greater of two numbers. A NaN makes the result the NaN that all operations give (docs/clif.md).
pub fn extreme(opcode: Opcode, x: Term, y: Term) -> Option<Term> {
    let format = format(x.width())?;
    let found = match opcode {
        Opcode::Fmin => Term::choose(is_lower(x, y), x, y),
        Opcode::Fmax => Term::choose(is_lower(y, x), x, y),
        _ => return None,
    };
    let unordered = is_nan(x, format).or(is_nan(y, format));
    let nan = Term::number(format.nan.into(), x.width());
    Some(Term::choose(unordered, nan, found))
}

/// Sums and products by the bits of their type: the function of the machine that rounds so, to nearest, without anything
/// else. Of operands that may change places it knows that they may.
const ARITHMETIC: [(Opcode, u32, &str); 9] = [
    (
        Opcode::Fadd,
        16,
        "HADD2 ftz=NoFTZ sat=NoSAT hfmt_v2=F16_V2 D",
    ),
    (
        Opcode::Fmul,
        16,
        "HMUL2 ftz=NoFTZ sat=NoSAT hfmt_v2=F16_V2 D",
    ),
    (
        Opcode::Fma,
        16,
        "HFMA2 ftz=NoFTZ sat=NoSAT hfmt_v2=F16_V2 relu=NoRELU D",
    ),
    (Opcode::Fadd, 32, "FADD ftz=NoFTZ sat=NoSAT rnd=RN D"),
    (Opcode::Fmul, 32, "FMUL ftz=NoFTZ sat=NoSAT rnd=RN D"),
    (Opcode::Fma, 32, "FFMA ftz=NoFTZ sat=NoSAT rnd=RN D"),
    (Opcode::Fadd, 64, "DADD rnd=RN D"),
    (Opcode::Fmul, 64, "DMUL rnd=RN D"),
    (Opcode::Fma, 64, "DFMA rnd=RN D"),
];

/// A sum or a product of floats, the exact result rounded once.
pub fn arithmetic(opcode: Opcode, operands: &[Term]) -> Option<Term> {
    let width = operands[0].width();
    if opcode == Opcode::Fsub {
        let negative = operands[1].xor(sign_bit(width));
        return arithmetic(Opcode::Fadd, &[operands[0], negative]);
    }
    let mut all = ARITHMETIC.iter();
    let (.., name) = all.find(|(of, bits, _)| *of == opcode && *bits == width)?;
    let function = Unknown {
        name: (*name).to_owned(),
        is_symmetric: true,
    };
    Some(Term::apply(&function, operands, Sort::Bits(width)))
}
