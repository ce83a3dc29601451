//! What came of cases, and the text of it that is in the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every result is one that the data accepts.
    Passed,
    /// naga does not accept a shader of it.
    Naga(String),
    /// The translator or the compiler does not.
    Ours(String),
    /// A constant that naga has computed is none that the data accepts; the shader only stores it.
    Constants(String),
    /// A result that the data does not accept, or a launch that ended with a fault or a finding.
    Wrong(String),
}

/// What came of all cases, by file and name, and what shaders took.
#[derive(Default)]
pub struct Record {
    files: BTreeMap<String, BTreeMap<String, Outcome>>,
    /// Translation and compilation of each compiled shader.
    times: Vec<(Duration, Duration)>,
    /// How many shaders were read.
    shaders: usize,
}

impl Record {
    /// Adds a case.
    pub fn add(&mut self, file: &str, name: &str, outcome: Outcome) {
        let file = self.files.entry(file.to_string()).or_default();
        file.insert(name.to_string(), outcome);
    }

    /// Adds what shaders took.
    pub fn add_times(&mut self, shaders: usize, times: &[(Duration, Duration)]) {
        self.shaders += shaders;
        self.times.extend(times);
    }

    /// Passed, refused by naga, wrong constants of naga, refused by us, wrong.
    fn counts<'o>(outcomes: impl Iterator<Item = &'o Outcome>) -> [usize; 5] {
        let mut counts = [0; 5];
        for outcome in outcomes {
            counts[match outcome {
                Outcome::Passed => 0,
                Outcome::Naga(_) => 1,
                Outcome::Constants(_) => 2,
                Outcome::Ours(_) => 3,
                Outcome::Wrong(_) => 4,
            }] += 1;
        }
        counts
    }

    /// One line on all, and how long shaders took.
    pub fn summary(&self) -> String {
        let all = self.files.values().flat_map(BTreeMap::values);
        let [passed, naga, constants, ours, wrong] = Self::counts(all);
        let mut text = format!(
            "{passed} passed, {naga} refused by naga, {constants} with wrong constants of naga, {ours} refused by us, \
             {wrong} wrong; {} shaders",
            self.shaders
        );
        let parts = self.times.iter();
        let parts = parts.map(|(own, rest)| own.as_secs_f64() / (*own + *rest).as_secs_f64());
        let mut parts: Vec<_> = parts.collect();
        parts.sort_by(f64::total_cmp);
        if let Some(median) = parts.get(parts.len() / 2) {
            let (own, rest) = (self.times.iter()).fold((0.0, 0.0), |(a, b), (own, rest)| {
                (a + own.as_secs_f64(), b + rest.as_secs_f64())
            });
            let share = 100.0 * median;
            let _ = write!(
                text,
                "; translation {share:.1} % of translation and compilation (median), {own:.1} s and {rest:.1} s"
            );
        }
        text
    }

    /// The record.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let all = self.files.values().flat_map(BTreeMap::values);
        let [passed, naga, constants, ours, wrong] = Self::counts(all);
        let _ = writeln!(
            text,
            "all: {passed} passed, {naga} refused by naga, {constants} with wrong constants of naga, {ours} refused by us, \
             {wrong} wrong"
        );
        for (file, cases) in &self.files {
            let [passed, naga, constants, ours, wrong] = Self::counts(cases.values());
            let _ = writeln!(
                text,
                "{file}: {passed} passed, {naga} refused by naga, {constants} with wrong constants of naga, \
                 {ours} refused by us, {wrong} wrong"
            );
            let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
            for (name, outcome) in cases {
                match outcome {
                    Outcome::Passed => {}
                    Outcome::Naga(reason) => *reasons.entry(reason).or_default() += 1,
                    Outcome::Constants(reason) => {
                        let _ = writeln!(text, "    constants: {name}: {reason}");
                    }
                    Outcome::Ours(reason) => {
                        let _ = writeln!(text, "    refused: {name}: {reason}");
                    }
                    Outcome::Wrong(reason) => {
                        let _ = writeln!(text, "    wrong: {name}: {reason}");
                    }
                }
            }
            for (reason, count) in reasons {
                let _ = writeln!(text, "    naga, {count} cases: {reason}");
            }
        }
        text
    }

    /// The lines of cases that are wrong or refused by us, and are not in the record `known`.
    pub fn problems_beside(&self, known: &str) -> Vec<String> {
        let known: BTreeSet<&str> = known.lines().collect();
        let text = self.text();
        let lines = text.lines();
        let lines =
            lines.filter(|line| line.starts_with("    refused") || line.starts_with("    wrong"));
        lines
            .filter(|line| !known.contains(line))
            .map(str::to_string)
            .collect()
    }

    /// The lines that only one of two records has, at most fifty.
    pub fn difference(known: &str, found: &str) -> String {
        let (a, b): (BTreeSet<_>, BTreeSet<_>) = (known.lines().collect(), found.lines().collect());
        let gone = a.difference(&b).map(|line| format!("- {line}"));
        let new = b.difference(&a).map(|line| format!("+ {line}"));
        gone.chain(new).take(50).collect::<Vec<_>>().join("\n")
    }
}
