//! The part of a module that some symbols need: their definitions, and those of all that these name.
//!
//! A library has a hundred times what a program uses. What a definition names is seen in its text, without reading it:
//! a symbol begins with `@`, a node of debug information with `!`.

use hashbrown::{HashMap, HashSet};

/// A text of LLVM IR in pieces.
#[derive(Default)]
struct Pieces<'a> {
    /// What is read in any case: the data layout, types, attributes.
    always: Vec<&'a str>,
    /// Definitions and declarations of functions, variables and aliases, by symbol.
    symbols: HashMap<&'a str, &'a str>,
    /// Nodes of debug information, by number.
    nodes: HashMap<&'a str, &'a str>,
}

/// The text of what some symbols need. Those that it does not define are left out.
pub fn part<'a>(text: &'a str, symbols: impl IntoIterator<Item = &'a str>) -> String {
    let pieces = Pieces::of(text);
    let mut found: Vec<&str> = pieces.always.clone();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    let definition = |symbol| pieces.symbols.get(symbol).copied();
    for symbol in symbols {
        open.extend(
            Some(symbol)
                .filter(|symbol| seen.insert(symbol))
                .and_then(definition),
        );
    }
    while let Some(piece) = open.pop() {
        found.push(piece);
        names(piece, &mut |begin, name| {
            let of = match begin {
                b'@' => &pieces.symbols,
                _ => &pieces.nodes,
            };
            // A symbol is no number, so that one set is enough for both.
            if let Some(piece) = of.get(name)
                && seen.insert(name)
            {
                open.push(piece);
            }
        });
    }
    found.join("\n")
}

impl<'a> Pieces<'a> {
    fn of(text: &'a str) -> Self {
        let mut pieces = Self::default();
        let mut at = 0;
        // The Rust path stands in a comment in front of a function.
        let mut comment = None;
        while at < text.len() {
            let start = at;
            let line = line(text, &mut at);
            if line.is_empty() || line.starts_with(';') {
                if line.starts_with("; ") && !line.starts_with("; Function Attrs:") {
                    comment = Some(start);
                }
                continue;
            }
            let begin = comment.take().unwrap_or(start);
            if line.starts_with("define ") {
                while !self::line(text, &mut at).starts_with('}') && at < text.len() {}
                pieces.symbol(line, &text[begin..at]);
            } else if line.starts_with("declare ") {
                pieces.symbol(line, &text[begin..at]);
            } else if line.starts_with('@') {
                pieces.symbol(line, line);
            } else if let Some((number, _)) = line
                .strip_prefix('!')
                .and_then(|rest| rest.split_once(" = "))
            {
                pieces.nodes.insert(number, line);
            } else {
                pieces.always.push(line);
            }
        }
        pieces
    }

    /// What a line begins to define: the symbol that it names first.
    fn symbol(&mut self, line: &'a str, piece: &'a str) {
        if let Some(name) = first_symbol(line) {
            self.symbols.insert(name, piece);
        }
    }
}

/// The line that begins at a place, which goes behind it.
fn line<'a>(text: &'a str, at: &mut usize) -> &'a str {
    let rest = &text[*at..];
    let end = rest.find('\n').unwrap_or(rest.len());
    *at = (*at + end + 1).min(text.len());
    &rest[..end]
}

/// The symbol that a line names first.
fn first_symbol(line: &str) -> Option<&str> {
    let mut first = None;
    names(line, &mut |begin, name| {
        if begin == b'@' && first.is_none() {
            first = Some(name);
        }
    });
    first
}

/// Hands every symbol and every number of a node in a text to `each`, with what it begins with. A symbol in quotation
/// marks comes without them.
fn names<'a>(text: &'a str, each: &mut dyn FnMut(u8, &'a str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .iter()
        .position(|byte| matches!(byte, b'@' | b'!'))
    {
        let begin = bytes[at + found];
        at += found + 1;
        if begin == b'@' && bytes.get(at) == Some(&b'"') {
            at += 1;
            let end = bytes[at..].iter().position(|byte| *byte == b'"');
            let end = at + end.unwrap_or(bytes.len() - at);
            each(begin, &text[at..end]);
            at = end;
            continue;
        }
        let is_part = |byte: &u8| match begin {
            b'@' => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'-'),
            _ => byte.is_ascii_digit(),
        };
        let end = bytes[at..].iter().position(|byte| !is_part(byte));
        let end = at + end.unwrap_or(bytes.len() - at);
        if end > at {
            each(begin, &text[at..end]);
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_comes_with_it() {
        let text = "target datalayout = \"e\"\n%T = type { i8 }\n@a = global ptr @b\n@b = constant i8 0\n@\"c d\" = \
                    global i8 1\n@unused = global ptr @a\n\n; path::f\n; Function Attrs: cold\ndefine void @f() !dbg \
                    !3 {\n  call void @\"c d\"()\n  ret void, !dbg !4\n}\n\ndefine void @g() {\n  call void @f()\n  \
                    call void @h()\n}\ndeclare void @h()\nattributes #0 = { cold }\n!3 = !{!5}\n!4 = !{}\n!5 = \
                    !{}\n!6 = !{}\n";
        let lines = |symbols: &[&'static str]| {
            let text = part(text, symbols.iter().copied());
            let mut lines: Vec<String> = text.lines().map(String::from).collect();
            lines.retain(|line| !line.is_empty());
            lines.join("|")
        };
        let always = "target datalayout = \"e\"|%T = type { i8 }|attributes #0 = { cold }";
        assert_eq!(lines(&["none"]), always);
        assert_eq!(
            lines(&["a"]),
            format!("{always}|@a = global ptr @b|@b = constant i8 0")
        );
        let f = lines(&["f"]);
        assert!(
            f.contains("; path::f|") && f.contains("|}|") && f.contains("@\"c d\" = global"),
            "{f}"
        );
        assert!(
            ["!3 =", "!4 =", "!5 ="].iter().all(|node| f.contains(node)) && !f.contains("!6"),
            "{f}"
        );
        let g = lines(&["g"]);
        assert!(
            g.contains("@f()") && g.contains("declare void @h()") && !g.contains("unused"),
            "{g}"
        );
    }
}
