//! Reports of `test --json`: read again, for the times of files and to put those of shards together.
//!
//! A report is one JSON object a line: one for each file, then one with the totals, which says which part of the files
//! the run was.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use thisgpu_filetests::report::{FileReport, Totals};
use thisgpu_filetests::shard::Part;

/// The last line of a report.
#[derive(Serialize, Deserialize)]
pub struct End {
    #[serde(flatten)]
    pub totals: Totals,
    /// Which part of the files it was, and of which.
    #[serde(flatten)]
    pub part: Part,
    /// Paths without a test, which are failures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty: Vec<PathBuf>,
}

/// A report as it was written.
struct Report {
    files: Vec<FileReport>,
    end: End,
}

impl Report {
    /// # Errors
    /// When the file cannot be read, is no report, ends before its totals, so that the run did not end, or has other
    /// totals than its files.
    fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| name.to_string())?;
        let mut lines: Vec<(usize, &str)> = (text.lines().enumerate())
            .filter(|(_, line)| !line.trim().is_empty())
            .collect();
        let Some((number, last)) = lines.pop() else {
            bail!("{name} is empty: no report of `test --json`");
        };
        let end: End = serde_json::from_str(last).with_context(|| {
            format!(
                "{name}:{}: no totals; did the run that wrote it end?",
                number + 1
            )
        })?;
        let files = lines.into_iter().map(|(number, line)| {
            serde_json::from_str(line).with_context(|| wrong_line(path, number))
        });
        let files: Vec<FileReport> = files.collect::<Result<_>>()?;
        let mut totals = Totals::default();
        files.iter().for_each(|file| totals.add(file));
        ensure!(
            totals == end.totals,
            "{name}: its totals are those of other files; is a line missing?"
        );
        Ok(Self { files, end })
    }
}

fn wrong_line(path: &Path, number: usize) -> String {
    format!(
        "{}:{}: not a line of `test --json`",
        path.display(),
        number + 1
    )
}

/// What the runs of all shards found, as one run would have: files by their names, and paths without a test.
pub struct Joined {
    pub files: Vec<FileReport>,
    pub part: Part,
    pub empty: Vec<PathBuf>,
}

/// Joins reports.
///
/// # Errors
/// When a report cannot be read, and when they are not all parts of one run.
pub fn join(paths: &[PathBuf]) -> Result<Joined> {
    let reports = (paths.iter())
        .map(|path| Report::read(path))
        .collect::<Result<Vec<_>>>()?;
    let names = paths.iter().map(|path| path.display().to_string());
    let part = Part::join(reports.iter().map(|report| &report.end.part).zip(names));
    let part = part.map_err(anyhow::Error::msg)?;
    // Every part has looked at all paths.
    let empty = reports.first().map(|report| report.end.empty.clone());
    let mut files: Vec<FileReport> = reports.into_iter().flat_map(|of| of.files).collect();
    files.sort_by(|a, b| a.file.cmp(&b.file));
    Ok(Joined {
        files,
        part,
        empty: empty.unwrap_or_default(),
    })
}

/// How long files take.
#[derive(Default)]
pub struct Times(HashMap<String, u64>);

impl Times {
    /// The times of earlier reports; of several times of a file the longest.
    ///
    /// # Errors
    /// When a report cannot be read.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut times = HashMap::new();
        for path in paths {
            for file in Report::read(path)?.files {
                let time = times.entry(file.file).or_default();
                *time = file.micros.max(*time);
            }
        }
        Ok(Self(times))
    }

    /// Microseconds of each of `files`. Those that have no time are estimated from their sizes, at the rate of those
    /// that have; where none has a time, sizes are what counts.
    pub fn of(&self, files: &[PathBuf]) -> HashMap<PathBuf, u64> {
        let size = |file: &PathBuf| std::fs::metadata(file).map_or(0, |data| data.len());
        let known = |file: &PathBuf| self.0.get(&file.display().to_string()).copied();
        let (time, bytes) = (files.iter())
            .filter_map(|file| Some((known(file)?, size(file))))
            .fold((0, 0), |(time, bytes), (t, b)| {
                (time + u128::from(t), bytes + u128::from(b))
            });
        let at_their_rate = |own: u64| match bytes {
            0 => own,
            all => (u128::from(own) * time / all) as u64,
        };
        let cost = |file: &PathBuf| known(file).unwrap_or_else(|| at_their_rate(size(file)));
        files
            .iter()
            .map(|file| (file.clone(), cost(file)))
            .collect()
    }
}
