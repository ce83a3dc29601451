//! What came of each of CubeCL's tests: passes that launched a kernel apart from those that did not.
//!
//! Every test runs in a process of its own, which says with a line for each launch that there was one. A test that
//! passes without a launch must be one whose reason stands in [`REASONS`].

use cubecl_thisgpu::{DEVICE_VARIABLE, REPORT_VARIABLE};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs, thread};

const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cubecl/results.txt");

const HOST: &str = "about the host's side";

const REFUSED: &str = "about launches that do not come to run";

/// Parts of names of tests that launch nothing, and why.
const REASONS: &[(&str, &str)] = &[
    ("mma", "no matrix instructions"),
    ("tensormap", "no tensor maps"),
    ("barrier", "no barriers in memory"),
    ("cluster", "no clusters"),
    ("fp6", "no floats of 6 bits"),
    (
        "f64_ty::test_vector_index",
        "no access is as wide as four f64",
    ),
    ("u64_ty::test_", "left out for u64 by CubeCL"),
    ("allocation_mode::", HOST),
    ("out_of_memory::", HOST),
    ("test_all_reduce_sync_collective", HOST),
    ("empty_tensor", HOST),
    ("test_kernel_load_file", HOST),
    ("test_read_lazy", HOST),
    ("test_to_client", HOST),
    ("test_launch_zero_cube_count", REFUSED),
    ("_error", REFUSED),
    ("test_launch_expansion_panic_fails_the_read", REFUSED),
    ("test_launch_with_comptime_name_disambiguation", HOST),
];

/// Tests whose kernels a checking device refuses, and what they do.
const FINDINGS: &[(&str, &str)] = &[
    (
        "tests::test_cubecl_std::reinterpret_slice_f16::shared_memory::write_from_i8x4",
        "reads shared memory behind the end of its array, and what other units write, without a barrier",
    ),
    (
        "tests::test_finished_sync_cube",
        "two cubes write and read the same buffer",
    ),
    (
        "tests::test_sync_plane",
        "a plane reads what another has written, with a barrier of the plane",
    ),
    (
        "tests::test_sync_storage_over_a_stale_copy",
        "reads what other cubes write on purpose, to have stale copies",
    ),
];

const UNKNOWN: &str = "for no reason that is known";

/// What came of a test.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Launched,
    Nothing(&'static str),
    Ignored,
    Failed,
}

impl Outcome {
    fn heading(&self) -> String {
        match self {
            Outcome::Launched => "passed with a launch".to_string(),
            Outcome::Nothing(reason) => format!("passed without a launch: {reason}"),
            Outcome::Ignored => "ignored by CubeCL".to_string(),
            Outcome::Failed => "failed".to_string(),
        }
    }
}

/// The names of the generated tests.
fn names() -> Vec<String> {
    let output = this()
        .args(["--list", "--format=terse", "tests::"])
        .output();
    let output = output.expect("the test binary lists its tests");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    names.map(str::to_string).collect()
}

fn this() -> Command {
    Command::new(env::current_exe().expect("a test has a binary"))
}

fn run(name: &str, device: &str) -> Outcome {
    let output = this()
        .args(["--exact", "--nocapture", "--test-threads=1", name])
        .env(REPORT_VARIABLE, "1")
        .env(DEVICE_VARIABLE, device)
        .output();
    let output = output.expect("the test binary runs");
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if !output.status.success() {
        Outcome::Failed
    } else if text.contains("1 ignored") {
        Outcome::Ignored
    } else if errors.contains("launch ") {
        Outcome::Launched
    } else {
        let reason = REASONS.iter().find(|(part, _)| name.contains(part));
        Outcome::Nothing(reason.map_or(UNKNOWN, |(_, why)| why))
    }
}

/// What came of all tests on a device.
fn outcomes(device: &str) -> BTreeMap<Outcome, Vec<String>> {
    let names = Mutex::new(names());
    let outcomes = Mutex::new(BTreeMap::<Outcome, Vec<String>>::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(name) = names.lock().expect("no worker panics").pop() else {
                        break;
                    };
                    let outcome = run(&name, device);
                    let mut outcomes = outcomes.lock().expect("no worker panics");
                    outcomes.entry(outcome).or_default().push(name);
                }
            });
        }
    });
    outcomes.into_inner().expect("no worker panics")
}

#[test]
fn recorded() {
    let outcomes = outcomes("plain");
    let unknown = outcomes.get(&Outcome::Nothing(UNKNOWN));
    assert_eq!(
        unknown, None,
        "tests that pass without a launch need a reason"
    );
    let mut text = String::from("# CubeCL's tests on this device. Written by `recorded.rs`.\n");
    for (outcome, mut names) in outcomes {
        names.sort();
        writeln!(text, "\n## {}: {}", outcome.heading(), names.len()).expect("text grows");
        for name in names {
            writeln!(text, "{name}").expect("text grows");
        }
    }
    if env::var_os("CRANELIFT_TEST_BLESS").is_some() {
        fs::write(RECORD, &text).expect("the record is written");
        return;
    }
    let recorded = fs::read_to_string(RECORD).expect("there is a record");
    let changed = differences(&recorded, &text);
    assert!(
        changed.is_empty(),
        "other results than recorded:\n{}",
        changed.join("\n")
    );
}

/// The device that looks for races finds those of CubeCL's own kernels, and no others.
#[test]
fn recorded_checks() {
    let recorded = fs::read_to_string(RECORD).expect("there is a record");
    let failed = recorded
        .split("\n## ")
        .find(|part| part.starts_with("failed"));
    let failed: Vec<&str> = failed.unwrap_or_default().lines().skip(1).collect();
    let mut outcomes = outcomes("checking");
    let mut found = outcomes.remove(&Outcome::Failed).unwrap_or_default();
    found.retain(|name| !failed.contains(&name.as_str()));
    found.sort();
    let expected: Vec<_> = FINDINGS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, expected);
}

/// The lines that only one of two records has.
fn differences(recorded: &str, now: &str) -> Vec<String> {
    let mut sections = [BTreeMap::new(), BTreeMap::new()];
    for (section, text) in sections.iter_mut().zip([recorded, now]) {
        let mut heading = "";
        for line in text.lines() {
            match line.strip_prefix("## ") {
                Some(next) => heading = next.split(": ").next().unwrap_or(next),
                None if line.starts_with("tests::") => {
                    section.insert(line.to_string(), heading.to_string());
                }
                None => {}
            }
        }
    }
    let [recorded, now] = sections;
    let names = recorded
        .keys()
        .chain(now.keys().filter(|name| !recorded.contains_key(*name)));
    let changed = names.filter(|name| recorded.get(*name) != now.get(*name));
    let changed = changed.map(|name| {
        let of = |section: &BTreeMap<String, String>| section.get(name).cloned();
        format!("{name}: {:?} was {:?}", of(&now), of(&recorded))
    });
    changed.collect()
}
