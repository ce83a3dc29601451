//! For each rule and type the smallest functions are proven until one is.

use crate::rules::corpus::Subject;
use crate::rules::fired::Fired;
use crate::rules::source::Rule;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use thisgpu_verify::{Prover, SolverError, Verdict};

/// So many functions are tried for a rule and a type (*assumed*: what stays open in eight is open for one reason).
const ATTEMPTS: usize = 8;

/// What is known of a rule at a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It fired in this function, which is proven.
    Proven {
        /// Which function.
        function: String,
        /// How long the proof took.
        time: Duration,
    },
    /// It fired, and a function is refuted.
    Refuted {
        /// Which function.
        function: String,
    },
    /// It fired in this function, which is open.
    Open {
        /// Which function.
        function: String,
        /// Why.
        reason: String,
    },
}

/// What is known of all rules.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The rules with what is known at each type at which they fired.
    pub rules: Vec<(Rule, BTreeMap<String, Finding>)>,
    /// Functions that were proven or tried.
    pub tried: usize,
}

impl Catalogue {
    /// Proves functions until each rule has one at each type, or none is left to be tried.
    ///
    /// # Errors
    /// A solver that fails.
    pub fn new(
        rules: Vec<Rule>,
        subjects: &[Subject],
        prover: &Prover,
        progress: &(impl Fn(usize) + Sync),
    ) -> Result<Self, SolverError> {
        let candidates = candidates(subjects);
        let mut verdicts: BTreeMap<usize, (Verdict, Duration)> = BTreeMap::new();
        loop {
            let wanted: BTreeSet<usize> = candidates
                .values()
                .filter_map(|candidates| wanted(candidates, &verdicts))
                .collect();
            if wanted.is_empty() {
                break;
            }
            let found = wanted.into_par_iter().map(|index| {
                let subject = &subjects[index];
                let start = Instant::now();
                let verdict = prover.compiled(subject.function(), subject.code())?;
                progress(1);
                Ok((index, (verdict, start.elapsed())))
            });
            let found: Result<Vec<_>, SolverError> = found.collect();
            verdicts.extend(found?);
        }
        let tried = verdicts.len();
        let rules = rules.into_iter().map(|rule| {
            let first = fired_for(&rule, String::new());
            let all = candidates
                .range(first..)
                .take_while(|(fired, _)| fired.file == rule.file && fired.line == rule.line);
            let findings = all.filter_map(|(fired, candidates)| {
                let finding = finding(candidates, subjects, &verdicts)?;
                Some((fired.ty.clone(), finding))
            });
            let findings: BTreeMap<String, Finding> = findings.collect();
            (rule, findings)
        });
        Ok(Self {
            rules: rules.collect(),
            tried,
        })
    }
}

fn fired_for(rule: &Rule, ty: String) -> Fired {
    Fired {
        file: rule.file.clone(),
        line: rule.line,
        ty,
    }
}

/// For each rule and type the smallest functions for which it fired.
fn candidates(subjects: &[Subject]) -> BTreeMap<Fired, Vec<usize>> {
    let mut sizes: Vec<(usize, usize)> = subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| (subject.size(), index))
        .collect();
    sizes.sort_unstable();
    let mut candidates: BTreeMap<Fired, Vec<usize>> = BTreeMap::new();
    for (_, index) in sizes {
        for fired in &subjects[index].rules {
            let list = candidates.entry(fired.clone()).or_default();
            if list.len() < ATTEMPTS {
                list.push(index);
            }
        }
    }
    candidates
}

/// The next function to be proven, if none of the candidates is.
fn wanted(candidates: &[usize], verdicts: &BTreeMap<usize, (Verdict, Duration)>) -> Option<usize> {
    let is_settled = |index: &usize| {
        let verdict = verdicts.get(index).map(|(verdict, _)| verdict);
        matches!(verdict, Some(Verdict::Proven | Verdict::Refuted(_)))
    };
    if candidates.iter().any(is_settled) {
        return None;
    }
    let mut rest = candidates.iter().copied();
    rest.find(|index| !verdicts.contains_key(index))
}

/// What the verdicts of candidates say: a refuted one first, then a proven one.
fn finding(
    candidates: &[usize],
    subjects: &[Subject],
    verdicts: &BTreeMap<usize, (Verdict, Duration)>,
) -> Option<Finding> {
    let known = || {
        let known = candidates.iter();
        known.filter_map(|index| Some((subjects[*index].name.clone(), verdicts.get(index)?)))
    };
    let refuted = known().find(|(_, (verdict, _))| matches!(verdict, Verdict::Refuted(_)));
    if let Some((function, _)) = refuted {
        return Some(Finding::Refuted { function });
    }
    let proven = known().find(|(_, (verdict, _))| *verdict == Verdict::Proven);
    if let Some((function, (_, time))) = proven {
        let time = *time;
        return Some(Finding::Proven { function, time });
    }
    known().find_map(|(function, (verdict, _))| match verdict {
        Verdict::Open(reason) => Some(Finding::Open {
            function,
            reason: reason.clone(),
        }),
        Verdict::Proven | Verdict::Refuted(_) => None,
    })
}
