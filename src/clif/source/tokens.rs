//! The words of a CLIF text, as Cranelift's reader takes them.

/// A word, number or mark of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword, opcode, type or numbered entity.
    Word(&'a str),
    /// A number, with its sign.
    Number(&'a str),
    /// A name after `%`, a text in quotes, a source location.
    Name(&'a str),
    /// Any other character.
    Mark(char),
}

/// The words of a text in order, each with its line, from 1. Comments are left out.
pub(super) struct Tokens<'a> {
    text: &'a str,
    /// Where the next word is looked for.
    position: usize,
    line: u32,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let (position, line) = (0, 1);
        Self {
            text,
            position,
            line,
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    /// Takes as many characters as `is_part` says.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.skip(length);
        &rest[..length]
    }

    /// Takes so many bytes.
    fn skip(&mut self, length: usize) {
        let taken = &self.rest()[..length];
        let lines = taken.bytes().filter(|&byte| byte == b'\n').count();
        self.line = self
            .line
            .saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.position += length;
    }

    /// Takes a number, whose first character may be anything.
    fn number(&mut self) -> &'a str {
        let start = self.position;
        self.skip(usize::from(self.rest().starts_with(['+', '-'])));
        let payload = ["NaN:", "sNaN:"];
        let payload = payload
            .iter()
            .find(|prefix| self.rest().starts_with(**prefix));
        self.skip(payload.map_or(0, |prefix| prefix.len()));
        if payload.is_none() {
            let first = self.rest().chars().next();
            self.skip(first.map_or(0, char::len_utf8));
        }
        self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        &self.text[start..self.position]
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (Token<'a>, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        loop {
            self.take(|c| c == ' ' || ('\x09'..='\x0d').contains(&c));
            if !self.rest().starts_with(';') {
                break;
            }
            self.take(|c| c != '\n');
        }
        let line = self.line;
        let rest = self.rest();
        let first = rest.chars().next()?;
        let token = match first {
            '%' => {
                self.skip(1);
                Token::Name(self.take(is_word))
            }
            '@' | '#' => {
                self.skip(1);
                Token::Name(self.take(|c| c.is_ascii_hexdigit()))
            }
            '"' => {
                self.skip(1);
                let text = self.take(|c| c != '"');
                self.skip(usize::from(!self.rest().is_empty()));
                Token::Name(text)
            }
            '0'..='9' => Token::Number(self.number()),
            '+' | '-' if begins_number(&rest[1..]) => Token::Number(self.number()),
            'a'..='z' | 'A'..='Z' if rest.starts_with("NaN") || rest.starts_with("Inf") => {
                Token::Number(self.number())
            }
            'a'..='z' | 'A'..='Z' => Token::Word(self.take(is_word)),
            other => {
                self.skip(other.len_utf8());
                Token::Mark(other)
            }
        };
        Some((token, line))
    }
}

/// Whether a sign before this belongs to a number.
fn begins_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
        || ["NaN", "Inf", "sNaN"]
            .iter()
            .any(|start| text.starts_with(start))
}

/// The kind and number of a numbered entity, such as `v12`: zeros may not lead.
pub(super) fn entity(word: &str) -> Option<(&str, u32)> {
    let kind = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &word[kind.len()..];
    let leads = digits.len() > 1 && digits.starts_with('0');
    let number = digits.parse().ok()?;
    (!leads).then_some((kind, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_lines() {
        let text = "function %f_1(i32) { ; v1 -> \"x\n  v0 = f32const -0x1.8p-3 -> +NaN:0x1\n\"a\nb\" @1f é+1";
        let tokens: Vec<(Token, u32)> = Tokens::of(text).collect();
        use Token::*;
        let expected = [
            (Word("function"), 1),
            (Name("f_1"), 1),
            (Mark('('), 1),
            (Word("i32"), 1),
            (Mark(')'), 1),
            (Mark('{'), 1),
            (Word("v0"), 2),
            (Mark('='), 2),
            (Word("f32const"), 2),
            (Number("-0x1.8p-3"), 2),
            (Mark('-'), 2),
            (Mark('>'), 2),
            (Number("+NaN:0x1"), 2),
            (Name("a\nb"), 3),
            (Name("1f"), 4),
            (Mark('é'), 4),
            (Number("+1"), 4),
        ];
        assert_eq!(tokens, expected);
    }

    #[test]
    fn entities_have_numbers() {
        assert_eq!(entity("v12"), Some(("v", 12)));
        assert_eq!(entity("i32x4"), Some(("i32x", 4)));
        assert_eq!(entity("v012"), None);
        assert_eq!(entity("block"), None);
        assert_eq!(entity("v99999999999"), None);
    }
}
