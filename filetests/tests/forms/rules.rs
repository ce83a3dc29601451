//! Which CLIF operations reach an operation of the machine by rules: a scan of the ISLE files.
//!
//! A rule that lowers an instruction belongs to the CLIF operation at the root of its pattern, every other rule to its
//! own term. What stands to the right of the pattern names terms; those that are an operation's
//! constructors (its name, or the name, `_` and a suffix) count for it, the others lead on to their own rules. External
//! constructors are Rust and end the search.

use crate::isle::{Node, parse};
use std::collections::{BTreeMap, BTreeSet};

/// The terms that lower an instruction, in the order in which they are asked.
pub const STAGES: [&str; 2] = ["lower_fused", "lower"];
/// All terms whose rules are for an instruction.
pub const ROOTS: [&str; 5] = [
    STAGES[0],
    STAGES[1],
    "lower_truth",
    "lower_uniform",
    "lower_uniform_truth",
];

/// The rules of some files.
#[derive(Debug, Default)]
pub struct Rules {
    /// For each file and CLIF operation, the terms that its rules name.
    roots: BTreeMap<(String, String), BTreeSet<String>>,
    /// For each term with rules, the terms that they name.
    terms: BTreeMap<String, BTreeSet<String>>,
}

impl Rules {
    /// Adds the rules of a file.
    ///
    /// # Panics
    /// When parentheses do not match: the build would have failed.
    pub fn add(&mut self, file: &str, text: &str) {
        for node in parse(text) {
            let (Some("rule"), Node::List(parts)) = (node.head(), &node) else {
                continue;
            };
            // A number before the pattern is the rule's priority.
            let mut parts = parts.iter().filter(|part| matches!(part, Node::List(_)));
            let Some(pattern) = parts.next() else {
                continue;
            };
            let mut named = BTreeSet::new();
            parts.for_each(|part| part.heads(&mut named));
            let term = pattern.head().expect("a pattern is a term").to_owned();
            let entry = match (term.as_str(), root_operation(pattern)) {
                (root, Some(operation)) if ROOTS.contains(&root) => self
                    .roots
                    .entry((file.to_owned(), operation.to_owned()))
                    .or_default(),
                _ => self.terms.entry(term).or_default(),
            };
            entry.extend(named);
        }
    }

    /// For each file the CLIF operations whose rules reach a constructor of `optype`; `optypes` are the names of all
    /// operations.
    pub fn operations_reaching(
        &self,
        optype: &str,
        optypes: &[&str],
    ) -> BTreeMap<String, BTreeSet<String>> {
        let mut reaching: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for ((file, operation), named) in &self.roots {
            let mut seen: BTreeSet<&str> = BTreeSet::new();
            let mut open: Vec<&str> = named.iter().map(String::as_str).collect();
            while let Some(term) = open.pop() {
                if !seen.insert(term) {
                    continue;
                }
                let further = self.terms.get(term).into_iter().flatten();
                open.extend(further.map(String::as_str));
            }
            if seen
                .iter()
                .any(|term| constructs(term, optypes) == Some(optype))
            {
                let operations = reaching.entry(file.clone()).or_default();
                operations.insert(operation.clone());
            }
        }
        reaching
    }
}

/// The operation whose constructor a term is: the longest name of one that the term is or begins with. Options
/// construct nothing.
fn constructs<'a>(term: &str, optypes: &[&'a str]) -> Option<&'a str> {
    let is = |name: &&&str| match term.strip_prefix(**name) {
        Some("") => true,
        Some(suffix) => suffix.starts_with('_') && suffix != "_options",
        None => false,
    };
    optypes
        .iter()
        .filter(is)
        .max_by_key(|name| name.len())
        .copied()
}

/// The operation that a pattern of a root term is for: the first within an `and`.
pub fn root_operation(pattern: &Node) -> Option<&str> {
    let Node::List(parts) = pattern else {
        return None;
    };
    let first = parts[1..].iter().find(|part| part.head().is_some())?;
    match first.head() {
        Some("and") => root_operation(first),
        head => head,
    }
}

#[test]
fn rules_are_followed_to_their_roots() {
    let mut rules = Rules::default();
    rules.add(
        "a.isle",
        ";;;; `iadd` ;;;;
(decl sum (Value Value) Regs)
(rule 1 (lower inst @ (iadd (int_word) x y)) (sum x y)) ; (rule (lower (bor x y)) (IADD x y))
(rule (sum x (imul a b)) (twice (IMAD_WIDE (IMAD_options (IType.U32)) a b x)))
(rule (sum x y) (IADD_RI x y))
(extern constructor twice twice)",
    );
    rules.add(
        "b.isle",
        "(rule (lower (isub x y))\n (if-let z (small y))\n (sum x z))
(rule (lower_truth (and (icmp x y) (near x))) (let ((sum Gpr (ISETP x y))) sum))",
    );
    let optypes = ["IADD", "IMAD", "IMAD_WIDE", "ISETP"];
    let text = |optype| format!("{:?}", rules.operations_reaching(optype, &optypes));
    let both = r#"{"a.isle": {"iadd"}, "b.isle": {"isub"}}"#;
    assert_eq!(text("IADD"), both);
    assert_eq!(text("IMAD_WIDE"), both);
    assert_eq!(text("IMAD"), "{}");
    assert_eq!(text("ISETP"), r#"{"b.isle": {"icmp"}}"#);
}
