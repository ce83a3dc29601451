//! Tokens to an operand as written.

use super::diagnostic::{Diagnostic, Span};
use super::lexer::TokenKind;
use super::line::{Line, Parsed};
use super::name::{File, RegisterName, file, register, virtual_register};
use crate::isa::RegisterClass;

/// A register or several that form one operand.
#[derive(Clone, Debug)]
pub struct RegisterText {
    /// Its file.
    pub file: File,
    /// Low word first.
    pub list: Vec<RegisterName>,
    /// Where it stands.
    pub span: Span,
}

/// An operand with its decorations.
#[derive(Clone, Debug)]
pub struct Operand {
    /// `-`.
    pub negate: Option<Span>,
    /// `~`.
    pub invert: Option<Span>,
    /// `!`.
    pub not: Option<Span>,
    /// `|…|`.
    pub absolute: Option<Span>,
    /// `.H0_H0` without its dot.
    pub suffix: Option<(String, Span)>,
    /// What it is.
    pub value: Value,
    /// Where it stands, decorations included.
    pub span: Span,
}

/// What an operand is without its decorations.
#[derive(Clone, Debug)]
pub enum Value {
    /// `R4`, `R[4:5]`.
    Register(RegisterText),
    /// A number without sign; `INF` is one.
    Literal(String),
    /// `c[0x0][0x160]`.
    Constant {
        /// Its number.
        bank: (String, Span),
        /// Byte offset.
        offset: (String, Span),
    },
    /// `[R[2:3]+UR[4:5]+0x10]`.
    Memory {
        /// `R[2:3]`.
        base: Option<RegisterText>,
        /// `UR[4:5]`.
        uniform: Option<RegisterText>,
        /// `0x10`.
        offset: Option<Offset>,
    },
    /// `R[UR2+0x1]`.
    Indexed {
        /// `R`.
        base: RegisterText,
        /// `UR2+0x1`.
        offset: Option<Offset>,
    },
    /// `PR`.
    AllPredicates,
    /// A label, a symbol or the name of a special register, with what is added.
    Name {
        /// Without quotes.
        name: String,
        /// `+4`, `-4`; 0 if there is none.
        addend: i64,
        /// Whether it stands in quotes.
        quoted: bool,
    },
    /// `.+0x40`.
    Relative(Offset),
    /// `lo(symbol+4)`: half of an address.
    Part {
        /// Of `hi(…)`, not `lo(…)`.
        high: bool,
        /// Without quotes.
        name: String,
        /// `+4`, `-4`; 0 if there is none.
        addend: i64,
    },
}

/// A signed literal.
#[derive(Clone, Debug)]
pub struct Offset {
    /// `-`.
    pub negative: bool,
    /// Without sign.
    pub text: String,
    /// Where it stands, sign included.
    pub span: Span,
}

const ADDRESS_PARTS: [&str; 3] = ["a register", "a uniform register", "an offset"];

impl Line<'_, '_> {
    /// One operand with its decorations.
    pub fn operand(&mut self) -> Parsed<Operand> {
        let start = self.span();
        let mut prefix = |mark: char| {
            let span = self.span();
            self.eat(mark).then_some(span)
        };
        let (negate, invert, not) = (prefix('-'), prefix('~'), prefix('!'));
        let absolute = prefix('|');
        let mut operand = Operand {
            negate,
            invert,
            not,
            absolute,
            suffix: None,
            value: Value::AllPredicates,
            span: start,
        };
        operand.value = self.value(&mut operand.suffix)?;
        self.suffix(&mut operand.suffix);
        if operand.absolute.is_some() {
            self.expect('|')?;
            self.suffix(&mut operand.suffix);
        }
        operand.span = start.to(self.previous());
        Ok(operand)
    }

    /// `.H0` behind a bracket or a bar.
    fn suffix(&mut self, suffix: &mut Option<(String, Span)>) {
        if let (Some(TokenKind::Word(word)), None) = (self.peek(), &suffix)
            && let Some(name) = word.strip_prefix('.')
        {
            *suffix = Some((name.to_string(), self.span()));
            self.at += 1;
        }
    }

    fn value(&mut self, suffix: &mut Option<(String, Span)>) -> Parsed<Value> {
        match (self.peek(), self.peek_at(1)) {
            (Some(TokenKind::Number(text)), _)
            | (
                Some(TokenKind::Mark('+')),
                Some(TokenKind::Number(text) | TokenKind::Word(text @ "INF")),
            ) => {
                self.eat('+');
                self.at += 1;
                Ok(Value::Literal(text.to_string()))
            }
            (Some(TokenKind::Mark('.')), Some(TokenKind::Mark('+' | '-'))) => {
                self.at += 1;
                let negative = self.eat('-');
                if !negative {
                    self.at += 1;
                }
                let (text, span) = self.number()?;
                Ok(Value::Relative(Offset {
                    negative,
                    text,
                    span,
                }))
            }
            (Some(TokenKind::Mark('[')), _) => self.memory(),
            (Some(TokenKind::Mark('%')), _) => Ok(Value::Register(self.virtual_registers()?)),
            (Some(TokenKind::Quoted(_)), _) => self.symbol(),
            (Some(TokenKind::Word("INF")), _) => {
                self.at += 1;
                Ok(Value::Literal("INF".to_string()))
            }
            (Some(TokenKind::Word("PR")), _) => {
                self.at += 1;
                Ok(Value::AllPredicates)
            }
            (Some(TokenKind::Word("c")), Some(TokenKind::Mark('['))) => self.constant(),
            (Some(TokenKind::Word(word @ ("lo" | "hi"))), Some(TokenKind::Mark('('))) => {
                self.at += 2;
                let (name, _, _) = self.name()?;
                let addend = self.addend()?;
                self.expect(')')?;
                Ok(Value::Part {
                    high: word == "hi",
                    name,
                    addend,
                })
            }
            (Some(TokenKind::Word("R")), Some(TokenKind::Mark('[')))
                if !matches!(self.peek_at(2), Some(TokenKind::Number(_))) =>
            {
                self.indexed()
            }
            (Some(TokenKind::Word(_)), Some(TokenKind::Mark('['))) => match self.register()? {
                Some(register) => Ok(Value::Register(register)),
                None => Err(self.unexpected(["R[a:b]", "UR[a:b]", "c[bank][offset]"])),
            },
            (Some(TokenKind::Word(word)), _) => {
                let span = self.span();
                let (head, tail) = word
                    .split_once('.')
                    .map_or((word, None), |(h, t)| (h, Some(t)));
                match register(head) {
                    Some((file, name)) => {
                        self.at += 1;
                        *suffix = tail.map(|t| {
                            (
                                t.to_string(),
                                Span {
                                    start: span.start + head.len(),
                                    end: span.end,
                                },
                            )
                        });
                        let span = Span {
                            start: span.start,
                            end: span.start + head.len(),
                        };
                        Ok(Value::Register(RegisterText {
                            file,
                            list: vec![name],
                            span,
                        }))
                    }
                    None => self.symbol(),
                }
            }
            _ => Err(self.unexpected(["an operand"])),
        }
    }

    fn symbol(&mut self) -> Parsed<Value> {
        let (name, _, quoted) = self.name()?;
        let addend = self.addend()?;
        Ok(Value::Name {
            name,
            addend,
            quoted,
        })
    }

    /// A register or a range of them, if one stands here.
    pub fn register(&mut self) -> Parsed<Option<RegisterText>> {
        let start = self.span();
        match (self.peek(), self.peek_at(1)) {
            (Some(TokenKind::Mark('%')), _) => self.virtual_registers().map(Some),
            (Some(TokenKind::Word(word)), Some(TokenKind::Mark('['))) => {
                let Some(file @ File::Class(RegisterClass::Gpr | RegisterClass::Uniform)) =
                    file(word)
                else {
                    return Ok(None);
                };
                self.at += 2;
                let first = self.index()?;
                self.expect(':')?;
                let last = self.index()?;
                self.expect(']')?;
                let span = start.to(self.previous());
                if last <= first || last - first > 3 {
                    return Err(Diagnostic::new(
                        span,
                        format!("no operand has the registers {first} to {last}"),
                    )
                    .expect(["two or four registers, the low word's first"]));
                }
                Ok(Some(RegisterText {
                    file,
                    list: (first..=last).map(RegisterName::Numbered).collect(),
                    span,
                }))
            }
            (Some(TokenKind::Word(word)), _) => Ok(register(word).map(|(file, name)| {
                self.at += 1;
                RegisterText {
                    file,
                    list: vec![name],
                    span: start,
                }
            })),
            _ => Ok(None),
        }
    }

    fn index(&mut self) -> Parsed<u32> {
        let (text, span) = self.number()?;
        text.parse().map_err(|_| {
            Diagnostic::new(span, format!("`{text}` is no register number"))
                .expect(["a decimal number"])
        })
    }

    /// `%v3`, `%v3:%v4`.
    fn virtual_registers(&mut self) -> Parsed<RegisterText> {
        let start = self.span();
        let mut list = Vec::new();
        let mut common = None;
        loop {
            self.expect('%')?;
            let found = match self.peek() {
                Some(TokenKind::Word(word)) => virtual_register(word),
                _ => None,
            };
            let Some((class, number)) = found else {
                return Err(self.unexpected(["a virtual register such as %v1, %u1, %p1"]));
            };
            if *common.get_or_insert(class) != class {
                return Err(Diagnostic::new(
                    self.span(),
                    "the registers of one operand are of one class",
                ));
            }
            self.at += 1;
            list.push(RegisterName::Virtual(number));
            match (self.peek(), self.peek_at(1)) {
                (Some(TokenKind::Mark(':')), Some(TokenKind::Mark('%'))) => self.at += 1,
                _ => {
                    return Ok(RegisterText {
                        file: File::Class(class),
                        list,
                        span: start.to(self.previous()),
                    });
                }
            }
        }
    }

    fn constant(&mut self) -> Parsed<Value> {
        self.at += 1;
        let mut part = || {
            self.expect('[')?;
            let number = self.number()?;
            self.expect(']').map(|()| number)
        };
        Ok(Value::Constant {
            bank: part()?,
            offset: part()?,
        })
    }

    fn indexed(&mut self) -> Parsed<Value> {
        self.at += 2;
        let base = self
            .register()?
            .ok_or_else(|| self.unexpected(["a uniform register", "register numbers: R[0:1]"]))?;
        let offset = self.offset()?;
        self.expect(']')?;
        Ok(Value::Indexed { base, offset })
    }

    /// `+0x10`, if it stands here.
    fn offset(&mut self) -> Parsed<Option<Offset>> {
        let start = self.span();
        let negative = self.eat('-');
        if !negative && !self.eat('+') {
            return Ok(None);
        }
        let (text, span) = self.number()?;
        Ok(Some(Offset {
            negative,
            text,
            span: start.to(span),
        }))
    }

    fn memory(&mut self) -> Parsed<Value> {
        self.at += 1;
        let (mut base, mut uniform, mut offset) = (None, None, None);
        let mut first = true;
        while first || self.peek() != Some(TokenKind::Mark(']')) {
            let start = self.span();
            let negative = self.eat('-');
            if !negative && !self.eat('+') && !first {
                return Err(self.unexpected(["`+`", "`-`", "`]`"]));
            }
            first = false;
            if let Some(register) = self.register()? {
                let slot = match register.file {
                    File::Class(RegisterClass::Gpr) => &mut base,
                    File::Class(RegisterClass::Uniform) => &mut uniform,
                    _ => {
                        return Err(Diagnostic::new(
                            register.span,
                            "this is no part of an address",
                        )
                        .expect(ADDRESS_PARTS));
                    }
                };
                if negative || slot.is_some() || offset.is_some() {
                    return Err(Diagnostic::new(
                        start.to(register.span),
                        "an address is a register, a uniform register and an offset, added in this order",
                    ));
                }
                *slot = Some(register);
            } else if let Some(TokenKind::Number(text)) = self.peek()
                && offset.is_none()
            {
                offset = Some(Offset {
                    negative,
                    text: text.to_string(),
                    span: start.to(self.span()),
                });
                self.at += 1;
            } else {
                return Err(self.unexpected(ADDRESS_PARTS));
            }
        }
        self.expect(']')?;
        Ok(Value::Memory {
            base,
            uniform,
            offset,
        })
    }
}
