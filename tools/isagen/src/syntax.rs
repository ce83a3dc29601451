//! Lines of `__Syntax` → modifiers and operands as written, before any form is looked at.
//!
//! A line is a head without blanks (`IMAD{.LO}{.itype}`), operands, and control tokens (`$sched $req ;`). What the
//! modifiers and operands mean for a form is worked out in [`crate::resolve`].

use crate::ast::{Name, TextLine};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Cursor, Kind, Token};
use crate::source::Span;

/// The whole block of an optype.
#[derive(Clone, Debug, Default)]
pub struct SyntaxBlock {
    /// Lines that define an instruction.
    pub lines: Vec<SyntaxLine>,
    /// `.itype = {.S32*, .U32}`.
    pub lists: Vec<ModifierList>,
}

impl SyntaxBlock {
    /// The list of that name.
    pub fn list(&self, name: &str) -> Option<&ModifierList> {
        self.lists.iter().find(|list| list.name.text == name)
    }
}

/// A line that defines an instruction.
#[derive(Clone, Debug)]
pub struct SyntaxLine {
    /// As written, without comment.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// What stands before the first dot.
    pub mnemonic: Name,
    /// Behind it.
    pub modifiers: Vec<ModifierToken>,
    /// In order.
    pub operands: Vec<OperandToken>,
    /// Whether it has `$wsb`.
    pub write_scoreboard: bool,
}

impl SyntaxLine {
    /// Whether a modifier or a suffix has this name.
    fn uses(&self, name: &str) -> bool {
        let suffix = |operand: &OperandToken| match &operand.shape {
            OperandShape::Plain(plain) => plain.suffix.as_ref().is_some_and(|s| s.text == name),
            OperandShape::Indexed { .. } | OperandShape::Memory(_) => false,
        };
        self.modifiers.iter().any(|m| m.name.text == name) || self.operands.iter().any(suffix)
    }
}

/// `.itype` or `{.FTZ}`.
#[derive(Clone, Debug)]
pub struct ModifierToken {
    /// Without its dot.
    pub name: Name,
    /// In braces.
    pub optional: bool,
}

/// The values a modifier may have in the text.
#[derive(Clone, Debug)]
pub struct ModifierList {
    /// Without its dot.
    pub name: Name,
    /// Without dot and star.
    pub values: Vec<ModifierValue>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct ModifierValue {
    /// The text.
    pub name: Name,
    /// The default.
    pub starred: bool,
}

/// An operand as written.
#[derive(Clone, Debug)]
pub struct OperandToken {
    /// In braces.
    pub optional: bool,
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub shape: OperandShape,
}

/// The shapes of operands.
#[derive(Clone, Debug)]
pub enum OperandShape {
    /// `{-}{|}SrcB{.hsel2}{|}`.
    Plain(PlainOperand),
    /// `R[URb{+SImm9}]`.
    Indexed {
        /// `URb`.
        base: Name,
        /// `SImm9`.
        offset: Option<Name>,
    },
    /// `[Ra{+URc}{+Addr}]`.
    Memory(Vec<AddressPart>),
}

/// A name with its decorations.
#[derive(Clone, Debug)]
pub struct PlainOperand {
    /// `SrcB`.
    pub name: Name,
    /// `-`.
    pub negate: bool,
    /// `|`.
    pub absolute: bool,
    /// `~`.
    pub bitnot: bool,
    /// `!`.
    pub not: bool,
    /// `hsel2`.
    pub suffix: Option<Name>,
}

/// A summand of an address.
#[derive(Clone, Debug)]
pub struct AddressPart {
    /// `Ra`.
    pub name: Name,
    /// In braces.
    pub optional: bool,
}

/// Parses the lines of a block; lines with mistakes are left out.
pub fn parse_syntax(lines: &[TextLine], diagnostics: &mut Vec<Diagnostic>) -> SyntaxBlock {
    let mut block = SyntaxBlock::default();
    for line in lines {
        if line.text.contains('=') {
            match parse_list(line) {
                Ok(list) => push_list(&mut block, list, diagnostics),
                Err(error) => diagnostics.push(*error),
            }
        } else {
            match parse_line(line) {
                Ok(parsed) => block.lines.push(parsed),
                Err(error) => diagnostics.push(*error),
            }
        }
    }
    let all_parsed = block.lines.len() + block.lists.len() == lines.len();
    for list in block.lists.iter().filter(|_| all_parsed) {
        let name = &list.name.text;
        if !block.lines.iter().any(|line| line.uses(name)) {
            let message = format!("no line uses the values of `.{name}`");
            diagnostics.push(Diagnostic::warning(list.name.span, message));
        }
    }
    block
}

fn push_list(block: &mut SyntaxBlock, list: ModifierList, diagnostics: &mut Vec<Diagnostic>) {
    if let Some(first) = block.list(&list.name.text) {
        let message = format!("the values of `.{}` are listed twice", list.name.text);
        diagnostics.push(
            Diagnostic::error(list.name.span, message).related(first.name.span, "first here"),
        );
        return;
    }
    block.lists.push(list);
}

/// The part of `line` that `part`, a slice of its text, covers.
pub(crate) fn name_in(line: &TextLine, part: &str) -> Name {
    let offset = part.as_ptr() as usize - line.text.as_ptr() as usize;
    let start = line.span.start + offset as u32;
    Name {
        text: part.to_owned(),
        span: Span {
            start,
            end: start + part.len() as u32,
            ..line.span
        },
    }
}

pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// `.name = {.A*, .B}`; the first dot is missing in I2IP.
fn parse_list(line: &TextLine) -> Result<ModifierList, Box<Diagnostic>> {
    let wrong = |part: &str, message: &str| {
        Box::new(
            Diagnostic::error(name_in(line, part).span, message)
                .help("a list is written `.name = {.VALUE*, .VALUE}`; `*` marks the default"),
        )
    };
    let (name, values) = line.text.split_once('=').unwrap_or((&line.text, ""));
    let name = name.trim().trim_start_matches('.');
    if !is_word(name) {
        return Err(wrong(name, "this is no name of a modifier"));
    }
    let values = values.trim().trim_end_matches(';').trim_end();
    let Some(inner) = values.strip_prefix('{').and_then(|v| v.strip_suffix('}')) else {
        return Err(wrong(values, "the values of a modifier stand in braces"));
    };
    let mut list = ModifierList {
        name: name_in(line, name),
        values: Vec::new(),
    };
    for value in inner.split(',') {
        let value = value.trim();
        let (value, starred) = match value.strip_suffix('*') {
            Some(value) => (value.trim_end(), true),
            None => (value, false),
        };
        let Some(text) = value.strip_prefix('.').filter(|text| is_word(text)) else {
            return Err(wrong(value, "a value of a modifier is a dot and a word"));
        };
        let known = list.values.iter().any(|v| v.name.text == text);
        if known || (starred && list.values.iter().any(|v| v.starred)) {
            return Err(wrong(
                text,
                "this value or another default is listed before",
            ));
        }
        list.values.push(ModifierValue {
            name: name_in(line, text),
            starred,
        });
    }
    Ok(list)
}

fn parse_line(line: &TextLine) -> Result<SyntaxLine, Box<Diagnostic>> {
    let head_length = line
        .text
        .find(|c: char| c.is_whitespace() || c == ';')
        .unwrap_or(line.text.len());
    let head = &line.text[..head_length];
    let end = head.find(['.', '{']).unwrap_or(head_length);
    let mnemonic = &head[..end];
    if !is_word(mnemonic) || mnemonic.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Diagnostic::error(
            name_in(line, &head[..head.len().min(end.max(1))]).span,
            "this is no mnemonic",
        )
        .help("a line is written `MNEMONIC{.modifier} Rd, Ra  $sched $req ;`")
        .into());
    }
    let modifiers = parse_modifiers(line, &head[end..])?;
    let mut operands = OperandParser {
        // The cursor walks the line alone; places are moved to the file's afterwards.
        cursor: Cursor::new(&line.text, line.span.file, head_length..line.text.len()),
        base: line.span.start,
        operands: Vec::new(),
        write_scoreboard: false,
    };
    operands.list(false, 0)?;
    operands.control()?;
    Ok(SyntaxLine {
        text: line.text.clone(),
        span: line.span,
        mnemonic: name_in(line, mnemonic),
        modifiers,
        write_scoreboard: operands.write_scoreboard,
        operands: operands.operands,
    })
}

/// `.a{.b}{.c.d}`.
pub(crate) fn parse_modifiers(
    line: &TextLine,
    text: &str,
) -> Result<Vec<ModifierToken>, Box<Diagnostic>> {
    let mut modifiers = Vec::new();
    let mut rest = text;
    let mut optional = false;
    loop {
        rest = match rest.chars().next() {
            None if optional => {
                let span = name_in(line, rest).span;
                return Err(Diagnostic::error(span, "a brace is not closed").into());
            }
            None => return Ok(modifiers),
            Some('{') if !optional => {
                optional = true;
                &rest[1..]
            }
            Some('}') if optional => {
                optional = false;
                &rest[1..]
            }
            Some('.') => {
                let word = &rest[1..];
                let length = word
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(word.len());
                if length == 0 {
                    let span = name_in(line, &rest[..1]).span;
                    return Err(
                        Diagnostic::error(span, "a name follows the dot of a modifier").into(),
                    );
                }
                modifiers.push(ModifierToken {
                    name: name_in(line, &word[..length]),
                    optional,
                });
                &word[length..]
            }
            Some(other) => {
                let span = name_in(line, &rest[..other.len_utf8()]).span;
                return Err(Diagnostic::error(
                    span,
                    format!("`{other}` does not belong in a list of modifiers"),
                )
                .help("modifiers are written `.name` or `{.name}`, without blanks")
                .into());
            }
        };
    }
}

/// Braces within braces; nothing in the documents is deeper than two.
const MAX_DEPTH: usize = 8;

struct OperandParser<'a> {
    cursor: Cursor<'a>,
    base: u32,
    operands: Vec<OperandToken>,
    write_scoreboard: bool,
}

impl<'a> OperandParser<'a> {
    /// Operands up to `$`, `;` or, in braces, `}`.
    fn list(&mut self, optional: bool, depth: usize) -> Result<(), Box<Diagnostic>> {
        loop {
            let token = self.cursor.peek();
            if token.is(",") {
                self.cursor.next();
            } else if token.kind == Kind::End || token.is("$") || token.is(";") || token.is("}") {
                return Ok(());
            } else if token.is("{") && !self.is_prefix_in_braces() {
                if depth == MAX_DEPTH {
                    return Err(self.error(token, "too many braces"));
                }
                self.cursor.next();
                self.list(true, depth + 1)?;
                self.expect("}")?;
            } else {
                let operand = self.operand(optional)?;
                self.operands.push(operand);
            }
        }
    }

    fn operand(&mut self, optional: bool) -> Result<OperandToken, Box<Diagnostic>> {
        let start = self.cursor.peek().span;
        let mut plain = PlainOperand {
            name: Name {
                text: String::new(),
                span: start,
            },
            negate: false,
            absolute: false,
            bitnot: false,
            not: false,
            suffix: None,
        };
        while let Some(prefix) = self.decoration() {
            match prefix {
                "-" => plain.negate = true,
                "|" => plain.absolute = true,
                "~" => plain.bitnot = true,
                _ => plain.not = true,
            }
        }
        let token = self.cursor.next();
        let undecorated = !(plain.negate || plain.absolute || plain.bitnot || plain.not);
        let shape = if token.is("[") && undecorated {
            self.memory()?
        } else if token.kind == Kind::Name {
            if token.text == "R" && self.cursor.peek().is("[") && undecorated {
                self.cursor.next();
                self.indexed()?
            } else {
                self.plain(plain, token)?
            }
        } else {
            return Err(self.error(token, "an operand is expected here"));
        };
        let end = self.cursor.position() as u32;
        Ok(OperandToken {
            optional,
            span: self.moved(Span { end, ..start }),
            shape,
        })
    }

    fn plain(
        &mut self,
        mut plain: PlainOperand,
        token: Token<'a>,
    ) -> Result<OperandShape, Box<Diagnostic>> {
        // `Ra.bsel` comes as one token.
        let (name, suffix) = match token.text.split_once('.') {
            Some((name, suffix)) => (name, Some(suffix)),
            None => (token.text, None),
        };
        let span = self.moved(token.span);
        plain.name = Name {
            text: name.to_owned(),
            span,
        };
        plain.suffix = suffix.map(|text| Name {
            text: text.to_owned(),
            span,
        });
        loop {
            let mut ahead = self.cursor.clone();
            if ahead.take("{").is_some() && ahead.take(".").is_some() {
                let suffix = ahead.next();
                self.cursor = ahead;
                if !matches!(suffix.kind, Kind::Name | Kind::Number) || plain.suffix.is_some() {
                    return Err(self.error(suffix, "an operand has one suffix, a name"));
                }
                plain.suffix = Some(Name {
                    text: suffix.text.to_owned(),
                    span: self.moved(suffix.span),
                });
                self.expect("}")?;
            } else if plain.absolute && self.decoration() == Some("|") {
                return Ok(OperandShape::Plain(plain));
            } else if plain.absolute {
                let token = self.cursor.peek();
                return Err(self.error(token, "the second `|` is missing"));
            } else {
                return Ok(OperandShape::Plain(plain));
            }
        }
    }

    /// `-`, `|`, `~` or `!`, in braces or not.
    fn decoration(&mut self) -> Option<&'static str> {
        let mut ahead = self.cursor.clone();
        let braced = ahead.take("{").is_some();
        let token = ahead.next();
        let sign = ["-", "|", "~", "!"]
            .into_iter()
            .find(|sign| token.is(sign))?;
        if braced {
            ahead.take("}")?;
        }
        self.cursor = ahead;
        Some(sign)
    }

    fn is_prefix_in_braces(&self) -> bool {
        let mut ahead = self.cursor.clone();
        ahead.next();
        let sign = ahead.next();
        ["-", "|", "~", "!"].into_iter().any(|s| sign.is(s)) && ahead.peek().is("}")
    }

    /// Behind `R[`.
    fn indexed(&mut self) -> Result<OperandShape, Box<Diagnostic>> {
        let parts = self.address_parts()?;
        let mut parts = parts.into_iter();
        let base = parts.next().map(|part| part.name);
        let offset = parts.next().map(|part| part.name);
        match (base, parts.next()) {
            (Some(base), None) => Ok(OperandShape::Indexed { base, offset }),
            _ => {
                let token = self.cursor.peek();
                Err(self.error(
                    token,
                    "an indexed register has a base and at most one offset",
                ))
            }
        }
    }

    /// Behind `[`.
    fn memory(&mut self) -> Result<OperandShape, Box<Diagnostic>> {
        Ok(OperandShape::Memory(self.address_parts()?))
    }

    /// `Ra{+URc}+Addr]`.
    fn address_parts(&mut self) -> Result<Vec<AddressPart>, Box<Diagnostic>> {
        let mut parts = Vec::new();
        loop {
            if self.cursor.take("]").is_some() {
                return Ok(parts);
            }
            let optional = self.cursor.take("{").is_some();
            self.cursor.take("+");
            let token = self.cursor.next();
            if token.kind != Kind::Name {
                return Err(self.error(token, "a part of an address is expected here"));
            }
            parts.push(AddressPart {
                name: Name {
                    text: token.text.to_owned(),
                    span: self.moved(token.span),
                },
                optional,
            });
            if optional {
                self.cursor.take("+");
                self.expect("}")?;
            }
        }
    }

    /// `$sched $req $wsb ;`.
    fn control(&mut self) -> Result<(), Box<Diagnostic>> {
        while self.cursor.take("$").is_some() {
            let token = self.cursor.next();
            match token.text {
                "wsb" => self.write_scoreboard = true,
                "sched" | "req" | "rsb" => {}
                _ => {
                    return Err(self
                        .error(token, "unknown control token")
                        .help("`$sched`, `$req`, `$wsb` or `$rsb`")
                        .into());
                }
            }
        }
        self.expect(";")?;
        let token = self.cursor.peek();
        if token.kind != Kind::End {
            return Err(self.error(token, "nothing follows `;` but a comment"));
        }
        Ok(())
    }

    fn expect(&mut self, punctuation: &str) -> Result<(), Box<Diagnostic>> {
        if self.cursor.take(punctuation).is_some() {
            return Ok(());
        }
        let token = self.cursor.peek();
        let found = match token.kind {
            Kind::End => "the end of the line".to_owned(),
            _ => token.describe(),
        };
        Err(self.error(token, &format!("expected `{punctuation}`, found {found}")))
    }

    fn error(&self, token: Token<'_>, message: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(self.moved(token.span), message))
    }

    fn moved(&self, span: Span) -> Span {
        Span {
            start: span.start + self.base,
            end: span.end + self.base,
            ..span
        }
    }
}
