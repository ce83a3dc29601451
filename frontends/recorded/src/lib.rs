//! Test suites of others, run one test a process, and the record of what comes of them.
//!
//! A test binary that has a suite compiled into it starts itself again for each of the suite's tests, on all threads of
//! the host. A test in a process of its own takes no other one with it, and says by itself whether it launched a
//! kernel: a test that passes without one proves nothing, so the record keeps it apart, with a reason.
//!
//! The binary's own tests, those of its module `recorded`, are none of the suite.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

/// Where this is `1`, the record is written instead of compared.
pub const BLESS_VARIABLE: &str = "CRANELIFT_TEST_BLESS";

/// What a test without a launch, or one that fails, has if nobody has said why.
const UNKNOWN: &str = "for no reason that is known";

/// How long a test may take; one that takes longer is ended, and has failed. The longest, attention over long
/// sequences, take minutes on a busy machine.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// How often it is asked whether a test has ended.
const POLL: Duration = Duration::from_millis(5);

/// So many lines of what a failing test has written to standard error are told, from the end.
const LINES_TOLD: usize = 30;

/// The exit status of a test binary with a test that fails.
const FAILED: i32 = 101;

/// The header of a panic's message ends so; its place and a colon follow.
const PANIC: &str = " panicked at ";

/// What follows the message of a process's first panic.
const NOTE: &str = "note: run with `RUST_BACKTRACE=";

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

/// By what a test is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A part of its name.
    Name(&'static str),
    /// A part of the message of its first panic.
    Panic(&'static str),
}

impl Sign {
    fn is_of(self, name: &str, panic: &str) -> bool {
        match self {
            Sign::Name(part) => name.contains(part),
            Sign::Panic(part) => panic.contains(part),
        }
    }
}

/// Reasons of the tests that have one; the first counts.
pub type Reasons = &'static [(Sign, &'static str)];

/// What a test left.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended; none if it took longer than a test may.
    pub status: Option<ExitStatus>,
    /// What it wrote to standard output.
    pub output: String,
    /// What it wrote to standard error.
    pub errors: String,
}

impl Ran {
    /// Whether it passed, or was left out by its author.
    pub fn has_passed(&self) -> bool {
        let is_well = self.status.is_some_and(|status| status.success());
        is_well && (self.counts("1 passed") || self.is_ignored())
    }

    /// Whether its author leaves it out.
    fn is_ignored(&self) -> bool {
        self.counts("1 ignored")
    }

    /// Whether the last line of a test binary that has passed says so.
    fn counts(&self, what: &str) -> bool {
        let mut lines = self.output.lines();
        lines.any(|line| line.starts_with("test result: ok. ") && line.contains(what))
    }

    /// What its first panic says, without where; nothing of a process that did not end as a failing test does.
    pub fn panic(&self) -> String {
        if self.status.and_then(|status| status.code()) != Some(FAILED) {
            return String::new();
        }
        let mut lines = self.errors.lines();
        if !lines.any(|line| line.contains(PANIC)) {
            return String::new();
        }
        let message = lines.take_while(|line| !line.contains(PANIC) && !line.starts_with(NOTE));
        message.collect::<Vec<_>>().join("\n")
    }

    /// How it ended, and the end of what it wrote to standard error.
    pub fn told(&self) -> String {
        let lines: Vec<&str> = self.errors.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES_TOLD)..];
        let status = match self.status {
            Some(status) => status.to_string(),
            None => format!("ended after {} seconds", TIME_LIMIT.as_secs()),
        };
        format!("  {status}\n  {}", last.join("\n  "))
    }
}

/// The suite in this binary.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// What it is called in the record.
    pub title: &'static str,
    /// The record's path.
    pub record: &'static str,
    /// What is set in the environment of every test.
    pub environment: &'static [(&'static str, &'static str)],
    /// What a line of standard error begins with that tells of a launch.
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
    /// When the binary does not start, or does not list its tests.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let output = this()?.args(["--list", "--format=terse"]).output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("--list: {}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let names = names.filter(|name| !name.starts_with(OWN));
        Ok(names.map(str::to_owned).collect())
    }

    /// Runs a test, with more in its environment.
    ///
    /// # Errors
    /// When the binary does not start.
    pub fn run(&self, name: &str, more: &[(&str, &str)]) -> io::Result<Ran> {
        let mut command = this()?;
        let command = command
            .args(["--exact", "--nocapture", "--test-threads=1", name])
            // Names of functions are no reasons.
            .env("RUST_BACKTRACE", "0")
            .envs(self.environment.iter().copied())
            .envs(more.iter().copied());
        ran(command, TIME_LIMIT)
    }

    /// What came of a test that has left this.
    pub fn outcome(&self, name: &str, ran: &Ran) -> Outcome {
        let panic = ran.panic();
        let reason = |reasons: Reasons| {
            let found = reasons.iter().find(|(sign, _)| sign.is_of(name, &panic));
            found.map_or(UNKNOWN, |(_, reason)| reason)
        };
        let mut lines = ran.errors.lines();
        if !ran.has_passed() {
            Outcome::Failed(reason(self.failing))
        } else if ran.is_ignored() {
            Outcome::Ignored
        } else if lines.any(|line| line.starts_with(self.launched)) {
            Outcome::Launched
        } else {
            Outcome::Nothing(reason(self.without_launch))
        }
    }

    /// What came of all tests, by name, with more in their environment.
    ///
    /// # Errors
    /// When the binary does not start.
    pub fn outcomes(&self, more: &[(&str, &str)]) -> io::Result<BTreeMap<String, (Outcome, Ran)>> {
        let found = on_all_threads(self.names()?, |name| {
            let ran = self.run(name, more)?;
            io::Result::Ok((self.outcome(name, &ran), ran))
        });
        found
            .into_iter()
            .map(|(name, found)| Ok((name, found?)))
            .collect()
    }

    /// Runs all tests, and compares with the record, or writes it if [`BLESS_VARIABLE`] is set.
    ///
    /// # Errors
    /// What is not as recorded, and tests without a reason, in words.
    pub fn compare(&self) -> Result<(), String> {
        let ran = self.outcomes(&[]).map_err(|error| error.to_string())?;
        let mut outcomes = BTreeMap::<Outcome, Vec<&str>>::new();
        for (name, (outcome, _)) in &ran {
            outcomes.entry(*outcome).or_default().push(name);
        }
        for outcome in [Outcome::Nothing(UNKNOWN), Outcome::Failed(UNKNOWN)] {
            if let Some(names) = outcomes.get(&outcome) {
                let told = names
                    .iter()
                    .map(|&name| format!("{name}\n{}", ran[name].1.told()));
                let told: Vec<_> = told.collect();
                return Err(format!("{}:\n{}", outcome.heading(), told.join("\n")));
            }
        }
        let mut text = format!("# {}: what comes of each test.\n", self.title);
        for (outcome, names) in outcomes {
            let _ = writeln!(text, "\n## {}: {}", outcome.heading(), names.len());
            for name in names {
                let _ = writeln!(text, "{name}");
            }
        }
        if env::var_os(BLESS_VARIABLE).is_some_and(|value| value == "1") {
            return fs::write(self.record, &text).map_err(|error| error.to_string());
        }
        let changed = differences(&self.recorded()?, &text);
        if changed.is_empty() {
            return Ok(());
        }
        let changed = changed.into_iter().map(|(name, change)| {
            let failed = ran.get(&name).filter(|(_, ran)| !ran.has_passed());
            let told = failed.map_or(String::new(), |(_, ran)| format!("\n{}", ran.told()));
            format!("{name}: {change}{told}")
        });
        let changed: Vec<_> = changed.collect();
        Err(format!(
            "other results than recorded:\n{}",
            changed.join("\n")
        ))
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

/// Runs a process, and ends it if it takes longer than it may. It writes into files: a process that it has started, and
/// that goes on, keeps no pipe open that somebody reads to its end.
fn ran(command: &mut Command, limit: Duration) -> io::Result<Ran> {
    let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?)
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        thread::sleep(POLL);
    };
    Ok(Ran {
        status,
        output: text(&mut output)?,
        errors: text(&mut errors)?,
    })
}

/// All that is in a file.
fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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

/// The tests that have other headings in one record than in the other, and which.
fn differences(recorded: &str, now: &str) -> Vec<(String, String)> {
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
            let change = format!("{} was {}", of(&now), of(&recorded));
            ((*name).to_owned(), change)
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
        assert_eq!(differences(record, record), []);
        let now = "# T.\n\n## passed with a launch: 2\na::b\nd\n\n## ignored by its author: 1\ne\n";
        let expected = [
            ("a::c", "absent was `passed with a launch`"),
            ("d", "`passed with a launch` was `failed: why`"),
            ("e", "`ignored by its author` was absent"),
        ];
        let expected = expected.map(|(name, change)| (name.to_owned(), change.to_owned()));
        assert_eq!(differences(record, now), expected);
    }

    const SUITE: Suite = Suite {
        title: "T",
        record: "",
        environment: &[],
        launched: "launch ",
        without_launch: &[(Sign::Name("host"), "about the host's side")],
        failing: &[(Sign::Panic("no fragments"), "no matrix instructions")],
    };

    /// What a shell leaves.
    fn left(script: &str, limit: Duration) -> Ran {
        ran(Command::new("sh").args(["-c", script]), limit).expect("there is a shell")
    }

    #[test]
    fn outcomes_are_known_by_what_happened_not_by_words() {
        let outcome = |name, script: &str| SUITE.outcome(name, &left(script, TIME_LIMIT));
        let passed = |name, script| {
            let end = "echo 'test result: ok. 1 passed; 0 failed; 0 ignored'";
            outcome(name, &format!("{script}; {end}"))
        };
        assert_eq!(passed("a", "echo launch k >&2"), Outcome::Launched);
        let about = passed("a", "echo before the launch of k >&2; echo 1 ignored");
        assert_eq!(about, Outcome::Nothing(UNKNOWN));
        let host = passed("host", "true");
        assert_eq!(host, Outcome::Nothing("about the host's side"));
        let ignored = outcome("a", "echo 'test result: ok. 0 passed; 0 failed; 1 ignored'");
        assert_eq!(ignored, Outcome::Ignored);
        // No test has run.
        for script in [
            "echo launch k >&2",
            "echo 'test result: ok. 0 passed; 0 failed'",
        ] {
            assert_eq!(outcome("host", script), Outcome::Failed(UNKNOWN));
        }
        let known = "echo thread a panicked at b.rs:1:2: >&2; echo no fragments >&2;";
        let failed = outcome("a", &format!("{known} exit 101"));
        assert_eq!(failed, Outcome::Failed("no matrix instructions"));
        let killed = outcome("a", &format!("{known} kill -9 $$"));
        assert_eq!(killed, Outcome::Failed(UNKNOWN));
        // What a line before says, where the panic was, and what panics behind the first say.
        for other in [
            "echo no fragments: launch k >&2; echo thread a panicked at b.rs:1:2: >&2; echo 1 is not 2 >&2",
            "echo thread a panicked at no fragments.rs:1:2: >&2; echo 1 is not 2 >&2",
            "echo thread a panicked at b.rs:1:2: >&2; echo 1 is not 2 >&2; \
             echo thread b panicked at c.rs:1:2: >&2; echo no fragments >&2",
        ] {
            let failed = outcome("a", &format!("{other}; exit 101"));
            assert_eq!(failed, Outcome::Failed(UNKNOWN), "{other}");
        }
    }

    /// Also where it has started a process that goes on.
    #[test]
    fn a_test_that_hangs_has_failed_and_says_so() {
        let start = Instant::now();
        let ran = left(
            "echo begun >&2; sleep 60; echo x",
            Duration::from_millis(100),
        );
        assert!(!ran.has_passed());
        let told = ran.told();
        assert!(
            told.contains("ended after") && told.contains("begun"),
            "{told}"
        );
        left("sleep 60 & exit 0", TIME_LIMIT);
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "it waited for another process"
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
