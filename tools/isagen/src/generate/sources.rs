//! What the sources of a constructor may be, and what it gives: read from the syntax line (`{-}`, `{|}`, `{~}`,
//! `.hsel2`), from the types of fields and from `Bitwidth`.

use super::naming::role_name;
use super::signature::{Kind, kind_of};
use crate::model::{Decorated, FieldType, Form, Mode, Operand, Optype, SyntaxOperandKind};

/// What a source may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SourceType {
    /// Words without modifiers: 1, 2 or 4.
    Plain(u8),
    /// An integer of 1 or 2 words that may be negated.
    Integer(u8),
    /// Words that may be complemented.
    Complement(u8),
    /// An f32 with its signs.
    Single,
    /// An f64 with its signs.
    Double,
    /// Two halves with their signs, in any order.
    Halves,
    /// One half of a register, with its signs.
    Half,
    /// A value of the uniform datapath, 1 or 2 words.
    Uniform(u8),
    /// An integer of the uniform datapath that may be negated, 1 or 2 words.
    UniformInteger(u8),
    /// As many words as the modifiers say: the data of a memory access.
    Data,
    /// A predicate that may be negated.
    Predicate,
    /// A signed number in the word.
    Signed,
    /// An unsigned number in the word.
    Number,
    /// A member of an enumeration in the word.
    Member(usize),
}

/// What a constructor gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ResultType {
    /// The register result.
    pub register: Option<Register>,
    /// How many predicates.
    pub predicates: u8,
    /// The first predicate is a carry.
    pub carry: bool,
}

/// A register result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    /// So many GPRs.
    General(u8),
    /// So many uniform registers.
    Uniform(u8),
    /// As many GPRs as the modifiers say.
    Data,
}

/// Modifiers that an instruction applies to an operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// `-`.
    pub negate: bool,
    /// `|x|`.
    pub absolute: bool,
    /// `~`.
    pub complement: bool,
}

impl Carried {
    /// Those of either.
    pub fn or(self, other: Carried) -> Carried {
        Carried {
            negate: self.negate | other.negate,
            absolute: self.absolute | other.absolute,
            complement: self.complement | other.complement,
        }
    }
}

/// Whether the operation reads or writes memory.
pub(super) fn accesses_memory(optype: &Optype) -> bool {
    optype.effects.iter().any(|e| e == "load" || e == "store")
}

/// What a source may be that one form takes as `a` and another as `b`: an immediate has no modifiers of its own, but
/// they fold into it.
pub(super) fn wider(a: SourceType, b: SourceType) -> SourceType {
    // A register of the uniform datapath in one form is a register of either kind in all.
    match (a, b) {
        (SourceType::Uniform(a), SourceType::Uniform(b)) => SourceType::Uniform(a.max(b)),
        (SourceType::Uniform(words), SourceType::UniformInteger(_))
        | (SourceType::UniformInteger(_), SourceType::Uniform(words)) => {
            SourceType::UniformInteger(words)
        }
        (SourceType::Uniform(_), other) | (other, SourceType::Uniform(_)) => other,
        // A count that one form takes in the word and another in a register.
        (SourceType::Number, other) | (other, SourceType::Number) => other,
        _ => a.max(b),
    }
}

/// A form in a mode, with what the mode and the constructor's name say of its modifiers.
pub(super) struct Typed<'m> {
    /// The form.
    pub form: &'m Form,
    /// The mode.
    pub mode: &'m Mode,
    /// Values of modifiers, by field.
    pub chosen: &'m [(String, u64)],
}

impl Typed<'_> {
    fn value(&self, field: usize) -> u64 {
        let field = &self.form.fields[field];
        let chosen = self.chosen.iter().find(|c| c.0 == field.name);
        chosen.map_or(field.hidden, |c| c.1)
    }

    fn words(&self, operand: &Operand) -> u8 {
        (operand.width.evaluate(&|f| self.value(f)) / 32).max(1) as u8
    }

    /// Adds what the operand gives.
    pub fn add_result(&self, optype: &Optype, operand: &Operand, result: &mut ResultType) {
        let Some(field) = operand.field else { return };
        match self.form.fields[field].ty {
            FieldType::Predicate => {
                let second = u8::from(role_name(&operand.name) == "pv");
                result.predicates = result.predicates.max(1 + second);
                result.carry |= self.form.fields.iter().any(|f| f.name == "ext");
            }
            FieldType::Uniform => {
                result.register = Some(Register::Uniform(self.words(operand)));
            }
            _ if accesses_memory(optype) => result.register = Some(Register::Data),
            _ => result.register = Some(Register::General(self.words(operand))),
        }
    }

    /// What the operand takes.
    pub fn source(&self, optype: &Optype, operand: &Operand) -> SourceType {
        match kind_of(self.form, operand) {
            Kind::Bool => return SourceType::Predicate,
            Kind::Set => unreachable!("sets of predicates are not selected"),
            Kind::Signed => return SourceType::Signed,
            Kind::Number => {
                let field = operand.field.map(|f| self.form.fields[f].ty);
                return match field {
                    Some(FieldType::Enum(ty)) => SourceType::Member(ty),
                    _ => SourceType::Number,
                };
            }
            Kind::Word | Kind::Pair | Kind::Quad => {}
        }
        let role = role_name(&operand.name);
        if accesses_memory(optype) && role != "a" {
            let uniform = operand
                .field
                .is_some_and(|f| self.form.fields[f].ty == FieldType::Uniform);
            return match uniform {
                true => SourceType::Uniform(self.words(operand)),
                false => SourceType::Data,
            };
        }
        let words = self.words(operand);
        let written = self.written(operand);
        let negated = written.is_some_and(|w| w.negate.is_some());
        let uniform_datapath = self.form.operands.iter().all(|o| {
            o.field
                .is_none_or(|f| self.form.fields[f].ty != FieldType::Gpr)
        });
        if uniform_datapath {
            return match negated {
                true => SourceType::UniformInteger(words),
                false => SourceType::Uniform(words),
            };
        }
        let Some(written) = written else {
            return SourceType::Plain(words);
        };
        let shown = |decoration: &usize| self.shows(*decoration);
        if let Some(suffix) = written.suffix.filter(shown) {
            return match self.form.fields[suffix].width {
                1 => SourceType::Half,
                _ => SourceType::Halves,
            };
        }
        match (written.absolute.filter(shown), words) {
            (Some(_), 2) => SourceType::Double,
            (Some(_), _) => SourceType::Single,
            _ if written.bitnot.is_some() => SourceType::Complement(words),
            _ if optype.selection.iter().any(|s| s == "unnegated") => SourceType::Plain(words),
            _ => match (written.negate.filter(shown), written.negate_by) {
                (Some(_), Some(by)) if self.value(by) != 0 => SourceType::Complement(words),
                (Some(_), _) => SourceType::Integer(words),
                (None, _) => SourceType::Plain(words),
            },
        }
    }

    /// Which modifiers an operand of a type applies.
    pub fn carried(&self, operand: &Operand, ty: SourceType) -> Carried {
        let Some(written) = self.written(operand) else {
            return Carried::default();
        };
        let has = |decoration: Option<usize>| decoration.is_some_and(|d| self.shows(d));
        match ty {
            SourceType::Complement(_) => Carried {
                complement: true,
                ..Carried::default()
            },
            SourceType::Integer(_)
            | SourceType::UniformInteger(_)
            | SourceType::Single
            | SourceType::Double
            | SourceType::Halves
            | SourceType::Half => Carried {
                negate: has(written.negate),
                absolute: has(written.absolute),
                complement: false,
            },
            _ => Carried::default(),
        }
    }

    /// How the mode writes an operand.
    fn written(&self, operand: &Operand) -> Option<&Decorated> {
        self.mode.operands.iter().find_map(|o| match &o.kind {
            SyntaxOperandKind::Plain(d) if Some(d.field) == operand.field => Some(d),
            _ => None,
        })
    }

    /// Whether a decoration is there, which may depend on a modifier that the constructor's name decides.
    fn shows(&self, decoration: usize) -> bool {
        match &self.form.fields[decoration].shown {
            Some(shown) => shown.evaluate(&|f| self.value(f)) != 0,
            None => true,
        }
    }
}
