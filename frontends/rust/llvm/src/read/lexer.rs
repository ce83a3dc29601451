//! Tokens of LLVM IR.

use crate::error::ReadError;
use std::borrow::Cow;

/// A token. Names are without their mark, quotes and escapes.
#[derive(Clone, Debug, PartialEq)]
pub enum Token<'a> {
    /// A keyword, an opcode, a type, or the name of a label.
    Word(&'a str),
    /// A number, as it is written.
    Number(&'a str),
    /// `%name`.
    Local(Cow<'a, str>),
    /// `@name`.
    Global(Cow<'a, str>),
    /// `!12`.
    Node(u32),
    /// `!dbg`, `!DILocation`.
    Kind(&'a str),
    /// `#12`.
    Group(u32),
    /// `$name`.
    Comdat,
    /// `"text"`, as bytes.
    Text(Vec<u8>),
    /// `c"text"`, as bytes.
    Bytes(Vec<u8>),
    /// A sign. `…` stands for three dots.
    Sign(char),
}

/// A text that is read from left to right.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    ahead: Option<Option<Token<'a>>>,
    /// Types and constants around the place.
    depth: u32,
}

/// Most types or constants inside of each other (*assumed*: clang stops at 256 brackets, and rustc writes far fewer).
pub const MAX_DEPTH: u32 = 128;

impl<'a> Lexer<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            ahead: None,
            depth: 0,
        }
    }

    /// Reads what is inside of a type or constant.
    ///
    /// # Errors
    /// Those of `read`; more than [`MAX_DEPTH`] inside of each other.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if self.depth == MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// The token that comes next.
    pub fn peek(&mut self) -> Option<&Token<'a>> {
        if self.ahead.is_none() {
            let token = self.scan();
            self.ahead = Some(token);
        }
        self.ahead.as_ref().and_then(Option::as_ref)
    }

    /// The next token, which is passed.
    pub fn next_token(&mut self) -> Option<Token<'a>> {
        match self.ahead.take() {
            Some(token) => token,
            None => self.scan(),
        }
    }

    /// Passes a sign if it comes next.
    pub fn eat(&mut self, sign: char) -> bool {
        let comes = self.peek() == Some(&Token::Sign(sign));
        if comes {
            self.next_token();
        }
        comes
    }

    /// Passes a word if it comes next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let comes = self.peek() == Some(&Token::Word(word));
        if comes {
            self.next_token();
        }
        comes
    }

    /// Passes a sign.
    ///
    /// # Errors
    /// When something else comes.
    pub fn expect(&mut self, sign: char) -> Result<(), ReadError> {
        if self.eat(sign) {
            return Ok(());
        }
        Err(ReadError::expected(format!("`{sign}`"), self.found()))
    }

    /// Passes a word.
    ///
    /// # Errors
    /// When something else comes.
    pub fn expect_word(&mut self, word: &str) -> Result<(), ReadError> {
        if self.eat_word(word) {
            return Ok(());
        }
        Err(ReadError::expected(format!("`{word}`"), self.found()))
    }

    /// What comes next, for messages.
    pub fn found(&mut self) -> String {
        match self.peek() {
            None => "the end".to_owned(),
            Some(token) => format!("{token:?}"),
        }
    }

    /// Passes what stands in brackets up to the one that closes them, the first of which comes next.
    ///
    /// # Errors
    /// When they are not closed.
    pub fn skip_brackets(&mut self) -> Result<(), ReadError> {
        let mut depth = 0_u32;
        loop {
            match self.next_token() {
                Some(Token::Sign('(' | '[' | '{')) => depth += 1,
                Some(Token::Sign(')' | ']' | '}')) if depth != 0 => depth -= 1,
                Some(_) if depth != 0 => {}
                Some(token) => return Err(ReadError::expected("brackets", format!("{token:?}"))),
                None => return Err(ReadError::Unclosed),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The characters from here on that `wanted` accepts, which are passed.
    fn run(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| wanted(*byte)).count();
        self.at += length;
        &rest[..length]
    }

    fn scan(&mut self) -> Option<Token<'a>> {
        loop {
            self.run(|byte| byte.is_ascii_whitespace());
            if !self.rest().starts_with(';') {
                break;
            }
            self.run(|byte| byte != b'\n');
        }
        let mut bytes = self.rest().bytes();
        let first = bytes.next()?;
        let second = bytes.next();
        Some(match first {
            b'%' | b'@' => {
                self.at += 1;
                let name = self.name();
                if first == b'%' {
                    Token::Local(name)
                } else {
                    Token::Global(name)
                }
            }
            b'$' => {
                self.at += 1;
                self.name();
                Token::Comdat
            }
            b'#' if second.is_some_and(|byte| byte.is_ascii_digit()) => {
                self.at += 1;
                Token::Group(self.run(|byte| byte.is_ascii_digit()).parse().unwrap_or(0))
            }
            b'!' => {
                self.at += 1;
                if second.is_some_and(|byte| byte.is_ascii_digit()) {
                    Token::Node(self.run(|byte| byte.is_ascii_digit()).parse().unwrap_or(0))
                } else if second.is_some_and(is_of_name) {
                    Token::Kind(self.run(is_of_name))
                } else {
                    Token::Sign('!')
                }
            }
            b'"' => Token::Text(self.quoted()),
            b'c' if second == Some(b'"') => {
                self.at += 1;
                Token::Bytes(self.quoted())
            }
            b'0'..=b'9' => Token::Number(self.number()),
            b'-' | b'+' if second.is_some_and(|byte| byte.is_ascii_digit()) => {
                Token::Number(self.number())
            }
            b'.' if self.rest().starts_with("...") => {
                self.at += 3;
                Token::Sign('…')
            }
            byte if is_of_name(byte) => Token::Word(self.run(is_of_name)),
            _ => {
                let sign = self.rest().chars().next()?;
                self.at += sign.len_utf8();
                Token::Sign(sign)
            }
        })
    }

    fn number(&mut self) -> &'a str {
        let (start, mut before) = (self.at, 0);
        let hexadecimal = self.rest().starts_with("0x");
        for byte in self.rest().bytes() {
            let of_exponent = matches!(byte, b'+' | b'-') && matches!(before, b'e' | b'E' | 0);
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || of_exponent && !hexadecimal) {
                break;
            }
            before = byte;
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn name(&mut self) -> Cow<'a, str> {
        if self.rest().starts_with('"') {
            let bytes = self.quoted();
            return Cow::Owned(String::from_utf8_lossy(&bytes).into_owned());
        }
        Cow::Borrowed(self.run(is_of_name))
    }

    /// Bytes between quotes: a backslash and two digits are one byte, two backslashes are a backslash.
    fn quoted(&mut self) -> Vec<u8> {
        let inside = &self.rest().as_bytes()[1..];
        let (mut bytes, mut at) = (Vec::new(), 0);
        while let Some(&byte) = inside.get(at).filter(|byte| **byte != b'"') {
            let digit = |offset: usize| {
                let digit = inside.get(at + offset).copied().map(char::from);
                digit.and_then(|digit| digit.to_digit(16))
            };
            match (byte, digit(1), digit(2)) {
                (b'\\', Some(high), Some(low)) => {
                    bytes.push((high * 16 + low) as u8);
                    at += 3;
                }
                (b'\\', ..) if inside.get(at + 1) == Some(&b'\\') => {
                    bytes.push(b'\\');
                    at += 2;
                }
                _ => {
                    bytes.push(byte);
                    at += 1;
                }
            }
        }
        self.at = (self.at + at + 2).min(self.text.len());
        bytes
    }
}

/// What is said of types and constants with more than [`MAX_DEPTH`] inside of each other.
pub const TOO_DEEP: ReadError = ReadError::TooDeep { most: MAX_DEPTH };

/// Whether a character may stand in a name without quotes.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'$' | b'.' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_all_kinds() {
        let text = r#"%a.b = call @"x y"(i32 -5, 1.5e+00, 0xH3C00) #7, !dbg !12 ; gone
            c"a\00\5Cb" "k\22" ... $c !DILocation !{"#;
        let mut lexer = Lexer::new(text);
        let tokens: Vec<Token<'_>> = std::iter::from_fn(|| lexer.next_token()).collect();
        use Token::*;
        assert_eq!(
            tokens,
            [
                Local("a.b".into()),
                Sign('='),
                Word("call"),
                Global("x y".into()),
                Sign('('),
                Word("i32"),
                Number("-5"),
                Sign(','),
                Number("1.5e+00"),
                Sign(','),
                Number("0xH3C00"),
                Sign(')'),
                Group(7),
                Sign(','),
                Kind("dbg"),
                Node(12),
                Bytes(b"a\0\\b".to_vec()),
                Text(b"k\"".to_vec()),
                Sign('…'),
                Comdat,
                Kind("DILocation"),
                Sign('!'),
                Sign('{'),
            ]
        );
    }

    #[test]
    fn brackets_are_passed_as_a_whole() {
        let mut lexer = Lexer::new("(a [b] {c}) d");
        lexer.skip_brackets().unwrap();
        assert_eq!(lexer.next_token(), Some(Token::Word("d")));
        assert!(Lexer::new("(a").skip_brackets().is_err());
    }
}
