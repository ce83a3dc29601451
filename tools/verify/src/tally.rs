//! Verdicts counted.

use crate::proof::Verdict;
use std::collections::BTreeMap;
use std::fmt;

/// How many functions are proven, refuted, and open for which reason. It prints as a line for each reason, the most
/// frequent first, and one with the sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Proven.
    pub proven: usize,
    /// Refuted.
    pub refuted: usize,
    /// Open, by reason.
    pub open: BTreeMap<String, usize>,
}

impl Tally {
    /// Counts one more.
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Proven => self.proven += 1,
            Verdict::Refuted(_) => self.refuted += 1,
            Verdict::Open(reason) => *self.open.entry(reason.clone()).or_default() += 1,
        }
    }

    /// Counts those of another one too.
    pub fn add_all(&mut self, other: Tally) {
        self.proven += other.proven;
        self.refuted += other.refuted;
        for (reason, count) in other.open {
            *self.open.entry(reason).or_default() += count;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<(&String, &usize)> = self.open.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (reason, count) in reasons {
            writeln!(f, "open {count:5}: {reason}")?;
        }
        let open: usize = self.open.values().sum();
        let Tally {
            proven, refuted, ..
        } = self;
        write!(f, "{proven} proven, {refuted} refuted, {open} open")
    }
}
