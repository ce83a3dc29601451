//! Debug information: places, scopes and files; variables and their types.

use super::lexer::{Lexer, Token};
use crate::model::{DebugType, Metadata};
use hashbrown::HashMap;
use std::sync::Arc;

/// The value of a field of a node.
enum Field<'a> {
    Node(u32),
    /// Of negative ones the bits.
    Number(u128),
    Text(String),
    Word(&'a str),
}

/// The fields of a node by name.
struct Fields<'a>(HashMap<&'a str, Field<'a>>);

impl<'a> Fields<'a> {
    /// `(name: value, …)`; values of other kinds are left out.
    fn read(lexer: &mut Lexer<'a>) -> Self {
        let mut fields = HashMap::new();
        while let Some(token) = lexer.next_token() {
            let Token::Word(name) = token else { continue };
            if !lexer.eat(':') {
                continue;
            }
            let mut value = field(lexer);
            if let Some(Field::Word(_)) = value {
                // The type of a number may stand before it.
                let word = lexer.clone();
                lexer.next_token();
                match lexer.peek() {
                    Some(Token::Number(_)) => value = field(lexer),
                    _ => *lexer = word,
                }
            }
            if let Some(value) = value {
                fields.insert(name, value);
            }
        }
        Self(fields)
    }

    fn number(&self, name: &str) -> Option<u128> {
        match self.0.get(name)? {
            Field::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A line, a column.
    fn small(&self, name: &str) -> u32 {
        let number = self.number(name).unwrap_or(0);
        u32::try_from(number).unwrap_or(0)
    }

    /// Bits, a number of elements.
    fn count(&self, name: &str) -> Option<u64> {
        u64::try_from(self.number(name)?).ok()
    }

    fn node(&self, name: &str) -> Option<u32> {
        match self.0.get(name)? {
            Field::Node(node) => Some(*node),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<Arc<str>> {
        match self.0.get(name)? {
            Field::Text(text) => Some(text.as_str().into()),
            _ => None,
        }
    }

    fn word(&self, name: &str) -> Option<&'a str> {
        match self.0.get(name)? {
            Field::Word(word) => Some(word),
            _ => None,
        }
    }
}

fn field<'a>(lexer: &mut Lexer<'a>) -> Option<Field<'a>> {
    Some(match lexer.peek()? {
        Token::Node(node) => Field::Node(*node),
        Token::Number(digits) => {
            let signed = || digits.parse::<i128>().ok().map(|number| number as u128);
            Field::Number(digits.parse().ok().or_else(signed)?)
        }
        Token::Text(text) => Field::Text(String::from_utf8_lossy(text).into_owned()),
        Token::Word(word) => Field::Word(word),
        _ => return None,
    })
}

/// A node by the text behind `!12 = `; none of those that nothing here needs.
pub fn node(text: &str) -> Option<Metadata> {
    let mut lexer = Lexer::new(text);
    lexer.eat_word("distinct");
    let kind = match lexer.next_token()? {
        Token::Kind(kind) => kind,
        Token::Sign('!') => return list(&mut lexer),
        _ => return None,
    };
    let mut read = || Fields::read(&mut lexer);
    Some(match kind {
        "DILocation" => {
            let fields = read();
            Metadata::Location {
                line: fields.small("line"),
                column: fields.small("column"),
                scope: fields.node("scope")?,
                inlined_at: fields.node("inlinedAt"),
            }
        }
        "DIFile" => {
            let fields = read();
            Metadata::File {
                name: fields.text("filename")?,
                directory: fields.text("directory").unwrap_or_default(),
            }
        }
        "DISubprogram" | "DILexicalBlock" | "DILexicalBlockFile" | "DINamespace" => {
            let fields = read();
            Metadata::Scope {
                file: fields.node("file"),
                parent: fields.node("scope"),
                name: fields.text("name"),
                symbol: fields.text("linkageName"),
                line: fields.small("line"),
                subprogram: kind == "DISubprogram",
            }
        }
        "DIGlobalVariableExpression" => Metadata::Global(read().node("var")?),
        "DILocalVariable" | "DIGlobalVariable" => {
            let fields = read();
            Metadata::Variable {
                name: fields.text("name")?,
                scope: fields.node("scope")?,
                ty: fields.node("type"),
                is_parameter: fields.number("arg").is_some(),
                line: fields.small("line"),
            }
        }
        "DIBasicType" | "DIDerivedType" | "DICompositeType" => Metadata::Type(ty(&read())),
        "DISubrange" => Metadata::Count(read().count("count")?),
        "DIEnumerator" => {
            let fields = read();
            Metadata::Enumerator(fields.text("name")?, fields.number("value")?)
        }
        _ => return None,
    })
}

fn ty(fields: &Fields<'_>) -> DebugType {
    let word = |name| fields.word(name).unwrap_or_default();
    DebugType {
        tag: fields.word("tag").unwrap_or("DW_TAG_base_type").into(),
        name: fields.text("name").unwrap_or_default(),
        size: fields.count("size").unwrap_or(0),
        offset: fields.count("offset").unwrap_or(0),
        encoding: word("encoding").into(),
        base: fields.node("baseType"),
        elements: fields.node("elements"),
        discriminator: fields.node("discriminator"),
        value: fields.number("extraData"),
    }
}

/// `{!1, !2}`, of nodes alone.
fn list(lexer: &mut Lexer<'_>) -> Option<Metadata> {
    let mut nodes = Vec::new();
    lexer.eat('{').then_some(())?;
    while !lexer.eat('}') {
        if !nodes.is_empty() {
            lexer.eat(',').then_some(())?;
        }
        let Token::Node(node) = lexer.next_token()? else {
            return None;
        };
        nodes.push(node);
    }
    Some(Metadata::List(nodes))
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
        assert_eq!(node("!{!1, !2}"), Some(Metadata::List(vec![1, 2])));
        assert_eq!(node("!{i32 1, !2}"), None);
    }

    #[test]
    fn variables_and_types() {
        let variable =
            node("!DILocalVariable(name: \"x\", arg: 2, scope: !4, file: !3, line: 7, type: !5)");
        let Some(Metadata::Variable {
            name,
            scope,
            ty,
            is_parameter,
            line,
        }) = variable
        else {
            panic!("no variable");
        };
        assert_eq!((&*name, scope, ty, is_parameter), ("x", 4, Some(5), true));
        assert_eq!(line, 7);
        let global = node("!DIGlobalVariableExpression(var: !3, expr: !DIExpression())");
        assert_eq!(global, Some(Metadata::Global(3)));
        let member = "!DIDerivedType(tag: DW_TAG_member, name: \"Err\", scope: !7, baseType: !8, size: 8, \
                      offset: 32, extraData: i8 -1)";
        let Some(Metadata::Type(member)) = node(member) else {
            panic!("no type");
        };
        assert_eq!((&*member.tag, member.base), ("DW_TAG_member", Some(8)));
        assert_eq!((member.offset, member.value), (32, Some(u128::MAX)));
        let value = node("!DIEnumerator(name: \"A\", value: -3)");
        assert_eq!(
            value,
            Some(Metadata::Enumerator("A".into(), -3_i128 as u128))
        );
        let count = node("!DISubrange(count: 3, lowerBound: 0)");
        assert_eq!(count, Some(Metadata::Count(3)));
    }
}
