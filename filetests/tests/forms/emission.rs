//! Which terms of the rules are Rust that emits instructions, and where else `src/lower` emits: a scan of both,
//! compared with the lists of `docs/lowering.md`.
//!
//! A Rust function emits if it calls a generated method (`emit_…`), the builder, or a term of the rules
//! (`constructor_…`), or a function of `src/lower` that does. One without a mutable borrow of the lowering context
//! (`Lower`) cannot, as the compiler sees to. The others are told apart by name only, so the scan errs on the side of
//! emission.

use crate::isle::{Node, parse};
use crate::repository;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Most external constructors that may emit.
const MOST: usize = 15;

/// The functions of `src/lower` that borrow the context mutably: by name the names they call, and the files in which
/// one emits by itself.
#[derive(Default)]
struct Functions {
    calls: BTreeMap<String, BTreeSet<String>>,
    direct: BTreeMap<String, BTreeSet<String>>,
}

/// A function that is being read.
struct Open<'t> {
    name: &'t str,
    indent: usize,
    /// Its body has begun.
    body: bool,
    /// Its signature borrows the context mutably.
    borrows: bool,
}

impl Functions {
    fn read(&mut self, file: &str, text: &str) {
        let mut current: Option<Open> = None;
        // Whether `self` is the context: in its implementations.
        let mut of_context = false;
        // Tests emit nothing.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|l| !l.trim_start().starts_with("//")) {
            let indent = line.len() - line.trim_start().len();
            if line.starts_with("impl") {
                of_context = line.contains("Lower<");
            }
            if let Some(name) = defined(line) {
                current = Some(Open {
                    name,
                    indent,
                    body: false,
                    borrows: false,
                });
            }
            let Some(open) = &mut current else {
                continue;
            };
            if !open.body {
                open.borrows |= line.contains("&mut Lower<");
                open.borrows |= of_context && line.contains("&mut self");
                open.body = line.ends_with('{');
                if open.borrows {
                    self.calls.entry(open.name.to_string()).or_default();
                }
                continue;
            }
            if indent == open.indent && line.trim() == "}" {
                current = None;
            } else if open.borrows {
                let name = open.name.to_string();
                self.add_calls(file, &name, line);
            }
        }
    }

    fn add_calls(&mut self, file: &str, name: &str, line: &str) {
        for called in calls(line) {
            let primitive = called.starts_with("emit") && !called.ends_with("_options");
            if primitive || called.starts_with("constructor_") {
                let files = self.direct.entry(name.to_string()).or_default();
                files.insert(file.to_string());
            }
            let all = self.calls.entry(name.to_string()).or_default();
            all.insert(called.to_string());
        }
    }

    /// Names of functions that emit, by themselves or through others.
    fn emitting(&self) -> BTreeSet<&str> {
        let mut found: BTreeSet<&str> = self.direct.keys().map(String::as_str).collect();
        loop {
            let more: Vec<&str> = self
                .calls
                .iter()
                .filter(|(name, calls)| {
                    !found.contains(name.as_str())
                        && calls.iter().any(|c| found.contains(c.as_str()))
                })
                .map(|(name, _)| name.as_str())
                .collect();
            if more.is_empty() {
                return found;
            }
            found.extend(more);
        }
    }
}

/// The name of a function that a line begins to define.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let rest = match rest.strip_prefix("pub(") {
        Some(path) => path.split_once(") ")?.1,
        None => rest.strip_prefix("pub ").unwrap_or(rest),
    };
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let name = rest.strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

/// Names that stand before an opening parenthesis.
fn calls(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices('(').filter_map(|(at, _)| {
        let before = &line[..at];
        let start = before
            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(0, |i| i + 1);
        (start < at).then(|| &before[start..])
    })
}

/// The files of a folder and of those in it with an extension: path from the folder and text.
pub fn files(folder: &Path, extension: &str) -> Vec<(String, String)> {
    let mut list = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(inner) = open.pop() {
        for entry in std::fs::read_dir(&inner).expect("the folder exists") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                let name = path.strip_prefix(folder).expect("it lies in the folder");
                let text = std::fs::read_to_string(&path).expect("it is text");
                list.push((name.display().to_string(), text));
            }
        }
    }
    list.sort();
    list
}

/// What the ISLE files say: rules as pattern and right-hand side, and the Rust function behind each external
/// constructor.
struct Selection {
    rules: Vec<(String, BTreeSet<String>)>,
    external: BTreeMap<String, String>,
    lines: usize,
}

impl Selection {
    fn read(repository: &Path) -> Selection {
        let all = files(&repository.join("isle"), "isle");
        let mut selection = Selection {
            rules: Vec::new(),
            external: BTreeMap::new(),
            lines: all.iter().map(|(_, text)| text.lines().count()).sum(),
        };
        for (file, text) in &all {
            for node in parse(text) {
                selection.add(file, &node);
            }
        }
        selection
    }

    fn add(&mut self, file: &str, node: &Node) {
        let Node::List(parts) = node else { return };
        let words: Vec<&str> = parts
            .iter()
            .filter_map(|p| match p {
                Node::Word(word) => Some(word.as_str()),
                Node::List(_) => None,
            })
            .collect();
        match words[..] {
            ["extern", "constructor", term, function] => {
                self.external.insert(term.to_string(), function.to_string());
            }
            ["rule", ..] => {
                let mut lists = parts.iter().filter(|p| matches!(p, Node::List(_)));
                let pattern = lists.next().and_then(Node::head).unwrap_or_default();
                let mut named = BTreeSet::new();
                if let Some(last) = parts.last() {
                    last.heads(&mut named);
                }
                self.rules.push((format!("{file}: {pattern}"), named));
            }
            _ => {}
        }
    }
}

/// The first column of the table under a heading of `docs/lowering.md`.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with(heading))
        .unwrap_or_else(|| panic!("docs/lowering.md has no section `{heading}`"));
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split('`').next())
        .map(str::to_string)
        .collect()
}

/// What `docs/lowering.md` lists is what emits, no more and no less; nine of ten rules need none of it.
#[test]
fn what_rust_emits_is_listed() {
    let repository = repository();
    let page = std::fs::read_to_string(repository.join("docs/lowering.md")).expect("the page");
    let mut functions = Functions::default();
    let sources = files(&repository.join("src/lower"), "rs");
    for (file, text) in &sources {
        functions.read(file, text);
    }
    let selection = Selection::read(repository);
    let emitting = functions.emitting();
    let terms: BTreeSet<String> = selection
        .external
        .iter()
        .filter(|(_, function)| emitting.contains(function.as_str()))
        .map(|(term, _)| term.clone())
        .collect();
    assert_eq!(terms, listed(&page, "Terms that emit"), "terms that emit");
    assert!(terms.len() <= MOST, "{} terms emit", terms.len());

    let places: BTreeSet<String> = functions.direct.values().flatten().cloned().collect();
    assert_eq!(places, listed(&page, "Files that emit"), "files that emit");

    let with_rust = selection
        .rules
        .iter()
        .filter(|(_, named)| named.iter().any(|term| terms.contains(term)));
    let with_rust: Vec<&str> = with_rust.map(|(rule, _)| rule.as_str()).collect();
    let lines: usize = sources.iter().map(|(_, text)| text.lines().count()).sum();
    println!(
        "{} rules, {} of them name a term that emits in Rust; {} lines of ISLE, {lines} of Rust in src/lower; {} terms \
         emit",
        selection.rules.len(),
        with_rust.len(),
        selection.lines,
        terms.len(),
    );
    assert!(
        with_rust.len() * 10 <= selection.rules.len(),
        "too many rules rest on Rust:\n{}",
        with_rust.join("\n")
    );
}

#[test]
fn emission_is_found_through_calls() {
    let mut functions = Functions::default();
    functions.read(
        "a.rs",
        "impl Lower<'_> {
    fn first(&mut self) -> Gpr {
        // self.emit_mov(x) in a comment
        self.second(1)
    }
    pub(in crate::lower) fn second(&mut self, n: u32) -> Gpr {
        self.emit_mov(Word::imm(n))
    }
    fn third(&mut self) -> FaddOptions {
        self.emit_fadd_options(1)
    }
    fn fourth(
        &self,
        n: u32,
    ) -> Gpr {
        other.second(n)
    }
}
impl Other {
    fn fifth(&mut self) {
        self.second(1)
    }
}",
    );
    assert_eq!(functions.emitting(), BTreeSet::from(["first", "second"]));
}
