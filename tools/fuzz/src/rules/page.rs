//! The catalogue as a page.

use crate::rules::catalogue::{Catalogue, Finding};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How many rules of a file there are, and what is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All.
    pub rules: usize,
    /// Those that fired.
    pub fired: usize,
    /// Those with a proven function at each type at which they fired.
    pub proven: usize,
    /// Those with a proven function at some types only.
    pub partly: usize,
}

impl Catalogue {
    /// For each file what is known of its rules.
    pub fn counts(&self) -> BTreeMap<&str, Counts> {
        let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
        for (rule, findings) in &self.rules {
            let file = counts.entry(&rule.file).or_default();
            let is_proven = |finding: &Finding| matches!(finding, Finding::Proven { .. });
            let proven = findings
                .values()
                .filter(|finding| is_proven(finding))
                .count();
            file.rules += 1;
            file.fired += usize::from(!findings.is_empty());
            file.proven += usize::from(proven > 0 && proven == findings.len());
            file.partly += usize::from(proven > 0 && proven < findings.len());
        }
        counts
    }

    /// A line for each rule and type.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for (rule, findings) in &self.rules {
            let place = format!("{}:{} {}", rule.file, rule.line, rule.term);
            if findings.is_empty() {
                let _ = writeln!(text, "{place}: never fired");
            }
            for (ty, finding) in findings {
                let _ = match finding {
                    Finding::Proven { function, time } => {
                        let seconds = time.as_secs_f64();
                        writeln!(text, "{place} {ty}: proven in {function}, {seconds:.2} s")
                    }
                    Finding::Refuted { function } => {
                        writeln!(text, "{place} {ty}: refuted in {function}")
                    }
                    Finding::Open { function, reason } => {
                        writeln!(text, "{place} {ty}: open in {function}: {reason}")
                    }
                };
            }
        }
        text
    }
}
