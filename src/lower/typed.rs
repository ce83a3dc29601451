//! Typed operands and results of the constructors that rules use.
//!
//! A source says what it may be: a plain word cannot carry a sign that its instruction does not apply, and a part can
//! be taken of plain words only. A result says what it is. All are thin wrappers; the choice of operand kinds sees
//! [`Src`] and [`PSrc`].

use super::operation::mode::{Outputs, Source};
use super::source::{InstOutput, Output, PSrc, Regs, Src};
use crate::isa::VReg;
use smallvec::smallvec;

/// A typed source.
pub trait Operand: Copy + Into<Source> {
    /// The operand, whose width and modifiers the caller vouches for.
    fn new(src: Src) -> Self;

    /// The operand as the choice of operand kinds sees it.
    fn src(self) -> Src;
}

macro_rules! sources {
    ($($(#[$doc:meta])* $name:ident, $words:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(Src);

        impl Operand for $name {
            fn new(src: Src) -> $name {
                debug_assert!(src.words == $words, "{src:?} as {}", stringify!($name));
                $name(src)
            }

            fn src(self) -> Src {
                self.0
            }
        }

        impl From<$name> for Source {
            fn from(source: $name) -> Source {
                Source::Value(source.0)
            }
        }
    )*};
}

sources! {
    /// A 32-bit word without modifiers.
    Word, 1;
    /// 64 bits without modifiers.
    Word64, 2;
    /// 128 bits without modifiers.
    Word128, 4;
    /// A 32-bit integer that may be negated.
    ISrc, 1;
    /// A 64-bit integer that may be negated.
    ISrc64, 2;
    /// A 32-bit word that may be complemented.
    NotSrc, 1;
    /// 64 bits that may be complemented.
    NotSrc64, 2;
    /// An f32 with its signs.
    FSrc, 1;
    /// An f64 with its signs.
    DSrc, 2;
    /// Two halves with their signs, in any order; a scalar f16 is read as both.
    HSrc, 1;
    /// One half of a register, with its signs.
    HalfSrc, 1;
    /// A word of the uniform datapath: a uniform register, an immediate or constant memory.
    USrc, 1;
    /// 64 bits of the uniform datapath.
    USrc64, 2;
    /// An integer of the uniform datapath that may be negated.
    UISrc, 1;
    /// A 64-bit integer of the uniform datapath that may be negated.
    UISrc64, 2;
}

impl Word {
    /// A 32-bit immediate.
    pub(super) fn imm(value: u32) -> Word {
        Word(Src::imm(value))
    }
}

/// A plain source is one of any kind that carries no modifiers.
macro_rules! from_plain {
    ($($plain:ident => $($other:ident),*;)*) => {$($(
        impl From<$plain> for $other {
            fn from(plain: $plain) -> $other {
                $other(plain.0)
            }
        }
    )*)*};
}

from_plain! {
    Word => ISrc, NotSrc, FSrc, HSrc, HalfSrc, USrc, UISrc;
    Word64 => ISrc64, NotSrc64, DSrc, USrc64, UISrc64;
    USrc => UISrc;
    USrc64 => UISrc64;
}

macro_rules! results {
    ($($(#[$doc:meta])* $name:ident, $words:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name([VReg; $words]);

        impl $name {
            /// The registers.
            pub(super) fn regs(self) -> Regs {
                Regs::new(&self.0)
            }
        }

        impl From<Regs> for $name {
            fn from(regs: Regs) -> $name {
                let mut list = [regs.word(0); $words];
                list.copy_from_slice(regs.as_slice());
                $name(list)
            }
        }

        impl From<Outputs> for $name {
            fn from(outputs: Outputs) -> $name {
                outputs.registers().into()
            }
        }

        impl From<$name> for InstOutput {
            fn from(result: $name) -> InstOutput {
                smallvec![Output::Regs(result.regs())]
            }
        }
    )*};
}

results! {
    /// One general register.
    Gpr, 1;
    /// Two general registers: 64 bits.
    Gpr2, 2;
    /// Four general registers: 128 bits.
    Gpr4, 4;
    /// One uniform register.
    Ugpr, 1;
    /// Two uniform registers: 64 bits.
    Ugpr2, 2;
}

macro_rules! as_operands {
    ($($result:ident => $source:ident;)*) => {$(
        impl $result {
            /// The result as an operand.
            pub(super) fn source(self) -> $source {
                $source::new(Src::regs(self.regs()))
            }
        }
    )*};
}

as_operands! {
    Gpr => Word;
    Gpr2 => Word64;
    Gpr4 => Word128;
}

impl Gpr {
    /// The register.
    pub(super) fn reg(self) -> VReg {
        self.0[0]
    }
}

impl Gpr2 {
    /// The low register.
    pub(super) fn low(self) -> Gpr {
        Gpr([self.0[0]])
    }

    /// The high register.
    pub(super) fn high(self) -> Gpr {
        Gpr([self.0[1]])
    }
}

/// A predicate register that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pred(VReg);

impl Pred {
    /// The register.
    pub(super) fn reg(self) -> VReg {
        self.0
    }

    /// It as an operand.
    pub(super) fn source(self) -> PSrc {
        PSrc::new(self.0)
    }
}

impl From<Outputs> for Pred {
    fn from(outputs: Outputs) -> Pred {
        Pred(outputs.first_predicate())
    }
}

/// Both predicate results of a comparison: the outcome, and its opposite combined likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredPair {
    /// `pu`.
    pub(super) first: Pred,
    /// `pv`.
    pub(super) second: Pred,
}

impl From<Outputs> for PredPair {
    fn from(outputs: Outputs) -> PredPair {
        PredPair {
            first: Pred(outputs.first_predicate()),
            second: Pred(outputs.second_predicate()),
        }
    }
}

macro_rules! with_predicate {
    ($($(#[$doc:meta])* $name:ident: $regs:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            /// The registers.
            pub(super) regs: $regs,
            /// The predicate.
            pub(super) predicate: Pred,
        }

        impl From<Outputs> for $name {
            fn from(outputs: Outputs) -> $name {
                $name { regs: outputs.into(), predicate: outputs.into() }
            }
        }
    )*};
}

with_predicate! {
    /// A register and the carry out of its sum.
    GprCarry: Gpr;
    /// A register pair and the carry out of its sum.
    Gpr2Carry: Gpr2;
    /// Four registers and the carry out of their sum.
    Gpr4Carry: Gpr4;
    /// A register and a predicate.
    GprPred: Gpr;
}

/// Nothing: what an instruction gives that only has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit;

impl From<Outputs> for Unit {
    fn from(_: Outputs) -> Unit {
        Unit
    }
}

impl From<Outputs> for Regs {
    fn from(outputs: Outputs) -> Regs {
        outputs.registers()
    }
}
