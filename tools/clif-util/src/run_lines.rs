//! The run and print lines of CLIF files, as `run` and `interpret` carry them out.

use crate::{Outcome, input, messages, progress, source};
use anyhow::Result;
use cranelift_thisgpu::compile::SourceFile;
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};
use thisgpu_filetests::find_files;
use thisgpu_filetests::report::{FileReport, NO_RUN_LINES, Totals};

/// Carries out the lines of all files with `run`, and prints what they print, what failed and what did not run; with
/// `verbose` what passed too. A file that cannot be read or run does not keep the others from it.
pub fn run_all(
    paths: &[PathBuf],
    verbose: bool,
    run: impl Fn(&SourceFile, &mut FileReport) -> Result<()>,
) -> Result<Outcome> {
    input::check_inputs(paths)?;
    progress::drawn(
        progress::FILES,
        |_| {},
        |bar| run_files(paths, verbose, run, bar),
    )
}

/// [`run_all`], with a bar to move.
fn run_files(
    paths: &[PathBuf],
    verbose: bool,
    run: impl Fn(&SourceFile, &mut FileReport) -> Result<()>,
    bar: &ProgressBar,
) -> Result<Outcome> {
    let mut totals = Totals::default();
    let mut failed = false;
    for path in paths {
        let files = find_files(path)?;
        bar.inc_length(files.len() as u64);
        if files.is_empty() {
            bar.suspend(|| messages::print_errors(&[no_files(path)]));
            failed = true;
        }
        for path in files {
            match run_file(&path, &run) {
                Ok((file, report)) => {
                    bar.suspend(|| print(&file, &report, verbose))?;
                    totals.add(&report);
                }
                Err(error) => {
                    bar.suspend(|| messages::print_error(&error));
                    failed = true;
                }
            }
            bar.inc(1);
        }
    }
    for (reason, count) in &totals.reasons {
        if reason != NO_RUN_LINES {
            input::print_line(format_args!("skipped {count}: {reason}"))?;
        }
    }
    input::print_line(totals.lines)?;
    Ok(if failed {
        Outcome::Failure
    } else {
        Outcome::of(&totals)
    })
}

/// That a folder has no files to work on.
pub fn no_files(folder: &Path) -> String {
    format!(
        "{}: there is no file of the name *.clif in this folder or below it",
        folder.display()
    )
}

fn run_file(
    path: &Path,
    run: &impl Fn(&SourceFile, &mut FileReport) -> Result<()>,
) -> Result<(SourceFile, FileReport)> {
    let file = source::read(path, &[])?;
    let mut report = FileReport::new(&file.name);
    run(&file, &mut report)?;
    report.skip_if_empty();
    Ok((file, report))
}

/// Prints what came of a file's lines.
fn print(file: &SourceFile, report: &FileReport, verbose: bool) -> Result<()> {
    if verbose {
        input::print_line(&file.name)?;
    }
    report.prints.iter().try_for_each(input::print_line)?;
    if verbose {
        let mut ran = report.ran.iter();
        ran.try_for_each(|line| input::print_line(format_args!("{line} ... ok")))?;
        for function in &file.functions {
            if function
                .run_lines(&file.name)
                .is_ok_and(|lines| lines.is_empty())
            {
                let (line, name) = (function.line, function.name());
                input::print_line(format_args!(
                    "{line}: %{name} ... not run, it has no run lines"
                ))?;
            }
        }
    }
    if report.reasons.contains_key(NO_RUN_LINES) {
        messages::print_warnings(&[format!(
            "{}: {NO_RUN_LINES}, nothing is run; write `; run: %NAME(ARGUMENTS) == RESULT` below a function",
            file.name
        )]);
    }
    messages::print_errors(&report.errors);
    Ok(())
}
