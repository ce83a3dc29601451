//! Reports in the format of JUnit, which the pages of CI systems show: a suite for each folder, a case for each file.

use anyhow::{Context, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use thisgpu_filetests::report::{FileReport, Outcome};

/// Writes the outcome of files.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, reports: &[FileReport]) -> Result<()> {
    let name = || path.display().to_string();
    let text = report(reports).to_string().with_context(name)?;
    std::fs::write(path, text.replace(NO_CHARACTERS, "\u{fffd}")).with_context(name)
}

/// What XML 1.0 has not and the writer lets through.
const NO_CHARACTERS: [char; 2] = ['\u{fffe}', '\u{ffff}'];

fn report(reports: &[FileReport]) -> Report {
    let mut suites: BTreeMap<String, TestSuite> = BTreeMap::new();
    for file in reports {
        let folder = Path::new(&file.file).parent();
        let folder = folder.map_or_else(String::new, |folder| folder.display().to_string());
        // The name of a suite must not be empty for those who sort by it.
        let folder = if folder.is_empty() {
            ".".into()
        } else {
            folder
        };
        let suite = suites.entry(folder.clone());
        let suite = suite.or_insert_with(|| TestSuite::new(folder.clone()));
        let mut case = case(file);
        case.set_classname(folder);
        suite.add_test_case(case);
    }
    let mut all = Report::new("clif-util test");
    all.set_time(reports.iter().map(time).sum());
    for (_, mut suite) in suites {
        suite.set_time(suite.test_cases.iter().filter_map(|case| case.time).sum());
        all.add_test_suite(suite);
    }
    all
}

fn time(file: &FileReport) -> Duration {
    Duration::from_micros(file.micros)
}

fn case(file: &FileReport) -> TestCase {
    let status = match file.outcome() {
        Outcome::Passed => TestCaseStatus::success(),
        Outcome::Failed => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let first = file.errors.first().map(String::as_str);
            let first = first.and_then(|error| error.lines().next());
            status
                .set_message(first.unwrap_or("run lines fail").to_owned())
                .set_type("failure")
                .set_description(file.errors.join("\n"));
            status
        }
        Outcome::Skipped => {
            let mut status = TestCaseStatus::skipped();
            let reasons: Vec<&str> = file.reasons.keys().map(String::as_str).collect();
            status.set_message(reasons.join("; "));
            status
        }
    };
    let name = Path::new(&file.file).file_name();
    let name = name.map_or_else(|| file.file.clone(), |name| name.display().to_string());
    let mut case = TestCase::new(name, status);
    case.set_time(time(file));
    if !file.prints.is_empty() {
        case.set_system_out(file.prints.join("\n"));
    }
    case
}
