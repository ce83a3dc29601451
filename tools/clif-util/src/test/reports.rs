//! Reports of `test --json`: read again, for the times of files and to put those of shards together.
//!
//! A report is one JSON object a line: one for each file, then one with the totals, which says which part of the files
//! the run was.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use thisgpu_filetests::report::{FileReport, Totals};
use thisgpu_filetests::shard::Shard;

/// The last line of a report.
#[derive(Serialize, Deserialize)]
pub struct End {
    #[serde(flatten)]
    pub totals: Totals,
    /// Which part of the files it was; none if all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
}

/// A report as it was written.
struct Report {
    files: Vec<FileReport>,
    shard: Shard,
}

impl Report {
    /// # Errors
    /// When the file cannot be read, is no report, or ends before its totals: the run did not end.
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
        let shard = end.shard.as_deref().map_or(Ok(Shard::WHOLE), str::parse);
        let shard = shard
            .map_err(anyhow::Error::msg)
            .with_context(|| wrong_line(path, number))?;
        let files = lines.into_iter().map(|(number, line)| {
            serde_json::from_str(line).with_context(|| wrong_line(path, number))
        });
        Ok(Self {
            files: files.collect::<Result<_>>()?,
            shard,
        })
    }
}

fn wrong_line(path: &Path, number: usize) -> String {
    format!(
        "{}:{}: not a line of `test --json`",
        path.display(),
        number + 1
    )
}

/// What the runs of all shards found, as one run would have: by names of files.
///
/// # Errors
/// When a report cannot be read, when a file is in two, or when a part is missing.
pub fn join(paths: &[PathBuf]) -> Result<Vec<FileReport>> {
    let mut files: BTreeMap<String, (FileReport, &Path)> = BTreeMap::new();
    let mut shards: BTreeMap<Shard, &Path> = BTreeMap::new();
    for path in paths {
        let report = Report::read(path)?;
        if let Some(other) = shards.insert(report.shard, path) {
            bail!(
                "{} and {} are both part {}",
                other.display(),
                path.display(),
                report.shard
            );
        }
        for file in report.files {
            if let Some((file, other)) = files.insert(file.file.clone(), (file, path)) {
                bail!(
                    "{} is in {} and in {}",
                    file.file,
                    other.display(),
                    path.display()
                );
            }
        }
    }
    let counts: Vec<u32> = shards.keys().map(|shard| shard.count()).collect();
    let (first, all) = (counts[0], counts.len());
    ensure!(
        counts.iter().all(|&count| count == first),
        "the reports are parts of different divisions: {}",
        listed(&shards)
    );
    ensure!(
        all == first as usize,
        "there are {first} parts, and reports of {all}: {}",
        listed(&shards)
    );
    Ok(files.into_values().map(|(file, _)| file).collect())
}

fn listed(shards: &BTreeMap<Shard, &Path>) -> String {
    let shards: Vec<String> = shards.keys().map(ToString::to_string).collect();
    shards.join(", ")
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
