//! The table of the errata: complete, and the only source of the numbers that code and documents name.

use super::{files, read, shown, text};
use std::collections::BTreeMap;

/// The families and how many entries each has.
const FAMILIES: [(char, usize); 4] = [('G', 28), ('H', 28), ('I', 86), ('X', 30)];

/// Numbers of the form `H-12` in a text.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.split(move |c| !is_word(c)).filter(|word| {
        let mut chars = word.chars();
        let family = chars.next().unwrap_or(' ');
        FAMILIES.iter().any(|(letter, _)| *letter == family)
            && chars.next() == Some('-')
            && word.len() == 4
            && word[2..].bytes().all(|b| b.is_ascii_digit())
    })
}

/// The rows of the table by number: the cells behind it.
fn table(document: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut rows = BTreeMap::new();
    for line in document.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if numbers(cells[0]).next() == Some(cells[0]) {
            let twice = rows.insert(cells[0], cells[1..].to_vec());
            assert!(twice.is_none(), "{} has two rows", cells[0]);
        }
    }
    rows
}

#[test]
fn every_entry_has_a_full_row() {
    let document = text("docs/errata.md");
    let rows = table(&document);
    for (family, count) in FAMILIES {
        for number in 1..=count {
            let number = format!("{family}-{number:02}");
            let row = rows
                .get(number.as_str())
                .unwrap_or_else(|| panic!("docs/errata.md has no {number}"));
            assert_eq!(row.len(), 4, "{number}: {row:?}");
            assert!(row.iter().all(|cell| !cell.is_empty()), "{number}: {row:?}");
        }
    }
    let entries: usize = FAMILIES.iter().map(|(_, count)| count).sum();
    assert_eq!(rows.len(), entries);
}

#[test]
fn every_number_that_something_names_is_in_the_table() {
    let document = text("docs/errata.md");
    let rows = table(&document);
    let (mut named, mut unknown) = (0, Vec::new());
    for folder in ["src", "isle", "docs", "tests", "filetests/tests", "tools"] {
        for file in files(folder, &["rs", "isle", "isa", "md"]) {
            let content = read(&file);
            // Other texts may number things in the same way; what is meant are the lines that speak of errata.
            let lines = content
                .lines()
                .filter(|line| line.to_lowercase().contains("errata"));
            for number in lines.flat_map(numbers) {
                named += 1;
                if !rows.contains_key(number) {
                    unknown.push(format!("{}: {number}", shown(&file)));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(named > 30, "only {named} numbers are named anywhere");
}

#[test]
fn numbers_are_recognised() {
    let found: Vec<&str> =
        numbers("errata H-12 (G-07, X-29); I-1, HH-12, A-12, H-123, H-12b").collect();
    assert_eq!(found, ["H-12", "G-07", "X-29"]);
}
