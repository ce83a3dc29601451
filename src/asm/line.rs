//! A cursor over the tokens of one line, and what directives and instructions have in common: numbers and names.

use super::diagnostic::{Diagnostic, Span};
use super::lexer::{Token, TokenKind};
use super::name::unquoted;

/// What is read, or what is wrong where.
pub type Parsed<T> = Result<T, Diagnostic>;

/// The tokens of one line.
pub struct Line<'t, 'a> {
    pub(super) tokens: &'t [Token<'a>],
    pub(super) at: usize,
    /// Place of the end of the line.
    end: Span,
}

impl<'t, 'a> Line<'t, 'a> {
    /// A line without its [`TokenKind::Newline`]; `end` is the place behind it.
    pub fn new(tokens: &'t [Token<'a>], end: usize) -> Self {
        Line {
            tokens,
            at: 0,
            end: Span { start: end, end },
        }
    }

    /// The next token, which stays.
    pub fn peek(&self) -> Option<TokenKind<'a>> {
        self.tokens.get(self.at).map(|t| t.kind)
    }

    /// The token so far behind the next one.
    pub fn peek_at(&self, ahead: usize) -> Option<TokenKind<'a>> {
        self.tokens.get(self.at + ahead).map(|t| t.kind)
    }

    /// The next token, which is behind the cursor then.
    #[allow(
        clippy::should_implement_trait,
        reason = "a cursor, which also looks ahead"
    )]
    pub fn next(&mut self) -> Option<Token<'a>> {
        let token = self.tokens.get(self.at).copied();
        self.at += usize::from(token.is_some());
        token
    }

    /// Place of the next token.
    pub fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(self.end, |t| t.span)
    }

    /// Place of the token before.
    pub fn previous(&self) -> Span {
        self.at
            .checked_sub(1)
            .and_then(|i| self.tokens.get(i))
            .map_or(self.end, |t| t.span)
    }

    /// Passes over a mark if it is the next token; whether it was.
    pub fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(TokenKind::Mark(mark));
        self.at += usize::from(found);
        found
    }

    /// The message that something else stands here than what may.
    pub fn unexpected<S: Into<String>>(&self, expected: impl IntoIterator<Item = S>) -> Diagnostic {
        let found = match self.peek() {
            None | Some(TokenKind::Newline) => "the line ends here".to_string(),
            Some(TokenKind::Word(w) | TokenKind::Number(w)) => format!("unexpected `{w}`"),
            Some(TokenKind::Quoted(w)) => format!("unexpected \"{w}\""),
            Some(TokenKind::Mark(c)) => format!("unexpected `{c}`"),
        };
        Diagnostic::new(self.span(), found).expect(expected)
    }

    /// Passes over a mark.
    ///
    /// # Errors
    /// When something else is the next token.
    pub fn expect(&mut self, mark: char) -> Parsed<()> {
        if self.eat(mark) {
            Ok(())
        } else {
            Err(self.unexpected([format!("`{mark}`")]))
        }
    }

    /// A number without sign.
    pub fn number(&mut self) -> Parsed<(String, Span)> {
        match self.peek() {
            Some(TokenKind::Number(text)) => {
                let span = self.span();
                self.at += 1;
                Ok((text.to_string(), span))
            }
            _ => Err(self.unexpected(["a number"])),
        }
    }

    /// The name of a symbol; whether it was quoted.
    pub fn name(&mut self) -> Parsed<(String, Span, bool)> {
        let span = self.span();
        let name = match self.peek() {
            Some(TokenKind::Word(word)) => (word.to_string(), span, false),
            Some(TokenKind::Quoted(text)) => {
                let name = unquoted(text).ok_or_else(|| {
                    Diagnostic::new(span, "this name has an unknown escape")
                        .expect([r#"\""#, r"\\", r"\n", r"\u{41}"])
                })?;
                (name, span, true)
            }
            _ => return Err(self.unexpected(["a name"])),
        };
        self.at += 1;
        Ok(name)
    }

    /// `+4` or `-4` behind a symbol; 0 without.
    pub fn addend(&mut self) -> Parsed<i64> {
        let negative = match self.peek() {
            Some(TokenKind::Mark('+')) => false,
            Some(TokenKind::Mark('-')) => true,
            _ => return Ok(0),
        };
        self.at += 1;
        let (text, span) = self.number()?;
        let bits = crate::isa::literal::signed(negative, &text, 64)
            .map_err(|e| Diagnostic::new(span, e.to_string()))?;
        Ok(bits as i64)
    }
}
