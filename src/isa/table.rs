//! Types of the generated instruction tables.
//!
//! `tools/isagen` turns the description into `static` values of these types; everything that knows about an instruction
//! (encoder, decoder, printer, parser, allocator, simulator) reads them.

use super::generated::{Form, Optype, Role};
use super::register::RegisterClass;

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// Stated in a source document.
    Documented,
    /// Chosen by this project where the documents are silent.
    Assigned,
}

impl Provenance {
    /// The lower-case word of references and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Provenance::Documented => "documented",
            Provenance::Assigned => "assigned",
        }
    }
}

/// An operation: what its forms share.
#[derive(Debug)]
pub struct OptypeInfo {
    /// Name in the documents (`IMAD_WIDE`).
    pub name: &'static str,
    /// Code of the `optype` field.
    pub number: u8,
    /// As written in assembly, without modifiers (`IMAD.WIDE`).
    pub mnemonic: &'static str,
    /// Its forms.
    pub forms: &'static [Form],
    /// Lines of `__Syntax`.
    pub syntax: &'static [&'static str],
    /// Examples of the document, one instruction each, without comments.
    pub examples: &'static [&'static str],
    /// What it does beside its results.
    pub effects: Effects,
    /// Bits of the modifiers behind the mnemonic that belong to no operand.
    pub options_mask: u128,
    /// Whether the syntax has `$wsb`: the result arrives at an unknown time.
    pub write_scoreboard: bool,
    /// Whether SrcA and SrcB may change places.
    pub swap: Swap,
    /// Latencies, *assumed*.
    pub latency: LatencyInfo,
    /// Documented or assigned.
    pub provenance: Provenance,
}

/// How SrcA and SrcB may change places.
#[derive(Clone, Copy, Debug)]
pub enum Swap {
    /// They may not.
    Never,
    /// As they are.
    Free,
    /// With the comparison at `bit` turned around.
    Mirror {
        /// Lowest bit of the comparison.
        bit: u8,
        /// The new code of each code.
        codes: &'static [u64],
    },
    /// With `pp` negated.
    Exchange,
}

impl Swap {
    /// The modifiers in `word` when the two have changed places.
    pub fn turned(self, word: u128) -> u128 {
        match self {
            Swap::Mirror { bit, codes } => {
                let mask = codes.len() as u128 - 1;
                let code = codes[(word >> bit & mask) as usize];
                word & !(mask << bit) | u128::from(code) << bit
            }
            Swap::Never | Swap::Free | Swap::Exchange => word,
        }
    }
}

/// Cycles from issue, all *assumed* (`latency.isa`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyInfo {
    /// Name of the class.
    pub class: &'static str,
    /// To the earliest dependent issue of a 32-bit result.
    pub result: u16,
    /// The same for a predicate result.
    pub predicate: u16,
    /// The same for a result of 64 bits or more.
    pub wide: u16,
    /// Until the sources have been read; 0: at issue.
    pub sources: u16,
    /// The time is not fixed: the result needs a write scoreboard, and the figures are what the timed simulator uses.
    pub variable: bool,
}

/// A set of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Effects(pub u32);

macro_rules! effects {
    ($($(#[$doc:meta])* $name:ident = $bit:expr, $word:literal;)*) => {
        impl Effects {
            $($(#[$doc])* pub const $name: Effects = Effects(1 << $bit);)*
            /// Names as written in `Effect<…>`.
            pub const NAMES: &'static [(&'static str, Effects)] = &[$(($word, Effects::$name)),*];
        }
    };
}

effects! {
    /// Reads memory.
    LOAD = 0, "load";
    /// Writes memory.
    STORE = 1, "store";
    /// Reads and writes memory in one step.
    ATOMIC = 2, "atomic";
    /// Global memory.
    GLOBAL = 3, "global";
    /// The CTA's shared memory.
    SHARED = 4, "shared";
    /// The thread's local memory.
    LOCAL = 5, "local";
    /// Any window.
    GENERIC = 6, "generic";
    /// Constant memory.
    CONSTANT = 7, "constant";
    /// Waits for other warps of the CTA, or orders memory.
    BARRIER = 8, "barrier";
    /// Changes convergence barriers.
    CONVERGENCE = 9, "convergence";
    /// May change the program counter.
    BRANCH = 10, "branch";
    /// Calls: clobbers what the ABI says.
    CALL = 11, "call";
    /// Returns from a call.
    RETURN = 12, "return";
    /// Ends the thread.
    EXIT = 13, "exit";
    /// Raises a fault.
    TRAP = 14, "trap";
    /// Its result depends on which lanes are active together.
    CONVERGENT = 15, "convergent";
    /// Reads or writes a GPR known only at run time.
    ANY_GPR = 16, "anygpr";
    /// Reads or writes the set of all predicates.
    PREDICATES = 17, "predicates";
    /// Reads a register that changes by itself.
    SPECIAL = 18, "special";
}

impl Effects {
    /// Whether all of `other` are in this set.
    pub const fn contains(self, other: Effects) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in this set.
    pub const fn intersects(self, other: Effects) -> bool {
        self.0 & other.0 != 0
    }

    /// Everything by which an instruction does more than read memory and registers and write those of its operands,
    /// stores aside: control, waiting for others, and registers that only the run knows.
    pub const CONTROL: Effects = Effects::BARRIER
        .union(Effects::CONVERGENCE)
        .union(Effects::BRANCH)
        .union(Effects::CALL)
        .union(Effects::RETURN)
        .union(Effects::EXIT)
        .union(Effects::TRAP)
        .union(Effects::ANY_GPR);

    /// Those for which an instruction stays although nobody reads its results.
    pub const KEPT: Effects = Effects::CONTROL
        .union(Effects::STORE)
        .union(Effects::ATOMIC)
        .union(Effects::CONVERGENT);

    /// Both sets.
    pub const fn union(self, other: Effects) -> Effects {
        Effects(self.0 | other.0)
    }
}

/// An encoding of an operation.
#[derive(Debug)]
pub struct FormInfo {
    /// Name in the documents (`HFMA2_RRI`).
    pub name: &'static str,
    /// The operation.
    pub optype: Optype,
    /// Name of the `stype` code.
    pub stype: &'static str,
    /// Documented or assigned.
    pub provenance: Provenance,
    /// Bits of constant fields.
    pub constant_mask: u128,
    /// A word of all constants, defaults and hidden values.
    pub initial: u128,
    /// Every bit of a field of the form, control fields included.
    pub used: u128,
    /// Fields, without control fields.
    pub fields: &'static [FieldInfo],
    /// Operands in the documents' order, the guard first.
    pub operands: &'static [OperandInfo],
    /// Ways to write it.
    pub modes: &'static [ModeInfo],
    /// Forbidden combinations.
    pub exceptions: &'static [ExceptionInfo],
    /// For each entry of [`super::Inst`]'s register array in use the lowest bit of its number in the word; none behind
    /// an operand's first.
    pub register_bits: &'static [Option<u8>],
    /// Entries of the register array that belong to operands that are read, a bit each.
    pub reads: u16,
    /// Entries of the register array that belong to operands that are written, a bit each.
    pub writes: u16,
    /// Whether an operand can take more than one entry.
    pub wide: bool,
    /// Operand index of each [`Role`], or 255.
    pub roles: [u8; Role::COUNT],
    /// Fields that are shown under a condition.
    pub conditional: &'static [u8],
    /// Fields that must hold one of their type's members: the field, and the legal codes as a set of bits, those below
    /// 64 and the others.
    pub legal_codes: &'static [(u8, u64, &'static [u64])],
}

/// `field<bit, width>`.
#[derive(Debug)]
pub struct FieldInfo {
    /// Name in the documents (`rb.hsel2`).
    pub name: &'static str,
    /// Lowest bit.
    pub bit: u8,
    /// Bits.
    pub width: u8,
    /// Name of its type.
    pub type_name: &'static str,
    /// Kind of its type.
    pub ty: FieldType,
    /// Default or constant.
    pub value: FieldValue,
    /// What it holds when the mode does not show it.
    pub hidden: u64,
    /// The field that decides how the immediate is written.
    pub format_by: Option<u8>,
    /// Condition under which the text shows it.
    pub shown: Option<fn(u128) -> bool>,
    /// Documented or assigned.
    pub provenance: Provenance,
}

impl FieldInfo {
    /// All ones in as many bits as the field has: at most 64.
    const fn ones(&self) -> u64 {
        u64::MAX >> (64 - self.width as u32)
    }

    /// All ones at the field's bits.
    pub const fn mask(&self) -> u128 {
        (self.ones() as u128) << self.bit
    }

    /// The field's value in `word`.
    pub const fn get(&self, word: u128) -> u64 {
        (word >> self.bit) as u64 & self.ones()
    }

    /// `word` with the field set to the low bits of `value`.
    pub const fn set(&self, word: u128, value: u64) -> u128 {
        (word & !self.mask()) | ((value & self.ones()) as u128) << self.bit
    }
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    /// A register of this class.
    Register(RegisterClass),
    /// Uniform predicate. No instruction writes UP0 to UP6, which read false; UPT is true.
    UniformPredicate,
    /// Convergence barrier number.
    Convergence,
    /// Bank (5 bits) above a 17-bit byte offset.
    ConstantMemory,
    /// Signed byte offset of an address.
    Address,
    /// Signed byte offset from the next instruction.
    Label,
    /// Signed integer; 32 bits accept −2^31 … 2^32−1.
    Signed,
    /// Unsigned integer.
    Unsigned,
    /// Bits of an f32.
    Float32,
    /// Two halves, lane 0 in the low bits.
    Half2,
    /// An enumeration.
    Enum(&'static EnumInfo),
}

/// An enumeration.
#[derive(Debug)]
pub struct EnumInfo {
    /// Name in the documents.
    pub name: &'static str,
    /// `(name, code)`, the name to print first.
    pub members: &'static [(&'static str, u64)],
    /// Documented or assigned.
    pub provenance: Provenance,
    /// Bits.
    pub width: u8,
}

impl EnumInfo {
    /// The name of a code.
    pub fn name_of(&self, code: u64) -> Option<&'static str> {
        self.members
            .iter()
            .find(|(_, c)| *c == code)
            .map(|(n, _)| *n)
    }
}

/// What the description says of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// Must be given.
    Free,
    /// `= value`.
    Default(u64),
    /// `== value`.
    Constant(u64),
}

/// An operand.
#[derive(Debug)]
pub struct OperandInfo {
    /// Name in the documents.
    pub name: &'static str,
    /// Its part in the operation, the same in all forms.
    pub role: Role,
    /// Index of its field; 255 for `PR`, the set of all predicates.
    pub field: u8,
    /// Register class, if it is a register.
    pub class: Option<RegisterClass>,
    /// Read, written, or an immediate.
    pub direction: Direction,
    /// First entry in the register array (registers only).
    pub first: u8,
    /// Largest width in bits.
    pub max_width: u8,
    /// Width in bits for this word.
    pub width: fn(u128) -> u8,
    /// Field of the offset of an indexed register, `R[urb + ridx]`.
    pub index: Option<u8>,
    /// Field of its negation (`-`, under `.X` `~`).
    pub negate: Option<u8>,
    /// Field of its absolute value.
    pub absolute: Option<u8>,
    /// Field of its `~`.
    pub bitnot: Option<u8>,
    /// Field of its `!`.
    pub not: Option<u8>,
    /// Field of its half or byte selection.
    pub select: Option<u8>,
    /// Which of these modifiers it has fields for.
    pub modifiers: Modifiers,
    /// Bits of its field.
    pub mask: u128,
}

/// Modifiers of a source operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modifiers(u8);

impl Modifiers {
    /// Those that are there.
    pub const fn new(negate: bool, absolute: bool, bitnot: bool, select: bool) -> Self {
        Modifiers(negate as u8 | (absolute as u8) << 1 | (bitnot as u8) << 2 | (select as u8) << 3)
    }

    /// A bit for each of four modifiers.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all of `others` are among these.
    pub const fn contain(self, others: Modifiers) -> bool {
        others.0 & !self.0 == 0
    }
}

/// Whether an operand is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Read.
    In,
    /// Written.
    Out,
    /// An immediate that the documents list in neither.
    Neither,
}

/// One line of `__Syntax` for one form.
#[derive(Debug)]
pub struct ModeInfo {
    /// Bits that select it.
    pub fixed_mask: u128,
    /// Their values.
    pub fixed_bits: u128,
    /// Modifiers in the order they are printed.
    pub modifiers: &'static [ModifierInfo],
    /// Operands in the order they are printed.
    pub operands: &'static [SyntaxOperand],
    /// Fields that the mode does not show.
    pub hidden: &'static [u8],
    /// Their bits.
    pub hidden_mask: u128,
    /// What these bits hold.
    pub hidden_bits: u128,
}

/// A modifier behind the mnemonic.
#[derive(Debug)]
pub struct ModifierInfo {
    /// Its field; none for one that has no encoding (`.RN`).
    pub field: Option<u8>,
    /// `(text, code)`.
    pub values: &'static [(&'static str, u64)],
    /// May be left out.
    pub optional: bool,
    /// A literal of the mode.
    pub literal: bool,
}

/// An operand in the text.
#[derive(Debug)]
pub struct SyntaxOperand {
    /// May be left out when it holds its default.
    pub optional: bool,
    /// Its shape.
    pub kind: SyntaxOperandKind,
}

/// Shapes of operands in the text; numbers are field indices.
#[derive(Debug)]
pub enum SyntaxOperandKind {
    /// A field with its decorations.
    Plain {
        /// The field.
        field: u8,
        /// `-`.
        negate: Option<u8>,
        /// Field that turns `-` into `~`.
        negate_by: Option<u8>,
        /// `|x|`.
        absolute: Option<u8>,
        /// `~`.
        bitnot: Option<u8>,
        /// `!`.
        not: Option<u8>,
        /// `.H0_H0`, `.B1`.
        suffix: Option<u8>,
    },
    /// `PR`.
    AllPredicates,
    /// `R[UR2+0x1]`.
    Indexed {
        /// Field of the uniform register.
        base: u8,
        /// Field of the offset.
        offset: u8,
    },
    /// `[R[2:3]+UR[4:5]+0x10]`.
    Memory {
        /// Field of the address register.
        base: Option<u8>,
        /// Field of the uniform address register.
        uniform: Option<u8>,
        /// Field of the offset.
        offset: Option<u8>,
    },
}

/// `EncodingError`.
#[derive(Debug)]
pub struct ExceptionInfo {
    /// `IllegalBitFieldCombination`, …
    pub kind: &'static str,
    /// The document's sentence.
    pub message: &'static str,
    /// Whether a word breaks the rule.
    pub broken: fn(u128) -> bool,
    /// Documented or assigned.
    pub provenance: Provenance,
}

/// The width of an operand that has the same in every word.
pub(super) fn constant_width<const BITS: u8>(_: u128) -> u8 {
    BITS
}
