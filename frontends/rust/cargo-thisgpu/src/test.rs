//! `cargo thisgpu test`: what is marked `#[kernel_test]`, each in a launch of one block on a device of its own, with
//! the simulator's checks.
//!
//! The report looks as that of `cargo test`, and like there assertions, overflow checks and `debug_assert!` are on.
//! Functions marked `#[test]` are the host's: `cargo test` runs them, and the tests of one thread as well.

use crate::limits::Limits;
use crate::options::{Compilation, Purpose};
use anyhow::{Result, bail};
use clap::Args;
use thisgpu_build::{Device, Error, Grid, KernelDescription, Module};

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    compilation: Compilation,
    #[command(flatten)]
    limits: Limits,
    /// Only tests whose names contain this.
    filter: Option<String>,
    /// Show the output of tests that pass, too.
    #[arg(long)]
    nocapture: bool,
}

impl Options {
    pub fn run(&self) -> Result<()> {
        let compiled = self.compilation.compile(Purpose::Test)?;
        let is_test = |kernel: &&KernelDescription| kernel.test_threads.is_some();
        let is_wanted = |kernel: &&KernelDescription| {
            self.filter
                .as_ref()
                .is_none_or(|filter| kernel.name.contains(filter))
        };
        let all: Vec<_> = compiled
            .description()
            .kernels
            .iter()
            .filter(is_test)
            .collect();
        let tests: Vec<_> = all.iter().copied().filter(is_wanted).collect();
        println!(
            "\nrunning {} {}",
            tests.len(),
            if tests.len() == 1 { "test" } else { "tests" }
        );
        let mut failures = Vec::new();
        for test in &tests {
            // A fault of one must not be seen by the next, nor what it has left in memory.
            let device = Device::simulator(self.limits.config(true));
            let (failure, output) = outcome(&compiled.load(&device)?, test);
            let should_panic = if test.should_panic {
                " - should panic"
            } else {
                ""
            };
            println!(
                "test {}{should_panic} ... {}",
                test.name,
                if failure.is_some() { "FAILED" } else { "ok" }
            );
            match failure {
                Some(failure) => failures.push((test, failure, output)),
                None if self.nocapture => print!("{output}"),
                None => {}
            }
        }
        if !failures.is_empty() {
            println!("\nfailures:");
            for (test, failure, output) in &failures {
                println!(
                    "\n---- {} ({}) ----\n{output}{failure}",
                    test.name, test.place
                );
            }
        }
        let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {verdict}. {} passed; {} failed; {} filtered out\n",
            tests.len() - failures.len(),
            failures.len(),
            all.len() - tests.len()
        );
        if failures.is_empty() {
            Ok(())
        } else {
            bail!("{} of {} tests failed", failures.len(), tests.len())
        }
    }
}

/// What is wrong, if something is, and what the test printed.
fn outcome(module: &Module, test: &KernelDescription) -> (Option<String>, String) {
    let kernel = match module.kernel(&test.symbol) {
        Ok(kernel) => kernel,
        Err(error) => return (Some(error.to_string()), String::new()),
    };
    let grid = Grid::new([1; 3], [test.test_threads.unwrap_or(1), 1, 1]);
    let (outcome, output) = kernel.launch(grid).run_with_output();
    let failure = match outcome {
        Ok(_) if test.should_panic => Some("test did not panic as expected".to_string()),
        Ok(report) if report.findings.is_empty() => None,
        Ok(report) => Some(
            report
                .findings
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        Err(Error::Panic { .. }) if test.should_panic => None,
        Err(error) => Some(error.to_string()),
    };
    (failure, output)
}
