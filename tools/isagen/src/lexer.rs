//! Tokens of statements.
//!
//! A [`Cursor`] walks a region of a file. It skips blanks, line ends and `//` comments; it never fails: what belongs to
//! no token comes out as [`Kind::Unknown`], and at the end of the region it yields [`Kind::End`] forever.

use crate::ast::{Name, Number};
use crate::source::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Letters, digits, underscores and dots, not beginning with a digit.
    Name,
    /// Begins with a digit; may be no valid number (`2A`).
    Number,
    /// In quotes, which are not part of [`Token::text`].
    Quoted,
    /// One of `<>(){}[],;:=+-*|!~.$&` or `==`, `!=`.
    Punctuation,
    /// Any other character, or a quote that is not closed on its line.
    Unknown,
    /// The end of the region.
    End,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its text, without quotes.
    pub text: &'a str,
    /// Where it stands.
    pub span: Span,
}

impl Token<'_> {
    /// Whether it is this punctuation.
    pub fn is(&self, punctuation: &str) -> bool {
        self.kind == Kind::Punctuation && self.text == punctuation
    }

    /// As a name with its place.
    pub fn name(&self) -> Name {
        Name {
            text: self.text.to_owned(),
            span: self.span,
        }
    }

    /// As a number; none if it is not one or does not fit 64 bits.
    pub fn number(&self) -> Option<Number> {
        if self.kind != Kind::Number {
            return None;
        }
        parse_number(self.text).map(|value| Number {
            value,
            span: self.span,
        })
    }

    /// In a message: what was found.
    pub fn describe(&self) -> String {
        match self.kind {
            Kind::End => "the end of the section".to_owned(),
            _ => format!("`{}`", self.text),
        }
    }
}

/// Reads `12`, `0xff` or `0b101`, underscores allowed.
pub fn parse_number(text: &str) -> Option<u64> {
    let digits = text.replace('_', "");
    let lower = digits.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(binary) = lower.strip_prefix("0b") {
        u64::from_str_radix(binary, 2).ok()
    } else {
        digits.parse().ok()
    }
}

/// A position within a region of a file.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    file: u32,
    position: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `range` of the file with this text. `range` must lie on character boundaries.
    pub fn new(text: &'a str, file: u32, range: std::ops::Range<usize>) -> Cursor<'a> {
        Cursor {
            text,
            file,
            position: range.start,
            end: range.end.min(text.len()),
        }
    }

    /// Byte offset in the file.
    pub fn position(&self) -> usize {
        self.position
    }

    /// What is left of the region.
    pub fn rest(&self) -> &'a str {
        self.text.get(self.position..self.end).unwrap_or("")
    }

    /// What is left of the current line.
    pub fn rest_of_line(&self) -> &'a str {
        let rest = self.rest();
        &rest[..rest.find('\n').unwrap_or(rest.len())]
    }

    /// Goes to the start of the next line.
    pub fn skip_line(&mut self) {
        let rest = self.rest();
        self.position += rest.find('\n').map_or(rest.len(), |at| at + 1);
    }

    /// A span in this file.
    pub fn span(&self, start: usize, end: usize) -> Span {
        Span {
            file: self.file,
            start: start as u32,
            end: end as u32,
        }
    }

    /// The next token without taking it.
    pub fn peek(&self) -> Token<'a> {
        self.clone().next()
    }

    /// Whether the next token is on another line than `span` ends on.
    pub fn next_is_on_new_line(&self, span: Span) -> bool {
        let next = self.peek();
        next.kind == Kind::End
            || self
                .text
                .get(span.end as usize..next.span.start as usize)
                .is_some_and(|between| between.contains('\n'))
    }

    /// Takes the next token if it is this punctuation.
    pub fn take(&mut self, punctuation: &str) -> Option<Token<'a>> {
        let token = self.peek();
        token.is(punctuation).then(|| self.next())
    }

    /// Takes the next token.
    #[allow(clippy::should_implement_trait)] // it has no end, so it is no iterator
    pub fn next(&mut self) -> Token<'a> {
        self.skip_blanks();
        let start = self.position;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Token {
                kind: Kind::End,
                text: "",
                span: self.span(start, start),
            };
        };
        let (kind, length) = match first {
            'A'..='Z' | 'a'..='z' | '_' => (Kind::Name, word_length(rest)),
            '0'..='9' => (Kind::Number, word_length(rest)),
            '"' => return self.quoted(),
            '=' | '!' if rest[1..].starts_with('=') => (Kind::Punctuation, 2),
            '<' | '>' | '(' | ')' | '{' | '}' | '[' | ']' | ',' | ';' | ':' | '=' | '+' | '-'
            | '*' | '|' | '!' | '~' | '.' | '$' | '&' => (Kind::Punctuation, 1),
            other => (Kind::Unknown, other.len_utf8()),
        };
        self.position += length;
        Token {
            kind,
            text: &rest[..length],
            span: self.span(start, start + length),
        }
    }

    fn quoted(&mut self) -> Token<'a> {
        let start = self.position;
        let line = self.rest_of_line();
        let (kind, text, length) = match line[1..].find('"') {
            Some(close) => (Kind::Quoted, &line[1..1 + close], close + 2),
            None => (Kind::Unknown, &line[..1], 1),
        };
        self.position += length;
        Token {
            kind,
            text,
            span: self.span(start, start + length),
        }
    }

    /// Goes to the next token.
    pub fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.position += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.skip_line();
        }
    }
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
        .unwrap_or(text.len())
}
