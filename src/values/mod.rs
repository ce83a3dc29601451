//! Where the values of the source are, by code address.
//!
//! A debugger asks for `v12`, or for a variable of a front end, while a thread stands at an instruction. The answer is
//! a [`Location`], or none: a value may have been folded away, not be computed yet, or its register may hold something
//! else by now. None is always allowed, a wrong one never.
//!
//! Made only with the setting `value_locations`; code is the same with it and without. In this order:
//!
//! 1. [`tracking`] names the values of the function as it was given, and follows the names through the passes on CLIF:
//!    which value is now what another was, and to which turn of a copied loop a copy belongs.
//! 2. Lowering turns named values into [`Holder`]s: virtual registers, or constants.
//! 3. Register allocation finds where virtual registers are, by a forward data flow over the code that it has made
//!    (`regalloc::locations`).
//! 4. [`ranges`] puts both together for the code in its final order. A value is shown where its definition dominates
//!    the instruction's block in the source, and in the turn that it was computed for.
//!
//! Objects keep the result beside the lines, and as location lists of DWARF.

pub(crate) mod preorder;
pub(crate) mod ranges;
mod recover;
pub(crate) mod tracking;

use crate::isa::{PReg, VReg};
use cranelift_codegen::ir::Type;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;

/// What a person can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SourceValue {
    /// A value of the CLIF by its number: `v12`.
    Value(u32),
    /// A variable of a front end, by the label that it has given (`set_val_label`).
    Label(u32),
}

impl fmt::Display for SourceValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(number) => write!(f, "v{number}"),
            Self::Label(number) => write!(f, "label{number}"),
        }
    }
}

/// A place that holds 32 bits of a value, or a truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Place {
    /// A general register of the lane.
    Register(u8),
    /// A uniform register of the warp.
    Uniform(u8),
    /// A predicate of the lane; whether it holds the opposite.
    Predicate(u8, bool),
    /// Local memory of the thread, by the offset from R1 in bytes.
    Frame(u32),
    /// The launch's constant bank, by the offset in bytes.
    Launch(u32),
    /// None: it is always this.
    Constant(u32),
}

/// Where a value is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Location {
    /// Its words of 32 bits, the low one first. Bits above those of its type mean nothing.
    pub places: SmallVec<[Place; 2]>,
    /// What is to be added to them together to get the value.
    pub addend: i64,
}

/// Where a value is while the next instruction of a thread is one of a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueRange {
    /// The first instruction, as byte offset in the function.
    pub start: u32,
    /// Behind the last one.
    pub end: u32,
    /// Where it is.
    pub location: Location,
}

/// A value of the source and all that is known of where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueLocations {
    /// The value.
    pub source: SourceValue,
    /// Its CLIF type; files hold its name.
    #[serde(with = "crate::type_name")]
    pub ty: Type,
    /// In ascending order; they do not overlap.
    pub ranges: Vec<ValueRange>,
}

impl ValueLocations {
    /// Where the value is at a byte offset of its function.
    pub fn at(&self, offset: u32) -> Option<&Location> {
        let behind = self.ranges.partition_point(|range| range.end <= offset);
        let range = self.ranges.get(behind).filter(|r| r.start <= offset)?;
        Some(&range.location)
    }
}

/// What a named value is in code that has no registers yet.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The name.
    pub name: tracking::Name,
    /// What holds it.
    pub held: Held,
}

/// What holds a value.
#[derive(Clone, Debug)]
pub enum Held {
    /// Words, and what is to be added to them together.
    Words(SmallVec<[Word; 2]>, i64),
    /// A predicate; whether that is the opposite.
    Predicate(VReg, bool),
}

/// What holds a word of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A virtual register.
    Register(VReg),
    /// Always the same: a constant, or a place that nobody writes.
    Always(Place),
}

impl Word {
    fn register(&self) -> Option<VReg> {
        match self {
            Word::Register(register) => Some(*register),
            Word::Always(_) => None,
        }
    }
}

impl Held {
    /// The virtual registers, word by word.
    pub fn registers(&self) -> impl Iterator<Item = VReg> + '_ {
        let (words, predicate) = match self {
            Held::Words(words, _) => (words.as_slice(), None),
            Held::Predicate(register, _) => (&[][..], Some(*register)),
        };
        words.iter().filter_map(Word::register).chain(predicate)
    }

    /// Gives each virtual register another name.
    pub fn rename(&mut self, name: impl Fn(VReg) -> VReg) {
        match self {
            Held::Words(words, _) => {
                for word in words {
                    if let Word::Register(register) = word {
                        *register = name(*register);
                    }
                }
            }
            Held::Predicate(register, _) => *register = name(*register),
        }
    }

    /// What is to be added to its words.
    pub fn addend(&self) -> i64 {
        match self {
            Held::Words(_, addend) => *addend,
            Held::Predicate(..) => 0,
        }
    }

    /// Where the value always is, if no register holds any of it.
    pub fn always(&self) -> Option<Location> {
        let Held::Words(words, addend) = self else {
            return None;
        };
        let places = words.iter().map(|word| match word {
            Word::Always(place) => Some(*place),
            Word::Register(_) => None,
        });
        Some(Location {
            places: places.collect::<Option<_>>()?,
            addend: *addend,
        })
    }
}

impl Place {
    /// A register of the machine, which holds a value or its opposite.
    pub(crate) fn of_register(register: PReg, negated: bool) -> Place {
        use crate::isa::{Register, RegisterClass};
        match register.class() {
            RegisterClass::Gpr => Place::Register(register.number()),
            RegisterClass::Uniform => Place::Uniform(register.number()),
            RegisterClass::Predicate => Place::Predicate(register.number(), negated),
        }
    }
}
