//! Priorities of rules mean something within one file only: which term is asked first decides between files.
//!
//! Rules of one opcode in one stage (`lower_fused` and the like), or of one other term, either stand in one file or
//! have no priorities; without any the ISLE compiler sees to it that no two of them match the same. A stage that is not
//! the last must not match and then give nothing, because the next stage would start behind what it emitted: what its
//! rules make is never partial.

use crate::emission::files;
use crate::isle::{Node, parse};
use crate::repository;
use crate::rules::{ROOTS, STAGES, root_operation};
use std::collections::{BTreeMap, BTreeSet};

/// The rules of one term for one opcode.
#[derive(Default)]
struct Group {
    files: BTreeSet<String>,
    has_priorities: bool,
}

/// What is wrong in some files of ISLE, each with its name and text.
fn complaints(files: &[(String, String)]) -> Vec<String> {
    let nodes: Vec<(&str, Node)> = (files.iter())
        .flat_map(|(file, text)| {
            parse(text)
                .into_iter()
                .map(move |node| (file.as_str(), node))
        })
        .collect();
    let partial: BTreeSet<&str> = (nodes.iter())
        .filter_map(|(_, node)| partial_term(node))
        .collect();
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    let mut found = Vec::new();
    for (file, node) in &nodes {
        let (Some("rule"), Node::List(parts)) = (node.head(), node) else {
            continue;
        };
        let has_priority = matches!(parts.get(1), Some(Node::Word(_)));
        let pattern = &parts[if has_priority { 2 } else { 1 }];
        let term = pattern.head().unwrap_or_default();
        let operation = match ROOTS.contains(&term) {
            true => root_operation(pattern).unwrap_or_default(),
            false => "",
        };
        if ROOTS.contains(&term) && operation.is_empty() {
            found.push(format!("{file}: a rule of `{term}` names no opcode"));
        }
        let key = (term.to_string(), operation.to_string());
        let group = groups.entry(key).or_default();
        group.files.insert(file.to_string());
        group.has_priorities |= has_priority;
        if STAGES.contains(&term) && Some(&term) != STAGES.last() {
            let mut made = BTreeSet::new();
            parts.last().expect("a rule has parts").heads(&mut made);
            found.extend(
                (made.iter())
                    .filter(|made| partial.contains(made.as_str()))
                    .map(|made| {
                        format!(
                            "{file}: `{term}` of `{operation}` makes `{made}`, which is partial"
                        )
                    }),
            );
        }
    }
    for ((term, operation), group) in groups {
        if group.has_priorities && group.files.len() > 1 {
            let files: Vec<String> = group.files.into_iter().collect();
            found.push(format!(
                "priorities of `{term}` {operation} are split among {}",
                files.join(", ")
            ));
        }
    }
    found
}

/// The term that a declaration says is partial.
fn partial_term(node: &Node) -> Option<&str> {
    let (Some("decl"), Node::List(parts)) = (node.head(), node) else {
        return None;
    };
    let words: Vec<&str> = (parts.iter())
        .map_while(|part| match part {
            Node::Word(word) => Some(word.as_str()),
            Node::List(_) => None,
        })
        .collect();
    words.last().filter(|_| words.contains(&"partial")).copied()
}

#[test]
fn priorities_are_local() {
    let files = files(&repository().join("isle"), "isle");
    assert!(files.len() > 20, "the rules are found");
    let complaints = complaints(&files);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The check notices priorities in two files, in one of two, and a stage that may give nothing.
#[test]
fn split_priorities_are_found() {
    let given = |first: &str, second: &str| {
        complaints(&[
            ("a.isle".to_string(), first.to_string()),
            ("b.isle".to_string(), second.to_string()),
        ])
    };
    let split = |term: &str| {
        vec![format!(
            "priorities of {term} are split among a.isle, b.isle"
        )]
    };
    let plain = "(rule (lower (iadd (int_word) x y)) (IADD x y))";
    assert_eq!(
        given("(rule 1 (lower inst @ (iadd _ _ _)) (dot inst))", plain),
        split("`lower` iadd")
    );
    let fused = "(rule 1 (lower_fused (and (call _ _) (near x))) (IADD x x))";
    assert_eq!(given(fused, fused), split("`lower_fused` call"));
    assert_eq!(
        given(
            "(rule 0 (sum x y) (IADD x y))",
            "(rule (sum (a b) y) (IADD b y))"
        ),
        split("`sum` ")
    );
    let none: Vec<String> = Vec::new();
    assert_eq!(
        given(plain, "(rule (lower (iadd (vector) x y)) (add x y))"),
        none
    );
    assert_eq!(
        given(plain, "(rule 7 (lower_fused (iadd _ x y)) (add x y))"),
        none
    );
    assert_eq!(
        given(plain, "(rule 7 (lower (isub _ x y)) (add x y))"),
        none
    );
    assert_eq!(
        given(
            "(decl pure partial sum (Value) Gpr)",
            "(rule (lower_fused (iadd _ x y)) (pair x (sum y)))"
        ),
        ["b.isle: `lower_fused` of `iadd` makes `sum`, which is partial"]
    );
    assert_eq!(
        given("", "(rule (lower inst) (add inst))"),
        ["b.isle: a rule of `lower` names no opcode"]
    );
}
