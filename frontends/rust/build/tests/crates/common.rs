//! What the tests of whole crates share.

use cranelift_thisgpu::unstable::driver::simulate_with;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};
use thisgpu_build::{Compiled, Device, Grid, Kernels, Launch, Module, Report, SimConfig};
use thisgpu_filetests::stepping::{Stepping, Tally};

/// What was stepped.
pub static TALLY: LazyLock<Arc<Tally>> = LazyLock::new(Arc::default);
/// Points of each launch from which a session goes back.
static POINTS: OnceLock<u32> = OnceLock::new();

/// From now on every launch is made in the debugger as well, which goes back from so many points of it, and must come
/// to the same.
pub fn step(points: u32) {
    let _ = POINTS.set(points);
    simulate_with(|config| {
        let points = POINTS.get().copied().unwrap_or(0);
        Device::new(Stepping::new(config, points, 1, TALLY.clone()))
    });
}

/// The same, if `THISGPU_STEPPED` says how many points.
fn step_if_asked() {
    if let Ok(points) = std::env::var("THISGPU_STEPPED") {
        step(
            points
                .parse()
                .expect("THISGPU_STEPPED is a number of points"),
        );
    }
}

/// The folder of the examples.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// A crate of the examples, as it is compiled unless said otherwise. All tests build in one folder.
pub fn example(name: &str) -> Kernels {
    step_if_asked();
    Kernels::new()
        .crate_dir(examples().join(name))
        .target_dir(target())
        .locked(true)
}

/// Where cargo builds for the tests.
pub fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples")
}

/// The crate, compiled.
pub fn compiled(name: &str) -> Compiled {
    example(name)
        .compile()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The crate of what threads share out and do together.
pub static THREADS: LazyLock<Compiled> = LazyLock::new(|| compiled("threads"));

/// A device that checks, with a crate on it.
pub fn checking(compiled: &Compiled) -> (Device, Module) {
    let device = Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    });
    let module = compiled.load(&device).expect("room");
    (device, module)
}

/// Launches a kernel without findings.
pub fn ran(
    module: &Module,
    name: &str,
    grid: Grid,
    arguments: impl FnOnce(Launch) -> Launch,
) -> Report {
    let kernel = module
        .kernel(name)
        .unwrap_or_else(|error| panic!("{error}"));
    let report = arguments(kernel.launch(grid)).run();
    let report = report.unwrap_or_else(|error| panic!("{name}: {error}"));
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{name}: {findings:#?}");
    report
}

/// Numbers that look random (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
