//! `clif-util test`: test files, their outcome, and totals; and the reports of runs that shared the work.

mod junit;
mod reports;

use crate::options::{DebugOutput, Settings};
use crate::{Outcome, input, messages, progress, run_lines};
use anyhow::Result;
use clap::Args;
use cranelift_thisgpu::compile::Timings;
use rayon::prelude::*;
use reports::{End, Times};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use thisgpu_filetests::expectation;
use thisgpu_filetests::file::{Stepped, TARGET, TestOptions, test_file};
use thisgpu_filetests::find_files;
use thisgpu_filetests::report::{FileReport, Outcome as FileOutcome, Totals};
use thisgpu_filetests::report_path;
use thisgpu_filetests::shard::{Part, Shard};

/// Options of `test`.
#[derive(Args)]
#[command(after_help = "Examples:
  clif-util test filetests                       all files below a folder
  clif-util test filetests/lower -v --set sched=serial
  clif-util test filetests --stepped 20             every launch in the debugger too
  cat f.clif | clif-util test -
  clif-util test filetests --shard 2/4 --json > 2.json      the second of four machines
  clif-util test --join 1.json 2.json 3.json 4.json --junit all.xml
Exit status: 0 nothing failed, 1 something failed or a folder has no tests, 2 a wrong command line.")]
pub struct Options {
    /// Test files, and folders with test files; `-` is standard input.
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
    /// Write the outcome as JUnit XML too, which the pages of CI systems show.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Test part I of N of the files, counted from 1. The parts take about the same time if that of the files is known.
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// What `--json` printed earlier: how long the files take. Every part needs the same; without it sizes decide.
    #[arg(long, value_name = "REPORT", requires = "shard")]
    times: Vec<PathBuf>,
    /// The paths are what `--json` printed of all parts: report them as one run, and test nothing.
    #[arg(long, conflicts_with_all = ["shard", "force_target", "settings", "stepped", "time_passes"])]
    join: bool,
    /// Name every file, not only those that fail.
    #[arg(short, long)]
    verbose: bool,
    /// Make every launch in the debugger too, an instruction at a time, and go back and forward from so many random
    /// points of it: memory, counts, faults and findings have to be the same. Nothing is timed then.
    #[arg(long, value_name = "POINTS")]
    stepped: Option<u32>,
    /// First seed of the points.
    #[arg(long, value_name = "S", default_value_t = 1, requires = "stepped")]
    seed: u64,
    /// Print the time that each pass takes, of all files together.
    #[arg(short = 'T', long)]
    time_passes: bool,
    #[command(flatten)]
    pub debug: DebugOutput,
}

impl Options {
    /// Tests all files, or reads what was found of them, and prints what failed, then the totals.
    pub fn run(&self) -> Result<Outcome> {
        self.junit.as_deref().map_or(Ok(()), report_path::check)?;
        if self.join {
            let all = reports::join(&self.paths)?;
            let totals = self.report(&all.files, all.part, &all.empty, None)?;
            return Ok(self.outcome(&totals, &all.empty));
        }
        input::check_inputs(&self.paths)?;
        let mut files = Vec::new();
        let mut empty = Vec::new();
        for path in &self.paths {
            let found = find_files(path)?;
            if found.is_empty() {
                empty.push(path.clone());
            }
            files.extend(found);
        }
        // A file that is named twice is tested once.
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.clone()));
        let (files, part) = self.part(files)?;
        let options = TestOptions {
            force_target: self.force_target.is_some(),
            settings: self.settings.settings.clone(),
            bless: expectation::blessing(),
            timed: self.time_passes,
            stepped: self.stepped.map(|points| Stepped {
                points,
                seed: self.seed,
                tally: Arc::default(),
            }),
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
        let totals = self.report(&reports, part, &empty, options.stepped.as_ref())?;
        Ok(self.outcome(&totals, &empty))
    }

    /// The files of this part of the run.
    fn part(&self, files: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Part)> {
        let shard = self.shard.unwrap_or(Shard::WHOLE);
        let costs = match self.shard {
            Some(_) => Times::read(&self.times)?.of(&files),
            None => HashMap::new(),
        };
        let cost = |file: &PathBuf| costs.get(file).copied().unwrap_or_default();
        // Parts are of one run only if their tests are the same; a file that cannot be read fails when it is run.
        let divided = self.shard.map_or(&[][..], |_| &files);
        let contents = divided
            .iter()
            .map(|file| fs::read(file).unwrap_or_default());
        let options = format!("{:?}", (&self.force_target, self.stepped, self.seed));
        let work = (files.iter())
            .map(|file| format!("{} {}", file.display(), cost(file)))
            .chain(self.settings.settings.iter().cloned())
            .chain([options])
            .map(String::into_bytes)
            .chain(contents);
        let part = Part::new(shard, "test", work);
        Ok((shard.items(files, cost), part))
    }

    /// Tells of paths without a test, which are failures.
    fn outcome(&self, totals: &Totals, empty: &[PathBuf]) -> Outcome {
        let errors: Vec<_> = empty.iter().map(|path| run_lines::no_files(path)).collect();
        messages::print_errors(&errors);
        match empty {
            [] => Outcome::of(totals),
            _ => Outcome::Failure,
        }
    }

    /// Prints what was found, and writes what is to be written of it; gives the totals.
    fn report(
        &self,
        reports: &[FileReport],
        part: Part,
        empty: &[PathBuf],
        stepped: Option<&Stepped>,
    ) -> Result<Totals> {
        let mut totals = Totals::default();
        for report in reports {
            totals.add(report);
            if self.json {
                input::print_line(serde_json::to_string(report)?)?;
            } else {
                self.print(report)?;
            }
        }
        if self.json {
            let end = End {
                totals: totals.clone(),
                part,
                empty: empty.to_vec(),
            };
            input::print_line(serde_json::to_string(&end)?)?;
        } else {
            for (reason, count) in &totals.reasons {
                input::print_line(format_args!("skipped {count}: {reason}"))?;
            }
            input::print_line(format_args!("run lines: {}", totals.lines))?;
            input::print_line(totals.files)?;
            if let Some(Stepped { tally, seed, .. }) = stepped {
                input::print_line(format_args!("seed {seed}: {tally}"))?;
            }
        }
        if self.time_passes {
            let mut times = Timings::default();
            for report in reports {
                report.timings.iter().for_each(|more| times.add(more));
            }
            messages::report(times)?;
        }
        if let Some(path) = &self.junit {
            junit::write(path, reports)?;
        }
        let (failed, all) = (totals.files.failed, reports.len());
        if failed > 0 {
            let all = messages::counted(all as u64, "file");
            messages::print_errors(&[format!("{failed} of {all} failed")]);
        }
        Ok(totals)
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
