//! Shifts and bit fields against sequences of bits; PRMT against the documents' tables, typed in.

use super::all;
use crate::sim::semantics::operands::*;
use crate::sim::semantics::shift::*;
use crate::testing::Random;

const CASES: u32 = 20_000;

fn join(bits: impl IntoIterator<Item = bool>) -> u32 {
    bits.into_iter()
        .enumerate()
        .map(|(i, bit)| u32::from(bit) << i)
        .sum()
}

#[test]
fn funnel_shift_moves_bits() {
    let mut random = Random::for_test("shf");
    for case in 0..CASES {
        let (a, c) = (random.word(), random.word());
        let b = if case % 2 == 0 {
            random.below(70) as u32
        } else {
            random.word()
        };
        let bit = |i: u64| {
            if i < 32 {
                a >> i & 1 == 1
            } else {
                c >> (i - 32) & 1 == 1
            }
        };
        for &itype in &all::<SHFDType>() {
            let limit = if matches!(itype, SHFDType::S64 | SHFDType::U64) {
                64u64
            } else {
                32
            };
            let fill = matches!(itype, SHFDType::S64 | SHFDType::S32) && bit(63);
            for &cwmod in &all::<CWMode>() {
                let n = if cwmod == CWMode::C {
                    u64::from(b).min(limit)
                } else {
                    u64::from(b) % limit
                };
                for (lohi, first) in [(LOHI::Lo, 0), (LOHI::Hi, 32)] {
                    let left = join((first..first + 32).map(|i| i >= n && bit(i - n)));
                    let right = join(
                        (first..first + 32).map(|i| if i + n < 64 { bit(i + n) } else { fill }),
                    );
                    for (direction, expected) in [(SHFDir::L, left), (SHFDir::R, right)] {
                        let m = shf::Modifiers {
                            lohi,
                            itype,
                            cwmod,
                            direction,
                        };
                        assert_eq!(
                            shf(&m, &shf::Sources { a, b, c }).d,
                            expected,
                            "{m:?} {a:#x} {b:#x} {c:#x}"
                        );
                    }
                }
            }
        }
    }
    // The documents' example: a shift by 0x24 is clamped to 32, which moves Ra into the high word.
    let m = shf::Modifiers {
        lohi: LOHI::Hi,
        itype: SHFDType::S32,
        cwmod: CWMode::C,
        direction: SHFDir::L,
    };
    assert_eq!(
        shf(
            &m,
            &shf::Sources {
                a: 7,
                b: 0x24,
                c: 9
            }
        )
        .d,
        7
    );
}

#[test]
fn moves() {
    let b = 0x0123_4567_89ab_cdef;
    assert_eq!(
        mov(
            &mov::Modifiers { width: MOVW::W64 },
            &mov::Sources::<u32> { b }
        )
        .d,
        b
    );
    assert_eq!(
        mov(
            &mov::Modifiers { width: MOVW::W32 },
            &mov::Sources::<u32> { b }
        )
        .d,
        0x89ab_cdef
    );
}

/// Rows are selectors 0 to 3, columns the bytes of Rd from b3 to b0, entries the numbers of the source bytes (document
/// 002, PRMT).
const TABLES: [(PRMTMode, [[usize; 4]; 4]); 6] = [
    (
        PRMTMode::F4e,
        [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]],
    ),
    (
        PRMTMode::B4e,
        [[5, 6, 7, 0], [6, 7, 0, 1], [7, 0, 1, 2], [0, 1, 2, 3]],
    ),
    (
        PRMTMode::Rc8,
        [[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3]],
    ),
    (
        PRMTMode::Ecl,
        [[3, 2, 1, 0], [3, 2, 1, 1], [3, 2, 2, 2], [3, 3, 3, 3]],
    ),
    (
        PRMTMode::Ecr,
        [[0, 0, 0, 0], [1, 1, 1, 0], [2, 2, 1, 0], [3, 2, 1, 0]],
    ),
    (
        PRMTMode::Rc16,
        [[1, 0, 1, 0], [3, 2, 3, 2], [1, 0, 1, 0], [3, 2, 3, 2]],
    ),
];

#[test]
fn byte_permutation() {
    let mut random = Random::for_test("prmt");
    for _ in 0..CASES {
        let (a, b, c) = (random.word(), random.word(), random.word());
        let bytes: Vec<u8> = a.to_le_bytes().into_iter().chain(b.to_le_bytes()).collect();
        for (mode, table) in TABLES {
            let row = table[(c % 4) as usize];
            let expected = u32::from_be_bytes(row.map(|index| bytes[index]));
            assert_eq!(
                prmt(&prmt::Modifiers { mode }, &prmt::Sources { a, b, c }).d,
                expected,
                "{mode:?} {c}"
            );
        }
    }
    let index = |a, b, c| {
        prmt(
            &prmt::Modifiers {
                mode: PRMTMode::Idx,
            },
            &prmt::Sources { a, b, c },
        )
        .d
    };
    for c in 0..=0xffffu32 {
        let (a, b) = (random.word(), random.word());
        let bytes: Vec<u8> = a.to_le_bytes().into_iter().chain(b.to_le_bytes()).collect();
        let mut expected = 0u32;
        for i in 0..4 {
            let nibble = c as usize / 16usize.pow(i) % 16;
            let byte = match nibble {
                0..8 => bytes[nibble],
                _ if bytes[nibble - 8] >= 0x80 => 0xff,
                _ => 0,
            };
            expected += u32::from(byte) * 256u32.pow(i);
        }
        assert_eq!(index(a, b, c | random.word() << 16), expected, "{c:#x}");
    }
    // The documents' example: PRMT R0, R1, R2, 0xABCD takes the signs of bytes 2, 3, 4 and 5, from the top.
    assert_eq!(index(0x8000_0000, 0x0000_8000, 0xabcd), 0x00ff_00ff);
}

#[test]
fn masks_and_extensions() {
    let mut random = Random::for_test("bmsk");
    for case in 0..CASES {
        let pick = |random: &mut Random| {
            if case % 2 == 0 {
                random.below(70) as u32
            } else {
                random.word()
            }
        };
        let (a, b) = (pick(&mut random), pick(&mut random));
        for &cwmode in &all::<CWMode>() {
            let reduce = |n: u32| u64::from(if cwmode == CWMode::W { n % 32 } else { n });
            let mask = bmsk(&bmsk::Modifiers { cwmode }, &bmsk::Sources { a, b }).d;
            let (low, high) = (reduce(a), reduce(a) + reduce(b));
            assert_eq!(
                mask,
                join((0..32).map(|i| low <= i && i < high)),
                "{cwmode:?} {a} {b}"
            );

            let word = random.word();
            let width = if cwmode == CWMode::W {
                b % 32
            } else {
                b.min(32)
            };
            for itype in [IType::S32, IType::U32] {
                let sign = itype == IType::S32 && width > 0 && word >> (width - 1) & 1 == 1;
                let expected =
                    join((0..32).map(|i| if i < width { word >> i & 1 == 1 } else { sign }));
                let d = sgxt(
                    &sgxt::Modifiers { itype, cwmode },
                    &sgxt::Sources { a: word, b },
                )
                .d;
                assert_eq!(d, expected, "{itype:?} {cwmode:?} {word:#x} {b}");
            }
        }
    }
    // The documents' examples: three bits with sign, sixteen without.
    let sgxt = |itype, a, b| {
        sgxt(
            &sgxt::Modifiers {
                itype,
                cwmode: CWMode::C,
            },
            &sgxt::Sources { a, b },
        )
        .d
    };
    assert_eq!(sgxt(IType::S32, 0b1101, 3), -3i32 as u32);
    assert_eq!(sgxt(IType::U32, 0xdead_beef, 0x10), 0xbeef);
}
