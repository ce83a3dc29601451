//! Statements of the sections, and how they are told from prose.

use super::Parser;
use crate::ast::{
    ExceptionDeclaration, Expression, FieldDeclaration, FormatDeclaration, Name, Number,
    OperandEntry, OperandInfo, OperandList, ValueDeclaration,
};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Cursor, Kind, Token};
use crate::outline::closest;

/// Statements of `__OperandInfo`.
const OPERAND_STATEMENTS: [&str; 7] = [
    "InList",
    "OutList",
    "Order",
    "Bitwidth",
    "AsmFormat",
    "ModiOrder",
    "Effect",
];

/// Words that make a line a statement, and whether the section may hold prose besides.
struct Grammar<'g> {
    keywords: &'g [&'g str],
    prose: bool,
    /// Shown when a line is none of them.
    example: &'static str,
}

impl<'a> Parser<'a> {
    /// Calls `statement` behind each keyword that is followed by `<`; goes on at the next one when it returns none.
    fn statements(
        &mut self,
        cursor: &mut Cursor<'a>,
        grammar: &Grammar<'_>,
        mut statement: impl FnMut(&mut Self, &mut Cursor<'a>, Token<'a>) -> Option<()>,
    ) {
        loop {
            cursor.skip_blanks();
            let token = cursor.peek();
            if token.kind == Kind::End {
                return;
            }
            if cursor.rest().starts_with("```") {
                skip_code_block(cursor);
            } else if begins_statement(cursor, grammar.keywords) {
                cursor.next();
                if statement(self, cursor, token).is_none() {
                    recover(cursor, grammar.keywords);
                }
            } else {
                self.stray(cursor, token, grammar);
                cursor.skip_line();
            }
        }
    }

    /// A line that begins with no keyword: prose where that is allowed, else an error.
    fn stray(&mut self, cursor: &Cursor<'a>, token: Token<'a>, grammar: &Grammar<'_>) {
        let mut ahead = cursor.clone();
        ahead.next();
        let bracket = token.kind == Kind::Name && ahead.rest().starts_with('<');
        let line = cursor.rest_of_line();
        let code = line.split("//").next().unwrap_or("");
        if !bracket && (grammar.prose || !code.contains([';', '<', '='])) {
            return;
        }
        let near = closest(token.text, grammar.keywords).filter(|_| token.kind == Kind::Name);
        let message = format!("this begins no statement: {}", token.describe());
        self.diagnostics
            .push(Diagnostic::error(token.span, message).help(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected `{}`", grammar.example),
            }));
    }

    pub(super) fn encoding(&mut self, cursor: &mut Cursor<'a>, fields: &mut Vec<FieldDeclaration>) {
        let grammar = Grammar {
            keywords: &["field"],
            prose: false,
            example: "field<BIT, WIDTH> TYPE NAME;",
        };
        self.statements(cursor, &grammar, |parser, cursor, keyword| {
            let field = parser.field(cursor, keyword)?;
            let last = field.span;
            fields.push(field);
            parser.end_of_statement(cursor, last)
        });
    }

    fn field(&mut self, cursor: &mut Cursor<'a>, keyword: Token<'a>) -> Option<FieldDeclaration> {
        self.expect(cursor, "<")?;
        let bit = self.expect_number(cursor, "the field's lowest bit")?;
        self.expect(cursor, ",")?;
        let width = self.expect_number(cursor, "the field's width in bits")?;
        self.expect(cursor, ">")?;
        let type_name = self.expect_name(cursor, "the field's type")?;
        let name = self.expect_name(cursor, "the field's name")?;
        let value = if cursor.take("==").is_some() {
            ValueDeclaration::Constant(self.member(cursor)?)
        } else if cursor.take("=").is_some() {
            ValueDeclaration::Default(self.member(cursor)?)
        } else {
            ValueDeclaration::Free
        };
        let last = match &value {
            ValueDeclaration::Free => name.span,
            ValueDeclaration::Default(member) | ValueDeclaration::Constant(member) => member.span,
        };
        Some(FieldDeclaration {
            bit,
            width,
            type_name,
            name,
            value,
            span: keyword.span.to(last),
        })
    }

    /// A member's name, a number or a negative number.
    fn member(&mut self, cursor: &mut Cursor<'a>) -> Option<Name> {
        let minus = cursor.take("-");
        let token = cursor.peek();
        match (token.kind, minus) {
            (Kind::Number, Some(minus)) => {
                cursor.next();
                Some(Name {
                    text: format!("-{}", token.text),
                    span: minus.span.to(token.span),
                })
            }
            (Kind::Name | Kind::Number, None) => Some(cursor.next().name()),
            _ => {
                self.unexpected(token, "a value");
                None
            }
        }
    }

    pub(super) fn operand_info(&mut self, cursor: &mut Cursor<'a>, info: &mut OperandInfo) {
        let grammar = Grammar {
            keywords: &OPERAND_STATEMENTS,
            prose: true,
            example: "InList<..>;",
        };
        self.statements(cursor, &grammar, |parser, cursor, keyword| {
            parser.operand_statement(cursor, keyword, info)
        });
    }

    fn operand_statement(
        &mut self,
        cursor: &mut Cursor<'a>,
        keyword: Token<'a>,
        info: &mut OperandInfo,
    ) -> Option<()> {
        match keyword.text {
            "Bitwidth" => {
                self.expect(cursor, "<")?;
                let operand = self.expect_name(cursor, "an operand")?;
                self.expect(cursor, ">")?;
                self.expect(cursor, "=")?;
                let width = self.expression(cursor)?;
                let last = width.span();
                info.widths.push((operand, width));
                self.end_of_statement(cursor, last)
            }
            "AsmFormat" => {
                let (format, last) = self.format(cursor)?;
                info.formats.push(format);
                self.end_of_statement(cursor, last.span)
            }
            "Effect" => {
                let (list, last) = self.operand_list(cursor, keyword)?;
                info.effects
                    .extend(list.entries.into_iter().map(|entry| Name {
                        text: entry.text(),
                        span: entry.span(),
                    }));
                self.end_of_statement(cursor, last.span)
            }
            _ => {
                let (list, last) = self.operand_list(cursor, keyword)?;
                let slot = match keyword.text {
                    "InList" => &mut info.inputs,
                    "OutList" => &mut info.outputs,
                    "Order" => &mut info.order,
                    _ => &mut info.modifier_order,
                };
                if let Some(first) = slot {
                    let message = format!("`{}` is stated twice", keyword.text);
                    self.diagnostics.push(
                        Diagnostic::error(keyword.span, message)
                            .related(first.keyword.span, "first here"),
                    );
                } else {
                    *slot = Some(list);
                }
                self.end_of_statement(cursor, last.span)
            }
        }
    }

    fn format(&mut self, cursor: &mut Cursor<'a>) -> Option<(FormatDeclaration, Token<'a>)> {
        self.expect(cursor, "<")?;
        let field = self.expect_name(cursor, "a field")?;
        self.expect(cursor, ">")?;
        self.expect(cursor, "=")?;
        let function = self.expect_name(cursor, "a function such as `CvtFImm`")?;
        self.expect(cursor, "(")?;
        let subject = self.expect_name(cursor, "a field")?;
        self.expect(cursor, ",")?;
        let by = self.expect_name(cursor, "the field that decides")?;
        let last = self.expect(cursor, ")")?;
        let format = FormatDeclaration {
            field,
            function,
            subject,
            by,
        };
        Some((format, last))
    }

    /// `<a, R[b, c], d>` behind a keyword; also the closing bracket.
    fn operand_list(
        &mut self,
        cursor: &mut Cursor<'a>,
        keyword: Token<'a>,
    ) -> Option<(OperandList, Token<'a>)> {
        self.expect(cursor, "<")?;
        let mut entries = Vec::new();
        loop {
            if let Some(close) = cursor.take(">") {
                let list = OperandList {
                    keyword: keyword.name(),
                    entries,
                };
                return Some((list, close));
            }
            let name = self.expect_name(cursor, "an operand or `>`")?;
            entries.push(self.operand_entry(cursor, name)?);
            if cursor.take(",").is_none() && !cursor.peek().is(">") {
                let token = cursor.peek();
                self.unexpected(token, "`,` or `>`");
                return None;
            }
        }
    }

    fn operand_entry(&mut self, cursor: &mut Cursor<'a>, name: Name) -> Option<OperandEntry> {
        if cursor.take("[").is_none() {
            return Some(OperandEntry::Named(name));
        }
        let base = self.expect_name(cursor, "the base register")?;
        self.expect(cursor, ",")?;
        let index = self.expect_name(cursor, "the offset")?;
        let close = self.expect(cursor, "]")?;
        if name.text != "R" {
            let message = format!("`{}[..]` is no indexed register", name.text);
            self.diagnostics
                .push(Diagnostic::error(name.span, message).help("only `R[base, offset]` is"));
        }
        Some(OperandEntry::Indexed {
            base,
            index,
            span: name.span.to(close.span),
        })
    }

    pub(super) fn exceptions(
        &mut self,
        cursor: &mut Cursor<'a>,
        exceptions: &mut Vec<ExceptionDeclaration>,
    ) {
        let grammar = Grammar {
            keywords: &["EncodingError"],
            prose: false,
            example: "EncodingError<KIND, \"MESSAGE\"> = CONDITION;",
        };
        self.statements(cursor, &grammar, |parser, cursor, _| {
            parser.expect(cursor, "<")?;
            let kind = parser.expect_name(cursor, "the kind of error")?;
            parser.expect(cursor, ",")?;
            let message = cursor.peek();
            if message.kind != Kind::Quoted {
                parser.unexpected(message, "the message in quotes");
                return None;
            }
            cursor.next();
            parser.expect(cursor, ">")?;
            parser.expect(cursor, "=")?;
            let condition = parser.expression(cursor)?;
            let last = condition.span();
            exceptions.push(ExceptionDeclaration {
                kind,
                message: message.name(),
                condition,
            });
            parser.end_of_statement(cursor, last)
        });
    }

    /// `field = EXPR;`, one after the other.
    pub(super) fn shown(&mut self, cursor: &mut Cursor<'a>, shown: &mut Vec<(Name, Expression)>) {
        self.assignments(cursor, |parser, cursor, field| {
            let condition = parser.expression(cursor)?;
            let last = condition.span();
            shown.push((field, condition));
            parser.end_of_statement(cursor, last)
        });
    }

    /// `field = MEMBER;`, one after the other.
    pub(super) fn defaults(&mut self, cursor: &mut Cursor<'a>, defaults: &mut Vec<(Name, Name)>) {
        self.assignments(cursor, |parser, cursor, field| {
            let member = parser.member(cursor)?;
            let last = member.span;
            defaults.push((field, member));
            parser.end_of_statement(cursor, last)
        });
    }

    /// `name = NUMBER;`, one after the other.
    pub(super) fn timing(&mut self, cursor: &mut Cursor<'a>, timing: &mut Vec<(Name, Number)>) {
        self.assignments(cursor, |parser, cursor, name| {
            let cycles = parser.expect_number(cursor, "cycles")?;
            timing.push((name, cycles));
            parser.end_of_statement(cursor, cycles.span)
        });
    }

    fn assignments(
        &mut self,
        cursor: &mut Cursor<'a>,
        mut assignment: impl FnMut(&mut Self, &mut Cursor<'a>, Name) -> Option<()>,
    ) {
        while cursor.peek().kind != Kind::End {
            let parsed = self
                .expect_name(cursor, "a name")
                .and_then(|name| self.expect(cursor, "=").map(|_| name))
                .and_then(|name| assignment(self, cursor, name));
            if parsed.is_none() {
                recover(cursor, &[]);
            }
        }
    }

    /// `NAME, NAME, ..;`, one list after the other.
    pub(super) fn optypes(&mut self, cursor: &mut Cursor<'a>, optypes: &mut Vec<Name>) {
        while cursor.peek().kind != Kind::End {
            let Some(name) = self.expect_name(cursor, "an optype") else {
                recover(cursor, &[]);
                continue;
            };
            let last = name.span;
            optypes.push(name);
            if cursor.take(",").is_none() && self.end_of_statement(cursor, last).is_none() {
                recover(cursor, &[]);
            }
        }
    }
}

/// Whether the next tokens are a keyword and `<`.
fn begins_statement(cursor: &Cursor<'_>, keywords: &[&str]) -> bool {
    let mut ahead = cursor.clone();
    let token = ahead.next();
    token.kind == Kind::Name && keywords.contains(&token.text) && ahead.peek().is("<")
}

/// Goes behind the next `;`, or to a keyword that begins a line.
fn recover(cursor: &mut Cursor<'_>, keywords: &[&str]) {
    let mut last = cursor.peek().span;
    last.end = last.start;
    loop {
        let token = cursor.peek();
        if token.kind == Kind::End
            || (cursor.next_is_on_new_line(last) && begins_statement(cursor, keywords))
        {
            return;
        }
        last = cursor.next().span;
        if token.is(";") {
            return;
        }
    }
}

/// Goes behind the closing fence.
fn skip_code_block(cursor: &mut Cursor<'_>) {
    cursor.skip_line();
    while !cursor.rest().is_empty() {
        let closed = cursor.rest_of_line().trim_start().starts_with("```");
        cursor.skip_line();
        if closed {
            return;
        }
    }
}
