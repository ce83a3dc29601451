//! What came of a run as JSON, and the runs of all shards as one.

use anyhow::{Context, Result};
use fuzz::campaign;
use fuzz::simt;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use thisgpu_filetests::shard::Part;

/// The outcome of a range of seeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// What was made of the seeds: `functions` or `kernels`.
    what: String,
    /// The first seed and the one behind the last.
    seeds: Range<u64>,
    #[serde(flatten)]
    part: Part,
    /// Numbers by name: functions by oracle, calls, instructions by opcode and type, kernels by shape.
    counts: BTreeMap<String, u64>,
    /// What is wrong, by seed.
    failures: BTreeMap<u64, String>,
    /// Seeds that could not be compared, and why.
    not_compared: BTreeMap<u64, String>,
}

impl Summary {
    /// That of random functions.
    pub fn of_functions(seeds: Range<u64>, part: Part, tally: &campaign::Tally) -> Self {
        let mut counts = BTreeMap::from([("calls".to_owned(), tally.calls)]);
        for (oracle, count) in &tally.functions {
            counts.insert(format!("functions compared with the {oracle}"), *count);
        }
        for (opcode, types) in &tally.instructions {
            for (ty, count) in types {
                counts.insert(format!("{opcode}.{ty}"), *count);
            }
        }
        let failures = tally.differences.iter().map(|(seed, difference)| {
            let first = difference.errors.first();
            (*seed, first.cloned().unwrap_or_default())
        });
        Self {
            what: "functions".into(),
            seeds,
            part,
            counts,
            failures: failures.collect(),
            not_compared: tally.without_oracle.iter().cloned().collect(),
        }
    }

    /// That of random kernels.
    pub fn of_kernels(seeds: Range<u64>, part: Part, tally: &simt::campaign::Tally) -> Self {
        let mut counts: BTreeMap<String, u64> = (tally.shapes.iter())
            .map(|(shape, count)| (format!("shape {shape}"), *count))
            .collect();
        for (name, count) in [
            ("kernels", tally.kernels),
            ("launches", tally.launches),
            ("masks", tally.masks),
            ("masks of a part of a warp", tally.partial),
        ] {
            counts.insert(name.into(), count);
        }
        let failures = tally.failures.iter();
        Self {
            what: "kernels".into(),
            seeds,
            part,
            counts,
            failures: failures
                .map(|(seed, _, failure)| (*seed, failure.to_string()))
                .collect(),
            not_compared: BTreeMap::new(),
        }
    }

    /// Writes it to a file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(|| path.display().to_string())
    }

    fn read(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(name)?;
        serde_json::from_str(&text).with_context(|| format!("{}: not from `fuzz --json`", name()))
    }

    /// The summaries of all shards as that of one run.
    ///
    /// # Errors
    /// When a file cannot be read or is none, and when they are not all parts of one run.
    pub fn join(paths: &[PathBuf]) -> Result<Self> {
        let mut parts = paths
            .iter()
            .map(|path| Self::read(path))
            .collect::<Result<Vec<_>>>()?;
        let names = paths.iter().map(|path| path.display().to_string());
        let whole = Part::join(parts.iter().map(|part| &part.part).zip(names));
        let whole = whole.map_err(anyhow::Error::msg)?;
        parts.sort_by_key(|part| part.part.shard);
        let mut parts = parts.into_iter();
        let mut all = parts.next().context("nothing to join")?;
        for part in parts {
            all.seeds.end = part.seeds.end;
            for (what, count) in part.counts {
                *all.counts.entry(what).or_default() += count;
            }
            all.failures.extend(part.failures);
            all.not_compared.extend(part.not_compared);
        }
        all.part = whole;
        Ok(all)
    }

    /// Prints the counts and what failed. Whether nothing did.
    pub fn print(&self) -> bool {
        for (what, count) in &self.counts {
            println!("{count:>12} {what}");
        }
        for (seed, reason) in &self.not_compared {
            println!("seed {seed} could not be compared: {reason}");
        }
        for (seed, error) in &self.failures {
            println!("seed {seed}: {error}");
        }
        println!(
            "seeds {} to {} ({}): {} fail, {} not compared",
            self.seeds.start,
            self.seeds.end.saturating_sub(1),
            self.what,
            self.failures.len(),
            self.not_compared.len()
        );
        self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuzz::catalogue::Catalogue;
    use fuzz::program::Program;
    use thisgpu_filetests::shard::Shard;

    /// A folder that is removed at its end.
    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn shards_joined_are_one_run() {
        let catalogue = Catalogue::new();
        let run = |shard: &str| {
            let shard: Shard = shard.parse().unwrap();
            let (seeds, part) = (
                shard.numbers(40..44),
                Part::new(shard, "test", ["40 to 43"]),
            );
            let tally = campaign::run(&catalogue, seeds.clone(), Program::new, &[], &|_| {});
            Summary::of_functions(seeds, part, &tally)
        };
        let folder = std::env::temp_dir().join(format!("thisgpu-fuzz-{}", std::process::id()));
        let folder = Folder(folder);
        std::fs::create_dir_all(&folder.0).unwrap();
        let mut paths: Vec<PathBuf> = Vec::new();
        for shard in ["3/3", "1/3", "2/3"] {
            paths.push(folder.0.join(shard.replace('/', "-")));
            run(shard).write(&paths[paths.len() - 1]).unwrap();
        }
        let joined = Summary::join(&paths).unwrap();
        assert_eq!(joined, run("1/1"));
        // A part that is missing at the end, at the beginning, and one that is there twice.
        for (wrong, expected) in [
            ([1, 2], "there are 3 parts"),
            ([0, 2], "there are 3 parts"),
            ([1, 1], "both part 1/3"),
        ] {
            let wrong = wrong.map(|index: usize| paths[index].clone());
            let error = Summary::join(&wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
