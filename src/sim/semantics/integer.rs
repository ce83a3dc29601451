//! Integer arithmetic: IADD, IMAD, IMAD_WIDE, IDP2A, IDP4A, IMUL, LEA, IABS, IMNMX (document 002).
//!
//! Every sum goes through one adder. It takes the bits of its inputs, never their values: a negated input enters as its
//! complement, and the missing one enters as carry-in, from `pp` under `.X` and implicitly otherwise. This *adder
//! reading* of a negated addend is the one on which the documents' own two-instruction subtractions are exact (with c =
//! 0, −c must carry). The carry out is `sum >= 2^n`; the documents print `>`, with which no carry chain works.
//!
//! Combinations of modifiers that the documents leave undefined (IMAD.HI without .X, LEA.LO.X) are refused by the
//! decoder; here they mean what the adder makes of them.

use super::operands::*;
use crate::bits::{Bits, Joined, Truth, Word, byte, word_of_byte, word_of_short};

/// What the adder of a 32-bit instruction makes of its inputs: the sum modulo 2^32, and whether it reached 2^32.
///
/// Three carries can meet (two negated inputs); the sum of two words and three ones fits 64 bits easily.
#[inline(always)]
fn add32<W: Word>(x: Addend<W>, y: Addend<W>, carry: W::Pair) -> (W, W::Bit) {
    let carries = W::Pair::number(x.carry + y.carry).plus(&carry);
    let sum = W::Pair::of_unsigned(&x.bits).plus(&W::Pair::of_unsigned(&y.bits));
    let sum = sum.plus(&carries);
    (sum.low(), sum.high().is_any())
}

/// An input of the adder: its bits, and the one that completes a two's complement where `.X` does not bring it.
struct Addend<T> {
    bits: T,
    carry: u64,
}

/// `value`, or its negation as the adder sees it: complemented, plus one unless `.X` supplies that one as `pp`.
#[inline(always)]
fn addend<T: Bits>(value: &T, negated: bool, ext: IExt) -> Addend<T> {
    Addend {
        bits: value.complement_if(negated),
        carry: u64::from(negated && ext == IExt::NoX),
    }
}

/// The carry that enters: `pp` under `.X`, none otherwise.
#[inline(always)]
fn carry_in<T: Bits>(ext: IExt, pp: &T::Bit) -> T {
    match ext {
        IExt::X => T::one_if(pp),
        IExt::NoX => T::zero(),
    }
}

/// A word as the pair that it is as a number of a type.
#[inline(always)]
fn widened<W: Word>(word: &W, itype: IType) -> W::Pair {
    match itype {
        IType::S32 => W::Pair::of_signed(word),
        IType::U32 => W::Pair::of_unsigned(word),
    }
}

/// The 64 bits of the product of two words read as `itype`.
#[inline(always)]
pub(super) fn product<W: Word>(a: &W, b: &W, itype: IType) -> W::Pair {
    widened(a, itype).times(&widened(b, itype))
}

/// The low or the high word of `value`.
#[inline(always)]
pub(super) fn word<P: Joined>(value: &P, lohi: LOHI) -> P::Half {
    match lohi {
        LOHI::Lo => value.low(),
        LOHI::Hi => value.high(),
    }
}

/// IADD: `a + b`; under `.X` with carry in and complemented instead of negated operands (document 002, IADD).
#[inline(always)]
pub fn iadd<W: Word>(m: &iadd::Modifiers, s: &iadd::Sources<W>) -> iadd::Results<W> {
    let (d, pu) = add32(
        addend(&s.a, m.a_neg, m.ext),
        addend(&s.b, m.b_neg, m.ext),
        carry_in(m.ext, &s.pp),
    );
    iadd::Results { d, pu }
}

/// IMAD: the low or high word of `a * b`, plus `c` and, under `.X`, the carry (document 002, IMAD).
#[inline(always)]
pub fn imad<W: Word>(m: &imad::Modifiers, s: &imad::Sources<W>) -> imad::Results<W> {
    let product = word(&product(&s.a, &s.b, m.itype), m.lohi);
    let (d, pu) = add32(
        addend(&product, false, m.ext),
        addend(&s.c, m.c_neg, m.ext),
        carry_in(m.ext, &s.pp),
    );
    imad::Results { d, pu }
}

/// IMAD_WIDE: all 64 bits of `a * b`, plus the 64-bit `c` (document 002, IMAD_WIDE).
///
/// The carry is that of adding the product's bit pattern: a negative product counts as 2^64 less.
#[inline(always)]
pub fn imad_wide<W: Word>(
    m: &imad_wide::Modifiers,
    s: &imad_wide::Sources<W>,
) -> imad_wide::Results<W> {
    let c = addend(&s.c, m.c_neg, m.ext);
    let product = W::Quad::of_unsigned(&product(&s.a, &s.b, m.itype));
    let carries = W::Quad::number(c.carry).plus(&carry_in(m.ext, &s.pp));
    let sum = product.plus(&W::Quad::of_unsigned(&c.bits)).plus(&carries);
    imad_wide::Results {
        d: sum.low(),
        pu: sum.high().is_any(),
    }
}

/// Byte `index` of `word`, extended to a pair as `format` says.
fn byte_factor<W: Word>(word: &W, index: u32, format: I8Type) -> W::Pair {
    let word = word_of_byte(&byte(word, index), format == I8Type::S8);
    W::Pair::of_signed(&word)
}

/// Half word `index` of `word`, extended to a pair as `format` says.
fn half_factor<W: Word>(word: &W, index: u32, format: I16Type) -> W::Pair {
    let short = word.down(16 * index).low();
    W::Pair::of_signed(&word_of_short(&short, format == I16Type::S16))
}

/// The two results of a dot product. `pu` is `sum >= 2^32`, the addend counting as unsigned; the printed
/// `ceil(d / 2^32) > 0` would hold for every positive sum.
fn dot_product<W: Word>(c: &W, pp: &W::Bit, products: &[W::Pair]) -> (W, W::Bit) {
    let start = W::Pair::of_unsigned(c).plus(&W::Pair::one_if(pp));
    let sum = products
        .iter()
        .fold(start, |sum, product| sum.plus(product));
    let carries = W::Pair::number(u64::from(u32::MAX)).is_less(&sum);
    (sum.low(), carries)
}

/// IDP2A: the dot product of two half words of `a` with two bytes of `b`, plus `c` and `pp` (document 002, IDP.2A).
pub fn idp2a<W: Word>(m: &idp2a::Modifiers, s: &idp2a::Sources<W>) -> idp2a::Results<W> {
    let first = match m.lohi {
        LOHI::Lo => 0,
        LOHI::Hi => 2,
    };
    let products = [0, 1].map(|i| {
        let half = half_factor(&s.a, i, m.afmt);
        half.times(&byte_factor(&s.b, first + i, m.bfmt))
    });
    let (d, pu) = dot_product(&s.c, &s.pp, &products);
    idp2a::Results { d, pu }
}

/// IDP4A: the dot product of the four bytes of `a` and of `b`, plus `c` and `pp` (document 002, IDP.4A).
pub fn idp4a<W: Word>(m: &idp4a::Modifiers, s: &idp4a::Sources<W>) -> idp4a::Results<W> {
    let products = [0, 1, 2, 3].map(|i| {
        let first = byte_factor(&s.a, i, m.afmt);
        first.times(&byte_factor(&s.b, i, m.bfmt))
    });
    let (d, pu) = dot_product(&s.c, &s.pp, &products);
    idp4a::Results { d, pu }
}

/// IMUL: the low or high word of `a * b`; `b` is negated modulo 2^32 before it is read as `itype` (document 002, IMUL).
#[inline(always)]
pub fn imul<W: Word>(m: &imul::Modifiers, s: &imul::Sources<W>) -> imul::Results<W> {
    let b = s.b.negated_if(m.b_neg);
    imul::Results {
        d: word(&product(&s.a, &b, m.itype), m.lohi),
    }
}

/// LEA: `a` scaled by a power of two, plus `b` (document 002, LEA).
///
/// - `.LO`: `(a << shiftamt) + b`;
/// - `.HI.X`: the high word of `{c, a} << shiftamt`, plus `b` and the carry;
/// - `.HI.X.SX32`: the same with `a` sign-extended to 64 bits.
///
/// The negation of `a` is applied to the shifted value. As the shift is below 32, no filled-in zero reaches the high
/// word, so there it is the same as complementing the input.
#[inline(always)]
pub fn lea<W: Word>(m: &lea::Modifiers, s: &lea::Sources<W>) -> lea::Results<W> {
    let shift = s.shiftamt & 31;
    let scaled = match (m.lohi, m.sx32) {
        (LOHI::Lo, _) => s.a.up(shift),
        (LOHI::Hi, LEASX32::NoSx32) => W::Pair::join(&s.c, &s.a).up(shift).high(),
        (LOHI::Hi, LEASX32::Sx32) => W::Pair::of_signed(&s.a).up(shift).high(),
    };
    let (d, pu) = add32(
        addend(&scaled, m.a_neg, m.ext),
        addend(&s.b, m.b_neg, m.ext),
        carry_in(m.ext, &s.pp),
    );
    lea::Results { d, pu }
}

/// IABS: `|b|`; the most negative number stays itself (document 002, IABS).
#[inline(always)]
pub fn iabs<W: Word>(_: &iabs::Modifiers, s: &iabs::Sources<W>) -> iabs::Results<W> {
    iabs::Results {
        d: W::choose(&s.b.is_negative(), &s.b.negated(), &s.b),
    }
}

/// IMNMX: the smaller of `a` and `b` where `pp` is true, else the greater (document 002, IMNMX).
#[inline(always)]
pub fn imnmx<W: Word>(m: &imnmx::Modifiers, s: &imnmx::Sources<W>) -> imnmx::Results<W> {
    let a_is_less = match m.itype {
        IType::S32 => s.a.is_less(&s.b),
        IType::U32 => s.a.is_below(&s.b),
    };
    imnmx::Results {
        d: W::choose(&a_is_less.xor(&s.pp), &s.b, &s.a),
    }
}
