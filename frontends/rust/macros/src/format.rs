//! Format strings: string literals without their quotes, and which argument each placeholder takes.

/// The string that a literal is; `None` if it is no string.
pub fn unescape(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('r') {
        let raw = raw.trim_matches('#');
        return Some(raw.strip_prefix('"')?.strip_suffix('"')?.to_string());
    }
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            '0' => text.push('\0'),
            'x' => {
                let digits: String = rest.by_ref().take(2).collect();
                text.push(char::from(u8::from_str_radix(&digits, 16).ok()?));
            }
            'u' => {
                let digits: String = rest
                    .by_ref()
                    .skip(1)
                    .take_while(|c| *c != '}')
                    .filter(|c| *c != '_')
                    .collect();
                text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
            }
            // A line that goes on.
            '\n' => {
                let behind = rest.as_str().trim_start();
                rest = behind.chars();
            }
            other => text.push(other),
        }
    }
    Some(text)
}

/// What a placeholder names.
#[derive(Debug, PartialEq, Eq)]
pub enum Argument {
    /// The argument of this number.
    Number(usize),
    /// The argument, or variable, of this name.
    Name(String),
}

/// A piece of a format.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Text(String),
    /// A placeholder: what it names, and what is behind its colon.
    Placeholder(Argument, String),
}

/// The pieces of a format; an error says what is wrong.
pub fn pieces(format: &str) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut text, mut next) = (Vec::new(), String::new(), 0);
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '{' | '}' if rest.peek() == Some(&c) => {
                rest.next();
                text.push(c);
            }
            '}' => return Err("`}` without `{`; a brace that is printed is `}}`".into()),
            '{' => {
                let inner: String = rest.by_ref().take_while(|c| *c != '}').collect();
                let (name, specification) = inner.split_once(':').unwrap_or((&inner, ""));
                if specification.contains('$') {
                    return Err(
                        "a width or precision out of an argument (`$`) is not supported".into(),
                    );
                }
                let argument = match name.trim() {
                    "" => {
                        next += 1;
                        Argument::Number(next - 1)
                    }
                    name => match name.parse() {
                        Ok(number) => Argument::Number(number),
                        Err(_) => Argument::Name(name.to_string()),
                    },
                };
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                }
                pieces.push(Piece::Placeholder(
                    argument,
                    specification.trim().to_string(),
                ));
            }
            other => text.push(other),
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_lose_their_quotes() {
        assert_eq!(
            unescape(r#""a\n\"\x41\u{e9}\\""#).as_deref(),
            Some("a\n\"Aé\\")
        );
        assert_eq!(unescape(r##"r#"a\n"#"##).as_deref(), Some(r"a\n"));
        assert_eq!(unescape("\"a \\\n   b\"").as_deref(), Some("a b"));
        assert_eq!(unescape("12"), None);
    }

    #[test]
    fn placeholders_name_arguments() {
        let expected = vec![
            Piece::Text("{a} ".into()),
            Piece::Placeholder(Argument::Number(0), String::new()),
            Piece::Placeholder(Argument::Name("x".into()), "08.3".into()),
            Piece::Placeholder(Argument::Number(0), "?".into()),
            Piece::Placeholder(Argument::Number(1), "x".into()),
        ];
        assert_eq!(pieces("{{a}} {}{x:08.3}{0:?}{:x}"), Ok(expected));
        assert!(pieces("}").is_err());
        assert!(pieces("{:1$}").is_err());
    }
}
