//! Lines of a text, one after another: labels, directives, instructions.
//!
//! | directive | meaning |
//! | --- | --- |
//! | `.kernel NAME [local]`, `.func NAME [local]` | the instructions up to the next one are a kernel or a device function |
//! | `.param SIZE [ptr] [at OFFSET]` | a parameter of the kernel, at the next naturally aligned offset |
//! | `.max_threads N` | threads of a block of the kernel, at most |
//! | `.min_blocks N` | blocks of the kernel that are to be resident together |
//! | `.shared N`, `.local N` | bytes of static shared memory of the kernel, of local memory of a thread |
//! | `.registers N`, `.barriers N` | what the function and its callees use; without it the assembler finds it |
//! | `… own M` behind these and `.local N` | what the function uses by itself; without it as much as with its callees |
//! | `.spilled N`, `.indirect`, `.loops N…` | bytes of its spill slots; it calls by address; instructions of its innermost loops |
//! | `.redzone OFFSET BYTES [below N] [above N]` | nothing may use these bytes of the frame from R1 on, which are beside those stack slots |
//! | `.line N [column M]` | the next instruction begins line N of the source; 0 is unknown |
//! | `.file NAME` | the lines that follow are of this file |
//! | `.const` | constants of bank 3 follow |
//! | `.data NAME [readonly] [local] [align N]` | a data object in global memory follows; a kernel's store to one that is `readonly` is a fault |
//! | `.byte` `.half` `.word` `.quad` | numbers of 8, 16, 32, 64 bits; a `.quad` of a data object may be a symbol |
//! | `.zero N` | N bytes of 0; beside other data at most 64 MiB in a file |
//! | `.extern NAME` | another object defines it |

use super::apply::{Assembled, assemble};
use super::diagnostic::{Diagnostic, Explanations, Span};
use super::lexer::{Token, TokenKind};
use super::line::Line;
use super::name::register;
use crate::abi::bank0::{MAX_PARAMETERS, PARAMETERS};
use crate::isa::PReg;
use crate::isa::literal;
use crate::object::{Linkage, Location, Parameter, ParameterKind, Redzone};
use crate::text::closest;
use crate::type_name::type_named;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// What the lines of a text say.
#[derive(Default)]
pub(super) struct Program {
    pub functions: Vec<Function>,
    pub constants: Vec<u8>,
    pub data: Vec<Data>,
    pub externs: Vec<String>,
    /// Files of the source.
    pub files: Vec<String>,
    /// Their numbers, from 1 on.
    file_numbers: HashMap<String, u32>,
    /// Calls that were inlined.
    pub calls: Vec<Location>,
    /// The number of the one that lines are of; 0 before the first.
    file: u32,
    /// Bytes of all `.zero` that stand beside other data so far.
    written_zeros: u64,
    pub explanations: Explanations,
    section: Section,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Start,
    Function,
    Constants,
    Data,
}

/// A function as written.
#[derive(Default)]
pub(super) struct Function {
    pub name: String,
    pub span: Span,
    pub linkage: Linkage,
    pub kernel: bool,
    pub parameters: Vec<Parameter>,
    pub shared: u32,
    /// Threads of a block, at most.
    pub max_threads: Option<u32>,
    pub min_blocks: Option<u32>,
    pub local: Written,
    pub registers: Written,
    pub barriers: Written,
    /// Bytes of spill slots.
    pub spilled: u32,
    /// It calls by address.
    pub indirect: bool,
    /// Instructions of its innermost loops.
    pub loops: Vec<u32>,
    /// What nothing may use beside its stack slots.
    pub redzones: Vec<Redzone>,
    pub instructions: Vec<Assembled<PReg>>,
    /// Place of each instruction.
    pub spans: Vec<Span>,
    /// Instructions before the label, and its place.
    pub labels: BTreeMap<String, (usize, Span)>,
    /// Instructions before, and place in the source.
    pub lines: Vec<(usize, Location)>,
}

/// What a directive says that a function uses.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    /// With its callees.
    pub all: Option<u32>,
    /// By itself.
    pub own: Option<u32>,
}

impl Written {
    /// What the function uses by itself; `found` where nothing is written.
    pub fn own_or(self, found: u32) -> u32 {
        self.own.or(self.all).unwrap_or(found)
    }
}

/// A data object as written.
pub(super) struct Data {
    pub name: String,
    pub span: Span,
    pub linkage: Linkage,
    pub writable: bool,
    pub align: u32,
    pub bytes: Vec<u8>,
    /// Only `.zero` so far: how many.
    pub zeros: Option<u64>,
    /// Offset, symbol, addend, place.
    pub addresses: Vec<(u32, String, i64, Span)>,
}

const DIRECTIVES: [&str; 24] = [
    ".kernel",
    ".func",
    ".param",
    ".shared",
    ".max_threads",
    ".min_blocks",
    ".local",
    ".registers",
    ".barriers",
    ".spilled",
    ".indirect",
    ".loops",
    ".redzone",
    ".file",
    ".line",
    ".inlined",
    ".const",
    ".data",
    ".byte",
    ".half",
    ".word",
    ".quad",
    ".zero",
    ".extern",
];
/// Most bytes of all `.zero` beside other data of a file, so that a slip does not fill the memory (assigned).
const MAX_ZEROS: u64 = 1 << 26;

type Result<T, E = Vec<Diagnostic>> = std::result::Result<T, E>;

fn one<T>(result: Result<T, Diagnostic>) -> Result<T> {
    result.map_err(|d| vec![d])
}

impl Program {
    /// Takes one line without its end, which is at byte `end`.
    pub fn line(&mut self, tokens: &[Token<'_>], end: usize) -> Result<()> {
        let mut tokens = tokens;
        while let [
            Token {
                kind: TokenKind::Word(_) | TokenKind::Quoted(_),
                span,
            },
            Token {
                kind: TokenKind::Mark(':'),
                ..
            },
            rest @ ..,
        ] = tokens
        {
            let (name, _, quoted) = one(Line::new(tokens, end).name())?;
            self.label(name, *span, quoted)?;
            tokens = rest;
        }
        let mut line = Line::new(tokens, end);
        match line.peek() {
            None => Ok(()),
            Some(TokenKind::Mark(';')) if tokens.len() == 1 => Ok(()),
            Some(TokenKind::Word(word)) if word.starts_with('.') => {
                let span = line.span();
                line.next();
                self.directive(word, span, &mut line)?;
                line.eat(';');
                if line.peek().is_some() {
                    Err(vec![line.unexpected(["the end of the line"])])
                } else {
                    Ok(())
                }
            }
            Some(_) => {
                let written = one(line.instruction())?;
                let span = written.span;
                let assembled = assemble(&written, &mut self.explanations)?;
                let function = self.function(span)?;
                function.instructions.push(assembled);
                function.spans.push(span);
                Ok(())
            }
        }
    }

    /// The function that instructions go to.
    /// `N [column M] [inlined K]`, a place in the file at hand.
    fn location(&self, line: &mut Line<'_, '_>) -> Result<Location> {
        let number_of_line = one(number(line, 32))?.0 as u32;
        let mut location = Location {
            // Line 0 is no line of any file.
            file: if number_of_line == 0 { 0 } else { self.file },
            line: number_of_line,
            ..Location::default()
        };
        while let Some(TokenKind::Word(word @ ("column" | "inlined"))) = line.peek() {
            line.next();
            let value = one(number(line, 32))?.0 as u32;
            match word {
                "column" => location.column = value,
                _ => location.inlined = value,
            }
        }
        Ok(location)
    }

    fn function(&mut self, span: Span) -> Result<&mut Function> {
        match self.section {
            Section::Start => {
                self.functions.push(Function {
                    name: "main".to_string(),
                    span,
                    ..Function::default()
                });
                self.section = Section::Function;
            }
            Section::Function => {}
            Section::Constants | Section::Data => {
                return Err(vec![
                    Diagnostic::new(span, "instructions belong to a function")
                        .expect([".kernel NAME", ".func NAME"]),
                ]);
            }
        }
        Ok(self
            .functions
            .last_mut()
            .expect("the section is a function"))
    }

    fn label(&mut self, name: String, span: Span, quoted: bool) -> Result<()> {
        if !quoted && register(&name).is_some() {
            return Err(vec![
                Diagnostic::new(span, format!("`{name}` is a register and no label"))
                    .note("quotes make any name a label"),
            ]);
        }
        let function = self.function(span)?;
        let at = function.instructions.len();
        if function.labels.insert(name.clone(), (at, span)).is_some() {
            return Err(vec![Diagnostic::new(
                span,
                format!("label `{name}` is defined twice in this function"),
            )]);
        }
        Ok(())
    }

    fn directive(&mut self, word: &str, span: Span, line: &mut Line<'_, '_>) -> Result<()> {
        match word {
            ".kernel" | ".func" => self.begin_function(word == ".kernel", line),
            ".param" => self.parameter(span, line),
            ".shared" | ".max_threads" | ".min_blocks" | ".spilled" => self.bound(word, span, line),
            ".local" | ".registers" | ".barriers" => self.resource(word, span, line),
            ".indirect" => {
                self.function(span)?.indirect = true;
                Ok(())
            }
            ".loops" => loop {
                let (instructions, _) = one(number(line, 32))?;
                self.function(span)?.loops.push(instructions as u32);
                if !line.eat(',') {
                    return Ok(());
                }
            },
            ".redzone" => {
                let zone = redzone(line)?;
                self.function(span)?.redzones.push(zone);
                Ok(())
            }
            ".line" => {
                let location = self.location(line)?;
                let function = self.function(span)?;
                let at = function.instructions.len();
                function.lines.push((at, location));
                Ok(())
            }
            ".inlined" => {
                let call = self.location(line)?;
                self.calls.push(call);
                Ok(())
            }
            ".file" => {
                let (name, _, _) = one(line.name())?;
                let next = self.files.len() as u32 + 1;
                self.file = *self.file_numbers.entry_ref(&name).or_insert(next);
                if self.file == next {
                    self.files.push(name);
                }
                Ok(())
            }
            ".const" => {
                self.section = Section::Constants;
                Ok(())
            }
            ".data" => self.data(line),
            ".byte" => self.values(span, line, 1),
            ".half" => self.values(span, line, 2),
            ".word" => self.values(span, line, 4),
            ".quad" => self.values(span, line, 8),
            ".zero" => self.zero(span, line),
            ".extern" => {
                let (name, _, _) = one(line.name())?;
                self.externs.push(name);
                Ok(())
            }
            _ => Err(vec![self.unknown(word, span)]),
        }
    }

    /// What follows is a function's.
    fn begin_function(&mut self, kernel: bool, line: &mut Line<'_, '_>) -> Result<()> {
        let (name, span, _) = one(line.name())?;
        let mut function = Function {
            name,
            span,
            kernel,
            ..Function::default()
        };
        if one(words(line, &["local"]))?.contains(&"local") {
            function.linkage = Linkage::Local;
        }
        self.functions.push(function);
        self.section = Section::Function;
        Ok(())
    }

    /// Shared memory and bounds of launches, which kernels have, and what was spilled.
    fn bound(&mut self, word: &str, span: Span, line: &mut Line<'_, '_>) -> Result<()> {
        let number = one(number(line, 32))?.0 as u32;
        let function = self.function(span)?;
        match word {
            ".spilled" => function.spilled = number,
            ".shared" if function.kernel => function.shared = number,
            ".max_threads" if function.kernel => function.max_threads = Some(number),
            ".min_blocks" if function.kernel => function.min_blocks = Some(number),
            _ => {
                let message = if word == ".shared" {
                    "only a kernel has static shared memory"
                } else {
                    "only a kernel has launch bounds"
                };
                return Err(vec![Diagnostic::new(span, message)]);
            }
        }
        Ok(())
    }

    /// What a function needs with all that it calls, and by itself.
    fn resource(&mut self, word: &str, span: Span, line: &mut Line<'_, '_>) -> Result<()> {
        let all = Some(one(number(line, 32))?.0 as u32);
        let own = match line.peek() {
            Some(TokenKind::Word("own")) => {
                line.next();
                Some(one(number(line, 32))?.0 as u32)
            }
            _ => None,
        };
        let function = self.function(span)?;
        let written = match word {
            ".local" => &mut function.local,
            ".registers" => &mut function.registers,
            _ => &mut function.barriers,
        };
        *written = Written { all, own };
        Ok(())
    }

    /// That there is no such directive, and which there are.
    fn unknown(&mut self, word: &str, span: Span) -> Diagnostic {
        let known = DIRECTIVES.iter().copied();
        let message = format!("there is no directive `{word}`");
        let diagnostic = Diagnostic::new(span, message);
        if !self.explanations.take(DIRECTIVES.len()) {
            return diagnostic;
        }
        let diagnostic = diagnostic.expect(known.clone());
        match closest(word, known) {
            Some(known) => diagnostic.note(format!("did you mean `{known}`?")),
            None => diagnostic,
        }
    }

    fn parameter(&mut self, span: Span, line: &mut Line<'_, '_>) -> Result<()> {
        let (size, size_span) = one(number(line, 32))?;
        if ![1, 2, 4, 8, 16].contains(&size) {
            return Err(vec![
                Diagnostic::new(size_span, format!("no parameter has {size} bytes"))
                    .expect(["1", "2", "4", "8", "16"]),
            ]);
        }
        let size = size as u32;
        let mut kind = ParameterKind::Value;
        let (mut at, mut ty) = (None, None);
        while let Some(TokenKind::Word(word)) = line.peek() {
            match word {
                _ if ty.is_none() && type_named(word).is_some_and(|t| t.bytes() == size) => {
                    line.next();
                    ty = type_named(word);
                }
                "ptr" => {
                    line.next();
                    kind = ParameterKind::Pointer;
                }
                "at" => {
                    line.next();
                    at = Some(one(number(line, 32))?.0);
                }
                _ => {
                    return Err(vec![line.unexpected([
                        "a CLIF type of the size",
                        "ptr",
                        "at OFFSET",
                        "the end of the line",
                    ])]);
                }
            }
        }
        let function = self.function(span)?;
        if !function.kernel {
            return Err(vec![Diagnostic::new(
                span,
                "only a kernel has parameters here; a device function's are in registers",
            )]);
        }
        let offset = at.unwrap_or_else(|| next_parameter(&function.parameters, size));
        let (start, end) = (
            u64::from(PARAMETERS),
            u64::from(PARAMETERS + MAX_PARAMETERS),
        );
        if offset < start || offset + u64::from(size) > end {
            let message = format!(
                "the parameters of a kernel are at {start:#x} to {end:#x} of constant bank 0"
            );
            return Err(vec![Diagnostic::new(span, message)]);
        }
        let offset = offset as u32;
        function.parameters.push(Parameter {
            offset,
            size,
            kind,
            ty,
        });
        Ok(())
    }

    fn data(&mut self, line: &mut Line<'_, '_>) -> Result<()> {
        let (name, span, _) = one(line.name())?;
        let mut data = Data {
            name,
            span,
            linkage: Linkage::Global,
            writable: true,
            align: 1,
            bytes: Vec::new(),
            zeros: None,
            addresses: Vec::new(),
        };
        while let Some(TokenKind::Word(word)) = line.peek() {
            line.next();
            match word {
                "readonly" => data.writable = false,
                "local" => data.linkage = Linkage::Local,
                "align" => {
                    let (align, span) = one(number(line, 32))?;
                    let align = align as u32;
                    if !align.is_power_of_two() {
                        return Err(vec![Diagnostic::new(
                            span,
                            "an alignment is a power of two",
                        )]);
                    }
                    data.align = align;
                }
                _ => {
                    return Err(vec![
                        Diagnostic::new(line.span(), format!("unexpected `{word}`"))
                            .expect(["readonly", "local", "align N"]),
                    ]);
                }
            }
        }
        self.data.push(data);
        self.section = Section::Data;
        Ok(())
    }

    /// The bytes that data lines add to, and the data object they belong to.
    fn bytes(&mut self, span: Span) -> Result<&mut Vec<u8>> {
        match (self.section, self.data.last_mut()) {
            (Section::Constants, _) => Ok(&mut self.constants),
            (Section::Data, Some(data)) => {
                if let Some(zeros) = data.zeros.take() {
                    self.written_zeros = self.written_zeros.saturating_add(zeros);
                    if self.written_zeros > MAX_ZEROS {
                        return Err(vec![too_many_zeros(span)]);
                    }
                    data.bytes.resize(zeros as usize, 0);
                }
                Ok(&mut data.bytes)
            }
            _ => Err(vec![
                Diagnostic::new(span, "data belongs behind `.const` or `.data`")
                    .expect([".const", ".data NAME"]),
            ]),
        }
    }

    fn values(&mut self, span: Span, line: &mut Line<'_, '_>, size: usize) -> Result<()> {
        loop {
            let start = line.span();
            let in_data = self.section == Section::Data;
            let bytes = self.bytes(span)?;
            let value = match line.peek() {
                Some(TokenKind::Word(_) | TokenKind::Quoted(_)) if size == 8 && in_data => {
                    let (name, name_span, _) = one(line.name())?;
                    let addend = one(line.addend())?;
                    let offset = bytes.len() as u32;
                    if let Some(data) = self.data.last_mut() {
                        data.addresses.push((offset, name, addend, name_span));
                    }
                    0
                }
                _ => {
                    let negative = line.eat('-');
                    let (text, end) = one(line.number())?;
                    let width = size as u32 * 8;
                    let value = if negative {
                        literal::signed(true, &text, width)
                    } else {
                        literal::unsigned(false, &text, width)
                    };
                    value.map_err(|e| vec![Diagnostic::new(start.to(end), e.to_string())])?
                }
            };
            self.bytes(span)?.extend(&value.to_le_bytes()[..size]);
            if !line.eat(',') {
                return Ok(());
            }
        }
    }

    fn zero(&mut self, span: Span, line: &mut Line<'_, '_>) -> Result<()> {
        let (count, place) = one(number(line, 40))?;
        if self.section == Section::Data
            && let Some(data) = self.data.last_mut().filter(|d| d.bytes.is_empty())
        {
            data.zeros = Some(data.zeros.unwrap_or(0) + count);
            return Ok(());
        }
        self.written_zeros = self.written_zeros.saturating_add(count);
        if self.written_zeros > MAX_ZEROS {
            return Err(vec![too_many_zeros(place)]);
        }
        let bytes = self.bytes(span)?;
        bytes.resize(bytes.len() + count as usize, 0);
        Ok(())
    }
}

/// Where a parameter of `size` bytes comes behind the others: naturally aligned. Beyond 32 bits where the others are
/// already absurd.
pub(super) fn next_parameter(parameters: &[Parameter], size: u32) -> u64 {
    let end = |p: &Parameter| u64::from(p.offset) + u64::from(p.size);
    let start = parameters.last().map_or(PARAMETERS.into(), end);
    start.next_multiple_of(size.max(1).into())
}

fn too_many_zeros(span: Span) -> Diagnostic {
    let message = format!(
        "zeros beside other data are limited to {MAX_ZEROS} bytes in a file; so many belong to a data object of their \
         own"
    );
    Diagnostic::new(span, message)
}

fn number(line: &mut Line<'_, '_>, width: u32) -> Result<(u64, Span), Diagnostic> {
    let (text, span) = line.number()?;
    literal::unsigned(false, &text, width)
        .map(|n| (n, span))
        .map_err(|e| Diagnostic::new(span, e.to_string()))
}

/// `OFFSET BYTES [below N] [above N]`.
fn redzone(line: &mut Line<'_, '_>) -> Result<Redzone> {
    let mut zone = Redzone {
        offset: one(number(line, 32))?.0 as u32,
        bytes: one(number(line, 32))?.0 as u32,
        below: None,
        above: None,
    };
    while let Some(TokenKind::Word(word @ ("below" | "above"))) = line.peek() {
        line.next();
        let slot = Some(one(number(line, 32))?.0 as u32);
        match word {
            "below" => zone.below = slot,
            _ => zone.above = slot,
        }
    }
    Ok(zone)
}

/// The rest of the line: some of the words `known`.
fn words<'a>(line: &mut Line<'_, 'a>, known: &[&str]) -> Result<Vec<&'a str>, Diagnostic> {
    let mut found = Vec::new();
    while let Some(TokenKind::Word(word)) = line.peek() {
        if !known.contains(&word) {
            return Err(line.unexpected(known.iter().copied()));
        }
        found.push(word);
        line.next();
    }
    Ok(found)
}
