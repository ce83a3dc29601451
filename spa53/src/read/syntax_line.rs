//! Which line of syntax an instruction is written by, and its modifiers.

use super::Reader;
use super::operand::{Argument, class};
use crate::suggest::unknown;
use crate::{Choice, LINES, Line, Modifiers, OperandSyntax, Operation, Shape};
use cranelift_thisgpu::asm::{Diagnostic, Span};
use cranelift_thisgpu::unstable::asm::operand::Value;
use cranelift_thisgpu::unstable::asm::syntax::Written;
use cranelift_thisgpu::unstable::isa::RegisterClass;
use cranelift_thisgpu::unstable::text::did_you_mean;

impl Reader {
    /// The line of syntax that has the mnemonic and operands of these shapes.
    pub(super) fn line(&mut self, written: &Written<Argument>) -> Option<&'static Line> {
        let (mnemonic, span) = written.words.first()?;
        let named: Vec<&'static Line> = LINES.iter().filter(|l| l.mnemonic == *mnemonic).collect();
        if named.is_empty() {
            let mut known: Vec<&str> = LINES.iter().map(|l| l.mnemonic).collect();
            known.dedup();
            let near = did_you_mean(mnemonic, known.iter().copied());
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

    pub(super) fn modifiers(
        &mut self,
        line: &'static Line,
        written: &Written<Argument>,
    ) -> Modifiers {
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
