//! Whether a launch that is stepped, forward and back, is the launch.
//!
//! A kernel runs once as ever and once in the debugger ([`Stepping`]), which compare memory, counts, faults and
//! findings, and states at random points. Nothing is expected of what it leaves, so a kernel may also have to do with
//! memory that is only read or was never written, or with a budget that ends before it does.

use super::case::Case;
use super::check::{self, BUDGET, Failure, Found, Kind, LAUNCH_BUDGET, Mode, compile, settings_of};
use super::events;
use crate::random::Random;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::sim::SimConfig;
use std::sync::Arc;
use thisgpu_filetests::panics;
use thisgpu_filetests::stepping::{Mistake, Stepping, Tally, Trouble};

/// Warp instructions of a launch in trouble: a kernel that reads what was never written may not end.
const TROUBLED_BUDGET: u64 = 1 << 16;

/// Steps a kernel in random settings, with so many points from which it goes back; half of them in trouble.
///
/// # Errors
/// What differs, or a kernel that does not compile.
pub fn check(case: &Case, seed: u64, points: u32, tally: &Arc<Tally>) -> Result<(), Failure> {
    let mut random = Random::new(seed).fork(0x57e9);
    let settings = settings_of(seed, 1).swap_remove(0);
    let (trouble, launch_budget) = match random.below(8) {
        0 => (Trouble::ReadOnly(random.below(8)), TROUBLED_BUDGET),
        1 => (Trouble::Unwritten, TROUBLED_BUDGET),
        2 => (Trouble::None, 1 << random.below(14)),
        _ => (Trouble::None, LAUNCH_BUDGET),
    };
    let config = SimConfig {
        budget: BUDGET,
        launch_budget,
        check: trouble == Trouble::Unwritten || random.once_in(2),
        turns: random.once_in(4).then_some(seed),
        warp_lanes: if random.once_in(8) { 8 } else { 32 },
        ..SimConfig::default()
    };
    let stepping = Stepping::new(config, points, seed, tally.clone()).with_trouble(trouble);
    failure(&settings, || run(case, &settings, stepping))
}

/// Whether a mistake in stepping is found in a kernel.
///
/// # Errors
/// A kernel that does not compile.
pub fn finds(case: &Case, seed: u64, mistake: Mistake) -> Result<bool, Failure> {
    let settings = settings_of(seed, 1).swap_remove(0);
    let stepping = Stepping::new(SimConfig::default(), 1, seed, Arc::default());
    let stepping = stepping.with_mistake(mistake);
    match failure(&settings, || run(case, &settings, stepping)) {
        Ok(()) => Ok(false),
        Err(failure) if failure.kind == Kind::Fault => Ok(true),
        Err(failure) => Err(failure),
    }
}

fn failure(settings: &[String], run: impl FnOnce() -> Found<()>) -> Result<(), Failure> {
    let found = panics::catch(run).unwrap_or_else(|panic| Err((Kind::Panic, panic)));
    found.map_err(|(kind, message)| Failure {
        kind,
        settings: settings.to_vec(),
        mode: Mode::Stepped,
        message,
    })
}

fn run(case: &Case, settings: &[String], stepping: Stepping) -> Found<()> {
    let code = compile(&case.text(), settings)?;
    let device = Device::new(stepping);
    match case {
        Case::Graph(kernel) => check::run_on(&device, kernel, &code)?,
        Case::Events(plan) => events::check::run_on(&device, plan, &code)?,
        Case::Window(plan) => plan.run_on(&device, &code)?,
    };
    Ok(())
}
