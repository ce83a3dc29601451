//! `clif-util interpret FILES`: the run and print lines of CLIF files, on Cranelift's interpreter.

use crate::options::DebugOutput;
use crate::{Outcome, input, source};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use thisgpu_filetests::report::{FileReport, Totals};
use thisgpu_filetests::{find_files, interpret};

/// Options of `interpret`.
#[derive(Args)]
pub struct Options {
    /// CLIF files, and folders with CLIF files.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub debug: DebugOutput,
    /// Name every file.
    #[arg(short, long)]
    verbose: bool,
}

impl Options {
    /// Interprets the lines of all files, and prints what they print and what failed.
    pub fn run(self) -> Result<Outcome> {
        let mut totals = Totals::default();
        for path in &self.files {
            for path in find_files(path)? {
                let file = source::read(&path, &[])?;
                if self.verbose {
                    input::print_line(&file.name)?;
                }
                let mut report = FileReport::new(&file.name);
                interpret::run_file(&file, &mut report);
                input::print_report(&report)?;
                totals.add(&report);
            }
        }
        input::print_line(totals.lines)?;
        Ok(Outcome::of(&totals))
    }
}
