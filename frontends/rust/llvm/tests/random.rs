//! Random Rust functions on the device and on the host.
//!
//! `RANDOM_FUNCTIONS=N`, `RANDOM_SEED=S`: the ignored test takes N functions (10,000), at the opt levels 0, 2, 3 and s
//! by turns; the other takes 30 at each. A failure names the seed of its file, the function and the input, and keeps
//! both files.

mod common;
#[path = "random/expressions.rs"]
mod expressions;
#[path = "common/host.rs"]
mod host;
#[path = "random/rng.rs"]
mod rng;
#[path = "random/snippets.rs"]
mod snippets;
#[path = "random/source.rs"]
mod source;

use common::Level;
use cranelift_thisgpu::{Device, DeviceError, FaultKind, Grid, KernelOptions, Options, SimConfig};
use rng::Rng;
use source::INPUTS;
use thisgpu_llvm::flags::DebugInfo;
use thisgpu_llvm::panics::Reason;
use thisgpu_llvm::{Kernel, Program, translate};

/// Inputs of each function, the threads of a launch.
const CASES: usize = 32;

/// What a function gives for each input; none where it panics.
type Results = Vec<Option<u64>>;

/// Whether a fault is what a panic of the host is on the device.
fn is_panic(fault: &FaultKind) -> bool {
    matches!(fault, FaultKind::Trap { code } if Reason::of(*code).is_some_and(Reason::is_panic))
}

/// Compiles a file of random functions for both, runs it on both, and says what differs.
fn compare(seed: u64, count: usize, level: Level) -> Vec<String> {
    let mut rng = Rng(seed);
    let functions = source::functions(&mut rng, count);
    let inputs: Vec<[u64; INPUTS]> = (0..CASES)
        .map(|_| std::array::from_fn(|_| rng.number()))
        .collect();
    let folder = common::folder(&format!("random-{seed:x}"));
    let (device, host) = (folder.join("device.rs"), folder.join("host.rs"));
    std::fs::write(&device, source::device(&functions, count)).unwrap();
    std::fs::write(&host, source::host(&functions, count, &inputs)).unwrap();
    let expected = on_host(&host, count);
    let program = common::program(&device, level, DebugInfo::Lines);
    let differences = on_device(&program, &inputs, &expected);
    if differences.is_empty() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    let file = device.display();
    let named = differences.into_iter();
    named
        .map(|text| format!("seed {seed:#x}, {level:?}, {file}: {text}"))
        .collect()
}

fn on_host(source: &std::path::Path, count: usize) -> Vec<Results> {
    // At level 0 LLVM cannot compile everything.
    let levels = ["-Copt-level=0", "-Copt-level=1"].map(|level| [level, "-Cdebug-assertions=off"]);
    let text = host::printed(source, &[&levels[0], &levels[1]]);
    let results: Results = text.lines().map(|line| line.parse().ok()).collect();
    assert_eq!(results.len(), count * CASES);
    results.chunks(CASES).map(<[_]>::to_vec).collect()
}

fn on_device(program: &Program, inputs: &[[u64; INPUTS]], expected: &[Results]) -> Vec<String> {
    let kernels: Vec<Kernel> = (0..expected.len())
        .map(|number| Kernel {
            name: format!("k{number}"),
            options: KernelOptions::default(),
        })
        .collect();
    let translation = match translate(program, &kernels, &Options::default()) {
        Ok(translation) => translation,
        Err(errors) => {
            return errors
                .iter()
                .map(|error| format!("does not compile: {error}"))
                .collect();
        }
    };
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&translation.code).unwrap();
    let mut differences = Vec::new();
    for (number, expected) in expected.iter().enumerate() {
        let kernel = module.kernel(&format!("k{number}")).unwrap();
        let launch = |cases: &[usize]| {
            let given: Vec<u64> = cases.iter().flat_map(|case| inputs[*case]).collect();
            let (x, out) = (
                device.upload(&given)?,
                device.zeros::<u64>(cases.len() as u64)?,
            );
            let grid = Grid::new([1; 3], [cases.len() as u32, 1, 1]);
            kernel.launch(grid).args(&[&x, &out]).run()?;
            out.to_vec()
        };
        let (fine, panicking): (Vec<usize>, Vec<usize>) =
            (0..CASES).partition(|case| expected[*case].is_some());
        match launch(&fine) {
            _ if fine.is_empty() => {}
            Ok(found) => {
                for (case, found) in fine.iter().zip(found) {
                    if Some(found) != expected[*case] {
                        let wanted = expected[*case];
                        differences.push(format!(
                            "f{number} of input {case}: {found}, host {wanted:?}"
                        ));
                    }
                }
            }
            Err(error) => differences.push(format!("f{number}: {error}")),
        }
        if let Some(first) = panicking.first() {
            match launch(&[*first]) {
                Err(DeviceError::Fault { fault, .. }) if is_panic(&fault.kind) => {}
                other => differences.push(format!(
                    "f{number} of input {first} does not panic: {other:?}"
                )),
            }
        }
    }
    differences
}

const LEVELS: [Level; 4] = [
    Level::Of("0"),
    Level::Of("2"),
    Level::Of("3"),
    Level::Of("s"),
];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn random_functions_do_what_they_do_on_the_host() {
    let mut differences = Vec::new();
    for (index, level) in LEVELS.into_iter().chain([Level::Convergent]).enumerate() {
        differences.extend(compare(100 + index as u64, 30, level));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
#[ignore = "takes minutes; RANDOM_FUNCTIONS says how many"]
fn many_random_functions_do_what_they_do_on_the_host() {
    let (total, seed) = (number("RANDOM_FUNCTIONS", 10_000), number("RANDOM_SEED", 1));
    let (each, mut done, mut differences) = (200, 0, Vec::new());
    while done < total {
        let level = LEVELS[(done / each) as usize % 4];
        let file = seed.wrapping_mul(1_000_003).wrapping_add(done);
        differences.extend(compare(file, each as usize, level));
        done += each;
        println!("{done} functions, {} differences", differences.len());
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
