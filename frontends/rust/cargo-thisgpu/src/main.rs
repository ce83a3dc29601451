//! `cargo thisgpu`: makes, builds, runs, tests and debugs crates of kernels in Rust.
//!
//! Exit status: 0 success, 1 failure of what was asked, 2 a wrong command line.

#![forbid(unsafe_code)]

mod arguments;
mod build;
mod debug;
mod launch;
mod limits;
mod new;
mod options;
mod run;
mod test;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// As cargo calls it: the subcommand's name is the first argument.
#[derive(Parser)]
#[command(name = "cargo", bin_name = "cargo")]
enum Cargo {
    Thisgpu(Thisgpu),
}

/// Kernels in ordinary Rust, on thisgpu's simulator.
#[derive(clap::Args)]
#[command(version)]
struct Thisgpu {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a program with a crate of kernels, or such a crate alone.
    New(new::Options),
    /// Compile a crate of kernels to an object.
    Build(build::Options),
    /// Launch a kernel with the arguments given.
    Run(run::Options),
    /// Run the tests for the device on the simulator.
    Test(test::Options),
    /// Stop a kernel or a test, look into it, and go backwards.
    Debug(debug::Options),
}

fn main() -> ExitCode {
    let Cargo::Thisgpu(arguments) = Cargo::parse();
    let outcome = match arguments.command {
        Command::New(options) => options.run(),
        Command::Build(options) => options.run(),
        Command::Run(options) => options.run(),
        Command::Test(options) => options.run(),
        Command::Debug(options) => options.run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = format!("{error:#}");
            // Errors of a translation are a list of lines that say so themselves.
            if text.starts_with("error: ") {
                eprintln!("{text}");
            } else {
                eprintln!("error: {text}");
            }
            ExitCode::FAILURE
        }
    }
}
