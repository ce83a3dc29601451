//! What the tests share that run kernels on the simulator.

#![allow(dead_code, reason = "few tests need all of it")]

use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Argument, Device, Grid};
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::Report;
use std::fmt::Display;

/// Compiles a text that is correct.
pub fn compile(text: &str) -> Code {
    compile_with(Options::default(), text)
}

/// The same with other settings.
pub fn compile_with(options: Options, text: &str) -> Code {
    Compiler::new(options)
        .compile_clif(text)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// One block of so many threads.
pub fn block(threads: u32) -> Grid {
    Grid::new([1; 3], [threads, 1, 1])
}

/// Loads code and runs one of its kernels to its end or fault.
pub fn launch(
    device: &Device,
    code: &impl AsRef<Object>,
    kernel: &str,
    grid: Grid,
    arguments: &[&dyn Argument],
) -> Report {
    let module = device.load(code).unwrap_or_else(|error| panic!("{error}"));
    let kernel = (module.kernel(kernel)).unwrap_or_else(|error| panic!("{error}"));
    let launch = arguments.iter().fold(kernel.launch(grid), |l, a| l.arg(a));
    launch
        .run_to_report()
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The same with a kernel that has no fault and of which the device says nothing; otherwise the test fails, and says
/// `at`.
pub fn run(
    device: &Device,
    code: &impl AsRef<Object>,
    kernel: &str,
    grid: Grid,
    arguments: &[&dyn Argument],
    at: impl Display,
) {
    let report = launch(device, code, kernel, grid, arguments);
    if let Some(fault) = report.fault {
        panic!("{at}: {fault}");
    }
    assert_eq!(report.hazards, [], "{at}");
    assert_eq!(report.findings, [], "{at}");
}
