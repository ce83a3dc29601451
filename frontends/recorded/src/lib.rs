//! Test suites of others, run one test a process, and the record of what comes of them.
//!
//! A test binary that has a suite compiled into it starts itself again for each of the suite's tests, on all threads of
//! the host. A test in a process of its own takes no other one with it, and says by itself whether it launched a
//! kernel: a test that passes without one proves nothing, so the record keeps it apart, with a reason.
//!
//! The binary's own tests, those of its module `recorded`, are none of the suite.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, io, thread};

/// Set to any value, the record is written instead of compared.
pub const BLESS_VARIABLE: &str = "CRANELIFT_TEST_BLESS";

/// What a test without a launch, or one that fails, has if nobody has said why.
const UNKNOWN: &str = "for no reason that is known";

/// The binary's module that is none of the suite.
const OWN: &str = "recorded::";

/// What came of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It passed, and launched a kernel.
    Launched,
    /// It passed without a launch, for this reason.
    Nothing(&'static str),
    /// Its author leaves it out.
    Ignored,
    /// It failed, for this reason.
    Failed(&'static str),
}

impl Outcome {
    fn heading(self) -> String {
        match self {
            Outcome::Launched => "passed with a launch".to_owned(),
            Outcome::Nothing(reason) => format!("passed without a launch: {reason}"),
            Outcome::Ignored => "ignored by its author".to_owned(),
            Outcome::Failed(reason) => format!("failed: {reason}"),
        }
    }
}

/// Parts of names of tests, or of what they write to standard error, and a reason for those that have one; the first
/// counts.
pub type Reasons = &'static [(&'static str, &'static str)];

/// The suite in this binary.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// What it is called in the record.
    pub title: &'static str,
    /// The record's path.
    pub record: &'static str,
    /// What is set in the environment of every test.
    pub environment: &'static [(&'static str, &'static str)],
    /// What a test writes to standard error at a launch.
    pub launched: &'static str,
    /// Why tests launch nothing.
    pub without_launch: Reasons,
    /// Why tests fail.
    pub failing: Reasons,
}

impl Suite {
    /// The names of the tests, in order.
    ///
    /// # Errors
    /// When the binary does not start.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let output = this()?.args(["--list", "--format=terse"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let names = names.filter(|name| !name.starts_with(OWN));
        Ok(names.map(str::to_owned).collect())
    }

    /// What a test leaves, run with more in its environment.
    ///
    /// # Errors
    /// When the binary does not start.
    pub fn run(&self, name: &str, more: &[(&str, &str)]) -> io::Result<Output> {
        this()?
            .args(["--exact", "--nocapture", "--test-threads=1", name])
            .envs(self.environment.iter().copied())
            .envs(more.iter().copied())
            .output()
    }

    /// What came of a test that has left this.
    pub fn outcome(&self, name: &str, output: &Output) -> Outcome {
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let reason = |reasons: Reasons| {
            let is_it = |part: &str| name.contains(part) || errors.contains(part);
            let found = reasons.iter().find(|(part, _)| is_it(part));
            found.map_or(UNKNOWN, |(_, reason)| reason)
        };
        if !output.status.success() {
            Outcome::Failed(reason(self.failing))
        } else if said.contains("1 ignored") {
            Outcome::Ignored
        } else if errors.contains(self.launched) {
            Outcome::Launched
        } else {
            Outcome::Nothing(reason(self.without_launch))
        }
    }

    /// What came of all tests, with more in their environment.
    ///
    /// # Errors
    /// When the binary does not start.
    pub fn outcomes(&self, more: &[(&str, &str)]) -> io::Result<BTreeMap<Outcome, Vec<String>>> {
        let found = on_all_threads(self.names()?, |name| {
            let output = self.run(name, more)?;
            io::Result::Ok(self.outcome(name, &output))
        });
        let mut outcomes = BTreeMap::<Outcome, Vec<String>>::new();
        for (name, outcome) in found {
            outcomes.entry(outcome?).or_default().push(name);
        }
        Ok(outcomes)
    }

    /// Runs all tests, and compares with the record, or writes it if [`BLESS_VARIABLE`] is set.
    ///
    /// # Errors
    /// What is not as recorded, and tests without a reason, in words.
    pub fn compare(&self) -> Result<(), String> {
        let outcomes = self.outcomes(&[]).map_err(|error| error.to_string())?;
        for outcome in [Outcome::Nothing(UNKNOWN), Outcome::Failed(UNKNOWN)] {
            if let Some(names) = outcomes.get(&outcome) {
                return Err(format!("{}:\n{}", outcome.heading(), names.join("\n")));
            }
        }
        let mut text = format!("# {}: what comes of each test.\n", self.title);
        for (outcome, names) in outcomes {
            let _ = writeln!(text, "\n## {}: {}", outcome.heading(), names.len());
            for name in names {
                let _ = writeln!(text, "{name}");
            }
        }
        if env::var_os(BLESS_VARIABLE).is_some() {
            return fs::write(self.record, &text).map_err(|error| error.to_string());
        }
        let recorded = self.recorded()?;
        let changed = differences(&recorded, &text);
        match changed.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "other results than recorded:\n{}",
                changed.join("\n")
            )),
        }
    }

    /// The names that the record has under headings that begin so.
    ///
    /// # Errors
    /// When there is no record.
    pub fn recorded_names(&self, heading: &str) -> Result<Vec<String>, String> {
        let recorded = self.recorded()?;
        let parts = recorded
            .split("\n## ")
            .filter(|part| part.starts_with(heading));
        let names = parts.flat_map(|part| part.lines().skip(1));
        Ok(names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect())
    }

    fn recorded(&self) -> Result<String, String> {
        let text = fs::read_to_string(self.record);
        text.map_err(|error| format!("{}: {error}", self.record))
    }
}

fn this() -> io::Result<Command> {
    Ok(Command::new(env::current_exe()?))
}

/// What comes of each name, on as many threads as the host has; in the order of the names.
pub fn on_all_threads<T: Send>(
    names: Vec<String>,
    of: impl Fn(&str) -> T + Sync,
) -> Vec<(String, T)> {
    let queue = Mutex::new(names.into_iter());
    let found = Mutex::new(Vec::new());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(name) = next() {
                    let outcome = of(&name);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push((name, outcome));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

/// The tests that have other headings in one record than in the other.
fn differences(recorded: &str, now: &str) -> Vec<String> {
    let [recorded, now] = [recorded, now].map(headings);
    let names = recorded
        .keys()
        .chain(now.keys().filter(|name| !recorded.contains_key(*name)));
    let changed = names.filter(|name| recorded.get(*name) != now.get(*name));
    changed
        .map(|name| {
            let of = |record: &BTreeMap<&str, &str>| match record.get(name) {
                Some(heading) => format!("`{heading}`"),
                None => "absent".to_owned(),
            };
            format!("{name}: {} was {}", of(&now), of(&recorded))
        })
        .collect()
}

/// By test the heading that it stands under.
fn headings(record: &str) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    let mut heading = "";
    for line in record.lines() {
        match line.strip_prefix("## ") {
            Some(next) => heading = next.rsplit_once(": ").map_or(next, |(text, _)| text),
            None if line.is_empty() || line.starts_with('#') => {}
            None => {
                found.insert(line, heading);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_under_another_heading_is_a_difference() {
        let record = "# T.\n\n## passed with a launch: 2\na::b\na::c\n\n## failed: why: 1\nd\n";
        assert_eq!(differences(record, record), [""; 0]);
        let now = "# T.\n\n## passed with a launch: 2\na::b\nd\n\n## ignored by its author: 1\ne\n";
        assert_eq!(
            differences(record, now),
            [
                "a::c: absent was `passed with a launch`",
                "d: `passed with a launch` was `failed: why`",
                "e: `ignored by its author` was absent",
            ]
        );
    }

    #[test]
    fn all_names_are_run_once() {
        let names: Vec<String> = (0..100).map(|number| format!("{number:03}")).collect();
        let found = on_all_threads(names.clone(), str::len);
        let expected: Vec<_> = names.into_iter().map(|name| (name, 3)).collect();
        assert_eq!(found, expected);
    }
}
