//! Messages about a description, each with its place.
//!
//! Every stage appends to a list and goes on, so one run names all mistakes. [`plain`] shows them with file and line,
//! `render` (feature `snippets`) with the lines themselves and carets.

use crate::source::{SourceMap, Span};
#[cfg(feature = "snippets")]
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The description cannot be used.
    Error,
    /// Suspicious, but it has a meaning.
    Warning,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong, a sentence without its full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// A few words at the caret; may be empty.
    pub label: String,
    /// A second place that belongs to it, such as an earlier definition, with a few words.
    pub related: Option<(Span, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            message: message.into(),
            span,
            label: String::new(),
            related: None,
            help: None,
        }
    }

    /// A warning at `span`.
    pub fn warning(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(span, message)
        }
    }

    /// Adds the words at the caret.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a second place.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.related = Some((span, label.into()));
        self
    }

    /// Whether it makes the description unusable.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Whether one of them is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(Diagnostic::is_error)
}

/// Sorts by place and drops repetitions: a mistake in a group is found again in each of its forms.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| {
        let key = |d: &Diagnostic| (d.span.file, d.span.start, d.span.end, d.severity);
        key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
    });
    diagnostics.dedup_by(|a, b| a.span == b.span && a.message == b.message);
}

/// The message with its place: `FILE:LINE:COLUMN: error: …`, and what belongs to it below, a line each.
pub fn plain(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = |span: Span| {
        excerpt(sources, span).map_or(String::new(), |found| {
            let column = found.text[..found.range.start].chars().count() + 1;
            format!("{}:{}:{column}: ", found.name, found.line)
        })
    };
    let mut text = format!(
        "{}{severity}: {}",
        place(diagnostic.span),
        diagnostic.message
    );
    if !diagnostic.label.is_empty() {
        text += &format!(" ({})", diagnostic.label);
    }
    if let Some((span, label)) = &diagnostic.related {
        text += &format!("\n{}{label}", place(*span));
    }
    if let Some(help) = &diagnostic.help {
        text += &format!("\nhelp: {help}");
    }
    text
}

/// The message with the lines it is about, for a terminal or, with `colour` false, for a file.
#[cfg(feature = "snippets")]
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, colour: bool) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.clone()));
    let primary = (diagnostic.span, &diagnostic.label, AnnotationKind::Primary);
    let related = diagnostic
        .related
        .iter()
        .map(|(span, label)| (*span, label, AnnotationKind::Context));
    for (span, label, kind) in std::iter::once(primary).chain(related) {
        let Some(excerpt) = excerpt(sources, span) else {
            continue;
        };
        let mut annotation = kind.span(excerpt.range);
        if !label.is_empty() {
            annotation = annotation.label(label.clone());
        }
        group = group.element(
            Snippet::source(excerpt.text)
                .path(excerpt.name)
                .line_start(excerpt.line)
                .annotation(annotation),
        );
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.clone()));
    }
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

/// The lines a span touches.
struct Excerpt<'a> {
    name: &'a str,
    text: &'a str,
    /// Number of the first line, from 1.
    line: usize,
    /// The span within `text`, at most its first line.
    range: std::ops::Range<usize>,
}

fn excerpt(sources: &SourceMap, span: Span) -> Option<Excerpt<'_>> {
    let file = sources.files().get(span.file as usize)?;
    let text = file.text.as_str();
    let start = text.floor_char_boundary(span.start as usize);
    let first = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let last = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let end = text
        .ceil_char_boundary(span.end as usize)
        .clamp(start, last);
    Some(Excerpt {
        name: &file.name,
        text: text[first..last].trim_end_matches('\r'),
        line: text[..first].matches('\n').count() + 1,
        range: {
            let length = text[first..last].trim_end_matches('\r').len();
            (start - first).min(length)..(end - first).min(length)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_message_has_its_places() {
        let mut sources = SourceMap::default();
        sources.add("a.isa", "first\n  é second\n");
        let span = |start: u32, end: u32| Span {
            file: 0,
            start,
            end,
        };
        let error = Diagnostic::error(span(11, 17), "it is there twice")
            .label("again")
            .related(span(0, 5), "first here")
            .help("rename one");
        assert_eq!(
            plain(&error, &sources),
            "a.isa:2:5: error: it is there twice (again)\na.isa:1:1: first here\nhelp: rename one"
        );
        let elsewhere = Diagnostic::warning(
            Span {
                file: 7,
                ..span(0, 0)
            },
            "odd",
        );
        assert_eq!(plain(&elsewhere, &sources), "warning: odd");
    }
}
