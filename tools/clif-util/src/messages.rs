//! What goes to standard error, and how much of it.
//!
//! Every error is named as long as there are no more than [`NAMED`]; of more, the first [`FIRST`] are named and the
//! rest is counted. What belongs to an error besides its line – the line of the text, what was expected – is shown
//! while all of it together stays below [`DETAILED`]. Lines that quote an endless or a binary input are cut, control
//! characters are written as escapes.

use crate::colours::Label;
use crate::pipe::Heard;
use cranelift_thisgpu::asm::{Diagnostics, Severity};
use cranelift_thisgpu::error::Errors;
use std::fmt::{self, Display, Write as _};
use std::io::Write as _;

/// Most errors that are named one by one (assigned).
const NAMED: usize = 100;
/// Errors that are named of more than those (assigned).
pub const FIRST: usize = 20;
/// Bytes of messages after which only their first lines are printed (assigned).
const DETAILED: usize = 1500;
/// Most characters of a line: those at its beginning, and those at its end, where remedies stand (assigned).
const LINE: (usize, usize) = (450, 150);
/// Most bytes of a message that is not made here (assigned).
const MESSAGE: usize = 3500;

/// A wrong command line that only its files show to be wrong: exit status 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Several errors of one kind, each the line that is printed.
#[derive(Debug)]
pub struct Several(pub Vec<String>);

impl Several {
    /// The errors, each by its text.
    pub fn of(errors: &[impl Display]) -> Self {
        let line = |error| format!("error: {error}");
        Self(errors.iter().map(line).collect())
    }
}

impl Display for Several {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for Several {}

/// A line and what explains it.
struct Message {
    /// `error: `, or nothing where the line says it; printed as it is.
    kind: String,
    line: String,
    details: Option<String>,
}

/// Prints a message. Whoever has closed standard error wants none.
pub fn say(text: impl Display) {
    // One call of the system: messages of several processes stay whole.
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}

/// Prints a report that was asked for.
///
/// # Errors
/// When standard error cannot be written.
pub fn report(text: impl Display) -> std::io::Result<()> {
    Heard::new(std::io::stderr()).write_all(text.to_string().as_bytes())
}

/// Prints an error; each of several begins on a line of its own, the line of the text below it.
pub fn print_error(error: &anyhow::Error) {
    say(error_text(error));
}

/// What [`print_error`] prints.
fn error_text(error: &anyhow::Error) -> String {
    if let Some(errors) = error.downcast_ref::<Errors>() {
        let message = |error: &cranelift_thisgpu::error::Error| Message {
            kind: "error: ".to_owned(),
            line: error.to_string(),
            details: error.excerpt(),
        };
        return list(errors.iter().map(message).collect(), "errors");
    }
    if let Some(diagnostics) = error.downcast_ref::<Diagnostics>() {
        return diagnostics_text(diagnostics, FIRST, "");
    }
    if let Some(Several(lines)) = error.downcast_ref::<Several>() {
        return list(plain("", lines), "errors");
    }
    let message = Message {
        kind: "error: ".to_owned(),
        line: format!("{error:#}"),
        details: None,
    };
    cut(&list(vec![message], "errors"))
}

/// Prints an error with what explains it.
pub fn print_explained(error: impl Display, details: &str) {
    let message = Message {
        kind: "error: ".to_owned(),
        line: error.to_string(),
        details: Some(details.to_owned()),
    };
    say(list(vec![message], "errors"));
}

/// A number of things: `1 fault`, `2 faults`.
pub fn counted(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// Prints errors, each on a line of its own.
pub fn print_errors(errors: &[impl Display]) {
    say(list(plain("error: ", errors), "errors"));
}

/// Prints lines that name their place and say what they are.
pub fn print_lines(lines: &[String], things: &str) {
    say(list(plain("", lines), things));
}

/// Prints warnings, each on a line of its own.
pub fn print_warnings(warnings: &[impl Display]) {
    print_kind("warning", warnings);
}

/// Prints messages of a kind, each on a line of its own.
pub fn print_kind(kind: &str, messages: &[impl Display]) {
    let (head, things) = (format!("{kind}: "), format!("{kind}s"));
    say(list(plain(&head, messages), &things));
}

/// Prints what is wrong with an assembly text, `most` errors of it, or what is suspicious about it.
pub fn print_diagnostics(diagnostics: &Diagnostics, most: usize) {
    say(diagnostics_text(diagnostics, most, "; see --max-errors"));
}

fn plain(kind: &str, items: &[impl Display]) -> Vec<Message> {
    let items = items.iter();
    let messages = items.map(|item| Message {
        kind: kind.to_owned(),
        line: item.to_string(),
        details: None,
    });
    messages.collect()
}

fn list(messages: Vec<Message>, things: &str) -> String {
    let all = messages.len();
    let named = if all <= NAMED { all } else { FIRST };
    let mut text = String::new();
    for message in &messages[..named] {
        push(&mut text, message);
    }
    if named < all {
        let _ = writeln!(text, "{} more {things}", all - named);
    }
    text
}

/// The kind of a message in the colours of standard error.
fn coloured(kind: &str) -> String {
    match kind {
        "error: " => format!("{} ", Label::Error),
        "warning: " => format!("{} ", Label::Warning),
        kind => kind.to_owned(),
    }
}

/// Adds a message, with what explains it if there is room.
fn push(text: &mut String, message: &Message) {
    text.push_str(&coloured(&message.kind));
    for line in message.line.lines() {
        let _ = writeln!(text, "{}", shortened(line));
    }
    if let Some(details) = message.details.as_ref().filter(|_| text.len() < DETAILED) {
        for line in details.lines() {
            let _ = writeln!(text, "{}", shortened(line));
        }
    }
}

fn diagnostics_text(diagnostics: &Diagnostics, most: usize, see: &str) -> String {
    let mut one = Diagnostics {
        diagnostics: Vec::new(),
        ..diagnostics.clone()
    };
    let is_error = |severity| severity == Severity::Error;
    // Warnings in a text that is wrong can wait; of a right one no more are shown than errors would be.
    let wrong = diagnostics.has_errors();
    let kept = diagnostics.diagnostics.iter();
    let mut kept = kept.filter(|d| !wrong || is_error(d.severity));
    let mut text = String::new();
    for diagnostic in kept.by_ref().take(most) {
        one.diagnostics = vec![diagnostic.clone()];
        let shown = one.to_string();
        let (line, details) = shown.split_once('\n').unwrap_or((&shown, ""));
        let message = Message {
            kind: String::new(),
            line: line.to_owned(),
            details: Some(details.to_owned()),
        };
        push(&mut text, &message);
    }
    let rest = kept.count();
    if rest > 0 {
        let thing = if wrong { "more error" } else { "more warning" };
        let rest = counted(rest as u64, thing);
        let _ = writeln!(text, "{}: {rest}{see}", diagnostics.file);
    }
    text
}

/// A line without control characters, and without its middle if it is long.
pub fn shortened(line: &str) -> String {
    let (head, tail) = LINE;
    let length = line.chars().count();
    let mut short = String::new();
    for (index, character) in line.chars().enumerate() {
        if length > head + tail && index >= head && index < length - tail {
            if index == head {
                short.push('…');
            }
        } else if character.is_control() && character != '\t' {
            short.extend(character.escape_default());
        } else {
            short.push(character);
        }
    }
    short
}

/// As much of a message as is shown of one that is not made here, as that of the command line's parser.
pub fn cut(text: &str) -> String {
    if text.len() <= MESSAGE {
        return text.to_owned();
    }
    let end = (0..=MESSAGE).rev().find(|end| text.is_char_boundary(*end));
    let (shown, rest) = text.split_at(end.unwrap_or(0));
    format!("{shown}…\n{} more bytes\n", rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_errors_are_named_and_more_are_counted() {
        let lines = |count: usize| -> Vec<String> {
            (0..count).map(|n| format!("x:{n}: error: no")).collect()
        };
        let text = error_text(&Several(lines(NAMED)).into());
        assert_eq!(text.lines().count(), NAMED);
        let text = error_text(&Several(lines(100_000)).into());
        assert_eq!(text.lines().count(), FIRST + 1);
        assert!(
            text.ends_with("x:19: error: no\n99980 more errors\n"),
            "{text}"
        );
    }

    #[test]
    fn long_lines_keep_their_ends() {
        let text = error_text(&anyhow::anyhow!("begin{}end\u{1b}[0m", "x".repeat(1 << 20)));
        assert!(text.starts_with("error: begin") && text.ends_with("end\\u{1b}[0m\n"));
        assert!(text.len() < 1000);
        let lines = "y\n".repeat(1 << 20);
        assert!(error_text(&anyhow::anyhow!(lines)).len() < 4000);
    }

    #[test]
    fn what_explains_errors_is_left_out_when_it_is_much() {
        let text = "FOO ;\n".repeat(5000);
        let errors = cranelift_thisgpu::asm::assemble("x.s", &text).unwrap_err();
        let text = error_text(&errors.into());
        assert_eq!(text.matches(": error: ").count(), FIRST);
        assert!(text.ends_with("x.s: 4980 more errors\n"), "{text}");
        assert!(text.len() < 4000, "{}", text.len());
    }
}
