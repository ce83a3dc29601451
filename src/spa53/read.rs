//! Text to instructions: the syntax of the documents, found by the tables.
//!
//! Comments, numbers and the control suffix are those of this set's assembly (the suffix has no meaning here and is only checked). The
//! mnemonic and the shapes of the operands choose the line of syntax; its modifiers may stand in any order. An immediate may have signs
//! and bars in braces, or a sign without: they are folded into its bits.

use super::suggest::unknown;
use super::{
    Choice, Input, Instruction, Iswz, LINES, Line, Modifiers, OperandSyntax, Operation, Part,
    Predicate, Shape, Sign, Source,
};
use crate::asm::lexer::{self, Token, TokenKind};
use crate::asm::line::{Line as Tokens, Parsed};
use crate::asm::name::{File, RegisterName};
use crate::asm::operand::{Operand, RegisterText, Value};
use crate::asm::syntax::Written;
use crate::asm::{Diagnostic, Diagnostics, Span};
use crate::isa::literal::FloatFormat;
use crate::isa::{Control, PReg, RegisterClass};
use crate::spa53::print::half_text;

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

/// An operand, in braces or not.
struct Argument {
    braces: bool,
    operand: Operand,
}

impl Argument {
    fn read(tokens: &mut Tokens<'_, '_>) -> Parsed<Argument> {
        let start = tokens.span();
        if !tokens.eat('{') {
            let operand = tokens.operand()?;
            let braces = false;
            return Ok(Argument { braces, operand });
        }
        let mut sign = |mark: char| {
            let span = tokens.span();
            tokens.eat(mark).then_some(span)
        };
        let (negate, absolute) = (sign('-'), sign('|'));
        // Within bars a sign makes no difference.
        let _ = absolute.and_then(|_| sign('-'));
        let mut operand = tokens.operand()?;
        let inner = [
            operand.negate,
            operand.absolute,
            operand.not,
            operand.invert,
        ];
        if let Some(span) = inner.into_iter().flatten().next() {
            let message = "signs in braces are `-`, then bars";
            return Err(Diagnostic::new(span, message).expect(["{-|1.0|}"]));
        }
        if absolute.is_some() {
            tokens.expect('|')?;
        }
        tokens.expect('}')?;
        (operand.negate, operand.absolute) = (negate, absolute);
        operand.span = start.to(tokens.previous());
        let braces = true;
        Ok(Argument { braces, operand })
    }

    /// Whether it can stand where the syntax has this shape.
    fn fits(&self, shape: Shape) -> bool {
        match (&self.operand.value, shape) {
            (Value::Register(text), Shape::Register) => class(text) == Some(RegisterClass::Gpr),
            (Value::Register(text), Shape::Predicate) => {
                class(text) == Some(RegisterClass::Predicate)
            }
            (Value::Constant { .. }, Shape::Constant { .. }) => true,
            (Value::Literal(_), Shape::Immediate { .. }) => true,
            _ => false,
        }
    }
}

fn class(text: &RegisterText) -> Option<RegisterClass> {
    match text.file {
        File::Class(class) => Some(class),
        _ => None,
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

    /// The line of syntax that has the mnemonic and operands of these shapes.
    fn line(&mut self, written: &Written<Argument>) -> Option<&'static Line> {
        let (mnemonic, span) = written.words.first()?;
        let named: Vec<&'static Line> = LINES.iter().filter(|l| l.mnemonic == *mnemonic).collect();
        if named.is_empty() {
            let mut known: Vec<&str> = LINES.iter().map(|l| l.mnemonic).collect();
            known.dedup();
            let near = crate::text::did_you_mean(mnemonic, known.iter().copied());
            let message = format!("unsupported: `{mnemonic}` of SPA 5.3{near}");
            self.error(Diagnostic::new(*span, message).expect(known));
            return None;
        }
        let fits = |line: &&&Line| {
            line.operands.len() == written.operands.len()
                && (line.operands.iter())
                    .zip(&written.operands)
                    .all(|(syntax, argument)| argument.fits(syntax.shape))
        };
        if let Some(line) = named.iter().find(fits) {
            return Some(line);
        }
        self.no_line(written, &named);
        None
    }

    /// Says which operands were expected: at the first one that no line has there, or at the end.
    fn no_line(&mut self, written: &Written<Argument>, named: &[&'static Line]) {
        let matched = |line: &Line| {
            let pairs = line.operands.iter().zip(&written.operands);
            pairs.take_while(|(s, a)| a.fits(s.shape)).count()
        };
        let most = named.iter().map(|l| matched(l)).max().unwrap_or(0);
        let expected = named
            .iter()
            .filter(|line| matched(line) == most)
            .map(|line| {
                line.operands
                    .get(most)
                    .map_or("the end of the operands", description)
            });
        let diagnostic = match written.operands.get(most) {
            Some(argument) => Diagnostic::new(argument.operand.span, found(argument)),
            None => {
                let end = written.span.end;
                Diagnostic::new(Span { start: end, end }, "an operand is missing")
            }
        };
        let mut diagnostic = diagnostic.expect(expected);
        for line in named {
            diagnostic = diagnostic.note(line.text);
        }
        self.error(diagnostic);
    }

    fn modifiers(&mut self, line: &'static Line, written: &Written<Argument>) -> Modifiers {
        let mut modifiers = Modifiers::default();
        let mut seen: Vec<Choice> = Vec::new();
        for (word, span) in &written.words[1..] {
            // `.F32` of a result and of an input are not the same: only what stands behind the mnemonic counts.
            let found = line.modifiers.iter().find_map(|(choice, _)| {
                let value = choice.values().iter().position(|v| v == word)?;
                Some((*choice, value))
            });
            match found {
                Some((choice, _)) if seen.contains(&choice) => {
                    let message = format!("`.{word}` is the second of its kind");
                    self.error(Diagnostic::new(*span, message).expect(texts(choice)));
                }
                Some((choice, value)) => {
                    seen.push(choice);
                    modifiers.set(choice, value);
                }
                None => self.unknown_modifier(line, word, *span, &seen),
            }
        }
        for (choice, optional) in line.modifiers {
            if !optional && !seen.contains(choice) {
                let span = written.words.last().map_or(written.span, |(_, span)| *span);
                let end = Span {
                    start: span.end,
                    end: span.end,
                };
                let message = if *choice == Choice::Bop {
                    "what combines the comparison with the predicate is missing"
                } else {
                    "the comparison is missing"
                };
                // An unknown word may have been meant to be it.
                if self.errors.is_empty() {
                    self.error(Diagnostic::new(end, message).expect(texts(*choice)));
                }
            }
        }
        modifiers
    }

    fn unknown_modifier(&mut self, line: &'static Line, word: &str, span: Span, seen: &[Choice]) {
        if Choice::Bop.values().contains(&word) && line.operation == Operation::Hset2 {
            let message = format!("`.{word}` combines with a predicate, which is missing");
            let diagnostic = Diagnostic::new(span, message);
            self.error(diagnostic.expect(["a predicate behind the sources"]));
            return;
        }
        let known: Vec<&'static str> = (line.modifiers.iter())
            .filter(|(choice, _)| !seen.contains(choice))
            .flat_map(|(choice, _)| choice.values())
            .copied()
            .filter(|text| !text.is_empty())
            .collect();
        let message = format!("{} has no modifier `.{word}`", line.mnemonic);
        self.error(unknown(span, message, word, known));
    }

    /// Signs, bars, braces and suffixes that the syntax does not have.
    fn decorations(&mut self, line: &'static Line, syntax: &OperandSyntax, argument: &Argument) {
        let operand = &argument.operand;
        let immediate = syntax.is_immediate();
        let bars = syntax.absolute && (!immediate || argument.braces);
        let wrong = [
            (operand.negate, '-', syntax.negate),
            (operand.absolute, '|', bars),
            (operand.not, '!', syntax.not),
            (operand.invert, '~', false),
        ];
        for (span, mark, allowed) in wrong {
            let Some(span) = span.filter(|_| !allowed) else {
                continue;
            };
            let message = format!("{} has no `{mark}` on {}", line.mnemonic, syntax.name);
            let diagnostic = Diagnostic::new(span, message);
            let immediates = line.operands.iter().any(OperandSyntax::is_immediate);
            self.error(match (immediate, mark, immediates) {
                (true, '|', _) => {
                    diagnostic.note("bars of an immediate stand in braces: `{|1.0|}`")
                }
                (_, '-', true) => diagnostic.note("change the signs of the immediates"),
                _ => diagnostic,
            });
        }
        if argument.braces && !immediate {
            let message = "only immediates stand in braces";
            self.error(Diagnostic::new(operand.span, message));
        }
        if let Some((suffix, span)) = &operand.suffix
            && syntax.format.is_none()
        {
            let message = format!("{} has no modifier, `.{suffix}` is one", syntax.name);
            self.error(Diagnostic::new(*span, message));
        }
    }

    fn operand(
        &mut self,
        syntax: &OperandSyntax,
        argument: &Argument,
        instruction: &mut Instruction,
        halves: &mut Vec<u16>,
    ) {
        let operand = &argument.operand;
        let sign = Sign {
            negate: operand.negate.is_some(),
            absolute: operand.absolute.is_some(),
        };
        match (&operand.value, syntax.shape) {
            (Value::Register(text), Shape::Predicate) => {
                instruction.pp = Predicate {
                    register: self.register(text),
                    not: operand.not.is_some(),
                };
            }
            (Value::Register(text), _) => {
                let register = self.register(text);
                let input = Input {
                    register,
                    sign,
                    format: self.format(syntax, operand),
                };
                match syntax.part {
                    Part::Destination => instruction.rd = register,
                    Part::First => instruction.a = input,
                    _ => instruction.b = Source::Register(input),
                }
            }
            (
                Value::Constant { bank, offset },
                Shape::Constant {
                    bank: bits,
                    address,
                },
            ) => {
                let bank = self.number(bank, bits, 1);
                let offset = self.number(offset, address, 4);
                instruction.b = Source::Constant {
                    bank: bank as u8,
                    offset: offset as u16,
                    sign,
                };
            }
            (Value::Literal(text), Shape::Immediate { bits }) => {
                halves.push(self.half(text, sign, bits, operand.span));
            }
            _ => {}
        }
    }

    fn register(&mut self, text: &RegisterText) -> Option<PReg> {
        let class = class(text)?;
        match text.list[..] {
            [RegisterName::Hardwired] => None,
            [RegisterName::Numbered(number)] if number < class.hardwired().into() => {
                Some(PReg::new(class, number as u8))
            }
            [RegisterName::Numbered(number)] => {
                let message = format!("there is no {}{number}", class.prefix());
                let expected = text.file.description();
                self.error(Diagnostic::new(text.span, message).expect([expected]));
                None
            }
            _ => {
                let expected = text.file.description();
                let message = "one register is expected here";
                self.error(Diagnostic::new(text.span, message).expect([expected]));
                None
            }
        }
    }

    fn format(&mut self, syntax: &OperandSyntax, operand: &Operand) -> Iswz {
        let (Some(choice), Some((suffix, span))) = (syntax.format, &operand.suffix) else {
            return Iswz::default();
        };
        match choice.values().iter().position(|v| v == suffix) {
            Some(value) => Iswz::ALL[value],
            None => {
                let message = format!("{} has no input format `.{suffix}`", syntax.name);
                let known = choice.values().iter().copied();
                self.error(unknown(*span, message, suffix, known));
                Iswz::default()
            }
        }
    }

    /// A number of so many bits that is a multiple.
    fn number(&mut self, (text, span): &(String, Span), bits: u32, multiple: u64) -> u64 {
        match crate::isa::literal::unsigned(false, text, bits) {
            Ok(value) if value % multiple == 0 => value,
            Ok(value) => {
                let message = format!("{value} is not a multiple of {multiple}");
                let below = value / multiple * multiple;
                let near = [below, below + multiple]
                    .into_iter()
                    .filter(|n| n >> bits == 0);
                let near = near.map(|n| n.to_string());
                self.error(Diagnostic::new(*span, message).expect(near));
                0
            }
            Err(error) => {
                self.error(Diagnostic::new(*span, error.to_string()));
                0
            }
        }
    }

    /// A half with its signs folded in.
    fn half(&mut self, text: &str, sign: Sign, bits: u32, span: Span) -> u16 {
        let half = match FloatFormat::F16.parse(false, text, 16) {
            Ok(half) => half,
            Err(error) => {
                self.error(Diagnostic::new(span, error.to_string()));
                return 0;
            }
        };
        let half = crate::sim::semantics::softfloat::F16.modify(half, sign.absolute, sign.negate);
        let half = half as u16;
        let lost = 16 - bits;
        let below = half >> lost << lost;
        if below != half {
            let shown = |bits: u16| match half_text(bits) {
                text if text.starts_with("0x") => text,
                text => format!("{text} ({bits:#06x})"),
            };
            // The next one of the same sign, if there is one.
            let above = below
                .checked_add(1 << lost)
                .filter(|above| (above ^ below) & 0x8000 == 0);
            let message = format!(
                "{} has more than the {bits} most significant bits of a half",
                shown(half)
            );
            let near = [Some(below), above].into_iter().flatten().map(shown);
            self.error(Diagnostic::new(span, message).expect(near));
        }
        half
    }

    /// Both immediates of a product have one sign (document 004).
    fn signs_of_a_product(&mut self, written: &Written<Argument>, [low, high]: [u16; 2]) {
        let [.., a, b] = &written.operands[..] else {
            return;
        };
        let span = a.operand.span.to(b.operand.span);
        if (low ^ high) & 0x8000 != 0 {
            let message = "the two immediates of a product have the same sign";
            let with_sign = |sign: u16| {
                let [high, low] = [high, low].map(|h| half_text(h & 0x7fff | sign));
                format!("{high}, {low}")
            };
            let diagnostic = Diagnostic::new(span, message);
            self.error(diagnostic.expect([with_sign(0), with_sign(0x8000)]));
        }
        let bars = [a, b].map(|a| a.operand.absolute.is_some());
        if bars[0] != bars[1] {
            let message = "one immediate has bars and the other has none";
            let diagnostic = Diagnostic::warning(span, message);
            self.warnings
                .push(diagnostic.note("the document allows them on both or on neither"));
        }
    }
}

/// The texts of a modifier's values.
fn texts(choice: Choice) -> impl Iterator<Item = String> {
    let written = choice.values().iter().filter(|text| !text.is_empty());
    written.map(|text| format!(".{text}"))
}

/// What an operand is, for what was expected.
fn description(syntax: &OperandSyntax) -> &'static str {
    match syntax.shape {
        Shape::Register => "a register (R0 to R254, RZ)",
        Shape::Predicate => "a predicate (P0 to P6, PT)",
        Shape::Constant { .. } => "a constant (c[bank][offset])",
        Shape::Immediate { .. } => "an immediate",
    }
}

/// What stands where no line of syntax has it.
fn found(argument: &Argument) -> String {
    match &argument.operand.value {
        Value::Register(text) if class(text) == Some(RegisterClass::Uniform) => {
            "SPA 5.3 has no uniform registers".to_owned()
        }
        Value::Register(text) if class(text) == Some(RegisterClass::Predicate) => {
            "a predicate does not belong here".to_owned()
        }
        Value::Register(_) => "a register does not belong here".to_owned(),
        Value::Literal(_) => "an immediate does not belong here".to_owned(),
        Value::Constant { .. } => "a constant does not belong here".to_owned(),
        _ => "this is no operand of it".to_owned(),
    }
}
