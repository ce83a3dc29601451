//! What the simulator loads: linked code with its constants, independent of the object format.
//!
//! The driver relocates: every word here is final, and data objects are in global memory already.

use crate::abi::Redzone;
use crate::locations::{Location, Spoken, name_of};
use crate::values::ValueLocations;
use crate::variables::{ScopeLocations, Static, VariableType};

/// Places that the source of an address names, the inlined calls among them (*assumed*: of a deeper chain the rest says
/// nothing new).
const SHOWN_CALLS: usize = 16;

/// Linked code.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// Instruction words in the order of their addresses, from code address 0.
    pub words: Vec<u128>,
    /// Constant bank 3.
    pub constants: Vec<u8>,
    /// Functions, sorted by address.
    pub functions: Vec<Function>,
    /// Source lines, sorted by address; empty when unknown.
    pub lines: Vec<Line>,
    /// Files of the source, which the lines count from 1.
    pub files: Vec<String>,
    /// Calls that a front end inlined, which the lines count from 1.
    pub calls: Vec<Location>,
    /// Types of variables, counted from 0.
    pub types: Vec<VariableType>,
    /// Static variables, with the generic addresses at which they are.
    pub statics: Vec<(Static, u64)>,
}

/// A function's place in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, without `%`.
    pub name: String,
    /// Code address of its first word in bytes.
    pub address: u32,
    /// Parts of its frame that nothing may use, by offset.
    pub redzones: Vec<Redzone>,
    /// Where values of the source are, by byte offset in the function, if the compiler was asked for it.
    pub values: Vec<ValueLocations>,
    /// Where variables of the source are, in the same way.
    pub scopes: Vec<ScopeLocations>,
}

/// From `address` on, until the next entry, code comes from this line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Code address in bytes.
    pub address: u32,
    /// Which line; 0 is unknown.
    pub location: Location,
}

impl Image {
    /// The function that contains a code address.
    pub fn function_at(&self, address: u32) -> Option<&Function> {
        let after = self.functions.partition_point(|f| f.address <= address);
        self.functions.get(after.checked_sub(1)?)
    }

    /// The source line of a code address.
    pub fn line_at(&self, address: u32) -> Option<&Line> {
        let after = self.lines.partition_point(|l| l.address <= address);
        let line = self.lines.get(after.checked_sub(1)?)?;
        (line.location.line != 0).then_some(line)
    }

    /// The source of a code address in words, `line 3, column 9 of k.clif`, with the calls that were inlined around it;
    /// none when it is unknown.
    pub fn source_at(&self, address: u32) -> Option<String> {
        let places = self.places_at(address);
        let spoken = places.iter().map(|&location| {
            let file = name_of(&self.files, location.file);
            Spoken { location, file }.to_string()
        });
        let spoken: Vec<String> = spoken.collect();
        (!spoken.is_empty()).then(|| spoken.join(", inlined at "))
    }

    /// The source of a code address, and the calls that were inlined around it, from the inside out; nothing when it is
    /// unknown.
    pub fn places_at(&self, address: u32) -> Vec<Location> {
        let place = self.line_at(address).map(|line| line.location);
        place.map_or(Vec::new(), |place| self.places_of(place))
    }

    /// A place, and the calls that were inlined around it, from the inside out.
    pub fn places_of(&self, place: Location) -> Vec<Location> {
        let call = |place: &Location| {
            let index = place.inlined.checked_sub(1)?;
            self.calls.get(index as usize).copied()
        };
        std::iter::successors(Some(place), call)
            .take(SHOWN_CALLS)
            .collect()
    }
}
