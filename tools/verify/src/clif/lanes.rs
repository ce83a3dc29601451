//! What CLIF's operations on integers compute, lane by lane (Cranelift's documentation of its instructions).

use crate::term::Term;
use crate::words::{count_ones, leading_zeros, reversed};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Opcode, Type};

/// The lanes of a value, the lowest first; a scalar is one lane.
pub fn lanes(value: Term, ty: Type) -> Vec<Term> {
    let bits = ty.lane_bits();
    (0..ty.lane_count())
        .map(|i| value.part(i * bits, bits))
        .collect()
}

/// A value of its lanes, the lowest first.
pub fn joined(lanes: &[Term]) -> Term {
    let mut rest = lanes.iter().copied();
    let first = rest.next().unwrap_or_else(|| Term::number(0, 8));
    rest.fold(first, |low, lane| lane.above(low))
}

/// A value with its lanes in the other order.
pub fn lanes_reversed(value: Term, ty: Type) -> Term {
    let mut all = lanes(value, ty);
    all.reverse();
    joined(&all)
}

/// The upper half of the product of two numbers of 128 bits.
fn upper_product(x: Term, y: Term) -> Term {
    let half = |t: Term, from: u32| t.part(from, 64).zero_extended(128);
    let product = |i: u32, j: u32| half(x, i).times(half(y, j));
    let (low, middles, high) = (
        product(0, 0),
        [product(0, 64), product(64, 0)],
        product(64, 64),
    );
    let carried = middles
        .iter()
        .fold(half(low, 64), |sum, &m| sum.plus(half(m, 0)));
    let uppers = middles.iter().fold(high, |sum, &m| sum.plus(half(m, 64)));
    uppers.plus(half(carried, 64))
}

/// An operation of one operand, on a lane.
pub fn unary(opcode: Opcode, x: Term) -> Option<Term> {
    let width = x.width();
    let zero = Term::number(0, width);
    let is_negative = x.is_less(zero);
    Some(match opcode {
        Opcode::Bnot => x.not(),
        Opcode::Ineg => zero.minus(x),
        Opcode::Iabs => Term::choose(is_negative, zero.minus(x), x),
        Opcode::Popcnt => count_ones(x),
        Opcode::Clz => leading_zeros(x),
        Opcode::Ctz => leading_zeros(reversed(x)),
        // Bits behind the sign that are the same as it.
        Opcode::Cls => {
            let positive = Term::choose(is_negative, x.not(), x);
            leading_zeros(positive).minus(Term::number(1, width))
        }
        Opcode::Bitrev => reversed(x),
        Opcode::Bswap => {
            let bytes = (0..width / 8).map(|i| x.part(8 * i, 8));
            bytes.reduce(Term::above)?
        }
        Opcode::Bmask => {
            let any = x.equals(zero).not();
            Term::choose(any, zero.not(), zero)
        }
        // The sign bit is the lane's uppermost, whatever kind of number it is.
        Opcode::Fneg => x.xor(sign_bit(width)),
        Opcode::Fabs => x.and(sign_bit(width).not()),
        _ => return None,
    })
}

/// The sign of a float of so many bits.
pub fn sign_bit(width: u32) -> Term {
    Term::number(1 << (width - 1), width)
}

/// An operation of two operands, on lanes; of shifts the second has any width.
pub fn binary(opcode: Opcode, x: Term, y: Term) -> Option<Term> {
    let width = x.width();
    let amount = || {
        // The amount is taken modulo the width.
        let amount = match y.width() {
            own if own >= width => y.part(0, width),
            _ => y.zero_extended(width),
        };
        amount.and(Term::number(u128::from(width) - 1, width))
    };
    let rest = || {
        let amount = amount();
        Term::number(width.into(), width).minus(amount)
    };
    let wide = |is_signed: bool| {
        let extend = |t: Term| {
            if is_signed {
                t.sign_extended(2 * width)
            } else {
                t.zero_extended(2 * width)
            }
        };
        (extend(x), extend(y))
    };
    let limit = |is_signed: bool, sum: Term| {
        let extend = |n: u128| Term::number(n, width + 1);
        if is_signed {
            let least = Term::number(1 << (width - 1), width).sign_extended(width + 1);
            let most = extend((1 << (width - 1)) - 1);
            let above = Term::choose(most.is_less(sum), most, sum);
            Term::choose(above.is_less(least), least, above).part(0, width)
        } else {
            let over = sum.part(width, 1).equals(Term::number(1, 1));
            Term::choose(over, Term::number(u128::MAX, width), sum.part(0, width))
        }
    };
    let unsigned_sum = || x.zero_extended(width + 1).plus(y.zero_extended(width + 1));
    let signed_of =
        |f: fn(Term, Term) -> Term| f(x.sign_extended(width + 1), y.sign_extended(width + 1));
    Some(match opcode {
        Opcode::Iadd => x.plus(y),
        Opcode::Isub => x.minus(y),
        Opcode::Imul => x.times(y),
        Opcode::Umulhi if width <= 64 => {
            let (a, b) = wide(false);
            a.times(b).part(width, width)
        }
        Opcode::Smulhi if width < 64 => {
            let (a, b) = wide(true);
            a.times(b).part(width, width)
        }
        Opcode::Umulhi => upper_product(x, y),
        // A negative number is 2^width too much when it is read as unsigned.
        Opcode::Smulhi => {
            let zero = Term::number(0, width);
            let too_much = |a: Term, b: Term| Term::choose(a.is_less(zero), b, zero);
            let product = binary(Opcode::Umulhi, x, y)?;
            product.minus(too_much(x, y)).minus(too_much(y, x))
        }
        Opcode::SqmulRoundSat | Opcode::X86Pmulhrsw => {
            let bits = 2 * width;
            let extended = |t: Term| t.sign_extended(bits);
            let half = Term::number(1 << (width - 2), bits);
            let sum = extended(x).times(extended(y)).plus(half);
            let product = sum.shifted_down_signed(Term::number((width - 1).into(), bits));
            match opcode {
                // Only the product of the least numbers is too large, and it wraps.
                Opcode::X86Pmulhrsw => product.part(0, width),
                _ => saturated(product, width, Saturation::Signed),
            }
        }
        Opcode::Band => x.and(y),
        Opcode::Bor => x.or(y),
        Opcode::Bxor => x.xor(y),
        Opcode::Ishl => x.shifted_up(amount()),
        Opcode::Ushr => x.shifted_down(amount()),
        Opcode::Sshr => x.shifted_down_signed(amount()),
        Opcode::Rotl => x.shifted_up(amount()).or(x.shifted_down(rest())),
        Opcode::Rotr => x.shifted_down(amount()).or(x.shifted_up(rest())),
        Opcode::Smin => Term::choose(x.is_less(y), x, y),
        Opcode::Smax => Term::choose(y.is_less(x), x, y),
        Opcode::Umin => Term::choose(x.is_below(y), x, y),
        Opcode::Umax => Term::choose(y.is_below(x), x, y),
        Opcode::AvgRound => {
            let sum = unsigned_sum().plus(Term::number(1, width + 1));
            sum.part(1, width)
        }
        Opcode::UaddSat if width < 128 => limit(false, unsigned_sum()),
        Opcode::SaddSat if width < 128 => limit(true, signed_of(Term::plus)),
        Opcode::UsubSat => Term::choose(x.is_below(y), Term::number(0, width), x.minus(y)),
        Opcode::SsubSat if width < 128 => limit(true, signed_of(Term::minus)),
        Opcode::Fcopysign => x.and(sign_bit(width).not()).or(y.and(sign_bit(width))),
        _ => return None,
    })
}

/// Between which numbers a result stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saturation {
    /// Those of signed numbers.
    Signed,
    /// Those of unsigned ones; the operand is signed.
    Unsigned,
    /// Those of unsigned ones, which the operand is too.
    BothUnsigned,
}

/// A number in less bits: the nearest there is.
pub fn saturated(x: Term, bits: u32, limits: Saturation) -> Term {
    let width = x.width();
    let number = |n: u128| Term::number(n, width);
    let (least, most) = match limits {
        Saturation::Signed => {
            let least = Term::number(1 << (bits - 1), bits).sign_extended(width);
            (least, number((1 << (bits - 1)) - 1))
        }
        Saturation::Unsigned | Saturation::BothUnsigned => (number(0), number((1 << bits) - 1)),
    };
    let below = |a: Term, b: Term| match limits {
        Saturation::BothUnsigned => a.is_below(b),
        Saturation::Signed | Saturation::Unsigned => a.is_less(b),
    };
    let above = Term::choose(below(most, x), most, x);
    Term::choose(below(above, least), least, above).part(0, bits)
}

/// Whether two numbers compare so.
pub fn compare(condition: IntCC, x: Term, y: Term) -> Term {
    match condition {
        IntCC::Equal => x.equals(y),
        IntCC::NotEqual => x.equals(y).not(),
        IntCC::SignedLessThan => x.is_less(y),
        IntCC::SignedGreaterThanOrEqual => x.is_less(y).not(),
        IntCC::SignedGreaterThan => y.is_less(x),
        IntCC::SignedLessThanOrEqual => y.is_less(x).not(),
        IntCC::UnsignedLessThan => x.is_below(y),
        IntCC::UnsignedGreaterThanOrEqual => x.is_below(y).not(),
        IntCC::UnsignedGreaterThan => y.is_below(x),
        IntCC::UnsignedLessThanOrEqual => y.is_below(x).not(),
    }
}

/// The result and the overflow of an addition, subtraction or multiplication, with the carry or borrow that enters.
pub fn overflowing(opcode: Opcode, x: Term, y: Term, enters: Option<Term>) -> Option<(Term, Term)> {
    let width = x.width();
    let enters = enters.unwrap_or_else(|| Term::known(false));
    let one = Term::choose(enters, Term::number(1, width), Term::number(0, width));
    let is_negative = |t: Term| t.is_less(Term::number(0, width));
    match opcode {
        Opcode::UaddOverflow | Opcode::UaddOverflowCin => {
            let sum = x.plus(y);
            let all = sum.plus(one);
            Some((all, sum.is_below(x).or(all.is_below(sum))))
        }
        Opcode::UsubOverflow | Opcode::UsubOverflowBin => {
            let difference = x.minus(y);
            let all = difference.minus(one);
            Some((all, x.is_below(y).or(difference.is_below(one))))
        }
        // The sum of two numbers of one sign has the other.
        Opcode::SaddOverflow | Opcode::SaddOverflowCin => {
            let sum = x.plus(y).plus(one);
            Some((sum, is_negative(x.xor(sum).and(y.xor(sum)))))
        }
        Opcode::SsubOverflow | Opcode::SsubOverflowBin => {
            let difference = x.minus(y).minus(one);
            Some((difference, is_negative(x.xor(y).and(x.xor(difference)))))
        }
        // The upper half is the sign of the lower.
        Opcode::SmulOverflow if width == 64 => {
            let low = x.times(y);
            let signs = low.part(63, 1).sign_extended(64);
            Some((low, binary(Opcode::Smulhi, x, y)?.equals(signs).not()))
        }
        Opcode::SmulOverflow | Opcode::UmulOverflow if width <= 64 => {
            let is_signed = opcode == Opcode::SmulOverflow;
            let extended = |t: Term| {
                if is_signed {
                    t.sign_extended(2 * width)
                } else {
                    t.zero_extended(2 * width)
                }
            };
            let product = extended(x).times(extended(y));
            let low = product.part(0, width);
            Some((low, extended(low).equals(product).not()))
        }
        _ => None,
    }
}
