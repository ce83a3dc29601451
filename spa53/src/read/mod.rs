//! Text to instructions: the syntax of the documents, found by the tables.
//!
//! Comments, numbers and the control suffix are those of this set's assembly (the suffix has no meaning here and is
//! only checked). The mnemonic and the shapes of the operands choose the line of syntax; its modifiers may stand in any
//! order. An immediate may have signs and bars in braces, or a sign without: they are folded into its bits.

mod operand;
mod syntax_line;

use super::{Input, Instruction, LINES, Operation, Predicate, Source};
use cranelift_thisgpu::asm::{Diagnostic, Diagnostics, Span};
use cranelift_thisgpu::unstable::asm::lexer::{self, Token, TokenKind};
use cranelift_thisgpu::unstable::asm::line::Line as Tokens;
use cranelift_thisgpu::unstable::asm::syntax::Written;
use cranelift_thisgpu::unstable::isa::Control;
use operand::Argument;

/// Straight-line code.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its instructions.
    pub instructions: Vec<Instruction>,
    /// What is legal but hardly meant.
    pub warnings: Diagnostics,
}

/// An instruction with what stands around it.
#[derive(Clone, Debug)]
pub struct ReadInstruction {
    /// What it says.
    pub instruction: Instruction,
    /// Its suffix.
    pub control: Control,
    /// From its guard to its last operand.
    pub span: Span,
    /// What is legal but hardly meant.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a text of nothing but instructions of SPA 5.3 and labels; `file` is its name in messages.
///
/// # Diagnostics
/// All mistakes of the text.
pub fn program(file: &str, text: &str) -> Result<Program, Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut diagnostics = Vec::new();
    let mut instructions = Vec::new();
    let tokens = lexer::tokens(text, &mut diagnostics);
    for line in tokens.split_inclusive(|t| t.kind == TokenKind::Newline) {
        let Some((newline, line)) = line.split_last() else {
            continue;
        };
        let line = behind_labels(line);
        if line.iter().all(|t| t.kind == TokenKind::Mark(';')) {
            continue;
        }
        if let TokenKind::Word(word) = line[0].kind
            && word.starts_with('.')
        {
            let message = format!("unsupported: the directive `{word}` in code of SPA 5.3");
            let diagnostic = Diagnostic::new(line[0].span, message);
            diagnostics.push(diagnostic.expect(["instructions and labels"]));
            continue;
        }
        match read(line, newline.span.start) {
            Ok(read) => {
                instructions.push(read.instruction);
                diagnostics.extend(read.warnings);
            }
            Err(errors) => diagnostics.extend(errors),
        }
    }
    let diagnostics = Diagnostics::new(file, text, diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    Ok(Program {
        instructions,
        warnings: diagnostics,
    })
}

/// Reads one instruction: `HMUL2.FTZ R0, R1, R2.F32 ;`.
///
/// # Diagnostics
/// All its mistakes.
pub fn instruction(text: &str) -> Result<Instruction, Diagnostics> {
    let mut program = program("<instruction>", text)?;
    let span = Span {
        start: 0,
        end: text.len(),
    };
    let wrong = |message: &str| {
        let diagnostics = vec![Diagnostic::new(span, message)];
        Diagnostics::new("<instruction>", text, diagnostics)
    };
    match (program.instructions.pop(), program.instructions.is_empty()) {
        (Some(instruction), true) => Ok(instruction),
        (None, _) => Err(wrong("there is no instruction")),
        (Some(_), false) => Err(wrong("only one instruction is expected")),
    }
}

/// A line without the labels it begins with.
pub(super) fn behind_labels<'s, 't>(line: &'s [Token<'t>]) -> &'s [Token<'t>] {
    let mut line = line;
    while let [
        Token {
            kind: TokenKind::Word(_) | TokenKind::Quoted(_),
            ..
        },
        Token {
            kind: TokenKind::Mark(':'),
            ..
        },
        rest @ ..,
    ] = line
    {
        line = rest;
    }
    line
}

/// Whether a line is about an operation of SPA 5.3: its mnemonic behind the guard.
pub(super) fn is_predecessors(tokens: &[Token<'_>]) -> bool {
    let kinds = tokens.iter().map(|t| t.kind).take(4).collect::<Vec<_>>();
    let word = match kinds[..] {
        [
            TokenKind::Mark('@'),
            TokenKind::Mark('!'),
            _,
            TokenKind::Word(word),
        ]
        | [TokenKind::Mark('@'), _, TokenKind::Word(word), ..]
        | [TokenKind::Word(word), ..] => word,
        _ => return false,
    };
    let mnemonic = word.split('.').next().unwrap_or_default();
    LINES.iter().any(|line| line.mnemonic == mnemonic)
}

/// Reads the tokens of one line, which ends at byte `end`.
pub(super) fn read(tokens: &[Token<'_>], end: usize) -> Result<ReadInstruction, Vec<Diagnostic>> {
    let written = Tokens::new(tokens, end)
        .instruction_of(Argument::read)
        .map_err(|d| vec![d])?;
    let mut reader = Reader {
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let instruction = reader.instruction(&written);
    match instruction {
        Some(instruction) if reader.errors.is_empty() => Ok(ReadInstruction {
            instruction,
            control: written.control,
            span: written.span,
            warnings: reader.warnings,
        }),
        _ => Err(reader.errors),
    }
}

/// Turns what is written into an instruction and collects what is wrong.
struct Reader {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl Reader {
    fn error(&mut self, diagnostic: Diagnostic) {
        self.errors.push(diagnostic);
    }

    fn instruction(&mut self, written: &Written<Argument>) -> Option<Instruction> {
        let line = self.line(written)?;
        let modifiers = self.modifiers(line, written);
        let guard = match &written.guard {
            Some(guard) => Predicate {
                register: self.register(&guard.register),
                not: guard.negated,
            },
            None => Predicate::default(),
        };
        let mut instruction = Instruction {
            line,
            guard,
            modifiers,
            rd: None,
            a: Input::default(),
            b: Source::Immediate([0; 2]),
            pp: Predicate::default(),
        };
        let mut halves = Vec::new();
        let before = self.errors.len();
        for (syntax, argument) in line.operands.iter().zip(&written.operands) {
            self.decorations(line, syntax, argument);
            self.operand(syntax, argument, &mut instruction, &mut halves);
        }
        if let [high, low] = halves[..] {
            instruction.b = Source::Immediate([low, high]);
            if line.operation == Operation::Hmul2 && self.errors.len() == before {
                self.signs_of_a_product(written, [low, high]);
            }
        }
        Some(instruction)
    }
}
