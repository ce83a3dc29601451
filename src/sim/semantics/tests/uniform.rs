//! The uniform datapath, in integers that are wide enough for every result and bit by bit, and the delegation of the
//! trait.

use super::all;
use crate::sim::semantics::Reference;
use crate::sim::semantics::operands::*;
use crate::testing::Random;

#[test]
fn uniform_arithmetic() {
    let mut random = Random::for_test("uiadd");
    let reference = Reference::default();
    for _ in 0..20_000 {
        let (a, b) = (random.long(), random.long());
        for (width, modulus) in [(MOVW::W32, 1i128 << 32), (MOVW::W64, 1 << 64)] {
            for (a_neg, b_neg) in [(false, false), (true, false), (false, true), (true, true)] {
                let signed = |value: u64, negated: bool| {
                    if negated {
                        -i128::from(value)
                    } else {
                        i128::from(value)
                    }
                };
                let sum = (signed(a, a_neg) + signed(b, b_neg)).rem_euclid(modulus);
                let m = uiadd::Modifiers {
                    width,
                    a_neg,
                    b_neg,
                };
                assert_eq!(
                    i128::from(reference.uiadd(&m, &uiadd::Sources::<u32> { a, b }).d),
                    sum
                );
            }
            let copy = i128::from(b) % modulus;
            assert_eq!(
                i128::from(
                    reference
                        .umov(&umov::Modifiers { width }, &umov::Sources::<u32> { b })
                        .d
                ),
                copy
            );
            assert_eq!(
                i128::from(
                    reference
                        .uldc(&uldc::Modifiers { width }, &uldc::Sources::<u32> { b })
                        .d
                ),
                copy
            );
        }
    }
}

const CASES: u32 = 20_000;

/// The number that the low `bits` of `value` are, with or without sign.
fn read(value: u64, bits: u32, signed: bool) -> i128 {
    let number = i128::from(value) & ((1 << bits) - 1);
    if signed && number >> (bits - 1) != 0 {
        number - (1 << bits)
    } else {
        number
    }
}

fn negated(value: i128, negate: bool) -> i128 {
    if negate { -value } else { value }
}

/// `value` modulo a power of two.
fn modulo(value: i128, bits: u32) -> u64 {
    value.rem_euclid(1 << bits) as u64
}

#[test]
fn uniform_products() {
    let mut random = Random::for_test("uimad");
    let reference = Reference::default();
    for _ in 0..CASES {
        let (a, b, c) = (random.word(), random.word(), random.long());
        for (itype, signed) in [(IType::S32, true), (IType::U32, false)] {
            let product = read(a.into(), 32, signed) * read(b.into(), 32, signed);
            for c_neg in [false, true] {
                let m = uimad_wide::Modifiers { itype, c_neg };
                let d = reference.uimad_wide(&m, &uimad_wide::Sources { a, b, c }).d;
                let sum = product + negated(c.into(), c_neg);
                assert_eq!(d, modulo(sum, 64), "{m:?} {a:#x} {b:#x} {c:#x}");
                for (lohi, word) in [(LOHI::Lo, product), (LOHI::Hi, product.div_euclid(1 << 32))] {
                    let m = uimad::Modifiers { lohi, itype, c_neg };
                    let c = c as u32;
                    let d = reference.uimad(&m, &uimad::Sources { a, b, c }).d;
                    let sum = word + negated(c.into(), c_neg);
                    assert_eq!(u64::from(d), modulo(sum, 32), "{m:?} {a:#x} {b:#x} {c:#x}");
                }
            }
        }
    }
}

#[test]
fn uniform_shifts() {
    let mut random = Random::for_test("ushf");
    let reference = Reference::default();
    for case in 0..CASES {
        let pair = random.long();
        let b = if case % 2 == 0 {
            random.below(70) as u32
        } else {
            random.word()
        };
        for &cwmod in &all::<CWMode>() {
            let amount = |limit: u32| match cwmod {
                CWMode::C => b.min(limit),
                CWMode::W => b % limit,
            };
            // A shift is a product or a quotient rounded down.
            let shifted = |direction: SHFDir, signed: bool, amount: u32| {
                let number = read(pair, 64, signed);
                match direction {
                    SHFDir::L => modulo(i128::from(pair as u32) << amount, 64)
                        .wrapping_add(modulo(i128::from(pair >> 32) << amount, 32) << 32),
                    SHFDir::R => modulo(number.div_euclid(1 << amount), 64),
                }
            };
            for &direction in &all::<SHFDir>() {
                for (itype, signed) in [(IXType::S64, true), (IXType::U64, false)] {
                    let m = ushf_64::Modifiers {
                        itype,
                        cwmod,
                        direction,
                    };
                    let d = reference.ushf_64(&m, &ushf_64::Sources { a: pair, b }).d;
                    let expected = shifted(direction, signed, amount(64));
                    assert_eq!(d, expected, "{m:?} {pair:#x} {b:#x}");
                }
                for &itype in &all::<SHFDType>() {
                    let wide = matches!(itype, SHFDType::S64 | SHFDType::U64);
                    let signed = matches!(itype, SHFDType::S32 | SHFDType::S64);
                    let words = shifted(direction, signed, amount(if wide { 64 } else { 32 }));
                    for (lohi, word) in [(LOHI::Lo, words as u32), (LOHI::Hi, (words >> 32) as u32)]
                    {
                        let m = ushf::Modifiers {
                            lohi,
                            itype,
                            cwmod,
                            direction,
                        };
                        let (a, c) = (pair as u32, (pair >> 32) as u32);
                        let d = reference.ushf(&m, &ushf::Sources { a, b, c }).d;
                        assert_eq!(d, word, "{m:?} {pair:#x} {b:#x}");
                    }
                }
            }
        }
    }
}

#[test]
fn uniform_bits() {
    let mut random = Random::for_test("ulop3");
    let reference = Reference::default();
    for case in 0..CASES {
        let (a, b, c, lut) = (random.word(), random.word(), random.word(), case % 256);
        let entry = |bit: u32| {
            let index = (a >> bit & 1) * 4 + (b >> bit & 1) * 2 + (c >> bit & 1);
            (lut >> index & 1) << bit
        };
        let d = reference
            .ulop3(&ulop3::Modifiers {}, &ulop3::Sources { a, b, c, lut })
            .d;
        assert_eq!(
            d,
            (0..32).map(entry).sum::<u32>(),
            "{lut:#x} {a:#x} {b:#x} {c:#x}"
        );
    }
}

#[test]
fn uniform_addresses() {
    let mut random = Random::for_test("ulea");
    let reference = Reference::default();
    for case in 0..CASES {
        let (a, b, shiftamt) = (random.long(), random.long(), case % 32);
        for (width, bits) in [(MOVW::W32, 32), (MOVW::W64, 64)] {
            for (a_neg, b_neg) in [(false, false), (true, false), (false, true), (true, true)] {
                let m = ulea::Modifiers {
                    a_neg,
                    width,
                    b_neg,
                };
                let scaled = i128::from(a) * (1i128 << shiftamt);
                let sum = negated(scaled, a_neg) + negated(b.into(), b_neg);
                let d = reference
                    .ulea(&m, &ulea::Sources::<u32> { a, b, shiftamt })
                    .d;
                assert_eq!(d, modulo(sum, bits), "{m:?} {a:#x} {b:#x} {shiftamt}");
            }
        }
    }
}

#[test]
fn uniform_choices() {
    let mut random = Random::for_test("usel");
    let reference = Reference::default();
    for case in 0..CASES {
        let a = random.long();
        let b = match case % 4 {
            0 => a,
            // Words that are equal, pairs that are not.
            1 => a ^ random.below(4) << 32,
            _ => random.long(),
        };
        for pp in [false, true] {
            for (width, bits) in [(MOVW::W32, 32), (MOVW::W64, 64)] {
                let d = reference
                    .usel(
                        &usel::Modifiers { width },
                        &usel::Sources::<u32> { a, b, pp },
                    )
                    .d;
                let expected = [b, a][usize::from(pp)];
                assert_eq!(d, modulo(expected.into(), bits));
            }
            for (itype, bits, signed) in [
                (SHFDType::S32, 32, true),
                (SHFDType::U32, 32, false),
                (SHFDType::S64, 64, true),
                (SHFDType::U64, 64, false),
            ] {
                let (x, y) = (read(a, bits, signed), read(b, bits, signed));
                let m = umnmx::Modifiers { itype };
                let d = reference.umnmx(&m, &umnmx::Sources::<u32> { a, b, pp }).d;
                let expected = if pp { x.min(y) } else { x.max(y) };
                assert_eq!(d, modulo(expected, bits), "{m:?} {pp} {a:#x} {b:#x}");
                for (compop, holds) in [
                    (CompOp::Eq, x - y == 0),
                    (CompOp::Ne, x - y != 0),
                    (CompOp::Lt, x - y < 0),
                    (CompOp::Le, x - y <= 0),
                    (CompOp::Gt, x - y > 0),
                    (CompOp::Ge, x - y >= 0),
                ] {
                    for (boolop, combined) in [
                        (BoolOp::And, holds && pp),
                        (BoolOp::Or, holds || pp),
                        (BoolOp::Xor, holds != pp),
                    ] {
                        let m = uisetp::Modifiers {
                            itype,
                            compop,
                            boolop,
                        };
                        let pu = reference
                            .uisetp(&m, &uisetp::Sources::<u32> { a, b, pp })
                            .pu;
                        assert_eq!(pu, combined, "{m:?} {pp} {a:#x} {b:#x}");
                    }
                }
            }
        }
    }
}
