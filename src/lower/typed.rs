//! Typed operands and results of the constructors that rules use.
//!
//! A source says what it may be: a plain word cannot carry a sign that its instruction does not apply, and a part can
//! be taken of plain words only. A result says what it is. All are thin wrappers; the choice of operand kinds sees
//! [`Src`] and [`PSrc`]. Which there are is generated from the machine description (`isagen::generate::typed`), and so
//! are the terms that make one of another; the macros here say what they are in Rust.

use super::operation::mode::{Outputs, Source};
use super::source::{PSrc, Regs, Src};
use crate::isa::VReg;

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

macro_rules! results {
    ($($(#[$doc:meta])* $name:ident, $words:literal, $source:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name([VReg; $words]);

        impl $name {
            /// The registers.
            pub(super) fn regs(self) -> Regs {
                Regs::new(&self.0)
            }

            /// The result as an operand.
            pub(super) fn source(self) -> $source {
                $source::new(Src::regs(self.regs()))
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
    )*};
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

include!(concat!(env!("OUT_DIR"), "/typed.rs"));

impl Word {
    /// A 32-bit immediate.
    pub(super) fn imm(value: u32) -> Word {
        Word(Src::imm(value))
    }
}

impl Gpr {
    /// The register.
    pub(super) fn reg(self) -> VReg {
        self.0[0]
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
