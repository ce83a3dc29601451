//! Wrong command lines and files over all commands: what they say, and that they do nothing else.
//!
//! Each line of `table.txt` is a command line with its exit status and what the message must contain. Besides, for all
//! of them: nothing is written, nothing panics, nothing goes to standard output but the totals of those who count, and
//! the message is neither empty nor long.

#[path = "../common/mod.rs"]
mod common;
mod files;

use common::Folder;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// Most bytes of a message.
const MOST_BYTES: usize = 4096;
/// Fewest rows: fewer are a table that was not read.
const FEWEST_ROWS: usize = 150;
/// Commands that close with counts on standard output whatever came of them.
const COUNTING: [&str; 3] = ["test", "run", "interpret"];
const COMMANDS: [&str; 18] = [
    "compile",
    "run",
    "launch",
    "link",
    "asm",
    "disasm",
    "exec",
    "explore",
    "isa",
    "test",
    "interpret",
    "cat",
    "print-cfg",
    "pass",
    "bugpoint",
    "objdump",
    "diff",
    "port",
];

/// A line of the table.
struct Row<'a> {
    line: &'a str,
    arguments: Vec<String>,
    input: Option<&'a str>,
    status: i32,
    parts: Vec<&'a str>,
}

fn rows() -> Vec<Row<'static>> {
    let lines = include_str!("table.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let columns: Vec<&str> = line.split('|').map(str::trim).collect();
            let [status, command, parts @ ..] = columns.as_slice() else {
                panic!("{line}: no row");
            };
            assert!(!parts.is_empty(), "{line}: nothing is said of the message");
            let (arguments, input) = match command.split_once(" < ") {
                Some((arguments, input)) => (arguments, Some(input)),
                None => (*command, None),
            };
            let words = arguments.split_whitespace();
            Row {
                line,
                arguments: words
                    .map(|word| word.trim_matches('\'').to_owned())
                    .collect(),
                input,
                status: status.parse().unwrap(),
                parts: parts.to_vec(),
            }
        })
        .collect()
}

/// What is wrong with what a command line does, if anything.
fn check(row: &Row<'_>, folder: &Path) -> Option<String> {
    let input = match row.input {
        Some(name) => File::open(folder.join(name)).unwrap().into(),
        None => Stdio::null(),
    };
    let output = Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(&row.arguments)
        .current_dir(folder)
        .stdin(input)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    let command = row.arguments.first().map_or("", String::as_str);
    let counts = COUNTING.contains(&command) && row.status == 1;
    // A failing test says on standard output what failed.
    let said = match command {
        "test" => format!("{printed}{message}"),
        _ => message.to_string(),
    };
    let missing: Vec<_> = row
        .parts
        .iter()
        .filter(|part| !said.contains(**part))
        .collect();
    let last = printed.lines().last().unwrap_or_default();
    let wrong = [
        (
            output.status.code() != Some(row.status),
            format!("ends with {}", output.status),
        ),
        (!missing.is_empty(), format!("does not say {missing:?}")),
        (message.contains("panicked"), "panics".to_owned()),
        (message.trim().is_empty(), "says nothing".to_owned()),
        (
            message.len() > MOST_BYTES,
            format!("says {} bytes", message.len()),
        ),
        (
            !counts && !printed.is_empty(),
            "prints to standard output".to_owned(),
        ),
        (
            counts && !last.contains(" skipped") && !last.contains("\"skipped\""),
            "does not close with its counts".to_owned(),
        ),
    ];
    let wrong: Vec<String> = wrong
        .into_iter()
        .filter_map(|(is_wrong, what)| is_wrong.then_some(what))
        .collect();
    let shown: String = format!("{printed}{message}").chars().take(1500).collect();
    (!wrong.is_empty()).then(|| format!("{}\n  {}\n{shown}", row.line, wrong.join("; ")))
}

/// All files below a folder with their contents; a link that leads nowhere has none.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.insert(
                path.display().to_string(),
                fs::read(&path).unwrap_or_default(),
            );
        }
    }
    all
}

#[cfg(unix)]
#[test]
fn wrong_command_lines_say_what_is_wrong_and_do_nothing() {
    let folder = Folder::new("wrong");
    let path = folder.path("");
    let path = Path::new(&path);
    files::write(path);
    let rows = rows();
    assert!(rows.len() >= FEWEST_ROWS, "{} rows", rows.len());
    for command in COMMANDS {
        let of_command = |row: &&Row<'_>| row.arguments.first().is_some_and(|c| c == command);
        let statuses: Vec<i32> = rows
            .iter()
            .filter(of_command)
            .map(|row| row.status)
            .collect();
        assert!(
            statuses.contains(&1) && statuses.contains(&2),
            "{command} lacks a wrong command line or a wrong file"
        );
    }
    let before = contents(path);
    let wrong: Vec<String> = rows.par_iter().filter_map(|row| check(row, path)).collect();
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
    let after = contents(path);
    let changed: Vec<&String> = (after.keys().chain(before.keys()))
        .filter(|name| before.get(*name) != after.get(*name))
        .collect();
    assert!(changed.is_empty(), "written: {changed:?}");
}
