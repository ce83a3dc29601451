//! What lanes and blocks do together, beside a model on the host.

use crate::common;
use crate::common::{Random, THREADS, example, ran};
use bytemuck::{Pod, Zeroable};
use half::f16;
use thisgpu_build::{Compiled, Device, Grid, Kernels, Module, OptLevel};

fn checking() -> (Device, Module) {
    common::checking(&THREADS)
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
struct Mixed {
    small: i8,
    unused: u8,
    half: u16,
    behind: u32,
    wide: u64,
    pair: [f32; 2],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
struct Affine {
    a: u32,
    b: u32,
}

const ONE: Affine = Affine { a: 1, b: 0 };

impl Affine {
    fn then(self, next: Affine) -> Affine {
        Affine {
            a: self.a.wrapping_mul(next.a),
            b: self.b.wrapping_mul(next.a).wrapping_add(next.b),
        }
    }
}

#[test]
fn structures_move_between_lanes() {
    let (device, module) = checking();
    let mut random = Random(3);
    let x: Vec<Mixed> = (0..64)
        .map(|_| Mixed {
            small: random.bits() as i8,
            half: random.bits() as u16,
            wide: random.bits(),
            pair: [random.bits() as f32, -(random.bits() as f32)],
            ..Mixed::default()
        })
        .collect();
    let given = device.upload(&x).unwrap();
    let mut out = device.zeros::<[Mixed; 4]>(64).unwrap();
    ran(
        &module,
        "move_lanes",
        Grid::new([1; 3], [64, 1, 1]),
        |launch| launch.arg(&given).arg(&mut out),
    );
    for (i, found) in out.to_vec().unwrap().into_iter().enumerate() {
        let (lane, warp) = (i % 32, i / 32 * 32);
        let lanes = [
            (lane + 1) % 32,
            lane.checked_sub(3).unwrap_or(lane),
            if lane + 3 < 32 { lane + 3 } else { lane },
            lane ^ 31,
        ];
        // What lies between fields is nobody's.
        let found = found.map(|of| Mixed {
            unused: 0,
            behind: 0,
            ..of
        });
        assert_eq!(found, lanes.map(|lane| x[warp + lane]), "thread {i}");
    }
}

#[test]
fn a_warp_reduces_scans_and_matches() {
    let (device, module) = checking();
    let mut random = Random(5);
    let functions: Vec<Affine> = (0..96)
        .map(|_| Affine {
            a: random.bits() as u32,
            b: random.bits() as u32,
        })
        .collect();
    // In the last warp all bytes are the same.
    let bytes: Vec<u8> = (0..96)
        .map(|i| if i < 64 { random.bits() as u8 % 5 } else { 9 })
        .collect();
    let doubles: Vec<f64> = (0..96).map(|_| (random.bits() >> 40) as f64).collect();
    let mut out = device.zeros::<[u32; 6]>(96).unwrap();
    let mut sums = device.zeros::<f64>(96).unwrap();
    let (f, b, d) = (
        device.upload(&functions).unwrap(),
        device.upload(&bytes).unwrap(),
        device.upload(&doubles).unwrap(),
    );
    ran(
        &module,
        "warp_results",
        Grid::new([1; 3], [96, 1, 1]),
        |launch| launch.arg(&f).arg(&b).arg(&d).arg(&mut out).arg(&mut sums),
    );
    let sums = sums.to_vec().unwrap();
    for (i, found) in out.to_vec().unwrap().into_iter().enumerate() {
        let warp = i / 32 * 32..i / 32 * 32 + 32;
        let fold = |to: usize| {
            functions[warp.start..to]
                .iter()
                .copied()
                .fold(ONE, Affine::then)
        };
        let same = bytes[warp.clone()]
            .iter()
            .enumerate()
            .fold(0, |mask, (lane, byte)| {
                mask | u32::from(*byte == bytes[i]) << lane
            });
        let expected = [
            fold(i + 1).b,
            fold(i).b,
            (*bytes[warp.clone()].iter().max().unwrap()).into(),
            same,
            u32::from(same == u32::MAX) | 2,
            bytes[warp.start].into(),
        ];
        assert_eq!(found, expected, "thread {i}");
        assert_eq!(sums[i], doubles[warp].iter().sum::<f64>());
    }
}

#[test]
fn groups_of_each_size_work_apart() {
    let (device, module) = checking();
    let mut random = Random(7);
    let x: Vec<u32> = (0..64).map(|_| random.bits() as u32).collect();
    let given = device.upload(&x).unwrap();
    for size in [2usize, 4, 8, 16, 32] {
        let mut out = device.zeros::<[u32; 10]>(64).unwrap();
        ran(&module, "tiles", Grid::new([1; 3], [64, 1, 1]), |launch| {
            launch.arg(size as u32).arg(&given).arg(&mut out)
        });
        for (i, found) in out.to_vec().unwrap().into_iter().enumerate() {
            assert_eq!(found, of_tile(size, &x, i), "size {size}, thread {i}");
        }
    }
}

/// A group does not read lanes of others, which may be elsewhere.
#[test]
fn groups_do_different_things() {
    let (device, module) = checking();
    let mut random = Random(8);
    let x: Vec<u32> = (0..64).map(|_| random.bits() as u32).collect();
    let given = device.upload(&x).unwrap();
    let mut out = device.zeros::<[u32; 10]>(64).unwrap();
    ran(
        &module,
        "groups_apart",
        Grid::new([1; 3], [64, 1, 1]),
        |launch| launch.arg(&given).arg(&mut out),
    );
    for (i, found) in out.to_vec().unwrap().into_iter().enumerate() {
        let tile = &x[i / 4 * 4..][..4];
        let expected = match i / 4 % 2 {
            0 => of_tile(4, &x, i),
            _ => [*tile.iter().max().unwrap(); 10],
        };
        assert_eq!(found, expected, "thread {i}");
    }
}

/// What a thread finds in its group.
fn of_tile(size: usize, x: &[u32], i: usize) -> [u32; 10] {
    let (rank, first) = (i % size, i / size * size);
    let tile = &x[first..first + size];
    let sum = |part: &[u32]| part.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
    let mask = |holds: &dyn Fn(u32) -> bool| {
        let bits = tile
            .iter()
            .enumerate()
            .map(|(rank, x)| u32::from(holds(*x)) << rank);
        bits.sum::<u32>()
    };
    let odd = mask(&|x| x % 2 == 1);
    let all = u32::MAX >> (32 - size);
    [
        (rank | ((i % 32 / size) << 8) | (size << 16)) as u32,
        tile[(rank + 1) % size],
        tile[rank.saturating_sub(1)],
        tile[if rank + 2 < size { rank + 2 } else { rank }],
        tile[rank ^ 1],
        sum(tile),
        sum(&tile[..=rank]),
        if rank == 0 { 7 } else { sum(&tile[..rank]) },
        odd,
        u32::from(odd == all) | u32::from(odd != 0) << 1 | mask(&|y| y % 3 == x[i] % 3) << 2,
    ]
}

#[test]
fn groups_part_and_meet() {
    let (device, module) = checking();
    let x: Vec<u32> = (0..64).map(|i| i * 7 + 3).collect();
    let given = device.upload(&x).unwrap();
    let mut out = device.zeros::<u32>(64).unwrap();
    ran(
        &module,
        "nested_tiles",
        Grid::new([1; 3], [64, 1, 1]),
        |launch| launch.arg(&given).arg(&mut out),
    );
    let expected: Vec<u32> = (x.chunks(8))
        .flat_map(|eight| {
            let product = eight[..4]
                .iter()
                .fold(1u32, |product, x| product.wrapping_mul(*x));
            let sum: u32 = eight[4..].iter().sum();
            [product.wrapping_add(sum).wrapping_mul(4); 8]
        })
        .collect();
    assert_eq!(out.to_vec().unwrap(), expected);
}

/// One thread, a part of a warp, warps, a part of a warp behind them, as many as there may be and one less.
#[test]
fn a_block_of_any_size_reduces_and_scans() {
    let (device, module) = checking();
    for (blocks, threads) in [
        (3, 1u32),
        (2, 2),
        (2, 31),
        (1, 32),
        (2, 33),
        (1, 64),
        (2, 100),
        (1, 993),
        (1, 1024),
    ] {
        let mut random = Random(threads.into());
        let count = blocks * threads;
        let x: Vec<u32> = (0..count).map(|_| random.bits() as u32 % 1100).collect();
        let given = device.upload(&x).unwrap();
        let mut out = device.zeros::<[u32; 10]>(blocks.into()).unwrap();
        let mut each = device.zeros::<[u32; 4]>(count.into()).unwrap();
        ran(
            &module,
            "block_results",
            Grid::new([blocks, 1, 1], [threads, 1, 1]),
            |launch| launch.arg(&given).arg(&mut out).arg(&mut each),
        );
        let each = each.to_vec().unwrap();
        for (block, found) in out.to_vec().unwrap().into_iter().enumerate() {
            let first = block * threads as usize;
            let x = &x[first..first + threads as usize];
            let f = |x: &u32| Affine { a: x | 1, b: *x };
            let fold = |x: &[u32]| x.iter().map(f).fold(ONE, Affine::then);
            let sum: u64 = x.iter().map(|x| u64::from(*x) << 20).sum();
            let expected = [
                fold(x).a,
                fold(x).b,
                sum as u32,
                (sum >> 32) as u32,
                threads,
                *x.iter().max().unwrap(),
                x[threads as usize - 1],
                x.iter().filter(|x| **x % 2 == 0).count() as u32,
                u32::from(x.iter().all(|x| *x < 1000)),
                u32::from(x.contains(&5)),
            ];
            assert_eq!(found, expected, "{threads} threads, block {block}");
            for (thread, found) in each[first..first + threads as usize].iter().enumerate() {
                let bytes = x[..=thread]
                    .iter()
                    .fold(0u8, |sum, x| sum.wrapping_add(*x as u8));
                let prefix = fold(&x[..=thread]);
                let expected = [prefix.a, prefix.b, fold(&x[..thread]).b, bytes.into()];
                assert_eq!(
                    *found, expected,
                    "{threads} threads, block {block}, thread {thread}"
                );
            }
        }
    }
}

#[test]
fn a_block_of_three_dimensions_is_one() {
    let (device, module) = checking();
    for (blocks, threads) in [
        ([2, 1, 3], [3, 5, 2]),
        ([1, 2, 1], [8, 8, 4]),
        ([1, 1, 1], [1, 1, 64]),
    ] {
        let extents =
            [0, 1, 2].map(|axis| blocks[axis] * threads[axis] - u32::from(threads[axis] > 1));
        let count: u32 = extents.iter().product();
        let x: Vec<u32> = (0..count).map(|i| i * i).collect();
        let given = device.upload(&x).unwrap();
        let all: u32 = blocks.iter().product();
        let mut out = device.zeros::<u32>(all.into()).unwrap();
        ran(
            &module,
            "block_sums_of_any",
            Grid::new(blocks, threads),
            |launch| launch.arg((&given, extents)).arg(&mut out),
        );
        let mut expected = vec![0u32; all as usize];
        for (number, x) in x.iter().enumerate() {
            let number = number as u32;
            let [width, height, _] = extents;
            let place = [
                number % width,
                number / width % height,
                number / width / height,
            ];
            let block = [0, 1, 2].map(|axis| place[axis] / threads[axis]);
            let block = block[0] + blocks[0] * (block[1] + blocks[1] * block[2]);
            expected[block as usize] += x;
        }
        assert_eq!(out.to_vec().unwrap(), expected);
    }
}

#[test]
fn floats_are_changed_by_many_threads() {
    let (device, module) = checking();
    // Whole numbers, whose sums are exact in any order; a NaN is no number to the singles and doubles.
    let mut random = Random(11);
    let mut x: Vec<f32> = (0..200)
        .map(|_| (random.bits() % 17) as f32 - 8.0)
        .collect();
    let kernel = |x: &[f32], blocks| {
        let given = device.upload(x).unwrap();
        let single = device.upload(&[0.0f32, 3.0, -3.0, 0.0, 0.0]).unwrap();
        let double = device
            .upload(&[0.0f64, f64::INFINITY, f64::NEG_INFINITY, 0.0])
            .unwrap();
        let pair = |low: f32, high: f32| {
            u32::from(f16::from_f32(low).to_bits()) | u32::from(f16::from_f32(high).to_bits()) << 16
        };
        let pairs = device
            .upload(&[pair(0.0, 0.0), pair(9.0, 0.5), pair(-9.0, 2.0)])
            .unwrap();
        ran(
            &module,
            "float_atomics",
            Grid::new([blocks, 1, 1], [50, 1, 1]),
            |launch| launch.arg(&given).arg(&single).arg(&double).arg(&pairs),
        );
        let halves = |bits: u32| {
            [bits as u16, (bits >> 16) as u16].map(|bits| f16::from_bits(bits).to_f32())
        };
        let pairs: Vec<[f32; 2]> = pairs.to_vec().unwrap().into_iter().map(halves).collect();
        (single.to_vec().unwrap(), double.to_vec().unwrap(), pairs)
    };
    let sum: f32 = x.iter().sum();
    let (least, most) = (-8.0f32, 8.0f32);
    assert!(x.contains(&least) && x.contains(&most));
    for blocks in [1, 3] {
        let (single, double, pairs) = kernel(&x, blocks);
        assert_eq!(single, [sum, least, most, -sum, 2.5]);
        assert_eq!(double, [sum.into(), least.into(), most.into(), 4.5]);
        assert_eq!(pairs, [[sum, 200.0], [least, 0.5], [most, 2.0]]);
    }
    x[77] = f32::NAN;
    let (single, double, pairs) = kernel(&x, 2);
    assert!(single[0].is_nan() && single[1..3] == [least, most]);
    assert!(double[0].is_nan() && double[1..3] == [f64::from(least), f64::from(most)]);
    // The least of halves is a NaN where one is.
    assert!(pairs[1][0].is_nan() && pairs[2][0].is_nan() && pairs[1][1] == 0.5);
    // None at all.
    let (single, _, pairs) = kernel(&[], 2);
    assert_eq!(
        (single, pairs[0]),
        (vec![0.0, 3.0, -3.0, 0.0, 2.5], [0.0, 0.0])
    );
}

fn compile(kernels: Kernels) -> Compiled {
    kernels.compile().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn lanes_meet_behind_checked_indices_in_every_build() {
    let builds = [
        THREADS.clone(),
        compile(example("threads").overflow_checks(true)),
        compile(example("threads").opt_level(OptLevel::parse("0").unwrap())),
        compile(
            example("threads")
                .opt_level(OptLevel::parse("0").unwrap())
                .panic_messages(false),
        ),
    ];
    for compiled in builds {
        let (device, module) = common::checking(&compiled);
        let mut random = Random(7);
        // A tree with its root in lane 0: each points to one before it.
        let next: Vec<u32> = (0..32u64)
            .map(|lane| (random.bits() % lane.max(1)) as u32)
            .collect();
        let table: Vec<u32> = (0..4).map(|_| random.bits() as u32).collect();
        let (list, factors) = (device.upload(&next), device.upload(&table));
        let mut out = device.zeros::<[u32; 3]>(32).unwrap();
        ran(
            &module,
            "behind_checks",
            Grid::new([1; 3], [32, 1, 1]),
            |launch| {
                launch
                    .arg(&list.unwrap())
                    .arg(&factors.unwrap())
                    .arg(&mut out)
            },
        );
        let steps: Vec<u32> = (0..32u32)
            .map(|lane| {
                let path = std::iter::successors(Some(lane), |at| Some(next[*at as usize]));
                path.take_while(|at| *at != 0).count() as u32
            })
            .collect();
        let many = (0..32).filter(|lane| steps[*lane] > 2);
        let many: u32 = many.map(|lane| 1 << lane).sum();
        // What each step of the scan takes from below, as the lanes do it together.
        let mut scanned: Vec<u32> = (0..32).collect();
        for distance in [1, 2, 4, 8, 16] {
            let before = scanned.clone();
            for lane in distance..32 {
                let (a, b) = (before[lane - distance], before[lane]);
                let factor = table[a as usize % 4];
                scanned[lane] = a
                    .wrapping_mul(table[0])
                    .wrapping_add(b.wrapping_mul(factor));
            }
        }
        let expected: Vec<[u32; 3]> = (0..32)
            .map(|lane| [steps[lane], many, scanned[lane]])
            .collect();
        assert_eq!(out.to_vec().unwrap(), expected);
    }
}
