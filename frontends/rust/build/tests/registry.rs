//! Crates from the registry in kernels, against the same functions on the host.
//!
//! `THISGPU_INPUTS` says how many inputs each function gets; a run before a release takes 10,000.

#[allow(dead_code, reason = "each test takes a part")]
mod common;

use common::Random;
use std::collections::HashMap;
use std::io::Write;
use std::process::{Command, Stdio};
use thisgpu_build::{Device, Grid, Module, SimConfig};

/// What the host's own build of the crate says: for each function the results in the order of the inputs.
fn on_the_host(inputs: &[u64]) -> HashMap<String, Vec<u64>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let manifest = common::examples().join("Cargo.toml");
    // Without overflow checks, as kernels are compiled.
    let mut host = Command::new(cargo)
        .args([
            "run",
            "--quiet",
            "--locked",
            "--release",
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
    let mut results: HashMap<String, Vec<u64>> = HashMap::new();
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

/// What is wrong with a kernel: a fault, what the simulator finds, a result that is not the host's.
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
    if let Some(finding) = report.findings.first() {
        return Err(finding.to_string());
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

#[test]
fn unmodified_crates_compute_what_they_do_on_the_host() {
    let count = std::env::var("THISGPU_INPUTS").map_or(16, |text| text.parse().expect("a number"));
    let mut random = Random(16);
    let mut inputs: Vec<u64> = (0..count).map(|_| random.bits()).collect();
    // Numbers that are small, or near an end.
    for (index, input) in inputs
        .iter_mut()
        .enumerate()
        .filter(|(index, _)| index % 8 == 0)
    {
        *input = [
            0,
            1,
            2,
            u64::MAX,
            1 << 63,
            0x7ff0_0000_0000_0000,
            *input >> 40,
            *input >> 52,
        ][index / 8 % 8];
    }
    let expected = on_the_host(&inputs);
    let compiled = common::compiled("registry");
    let names: Vec<&str> = compiled
        .description()
        .kernels
        .iter()
        .map(|kernel| kernel.name.as_str())
        .collect();
    assert_eq!(names.len(), expected.len());
    let mut failures = Vec::new();
    for (config, inputs) in [
        (
            SimConfig {
                check: true,
                budget: BUDGET,
                launch_budget: BUDGET,
                ..SimConfig::default()
            },
            &inputs[..],
        ),
        // Counting cycles takes longer; a heavy run does it for all.
        (
            SimConfig {
                timed: true,
                budget: BUDGET,
                launch_budget: BUDGET,
                ..SimConfig::default()
            },
            &inputs[..if count < 10_000 { count / 4 } else { count }],
        ),
    ] {
        let device = Device::simulator(config);
        let module = compiled.load(&device).expect("room");
        for name in &names {
            if let Err(what) = wrong(&device, &module, name, inputs, &expected[*name]) {
                failures.push(format!("{name} with {config:?}: {what}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
