//! Places of the machine, and what they have to hold.

use crate::abi;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use std::fmt;

/// A place that keeps a value: a register, or a word of local memory that the function has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::regalloc) struct StorageLocation(u32);

/// Numbers of a register file begin at multiples of this.
const FILE: u32 = 256;
/// Words of memory follow the three files.
const MEMORY: u32 = 3 * FILE;

impl From<PReg> for StorageLocation {
    fn from(r: PReg) -> StorageLocation {
        StorageLocation(r.class() as u32 * FILE + u32::from(r.number()))
    }
}

impl StorageLocation {
    /// Word `index` of the area that [`Layout`](super::layout::Layout) describes.
    pub fn word(index: u32) -> StorageLocation {
        StorageLocation(MEMORY + index)
    }

    /// The register, if it is one.
    pub fn register(self) -> Option<PReg> {
        let class = RegisterClass::ALL.get((self.0 / FILE) as usize)?;
        Some(PReg::new(*class, (self.0 % FILE) as u8))
    }

    /// Whether it is a register.
    pub fn is_register(self) -> bool {
        self.0 < MEMORY
    }

    /// Places below this number exist in a function with `words` words.
    pub fn count(words: u32) -> usize {
        (MEMORY + words) as usize
    }

    /// The place at a position of a table ([`StorageLocation::index`]).
    pub fn at(index: usize) -> StorageLocation {
        StorageLocation(index as u32)
    }

    /// The word of the area, if it is one.
    pub fn area_word(self) -> Option<u32> {
        self.0.checked_sub(MEMORY)
    }

    /// Position in a table of [`StorageLocation::count`] entries.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether a callee leaves it as it is: registers that it has to keep, and the frame.
    pub fn survives_call(self) -> bool {
        self.register().is_none_or(|r| {
            r.class() == RegisterClass::Gpr
                && (r == abi::STACK_POINTER || abi::CALLEE_SAVED.contains(&r.number()))
        })
    }
}

impl fmt::Display for StorageLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.register() {
            Some(r) => r.fmt(f),
            None => write!(f, "word {} of the spill area", self.0 - MEMORY),
        }
    }
}

/// What a place has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Content {
    /// A word, or a truth: 0 or 1 where the place is no predicate.
    pub what: What,
    /// The bit that holds the truth, where a word holds several.
    pub bit: Option<u8>,
}

/// A word or a truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A value of the code before allocation.
    Value(VReg),
    /// What this register held when the function was entered.
    Entry(PReg),
    /// A word of the sum of the two addresses that an access adds in the code before allocation.
    Sum(AddressWord),
    /// The carry out of that word.
    Carry(AddressWord),
}

/// A word of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AddressWord {
    /// The access, by its index in the code before allocation.
    pub access: u32,
    /// The word, low ones first.
    pub word: u8,
}

impl Content {
    /// A value in its usual shape.
    pub fn value(v: VReg) -> Content {
        What::Value(v).into()
    }

    /// Whether a place of this kind can hold it at all. A lane's word never passes through a uniform register, which
    /// has one for all lanes.
    pub fn fits(self, place: StorageLocation) -> bool {
        let truth = match self.what {
            What::Value(v) => v.class() == RegisterClass::Predicate,
            What::Carry(_) => true,
            What::Entry(_) | What::Sum(_) => false,
        };
        match place.register().map(Register::class) {
            Some(RegisterClass::Predicate) => truth && self.bit.is_none(),
            Some(RegisterClass::Uniform) => {
                matches!(self.what, What::Value(v) if v.class() == RegisterClass::Uniform)
            }
            Some(RegisterClass::Gpr) | None => truth || self.bit.is_none(),
        }
    }
}

impl From<What> for Content {
    fn from(what: What) -> Content {
        Content { what, bit: None }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            What::Value(v) => v.fmt(f)?,
            What::Entry(r) => write!(f, "the {r} of the caller")?,
            What::Sum(part) => write!(f, "word {} of an added address", part.word)?,
            What::Carry(part) => write!(f, "the carry of word {} of an added address", part.word)?,
        }
        match self.bit {
            Some(bit) => write!(f, " as bit {bit}"),
            None => Ok(()),
        }
    }
}
