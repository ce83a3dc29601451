//! Values in uniform registers: the kernels of `filetests/lower/uniform.clif`, and some that are written here because
//! of their size, against references on the host, with blocks of part of a warp, of one and of several.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::isa::random::Random;
use std::fmt::Write;

const KERNELS: &str = include_str!("../filetests/lower/uniform.clif");

/// What a thread starts from.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// The first thread of its block, and its number there.
    first: u32,
    tid: u32,
    /// Threads of the block.
    threads: u32,
    /// Its word in memory.
    word: u64,
    /// The parameters.
    a: u32,
    b: u32,
    c: u64,
}

impl Thread {
    fn low(self) -> u32 {
        self.word as u32
    }

    /// What most kernels begin with: the block's first thread and a parameter, as a word and with its sign extended.
    fn seed(self) -> u32 {
        self.first.wrapping_add(self.a)
    }

    fn wide(self) -> u64 {
        i64::from(self.seed() as i32) as u64
    }

    /// The lower half of the thread's word with a value added.
    fn plus(self, value: u32) -> u64 {
        u64::from(self.low().wrapping_add(value))
    }

    /// The same with an exclusive or.
    fn xor(self, value: u32) -> u64 {
        u64::from(self.low() ^ value)
    }
}

/// `(imul (iadd first a) b) - first`, which several kernels compute in places that not all lanes come to.
fn scaled(t: Thread) -> u32 {
    t.seed().wrapping_mul(t.b).wrapping_sub(t.first)
}

/// Turns of a loop that becomes three times what it is, exclusive or the counter.
fn turns(t: Thread, counters: impl Iterator<Item = u32>) -> u64 {
    let turn = |x: u32, counter: u32| (x ^ counter).wrapping_mul(3);
    u64::from(counters.fold(t.low(), turn))
}

/// The number with bits for comparisons in the order of the kernels, from the left.
fn compared<T: Ord, U: Ord>(low: u32, [x, y]: [T; 2], [unsigned_x, unsigned_y]: [U; 2]) -> u64 {
    let holds = [
        x == y,
        x != y,
        x < y,
        x <= y,
        x > y,
        x >= y,
        unsigned_x < unsigned_y,
        unsigned_x <= unsigned_y,
        unsigned_x > unsigned_y,
        unsigned_x >= unsigned_y,
    ];
    let bit = |number: u32, holds: bool| number.wrapping_mul(2).wrapping_add(u32::from(holds));
    u64::from(holds.into_iter().fold(low, bit))
}

fn smax(a: u32, b: u32) -> u32 {
    (a as i32).max(b as i32) as u32
}

fn smin(a: u32, b: u32) -> u32 {
    (a as i32).min(b as i32) as u32
}

fn smax_wide(a: u64, b: u64) -> u64 {
    (a as i64).max(b as i64) as u64
}

fn smin_wide(a: u64, b: u64) -> u64 {
    (a as i64).min(b as i64) as u64
}

fn low_bits(a: u64) -> u32 {
    (a & 63) as u32
}

type Reference = fn(Thread) -> u64;

/// What each kernel leaves in the word of a thread; kernels in which threads see each other have their reference below.
const REFERENCES: &[(&str, Reference)] = &[
    ("add", |t| t.plus(t.seed().wrapping_add(t.b))),
    ("subtract", |t| t.plus(t.b.wrapping_sub(t.seed()))),
    ("negate", |t| t.plus(t.seed().wrapping_neg() ^ t.b)),
    ("multiply", |t| t.plus(t.seed().wrapping_mul(t.b) ^ t.b)),
    ("product_and_sum", |t| {
        t.plus(t.seed().wrapping_mul(t.b).wrapping_add(t.first) ^ t.a)
    }),
    ("sum_and_product", |t| {
        let difference = t.first.wrapping_sub(t.seed());
        t.plus(t.seed().wrapping_mul(t.b).wrapping_add(difference) ^ t.a)
    }),
    ("shift_and_sum", |t| {
        t.plus((t.seed() << 5).wrapping_add(t.b) ^ t.a)
    }),
    ("sum_and_shift", |t| {
        t.plus((t.seed() << 5).wrapping_add(t.first ^ t.b) ^ t.a)
    }),
    ("shift_left", |t| t.plus(t.seed().wrapping_shl(t.b) ^ t.a)),
    ("shift_right", |t| {
        t.plus(t.seed().wrapping_shr(t.first) ^ t.a)
    }),
    ("shift_signed", |t| {
        // -30 modulo 32.
        t.plus((t.seed() as i32 >> 2) as u32 ^ t.b)
    }),
    ("shift_by_wide", |t| {
        t.plus(t.seed().wrapping_shr(t.c as u32) ^ t.b)
    }),
    ("and_or", |t| {
        let or = t.seed() & t.b | t.first;
        t.plus(or.wrapping_mul(t.b).wrapping_sub(t.first))
    }),
    ("not", |t| t.plus((!t.seed()).wrapping_mul(t.b) ^ t.first)),
    ("limits", |t| {
        let signed = smax(smin(t.seed(), t.b), t.first);
        t.plus(signed.min(t.a).max(t.first) ^ t.b)
    }),
    ("choose", |t| {
        let less = (t.seed() as i32) < t.b as i32;
        t.plus(if less { t.seed() } else { t.first } ^ t.b)
    }),
    ("narrowed", |t| {
        let sum = u64::from(t.seed()).wrapping_add(t.c);
        t.plus((sum >> 7) as u32 ^ t.b)
    }),
    ("reinterpreted", |t| t.xor(t.seed().wrapping_mul(t.b))),
    ("halves_exchanged", |t| t.xor(t.seed().rotate_left(16))),
    ("add_wide", |t| {
        let product = u64::from(t.seed().wrapping_mul(t.b));
        let sum = t.wide().wrapping_sub(t.c).wrapping_add(product);
        t.word ^ sum.wrapping_add(t.c).wrapping_neg()
    }),
    ("sum_and_extension", |t| {
        let product = i64::from(t.seed().wrapping_mul(t.b) as i32) as u64;
        t.word ^ t.wide().wrapping_sub(t.c).wrapping_add(product)
    }),
    ("lea_wide", |t| t.word ^ (t.wide() << 9).wrapping_add(t.c)),
    ("sum_and_lea_wide", |t| {
        t.word ^ (t.wide() << 9).wrapping_add(t.c.wrapping_sub(t.wide()))
    }),
    ("shifts_wide", |t| {
        let left = (t.wide() << (t.b & 63)).wrapping_add(t.c);
        let right = (left >> (t.seed() & 63)).wrapping_sub(t.wide());
        let signed = right as i64 >> low_bits(t.c);
        t.word ^ (signed as u64).wrapping_sub(t.wide())
    }),
    ("bits_wide", |t| {
        let and = (t.wide() & t.c).wrapping_sub(t.wide());
        let or = (and | t.c).wrapping_add(t.wide());
        t.word ^ (!or).wrapping_sub(t.c)
    }),
    ("limits_wide", |t| {
        let smallest = smin_wide(t.wide(), t.c).wrapping_sub(t.wide());
        let largest = smax_wide(smallest, t.c).wrapping_add(t.wide());
        let least = largest.min(t.c).wrapping_sub(t.wide());
        t.word ^ least.max(t.c).wrapping_sub(t.wide())
    }),
    ("choose_wide", |t| {
        let less = t.wide() < t.c;
        let chosen = if less {
            t.wide().wrapping_sub(t.c)
        } else {
            t.c
        };
        t.word ^ chosen.wrapping_sub(t.wide())
    }),
    ("comparisons", |t| {
        compared(t.low(), [t.seed() as i32, t.b as i32], [t.seed(), t.b])
    }),
    ("comparisons_wide", |t| {
        compared(t.low(), [t.wide() as i64, t.c as i64], [t.wide(), t.c])
    }),
    ("count_up", |t| turns(t, 0..t.seed() & 15)),
    ("count_wide", |t| turns(t, 0..t.seed() & 15)),
    ("count_down", |t| turns(t, (1..=(t.seed() & 15 | 1)).rev())),
    ("count_shifts", |t| {
        let shifted = |n: &u32| Some(n >> 1).filter(|n| *n != 0);
        turns(t, std::iter::successors(Some(t.seed() & 15 | 1), shifted))
    }),
    ("count_addresses", |t| {
        let byte = |x: u32, byte: u8| x.wrapping_mul(3).wrapping_add(byte.into());
        u64::from(t.word.to_le_bytes().into_iter().fold(t.low(), byte))
    }),
    ("count_in_count", |t| {
        let pairs = (0..t.seed() & 7).flat_map(|i| (i..t.b & 7).map(move |j| i * j));
        u64::from(pairs.fold(t.low(), |x, product| {
            x.wrapping_mul(7).wrapping_add(product)
        }))
    }),
    ("parameters_of_blocks", |t| {
        let (x, y) = if t.seed() < t.b {
            (77, t.a)
        } else {
            (t.seed(), 77)
        };
        t.xor(x.wrapping_mul(y))
    }),
    ("part_of_the_warp", |t| {
        t.xor(if t.tid & 1 == 1 { scaled(t) } else { 0 })
    }),
    ("loop_of_some", |t| {
        let turn = |x: u32, left: u32| (x ^ scaled(t)).wrapping_add(left);
        u64::from((0..=t.tid & 3).rev().fold(t.low(), turn))
    }),
    ("count_in_loop_of_some", |t| {
        let product = t.seed().wrapping_mul(t.b);
        let turn = |x: u32, i: u32| (x.wrapping_mul(3) ^ product).wrapping_add(i);
        let round = |x: u32, _: u32| (0..=t.b & 3).fold(x, turn);
        u64::from((0..=t.tid & 3).fold(t.low(), round))
    }),
    ("early_return", |t| {
        t.xor(if t.tid & 3 == 3 { t.first } else { scaled(t) })
    }),
    ("early_return_in_loop", |t| {
        let found = t.low().trailing_zeros();
        t.xor(if found < 31 {
            found
                .wrapping_mul(t.b)
                .wrapping_add(t.a)
                .wrapping_sub(found)
        } else {
            scaled(t)
        })
    }),
    ("table", |t| t.xor(by_table(t, t.seed()))),
    ("behind_table", |t| t.xor(by_table(t, t.b))),
    ("lock", |t| t.xor(scaled(t))),
    ("wait_for_all", |t| t.xor(scaled(t))),
    ("stored", |t| u64::from(t.seed().wrapping_mul(t.b))),
    ("product_of_imad", |t| t.plus(t.first.wrapping_mul(t.b))),
    ("long_chain", |t| {
        let (mut x, mut carried) = (t.low(), t.a);
        for _ in 0..=t.b & 7 {
            x ^= carried;
            let product = carried.wrapping_mul(t.b);
            let mixed = product ^ t.a;
            carried = mixed.wrapping_sub(product).wrapping_mul(mixed);
        }
        u64::from(x)
    }),
    ("calling", |t| {
        let block = t.first / t.threads;
        let helped = t.low() ^ block.wrapping_mul(t.b).wrapping_sub(t.b);
        u64::from(helped ^ t.seed().wrapping_sub(t.b))
    }),
];

fn by_table(t: Thread, index: u32) -> u32 {
    let product = t.seed().wrapping_mul(t.b);
    match index & 3 {
        0 | 2 => product.wrapping_sub(t.first),
        1 => product.wrapping_sub(t.b),
        _ => product,
    }
}

/// Blocks and threads of each.
const SIZES: [(u32, u32); 3] = [(1, 1), (3, 20), (2, 64)];

/// Runs a kernel of a text in all sizes, functional and timed, with some parameters; `reference` tells a block's words
/// from the threads that have them.
fn check(name: &str, text: &str, settings: &[&str], reference: &dyn Fn(&[Thread]) -> Vec<u64>) {
    let mut options = Options::default();
    settings.iter().for_each(|s| options.set(s).unwrap());
    let code = common::compile_with(options, text);
    let mut random = Random::new(0x5eed);
    for (turn, (blocks, threads)) in SIZES.into_iter().enumerate() {
        let all = blocks * threads;
        // Small parameters and large ones, and equal ones.
        let a = if turn % 2 == 0 {
            random.bits() as u32 & 15
        } else {
            random.bits() as u32
        };
        let b = if turn == 1 { a } else { random.bits() as u32 };
        let c = if turn == 2 {
            u64::from(a)
        } else {
            random.bits()
        };
        let words: Vec<u64> = (0..all).map(|_| random.bits()).collect();
        let wanted: Vec<u64> = (0..blocks)
            .flat_map(|block| {
                let first = block * threads;
                let thread = |tid: u32| Thread {
                    first,
                    tid,
                    threads,
                    word: words[(first + tid) as usize],
                    a,
                    b,
                    c,
                };
                reference(&(0..threads).map(thread).collect::<Vec<_>>())
            })
            .collect();
        for timed in [false, true] {
            let at = format!("{name} {settings:?} {blocks} x {threads} timed={timed}");
            let device = Device::simulator(SimConfig {
                timed,
                check: true,
                budget: 1 << 20,
                ..SimConfig::default()
            });
            let out = device.upload(&words).unwrap();
            let state = device.upload(&[0u32; 16]).unwrap();
            let grid = Grid::new([blocks, 1, 1], [threads, 1, 1]);
            common::run(&device, &code, name, grid, &[&out, &a, &b, &c, &state], &at);
            assert_eq!(out.read::<u64>().unwrap(), wanted, "{at}");
        }
    }
}

/// Each thread by itself.
fn alone(reference: impl Fn(Thread) -> u64) -> impl Fn(&[Thread]) -> Vec<u64> {
    move |threads| threads.iter().copied().map(&reference).collect()
}

/// Settings in which each kernel is compiled.
const SETTINGS: [&[&str]; 4] = [
    &[],
    &["opt_level=none", "if_convert=false"],
    &["regalloc_algorithm=single_pass", "if_convert=false"],
    &["regalloc_algorithm=backtracking", "sched=serial", "regs=24"],
];

/// The names of the kernels in a text.
fn names(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let kernels = lines
        .windows(2)
        .filter(|pair| pair[0].starts_with("; kernel"));
    kernels
        .filter_map(|pair| pair[1].strip_prefix("function %")?.split('(').next())
        .collect()
}

#[test]
fn kernels_leave_what_the_references_say() {
    for settings in SETTINGS {
        for &(name, reference) in REFERENCES {
            check(name, KERNELS, settings, &alone(reference));
        }
    }
}

#[test]
fn every_kernel_has_a_reference() {
    let known = |name: &&str| {
        *name == "barrier_in_count" || REFERENCES.iter().any(|(known, _)| known == name)
    };
    let missing: Vec<&str> = names(KERNELS).into_iter().filter(|n| !known(n)).collect();
    assert_eq!(missing, [""; 0]);
    assert_eq!(names(KERNELS).len(), REFERENCES.len() + 1);
}

#[test]
fn threads_pass_words_round_a_block_in_a_counted_loop() {
    let reference = |threads: &[Thread]| {
        let mut words: Vec<u32> = threads.iter().map(|t| t.low()).collect();
        for turn in 0..=threads[0].b & 2 {
            words
                .iter_mut()
                .for_each(|word| *word = word.wrapping_add(turn));
            words.rotate_left(1);
        }
        words.into_iter().map(u64::from).collect()
    };
    for settings in SETTINGS {
        check("barrier_in_count", KERNELS, settings, &reference);
    }
}

/// How many values of a kernel are added up that all live at the same time.
const MANY: u32 = 90;

/// The start of a kernel: v13 points to the thread's word, v14 is what it holds, v5 the block's first thread.
const START: &str = "; kernel
function %many(i64, i32, i32, i64, i64) {
    fn0 = %gpu_ctaid_x() -> i32
    fn1 = %gpu_ntid_x() -> i32
    fn2 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i32, v2: i32, v3: i64, v4: i64):
    v50 = call fn0()
    v6 = call fn1()
    v7 = call fn2()
    v5 = imul v50, v6
    v9 = iadd v7, v5
    v10 = uextend.i64 v9
    v11 = iconst.i64 3
    v12 = ishl v10, v11
    v13 = iadd v0, v12
    v15 = load.i32 aligned v13
";

#[test]
fn more_values_than_there_are_registers() {
    let mut text = START.to_owned();
    let mut last = 5;
    // Each is made of the one before, and all are read in the opposite order.
    for i in 0..MANY {
        let op = if i % 2 == 0 { "imul" } else { "isub" };
        writeln!(text, "    v{} = {op} v{last}, v{}", 100 + i, 1 + i % 2).unwrap();
        last = 100 + i;
    }
    let mut sum = 15;
    for i in 0..MANY {
        let op = if i % 2 == 0 { "bxor" } else { "isub" };
        writeln!(text, "    v{} = {op} v{sum}, v{}", 300 + i, 99 + MANY - i).unwrap();
        sum = 300 + i;
    }
    writeln!(
        text,
        "    v600 = uextend.i64 v{sum}\n    store aligned v600, v13\n    return\n}}"
    )
    .unwrap();
    let reference = |t: Thread| {
        let mut values = vec![t.first];
        for i in 0..MANY {
            let last = values[i as usize];
            values.push(if i % 2 == 0 {
                last.wrapping_mul(t.a)
            } else {
                last.wrapping_sub(t.b)
            });
        }
        let read = values[1..].iter().rev().enumerate();
        u64::from(read.fold(t.low(), |sum, (i, value)| {
            if i % 2 == 0 {
                sum ^ value
            } else {
                sum.wrapping_sub(*value)
            }
        }))
    };
    for settings in SETTINGS {
        check("many", &text, settings, &alone(reference));
    }
}

#[test]
fn more_parameters_of_a_loop_than_there_are_registers() {
    let list = |prefix: u32, end: &str| {
        let all: Vec<String> = (0..MANY).map(|i| format!("v{}{end}", prefix + i)).collect();
        all.join(", ")
    };
    let mut text = START.to_owned();
    for i in 0..MANY {
        writeln!(text, "    v{} = iconst.i32 {i}", 100 + i).unwrap();
    }
    writeln!(
        text,
        "    v99 = iconst.i32 1\n    v98 = iconst.i32 5\n    jump block1({}, v15)",
        list(100, "")
    )
    .unwrap();
    writeln!(text, "block1({}, v90: i32):", list(200, ": i32")).unwrap();
    for i in 0..MANY {
        let step = if i == 0 { 99 } else { 1 };
        writeln!(text, "    v{} = iadd v{}, v{step}", 300 + i, 200 + i).unwrap();
    }
    let mut sum = 90;
    for i in 0..MANY {
        writeln!(
            text,
            "    v{} = bxor v{sum}, v{}\n    v{} = imul v{}, v98",
            400 + 2 * i,
            300 + i,
            401 + 2 * i,
            400 + 2 * i
        )
        .unwrap();
        sum = 401 + 2 * i;
    }
    writeln!(
        text,
        "    v97 = icmp ult v300, v98\n    brif v97, block1({}, v{sum}), block2\nblock2:\n    v700 = uextend.i64 \
         v{sum}\n    store aligned v700, v13\n    return\n}}",
        list(300, "")
    )
    .unwrap();
    let reference = |t: Thread| {
        let mut carried: Vec<u32> = (0..MANY).collect();
        let mut x = t.low();
        for _ in 0..5 {
            for (i, value) in carried.iter_mut().enumerate() {
                *value = value.wrapping_add(if i == 0 { 1 } else { t.a });
                x = (x ^ *value).wrapping_mul(5);
            }
        }
        u64::from(x)
    };
    for settings in &SETTINGS[..3] {
        check("many", &text, settings, &alone(reference));
    }
}
