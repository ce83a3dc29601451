//! `clif-util run FILES`: the run and print lines of CLIF files, on the simulator.

use crate::options::{DebugOutput, Settings};
use crate::{Outcome, run_lines};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use thisgpu_filetests::execute;

/// Options of `run`.
#[derive(Args)]
pub struct Options {
    /// CLIF files with `; run:` and `; print:` lines, and folders with such files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Name every file, every line that passed and every function without lines.
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    pub debug: DebugOutput,
}

impl Options {
    /// Runs the lines of all files, and prints what they print, what failed and what did not run.
    pub fn run(self) -> Result<Outcome> {
        run_lines::run_all(&self.files, self.verbose, |file, report| {
            let settings = self.settings.over(file)?;
            execute::run_file(file, &settings, true, None, report);
            Ok(())
        })
    }
}
