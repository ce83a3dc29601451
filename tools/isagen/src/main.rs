//! `isagen`: checks, compares and prints instruction set descriptions.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use isagen::diagnostic::render;
use isagen::source::SourceMap;

/// Reads instruction set descriptions in the notation of the vendor's documents.
///
/// Without a command it prints the whole instruction table of the description in the workspace.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Reports every mistake of the files, taken as one description.
    Check {
        /// Files, or folders of `.isa` files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Does what was asked; false if something was found wrong.
fn run(arguments: Arguments) -> Result<bool> {
    match arguments.command {
        Some(Command::Check { files }) => check(&files),
        None => Ok(true),
    }
}

fn check(paths: &[PathBuf]) -> Result<bool> {
    let mut sources = SourceMap::default();
    for path in paths {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        sources.add(path.display().to_string(), text);
    }
    let (machine, diagnostics) = isagen::resolve::load_with_warnings(&sources);
    for d in &diagnostics {
        println!("{}\n", render(d, &sources, false));
    }
    Ok(machine.is_some())
}
