//! The judge: cases of the WebGPU conformance suite, as data, on the simulator.
//!
//! The data is in no repository of ours: `THISGPU_WGSL_CASES` names its folder, and without that it is looked for
//! beside the repository, in `../shared/wgsl-cases`. Without it the tests say so and pass. `results.txt` records what
//! came of all cases; the test that runs by default takes one case of fifty, the other one all:
//!
//!     cargo test --release -p thisgpu-naga --test judge -- --ignored --nocapture
//!
//! `JUDGE_FILES=unary,zero` takes these files only, `JUDGE_CHECK=1` the checking simulator, `JUDGE_CASE=TEXT` the cases
//! whose names have that text, `JUDGE_EVERY=7` one of so many. `CRANELIFT_TEST_BLESS=1` writes the record.

mod cases;
mod expected;
mod mended;
mod record;
mod run;
mod trace;

use record::Record;
use std::path::{Path, PathBuf};

/// Of so many cases the default test takes one.
const SAMPLE: u64 = 50;

/// Where the data is.
fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/wgsl-cases");
    let given = std::env::var_os("THISGPU_WGSL_CASES").map(PathBuf::from);
    let folder = given.unwrap_or(beside);
    if folder.join("unary.jsonl.xz").exists() {
        return Some(folder);
    }
    eprintln!("skipped: no data of the conformance suite; THISGPU_WGSL_CASES names its folder");
    None
}

/// The record in the repository.
fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results.txt")
}

#[test]
fn a_sample_of_all_cases_is_as_recorded() {
    let Some(folder) = data() else { return };
    let found = cases::judge(&folder, |name| cases::hash(name).is_multiple_of(SAMPLE));
    println!("{}", found.summary());
    let known = std::fs::read_to_string(recorded()).expect("the record is in the repository");
    let problems = found.problems_beside(&known);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
#[ignore = "all cases take minutes in release"]
fn all_cases_are_as_recorded() {
    let Some(folder) = data() else { return };
    let part = std::env::var("JUDGE_CASE").ok();
    let every = std::env::var("JUDGE_EVERY").ok();
    let every: u64 = every.and_then(|text| text.parse().ok()).unwrap_or(1);
    let is_taken = |name: &str| {
        let is_part = part
            .as_ref()
            .is_none_or(|part| name.contains(part.as_str()));
        is_part && cases::hash(name).is_multiple_of(every)
    };
    let found = cases::judge(&folder, is_taken);
    println!("{}", found.summary());
    let text = found.text();
    let is_partial = every > 1 || part.is_some() || std::env::var_os("JUDGE_FILES").is_some();
    if is_partial || std::env::var_os("JUDGE_CHECK").is_some() {
        println!("{text}");
        let known = std::fs::read_to_string(recorded()).unwrap_or_default();
        let problems = found.problems_beside(&known);
        assert!(problems.is_empty(), "{}", problems.join("\n"));
        return;
    }
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some() {
        std::fs::write(recorded(), text).expect("the record can be written");
        return;
    }
    let known = std::fs::read_to_string(recorded()).expect("the record is in the repository");
    assert!(
        known == text,
        "tests/results.txt differs:\n{}",
        Record::difference(&known, &text)
    );
}

/// What naga reads of its own SPIR-V as something else: it writes `countLeadingZeros` of i32 with `FindUMsb`, and reads
/// that as `firstLeadingBit` of i32, for which negative numbers are another matter.
const READ_OTHERWISE: &str = "countLeadingZeros:i32";

/// How many shaders must be compared, of one in so many cases.
const TWINS: (usize, u64) = (500, 16);

#[test]
#[ignore = "a thousand shaders take minutes in a build without optimisation"]
fn wgsl_and_spirv_give_equal_bits() {
    let Some(folder) = data() else { return };
    let (equal, others) = cases::twins(&folder, |name| {
        cases::hash(name).is_multiple_of(TWINS.1) && !name.contains(READ_OTHERWISE)
    });
    println!("{equal} shaders give equal bits as WGSL and as SPIR-V");
    assert!(
        others.is_empty(),
        "{} differ:\n{}",
        others.len(),
        others.join("\n")
    );
    assert!(
        equal >= TWINS.0,
        "{equal} shaders are fewer than {}",
        TWINS.0
    );
}

#[test]
#[ignore = "all shaders take minutes"]
fn no_shader_panics_and_refusals_have_places() {
    let Some(folder) = data() else { return };
    let ([all, naga, ours], others) = cases::translated(&folder);
    println!("{all} shaders, {naga} refused by naga, {ours} refused by us");
    assert!(
        others.is_empty(),
        "{} shaders:\n{}",
        others.len(),
        others.join("\n")
    );
}
