//! Burn's operations and their gradients on the simulator, compared with Burn's own CPU backend.
//!
//! Each case runs twice from the same numbers: on the device that the environment names, in a type of float, and on the
//! reference in f64. `CUBECL_THISGPU_DEVICE=checking` has every launch checked, `BURN_THISGPU_CASE=matmul` runs the
//! cases with this in their name only, `BURN_THISGPU_SEED=1` draws other numbers.

mod cases;
mod compare;
mod run;

use burn::tensor::{DType, Device};
use burn_thisgpu::{Mode, ThisGpu};
use cases::Case;
use compare::{Float, Reference};
use run::Run;
use std::env::{self, VarError};

/// What the names of these variables begin with.
const PREFIX: &str = "BURN_THISGPU_";

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
    (
        "nearest",
        &[DType::F64, DType::F32, DType::F16, DType::BF16],
    ),
    ("topk", &[DType::F16, DType::BF16]),
];

const F64: Float = Float {
    dtype: DType::F64,
    step: f64::EPSILON,
    least: f64::from_bits(1),
};
const F32: Float = Float {
    dtype: DType::F32,
    step: f32::EPSILON as f64,
    least: f32::from_bits(1) as f64,
};
const F16: Float = Float {
    dtype: DType::F16,
    step: 1.0 / (1u32 << 10) as f64,
    least: 1.0 / (1u32 << 24) as f64,
};
const BF16: Float = Float {
    dtype: DType::BF16,
    step: 1.0 / (1u32 << 7) as f64,
    // It has the exponents of f32.
    least: f32::from_bits(1 << 16) as f64,
};

/// Cases of which Burn computes a part in f32 where the type is f64: the sigmoid (`burn_backend`'s `ActivationOps`) and
/// places in images (cubek-interpolate 0.3.1).
const COMPUTED_IN_F32: &[&str] = &["sigmoid", "silu", "glu", "bilinear", "bicubic"];

/// So many times the reference computes from inputs that are a little apart, where results need not be the same.
const MOVED: u64 = 16;

/// What the environment asks for.
struct Asked {
    seed: u64,
    /// Part of the names of cases to run.
    case: String,
    is_checked: bool,
}

impl Asked {
    /// # Panics
    /// If it means nothing.
    fn new() -> Asked {
        let said = |variable| match env::var(variable) {
            Ok(value) => Some(value).filter(|value| !value.is_empty()),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(value)) => panic!("{variable} is {value:?}, which is no text"),
        };
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            let is_known = [SEED_VARIABLE, CASE_VARIABLE].contains(&&*name);
            let is_ours = name.starts_with(PREFIX);
            assert!(
                is_known || !is_ours,
                "{name} is neither {SEED_VARIABLE} nor {CASE_VARIABLE}"
            );
        }
        let seed = said(SEED_VARIABLE).unwrap_or_else(|| "0".to_string());
        let seed = seed
            .parse()
            .unwrap_or_else(|_| panic!("{SEED_VARIABLE} is {seed:?}, which is no number"));
        let case = said(CASE_VARIABLE).unwrap_or_default();
        let mut all = FAMILIES.iter().copied().flatten();
        assert!(
            all.any(|other| other.name.contains(&case)),
            "{CASE_VARIABLE} is {case:?}, which no case has in its name"
        );
        Asked {
            seed,
            case,
            is_checked: ThisGpu::default().mode() == Mode::Checking,
        }
    }
}

/// Runs the cases of a family, and tells of all that fail.
fn check_all(cases: &[Case], float: Float) {
    let asked = Asked::new();
    println!("{SEED_VARIABLE}={}", asked.seed);
    let mut failed = Vec::new();
    let wanted = |case: &&Case| case.name.contains(&asked.case);
    let cases: Vec<_> = cases.iter().filter(wanted).collect();
    for case in &cases {
        let name = case.name;
        let is_stopped = asked.is_checked
            && READS_BEHIND_THE_END
                .iter()
                .any(|(other, types)| *other == name && types.contains(&float.dtype));
        match check(case, float, asked.seed) {
            Err(finding)
                if is_stopped
                    && ["load of", "out of bounds"]
                        .iter()
                        .all(|part| finding.contains(part)) =>
            {
                println!("{name}: stopped, as it is known: {finding}");
            }
            Err(error) => failed.push(format!("{name}: {error}")),
            Ok(_) if is_stopped => {
                failed.push(format!("{name}: passes, and is said to be stopped"))
            }
            Ok(steps) => {
                let (dtype, most) = (float.dtype, case.steps_in(float));
                println!("{dtype:?} {name}: {steps:.2} of {most} steps");
            }
        }
    }
    let (seed, count) = (asked.seed, failed.len());
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
    let steps = case.steps_in(float);
    let step = match COMPUTED_IN_F32.contains(&case.name) {
        true => float.step.max(F32.step),
        false => float.step,
    };
    let float = Float { step, ..float };
    let found = Run::of(
        case,
        ThisGpu::default().device(),
        float,
        float.dtype,
        seed,
        None,
    )?;
    let expected = |moved| Run::of(case, Device::flex(), float, DType::F64, seed, moved);
    let moved = if steps == 0.0 { 0 } else { MOVED };
    let reference = Reference {
        expected: expected(None)?,
        moved: (0..moved)
            .map(|number| expected(Some(number)))
            .collect::<Result<_, _>>()?,
    };
    if reference.expected.is_empty() {
        return Err("a case without a result says nothing".to_string());
    }
    compare::compare(&found, &reference, float, steps)
}

/// A test for each family of cases and each type.
macro_rules! families {
    ($($family:ident),*) => {
        const FAMILIES: &[&[Case]] = &[$(cases::$family::CASES),*];
        mod f64 { $(#[test] fn $family() { crate::check_all(crate::cases::$family::CASES, crate::F64) })* }
        mod f32 { $(#[test] fn $family() { crate::check_all(crate::cases::$family::CASES, crate::F32) })* }
        mod f16 { $(#[test] fn $family() { crate::check_all(crate::cases::$family::CASES, crate::F16) })* }
        mod bf16 { $(#[test] fn $family() { crate::check_all(crate::cases::$family::CASES, crate::BF16) })* }
    };
}
families!(arithmetic, indexing, integers, modules, reductions, shapes);
