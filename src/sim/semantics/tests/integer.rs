//! Integer arithmetic against values (i128), not bits: every oracle computes the number the documents describe and
//! reduces it last.

use super::all;
use crate::sim::semantics::integer::*;
use crate::sim::semantics::operands::*;
use crate::sim::semantics::{convert, special};
use crate::testing::Random;

const CASES: u32 = 100_000;
const TWO_32: i128 = 1 << 32;
const TWO_64: i128 = 1 << 64;

/// The value of a word as `itype` reads it.
fn value(word: u32, itype: IType) -> i128 {
    if itype == IType::S32 && word >> 31 != 0 {
        i128::from(word) - TWO_32
    } else {
        i128::from(word)
    }
}

fn modulo(value: i128, modulus: i128) -> i128 {
    value.rem_euclid(modulus)
}

#[test]
fn iadd_is_a_sum_of_values() {
    let mut random = Random::for_test("iadd");
    for _ in 0..CASES {
        let s = iadd::Sources {
            a: random.word(),
            b: random.word(),
            pp: random.flip(),
        };
        let (a, b) = (i128::from(s.a), i128::from(s.b));
        for (a_neg, b_neg) in [(false, false), (true, false), (false, true), (true, true)] {
            let signed = if a_neg { -a } else { a } + if b_neg { -b } else { b };
            let plain = iadd(
                &iadd::Modifiers {
                    ext: IExt::NoX,
                    a_neg,
                    b_neg,
                },
                &s,
            );
            assert_eq!(i128::from(plain.d), modulo(signed, TWO_32));
            // Each complement adds 2^32 - 1 to what the negative value would be.
            let complements = i128::from(a_neg) + i128::from(b_neg);
            let extended = signed + complements * (TWO_32 - 1) + i128::from(s.pp);
            let chained = iadd(
                &iadd::Modifiers {
                    ext: IExt::X,
                    a_neg,
                    b_neg,
                },
                &s,
            );
            assert_eq!(i128::from(chained.d), modulo(extended, TWO_32));
            assert_eq!(chained.pu, extended >= TWO_32);
        }
        let difference = iadd(
            &iadd::Modifiers {
                ext: IExt::NoX,
                a_neg: false,
                b_neg: true,
            },
            &s,
        );
        assert_eq!(difference.pu, a >= b, "no borrow");
    }
}

/// The 64-bit chains of IADD.X, IMAD and LEA, as the documents combine them.
#[test]
fn chains_of_two_words_are_exact() {
    let mut random = Random::for_test("chains");
    for case in 0..CASES {
        let (x, y) = (random.long(), if case % 8 == 0 { 0 } else { random.long() });
        let (a, b) = (random.word(), random.word());
        let words = |v: u64| (v as u32, (v >> 32) as u32);
        let join = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);

        let add = |b_neg, pp, a, b| {
            iadd(
                &iadd::Modifiers {
                    ext: IExt::X,
                    a_neg: false,
                    b_neg,
                },
                &iadd::Sources { a, b, pp },
            )
        };
        let low = add(false, false, words(x).0, words(y).0);
        assert_eq!(
            join(low.d, add(false, low.pu, words(x).1, words(y).1).d),
            x.wrapping_add(y)
        );
        let low = add(true, true, words(x).0, words(y).0);
        assert_eq!(
            join(low.d, add(true, low.pu, words(x).1, words(y).1).d),
            x.wrapping_sub(y)
        );

        for itype in [IType::S32, IType::U32] {
            let product = (value(a, itype) * value(b, itype)) as u64;
            for c_neg in [false, true] {
                let imad = |lohi, ext, c, pp| {
                    imad(
                        &imad::Modifiers {
                            lohi,
                            ext,
                            itype,
                            c_neg,
                        },
                        &imad::Sources { a, b, c, pp },
                    )
                };
                let low = imad(LOHI::Lo, IExt::NoX, words(y).0, false);
                let high = imad(LOHI::Hi, IExt::X, words(y).1, low.pu);
                let expected = if c_neg {
                    product.wrapping_sub(y)
                } else {
                    product.wrapping_add(y)
                };
                assert_eq!(join(low.d, high.d), expected);

                let m = imad_wide::Modifiers {
                    ext: IExt::NoX,
                    itype,
                    c_neg,
                };
                let wide = imad_wide(
                    &m,
                    &imad_wide::Sources {
                        a,
                        b,
                        c: y,
                        pp: true,
                    },
                );
                assert_eq!(wide.d, expected);
                assert_eq!(
                    wide.pu,
                    if c_neg {
                        product >= y
                    } else {
                        product.checked_add(y).is_none()
                    }
                );
            }
        }

        let shiftamt = random.below(32) as u32;
        for a_neg in [false, true] {
            let lea = |lohi, ext, sx32, (a, c): (u32, u32), b, pp| {
                lea(
                    &lea::Modifiers {
                        lohi,
                        ext,
                        sx32,
                        a_neg,
                        b_neg: false,
                    },
                    &lea::Sources {
                        a,
                        b,
                        c,
                        shiftamt,
                        pp,
                    },
                )
            };
            let combine = |scaled: u64| {
                if a_neg {
                    y.wrapping_sub(scaled)
                } else {
                    y.wrapping_add(scaled)
                }
            };
            let low = lea(
                LOHI::Lo,
                IExt::NoX,
                LEASX32::NoSx32,
                words(x),
                words(y).0,
                false,
            );
            let high = lea(
                LOHI::Hi,
                IExt::X,
                LEASX32::NoSx32,
                words(x),
                words(y).1,
                low.pu,
            );
            assert_eq!(join(low.d, high.d), combine(x << shiftamt));
            let high = lea(
                LOHI::Hi,
                IExt::X,
                LEASX32::Sx32,
                (words(x).0, random.word()),
                words(y).1,
                low.pu,
            );
            let extended = value(words(x).0, IType::S32) as u64;
            assert_eq!(join(low.d, high.d), combine(extended << shiftamt));
        }
    }
}

#[test]
fn imad_wide_chains_to_128_bits() {
    let mut random = Random::for_test("imad_wide.x");
    for _ in 0..CASES {
        let (a, b) = (random.word(), random.word());
        let c = u128::from(random.long()) << 64 | u128::from(random.long());
        for c_neg in [false, true] {
            let m = imad_wide::Modifiers {
                ext: IExt::X,
                itype: IType::U32,
                c_neg,
            };
            let low = imad_wide(
                &m,
                &imad_wide::Sources {
                    a,
                    b,
                    c: c as u64,
                    pp: c_neg,
                },
            );
            let high = imad_wide(
                &m,
                &imad_wide::Sources {
                    a: 0,
                    b: 0,
                    c: (c >> 64) as u64,
                    pp: low.pu,
                },
            );
            let product = u128::from(a) * u128::from(b);
            let expected = if c_neg {
                product.wrapping_sub(c)
            } else {
                product.wrapping_add(c)
            };
            assert_eq!(u128::from(high.d) << 64 | u128::from(low.d), expected);
        }
        let signed = imad_wide::Modifiers {
            ext: IExt::X,
            itype: IType::S32,
            c_neg: false,
        };
        let sum =
            modulo(value(a, IType::S32) * value(b, IType::S32), TWO_64) + i128::from(c as u64) + 1;
        let wide = imad_wide(
            &signed,
            &imad_wide::Sources {
                a,
                b,
                c: c as u64,
                pp: true,
            },
        );
        assert_eq!(
            (i128::from(wide.d), wide.pu),
            (modulo(sum, TWO_64), sum >= TWO_64)
        );
    }
}

#[test]
fn multiplication_is_typed_after_negation() {
    let mut random = Random::for_test("imul");
    for _ in 0..CASES {
        let (a, b) = (random.word(), random.word());
        for itype in [IType::S32, IType::U32] {
            for b_neg in [false, true] {
                let factor = if b_neg {
                    modulo(-i128::from(b), TWO_32) as u32
                } else {
                    b
                };
                let product = modulo(value(a, itype) * value(factor, itype), TWO_64);
                let multiply = |lohi| {
                    imul(
                        &imul::Modifiers { lohi, itype, b_neg },
                        &imul::Sources { a, b },
                    )
                    .d
                };
                assert_eq!(i128::from(multiply(LOHI::Lo)), modulo(product, TWO_32));
                assert_eq!(i128::from(multiply(LOHI::Hi)), product / TWO_32);
            }
        }
    }
}

#[test]
fn dot_products() {
    let mut random = Random::for_test("idp");
    // Part `index` of `size` bits, as a number, read digit by digit rather than by a cast.
    let part = |word: u32, index: u32, size: u32, signed: bool| {
        let bits = i128::from(word) / (1 << (index * size)) % (1 << size);
        if signed && bits >= 1 << (size - 1) {
            bits - (1 << size)
        } else {
            bits
        }
    };
    for _ in 0..CASES {
        let (a, b, c, pp) = (random.word(), random.word(), random.word(), random.flip());
        let addend = i128::from(c) + i128::from(pp);
        for bfmt in [I8Type::S8, I8Type::U8] {
            let b_signed = bfmt == I8Type::S8;
            for afmt in [I8Type::S8, I8Type::U8] {
                let sum = addend
                    + (0..4)
                        .map(|i| part(a, i, 8, afmt == I8Type::S8) * part(b, i, 8, b_signed))
                        .sum::<i128>();
                let result = idp4a(
                    &idp4a::Modifiers { afmt, bfmt },
                    &idp4a::Sources { a, b, c, pp },
                );
                assert_eq!(
                    (i128::from(result.d), result.pu),
                    (modulo(sum, TWO_32), sum >= TWO_32)
                );
            }
            for afmt in [I16Type::S16, I16Type::U16] {
                for (lohi, first) in [(LOHI::Lo, 0), (LOHI::Hi, 2)] {
                    let products = (0..2)
                        .map(|i| {
                            part(a, i, 16, afmt == I16Type::S16) * part(b, first + i, 8, b_signed)
                        })
                        .sum::<i128>();
                    let sum = addend + products;
                    let result = idp2a(
                        &idp2a::Modifiers { lohi, afmt, bfmt },
                        &idp2a::Sources { a, b, c, pp },
                    );
                    assert_eq!(
                        (i128::from(result.d), result.pu),
                        (modulo(sum, TWO_32), sum >= TWO_32)
                    );
                }
            }
        }
    }
}

#[test]
fn absolute_value_and_minimum() {
    let mut random = Random::for_test("iabs");
    for _ in 0..CASES {
        let (a, b) = (random.word(), random.word());
        assert_eq!(
            i128::from(iabs(&iabs::Modifiers {}, &iabs::Sources { b }).d),
            value(b, IType::S32).abs()
        );
        for itype in [IType::S32, IType::U32] {
            let choose = |pp| {
                value(
                    imnmx(&imnmx::Modifiers { itype }, &imnmx::Sources { a, b, pp }).d,
                    itype,
                )
            };
            let (x, y) = (value(a, itype), value(b, itype));
            assert_eq!((choose(true), choose(false)), (x.min(y), x.max(y)));
        }
    }
    // The documents' example: IABS R0, -0x1.
    assert_eq!(
        iabs(&iabs::Modifiers {}, &iabs::Sources { b: u32::MAX }).d,
        1
    );
}

#[test]
fn saturating_conversions() {
    let mut random = Random::for_test("i2i");
    let range = |bits: u32, signed: bool| -> (i128, i128) {
        if signed {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        }
    };
    for _ in 0..CASES {
        let (a, b, c) = (random.word(), random.word(), random.word());
        let limit = |word: u32, (min, max): (i128, i128)| {
            let value = value(word, IType::S32);
            if value < min {
                min
            } else if value > max {
                max
            } else {
                value
            }
        };
        for (dtype, bits, signed) in [
            (I2IDType::S8, 8, true),
            (I2IDType::U8, 8, false),
            (I2IDType::S16, 16, true),
            (I2IDType::U16, 16, false),
        ] {
            let d = convert::i2i(&i2i::Modifiers { dtype }, &i2i::Sources { b }).d;
            assert_eq!(value(d, IType::S32), limit(b, range(bits, signed)));
        }
        for (index, &dsttype) in all::<I2IPDType>().iter().enumerate() {
            // The members alternate signed and unsigned: S2, U2, S4, U4, S8, U8, S16, U16.
            let (bits, signed) = (2 << (index / 2), index % 2 == 0);
            let narrow = |word| modulo(limit(word, range(bits, signed)), 1 << bits);
            let packed = narrow(b) + (narrow(a) << bits) + (i128::from(c) << (2 * bits));
            let d = convert::i2ip(
                &i2ip::Modifiers {
                    satrelu: SATRelu::Sat,
                    dsttype,
                },
                &i2ip::Sources { a, b, c },
            )
            .d;
            assert_eq!(i128::from(d), modulo(packed, TWO_32), "{dsttype:?}");
        }
    }
    // The documents' example: I2I.U16 R0, 0x114514.
    assert_eq!(
        convert::i2i(
            &i2i::Modifiers {
                dtype: I2IDType::U16
            },
            &i2i::Sources { b: 0x0011_4514 }
        )
        .d,
        0xffff
    );
}

#[test]
fn bit_counting() {
    use crate::sim::semantics::BrevReading;
    let mut random = Random::for_test("popc");
    let bits = |word: u32| {
        (0..32)
            .filter(|&i| word / (1 << i) % 2 == 1)
            .collect::<Vec<u32>>()
    };
    for case in 0..CASES {
        let b = if case < 4 {
            [0, u32::MAX, 1, 1 << 31][case as usize]
        } else {
            random.word()
        };
        for b_bitnot in [false, true] {
            let input = if b_bitnot { u32::MAX - b } else { b };
            let count = special::popc(&popc::Modifiers { b_bitnot }, &popc::Sources { b }).d;
            assert_eq!(count as usize, bits(input).len());
            for itype in [IType::S32, IType::U32] {
                let searched = if itype == IType::S32 && input >= 1 << 31 {
                    u32::MAX - input
                } else {
                    input
                };
                let highest = bits(searched).last().copied();
                let find = |sh| {
                    special::flo(
                        &flo::Modifiers {
                            itype,
                            sh,
                            b_bitnot,
                        },
                        &flo::Sources { b },
                    )
                    .d
                };
                assert_eq!(find(FLOSH::NoSh), highest.unwrap_or(u32::MAX));
                assert_eq!(find(FLOSH::Sh), highest.map_or(u32::MAX, |bit| 31 - bit));
            }
        }
        let brev = |reading| special::brev(reading, &brev::Modifiers {}, &brev::Sources { b }).d;
        assert_eq!(brev(BrevReading::Complement), u32::MAX - b);
        assert_eq!(
            brev(BrevReading::Reverse),
            bits(b).iter().map(|&i| 1 << (31 - i)).sum::<u32>()
        );
    }
    // The documents' example: FLO.U32.SH R1, RZ.
    let m = flo::Modifiers {
        itype: IType::U32,
        sh: FLOSH::Sh,
        b_bitnot: false,
    };
    assert_eq!(special::flo(&m, &flo::Sources { b: 0 }).d, u32::MAX);
}
