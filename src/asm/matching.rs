//! Written operands against those of a mode, by their kinds.

use super::diagnostic::Span;
use super::name::File;
use super::operand::{Operand, Value};
use crate::isa::literal::ImmediateFormat;
use crate::isa::table::{FieldInfo, FieldType, FormInfo, ModeInfo, SyntaxOperandKind};
use crate::isa::{Form, RegisterClass};
use std::ops::Range;

/// A form and mode that takes the modifiers, with the word that they make.
pub(super) struct Candidate {
    pub form: Form,
    pub mode: &'static ModeInfo,
    /// Defaults, the mode's own fields and the modifiers; no operands yet.
    pub word: u128,
    /// Fields that modifiers set, and where these are written.
    pub places: Vec<(u8, Span)>,
}

/// The attempts to match operands that came furthest.
#[derive(Default)]
pub(super) struct Failure {
    /// Operands that were right.
    pub at: usize,
    /// What would have been right next, with what the end of the operands counts as `None`.
    pub expected: Vec<Option<String>>,
}

impl Failure {
    /// An attempt failed at operand `at`, where `expected` would have been right; `None` is the end.
    pub fn record(&mut self, at: usize, expected: Option<String>) {
        if at > self.at {
            *self = Failure {
                at,
                expected: Vec::new(),
            };
        }
        if at == self.at && !self.expected.contains(&expected) {
            self.expected.push(expected);
        }
    }
}

/// Which written operands are an operand of the mode: two for a pair of halves, none for one left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Match {
    /// Index in the mode.
    pub operand: usize,
    /// Indices of the written ones.
    pub written: Range<usize>,
}

/// Gives each written operand to an operand of the mode, in order; optional ones may be left out. Failures are
/// recorded.
pub(super) fn match_operands(
    candidate: &Candidate,
    written: &[Operand],
    failure: &mut Failure,
) -> Option<Vec<Match>> {
    let mut matches = Vec::new();
    rest(candidate, written, 0, 0, &mut matches, failure).then_some(matches)
}

fn rest(
    candidate: &Candidate,
    written: &[Operand],
    operand: usize,
    at: usize,
    matches: &mut Vec<Match>,
    failure: &mut Failure,
) -> bool {
    let Some(syntax) = candidate.mode.operands.get(operand) else {
        if at < written.len() {
            failure.record(at, None);
        }
        return at == written.len();
    };
    let shape = Shape::of(candidate, &syntax.kind);
    match shape.takes(&written[at..]) {
        Ok(count) => {
            matches.push(Match {
                operand,
                written: at..at + count,
            });
            if rest(
                candidate,
                written,
                operand + 1,
                at + count,
                matches,
                failure,
            ) {
                return true;
            }
            matches.pop();
        }
        Err(right) => failure.record(at + right, Some(shape.description())),
    }
    syntax.optional && rest(candidate, written, operand + 1, at, matches, failure)
}

/// What an operand of a mode looks like, decorations aside.
enum Shape {
    Register(File),
    ConstantMemory,
    Integer {
        /// Half of an address may stand for it.
        part: bool,
        /// The highest number of a short unsigned field.
        highest: Option<u32>,
    },
    Number(ImmediateFormat),
    Label,
    Member(&'static [(&'static str, u64)]),
    AllPredicates,
    Indexed,
    Memory {
        base: bool,
        uniform: bool,
        offset: bool,
    },
}

impl Shape {
    fn of(candidate: &Candidate, kind: &SyntaxOperandKind) -> Shape {
        match *kind {
            SyntaxOperandKind::Plain { field, .. } => {
                let info = candidate.form.info();
                Shape::of_field(info, &info.fields[field as usize], candidate.word)
            }
            SyntaxOperandKind::AllPredicates => Shape::AllPredicates,
            SyntaxOperandKind::Indexed { .. } => Shape::Indexed,
            SyntaxOperandKind::Memory {
                base,
                uniform,
                offset,
            } => Shape::Memory {
                base: base.is_some(),
                uniform: uniform.is_some(),
                offset: offset.is_some(),
            },
        }
    }

    fn of_field(info: &FormInfo, field: &FieldInfo, word: u128) -> Shape {
        if let Some(format) = ImmediateFormat::of(info, field, word) {
            return Shape::Number(format);
        }
        match field.ty {
            FieldType::Register(class) => Shape::Register(File::Class(class)),
            FieldType::UniformPredicate => Shape::Register(File::UniformPredicate),
            FieldType::Convergence => Shape::Register(File::Convergence),
            FieldType::ConstantMemory => Shape::ConstantMemory,
            FieldType::Label => Shape::Label,
            FieldType::Enum(members) => Shape::Member(members.members),
            // Linking fills in 32 bits.
            ty => {
                let short = matches!(ty, FieldType::Unsigned) && field.width < 32;
                Shape::Integer {
                    part: field.width == 32,
                    highest: short.then(|| (1 << field.width) - 1),
                }
            }
        }
    }

    /// How many of the operands this takes; else how many of them were right.
    fn takes(&self, written: &[Operand]) -> Result<usize, usize> {
        let fits = |o: &&Operand| match (self, &o.value) {
            (Shape::Register(file), Value::Register(r)) => r.file == *file,
            (Shape::ConstantMemory, Value::Constant { .. })
            | (Shape::Integer { .. } | Shape::Number(_), Value::Literal(_))
            | (Shape::Integer { part: true, .. }, Value::Part { .. })
            | (Shape::Label, Value::Name { .. } | Value::Relative(_))
            | (Shape::Member(_), Value::Name { quoted: false, .. })
            | (Shape::AllPredicates, Value::AllPredicates)
            | (Shape::Indexed, Value::Indexed { .. }) => true,
            (
                Shape::Memory {
                    base,
                    uniform,
                    offset,
                },
                Value::Memory {
                    base: b,
                    uniform: u,
                    offset: o,
                },
            ) => (*base || b.is_none()) && *uniform == u.is_some() && (*offset || o.is_none()),
            _ => false,
        };
        let count = if let Shape::Number(format) = self {
            format.literals()
        } else {
            1
        };
        let right = written.iter().take(count).take_while(fits).count();
        if right == count {
            Ok(count)
        } else {
            Err(right)
        }
    }

    fn description(&self) -> String {
        match self {
            Shape::Register(file) => file.description(),
            Shape::ConstantMemory => "constant memory c[bank][offset]".to_string(),
            Shape::Integer {
                highest: Some(high),
                ..
            } => format!("an integer, 0 to {high}"),
            Shape::Integer { .. } => "an integer".to_string(),
            Shape::Number(ImmediateFormat::Scalar(_)) => "a number".to_string(),
            Shape::Number(ImmediateFormat::Pair(_)) => {
                "two numbers, the high half first".to_string()
            }
            Shape::Label => "a label".to_string(),
            Shape::Member(members) => members
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", "),
            Shape::AllPredicates => "PR".to_string(),
            Shape::Indexed => "R[UR+offset]".to_string(),
            Shape::Memory { uniform: true, .. } => "an address [R+UR+offset]".to_string(),
            Shape::Memory { .. } => "an address [R+offset]".to_string(),
        }
    }
}

/// The file that the register of a field is from; none when it is no register.
pub(super) fn register_class(field: &FieldInfo) -> Option<RegisterClass> {
    match field.ty {
        FieldType::Register(class) => Some(class),
        _ => None,
    }
}
