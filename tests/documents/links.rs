//! Links of the documents, and files that texts name.

use super::{files, read, root, shown};
use std::path::{Path, PathBuf};

/// Folders of the repository that texts name files of.
const FOLDERS: [&str; 7] = [
    "docs/",
    "src/",
    "isle/",
    "tests/",
    "filetests/",
    "tools/",
    "examples/",
];

/// All documents.
fn documents() -> Vec<PathBuf> {
    let mut found = files("docs", &["md"]);
    for name in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"] {
        let path = root().join(name);
        if path.exists() {
            found.push(path);
        }
    }
    found
}

/// All texts that may name files.
fn texts() -> Vec<PathBuf> {
    let mut found = documents();
    for folder in [
        "src",
        "isle",
        "tests",
        "filetests/tests",
        "tools",
        "examples",
    ] {
        found.extend(files(folder, &["rs", "isle", "isa"]));
    }
    found.push(root().join("build.rs"));
    found.push(root().join(".ci/run"));
    found
}

/// Targets of the links `[…](target)` outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            if let Some(end) = line[at..].find(')') {
                found.push(&line[at + 2..at + end]);
            }
        }
    }
    found
}

/// The anchors that headings have.
fn anchors(text: &str) -> Vec<String> {
    let mut fenced = false;
    let headings = text.lines().filter(|line| {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        !fenced && line.starts_with('#')
    });
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}

/// What a link of `file` misses; none if it is right, or leads to another site.
fn broken(file: &Path, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => file.to_owned(),
        path => file.parent().expect("a file").join(path),
    };
    if !path.exists() {
        return Some(format!("{}: no file {target}", shown(file)));
    }
    let missing = !anchor.is_empty() && !anchors(&read(&path)).iter().any(|a| a == anchor);
    missing.then(|| format!("{}: no heading {target}", shown(file)))
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for file in documents() {
        for target in links(&read(&file)) {
            checked += 1;
            wrong.extend(broken(&file, target));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 5, "only {checked} links");
}

/// Words of a text that may be paths.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let part =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '*' | '<' | '{' | '$');
    text.split(move |c| !part(c))
        .map(|word| word.trim_end_matches(['.', '-']))
}

/// Whether a word stands for many files, or for one that the reader chooses.
fn is_pattern(word: &str) -> bool {
    word.contains(['*', '<', '{', '$']) || word.contains("..") || word.contains("NAME")
}

#[test]
fn every_file_that_a_document_names_is_there() {
    let mut wrong = Vec::new();
    for file in documents() {
        let content = read(&file);
        for word in words(&content).filter(|word| !is_pattern(word)) {
            let named = FOLDERS.iter().any(|folder| word.starts_with(folder));
            if named && !root().join(word).exists() {
                wrong.push(format!("{}: {word}", shown(&file)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Documents that the build makes.
const MADE: [&str; 1] = ["reference.md"];

/// No text names a document that the repository does not hold.
#[test]
fn every_document_that_a_text_names_is_there() {
    let mut wrong = Vec::new();
    // The examples of this test name what is not there.
    let own = root().join("tests/documents");
    for file in texts().into_iter().filter(|file| !file.starts_with(&own)) {
        let content = read(&file);
        let documents = words(&content)
            .filter(|word| word.len() > 3 && (word.ends_with(".md") || word.starts_with("docs/")))
            .map(|word| word.trim_start_matches(['.', '/']))
            .filter(|word| !is_pattern(word) && !MADE.contains(word));
        for word in documents {
            let folders = [file.parent().expect("a file"), root(), &root().join("docs")];
            if !folders.iter().any(|folder| folder.join(word).exists()) {
                wrong.push(format!("{}: {word}", shown(&file)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_broken_link_is_found() {
    let file = root().join("docs/errata.md");
    assert_eq!(broken(&file, "semantics.md"), None);
    assert_eq!(broken(&file, "semantics.md#floating-point"), None);
    assert!(broken(&file, "semantics.md#flying").is_some());
    assert!(broken(&file, "no_such.md").is_some());
    assert_eq!(
        links("a [b](c.md) and [d](e)\n```\n[f](g)\n```\n"),
        ["c.md", "e"]
    );
}
