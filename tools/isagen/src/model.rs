//! The resolved instruction set: what every generator and check reads.
//!
//! Built by [`crate::resolve`] from parsed descriptions: inheritance is flattened, enum codes are numbers, and each
//! `__Syntax` line is resolved per form to field indices (a [`Mode`]).

use crate::expr::Expr;
pub use crate::provenance::Provenance;
use crate::source::Span;
use crate::unencoded::InstructionSet;

/// A whole instruction set.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Enumerations, and the hard-wired numbers of register types (`Reg`: `RZ = 255`).
    pub enums: Vec<EnumType>,
    /// In order of definition.
    pub optypes: Vec<Optype>,
    /// In order of definition, those of one optype together.
    pub forms: Vec<Form>,
    /// The fields of group `ALL`: scheduling control.
    pub control: Vec<Field>,
    /// Rows of the latency table.
    pub latencies: Vec<Latency>,
    /// Other sets, known by their syntax only.
    pub unencoded: Vec<InstructionSet>,
}

/// `__DefBitFieldType`.
#[derive(Clone, Debug)]
pub struct EnumType {
    /// As defined.
    pub name: String,
    /// Bits.
    pub width: u8,
    /// In order of definition; two names may share a value, the first is the one printed.
    pub members: Vec<Member>,
    /// Who chose the numbers.
    pub provenance: Provenance,
    /// Its name in the definition.
    pub span: Span,
}

/// One name of an enumeration.
#[derive(Clone, Debug)]
pub struct Member {
    /// As defined; may be a number (`MOVW`: `32`).
    pub name: String,
    /// Its code.
    pub value: u64,
    /// Its name in the definition.
    pub span: Span,
}

/// A row of the latency table (`latency.isa`).
#[derive(Clone, Debug)]
pub struct Latency {
    /// As defined.
    pub class: String,
    /// `(name, cycles)`: result, predicate, wide, sources, variable.
    pub timing: Vec<(String, u64)>,
}

/// `__DefOptype`: what the forms of one operation share.
#[derive(Clone, Debug)]
pub struct Optype {
    /// As defined: `IMAD_WIDE`.
    pub name: String,
    /// Code of the `optype` field.
    pub number: u64,
    /// As written in assembly, without modifiers: `IMAD.WIDE`.
    pub mnemonic: String,
    /// What it inherits from.
    pub group: String,
    /// Lines of the syntax block that define an instruction, as written, without trailing comment.
    pub syntax: Vec<String>,
    /// Whether `$wsb` stands in the syntax.
    pub write_scoreboard: bool,
    /// Index into [`Machine::latencies`].
    pub latency: Option<usize>,
    /// What it does besides writing its results (`Effect`), each once.
    pub effects: Vec<String>,
    /// What is stated with them for selection: how SrcA and SrcB may change places.
    pub selection: Vec<String>,
    /// Whether it computes with floating-point numbers: all other operations are of bit vectors.
    pub floating: bool,
    /// Indices into [`Machine::forms`].
    pub forms: std::ops::Range<usize>,
    /// Examples of the document, one instruction each, comments cut off.
    pub examples: Vec<String>,
    /// Who says that it exists.
    pub provenance: Provenance,
    /// Its name in the definition.
    pub span: Span,
}

/// `__DefOpcode`: one encoding.
#[derive(Clone, Debug)]
pub struct Form {
    /// As defined: `IADD_RR`.
    pub name: String,
    /// Index into [`Machine::optypes`].
    pub optype: usize,
    /// Name and code of the `stype` field.
    pub stype: (String, u64),
    /// Inherited first, control fields of group `ALL` not included.
    pub fields: Vec<Field>,
    /// `Order`, the guard first.
    pub operands: Vec<Operand>,
    /// Ways to write it, in the order of the document.
    pub modes: Vec<Mode>,
    /// Those of the documents first, then those of amendments.
    pub exceptions: Vec<Exception>,
    /// Who says that it exists.
    pub provenance: Provenance,
    /// Its name in the definition.
    pub span: Span,
}

/// `field<bit, width> Type name`.
#[derive(Clone, Debug)]
pub struct Field {
    /// As defined, with dots: `ra.neg`.
    pub name: String,
    /// Its lowest bit in the word.
    pub bit: u8,
    /// Bits.
    pub width: u8,
    /// Name of the type as written.
    pub type_name: String,
    /// What it holds.
    pub ty: FieldType,
    /// What the encoding says of its value.
    pub value: FieldValue,
    /// What it holds when the chosen mode does not show it: its default, else `__Default` of an amendment, else
    /// RZ/URZ/PT for registers and 0.
    pub hidden: u64,
    /// The format an immediate is written in depends on another field: `AsmFormat<vb> = CvtFImm(vb, hfmt_v2)` gives
    /// `hfmt_v2`.
    pub format: Option<Format>,
    /// Condition under which the syntax shows it (`__Shown` of an amendment).
    pub shown: Option<Expr>,
    /// Who says that it exists; the numbers of its type have their own.
    pub provenance: Provenance,
    /// The statement that declares it.
    pub span: Span,
}

impl Field {
    /// Whether it is (part of) the guard, which is written before the mnemonic.
    pub fn is_guard(&self) -> bool {
        self.name == "pg" || self.name == "pg.not"
    }
}

/// `AsmFormat<field> = function(field, by)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// `CvtFImm` or `CvtINegX`.
    pub function: String,
    /// Index of the field that decides.
    pub by: usize,
}

/// What kind of thing a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldType {
    /// `Reg`.
    Gpr,
    /// `UReg`.
    Uniform,
    /// `Pred`.
    Predicate,
    /// `UPred`.
    UniformPredicate,
    /// `BReg`: a convergence barrier.
    Convergence,
    /// `CMem`: bank (5 bits) above a 17-bit byte offset.
    ConstantMemory,
    /// `Addr`: signed byte offset.
    Address,
    /// `Label`: signed byte offset from the next instruction.
    Label,
    /// `SImmN`; 32 bits accept −2^31 … 2^32−1.
    Signed,
    /// `UImmN`.
    Unsigned,
    /// `F32Imm`.
    Float32,
    /// `F16ImmX2`: two halves, lane 0 in the low bits.
    Half2,
    /// An enumeration: index into [`Machine::enums`].
    Enum(usize),
}

/// What the encoding says of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// Must be given.
    Free,
    /// `= value`.
    Default(u64),
    /// `== value`.
    Constant(u64),
}

/// An entry of `Order`.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Index into [`Form::fields`]; none for `PR`, the set of all predicates.
    pub field: Option<usize>,
    /// The second field of an indexed register `R[urb, ridx]`.
    pub index: Option<usize>,
    /// As in `Order`: `ra`, `R[urb, ridx]`, `PR`.
    pub name: String,
    /// In which list it is.
    pub direction: Direction,
    /// Bits as an expression over the form's fields. Without `Bitwidth`: 32 for general and uniform registers, 1 for
    /// predicates, 8 for `PR`, the field's own width for the rest.
    pub width: Expr,
    /// The most that `width` can be.
    pub max_width: u8,
}

/// Whether an operand is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In `InList`.
    In,
    /// In `OutList`.
    Out,
    /// In neither: an immediate such as `lut`.
    Neither,
}

/// One line of `__Syntax`, resolved for one form.
#[derive(Clone, Debug)]
pub struct Mode {
    /// Index into [`Optype::syntax`].
    pub line: usize,
    /// Fields whose value selects this mode: `(field, value)`.
    pub fixed: Vec<(usize, u64)>,
    /// In the order in which they are printed.
    pub modifiers: Vec<Modifier>,
    /// In the order in which they are printed.
    pub operands: Vec<SyntaxOperand>,
    /// Fields that the mode does not show (constants and the guard aside); each must hold [`Field::hidden`].
    pub hidden: Vec<usize>,
}

/// A modifier behind the mnemonic.
#[derive(Clone, Debug)]
pub struct Modifier {
    /// The field; none for a value that has no encoding (`.RN`).
    pub field: Option<usize>,
    /// `(text, value)` in the order of the list, the text without its dot; for a literal its one text. Without field:
    /// the only text that may be written.
    pub values: Vec<(String, u64)>,
    /// May be left out: in braces, or a list with a starred value. It then holds [`Field::hidden`] (without field: it
    /// means nothing). A modifier that is not optional is always printed.
    pub optional: bool,
    /// A literal that selects the mode (`.HI` of `.HI.X`): its field is in [`Mode::fixed`], it is always printed unless
    /// optional (`{.LO}`: never). A literal that is a choice (`{.FTZ}`) is not one of these.
    pub literal: bool,
}

/// An operand in the text.
#[derive(Clone, Debug)]
pub struct SyntaxOperand {
    /// May be left out when it holds its default.
    pub optional: bool,
    /// What it is.
    pub kind: SyntaxOperandKind,
}

/// The shapes of operands in the text.
#[derive(Clone, Debug)]
pub enum SyntaxOperandKind {
    /// A register, immediate, constant memory or enumeration with its decorations.
    Plain(Decorated),
    /// The literal `PR`.
    AllPredicates,
    /// `R[URb{+SImm9}]`: fields of the register and the offset.
    Indexed {
        /// The uniform register.
        base: usize,
        /// The immediate.
        offset: usize,
    },
    /// `[Ra{+URc}{+Addr}]`.
    Memory {
        /// A general register.
        base: Option<usize>,
        /// A uniform register.
        uniform: Option<usize>,
        /// An immediate.
        offset: Option<usize>,
    },
}

/// A field with the fields of its prefixes and suffix. Each is none where the text or the form has none.
#[derive(Clone, Debug)]
pub struct Decorated {
    /// The field itself.
    pub field: usize,
    /// `-`, printed `~` when `negate_is_not` holds (`CvtINegX` under `.X`).
    pub negate: Option<usize>,
    /// The extension field that turns `-` into `~`.
    pub negate_by: Option<usize>,
    /// `|x|`.
    pub absolute: Option<usize>,
    /// `~` of POPC and FLO.
    pub bitnot: Option<usize>,
    /// `!` of predicates.
    pub not: Option<usize>,
    /// `.H0_H0`, `.B1`: printed when it is not the default.
    pub suffix: Option<usize>,
}

/// `EncodingError<kind, "message"> = condition`.
#[derive(Clone, Debug)]
pub struct Exception {
    /// Such as `IllegalBitFieldValue`.
    pub kind: String,
    /// The rule in words.
    pub message: String,
    /// When it is broken.
    pub condition: Expr,
    /// Who says so.
    pub provenance: Provenance,
}
