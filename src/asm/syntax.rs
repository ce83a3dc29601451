//! Tokens of a line to an instruction as written: guard, mnemonic with its modifiers, operands, control suffix. Nothing
//! here knows an instruction; what the words mean is decided in [`super::select`].

use super::diagnostic::{Diagnostic, Span};
use super::lexer::{Token, TokenKind};
use super::line::{Line, Parsed};
use super::name::File;
use super::operand::{Operand, RegisterText};
use crate::isa::{Control, RegisterClass, Scoreboard};

/// An instruction as written.
#[derive(Clone, Debug)]
pub struct Written<O = Operand> {
    /// `@!P0`.
    pub guard: Option<Guard>,
    /// `IADD`, `X`: the mnemonic and its modifiers, split at the dots.
    pub words: Vec<(String, Span)>,
    /// In order.
    pub operands: Vec<O>,
    /// The control suffix.
    pub control: Control,
    /// Place of the control suffix; empty behind the instruction when there is none.
    pub control_span: Span,
    /// From the guard to the last operand.
    pub span: Span,
}

/// The predicate that says in which threads an instruction has an effect.
#[derive(Clone, Debug)]
pub struct Guard {
    /// `!`.
    pub negated: bool,
    /// The predicate.
    pub register: RegisterText,
}

impl Line<'_, '_> {
    /// A whole instruction up to the end of the line.
    pub fn instruction(&mut self) -> Parsed<Written> {
        self.instruction_of(Line::operand)
    }

    /// A whole instruction up to the end of the line, whose operands `operand` reads.
    pub fn instruction_of<O>(
        &mut self,
        operand: impl Fn(&mut Self) -> Parsed<O>,
    ) -> Parsed<Written<O>> {
        let start = self.span();
        let guard = if self.eat('@') {
            Some(self.guard()?)
        } else {
            None
        };
        let words = self.mnemonic()?;
        let operands = self.operands(operand)?;
        let span = start.to(self.previous());
        let (control, control_span) = self.control()?;
        if self.eat(';') && self.peek().is_some() {
            return Err(self.unexpected(["the end of the line: one instruction a line"]));
        }
        Ok(Written {
            guard,
            words,
            operands,
            control,
            control_span,
            span,
        })
    }

    fn guard(&mut self) -> Parsed<Guard> {
        let negated = self.eat('!');
        match self.register()? {
            Some(register) if register.file == File::Class(RegisterClass::Predicate) => {
                Ok(Guard { negated, register })
            }
            Some(register) => {
                Err(Diagnostic::new(register.span, "a guard is a predicate")
                    .expect(["P0 to P6", "PT"]))
            }
            None => Err(self.unexpected(["a predicate (P0 to P6, PT)"])),
        }
    }

    fn mnemonic(&mut self) -> Parsed<Vec<(String, Span)>> {
        let Some(Token {
            kind: TokenKind::Word(word),
            span,
        }) = self.tokens.get(self.at).copied()
        else {
            return Err(self.unexpected(["an instruction", "a label", "a directive"]));
        };
        self.at += 1;
        let mut start = span.start;
        let mut words = Vec::new();
        for part in word.split('.') {
            let span = Span {
                start,
                end: start + part.len(),
            };
            if part.is_empty() {
                return Err(Diagnostic::new(
                    Span {
                        start,
                        end: start + 1,
                    },
                    "a modifier is missing at this dot",
                ));
            }
            words.push((part.to_string(), span));
            start = span.end + 1;
        }
        Ok(words)
    }

    fn at_end_of_operands(&self) -> bool {
        matches!(self.peek(), None | Some(TokenKind::Mark(';' | '&' | '?')))
    }

    fn operands<O>(&mut self, operand: impl Fn(&mut Self) -> Parsed<O>) -> Parsed<Vec<O>> {
        let mut operands = Vec::new();
        // A comma behind the last operand is passed over: an example of the documents has one (errata I-11).
        while !self.at_end_of_operands() {
            operands.push(operand(self)?);
            if !self.at_end_of_operands() && !self.eat(',') {
                return Err(self.unexpected([
                    "`,`",
                    "`;`",
                    "the control suffix",
                    "the end of the line",
                ]));
            }
        }
        Ok(operands)
    }

    /// `&req={0,3} &wr=1 &rd=2 ?4`, in any order.
    fn control(&mut self) -> Parsed<(Control, Span)> {
        let mut control = Control::default();
        let start = self.span();
        let mut span = Span {
            start: self.previous().end,
            end: self.previous().end,
        };
        let mut seen = Vec::new();
        while matches!(self.peek(), Some(TokenKind::Mark('&' | '?'))) {
            let here = self.span();
            let name = if self.eat('?') {
                let (text, place) = self.number()?;
                let stall = text.parse().ok().filter(|n| *n <= Control::MAX_STALL);
                control.set_stall(stall.ok_or_else(|| {
                    Diagnostic::new(place, format!("no stall of {text}")).expect(["0 to 15 cycles"])
                })?);
                "?"
            } else {
                self.at += 1;
                let name = match self.peek() {
                    Some(TokenKind::Word(name @ ("req" | "wr" | "rd"))) => name,
                    _ => return Err(self.unexpected(["req", "wr", "rd"])),
                };
                self.at += 1;
                self.expect('=')?;
                match name {
                    "req" => control.set_wait(self.scoreboards()?),
                    "wr" => control.write = Some(self.scoreboard()?),
                    _ => control.read = Some(self.scoreboard()?),
                }
                name
            };
            span = start.to(self.previous());
            if seen.contains(&name) {
                return Err(Diagnostic::new(
                    here.to(self.previous()),
                    "this part of the control suffix is given twice",
                ));
            }
            seen.push(name);
        }
        if !matches!(self.peek(), None | Some(TokenKind::Mark(';'))) {
            return Err(self.unexpected([
                "&req={…}",
                "&wr=n",
                "&rd=n",
                "?n",
                "`;`",
                "the end of the line",
            ]));
        }
        Ok((control, span))
    }

    fn scoreboard(&mut self) -> Parsed<Scoreboard> {
        let (text, span) = self.number()?;
        let board = text.parse().ok().and_then(Scoreboard::new);
        board.ok_or_else(|| {
            Diagnostic::new(span, format!("there is no scoreboard {text}")).expect(["0 to 5"])
        })
    }

    fn scoreboards(&mut self) -> Parsed<u8> {
        self.expect('{')?;
        let mut mask = 0;
        while !self.eat('}') {
            if mask != 0 {
                self.expect(',')?;
            }
            mask |= 1 << self.scoreboard()?.number();
        }
        Ok(mask)
    }
}
