//! A few hundred random kernels of many threads, and planted mistakes that must be found.
//!
//! `FUZZ_SEED` and `FUZZ_KERNELS` choose the first seed and how many kernels. A failure prints its kernel, made
//! smaller.

use fuzz::random::Random;
use fuzz::simt::campaign::{self, Tally};
use fuzz::simt::case::Case;
use fuzz::simt::check::{self, Kind, Mode};
use fuzz::simt::events::features::{Feature, Features};
use fuzz::simt::events::plan::{Plan, Release, Stmt as Step};
use fuzz::simt::events::{check as events, generate as plans, reference};
use fuzz::simt::execute::execute;
use fuzz::simt::kernel::{Kernel, MASKS, Stmt, Update, VALUES};
use fuzz::simt::locations::{self, Mistake};
use fuzz::simt::{emit, generate, stepped};
use std::sync::Arc;
use thisgpu_filetests::stepping::{Mistake as StepMistake, Tally as Steps};

/// Kernels that are checked when nobody asks for more.
const KERNELS: u64 = 200;
/// The same of kernels of events, which run in many orders: ten minutes for all of them where nothing is optimised.
const EVENTS: u64 = if cfg!(debug_assertions) { 20 } else { KERNELS };
/// Shapes of kernels of events that are not checked here.
const WITHOUT: &[Feature] = &[Feature::Graph];

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}

/// Checks as many kernels as are asked for; a failure panics with a smaller kernel.
fn campaign(features: Features, default: u64) -> (u64, Tally) {
    let (first, count) = (number("FUZZ_SEED", 1), number("FUZZ_KERNELS", default));
    println!("seeds {first} to {}", first + count - 1);
    let tally = campaign::run(first..first + count, features, 1, &|_| {});
    if let Some((seed, _, failure)) = tally.failures.first() {
        let (small, failure) = Case::new(*seed, features).reduce(failure);
        let others: Vec<u64> = tally.failures.iter().map(|failure| failure.0).collect();
        panic!(
            "seed {seed}: {failure}\n{}\nseeds that fail: {others:?}",
            small.text()
        );
    }
    (count, tally)
}

#[test]
fn a_debugger_is_told_where_values_are() {
    let (first, count) = (number("FUZZ_SEED", 1), number("FUZZ_KERNELS", 200));
    println!("seeds {first} to {}", first + count - 1);
    let (mut found, mut at_marks, mut of_callers) = (0, 0, 0);
    for seed in first..first + count {
        let looked = locations::check(&generate::kernel(seed), 1);
        let looked = looked.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        found += looked.found;
        at_marks += looked.at_marks;
        of_callers += looked.of_callers;
    }
    assert!(found > 500 * count, "only {found} values were available");
    assert!(at_marks > 10 * count, "only {at_marks} of them at marks");
    assert!(of_callers > 50 * count, "only {of_callers} of callers");
}

#[test]
fn wrong_locations_are_found() {
    for mistake in Mistake::ALL {
        // Few registers, so that values move.
        let finds = |level: &str, seed: u64| {
            let settings = [level, "regs=24"].map(str::to_owned);
            let found = locations::finds(&generate::kernel(seed), &settings, mistake);
            found.unwrap_or_else(|(kind, message)| panic!("seed {seed}: {kind:?}: {message}"))
        };
        let levels = ["opt_level=none", "opt_level=speed"];
        let found = (1..100).any(|seed| levels.iter().any(|level| finds(level, seed)));
        assert!(found, "{mistake:?} is not found");
    }
}

#[test]
fn a_launch_that_is_stepped_is_the_launch() {
    let (first, count) = (number("FUZZ_SEED", 1), number("FUZZ_KERNELS", 60));
    println!("seeds {first} to {}", first + count - 1);
    let tally = Arc::new(Steps::default());
    // Two that wait for ever, in rounds of which a launch counts what a session runs: they differed once.
    let seeds: Vec<u64> = (first..first + count).chain([860, 3528]).collect();
    let count = seeds.len() as u64;
    for seed in seeds {
        let case = Case::new(seed, Features::ALL);
        let stepped = stepped::check(&case, seed, 5, &tally);
        stepped.unwrap_or_else(|failure| panic!("seed {seed}: {failure}\n{}", case.text()));
    }
    assert_eq!((tally.launches(), tally.points()), (count, 5 * count));
    if count >= 60 {
        assert!(tally.faults() > 5 && tally.findings() > 5, "{tally}");
    }
}

#[test]
fn mistakes_in_stepping_are_found() {
    // Kernels of windows are a few instructions, and many fault: there may be nothing to go back to.
    let features = Features::ALL.without(&[Feature::Windows]);
    for mistake in [StepMistake::Further, StepMistake::Register] {
        for seed in 1..10 {
            let case = Case::new(seed, features);
            let found = stepped::finds(&case, seed, mistake);
            let found = found.unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
            assert!(found, "{mistake:?} is not found with seed {seed}");
        }
    }
}

#[test]
fn random_kernels_do_what_the_reference_does() {
    let (count, tally) = campaign(Features::of(&[Feature::Graph]), KERNELS);
    // The kernels are worth something: everything that makes control difficult comes up, and masks show parts of warps.
    if count >= KERNELS {
        assert!(
            tally.shapes.len() == 12 && tally.shapes.values().all(|kernels| *kernels >= 5),
            "{:?}",
            tally.shapes
        );
        assert!(
            tally.partial >= count,
            "{} of {} masks",
            tally.partial,
            tally.masks
        );
    }
}

#[test]
fn random_events_have_the_outcome_of_their_order() {
    let features = Features::ALL.without(WITHOUT);
    let (count, tally) = campaign(features, EVENTS);
    if count >= KERNELS {
        let missing = |f: &Feature| features.has(*f) && !tally.shapes.contains_key(&f.name());
        let missing: Vec<Feature> = Feature::all().filter(missing).collect();
        assert!(missing.is_empty(), "{missing:?} did not come up");
    }
}

/// Kernels of turns whose flags and data lie in one space and are looked at as they are.
fn turns() -> impl Iterator<Item = Plan> {
    let features = Features::of(&[Feature::SharedFlags]);
    (1..).map(move |seed| plans::plan(seed, &Random::new(seed), Feature::Turns, features))
}

fn found_in(plan: &Plan, other: &Plan, modes: &[Mode]) -> Option<Kind> {
    let expected = reference::execute(other).expect("the reference accepts it");
    let failure = events::run(plan, &expected, &[], modes).err();
    failure.map(|failure| failure.kind)
}

#[test]
fn an_event_that_is_left_out_is_found() {
    let changed = turns().filter_map(|plan| {
        let mut other = plan.clone();
        let store = |step: &Step| matches!(step, Step::Store { .. });
        let place = other.body.iter().position(store)?;
        other.body.remove(place);
        let expected = |plan| reference::execute(plan).ok();
        (expected(&other)? != expected(&plan)?).then_some((plan, other))
    });
    for (plan, other) in changed.take(5) {
        let kind = found_in(&plan, &other, &[Mode::Functional]);
        assert_eq!(kind, Some(Kind::Value), "seed {}", plan.seed);
    }
}

/// A counter that goes on by an operation other than the one that is expected is found, as an endless wait.
#[test]
fn a_turn_that_never_comes_is_found() {
    let waits = |plan: &Plan| plan.participants() > 1 && plan.release == Release::Store;
    let mut plan = turns().find(waits).expect("one of them waits");
    let expected = reference::execute(&plan).expect("the reference accepts it");
    let modes = check::modes(plan.seed, 2);
    let right = events::run(&plan, &expected, &[], &modes);
    assert!(right.is_ok(), "{right:?}");
    // Nobody compares and swaps the number that is there.
    plan.release = Release::Swap;
    plan.start = 1;
    plan.wait.look = fuzz::simt::events::plan::Look::Busy;
    let failure = events::run(&plan, &expected, &[], &[Mode::Alone]);
    let failure = failure.expect_err("nobody goes on");
    assert_eq!(failure.kind, Kind::Endless, "{failure}");
}

#[test]
fn a_seed_always_gives_the_same_kernel() {
    assert_eq!(
        emit::text(&generate::kernel(5)),
        emit::text(&generate::kernel(5))
    );
    assert_ne!(generate::kernel(5), generate::kernel(6));
}

/// Kernels that pass as they are, with probes and without anything that waits.
fn kernels() -> impl Iterator<Item = Kernel> {
    let kernels = (1..).map(generate::kernel);
    kernels.filter(|kernel| kernel.locks.is_empty() && passes(kernel))
}

fn passes(kernel: &Kernel) -> bool {
    let settings = check::settings(kernel, 1).remove(0);
    let expected = check::reference(kernel).expect("the reference ends");
    check::run(kernel, &expected, &settings, &[Mode::Functional]).is_ok()
}

/// Runs a kernel against what another one should leave.
fn found(kernel: &Kernel, other: &Kernel) -> Option<Kind> {
    let settings = check::settings(kernel, 1).remove(0);
    let expected = execute(other).expect("the reference ends");
    let failure = check::run(kernel, &expected, &settings, &[Mode::Functional]);
    failure.err().map(|failure| failure.kind)
}

#[test]
fn a_wrong_operation_is_found() {
    let changed = kernels().filter_map(|kernel| {
        let mut other = kernel.clone();
        let cell = other
            .cells
            .iter_mut()
            .find(|cell| cell.update == Update::Add)?;
        cell.update = Update::Xor;
        (execute(&other) != execute(&kernel)).then_some((kernel, other))
    });
    for (kernel, other) in changed.take(5) {
        assert_eq!(
            found(&kernel, &other),
            Some(Kind::Value),
            "seed {}",
            kernel.seed
        );
    }
}

/// Lanes that do not meet are planted by an expectation in which one lane of a mask is missing.
#[test]
fn a_lane_that_is_not_there_is_found() {
    let settings = |kernel: &Kernel| check::settings(kernel, 1).remove(0);
    let mut planted = 0;
    for kernel in kernels().take(10) {
        let mut expected = execute(&kernel).expect("the reference ends");
        let records = expected.records.iter_mut();
        let mut words = records.flat_map(|record| &mut record[MASKS..VALUES]);
        let Some(mask) = words.find_map(|word| word.as_mut().filter(|mask| mask.count_ones() > 1))
        else {
            continue;
        };
        *mask &= *mask - 1;
        let failure = check::run(&kernel, &expected, &settings(&kernel), &[Mode::Functional]);
        assert_eq!(failure.expect_err("a lane is missing").kind, Kind::Mask);
        planted += 1;
    }
    assert!(planted >= 5, "{planted}");
}

/// A lock that is not given back is found as an endless wait.
#[test]
fn a_lock_that_is_kept_is_found() {
    let mut kept = (1..30).map(generate::kernel).filter_map(|mut kernel| {
        for block in kernel.functions.iter_mut().flat_map(|f| &mut f.blocks) {
            block
                .stmts
                .retain(|stmt| !matches!(stmt, Stmt::Unlock { .. }));
        }
        let expected = check::reference(&kernel).expect("the reference ends");
        let settings = check::settings(&kernel, 1).remove(0);
        let failure = check::run(&kernel, &expected, &settings, &[Mode::Alone]).err()?;
        Some((kernel, failure))
    });
    // Not every lock is wanted twice.
    let (kernel, failure) = kept.next().expect("one of thirty waits");
    assert_eq!(
        (failure.kind, failure.mode),
        (Kind::Endless, Mode::Alone),
        "seed {}: {failure}",
        kernel.seed
    );
}
