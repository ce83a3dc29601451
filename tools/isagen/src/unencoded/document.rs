//! The vendor's pages of a set without encodings, unmodified.
//!
//! A page begins with the name of its set (`SPA 5.3:`). The lines of one instruction stand below each other up to `;`,
//! but not always in order: immediates stand before the guard they belong behind, and lists of values in the middle of
//! an instruction. What a line is tells where it belongs, so each instruction is put together again from lines of known
//! kinds. All else is prose.

use super::{Operation, syntax};
use crate::ast::{Name, TextLine};
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// The name of the set that a page is about, if the text is such a page.
pub fn instruction_set(text: &str) -> Option<&str> {
    let first = text.lines().find(|line| !line.trim().is_empty())?.trim();
    let name = first.strip_suffix(':')?;
    let (family, version) = name.rsplit_once(' ')?;
    let is_version = version.contains('.')
        && version
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    (is_version && family.bytes().all(|b| b.is_ascii_uppercase())).then_some(name)
}

/// A line of the page with its place.
#[derive(Clone, Copy)]
struct Row<'t> {
    text: &'t str,
    span: Span,
}

/// Reads a page; its operation has the name of its first mnemonic.
pub fn read(file: u32, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Operation> {
    let (rows, mut lines) = without_lists(&rows(file, text));
    let last = rows.iter().rposition(|row| row.text.starts_with(';'))?;
    let mut pieces = Vec::new();
    let mut statements = Vec::new();
    for row in &rows[..=last] {
        if row.text.starts_with(';') {
            statements.extend(statement(&std::mem::take(&mut pieces), *row));
        } else {
            pieces.push(*row);
        }
    }
    let first = statements.first()?;
    let name = Name {
        text: mnemonic_of(&first.text)?.to_owned(),
        span: first.span,
    };
    let mnemonics: Vec<&str> = statements
        .iter()
        .filter_map(|line| mnemonic_of(&line.text))
        .collect();
    let examples = rows[last + 1..]
        .iter()
        .filter(|row| mnemonic(row.text).is_some_and(|m| mnemonics.contains(&m)))
        .filter_map(|row| example(*row))
        .collect();
    statements.append(&mut lines);
    let operation = syntax::operation(name, &statements, examples, diagnostics);
    Some(operation)
}

fn rows(file: u32, text: &str) -> Vec<Row<'_>> {
    let mut start = 0;
    let row = |line: &'_ str| {
        let begin = start + (line.len() - line.trim_start().len());
        start += line.len();
        (line.trim().len(), begin)
    };
    let places: Vec<(usize, usize)> = text.split_inclusive('\n').map(row).collect();
    places
        .into_iter()
        .filter(|(length, _)| *length != 0)
        .map(|(length, begin)| Row {
            text: &text[begin..begin + length],
            span: Span {
                file,
                start: begin as u32,
                end: (begin + length) as u32,
            },
        })
        .collect()
}

/// The rows without `.name: { .A*, prose .B }`, which may take several; and those lists as they are written in a
/// description.
fn without_lists<'t>(rows: &[Row<'t>]) -> (Vec<Row<'t>>, Vec<TextLine>) {
    let (mut rest, mut lists) = (Vec::new(), Vec::new());
    let mut rows = rows.iter();
    while let Some(row) = rows.next() {
        let begins = (row.text.strip_prefix('.'))
            .and_then(|text| text.split_once(": {"))
            .filter(|(name, _)| !name.contains(' '));
        let Some((name, values)) = begins else {
            rest.push(*row);
            continue;
        };
        let (mut values, mut span) = (values.to_owned(), row.span);
        while !values.contains('}') {
            let Some(next) = rows.next() else { break };
            values = format!("{values} {}", next.text);
            span = span.to(next.span);
        }
        let values = values.split('}').next().unwrap_or_default();
        let values: Vec<String> = values.split(',').filter_map(value).collect();
        lists.push(TextLine {
            text: format!(".{name} = {{{}}}", values.join(", ")),
            span,
        });
    }
    (rest, lists)
}

/// The value among words of prose.
fn value(item: &str) -> Option<String> {
    let item = item.replace("< NULL >", "<NULL>");
    let mut words = item.split_whitespace();
    let is_value = |word: &&str| word.starts_with(['.', '<']) || *word == "INVALID";
    words.find(is_value).map(str::to_owned)
}

/// The mnemonic that a text begins with.
fn mnemonic(text: &str) -> Option<&str> {
    let end = text
        .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
        .unwrap_or(text.len());
    let word = &text[..end];
    let plain = word.len() > 2 && word.starts_with(|c: char| c.is_ascii_uppercase());
    (plain && text[end..].starts_with(['.', '{', ' '])).then_some(word)
}

fn mnemonic_of(line: &str) -> Option<&str> {
    mnemonic(line.split_whitespace().nth(1)?)
}

/// The instruction whose lines stand before `end`, its parts in order; none if these are lines of prose.
fn statement(rows: &[Row<'_>], end: Row<'_>) -> Option<TextLine> {
    let part = |kind: fn(&str) -> bool| rows.iter().filter(move |row| kind(row.text));
    let guard = part(|text| text.starts_with("{@")).next()?;
    let head = part(|text| text.contains('{') && mnemonic(text).is_some()).next()?;
    let kinds: [fn(&str) -> bool; 4] = [
        |text| text.starts_with("Rd"),
        |text| text.contains('#') && !text.starts_with("Rd"),
        |text| text.starts_with("{!}"),
        |text| text.starts_with("{&") || text.starts_with("{?"),
    ];
    let mut text = format!("{} {}", guard.text, head.text);
    for kind in kinds {
        for row in part(kind) {
            text = format!("{text} {}", row.text);
        }
    }
    let first = rows.first()?;
    Some(TextLine {
        text: text + " ;",
        span: first.span.to(end.span),
    })
}

/// An example without its comment.
fn example(row: Row<'_>) -> Option<TextLine> {
    let end = row.text.find(';')? + 1;
    Some(TextLine {
        text: row.text[..end].to_owned(),
        span: Span {
            end: row.span.start + end as u32,
            ..row.span
        },
    })
}
