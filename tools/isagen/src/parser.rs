//! Text of a document → [`Document`].
//!
//! Reads the vendor's documents unmodified: Markdown prose, tables, code blocks and comments may stand anywhere.
//! Statements are told from prose by their first word and the bracket behind it; in sections that hold only statements
//! anything else is an error. After an error parsing goes on at the next statement, so one run reports all of them.

mod expression;
mod statements;

use crate::ast::{
    Construct, ConstructKind, Document, LatencyDefinition, MemberDefinition, Name, Number,
    OperandInfo, TextLine, TypeDefinition,
};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Cursor, Kind, Token};
use crate::outline::{Block, Outline, Section, outline};
use crate::provenance::Provenance;
use crate::source::{SourceMap, Span};

/// Parses all files, in order.
pub fn parse(sources: &SourceMap, diagnostics: &mut Vec<Diagnostic>) -> Vec<Document> {
    let files = sources.files().iter().enumerate();
    files
        .map(|(index, file)| parse_text(index as u32, &file.text, diagnostics))
        .collect()
}

/// Parses the text of one file.
pub fn parse_text(file: u32, text: &str, diagnostics: &mut Vec<Diagnostic>) -> Document {
    let outline = outline(file, text, diagnostics);
    let mut parser = Parser {
        file,
        text,
        provenance: Provenance::Documented,
        diagnostics,
    };
    parser.document(&outline)
}

/// What one file is parsed with.
struct Parser<'a> {
    file: u32,
    text: &'a str,
    provenance: Provenance,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn cursor(&self, range: std::ops::Range<usize>) -> Cursor<'a> {
        Cursor::new(self.text, self.file, range)
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(span, message));
    }

    fn document(&mut self, outline: &Outline) -> Document {
        for declaration in &outline.provenance {
            self.provenance_declaration(declaration);
        }
        let mut document = Document {
            instruction_set: self.instruction_set(outline),
            ..Document::default()
        };
        for block in &outline.blocks {
            match block.keyword.text.as_str() {
                "__DefBitFieldType" => document.types.extend(self.type_definition(block)),
                "__DefLatency" => document.latencies.extend(self.latency(block)),
                "__DefGroup" => {
                    let group = self.construct(block, ConstructKind::Group);
                    document.constructs.extend(group);
                }
                "__DefOptype" => {
                    let optype = self.construct(block, ConstructKind::Optype);
                    document.constructs.extend(optype);
                }
                "__DefOpcode" => {
                    let form = self.construct(block, ConstructKind::Opcode);
                    document.constructs.extend(form);
                }
                _ => {
                    let amendment = self.construct(block, ConstructKind::Amend);
                    document.constructs.extend(amendment);
                }
            }
        }
        document
    }

    fn provenance_declaration(&mut self, declaration: &Section) {
        let mut cursor = self.cursor(declaration.content.clone());
        let word = cursor.next();
        self.provenance = match word.text {
            "Documented" => Provenance::Documented,
            // Latencies are assumed rather than assigned; they carry no provenance of their own.
            "Assigned" | "Assumed" => Provenance::Assigned,
            _ => {
                let found = word.describe();
                self.diagnostics.push(
                    Diagnostic::error(word.span, format!("unknown provenance {found}"))
                        .help("`__Provenance Assigned;` or `__Provenance Documented;`"),
                );
                return;
            }
        };
        self.end_of_statement(&mut cursor, word.span);
    }

    /// `__InstructionSet SPA 5.3;`, once.
    fn instruction_set(&mut self, outline: &Outline) -> Option<Name> {
        let mut sets = outline.instruction_set.iter();
        let first = sets.next()?;
        for again in sets {
            let message = "a file belongs to one instruction set";
            self.error(again.keyword.span, message);
        }
        let cursor = self.cursor(first.content.clone());
        let start = cursor.position();
        let line = cursor.rest_of_line();
        let code = line.split("//").next().unwrap_or_default();
        let Some(name) = code.trim().strip_suffix(';').map(str::trim_end) else {
            self.error(
                first.keyword.span,
                "expected the name of an instruction set and `;`",
            );
            return None;
        };
        let start = start + (code.len() - code.trim_start().len());
        Some(Name {
            text: name.to_owned(),
            span: cursor.span(start, start + name.len()),
        })
    }

    fn type_definition(&mut self, block: &Block) -> Option<TypeDefinition> {
        let mut cursor = self.cursor(block.header.clone());
        let name = self.expect_name(&mut cursor, "the type's name")?;
        self.expect(&mut cursor, "<")?;
        let width = self.expect_number(&mut cursor, "the type's width in bits")?;
        self.expect(&mut cursor, ">")?;
        for section in &block.sections {
            self.diagnostics.push(
                Diagnostic::warning(section.keyword.span, "a type has no sections")
                    .label("its content is skipped"),
            );
        }
        Some(TypeDefinition {
            name,
            width,
            members: self.members(&mut cursor),
            provenance: self.provenance,
        })
    }

    /// `NAME;` and `NAME = NUMBER;` up to the end of the region. Lines of prose are skipped.
    fn members(&mut self, cursor: &mut Cursor<'a>) -> Vec<MemberDefinition> {
        let mut members = Vec::new();
        loop {
            cursor.skip_blanks();
            let token = cursor.peek();
            if token.kind == Kind::End {
                return members;
            }
            let statement = matches!(token.kind, Kind::Name | Kind::Number) && {
                let mut ahead = cursor.clone();
                ahead.next();
                let next = ahead.peek();
                next.is(";") || next.is("=") || ahead.next_is_on_new_line(token.span)
            };
            if !statement {
                if cursor.rest_of_line().contains(';') {
                    let message = format!(
                        "expected `NAME;` or `NAME = NUMBER;`, found `{}`",
                        token.text
                    );
                    self.error(token.span, message);
                }
                cursor.skip_line();
                continue;
            }
            cursor.next();
            let mut end = token.span;
            let value = match cursor.take("=") {
                None => None,
                Some(_) => {
                    let Some(number) = self.expect_number(cursor, "the member's number") else {
                        cursor.skip_line();
                        continue;
                    };
                    end = number.span;
                    Some(number)
                }
            };
            self.end_of_statement(cursor, end);
            members.push(MemberDefinition {
                name: token.name(),
                value,
            });
        }
    }

    fn latency(&mut self, block: &Block) -> Option<LatencyDefinition> {
        let mut cursor = self.cursor(block.header.clone());
        let class = self.expect_name(&mut cursor, "the name of the latency class")?;
        let mut latency = LatencyDefinition {
            class,
            timing: Vec::new(),
            optypes: Vec::new(),
        };
        for section in &block.sections {
            let mut cursor = self.cursor(section.content.clone());
            match section.keyword.text.as_str() {
                "__Timing" => self.timing(&mut cursor, &mut latency.timing),
                "__Optypes" => self.optypes(&mut cursor, &mut latency.optypes),
                _ => self.misplaced(section, "a latency class"),
            }
        }
        Some(latency)
    }

    fn misplaced(&mut self, section: &Section, noun: &str) {
        self.error(
            section.keyword.span,
            format!("`{}` does not belong in {noun}", section.keyword.text),
        );
    }

    fn construct(&mut self, block: &Block, kind: ConstructKind) -> Option<Construct> {
        let mut cursor = self.cursor(block.header.clone());
        let noun = kind.noun();
        let name = self.expect_name(&mut cursor, &format!("the name of the {noun}"))?;
        let parent = match cursor.take(":") {
            None => None,
            Some(_) => self.parent(&mut cursor),
        };
        let mut construct = Construct {
            kind,
            name,
            parent,
            fields: Vec::new(),
            syntax: Vec::new(),
            operands: OperandInfo::default(),
            exceptions: Vec::new(),
            shown: Vec::new(),
            defaults: Vec::new(),
            examples: Vec::new(),
            provenance: self.provenance,
        };
        if construct.parent.is_none()
            && matches!(kind, ConstructKind::Optype | ConstructKind::Opcode)
        {
            self.diagnostics.push(
                Diagnostic::error(
                    construct.name.span,
                    format!(
                        "{noun} `{}` names nothing that it inherits from",
                        construct.name.text
                    ),
                )
                .help(format!(
                    "write `{} {} : [NAME]`",
                    kind.keyword(),
                    construct.name.text
                )),
            );
        }
        for section in &block.sections {
            self.section(section, &mut construct);
        }
        Some(construct)
    }

    fn parent(&mut self, cursor: &mut Cursor<'a>) -> Option<Name> {
        self.expect(cursor, "[")?;
        let parent = self.expect_name(cursor, "the name it inherits from")?;
        self.expect(cursor, "]")?;
        Some(parent)
    }

    fn section(&mut self, section: &Section, construct: &mut Construct) {
        let mut cursor = self.cursor(section.content.clone());
        let amendment = construct.kind == ConstructKind::Amend;
        match section.keyword.text.as_str() {
            "__Encoding" if !amendment => self.encoding(&mut cursor, &mut construct.fields),
            "__Syntax" if construct.kind == ConstructKind::Optype => {
                self.fenced_lines(cursor, true, &mut construct.syntax);
            }
            "__OperandInfo" => self.operand_info(&mut cursor, &mut construct.operands),
            "__Exception" => self.exceptions(&mut cursor, &mut construct.exceptions),
            "__Shown" if amendment => self.shown(&mut cursor, &mut construct.shown),
            "__Default" if amendment => self.defaults(&mut cursor, &mut construct.defaults),
            "__Examples" => self.fenced_lines(cursor, false, &mut construct.examples),
            "__Description" | "__ModifierInfo" | "__Semantics" | "__Simulation" => {}
            _ => {
                let noun = match construct.kind {
                    ConstructKind::Amend => "an amendment",
                    ConstructKind::Optype => "an optype",
                    ConstructKind::Group => "a group",
                    ConstructKind::Opcode => "a form",
                };
                self.misplaced(section, noun);
            }
        }
    }

    /// Lines between fences, comments and blank lines left out. Without a fence: an error if the section `must` have
    /// one.
    fn fenced_lines(&mut self, mut cursor: Cursor<'a>, must: bool, lines: &mut Vec<TextLine>) {
        let keyword_end = cursor.position();
        let mut fenced = false;
        let mut found = false;
        while !cursor.rest().is_empty() {
            let line = cursor.rest_of_line();
            let start = cursor.position();
            cursor.skip_line();
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                found = true;
                continue;
            }
            let code = line.split("//").next().unwrap_or("");
            let text = code.trim();
            if !fenced || text.is_empty() {
                continue;
            }
            let start = start + (code.len() - code.trim_start().len());
            lines.push(TextLine {
                text: text.to_owned(),
                span: cursor.span(start, start + text.len()),
            });
        }
        if must && !found {
            let span = cursor.span(keyword_end.saturating_sub("__Syntax".len()), keyword_end);
            self.diagnostics.push(
                Diagnostic::error(span, "the syntax is not in a fenced code block")
                    .help("put the lines between two lines of ```"),
            );
        }
    }

    fn expect(&mut self, cursor: &mut Cursor<'a>, punctuation: &str) -> Option<Token<'a>> {
        let token = cursor.peek();
        if token.is(punctuation) {
            return Some(cursor.next());
        }
        self.unexpected(token, &format!("`{punctuation}`"));
        None
    }

    fn expect_name(&mut self, cursor: &mut Cursor<'a>, what: &str) -> Option<Name> {
        let token = cursor.peek();
        if token.kind == Kind::Name {
            return Some(cursor.next().name());
        }
        self.unexpected(token, what);
        None
    }

    fn expect_number(&mut self, cursor: &mut Cursor<'a>, what: &str) -> Option<Number> {
        let token = cursor.peek();
        if token.kind != Kind::Number {
            self.unexpected(token, what);
            return None;
        }
        let number = token.number();
        if number.is_none() {
            let message = format!("`{}` is not a number of at most 64 bits", token.text);
            self.error(token.span, message);
            return None;
        }
        cursor.next();
        number
    }

    fn unexpected(&mut self, token: Token<'a>, wanted: &str) {
        let found = token.describe();
        self.diagnostics.push(
            Diagnostic::error(token.span, format!("expected {wanted}, found {found}"))
                .label(format!("expected {wanted}")),
        );
    }

    /// Takes `;`. Where it is missing at the end of a line the statement counts all the same.
    fn end_of_statement(&mut self, cursor: &mut Cursor<'a>, last: Span) -> Option<()> {
        if cursor.take(";").is_some() {
            return Some(());
        }
        let span = Span {
            start: last.end.saturating_sub(1).max(last.start),
            ..last
        };
        let missing = Diagnostic::error(span, "expected `;` behind this").label("`;` is missing");
        if cursor.next_is_on_new_line(last) {
            self.diagnostics.push(missing);
            return Some(());
        }
        let token = cursor.peek();
        self.unexpected(token, "`;`");
        None
    }
}
