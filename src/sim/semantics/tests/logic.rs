//! Bits, predicates and comparisons, bit by bit and by the documents' tables.

use super::all;
use crate::sim::semantics::logic::*;
use crate::sim::semantics::operands::*;
use crate::testing::Random;
use std::cmp::Ordering;

const CASES: u32 = 20_000;

fn boolean(op: BoolOp, x: bool, y: bool) -> bool {
    match op {
        BoolOp::And => x && y,
        BoolOp::Or => x || y,
        BoolOp::Xor => x != y,
    }
}

fn satisfies(op: CompOp, order: Ordering) -> bool {
    let orders: &[Ordering] = match op {
        CompOp::Eq => &[Ordering::Equal],
        CompOp::Ne => &[Ordering::Less, Ordering::Greater],
        CompOp::Lt => &[Ordering::Less],
        CompOp::Le => &[Ordering::Less, Ordering::Equal],
        CompOp::Gt => &[Ordering::Greater],
        CompOp::Ge => &[Ordering::Greater, Ordering::Equal],
    };
    orders.contains(&order)
}

#[test]
fn comparisons_of_one_word() {
    let mut random = Random::for_test("isetp");
    for case in 0..CASES {
        let a = random.word();
        let b = if case % 4 == 0 { a } else { random.word() };
        for itype in [IType::S32, IType::U32] {
            let order = if itype == IType::S32 {
                (a as i32).cmp(&(b as i32))
            } else {
                a.cmp(&b)
            };
            for &compop in &all::<CompOp>() {
                for &boolop in &all::<BoolOp>() {
                    for (pp, pq) in [(false, false), (true, false), (false, true), (true, true)] {
                        let t = satisfies(compop, order);
                        let m = isetp::Modifiers {
                            ext: IExt::NoX,
                            itype,
                            compop,
                            boolop,
                        };
                        let result = isetp(&m, &isetp::Sources { a, b, pp, pq });
                        assert_eq!(
                            (result.pu, result.pv),
                            (boolean(boolop, t, pp), boolean(boolop, !t, pp))
                        );
                        for (bmbf, one) in [(BMBF::Bm, 0xffff_ffff), (BMBF::Bf, 0x3f80_0000)] {
                            let m = iset::Modifiers {
                                ext: IExt::NoX,
                                itype,
                                compop,
                                boolop,
                                bmbf,
                            };
                            let d = iset(&m, &iset::Sources { a, b, pp, pq }).d;
                            assert_eq!(d, if boolean(boolop, t, pp) { one } else { 0 });
                        }
                    }
                }
            }
        }
    }
}

/// The low words compared as unsigned, the high words with `.X` and the first result as `pq`: a comparison of 64 bits.
#[test]
fn comparisons_of_two_words() {
    let mut random = Random::for_test("isetp.x");
    for case in 0..CASES {
        let x = random.long();
        let y = match case % 4 {
            0 => x,
            1 => x & !0xffff_ffff | random.below(1 << 32),
            _ => random.long(),
        };
        for itype in [IType::S32, IType::U32] {
            let order = if itype == IType::S32 {
                (x as i64).cmp(&(y as i64))
            } else {
                x.cmp(&y)
            };
            for &compop in &all::<CompOp>() {
                let boolop = BoolOp::And;
                let low = isetp(
                    &isetp::Modifiers {
                        ext: IExt::NoX,
                        itype: IType::U32,
                        compop,
                        boolop,
                    },
                    &isetp::Sources {
                        a: x as u32,
                        b: y as u32,
                        pp: true,
                        pq: random.flip(),
                    },
                );
                let (a, b) = ((x >> 32) as u32, (y >> 32) as u32);
                let high = isetp(
                    &isetp::Modifiers {
                        ext: IExt::X,
                        itype,
                        compop,
                        boolop,
                    },
                    &isetp::Sources {
                        a,
                        b,
                        pp: true,
                        pq: low.pu,
                    },
                );
                assert_eq!(
                    (high.pu, high.pv),
                    (satisfies(compop, order), !satisfies(compop, order))
                );
                let m = iset::Modifiers {
                    ext: IExt::X,
                    itype,
                    compop,
                    boolop,
                    bmbf: BMBF::Bm,
                };
                let mask = iset(
                    &m,
                    &iset::Sources {
                        a,
                        b,
                        pp: true,
                        pq: low.pu,
                    },
                )
                .d;
                assert_eq!(mask != 0, satisfies(compop, order));
            }
        }
    }
}

#[test]
fn lop3_follows_its_table_bit_by_bit() {
    let mut random = Random::for_test("lop3");
    for lut in 0..256u32 {
        for case in 0..40 {
            let (a, b, c) = if case == 0 {
                (0, 0, 0)
            } else {
                (random.word(), random.word(), random.word())
            };
            let mut d = 0;
            for i in 0..32 {
                let bit = |word: u32| word >> i & 1;
                d |= (lut >> ((bit(a) << 2) | (bit(b) << 1) | bit(c)) & 1) << i;
            }
            for pp in [false, true] {
                let run = |exbool| {
                    lop3(
                        &lop3::Modifiers { exbool },
                        &lop3::Sources { a, b, c, lut, pp },
                    )
                };
                assert_eq!(
                    run(EXBool::Pand),
                    lop3::Results {
                        d,
                        pu: d != 0 && pp
                    }
                );
                assert_eq!(
                    run(EXBool::Por),
                    lop3::Results {
                        d,
                        pu: d != 0 || pp
                    }
                );
            }
        }
        // The documents' rule for finding the table: applied to 0xF0, 0xCC, 0xAA a function gives its own table.
        let s = lop3::Sources {
            a: 0xf0,
            b: 0xcc,
            c: 0xaa,
            lut,
            pp: false,
        };
        assert_eq!(
            lop3(
                &lop3::Modifiers {
                    exbool: EXBool::Por
                },
                &s
            )
            .d & 0xff,
            lut
        );
        for index in 0..8 {
            let (pa, pb, pc) = (index & 4 != 0, index & 2 != 0, index & 1 != 0);
            assert_eq!(
                plop3(
                    &plop3::Modifiers {},
                    &plop3::Sources::<u32> { pa, pb, pc, lut }
                )
                .pu,
                lut >> index & 1 != 0
            );
        }
    }
    // The documents' fourth example: (a & b | c) ^ a is 0x1A.
    for _ in 0..CASES {
        let (a, b, c) = (random.word(), random.word(), random.word());
        let s = lop3::Sources {
            a,
            b,
            c,
            lut: 0x1a,
            pp: true,
        };
        assert_eq!(
            lop3(
                &lop3::Modifiers {
                    exbool: EXBool::Por
                },
                &s
            )
            .d,
            (a & b | c) ^ a
        );
    }
}

#[test]
fn predicates_to_and_from_registers() {
    let mut random = Random::for_test("p2r");
    for _ in 0..CASES {
        let (a, b, predicates) = (random.word(), random.word(), random.bits() as u8);
        for (byte, &bsel) in all::<BSel>().iter().enumerate() {
            let bit = |word: u32, i: usize| word >> i & 1;
            let pack = p2r(&p2r::Modifiers { bsel }, &p2r::Sources { a, b, predicates }).d;
            let unpack = r2p(
                &r2p::Modifiers { a_bsel: bsel },
                &r2p::Sources { a, b, predicates },
            )
            .predicates;
            for i in 0..32 {
                let selected = i / 8 == byte && bit(b, i % 8) == 1;
                let predicate = if i % 8 == 7 {
                    1
                } else {
                    u32::from(predicates) >> (i % 8) & 1
                };
                assert_eq!(bit(pack, i), if selected { predicate } else { bit(a, i) });
            }
            for i in 0..7 {
                let old = u32::from(predicates) >> i & 1;
                let new = if bit(b, i) == 1 {
                    bit(a, 8 * byte + i)
                } else {
                    old
                };
                assert_eq!(bit(u32::from(unpack), i), new);
            }
            assert_eq!(unpack >> 7, 1, "PT stays true");
        }
    }
    assert_eq!(
        sel(
            &sel::Modifiers {},
            &sel::Sources {
                a: 1,
                b: 2,
                pp: true
            }
        )
        .d,
        1
    );
    assert_eq!(
        sel(
            &sel::Modifiers {},
            &sel::Sources {
                a: 1,
                b: 2,
                pp: false
            }
        )
        .d,
        2
    );
}
