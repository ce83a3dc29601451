//! Text to tokens: words, numbers, quoted names, punctuation and ends of lines. Comments are `//`, `#` and `/* */`.

use super::diagnostic::{Diagnostic, Span};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind<'a> {
    /// Letters, digits, `_`, `$` and dots, beginning with a letter, `_`, `$`, or a dot before one of these or a digit:
    /// `IADD.X`, `R1.H0_H0`, `.kernel`, `.L1`, `.H0`.
    Word(&'a str),
    /// A literal without sign: `12`, `0x1f`, `0.5`, `1e-3`.
    Number(&'a str),
    /// What stands between double quotes, `\\"` and other escapes as written.
    Quoted(&'a str),
    /// Any other character.
    Mark(char),
    /// The end of a line, or of the text.
    Newline,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: TokenKind<'a>,
    /// Where it stands.
    pub span: Span,
}

const MARKS: &str = ",;:[](){}+-~!|@&=?%.";

fn begins_word(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == '$'
}

fn continues_word(c: char) -> bool {
    begins_word(c) || c.is_ascii_digit() || c == '.'
}

/// The mark that some editors put at the start of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The tokens of a text, with a final [`TokenKind::Newline`]; characters that begin no token are reported and left out.
pub fn tokens<'a>(text: &'a str, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token<'a>> {
    let mut out = Vec::new();
    let mut at = text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len();
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let start = at;
        let kind = if c == '\n' {
            at += 1;
            TokenKind::Newline
        } else if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        } else if rest.starts_with("//") || c == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        } else if rest.starts_with("/*") {
            match rest.find("*/") {
                Some(end) => at += end + 2,
                None => {
                    diagnostics.push(
                        Diagnostic::new(
                            Span {
                                start,
                                end: start + 2,
                            },
                            "this comment does not end",
                        )
                        .expect(["`*/`"]),
                    );
                    at = text.len();
                }
            }
            continue;
        } else if c == '"' {
            let length = quoted_length(&rest[1..]);
            match rest[1 + length..].starts_with('"') {
                true => {
                    at += length + 2;
                    TokenKind::Quoted(&rest[1..=length])
                }
                false => {
                    at += 1 + length;
                    diagnostics.push(
                        Diagnostic::new(Span { start, end: at }, "this name does not end")
                            .expect(["`\"`"]),
                    );
                    continue;
                }
            }
        } else if begins_word(c)
            || (c == '.' && rest[1..].starts_with(|c| begins_word(c) || c.is_ascii_digit()))
        {
            at += rest.find(|c| !continues_word(c)).unwrap_or(rest.len());
            TokenKind::Word(&text[start..at])
        } else if c.is_ascii_digit() {
            at += number_length(rest);
            TokenKind::Number(&text[start..at])
        } else if MARKS.contains(c) {
            at += 1;
            TokenKind::Mark(c)
        } else {
            at += c.len_utf8();
            diagnostics.push(Diagnostic::new(
                Span { start, end: at },
                format!("`{}` means nothing here", c.escape_default()),
            ));
            continue;
        };
        out.push(Token {
            kind,
            span: Span { start, end: at },
        });
    }
    out.push(Token {
        kind: TokenKind::Newline,
        span: Span {
            start: text.len(),
            end: text.len(),
        },
    });
    out
}

/// Characters before the quote or the end of the line, a quote behind `\\` not counted.
fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.find(|c| {
        let here = c == '\n' || (c == '"' && !escaped);
        escaped = c == '\\' && !escaped;
        here
    });
    end.unwrap_or(text.len())
}

/// Length of the literal at the start of `text`, with letters that do not belong to it: what is no number is named as a
/// whole.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut end = 0;
    while end < bytes.len() {
        let after_exponent = !hexadecimal && end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        let sign = matches!(bytes[end], b'+' | b'-')
            && after_exponent
            && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        if !(bytes[end].is_ascii_alphanumeric() || bytes[end] == b'_' || bytes[end] == b'.' || sign)
        {
            break;
        }
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind<'_>> {
        let mut diagnostics = Vec::new();
        let tokens = tokens(text, &mut diagnostics);
        assert_eq!(diagnostics, []);
        tokens.into_iter().map(|t| t.kind).collect()
    }

    #[test]
    fn passes_over_a_byte_order_mark() {
        assert_eq!(
            kinds("\u{feff}NOP"),
            [TokenKind::Word("NOP"), TokenKind::Newline]
        );
    }

    #[test]
    fn splits() {
        use TokenKind::*;
        assert_eq!(
            kinds("@!P0 IMAD.WIDE R[0:1], -|R2.H0_H0| /* a\nb */ // c\n"),
            [
                Mark('@'),
                Mark('!'),
                Word("P0"),
                Word("IMAD.WIDE"),
                Word("R"),
                Mark('['),
                Number("0"),
                Mark(':'),
                Number("1"),
                Mark(']'),
                Mark(','),
                Mark('-'),
                Mark('|'),
                Word("R2.H0_H0"),
                Mark('|'),
                Newline,
                Newline
            ]
        );
        assert_eq!(
            kinds("0x1e-1 1e-3 1.5e+4 .+0x4 \"a b\""),
            [
                Number("0x1e"),
                Mark('-'),
                Number("1"),
                Number("1e-3"),
                Number("1.5e+4"),
                Mark('.'),
                Mark('+'),
                Number("0x4"),
                Quoted("a b"),
                Newline
            ]
        );
        assert_eq!(kinds(r#""a\"b""#), [Quoted(r#"a\"b"#), Newline]);
        assert_eq!(
            kinds(".kernel x # y"),
            [Word(".kernel"), Word("x"), Newline]
        );
    }

    #[test]
    fn reports() {
        let mut diagnostics = Vec::new();
        tokens("a ß ` \"b\n /* c", &mut diagnostics);
        assert_eq!(diagnostics.len(), 4);
    }
}
