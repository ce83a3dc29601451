//! `clif-util interpret FILES`: the run and print lines of CLIF files, on Cranelift's interpreter.

use crate::options::DebugOutput;
use crate::{Outcome, run_lines};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use thisgpu_filetests::interpret;

/// Options of `interpret`.
#[derive(Args)]
pub struct Options {
    /// CLIF files with `; run:` and `; print:` lines, and folders with such files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub debug: DebugOutput,
    /// Name every file, every line that passed and every function without lines.
    #[arg(short, long)]
    verbose: bool,
}

impl Options {
    /// Interprets the lines of all files, and prints what they print, what failed and what did not run.
    pub fn run(self) -> Result<Outcome> {
        run_lines::run_all(&self.files, self.verbose, |file, report| {
            interpret::run_file(file, report);
            Ok(())
        })
    }
}
