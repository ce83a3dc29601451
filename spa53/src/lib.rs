//! SPA 5.3, the predecessor of the instruction set: HSET2, HMUL2 and HMUL2_32I, read from text, executed, and carried
//! over.
//!
//! Users' old assembly is written in it. Its documents (001 and 004) give syntax and meaning but no bit positions, so
//! there are no words and nothing is assigned: an [`Instruction`] is what a line says. The ways to write one are tables
//! generated from `spa53/description`. Three things are done with it:
//!
//! - [`read`] makes instructions of a text, and its `Display` is the way back;
//! - [`execute`] runs them to the letter of their documents;
//! - [`port`] writes instructions of this set that compute the same.
//!
//! What differs from this set's operations of the same name: inputs may be numbers of single precision that are
//! truncated to halves, constants always are; results may be one half merged into the register, or one number of single
//! precision; `.FMZ` makes zero times anything +0; immediates of HSET2 and HMUL2 have ten bits. The reading of the
//! documents where they leave room is in `docs/spa53.md`.

pub mod execute;
pub mod port;
mod print;
#[doc(hidden)]
pub mod random;
pub mod read;
mod suggest;
#[cfg(test)]
mod tests;

/// Generated from `spa53/description` by `tools/isagen`.
mod tables {
    use super::{Line, OperandSyntax, Part, Shape};

    include!(concat!(env!("OUT_DIR"), "/spa53.rs"));
}

use cranelift_thisgpu::unstable::isa::PReg;

pub use tables::{
    Bop, Bval, Choice, Cmp, EXAMPLES, Fmz, Ftz, Iswz, LINES, Modifiers, NAME, Ofmt, Operation, Sat,
};

/// A way to write an instruction: a line of syntax of the documents.
#[derive(Debug)]
pub struct Line {
    /// As the documents have it.
    pub text: &'static str,
    /// What it does.
    pub operation: Operation,
    /// The word before the first dot.
    pub mnemonic: &'static str,
    /// Behind it, in order; whether they may be left out.
    pub modifiers: &'static [(Choice, bool)],
    /// In order.
    pub operands: &'static [OperandSyntax],
}

impl Line {
    /// Whether it combines its comparison with a predicate.
    pub fn combines(&self) -> bool {
        self.operands.iter().any(|o| o.shape == Shape::Predicate)
    }
}

/// How an operand is written.
#[derive(Debug, PartialEq, Eq)]
pub struct OperandSyntax {
    /// As the documents name it: `Ra`, `Immfp10H1`, `c`.
    pub name: &'static str,
    /// What it is for.
    pub part: Part,
    /// What it is.
    pub shape: Shape,
    /// `-` is possible.
    pub negate: bool,
    /// `|…|` is possible.
    pub absolute: bool,
    /// `!` is possible.
    pub not: bool,
    /// The modifier that may stand behind it.
    pub format: Option<Choice>,
}

impl OperandSyntax {
    /// Whether it is a number.
    pub fn is_immediate(&self) -> bool {
        matches!(self.shape, Shape::Immediate { .. })
    }
}

/// What an operand is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The register that is written.
    Destination,
    /// The first source.
    First,
    /// The second source, or a half of it.
    Second,
    /// The predicate that a comparison is combined with.
    Combined,
}

/// The shapes of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A general register.
    Register,
    /// A predicate.
    Predicate,
    /// A number of single precision in constant memory.
    Constant {
        /// Bits of the bank's number.
        bank: u32,
        /// Bits of the byte offset.
        address: u32,
    },
    /// A half, of which so many of the most significant bits can be given.
    Immediate {
        /// How many.
        bits: u32,
    },
}

/// A predicate as it is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicate {
    /// None is PT.
    pub register: Option<PReg>,
    /// `!`.
    pub not: bool,
}

/// `-` and `|…|` of an operand; the absolute value comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sign {
    /// `-`.
    pub negate: bool,
    /// `|…|`.
    pub absolute: bool,
}

/// A register as a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// None is RZ.
    pub register: Option<PReg>,
    /// What is done to the value.
    pub sign: Sign,
    /// What the register holds.
    pub format: Iswz,
}

/// The second source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A register.
    Register(Input),
    /// A number of single precision in constant memory.
    Constant {
        /// Its bank, 0 to 31.
        bank: u8,
        /// Bytes from the start of the bank, divisible by 4.
        offset: u16,
        /// What is done to the value.
        sign: Sign,
    },
    /// Two halves, that of lane 0 first.
    Immediate([u16; 2]),
}

/// An instruction. Only [`read`] makes them, so that each can be written and each has a meaning.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    line: &'static Line,
    guard: Predicate,
    modifiers: Modifiers,
    /// None is RZ.
    rd: Option<PReg>,
    a: Input,
    b: Source,
    /// PT where the line has none: with `.AND`, the default, the comparison alone.
    pp: Predicate,
}

impl PartialEq for Instruction {
    fn eq(&self, other: &Instruction) -> bool {
        let parts = |i: &Instruction| (i.guard, i.modifiers, i.rd, i.a, i.b, i.pp);
        std::ptr::eq(self.line, other.line) && parts(self) == parts(other)
    }
}

impl Instruction {
    /// The way it is written.
    pub fn line(&self) -> &'static Line {
        self.line
    }

    /// The predicate that says in which threads it has an effect.
    pub fn guard(&self) -> Predicate {
        self.guard
    }

    /// Its modifiers.
    pub fn modifiers(&self) -> &Modifiers {
        &self.modifiers
    }

    /// The register it writes; none is RZ.
    pub fn destination(&self) -> Option<PReg> {
        self.rd
    }

    /// The first source.
    pub fn first(&self) -> Input {
        self.a
    }

    /// The second source.
    pub fn second(&self) -> Source {
        self.b
    }

    /// The predicate that the comparison is combined with.
    pub fn combined_with(&self) -> Predicate {
        self.pp
    }

    /// The registers and predicates that it names.
    pub fn registers(&self) -> impl Iterator<Item = PReg> {
        let b = match self.b {
            Source::Register(input) => input.register,
            _ => None,
        };
        let all = [
            self.guard.register,
            self.rd,
            self.a.register,
            b,
            self.pp.register,
        ];
        all.into_iter().flatten()
    }
}
