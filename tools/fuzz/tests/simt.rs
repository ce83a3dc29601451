//! A few hundred random kernels of many threads, and planted mistakes that must be found.
//!
//! `FUZZ_SEED` and `FUZZ_KERNELS` choose the first seed and how many kernels. A failure prints its kernel, made smaller.

use fuzz::simt::campaign;
use fuzz::simt::check::{self, Kind, Mode};
use fuzz::simt::execute::execute;
use fuzz::simt::kernel::{Kernel, MASKS, Stmt, Update, VALUES};
use fuzz::simt::{emit, generate, reduce};

/// Kernels that are checked when nobody asks for more.
const KERNELS: u64 = 200;

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}

#[test]
fn random_kernels_do_what_the_reference_does() {
    let (first, count) = (number("FUZZ_SEED", 1), number("FUZZ_KERNELS", KERNELS));
    println!("seeds {first} to {}", first + count - 1);
    let tally = campaign::run(first..first + count, 1, &|_| {});
    if let Some((seed, _, failure)) = tally.failures.first() {
        let (small, failure) = reduce::reduce(&generate::kernel(*seed), failure);
        let others: Vec<u64> = tally.failures.iter().map(|failure| failure.0).collect();
        panic!(
            "seed {seed}: {failure}\n{}\nseeds that fail: {others:?}",
            emit::text(&small)
        );
    }
    // The kernels are worth something: everything that makes control difficult comes up, and masks show parts of warps.
    if count >= KERNELS {
        assert!(
            tally.shapes.len() == 11 && tally.shapes.values().all(|kernels| *kernels >= 5),
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
