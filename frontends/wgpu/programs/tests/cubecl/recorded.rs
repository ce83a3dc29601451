//! What came of each test beside what comes of it in `frontends/cubecl`, where kernels are compiled without WGSL.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Mutex;
use std::{env, fs, thread};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// Tests that launch by the first route and fail by this one, by parts of their names, and why.
const REASONS: &[(&str, &str)] = &[(
    "test_kernel_different_rank",
    "units behind the last element read behind the end, in a module without runtime checks",
)];

fn this() -> Command {
    Command::new(env::current_exe().expect("a test has a binary"))
}

/// The names of the generated tests.
fn names() -> Vec<String> {
    let output = this()
        .args(["--list", "--format=terse", "tests::"])
        .output();
    let output = output.expect("the test binary lists its tests");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_string)
        .collect()
}

/// What a test says at the end: nothing if it passed.
fn failure(name: &str) -> Option<String> {
    let output = this()
        .args(["--exact", "--nocapture", "--test-threads=1", name])
        .output();
    let output = output.expect("the test binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (!output.status.success()).then_some(said)
}

/// The tests that launch a kernel by the first route.
fn launching() -> BTreeSet<String> {
    let record = format!("{FOLDER}/../../cubecl/tests/cubecl/results.txt");
    let record = fs::read_to_string(record).expect("there is a record");
    let part = record
        .split("\n## ")
        .find(|part| part.starts_with("passed with a launch"));
    let part = part.expect("some launch");
    part.lines().skip(1).map(str::to_string).collect()
}

/// Each test that launches by the first route passes, or has a reason.
#[test]
fn recorded() {
    let queue = Mutex::new(names());
    let failures = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some(name) = queue.lock().expect("no worker panics").pop() else {
                        break;
                    };
                    if let Some(said) = failure(&name) {
                        failures
                            .lock()
                            .expect("no worker panics")
                            .insert(name, said);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no worker panics");
    let names = names();
    let launching = launching();
    let wanted: Vec<_> = names
        .iter()
        .filter(|name| launching.contains(*name))
        .collect();
    let failed: Vec<_> = wanted
        .iter()
        .filter(|name| failures.contains_key(**name))
        .collect();
    println!(
        "{} tests, {} passed; {} of them launch by the first route, of which {} passed",
        names.len(),
        names.len() - failures.len(),
        wanted.len(),
        wanted.len() - failed.len()
    );
    let mut unknown = Vec::new();
    for name in failed {
        match REASONS.iter().find(|(part, _)| name.contains(part)) {
            Some((_, why)) => println!("{name}: {why}"),
            None => unknown.push(format!("{name}\n{}", failures[*name])),
        }
    }
    assert!(
        unknown.is_empty(),
        "without a reason: {}\n{}",
        unknown.len(),
        unknown.join("\n\n")
    );
}
