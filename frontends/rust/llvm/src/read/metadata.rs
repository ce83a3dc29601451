//! Debug information: places, scopes and files.

use super::lexer::{Lexer, Token};
use crate::model::Metadata;
use hashbrown::HashMap;

/// The value of a field of a node.
enum Field {
    Node(u32),
    Number(u32),
    Text(String),
}

/// A node by the text behind `!12 = `; none of those that nothing here needs.
pub fn node(text: &str) -> Option<Metadata> {
    let mut lexer = Lexer::new(text);
    lexer.eat_word("distinct");
    let Some(Token::Kind(kind)) = lexer.next_token() else {
        return None;
    };
    if !matches!(
        kind,
        "DILocation"
            | "DISubprogram"
            | "DILexicalBlock"
            | "DILexicalBlockFile"
            | "DIFile"
            | "DINamespace"
    ) {
        return None;
    }
    let fields = fields(&mut lexer);
    let number = |name: &str| match fields.get(name) {
        Some(Field::Number(number)) => *number,
        _ => 0,
    };
    let other = |name: &str| match fields.get(name) {
        Some(Field::Node(node)) => Some(*node),
        _ => None,
    };
    let text = |name: &str| match fields.get(name) {
        Some(Field::Text(text)) => Some(text.as_str().into()),
        _ => None,
    };
    Some(match kind {
        "DILocation" => Metadata::Location {
            line: number("line"),
            column: number("column"),
            scope: other("scope")?,
            inlined_at: other("inlinedAt"),
        },
        "DIFile" => Metadata::File {
            name: text("filename")?,
            directory: text("directory").unwrap_or_default(),
        },
        _ => Metadata::Scope {
            file: other("file"),
            parent: other("scope"),
            name: text("name"),
            symbol: text("linkageName"),
            line: number("line"),
            subprogram: kind == "DISubprogram",
        },
    })
}

/// `(name: value, …)`; values of other kinds are left out.
fn fields<'a>(lexer: &mut Lexer<'a>) -> HashMap<&'a str, Field> {
    let mut fields = HashMap::new();
    while let Some(token) = lexer.next_token() {
        let Token::Word(name) = token else { continue };
        if !lexer.eat(':') {
            continue;
        }
        let value = match lexer.peek() {
            Some(Token::Node(node)) => Field::Node(*node),
            Some(Token::Number(digits)) => match digits.parse() {
                Ok(number) => Field::Number(number),
                Err(_) => continue,
            },
            Some(Token::Text(text)) => Field::Text(String::from_utf8_lossy(text).into_owned()),
            _ => continue,
        };
        fields.insert(name, value);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_debug_information() {
        let place = node("!DILocation(line: 12, column: 3, scope: !4, inlinedAt: !9)");
        assert_eq!(
            place,
            Some(Metadata::Location {
                line: 12,
                column: 3,
                scope: 4,
                inlined_at: Some(9)
            })
        );
        let function = "distinct !DISubprogram(name: \"f<u8>\", linkageName: \"_R1f\", scope: !2, file: !3, line: 7, \
         type: !5, flags: DIFlagPrototyped, unit: !0)";
        let Some(Metadata::Scope {
            name,
            symbol,
            subprogram,
            line,
            ..
        }) = node(function)
        else {
            panic!("no scope");
        };
        assert_eq!(
            (name.as_deref(), symbol.as_deref()),
            (Some("f<u8>"), Some("_R1f"))
        );
        assert_eq!((subprogram, line), (true, 7));
        assert_eq!(node("!{!1, !2}"), None);
    }
}
