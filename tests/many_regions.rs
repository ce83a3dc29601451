//! Kernels with more divergent regions in use at once than the machine has convergence barriers: nests that lanes enter
//! at several places, early exits to many places, ways on which lanes end. Each thread's result is that of the program
//! run by it alone, and lanes that go on are together wherever their ways have come together.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;
#[path = "many_regions/program.rs"]
mod program;

use cranelift_thisgpu::asm::listing;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::isa::random::Random;
use program::{Condition, MEETINGS, Program, Statement};

const SETTINGS: [&[&str]; 4] = [
    &[],
    &["if_convert=false"],
    &["opt_level=none", "regalloc_algorithm=backtracking"],
    &[
        "if_convert=false",
        "regalloc_algorithm=single_pass",
        "regs=24",
    ],
];

/// Sizes of a block.
const THREADS: [u32; 4] = [1, 32, 33, 96];

/// What the kernels are given: those branches depend on it on which all threads agree.
const ARGUMENT: u32 = 0x5a3c_96e1;

/// Runs a program in some settings; gives the listing of the kernel in the last.
fn check(program: &Program, settings: &[&[&str]], at: &str) -> String {
    let text = program.text();
    let mut shown = String::new();
    for setting in settings {
        let mut options = Options::default();
        setting.iter().for_each(|text| options.set(text).unwrap());
        let code = common::compile_with(options, &text);
        shown = listing(code.as_ref()).0;
        shown.truncate(shown.find(".func").unwrap_or(shown.len()));
        for (turn, threads) in THREADS.into_iter().enumerate() {
            // Turns of a few instructions mix the groups of lanes otherwise.
            let device = Device::simulator(SimConfig {
                check: turn % 2 == 0,
                turns: (turn >= 2).then_some(turn as u64),
                ..SimConfig::default()
            });
            let out = device.upload(&vec![0u32; threads as usize]).unwrap();
            let met = vec![0u32; threads as usize * MEETINGS];
            let masks = device.upload(&met).unwrap();
            let block = common::block(threads);
            let at = format!("{at} {setting:?} {threads} threads\n{text}");
            common::run(&device, &code, "k", block, &[&out, &masks, &ARGUMENT], &at);
            let expected = program.expected(threads, ARGUMENT);
            assert_eq!(out.read::<u32>().unwrap(), expected.results, "{at}");
            assert_eq!(masks.read::<u32>().unwrap(), expected.masks, "{at}");
        }
    }
    shown
}

/// A condition on which threads disagree.
fn apart(random: &mut Random) -> Condition {
    Condition::Thread(1 + random.below(31) as u32)
}

fn count(listing: &str, operation: &str) -> usize {
    listing.matches(operation).count()
}

/// Regions in each other, each entered from both sides of a branch that all lanes take alike.
fn entered_twice(depth: u32, random: &mut Random) -> Vec<Statement> {
    let mut body = vec![Statement::Mix(depth)];
    if depth > 0 {
        body.extend(entered_twice(depth - 1, random));
        body.push(Statement::Mix(depth + 100));
    }
    let conditions = [apart(random), apart(random)];
    vec![Statement::Entered(
        random.below(32) as u32,
        conditions,
        body,
    )]
}

#[test]
fn nests_that_are_entered_at_two_places() {
    let mut random = Random::new(1);
    for depth in [14, 15, 16, 20, 60] {
        let mut body = entered_twice(depth, &mut random);
        body.push(Statement::Meet);
        let shown = check(&Program::new(body), &SETTINGS, &format!("depth {depth}"));
        // The innermost one is one of them.
        let levels = depth as usize + 1;
        let shared = if levels > 16 { levels - 15 } else { 0 };
        let moves = count(&shown, "BMOV");
        // Each has a mask that is stored at both starts and loaded where lanes meet.
        assert_eq!(moves, 3 * shared, "depth {depth}\n{shown}");
    }
}

#[test]
fn lanes_return_and_leave_in_the_middle_of_nests() {
    let mut random = Random::new(2);
    for depth in [30, 45] {
        let mut body = vec![Statement::Call, Statement::Return(Condition::Thread(5))];
        for level in 0..depth {
            let mut pre = vec![Statement::Mix(level)];
            if level % 6 == 0 {
                pre.push(Statement::Leave(apart(&mut random), level / 6 % 2));
            }
            let post = vec![
                Statement::Return(Condition::Rare(level)),
                Statement::Mix(level + 50),
            ];
            let inner: Vec<Statement> = pre.into_iter().chain(body).chain(post).collect();
            let conditions = [apart(&mut random), apart(&mut random)];
            body = match level % 3 {
                0 => vec![Statement::Entered(level % 32, conditions, inner)],
                1 => vec![Statement::Turns(2, vec![Statement::Labelled(inner)])],
                _ => vec![Statement::If(
                    conditions[0].clone(),
                    inner,
                    vec![Statement::Call],
                )],
            };
        }
        body.push(Statement::Meet);
        let shown = check(&Program::new(body), &SETTINGS, &format!("depth {depth}"));
        assert!(count(&shown, "BMOV") > 0, "{shown}");
    }
}

/// Two nests, from each level of which lanes go to a stair of their own that both share, and end behind it.
#[test]
fn ways_to_the_end_are_shared_by_nests() {
    for steps in [17, 30, 40] {
        let mut random = Random::new(u64::from(steps));
        let mut nest = |seed: u32| {
            let mut body = vec![Statement::Mix(seed)];
            for level in 0..18 {
                // From inside of the nest to any step.
                let out = level + 1 + random.below(steps as usize) as u32;
                let mut inner = vec![Statement::Leave(Condition::Rare(level + seed), out)];
                // The outer levels have been left out of the number.
                inner.append(&mut body);
                inner.push(Statement::Mix(level));
                body = vec![Statement::If(apart(&mut random), inner, Vec::new())];
            }
            body
        };
        let mut body = nest(1);
        body.push(Statement::Meet);
        body.extend(nest(2));
        body.extend([Statement::Meet, Statement::Finish]);
        let mut stair = body;
        for step in 0..steps {
            stair = vec![Statement::Labelled(stair)];
            let sides = (
                vec![Statement::Mix(step)],
                vec![Statement::Mix(step + 9), Statement::Call],
            );
            stair.push(Statement::If(apart(&mut random), sides.0, sides.1));
        }
        let shown = check(&Program::new(stair), &SETTINGS, &format!("{steps} steps"));
        assert!(count(&shown, "BMOV") > 0, "{shown}");
    }
}

/// Breaks out of blocks in each other, which make regions of several of them.
#[test]
fn stairs_of_early_exits() {
    for steps in [25, 40, 60] {
        let mut random = Random::new(100 + u64::from(steps));
        let mut body = vec![Statement::Mix(0)];
        for step in 0..steps {
            let mut inner = vec![Statement::Mix(step)];
            let out = |random: &mut Random| random.below(2) as u32;
            if step % 5 == 0 {
                inner.push(Statement::Leave(apart(&mut random), out(&mut random)));
            }
            inner.append(&mut body);
            if step % 4 == 3 {
                inner.push(Statement::Leave(apart(&mut random), out(&mut random)));
            }
            inner.push(Statement::Mix(step + 70));
            let conditions = [apart(&mut random), apart(&mut random)];
            let entered = Statement::Entered(step % 32, conditions, inner);
            body = vec![
                Statement::Labelled(vec![entered]),
                Statement::Mix(step + 40),
            ];
        }
        body.push(Statement::Meet);
        let shown = check(&Program::new(body), &SETTINGS, &format!("{steps} steps"));
        assert!(count(&shown, "BMOV") > 0, "{shown}");
    }
}

#[test]
fn random_programs() {
    let seed = std::env::var("THISGPU_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(1);
    let rounds = if std::env::var_os("THISGPU_HEAVY").is_some() {
        2000
    } else {
        24
    };
    println!("THISGPU_SEED={seed}");
    let (mut moved, mut stored) = (0, 0);
    for round in 0..rounds {
        let mut random = Random::new(seed * 10_000 + round);
        let depth = 16 + random.below(30) as u32;
        let program = Program::random(&mut random, depth);
        let setting = SETTINGS[round as usize % SETTINGS.len()];
        let shown = check(&program, &[setting], &format!("seed {seed} round {round}"));
        moved += usize::from(count(&shown, "BMOV") > 0);
        stored += usize::from(count(&shown, "STL") > 0);
    }
    println!("{moved} with masks put aside, {stored} with stores to the frame");
    assert!(moved > 2 && stored > 2, "{moved} {stored}");
}
