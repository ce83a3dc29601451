//! Operands: what they are, their signs, and numbers with their limits.

use super::Reader;
use crate::print::half_text;
use crate::suggest::unknown;
use crate::{Input, Instruction, Iswz, Line, OperandSyntax, Part, Predicate, Shape, Sign, Source};
use cranelift_thisgpu::asm::{Diagnostic, Span};
use cranelift_thisgpu::unstable::asm::line::{Line as Tokens, Parsed};
use cranelift_thisgpu::unstable::asm::name::{File, RegisterName};
use cranelift_thisgpu::unstable::asm::operand::{Operand, RegisterText, Value};
use cranelift_thisgpu::unstable::asm::syntax::Written;
use cranelift_thisgpu::unstable::isa::literal::{self, FloatFormat};
use cranelift_thisgpu::unstable::isa::{PReg, RegisterClass};
use cranelift_thisgpu::unstable::sim::semantics::compare::modified;
use cranelift_thisgpu::unstable::sim::semantics::softfloat::F16;

/// An operand, in braces or not.
pub(super) struct Argument {
    pub(super) braces: bool,
    pub(super) operand: Operand,
}

impl Argument {
    pub(super) fn read(tokens: &mut Tokens<'_, '_>) -> Parsed<Argument> {
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
    pub(super) fn fits(&self, shape: Shape) -> bool {
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

pub(super) fn class(text: &RegisterText) -> Option<RegisterClass> {
    match text.file {
        File::Class(class) => Some(class),
        _ => None,
    }
}

impl Reader {
    /// Signs, bars, braces and suffixes that the syntax does not have.
    pub(super) fn decorations(
        &mut self,
        line: &'static Line,
        syntax: &OperandSyntax,
        argument: &Argument,
    ) {
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

    pub(super) fn operand(
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

    pub(super) fn register(&mut self, text: &RegisterText) -> Option<PReg> {
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
        match literal::unsigned(false, text, bits) {
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
        let half = modified(F16, &(half as u16), sign.absolute, sign.negate);
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
    pub(super) fn signs_of_a_product(
        &mut self,
        written: &Written<Argument>,
        [low, high]: [u16; 2],
    ) {
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
