//! What came out of the tests: per file, and the totals.

use cranelift_thisgpu::compile::Timings;
use cranelift_thisgpu::unstable::clif::source::RunLine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Why a file is skipped whose functions have neither `; run:` nor `; print:` lines.
pub const NO_RUN_LINES: &str = "no run lines";

/// The outcome of a file. Counts are those of run lines; other checks show up in `errors` only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// Name as it was given.
    pub file: String,
    /// Run lines with the right result.
    pub passed: usize,
    /// Run lines with a wrong result or a fault.
    pub failed: usize,
    /// Run lines that were not tried.
    pub skipped: usize,
    /// Why they were not tried, with their number; for a file without run lines why it was skipped, with 1.
    pub reasons: BTreeMap<String, usize>,
    /// What failed, one text each.
    pub errors: Vec<String>,
    /// What print lines print.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prints: Vec<String>,
    /// Checks that are no run lines and passed.
    pub checks: usize,
    /// Microseconds that the file took, compilation and simulation together.
    pub micros: u64,
    /// The lines that passed, as `LINE: COMMAND`.
    #[serde(skip)]
    pub ran: Vec<String>,
    /// Time spent in the passes of the compiler, if it is to be counted.
    #[serde(skip)]
    pub timings: Option<Timings>,
}

/// Outcome of a file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something was checked and nothing failed.
    Passed,
    /// Something failed.
    Failed,
    /// Nothing was checked.
    Skipped,
}

impl FileReport {
    /// An empty report.
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            ..Self::default()
        }
    }

    /// Counts a run line with the right result.
    pub fn pass(&mut self, line: &RunLine) {
        self.passed += 1;
        self.ran.push(format!("{}: {}", line.line, line.command));
    }

    /// Adds the time of a compiler, if it is to be counted.
    pub fn add_timings(&mut self, timings: &Timings) {
        if let Some(sum) = &mut self.timings {
            sum.add(timings);
        }
    }

    /// Says that the file has no run lines, if nothing else was said about it.
    pub fn skip_if_empty(&mut self) {
        if self.passed + self.failed + self.skipped + self.errors.len() == 0 {
            self.skip(NO_RUN_LINES, 0);
        }
    }

    /// Counts `lines` run lines as not tried.
    pub fn skip(&mut self, reason: impl fmt::Display, lines: usize) {
        self.skipped += lines;
        *self.reasons.entry(reason.to_string()).or_default() += lines.max(1);
    }

    /// Counts `lines` run lines as failed for one reason.
    pub fn fail(&mut self, lines: usize, error: impl fmt::Display) {
        self.failed += lines;
        self.errors.push(error.to_string());
    }

    /// The file's outcome.
    pub fn outcome(&self) -> Outcome {
        if !self.errors.is_empty() || self.failed > 0 {
            Outcome::Failed
        } else if self.passed + self.checks > 0 || self.reasons.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Skipped
        }
    }
}

/// Counts over all files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Numbers of files.
    pub files: Counts,
    /// Numbers of run lines.
    pub lines: Counts,
    /// Why run lines, or files without any, were skipped.
    pub reasons: BTreeMap<String, usize>,
}

/// How many passed, failed, were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Skipped.
    pub skipped: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

impl Totals {
    /// Adds a file.
    pub fn add(&mut self, report: &FileReport) {
        match report.outcome() {
            Outcome::Passed => self.files.passed += 1,
            Outcome::Failed => self.files.failed += 1,
            Outcome::Skipped => self.files.skipped += 1,
        }
        self.lines.passed += report.passed;
        self.lines.failed += report.failed;
        self.lines.skipped += report.skipped;
        for (reason, count) in &report.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_skipped_only_if_nothing_was_checked() {
        let mut report = FileReport::new("x.clif");
        report.skip("f128", 3);
        assert_eq!(report.outcome(), Outcome::Skipped);
        report.passed = 1;
        assert_eq!(report.outcome(), Outcome::Passed);
        report.errors.push("line 3".into());
        assert_eq!(report.outcome(), Outcome::Failed);
        let mut totals = Totals::default();
        totals.add(&report);
        assert_eq!(
            totals.files,
            Counts {
                passed: 0,
                failed: 1,
                skipped: 0
            }
        );
        assert_eq!(
            totals.lines,
            Counts {
                passed: 1,
                failed: 0,
                skipped: 3
            }
        );
        assert_eq!(totals.reasons["f128"], 3);
    }
}
