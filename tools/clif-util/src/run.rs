//! `clif-util run FILES`: the run and print lines of CLIF files, on the simulator.

use crate::options::{DebugOutput, Settings};
use crate::{Outcome, input, progress, source};
use anyhow::Result;
use clap::Args;
use indicatif::ProgressBar;
use std::path::PathBuf;
use thisgpu_filetests::execute;
use thisgpu_filetests::report::{FileReport, Totals};

/// Options of `run`.
#[derive(Args)]
pub struct Options {
    /// CLIF files with `; run:` and `; print:` lines.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    pub debug: DebugOutput,
}

impl Options {
    /// Runs the lines of all files, and prints what they print and what failed.
    pub fn run(self) -> Result<Outcome> {
        progress::drawn(progress::FILES, |_| {}, |bar| self.run_files(bar))
    }

    /// [`Options::run`], with a bar to move.
    fn run_files(&self, bar: &ProgressBar) -> Result<Outcome> {
        bar.set_length(self.files.len() as u64);
        let mut totals = Totals::default();
        for path in &self.files {
            let file = source::read(path, &[])?;
            let settings = self.settings.over(&file)?;
            let mut report = FileReport::new(&file.name);
            execute::run_file(&file, &settings, true, &mut report);
            bar.suspend(|| input::print_report(&report))?;
            totals.add(&report);
            bar.inc(1);
        }
        bar.suspend(|| input::print_line(totals.lines))?;
        Ok(Outcome::of(&totals))
    }
}
