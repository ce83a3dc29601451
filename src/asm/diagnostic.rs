//! Messages about an assembly text, each with its place.

use crate::text::{excerpt, line_starts, list};
use std::fmt;

/// Bytes of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

impl Span {
    /// From the start of this to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end.max(self.start),
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The text means nothing.
    Error,
    /// The text means something that is hardly meant.
    Warning,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What would be right there: legal values in the order of the description, kinds of operands.
    pub expected: Vec<String>,
    /// More to know, a line each: the syntax, a suggestion.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// A mistake at `span`.
    pub fn new(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            span,
            message: message.into(),
            expected: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Something suspicious at `span`.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::new(span, message)
        }
    }

    /// Adds what would be right.
    pub fn expect<S: Into<String>>(mut self, expected: impl IntoIterator<Item = S>) -> Diagnostic {
        for text in expected {
            let text = text.into();
            if !self.expected.contains(&text) {
                self.expected.push(text);
            }
        }
        self
    }

    /// Adds a line of explanation.
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }
}

/// Mistakes of a text that are explained by what would have been right; the others only say what is wrong (*assumed*:
/// more than anybody reads, and a search through all names for each of a million mistakes takes longer than anybody
/// waits).
const EXPLAINED: u32 = 200;
/// Names that are compared for all of them; a function may have a hundred thousand labels (*assumed*).
const COMPARED: usize = 1 << 18;

/// How many more mistakes of a text are explained.
#[derive(Debug)]
pub(super) struct Explanations {
    left: u32,
    names: usize,
}

impl Default for Explanations {
    fn default() -> Self {
        Explanations {
            left: EXPLAINED,
            names: COMPARED,
        }
    }
}

impl Explanations {
    /// Whether one more mistake is explained, by a search through so many names.
    pub fn take(&mut self, names: usize) -> bool {
        let wanted = self.left != 0 && self.names != 0;
        self.left = self.left.saturating_sub(1);
        self.names = self.names.saturating_sub(names);
        wanted
    }
}

/// What there is to say about one text, in its order: what makes it no program, or what is suspicious about a program.
/// Prints the same as `Debug`, which is what `main` and `unwrap` show.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// Name of the file, for messages.
    pub file: String,
    /// Its text; empty if there is nothing to say.
    pub text: String,
    /// The messages.
    pub diagnostics: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Those of a text, in the order of their places; `file` is its name.
    pub fn new(file: &str, text: &str, mut diagnostics: Vec<Diagnostic>) -> Diagnostics {
        diagnostics.sort_by_key(|d| d.span);
        let text = if diagnostics.is_empty() { "" } else { text };
        Diagnostics {
            file: file.to_string(),
            text: text.to_string(),
            diagnostics,
        }
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Whether one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|d| d.severity == Severity::Error)
    }

    /// Line and column of a byte, both counted from 1; a column is a character.
    pub fn position(&self, byte: usize) -> (usize, usize) {
        self.position_among(&line_starts(&self.text), byte)
    }

    fn position_among(&self, starts: &[usize], byte: usize) -> (usize, usize) {
        let byte = byte.min(self.text.len());
        let line = starts.partition_point(|s| *s <= byte);
        (line, self.text[starts[line - 1]..byte].chars().count() + 1)
    }
}

impl fmt::Display for Diagnostics {
    /// For each `FILE:LINE:COLUMN: error: …` or `… warning: …`, the line with carets, and what was expected.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let starts = line_starts(&self.text);
        for (i, d) in self.diagnostics.iter().enumerate() {
            let (line, column) = self.position_among(&starts, d.span.start);
            if i != 0 {
                writeln!(f)?;
            }
            let severity = match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            write!(
                f,
                "{}:{line}:{column}: {severity}: {}",
                self.file, d.message
            )?;
            let text = self.text[starts[line - 1]..]
                .lines()
                .next()
                .unwrap_or_default();
            let marked = self
                .text
                .get(d.span.start..d.span.end)
                .map_or(1, |t| t.chars().take_while(|c| *c != '\n').count());
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            let [text, carets] = excerpt(text, column - 1, marked);
            write!(f, "\n {number} | {text}\n {margin} | {carets}")?;
            if !d.expected.is_empty() {
                write!(f, "\n {margin} = expected {}", list(&d.expected))?;
            }
            for note in &d.notes {
                write!(f, "\n {margin} = {note}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_place() {
        let text = "one\n\ttwo three\n";
        let errors = Diagnostics::new(
            "x.s",
            text,
            vec![
                Diagnostic::new(Span { start: 9, end: 14 }, "no")
                    .expect(["a", "b", "a", "c"])
                    .note("see"),
            ],
        );
        assert_eq!(
            errors.to_string(),
            "x.s:2:6: error: no\n 2 | \ttwo three\n   | \t    ^^^^^\n   = expected a, b or c\n   = see"
        );
        assert_eq!(format!("{errors:?}"), errors.to_string());
    }
}
