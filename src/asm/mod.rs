//! The assembler and the disassembler.
//!
//! Text in, [`Object`] out: one instruction a line ended by ` ;` (which may be missing), labels, directives
//! ([`directives`]) and comments. [`assemble`] works in steps: the lexer makes tokens, `syntax` makes an instruction as
//! written, `select` finds the form and mode by the tables of the instruction set, `apply` fills it in, `layout` puts
//! functions together and resolves labels. Every mistake of a text is reported in one run, with its place and what was
//! expected. [`listing`] is the way back: its text assembles to the same object.

mod advice;
mod apply;
mod diagnostic;
mod directives;
mod layout;
pub(crate) mod lexer;
pub(crate) mod line;
mod listing;
mod matching;
pub(crate) mod name;
pub(crate) mod operand;
mod select;
pub(crate) mod syntax;

pub use diagnostic::{Diagnostic, Diagnostics, Severity, Span};
pub use listing::{BadWord, ListedFunction, ListedInstruction, listed_functions, listing};
pub use name::NamedRegister;

use crate::isa::{Control, Inst, PReg};
use crate::object::{LinkErrors, Object};
use lexer::TokenKind;

/// What a text assembles to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Functions, constants and data. Instructions before the first `.kernel` or `.func` are the device function
    /// `main`.
    pub object: Object,
    /// Line of the text, counted from 1, of each word of each function.
    pub lines: Vec<Vec<u32>>,
    /// What is legal in it but hardly meant.
    pub warnings: Diagnostics,
}

/// Assembles a text; `file` is its name in messages.
///
/// # Diagnostics
/// All mistakes of the text.
pub fn assemble(file: &str, text: &str) -> Result<Assembly, Diagnostics> {
    // Some editors begin a file with a mark of its byte order.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut diagnostics = Vec::new();
    let tokens = lexer::tokens(text, &mut diagnostics);
    let mut program = directives::Program::default();
    for line in tokens.split_inclusive(|t| t.kind == TokenKind::Newline) {
        let Some((newline, line)) = line.split_last() else {
            continue;
        };
        if let Err(errors) = program.line(line, newline.span.start) {
            diagnostics.extend(errors);
        }
    }
    let (object, lines) = layout::layout(program, text, &mut diagnostics);
    let diagnostics = Diagnostics::new(file, text, diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(Assembly {
        object,
        lines,
        warnings: diagnostics,
    })
}

/// Reads one instruction, without labels or symbols: `IADD R0, R1, R2 ?4 ;`.
///
/// For [`PReg`] it is not yet encoded; [`Inst::encode`] may still refuse it.
///
/// # Diagnostics
/// All its mistakes.
pub fn instruction<R: NamedRegister>(text: &str) -> Result<(Inst<R>, Control), Diagnostics> {
    let assembled = assembled::<R>(text).map_err(|d| alone(text, d))?;
    Ok((assembled.inst, assembled.control))
}

/// Reads and encodes one instruction.
///
/// # Diagnostics
/// All its mistakes, the encoder's refusal included.
pub fn word(text: &str) -> Result<u128, Diagnostics> {
    let assembled = assembled::<PReg>(text).map_err(|d| alone(text, d))?;
    assembled.word().map_err(|d| alone(text, vec![d]))
}

fn alone(text: &str, diagnostics: Vec<Diagnostic>) -> Diagnostics {
    Diagnostics::new("<instruction>", text, diagnostics)
}

/// The only instruction of a text.
fn assembled<R: NamedRegister>(text: &str) -> Result<apply::Assembled<R>, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let tokens = lexer::tokens(text, &mut diagnostics);
    let mut lines = tokens
        .split(|t| t.kind == TokenKind::Newline)
        .filter(|l| !l.is_empty());
    let line = lines.next().unwrap_or_default();
    if let Some(next) = lines.next() {
        diagnostics.push(Diagnostic::new(
            next[0].span,
            "only one instruction is expected",
        ));
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let end = line.last().map_or(text.len(), |t| t.span.end);
    let written = line::Line::new(line, end)
        .instruction()
        .map_err(|d| vec![d])?;
    let assembled = apply::assemble::<R>(&written, &mut diagnostic::Explanations::default())?;
    match assembled.symbols.first() {
        Some(symbol) => Err(vec![
            Diagnostic::new(symbol.span, "a label means nothing without its text")
                .expect([".+offset"]),
        ]),
        None => Ok(assembled),
    }
}

impl Assembly {
    /// The words of all functions one after another, with relocations between them filled in.
    ///
    /// # Diagnostics
    /// Relocations that only a linker can fill in.
    pub fn words(&self) -> Result<Vec<u128>, LinkErrors> {
        self.object.linked_words()
    }
}
