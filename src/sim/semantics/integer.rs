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

/// What the adder of a 32-bit instruction makes of its inputs: the sum modulo 2^32, and whether it reached 2^32.
///
/// Three carries can meet (two negated inputs); the sum of two words and three ones fits 64 bits easily.
#[inline(always)]
fn add32(x: Addend<u32>, y: Addend<u32>, carry: u64) -> (u32, bool) {
    let sum = u64::from(x.bits) + u64::from(y.bits) + x.carry + y.carry + carry;
    (sum as u32, sum >> 32 != 0)
}

/// An input of the adder: its bits, and the one that completes a two's complement where `.X` does not bring it.
struct Addend<T> {
    bits: T,
    carry: u64,
}

/// `value`, or its negation as the adder sees it: complemented, plus one unless `.X` supplies that one as `pp`.
#[inline(always)]
fn addend<T: std::ops::Not<Output = T>>(value: T, negated: bool, ext: IExt) -> Addend<T> {
    if negated {
        Addend {
            bits: !value,
            carry: u64::from(ext == IExt::NoX),
        }
    } else {
        Addend {
            bits: value,
            carry: 0,
        }
    }
}

/// The carry that enters: `pp` under `.X`, none otherwise.
#[inline(always)]
fn carry_in(ext: IExt, pp: bool) -> u64 {
    u64::from(ext == IExt::X && pp)
}

/// The 64 bits of the product of two words read as `itype`.
#[inline(always)]
pub(super) fn product(a: u32, b: u32, itype: IType) -> u64 {
    match itype {
        IType::S32 => (i64::from(a as i32) * i64::from(b as i32)) as u64,
        IType::U32 => u64::from(a) * u64::from(b),
    }
}

/// The low or the high word of `value`.
#[inline(always)]
pub(super) fn word(value: u64, lohi: LOHI) -> u32 {
    match lohi {
        LOHI::Lo => value as u32,
        LOHI::Hi => (value >> 32) as u32,
    }
}

/// IADD: `a + b`; under `.X` with carry in and complemented instead of negated operands (document 002, IADD).
#[inline(always)]
pub fn iadd(m: &iadd::Modifiers, s: &iadd::Sources) -> iadd::Results {
    let (d, pu) = add32(
        addend(s.a, m.a_neg, m.ext),
        addend(s.b, m.b_neg, m.ext),
        carry_in(m.ext, s.pp),
    );
    iadd::Results { d, pu }
}

/// IMAD: the low or high word of `a * b`, plus `c` and, under `.X`, the carry (document 002, IMAD).
#[inline(always)]
pub fn imad(m: &imad::Modifiers, s: &imad::Sources) -> imad::Results {
    let product = word(product(s.a, s.b, m.itype), m.lohi);
    let (d, pu) = add32(
        addend(product, false, m.ext),
        addend(s.c, m.c_neg, m.ext),
        carry_in(m.ext, s.pp),
    );
    imad::Results { d, pu }
}

/// IMAD_WIDE: all 64 bits of `a * b`, plus the 64-bit `c` (document 002, IMAD_WIDE).
///
/// The carry is that of adding the product's bit pattern: a negative product counts as 2^64 less.
#[inline(always)]
pub fn imad_wide(m: &imad_wide::Modifiers, s: &imad_wide::Sources) -> imad_wide::Results {
    let c = addend(s.c, m.c_neg, m.ext);
    let sum = u128::from(product(s.a, s.b, m.itype))
        + u128::from(c.bits)
        + u128::from(c.carry + carry_in(m.ext, s.pp));
    imad_wide::Results {
        d: sum as u64,
        pu: sum >> 64 != 0,
    }
}

/// Byte `index` of `word`, extended as `format` says.
fn byte(word: u32, index: u32, format: I8Type) -> i64 {
    let bits = (word >> (8 * index)) as u8;
    match format {
        I8Type::S8 => i64::from(bits as i8),
        I8Type::U8 => i64::from(bits),
    }
}

/// Half word `index` of `word`, extended as `format` says.
fn half_word(word: u32, index: u32, format: I16Type) -> i64 {
    let bits = (word >> (16 * index)) as u16;
    match format {
        I16Type::S16 => i64::from(bits as i16),
        I16Type::U16 => i64::from(bits),
    }
}

/// The two results of a dot product. `pu` is `sum >= 2^32`, the addend counting as unsigned; the printed
/// `ceil(d / 2^32) > 0` would hold for every positive sum.
fn dot_product(c: u32, pp: bool, products: i64) -> (u32, bool) {
    let sum = i64::from(c) + i64::from(pp) + products;
    (sum as u32, sum >= 1 << 32)
}

/// IDP2A: the dot product of two half words of `a` with two bytes of `b`, plus `c` and `pp` (document 002, IDP.2A).
pub fn idp2a(m: &idp2a::Modifiers, s: &idp2a::Sources) -> idp2a::Results {
    let first = match m.lohi {
        LOHI::Lo => 0,
        LOHI::Hi => 2,
    };
    let products = (0..2)
        .map(|i| half_word(s.a, i, m.afmt) * byte(s.b, first + i, m.bfmt))
        .sum();
    let (d, pu) = dot_product(s.c, s.pp, products);
    idp2a::Results { d, pu }
}

/// IDP4A: the dot product of the four bytes of `a` and of `b`, plus `c` and `pp` (document 002, IDP.4A).
pub fn idp4a(m: &idp4a::Modifiers, s: &idp4a::Sources) -> idp4a::Results {
    let products = (0..4)
        .map(|i| byte(s.a, i, m.afmt) * byte(s.b, i, m.bfmt))
        .sum();
    let (d, pu) = dot_product(s.c, s.pp, products);
    idp4a::Results { d, pu }
}

/// IMUL: the low or high word of `a * b`; `b` is negated modulo 2^32 before it is read as `itype` (document 002, IMUL).
#[inline(always)]
pub fn imul(m: &imul::Modifiers, s: &imul::Sources) -> imul::Results {
    let b = if m.b_neg { s.b.wrapping_neg() } else { s.b };
    imul::Results {
        d: word(product(s.a, b, m.itype), m.lohi),
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
pub fn lea(m: &lea::Modifiers, s: &lea::Sources) -> lea::Results {
    let shift = s.shiftamt & 31;
    let scaled = match (m.lohi, m.sx32) {
        (LOHI::Lo, _) => s.a << shift,
        (LOHI::Hi, LEASX32::NoSx32) => {
            (((u64::from(s.c) << 32 | u64::from(s.a)) << shift) >> 32) as u32
        }
        (LOHI::Hi, LEASX32::Sx32) => ((i64::from(s.a as i32) << shift) >> 32) as u32,
    };
    let (d, pu) = add32(
        addend(scaled, m.a_neg, m.ext),
        addend(s.b, m.b_neg, m.ext),
        carry_in(m.ext, s.pp),
    );
    lea::Results { d, pu }
}

/// IABS: `|b|`; the most negative number stays itself (document 002, IABS).
#[inline(always)]
pub fn iabs(_: &iabs::Modifiers, s: &iabs::Sources) -> iabs::Results {
    iabs::Results {
        d: (s.b as i32).unsigned_abs(),
    }
}

/// IMNMX: the smaller of `a` and `b` where `pp` is true, else the greater (document 002, IMNMX).
#[inline(always)]
pub fn imnmx(m: &imnmx::Modifiers, s: &imnmx::Sources) -> imnmx::Results {
    let a_is_less = match m.itype {
        IType::S32 => (s.a as i32) < (s.b as i32),
        IType::U32 => s.a < s.b,
    };
    imnmx::Results {
        d: if a_is_less == s.pp { s.a } else { s.b },
    }
}
