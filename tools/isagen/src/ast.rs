//! Definitions as they are written, one type per construct of the notation (`docs/description.md`).
//!
//! Nothing is looked up here: names are texts with places. [`crate::resolve`] gives them their meaning, [`crate::diff`]
//! compares them.

use crate::expr::Op;
use crate::provenance::Provenance;
use crate::source::Span;

/// A name, member, number or word as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text, without quotes.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A number literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Its value.
    pub value: u64,
    /// Where it stands.
    pub span: Span,
}

/// What one file defines.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// `__InstructionSet`: the set that everything here belongs to, where that is not the described machine's.
    pub instruction_set: Option<Name>,
    /// `__DefBitFieldType`.
    pub types: Vec<TypeDefinition>,
    /// `__DefGroup`, `__DefOptype`, `__DefOpcode`, `__Amend`.
    pub constructs: Vec<Construct>,
    /// `__DefLatency`.
    pub latencies: Vec<LatencyDefinition>,
}

/// `__DefBitFieldType NAME<WIDTH>`.
#[derive(Clone, Debug)]
pub struct TypeDefinition {
    /// Its name.
    pub name: Name,
    /// Bits.
    pub width: Number,
    /// In order.
    pub members: Vec<MemberDefinition>,
    /// Of the file.
    pub provenance: Provenance,
}

/// `NAME;` or `NAME = NUMBER;`.
#[derive(Clone, Debug)]
pub struct MemberDefinition {
    /// Its name; may be a number (`MOVW`: `32`).
    pub name: Name,
    /// The number; else one more than the member before.
    pub value: Option<Number>,
}

/// Which construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstructKind {
    /// `__DefGroup`.
    Group,
    /// `__DefOptype`.
    Optype,
    /// `__DefOpcode`.
    Opcode,
    /// `__Amend`.
    Amend,
}

impl ConstructKind {
    /// As written.
    pub fn keyword(self) -> &'static str {
        match self {
            ConstructKind::Group => "__DefGroup",
            ConstructKind::Optype => "__DefOptype",
            ConstructKind::Opcode => "__DefOpcode",
            ConstructKind::Amend => "__Amend",
        }
    }

    /// In a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            ConstructKind::Group => "group",
            ConstructKind::Optype => "optype",
            ConstructKind::Opcode => "form",
            ConstructKind::Amend => "amendment",
        }
    }
}

/// A group, optype, form or amendment with all its sections.
#[derive(Clone, Debug)]
pub struct Construct {
    /// Which construct.
    pub kind: ConstructKind,
    /// Its name; for an amendment that of what it amends.
    pub name: Name,
    /// What it inherits from.
    pub parent: Option<Name>,
    /// `__Encoding`.
    pub fields: Vec<FieldDeclaration>,
    /// Lines within the fence of `__Syntax`, comments cut off, none empty.
    pub syntax: Vec<TextLine>,
    /// Statements of `__OperandInfo`.
    pub operands: OperandInfo,
    /// `__Exception`.
    pub exceptions: Vec<ExceptionDeclaration>,
    /// `__Shown`.
    pub shown: Vec<(Name, Expression)>,
    /// `__Default`.
    pub defaults: Vec<(Name, Name)>,
    /// Lines of `__Examples`, comments cut off, none empty.
    pub examples: Vec<TextLine>,
    /// Of the file.
    pub provenance: Provenance,
}

/// A line of a code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLine {
    /// Without comment and outer blanks.
    pub text: String,
    /// Where `text` stands.
    pub span: Span,
}

/// `field<BIT, WIDTH> TYPE NAME …;`.
#[derive(Clone, Debug)]
pub struct FieldDeclaration {
    /// Lowest bit.
    pub bit: Number,
    /// Bits.
    pub width: Number,
    /// As written.
    pub type_name: Name,
    /// As written, with dots (`ra.neg`).
    pub name: Name,
    /// Free, `= v` or `== v`.
    pub value: ValueDeclaration,
    /// The whole statement.
    pub span: Span,
}

/// What follows a field's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueDeclaration {
    /// Nothing.
    Free,
    /// `= member`.
    Default(Name),
    /// `== member`.
    Constant(Name),
}

/// An entry of `InList`, `OutList` or `Order`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperandEntry {
    /// A field, or `PR`.
    Named(Name),
    /// `R[base, index]`.
    Indexed {
        /// The uniform register.
        base: Name,
        /// The offset.
        index: Name,
        /// The whole entry.
        span: Span,
    },
}

impl OperandEntry {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            OperandEntry::Named(name) => name.span,
            OperandEntry::Indexed { span, .. } => *span,
        }
    }

    /// As written, blanks normalized.
    pub fn text(&self) -> String {
        match self {
            OperandEntry::Named(name) => name.text.clone(),
            OperandEntry::Indexed { base, index, .. } => {
                format!("R[{}, {}]", base.text, index.text)
            }
        }
    }
}

/// A list of operands and the place of its keyword.
#[derive(Clone, Debug)]
pub struct OperandList {
    /// The keyword.
    pub keyword: Name,
    /// In order.
    pub entries: Vec<OperandEntry>,
}

/// The statements among the prose of `__OperandInfo`.
#[derive(Clone, Debug, Default)]
pub struct OperandInfo {
    /// `InList<…>`.
    pub inputs: Option<OperandList>,
    /// `OutList<…>`.
    pub outputs: Option<OperandList>,
    /// `Order<…>`.
    pub order: Option<OperandList>,
    /// `Bitwidth<operand> = expression`.
    pub widths: Vec<(Name, Expression)>,
    /// `AsmFormat<field> = function(field, by)`.
    pub formats: Vec<FormatDeclaration>,
    /// `ModiOrder<a, b>`.
    pub modifier_order: Option<OperandList>,
    /// `Effect<word, …>`.
    pub effects: Vec<Name>,
}

/// `AsmFormat<field> = function(field, by)`.
#[derive(Clone, Debug)]
pub struct FormatDeclaration {
    /// The field it is about.
    pub field: Name,
    /// `CvtFImm` or `CvtINegX`.
    pub function: Name,
    /// The first argument, the field again.
    pub subject: Name,
    /// The field that decides.
    pub by: Name,
}

/// `EncodingError<KIND, "MESSAGE"> = CONDITION`.
#[derive(Clone, Debug)]
pub struct ExceptionDeclaration {
    /// Such as `IllegalBitFieldValue`.
    pub kind: Name,
    /// The text.
    pub message: Name,
    /// When it is an error.
    pub condition: Expression,
}

/// An expression of names.
#[derive(Clone, Debug)]
pub enum Expression {
    /// A number.
    Number(Number),
    /// A field, or a member without quotes.
    Name(Name),
    /// A member in quotes.
    Quoted(Name),
    /// Binary operation.
    Binary(Op, Box<Expression>, Box<Expression>),
    /// `not`.
    Not(Box<Expression>, Span),
}

impl Expression {
    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Expression::Number(n) => n.span,
            Expression::Name(name) | Expression::Quoted(name) => name.span,
            Expression::Binary(_, a, b) => a.span().to(b.span()),
            Expression::Not(a, span) => span.to(a.span()),
        }
    }

    /// One fixed way of writing it, fully parenthesized, for comparison.
    pub fn canonical(&self) -> String {
        match self {
            Expression::Number(n) => n.value.to_string(),
            Expression::Name(name) => name.text.clone(),
            Expression::Quoted(name) => format!("\"{}\"", name.text),
            Expression::Binary(op, a, b) => {
                format!("({} {} {})", a.canonical(), op.symbol(), b.canonical())
            }
            Expression::Not(a, _) => format!("(not {})", a.canonical()),
        }
    }
}

/// `__DefLatency CLASS`.
#[derive(Clone, Debug)]
pub struct LatencyDefinition {
    /// Its name.
    pub class: Name,
    /// `__Timing`.
    pub timing: Vec<(Name, Number)>,
    /// `__Optypes`.
    pub optypes: Vec<Name>,
}
