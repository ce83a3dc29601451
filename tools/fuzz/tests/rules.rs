//! `docs/rules.md` has every rule, and the functions that it names are compiled by them still; some are proven again.

use fuzz::catalogue::Catalogue;
use fuzz::rules::corpus::{Corpus, Subject};
use fuzz::rules::numbers::{self, Tested};
use fuzz::rules::page::Row;
use fuzz::rules::source::Rule;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use thisgpu_verify::{Limits, Prover, Solvers, Verdict};

/// Arguments that functions of floats are run with.
const NUMBERS: usize = 128;
/// Their seed.
const SEED: u64 = 1;
/// Random functions that the page is made with.
const RANDOM: u64 = 1000;
/// One in so many functions is proven again.
const AGAIN: usize = 12;

fn repository() -> &'static Path {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("the package lies in tools")
}

#[test]
fn the_page_has_every_rule_and_its_functions_are_proven() {
    let page = std::fs::read_to_string(repository().join("docs/rules.md")).expect("the page");
    let rows = Row::all(&page);
    let rules = Rule::all(repository()).expect("rules are ISLE");
    let known: BTreeSet<Row> = rows.iter().cloned().map(without_function).collect();
    let all: BTreeSet<Row> = rules.iter().map(Row::of).collect();
    let missing: Vec<&Row> = all.difference(&known).collect();
    let gone: Vec<&Row> = known.difference(&all).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "docs/rules.md is out of date (it says how it is made): missing {missing:?}, gone {gone:?}"
    );
    let corpus = Corpus {
        random: RANDOM,
        seed: 1,
    };
    let subjects = corpus.compile(repository()).expect("folders can be read");
    let subjects: BTreeMap<&str, &Subject> =
        subjects.iter().map(|s| (s.name.as_str(), s)).collect();
    let rules: BTreeMap<Row, &Rule> = rules.iter().map(|rule| (Row::of(rule), rule)).collect();
    let mut functions = BTreeSet::new();
    for row in &rows {
        let Some(function) = &row.function else {
            continue;
        };
        let subject = subjects.get(function.as_str());
        let subject = subject.unwrap_or_else(|| panic!("there is no function {function}"));
        let rule = rules[&without_function(row.clone())];
        let mut fired = subject.rules.iter();
        let fires = fired.any(|fired| fired.file == rule.file && fired.line == rule.line);
        assert!(fires, "{} does not fire in {function} any more", row.rule);
        functions.insert(function.as_str());
    }
    println!("{} rules, {} functions", rows.len(), functions.len());
    run(subjects.values().copied());
    prove(functions.iter().map(|name| subjects[name]).step_by(AGAIN));
}

fn without_function(row: Row) -> Row {
    Row {
        function: None,
        ..row
    }
}

/// Runs the rules of floats with few numbers: nothing differs from the host.
fn run<'a>(subjects: impl Iterator<Item = &'a Subject>) {
    let subjects: Vec<Subject> = subjects.cloned().collect();
    let tested = numbers::test(&subjects, &Catalogue::new(), NUMBERS, SEED);
    let Tested { rules, calls, .. } = tested;
    println!("{rules} rules and types of floats in {calls} calls, seed {SEED}");
    assert!(tested.differences.is_empty(), "{:?}", tested.differences);
    let without = tested.without.len();
    assert!(
        rules > without,
        "{rules} are run and {without} are not: {:?}",
        tested.without
    );
}

/// Proves functions: none is refuted, and few need longer than is waited for.
fn prove<'a>(subjects: impl Iterator<Item = &'a Subject>) {
    let solvers = match Solvers::find(Duration::from_secs(2)) {
        Ok(solvers) => solvers,
        Err(error) => return println!("nothing is proven: {error}"),
    };
    let limits = Limits {
        paths: 32,
        steps: 5000,
    };
    let prover = Prover::new(solvers, limits);
    let (mut proven, mut open) = (0, Vec::new());
    for subject in subjects {
        let verdict = prover.compiled(subject.function(), subject.code());
        match verdict.expect("solvers answer") {
            Verdict::Proven => proven += 1,
            Verdict::Open(reason) => open.push(format!("{}: {reason}", subject.name)),
            Verdict::Refuted(found) => panic!("{} is refuted: {found:?}", subject.name),
        }
    }
    println!("{proven} proven again, open: {open:?}");
    assert!(open.len() <= proven / 10, "{open:?}");
}
