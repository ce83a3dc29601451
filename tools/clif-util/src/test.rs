//! `clif-util test`: test files, their outcome, and totals.

use crate::options::Settings;
use crate::{Outcome, input, progress};
use anyhow::{Context, Result};
use clap::Args;
use rayon::prelude::*;
use std::path::PathBuf;
use thisgpu_filetests::expectation;
use thisgpu_filetests::file::{TARGET, TestOptions, test_file};
use thisgpu_filetests::find_files;
use thisgpu_filetests::report::{FileReport, Outcome as FileOutcome, Totals};

/// Options of `test`.
#[derive(Args)]
pub struct Options {
    /// Test files, and folders with test files.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Test files made for other targets as if they named this one.
    #[arg(long, value_name = "TARGET", value_parser = [TARGET])]
    force_target: Option<String>,
    #[command(flatten)]
    settings: Settings,
    /// One JSON object a file, then one with the totals.
    #[arg(long)]
    json: bool,
    /// Name every file, not only those that fail.
    #[arg(short, long)]
    verbose: bool,
}

impl Options {
    /// Tests all files and prints what failed, then the totals.
    pub fn run(&self) -> Result<Outcome> {
        let mut files = Vec::new();
        for path in &self.paths {
            files.extend(find_files(path).with_context(|| path.display().to_string())?);
        }
        let options = TestOptions {
            force_target: self.force_target.is_some(),
            settings: self.settings.settings.clone(),
            bless: expectation::blessing(),
        };
        let reports: Vec<FileReport> = progress::drawn(
            progress::FILES,
            |_| {},
            |bar| {
                bar.set_length(files.len() as u64);
                let test = |file: &PathBuf| {
                    let report = test_file(file, &options);
                    bar.inc(1);
                    report
                };
                files.par_iter().map(test).collect()
            },
        );
        let mut totals = Totals::default();
        for report in &reports {
            totals.add(report);
            if self.json {
                input::print_line(serde_json::to_string(report)?)?;
            } else {
                self.print(report)?;
            }
        }
        if self.json {
            input::print_line(serde_json::to_string(&totals)?)?;
        } else {
            for (reason, count) in &totals.reasons {
                input::print_line(format_args!("skipped {count}: {reason}"))?;
            }
            input::print_line(format_args!("run lines: {}", totals.lines))?;
            input::print_line(totals.files)?;
        }
        Ok(Outcome::of(&totals))
    }

    fn print(&self, report: &FileReport) -> Result<()> {
        for text in &report.prints {
            input::print_line(format_args!("{text}"))?;
        }
        for error in &report.errors {
            input::print_line(format_args!("{error}"))?;
        }
        let outcome = match report.outcome() {
            FileOutcome::Passed => "ok",
            FileOutcome::Failed => "FAILED",
            FileOutcome::Skipped => "skipped",
        };
        if self.verbose || report.outcome() == FileOutcome::Failed {
            input::print_line(format_args!("{} ... {outcome}", report.file))?;
        }
        Ok(())
    }
}
