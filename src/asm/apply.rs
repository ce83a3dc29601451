//! The values of a written instruction into the form that was chosen for it.

use super::diagnostic::{Diagnostic, Explanations, Span};
use super::matching::{Candidate, Match, register_class};
use super::name::{File, NamedRegister, RegisterName};
use super::operand::{Offset, Operand, RegisterText, Value};
use super::select::{select, syntax_notes};
use super::syntax::Written;
use crate::isa::encode::Illegal;
use crate::isa::generated::MAX_REGISTERS;
use crate::isa::literal::{self, ImmediateFormat, LiteralError};
use crate::isa::table::{FieldType, FormInfo, SyntaxOperandKind};
use crate::isa::{Control, Inst, PReg, Role};
use crate::object::RelocationKind;

/// An assembled instruction whose labels and symbols are not filled in.
#[derive(Clone, Debug)]
pub(super) struct Assembled<R> {
    pub inst: Inst<R>,
    pub control: Control,
    pub symbols: Vec<SymbolUse>,
    /// Which field is written where, modifiers first.
    places: Vec<(u8, Span)>,
    control_span: Span,
    /// The instruction without its guard and control.
    pub span: Span,
}

/// A field that a label or symbol gives its value.
#[derive(Clone, Debug)]
pub(super) struct SymbolUse {
    pub field: u8,
    pub kind: RelocationKind,
    pub name: String,
    pub addend: i64,
    pub span: Span,
}

/// Chooses the form and fills in what is written.
pub(super) fn assemble<R: NamedRegister>(
    written: &Written,
    explanations: &mut Explanations,
) -> Result<Assembled<R>, Vec<Diagnostic>> {
    let (candidate, matches) = select(written, explanations)?;
    let Candidate {
        form,
        mode,
        word,
        places,
    } = candidate;
    let inst = Inst::from_parts(form, word, [None; MAX_REGISTERS]);
    let mut filling = Filling {
        inst,
        info: form.info(),
        places,
        symbols: Vec::new(),
        diagnostics: Vec::new(),
    };
    if let Some(guard) = &written.guard {
        filling.guard(&guard.register, guard.negated);
    }
    for Match {
        operand,
        written: range,
    } in matches
    {
        filling.operand(&mode.operands[operand].kind, &written.operands[range]);
    }
    let Filling {
        inst,
        places,
        symbols,
        diagnostics,
        ..
    } = filling;
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let control = written.control;
    Ok(Assembled {
        inst,
        control,
        symbols,
        places,
        control_span: written.control_span,
        span: written.span,
    })
}

impl<R> Assembled<R> {
    /// Whether the text gives this field its value.
    pub fn is_written(&self, field: u8) -> bool {
        self.places.iter().any(|(written, _)| *written == field)
    }
}

impl Assembled<PReg> {
    /// The word, with 0 where labels and symbols come; the encoder's refusal at the place that it is about.
    pub fn word(&self) -> Result<u128, Diagnostic> {
        self.inst
            .encode(self.control)
            .map_err(|illegal| self.explain(&illegal))
    }

    fn explain(&self, illegal: &Illegal) -> Diagnostic {
        let info = self.inst.info();
        let of_field = |name: &str| {
            self.places
                .iter()
                .find(|(i, _)| info.fields[*i as usize].name == name)
                .map(|(_, s)| *s)
        };
        let of_operand = |name: &str| {
            let operand = info.operands.iter().find(|o| o.name == name)?;
            self.places
                .iter()
                .find(|(i, _)| *i == operand.field)
                .map(|(_, s)| *s)
        };
        let place = match illegal {
            Illegal::ReservedCode { field, .. }
            | Illegal::Hidden { field, .. }
            | Illegal::Constant { field, .. } => of_field(field),
            Illegal::Misaligned { operand, .. }
            | Illegal::NotConsecutive { operand, .. }
            | Illegal::ConstantOffset { operand, .. } => of_operand(operand),
            Illegal::Exception { message, .. } => self.culprit(info, message),
            Illegal::NoScoreboard { .. } => Some(self.control_span),
            Illegal::UnknownForm { .. } | Illegal::UnusedBit { .. } | Illegal::NoMode { .. } => {
                None
            }
        };
        let mut diagnostic = Diagnostic::new(place.unwrap_or(self.span), illegal.to_string());
        if let Illegal::Constant { expected, .. } | Illegal::Hidden { expected, .. } = illegal {
            diagnostic = diagnostic.expect([expected.clone()]);
        }
        syntax_notes(diagnostic, info.optype.info())
    }

    /// The place whose field alone, at its default, would satisfy the rule.
    fn culprit(&self, info: &FormInfo, message: &str) -> Option<Span> {
        let rule = info.exceptions.iter().find(|e| e.message == message)?;
        let word = self.inst.word();
        let innocent = |i: u8| {
            let field = &info.fields[i as usize];
            (rule.broken)(field.set(word, field.hidden))
        };
        self.places
            .iter()
            .find(|(i, _)| !innocent(*i))
            .or(self.places.first())
            .map(|(_, span)| *span)
    }
}

struct Filling<R> {
    inst: Inst<R>,
    info: &'static FormInfo,
    places: Vec<(u8, Span)>,
    symbols: Vec<SymbolUse>,
    diagnostics: Vec<Diagnostic>,
}

impl<R: NamedRegister> Filling<R> {
    fn error(&mut self, diagnostic: Diagnostic) {
        self.diagnostics
            .push(syntax_notes(diagnostic, self.info.optype.info()));
    }

    fn set(&mut self, field: u8, value: u64, span: Span) {
        self.inst.set_field(field, value);
        self.places.push((field, span));
    }

    fn guard(&mut self, register: &RegisterText, negated: bool) {
        let Some(operand) = self.info.operand(Role::Pg) else {
            return self.error(Diagnostic::new(
                register.span,
                "this instruction has no guard",
            ));
        };
        self.register(operand.field, register);
        if let Some(not) = operand.not {
            self.inst.set_field(not, negated.into());
        }
    }

    fn operand(&mut self, kind: &SyntaxOperandKind, written: &[Operand]) {
        let operand = &written[0];
        match *kind {
            SyntaxOperandKind::Plain { field, .. } => {
                if ImmediateFormat::of(
                    self.info,
                    &self.info.fields[field as usize],
                    self.inst.word(),
                )
                .is_some()
                {
                    self.float(field, written);
                } else {
                    self.plain(field, operand);
                }
                self.decorations(kind, written);
            }
            SyntaxOperandKind::AllPredicates => self.decorations(kind, written),
            SyntaxOperandKind::Indexed { base, offset } => {
                if let Value::Indexed {
                    base: register,
                    offset: number,
                } = &operand.value
                {
                    if register.file == self.file_of(base) {
                        self.register(base, register);
                    } else {
                        let expected = self.file_of(base).description();
                        self.error(
                            Diagnostic::new(
                                register.span,
                                "the number of a register comes from a uniform register",
                            )
                            .expect([expected]),
                        );
                    }
                    self.offset(offset, number.as_ref());
                }
                self.decorations(kind, written);
            }
            SyntaxOperandKind::Memory {
                base,
                uniform,
                offset,
            } => {
                if let Value::Memory {
                    base: b,
                    uniform: u,
                    offset: o,
                } = &operand.value
                {
                    for (field, register) in [(base, b), (uniform, u)] {
                        if let (Some(field), Some(register)) = (field, register) {
                            self.register(field, register);
                        }
                    }
                    if let Some(offset) = offset {
                        self.offset(offset, o.as_ref());
                    }
                }
                self.decorations(kind, written);
            }
        }
    }

    fn file_of(&self, field: u8) -> File {
        let field = &self.info.fields[field as usize];
        match field.ty {
            FieldType::UniformPredicate => File::UniformPredicate,
            FieldType::Convergence => File::Convergence,
            _ => File::Class(register_class(field).unwrap_or(crate::isa::RegisterClass::Gpr)),
        }
    }

    /// `-`, `~`, `!`, `|…|` and the suffix of an operand: each that the syntax has is set, each other is refused.
    fn decorations(&mut self, kind: &SyntaxOperandKind, written: &[Operand]) {
        let none = SyntaxOperandKind::Plain {
            field: 0,
            negate: None,
            negate_by: None,
            absolute: None,
            bitnot: None,
            not: None,
            suffix: None,
        };
        let is_plain = matches!(kind, SyntaxOperandKind::Plain { .. });
        let &SyntaxOperandKind::Plain {
            negate,
            negate_by,
            absolute,
            bitnot,
            not,
            suffix,
            ..
        } = (if is_plain { kind } else { &none })
        else {
            return;
        };
        let inverted = negate_by.is_some_and(|by| self.inst.field(by) != 0);
        let (minus, tilde) = if inverted {
            (None, negate)
        } else {
            (negate, bitnot)
        };
        for operand in written {
            // The sign of a number belongs to it.
            let is_number = matches!(operand.value, Value::Literal(_));
            let minus_sign = operand.negate.filter(|_| !is_number);
            for (place, field, what) in [
                (minus_sign, minus, "a `-`"),
                (operand.invert, tilde, "a `~`"),
                (operand.not, not, "a `!`"),
                (operand.absolute, absolute, "an absolute value"),
            ] {
                match (place, field) {
                    (Some(span), None) => {
                        let mut d =
                            Diagnostic::new(span, format!("this operand cannot have {what}"));
                        if what == "a `-`" && inverted && negate.is_some() {
                            d = d
                                .expect(["`~`"])
                                .note("with .X an operand is inverted, not negated");
                        } else if is_number {
                            d = d.note("put it into the number");
                        }
                        self.error(d);
                    }
                    (place, Some(field)) => {
                        self.set(field, place.is_some().into(), place.unwrap_or(operand.span))
                    }
                    (None, None) => {}
                }
            }
            match (&operand.suffix, suffix) {
                (None, None) => {}
                (None, Some(field)) => {
                    self.set(field, self.info.fields[field as usize].hidden, operand.span)
                }
                (Some((text, span)), None) => self.error(Diagnostic::new(
                    *span,
                    format!("this operand cannot have `.{text}`"),
                )),
                (Some((text, span)), Some(field)) => self.member(field, text, *span, "."),
            }
        }
    }

    /// A member of the enumeration of a field.
    fn member(&mut self, field: u8, text: &str, span: Span, dot: &str) {
        let FieldType::Enum(members) = self.info.fields[field as usize].ty else {
            return self.error(Diagnostic::new(
                span,
                format!("`{dot}{text}` means nothing here"),
            ));
        };
        match members.members.iter().find(|(name, _)| *name == text) {
            Some((_, code)) => self.set(field, *code, span),
            None => {
                let expected = members
                    .members
                    .iter()
                    .map(|(name, _)| format!("{dot}{name}"));
                self.error(
                    Diagnostic::new(span, format!("`{dot}{text}` is no {}", members.name))
                        .expect(expected),
                );
            }
        }
    }

    fn float(&mut self, field: u8, written: &[Operand]) {
        let info = &self.info.fields[field as usize];
        let Some(format) = ImmediateFormat::of(self.info, info, self.inst.word()) else {
            return;
        };
        let (format, width) = match format {
            ImmediateFormat::Scalar(format) => (format, info.width.into()),
            ImmediateFormat::Pair(format) => (format, u32::from(info.width) / 2),
        };
        let mut bits = 0;
        for operand in written {
            let Value::Literal(text) = &operand.value else {
                continue;
            };
            match format.parse(operand.negate.is_some(), text, width) {
                Ok(half) => bits = bits << width | half,
                Err(e) => self.error(Diagnostic::new(
                    operand.span,
                    literal_message(e, operand.negate.is_some(), text),
                )),
            }
        }
        let span = written
            .first()
            .map(|o| o.span)
            .zip(written.last().map(|o| o.span))
            .map(|(a, b)| a.to(b));
        self.set(field, bits, span.unwrap_or_default());
    }

    fn plain(&mut self, field: u8, operand: &Operand) {
        let info = &self.info.fields[field as usize];
        let width = u32::from(info.width);
        match &operand.value {
            Value::Register(register) => self.register(field, register),
            Value::Constant { bank, offset } => {
                let mut part = |(text, span): &(String, Span), width| match literal::unsigned(
                    false, text, width,
                ) {
                    Ok(value) => value,
                    Err(e) => {
                        self.error(Diagnostic::new(*span, e.to_string()));
                        0
                    }
                };
                let value = part(bank, 5) << 17 | part(offset, 17);
                self.set(field, value, operand.span);
            }
            Value::Literal(text) => {
                let negative = operand.negate.is_some();
                let value = match info.ty {
                    FieldType::Unsigned => literal::unsigned(negative, text, width),
                    _ => literal::signed(negative, text, width),
                };
                match value {
                    Ok(value) => self.set(field, value, operand.span),
                    Err(e) => self.error(Diagnostic::new(operand.span, e.to_string())),
                }
            }
            Value::Relative(offset) => self.offset(field, Some(offset)),
            Value::Part { high, name, addend } => {
                let kind = if *high {
                    RelocationKind::Abs32Hi
                } else {
                    RelocationKind::Abs32Lo
                };
                self.symbol(field, kind, name, *addend, operand.span);
            }
            Value::Name { name, addend, .. } => match info.ty {
                FieldType::Label => {
                    self.symbol(field, RelocationKind::Rel, name, *addend, operand.span)
                }
                _ if *addend != 0 => self.error(Diagnostic::new(
                    operand.span,
                    "nothing can be added to a name here",
                )),
                _ => self.member(field, name, operand.span, ""),
            },
            Value::AllPredicates | Value::Memory { .. } | Value::Indexed { .. } => {}
        }
    }

    fn symbol(&mut self, field: u8, kind: RelocationKind, name: &str, addend: i64, span: Span) {
        self.symbols.push(SymbolUse {
            field,
            kind,
            name: name.to_string(),
            addend,
            span,
        });
        self.set(field, 0, span);
    }

    fn offset(&mut self, field: u8, offset: Option<&Offset>) {
        let Some(Offset {
            negative,
            text,
            span,
        }) = offset
        else {
            return self.inst.set_field(field, 0);
        };
        let width = self.info.fields[field as usize].width.into();
        match literal::distance(*negative, text, width) {
            Ok(value) => self.set(field, value, *span),
            Err(e) => self.error(Diagnostic::new(*span, e.to_string())),
        }
    }

    fn register(&mut self, field: u8, text: &RegisterText) {
        self.places.push((field, text.span));
        let file = text.file;
        if let Some(RegisterName::Numbered(n)) = text
            .list
            .iter()
            .find(|n| matches!(n, RegisterName::Numbered(n) if *n >= file.count()))
        {
            let last = file.description();
            return self.error(
                Diagnostic::new(text.span, format!("there is no register {n} in this file"))
                    .expect([last]),
            );
        }
        let File::Class(class) = file else {
            let number = match text.list[..] {
                [RegisterName::Numbered(n)] => n.into(),
                _ => u64::from(crate::isa::print::uniform_true()),
            };
            return self.inst.set_field(field, number);
        };
        let Some(operand) = self.info.operands.iter().find(|o| o.field == field) else {
            return self.error(Diagnostic::new(text.span, "this register is no operand"));
        };
        let count = self.inst.register_count(operand);
        if text.list == [RegisterName::Hardwired] {
            return self.inst.set_regs(operand, &[None; 4][..count]);
        }
        if text.list.len() != count {
            let message = format!("operand {} has {} bits", operand.name, count * 32);
            let prefix = class.prefix();
            let expected = match (count, &text.list[0]) {
                (1, RegisterName::Virtual(_)) => "one register".to_string(),
                (1, _) => format!("one register, as {prefix}4"),
                (_, RegisterName::Virtual(_)) => {
                    format!("{count} registers, the low word's first, as %v1:%v2")
                }
                _ => format!("{count} registers, as {prefix}[4:{}]", 3 + count),
            };
            return self.error(Diagnostic::new(text.span, message).expect([expected]));
        }
        let mut regs = [None; 4];
        for (entry, name) in regs.iter_mut().zip(&text.list) {
            *entry = match *name {
                RegisterName::Numbered(n) => R::machine(class, n),
                RegisterName::Virtual(n) => R::virtual_(class, n),
                RegisterName::Hardwired => None,
            };
            if entry.is_none() {
                return self.error(
                    Diagnostic::new(text.span, "this register belongs to another phase")
                        .expect([R::KIND]),
                );
            }
        }
        self.inst.set_regs(operand, &regs[..count]);
    }
}

fn literal_message(error: LiteralError, negative: bool, text: &str) -> String {
    match error {
        LiteralError::NotANumber(_) if negative && literal::is_hexadecimal(text) => {
            "a hexadecimal literal is a bit pattern and has no sign".to_string()
        }
        e => e.to_string(),
    }
}
