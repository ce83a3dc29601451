//! Programs in which lanes of a warp, warps and blocks wait for each other: each ends with the right memory, in every
//! setting of the compiler and in every mode of the simulator.
//!
//! Each kernel of `progress/` takes a buffer of 4,096 bytes of zeros, where the lock lies in front, and a buffer with a
//! word for each thread. Its result does not depend on who gets a lock first.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;

/// Warp instructions that a warp may issue: the longest wait of these kernels takes a tenth.
const BUDGET: u64 = 400_000;
/// The same where memory keeps no order: turns and stores are late there at random.
const WEAK_BUDGET: u64 = 4_000_000;
/// Seeds of memory that keeps no order.
const WEAK: [u64; 2] = [1, 2];
/// Words of the first buffer.
const STATE: usize = 1024;
/// Words of the first buffer that may hold anything at the end from here on: links and flags.
const SCRATCH: usize = 256;

/// How many threads.
#[derive(Clone, Copy, Debug)]
struct Size {
    blocks: u32,
    threads: u32,
}

impl Size {
    fn all(self) -> u32 {
        self.blocks * self.threads
    }
}

/// What a kernel leaves.
struct Expected {
    /// Words of the first buffer that are not zero.
    state: Vec<(usize, u32)>,
    /// The second buffer.
    out: Vec<u32>,
}

/// Kernels that cannot do without the other lanes of a warp.
const SHUFFLING: [&str; 5] = [
    "barrier_behind",
    "shuffle_behind",
    "pairs",
    "barrier_in_turns",
    "barrier_in_function",
];

/// Settings as [`Options::set`] takes them. In all tests: these, one away from the default each and some of them
/// together.
const SETTINGS: [&[&str]; 8] = [
    &[],
    &["opt_level=none"],
    &["if_convert=false"],
    &["regalloc_algorithm=single_pass"],
    &["sched=serial"],
    &["regs=24"],
    &[
        "opt_level=none",
        "if_convert=false",
        "regalloc_algorithm=backtracking",
        "regs=24",
    ],
    &[
        "if_convert=false",
        "regalloc_algorithm=single_pass",
        "sched=serial",
        "regs=24",
    ],
];

/// Every combination of the settings, for heavy runs.
fn combinations() -> Vec<Vec<&'static str>> {
    const CHOICES: [&[&str]; 5] = [
        &[
            "opt_level=none",
            "opt_level=speed",
            "opt_level=speed_and_size",
        ],
        &["if_convert=false", "if_convert=true"],
        &[
            "regalloc_algorithm=backtracking",
            "regalloc_algorithm=single_pass",
        ],
        &["sched=full", "sched=serial"],
        &["regs=24", "regs=254"],
    ];
    CHOICES.iter().fold(vec![Vec::new()], |all, choices| {
        let with = |chosen: &Vec<&'static str>, choice| {
            let mut more = chosen.clone();
            more.push(choice);
            more
        };
        all.iter()
            .flat_map(|chosen| choices.iter().map(|choice| with(chosen, *choice)))
            .collect()
    })
}

/// Every mode: lanes of their own, in order, timed, memory that keeps no order, blocks beside each other.
fn modes() -> impl Iterator<Item = SimConfig> {
    let base = SimConfig {
        budget: BUDGET,
        threads: 1,
        ..SimConfig::default()
    };
    let alone = SimConfig {
        warp_lanes: 1,
        ..base
    };
    let timed = SimConfig {
        timed: true,
        ..base
    };
    let weak = WEAK.map(|seed| SimConfig {
        weak: Some(seed),
        budget: WEAK_BUDGET,
        ..base
    });
    let beside = [2, 4].map(|threads| SimConfig {
        threads,
        deterministic: false,
        ..base
    });
    [alone, base, timed].into_iter().chain(weak).chain(beside)
}

/// Runs a kernel in all settings with blocks of 2, 32 and 64 threads, one and three of them.
fn check(name: &str, text: &str, expected: fn(Size) -> Expected) {
    let heavy = std::env::var_os("THISGPU_HEAVY").is_some();
    let settings = if heavy {
        combinations()
    } else {
        SETTINGS.map(<[_]>::to_vec).to_vec()
    };
    for (turn, setting) in settings.iter().enumerate() {
        let mut options = Options::default();
        setting.iter().for_each(|text| options.set(text).unwrap());
        let code = common::compile_with(options, text);
        for config in modes() {
            // Where no lane can wait for another one of its warp, the kernel itself is tested, and what is expected of
            // it.
            if config.warp_lanes == 1 && (turn != 0 || SHUFFLING.contains(&name)) {
                continue;
            }
            // Blocks beside each other do not depend on the setting either.
            if !config.deterministic && turn != 0 && !heavy {
                continue;
            }
            let device = Device::simulator(config);
            for (blocks, threads) in [(1, 2), (3, 2), (1, 32), (3, 32), (1, 64), (3, 64)] {
                // The largest ones take most of the time: in timed mode one setting in three has them.
                let is_slow = config.timed || config.weak.is_some();
                if !heavy && is_slow && blocks * threads > 64 && turn % 3 != 0 {
                    continue;
                }
                let size = Size { blocks, threads };
                let at = format!("{name} {setting:?} {config:?} {size:?}");
                let state = device.upload(&[0u32; STATE]).unwrap();
                let out = device.upload(&vec![0u32; size.all() as usize]).unwrap();
                let grid = Grid::new([blocks, 1, 1], [threads, 1, 1]);
                common::run(&device, &code, name, grid, &[&state, &out], &at);
                let Expected {
                    state: cells,
                    out: words,
                } = expected(size);
                let mut wanted = [0; SCRATCH];
                cells
                    .iter()
                    .for_each(|(index, value)| wanted[*index] = *value);
                assert_eq!(state.read::<u32>().unwrap()[..SCRATCH], wanted, "{at}");
                assert_eq!(out.read::<u32>().unwrap(), words, "{at}");
            }
        }
    }
}

/// The counter at byte 8 is the sum of `amount` over the threads' numbers; each thread leaves `out`.
fn sum(size: Size, amount: fn(u32) -> u32, out: fn(u32) -> u32) -> Expected {
    Expected {
        state: vec![(2, (0..size.all()).map(amount).fold(0, u32::wrapping_add))],
        out: (0..size.all()).map(out).collect(),
    }
}

fn next(thread: u32) -> u32 {
    thread + 1
}

/// Every thread adds its number and 1, and leaves it.
fn plain(size: Size) -> Expected {
    sum(size, next, next)
}

/// The same, and every thread takes a ticket and is called.
fn tickets(size: Size) -> Expected {
    let calls = vec![(0, size.all()), (1, size.all())];
    Expected {
        state: [plain(size).state, calls].concat(),
        ..plain(size)
    }
}

/// Every thread leaves its number and 1, and nothing else.
fn passed(size: Size) -> Expected {
    Expected {
        state: vec![],
        ..plain(size)
    }
}

/// What depends on the order of the threads.
fn hashed(threads: impl Iterator<Item = u32>) -> u32 {
    threads.fold(0, |hash: u32, thread| {
        hash.wrapping_mul(31).wrapping_add(thread + 1)
    })
}

/// Each thread leaves a value of its block, made from the numbers of the threads of the block.
fn of_block(size: Size, value: fn(std::ops::Range<u32>) -> u32) -> Vec<u32> {
    let first = |thread: u32| thread / size.threads * size.threads;
    (0..size.all())
        .map(|thread| value(first(thread)..first(thread) + size.threads))
        .collect()
}

/// Declares a test for each kernel: its name, the name of its file and what it leaves.
macro_rules! kernels {
    ($($name:ident: $expected:expr;)*) => { $(
        #[test]
        fn $name() {
            check(stringify!($name), include_str!(concat!("progress/", stringify!($name), ".clif")), $expected);
        }
    )* };
}

kernels! {
    cas_lock: plain;
    cas_lock_store: plain;
    exchange_lock: plain;
    backoff_lock: plain;
    try_lock: plain;
    byte_lock: plain;
    wide_lock: plain;
    two_locks: plain;
    many_locks: |size| {
        let mut state: Vec<(usize, u32)> = (0..8).map(|lock| (16 + lock, 0)).collect();
        (0..size.all()).for_each(|thread| state[thread as usize % 8].1 += thread + 1);
        Expected { state, out: (0..size.all()).map(next).collect() }
    };
    shared_lock: |size| Expected { state: vec![], out: of_block(size, |threads| threads.map(next).sum()) };
    ticket_lock: tickets;
    ticket_lock_store: tickets;
    in_order: |size| Expected { state: vec![(0, size.all()), (2, hashed(0..size.all()))], ..plain(size) };
    in_order_loop: |size| Expected { state: vec![], out: of_block(size, hashed) };
    chain: |size| Expected { state: (1..=size.all()).map(|thread| (thread as usize, thread)).collect(), ..plain(size) };
    stack: |size| Expected { state: vec![(1, 2 * size.all())], out: vec![1; size.all() as usize] };
    divergent_section: |size| {
        sum(size, |thread| if thread % 4 == 0 { next(thread) ^ 3 } else { next(thread) * (thread % 4) }, next)
    };
    two_releases: |size| sum(size, |thread| if thread % 2 == 1 { next(thread) } else { 1 }, next);
    early_return: |size| sum(size, next, |thread| if thread % 4 == 3 { 3 } else { next(thread) });
    section_loop: |size| sum(size, |thread| next(thread) * (thread % 4 + 1), next);
    over_join: |size| {
        let first = |thread| if thread % 4 == 0 { next(thread) } else { 0 };
        sum(size, first, |thread| next(thread) * next(thread) + 1)
    };
    over_join_divergent: |size| {
        sum(size, |thread| if thread % 2 == 0 { next(thread) } else { 0 }, |thread| next(thread) << (thread % 4 + 1))
    };
    vote_inside: |size| sum(size, |_| 1, |_| 1);
    vote_over_join: |size| sum(size, |thread| if thread % 2 == 1 { next(thread) } else { 0 }, |_| 0);
    barrier_behind: |size| {
        let lane = size.threads.min(32);
        Expected { out: (0..size.all()).map(|thread| thread / lane * lane + 1).collect(), ..plain(size) }
    };
    shuffle_behind: |size| sum(size, next, |thread| next(thread ^ 1));
    pairs: |size| Expected { state: vec![], out: (0..size.all()).map(|thread| next(thread ^ 1)).collect() };
    slot_lock: plain;
    slot_flag: plain;
    lock_by_recursion: plain;
    exits_behind_barrier: |size| Expected {
        state: vec![],
        out: (0..size.all()).map(|thread| match thread % 4 {
            3 => ((next(thread) * next(thread) * 3) ^ next(thread)) + next(thread) * next(thread),
            2 => 2 * next(thread),
            _ => next(thread),
        }).collect(),
    };
    barrier_in_turns: |size| sum(size, |thread| 4 * next(thread), next);
    barrier_in_function: |size| sum(size, |thread| 4 * next(thread), next);
    in_function: plain;
    lock_functions: plain;
    lock_functions_over_join: |size| {
        sum(size, |thread| if thread % 2 == 1 { next(thread) } else { 0 }, |thread| next(thread) * next(thread))
    };
    lock_indirect: plain;
    lock_nested_function: plain;
    reader_writer: |size| sum(size, |thread| if thread % 4 == 0 { next(thread) } else { 0 }, next);
    maximum: |size| {
        let largest = (0..size.all()).map(|thread| next(thread).wrapping_mul(0x9e37_79b1)).max();
        Expected { state: vec![(0, largest.unwrap_or(0))], ..plain(size) }
    };
    poll_across_blocks: |size| {
        let others = (size.threads..size.all()).map(next).sum();
        let out = |thread| if thread < size.threads { others } else { next(thread) };
        Expected { state: vec![], out: (0..size.all()).map(out).collect() }
    };
    shared_word: plain;
    global_flag: plain;
    vector_word: plain;
    out_slot: plain;
    out_global: plain;
    out_shared: plain;
    out_indirect: plain;
    count_masked: passed;
    count_masked_half: passed;
    count_down_byte: passed;
    count_shifted: passed;
    count_product: passed;
    count_remainder: passed;
    count_float: |size| Expected { state: vec![(2, hashed(0..size.all()))], ..plain(size) };
    symbol_recursion: |size| Expected { state: vec![(0, size.all()), (2, hashed(0..size.all()))], ..plain(size) };
    early_leave: |size| sum(size, |thread| if thread % 4 == 3 { 0 } else { next(thread) }, next);
}
