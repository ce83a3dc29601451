//! Crates from the registry in kernels, against the same functions on the host.
//!
//! What the host computes for a few inputs is recorded, so that its build of all crates, optimised, is spared.
//! `THISGPU_INPUTS` says how many inputs each function gets; then the host is asked, and the record compared. A run
//! before a release takes 10,000 (with checks an hour of one core), and `THISGPU_FUNCTIONS=NAME,NAME` only some of the
//! functions. `CRANELIFT_TEST_BLESS=1` writes the record.

use crate::common;
use crate::common::Random;
use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use thisgpu_build::{Device, Grid, Module, SimConfig};

/// What the host's own build of the crate says: for each function the results in the order of the inputs.
fn on_the_host(inputs: &[u64]) -> Results {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let manifest = common::examples().join("Cargo.toml");
    // Without checks, as kernels are compiled; optimised where the time would go otherwise.
    let settings = [
        "opt-level=1",
        "debug=false",
        "overflow-checks=false",
        "debug-assertions=false",
    ];
    let mut host = Command::new(cargo);
    for setting in settings {
        host.arg("--config").arg(format!("profile.dev.{setting}"));
    }
    let mut host = host
        .args([
            "run",
            "--quiet",
            "--locked",
            "--package",
            "registry",
            "--bin",
            "host",
            "--manifest-path",
        ])
        .arg(manifest)
        .arg("--target-dir")
        .arg(common::target().join("host"))
        .env_remove("RUSTFLAGS")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cargo runs");
    let lines: String = inputs.iter().map(|input| format!("{input}\n")).collect();
    let mut stdin = host.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = host.wait_with_output().expect("cargo runs");
    writer
        .join()
        .expect("writes")
        .expect("the host reads its inputs");
    assert!(output.status.success());
    let mut results = Results::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let (name, result) = line.split_once(' ').expect("a name and a number");
        results
            .entry(name.into())
            .or_default()
            .push(result.parse().expect("a number"));
    }
    results
}

/// Instructions that a warp may issue: a regular expression is compiled, a graph is searched.
const BUDGET: u64 = 1 << 32;

/// Functions in which LLVM adds to the value of an option before it looks whether there is one, and then uses neither.
/// A sum of what nobody wrote is a finding: marks go along with copies, not through carries.
const ADDS_BEFORE_IT_LOOKS: &[&str] = &["unicode_segmentation"];

/// Inputs of a launch: what their threads allocate has to fit into the launch's heap.
const BATCH: usize = 256;

/// What is wrong with a launch: a fault, what the simulator finds, a result that is not the host's.
fn wrong(
    device: &Device,
    module: &Module,
    name: &str,
    inputs: &[u64],
    expected: &[u64],
) -> Result<(), String> {
    let given = device.upload(inputs).expect("room");
    let mut results = device.zeros::<u64>(inputs.len() as u64).expect("room");
    let kernel = module.kernel(name).expect("described");
    let grid = Grid::for_elems(inputs.len() as u64, 64);
    let launch = kernel.launch(grid).arg(&given).arg(&mut results);
    let report = launch
        .heap(256 << 20)
        .run()
        .map_err(|error| error.to_string())?;
    let mut findings = report.findings.iter().map(ToString::to_string);
    let is_known = |finding: &String| {
        ADDS_BEFORE_IT_LOOKS.contains(&name) && finding.contains("before anything was written")
    };
    if let Some(finding) = findings.find(|finding| !is_known(finding)) {
        return Err(finding);
    }
    if let Some(hazard) = report.hazards.first() {
        return Err(hazard.to_string());
    }
    let results = results.to_vec().expect("there");
    let mut all = inputs.iter().zip(results.iter().zip(expected));
    match all.find(|(_, (ours, theirs))| ours != theirs) {
        Some((input, (ours, theirs))) => Err(format!("of {input}: {ours}, on the host {theirs}")),
        None => Ok(()),
    }
}

/// Inputs of which the results are recorded.
const RECORDED: usize = 8;

/// What the host has computed of the first inputs: in each line a function and its results.
const RECORD: &str = include_str!("registry/expected.txt");

/// Numbers, some of which are small, or near an end.
fn inputs(count: usize) -> Vec<u64> {
    let mut random = Random(16);
    let input = |index: usize| {
        let input = random.bits();
        match (index % 4, index / 4 % 8) {
            (1, 0) => 0,
            (1, 1) => u64::MAX,
            (1, 2) => 1,
            (1, 3) => 2,
            (1, 4) => 1 << 63,
            (1, 5) => 0x7ff0_0000_0000_0000,
            (1, 6) => input >> 40,
            (1, 7) => input >> 52,
            _ => input,
        }
    };
    (0..count).map(input).collect()
}

/// The results of each function, in the order of the inputs.
type Results = HashMap<String, Vec<u64>>;

/// The record.
fn recorded() -> Results {
    let results = |line: &str| {
        let (name, results) = line.split_once(' ')?;
        let results = results.split(' ').map(|text| text.parse().ok());
        Some((name.to_string(), results.collect::<Option<Vec<u64>>>()?))
    };
    (RECORD.lines())
        .map(|line| results(line).unwrap_or_else(|| panic!("numbers behind a name: {line}")))
        .collect()
}

/// Writes the record.
fn record(results: &Results) {
    let mut lines: Vec<String> = (results.iter())
        .map(|(name, results)| {
            let results: Vec<String> = results[..RECORDED].iter().map(u64::to_string).collect();
            format!("{name} {}\n", results.join(" "))
        })
        .collect();
    lines.sort();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/crates/registry/expected.txt"
    );
    std::fs::write(path, lines.concat()).expect("written");
}

#[test]
fn unmodified_crates_compute_what_they_do_on_the_host() {
    let asked = std::env::var("THISGPU_INPUTS").ok();
    let asked: Option<usize> = asked.map(|text| text.parse().expect("a number"));
    let inputs = inputs(asked.map_or(RECORDED, |count| count.max(RECORDED)));
    let bless = std::env::var_os("CRANELIFT_TEST_BLESS").is_some();
    let expected = match asked.is_some() || bless {
        true => on_the_host(&inputs),
        false => recorded(),
    };
    if bless {
        record(&expected);
    } else if asked.is_some() {
        for (name, results) in recorded() {
            assert_eq!(expected[&name][..RECORDED], results, "{name}");
        }
    }
    let compiled = common::compiled("registry");
    let names: Vec<&str> = compiled
        .description()
        .kernels
        .iter()
        .map(|kernel| kernel.name.as_str())
        .collect();
    let mut of_host: Vec<&str> = expected.keys().map(String::as_str).collect();
    let mut of_device = names.clone();
    of_host.sort();
    of_device.sort();
    assert_eq!(of_device, of_host, "CRANELIFT_TEST_BLESS=1 asks the host");
    let checking = SimConfig {
        check: true,
        budget: BUDGET,
        launch_budget: BUDGET,
        ..SimConfig::default()
    };
    let timed = SimConfig {
        check: false,
        timed: true,
        ..checking
    };
    let mut failures = Vec::new();
    // Counting cycles takes longer, and what it finds is found in parts of all crates: unless asked, in every fourth.
    let step = if asked.is_some() { 1 } else { 4 };
    let few = &inputs[..inputs.len().min(BATCH)];
    let only = std::env::var("THISGPU_FUNCTIONS").ok();
    let is_asked = |name: &&str| {
        only.as_ref()
            .is_none_or(|only| only.split(',').any(|n| n == *name))
    };
    for (config, inputs, names) in [
        (checking, &inputs[..], names.clone()),
        (timed, few, names.into_iter().step_by(step).collect()),
    ] {
        let device = Device::simulator(config);
        let module = compiled.load(&device).expect("room");
        for name in names.into_iter().filter(is_asked) {
            let begun = std::time::Instant::now();
            let mut batches = inputs.chunks(BATCH).zip(expected[name].chunks(BATCH));
            let outcome = batches
                .try_for_each(|(inputs, expected)| wrong(&device, &module, name, inputs, expected));
            println!("{name}: {:.1} s", begun.elapsed().as_secs_f32());
            if let Err(what) = outcome {
                println!("{name}: {what}");
                failures.push(format!("{name} with {config:?}: {what}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
