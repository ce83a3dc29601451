//! Burn's operations and their gradients on the simulator, compared with Burn's own CPU backend.
//!
//! Each case runs twice from the same numbers: on the device that the environment names, in a type of float, and on the
//! reference in f32. `CUBECL_THISGPU_DEVICE=checking` has every launch checked, `BURN_THISGPU_CASE=matmul` runs the
//! cases with this in their name only, `BURN_THISGPU_SEED=1` draws other numbers.

mod cases;
mod compare;
mod run;

use burn::tensor::{DType, Device};
use burn_thisgpu::{DEVICE_VARIABLE, Mode, ThisGpu};
use cases::Case;
use compare::Tolerance;
use run::Run;
use std::env;

/// With this in the environment, other numbers are drawn.
const SEED_VARIABLE: &str = "BURN_THISGPU_SEED";

/// With this in the environment, only cases with it in their name run.
const CASE_VARIABLE: &str = "BURN_THISGPU_CASE";

/// Cases that the checking device stops, since their kernels read behind the end of a buffer. `nearest`: kernels of
/// cubek-interpolate 0.3.1 read for the units of a row that are beyond the output's width, too, and use nothing of it.
/// `topk` in f16 and bf16: cubek-reduce 0.3.1 reads vectors of eight values and, since places are 32 bits wide, writes
/// vectors of four; which units are idle it tells (`reduction_output_base`, `idle_check`) by a stride in vectors of the
/// output and a count in vectors of the input, so units that have nothing to do read behind the end.
const READS_BEHIND_THE_END: &[(&str, &[DType])] = &[
    ("nearest", &[DType::F32, DType::F16, DType::BF16]),
    ("topk", &[DType::F16, DType::BF16]),
];

/// A type of float.
#[derive(Clone, Copy)]
struct Float {
    dtype: DType,
    /// The distance from 1 to the next number.
    step: f64,
}

impl Float {
    /// How far results of a case may be apart.
    fn steps(self, case: &Case) -> f64 {
        match self.dtype {
            DType::F32 => case.steps,
            _ => case.steps_of_halves,
        }
    }
}

const F32: Float = Float {
    dtype: DType::F32,
    step: 1.0 / (1u32 << 23) as f64,
};
const F16: Float = Float {
    dtype: DType::F16,
    step: 1.0 / (1u32 << 10) as f64,
};
const BF16: Float = Float {
    dtype: DType::BF16,
    step: 1.0 / (1u32 << 7) as f64,
};

/// Runs the cases of a family, and tells of all that fail.
fn check_all(cases: &[Case], float: Float) {
    let seed = env::var(SEED_VARIABLE).map(|seed| seed.parse().expect("a seed is a number"));
    let seed: u64 = seed.unwrap_or(0);
    println!("{SEED_VARIABLE}={seed}");
    let wanted = env::var(CASE_VARIABLE).unwrap_or_default();
    let is_wanted = |case: &&Case| case.name.contains(&wanted);
    assert!(
        FAMILIES
            .iter()
            .copied()
            .flatten()
            .any(|case| is_wanted(&case)),
        "{CASE_VARIABLE}={wanted}: no case has this in its name"
    );
    let mut failed = Vec::new();
    let is_checked = env::var(DEVICE_VARIABLE).is_ok_and(|device| device == Mode::Checking.name());
    let is_left_out = |case: &Case| {
        let mut known = READS_BEHIND_THE_END.iter();
        known.any(|(name, types)| *name == case.name && types.contains(&float.dtype))
    };
    for case in cases.iter().filter(is_wanted) {
        if is_checked && is_left_out(case) {
            println!("{}: left out on the checking device", case.name);
            continue;
        }
        match check(case, float, seed) {
            Ok(steps) => println!("{}: {steps:.2} of {} steps", case.name, float.steps(case)),
            Err(error) => failed.push(format!("{}: {error}", case.name)),
        }
    }
    let count = failed.len();
    assert!(
        failed.is_empty(),
        "seed {seed}: {count} of {} failed\n{}",
        cases.len(),
        failed.join("\n")
    );
}

/// Compares what came of a case on the device and by the reference, and gives how far they are apart, in steps.
///
/// # Errors
/// Where they are further apart than the case allows, and when nothing comes of it.
fn check(case: &Case, float: Float, seed: u64) -> Result<f64, String> {
    let on =
        |device: Device, computed| Run::of(case, device.autodiff(), float.dtype, computed, seed);
    let found = on(ThisGpu::default().device(), float.dtype)?;
    let expected = on(Device::flex(), DType::F32)?;
    if expected.is_empty() {
        return Err("a case without a result says nothing".to_string());
    }
    let tolerance = Tolerance {
        step: float.step,
        steps: float.steps(case),
    };
    compare::compare(&found, &expected, tolerance)
}

/// A test for each family of cases and each type.
macro_rules! families {
    ($($family:ident),*) => {
        const FAMILIES: &[&[Case]] = &[$(cases::$family::CASES),*];
        mod f32 { $(#[test] fn $family() { crate::check_all(crate::cases::$family::CASES, crate::F32) })* }
        mod f16 { $(#[test] fn $family() { crate::check_all(crate::cases::$family::CASES, crate::F16) })* }
        mod bf16 { $(#[test] fn $family() { crate::check_all(crate::cases::$family::CASES, crate::BF16) })* }
    };
}
families!(arithmetic, indexing, integers, modules, reductions, shapes);
