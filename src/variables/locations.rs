//! What objects keep of scopes and variables: where their code is, and what they are there.

use crate::locations::Location;
use crate::values::SourceValue;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What a scope is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScopeKind {
    /// A function, by its name in the language.
    Function(String),
    /// A part of a function.
    Block,
    /// A function that was inlined, by its name, at a call.
    Inlined(String, Location),
}

/// A scope, and the code of a function that comes from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeLocations {
    /// The one that it is in, by its place in the list of the function, where it stands before this one.
    pub parent: Option<u32>,
    /// What it is.
    pub kind: ScopeKind,
    /// Byte offsets in the function, in ascending order.
    pub ranges: Vec<Range<u32>>,
    /// The variables that are declared in it.
    pub variables: Vec<VariableLocations>,
}

/// A variable, and what it is where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableLocations {
    /// Its name.
    pub name: String,
    /// Its type, by number in the object's list.
    pub ty: u32,
    /// Whether the function takes it.
    pub is_parameter: bool,
    /// In ascending order; they do not overlap.
    pub ranges: Vec<VariableRange>,
}

/// What a variable is while the next instruction of a thread is one of a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableRange {
    /// The first instruction, as byte offset in the function.
    pub start: u32,
    /// Behind the last one.
    pub end: u32,
    /// Parts that are known, by where they begin.
    pub parts: Vec<Part>,
}

/// Bytes of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// Where they begin in it.
    pub offset: u32,
    /// How many.
    pub bytes: u32,
    /// What they are.
    pub place: PartPlace,
}

/// What bytes of a variable are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PartPlace {
    /// The low bytes of a value of the CLIF, where that is available.
    Value(SourceValue),
    /// Always these, the lowest first; those behind the eighth are 0.
    Constant(u64),
    /// Memory. It begins there; then for each number, so many bytes behind the address that is there.
    Memory(Address, Vec<i64>),
}

/// Where memory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Address {
    /// In local memory of the thread, by the offset from R1 in bytes.
    Frame(u32),
    /// At the generic address that a value of the CLIF is, and bytes behind it.
    Value(SourceValue, i64),
}

impl VariableLocations {
    /// The parts that are known at a byte offset of the function.
    pub fn at(&self, offset: u32) -> &[Part] {
        let behind = self.ranges.partition_point(|range| range.end <= offset);
        let range = self
            .ranges
            .get(behind)
            .filter(|range| range.start <= offset);
        range.map_or(&[], |range| &range.parts)
    }
}

impl ScopeLocations {
    /// Whether an instruction comes from it, by its byte offset in the function.
    pub fn contains(&self, offset: u32) -> bool {
        let behind = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges
            .get(behind)
            .is_some_and(|range| range.start <= offset)
    }

    /// Gives types other numbers, and calls other places.
    pub(crate) fn renumber(&mut self, ty: impl Fn(u32) -> u32, call: impl FnOnce(&mut Location)) {
        if let ScopeKind::Inlined(_, at) = &mut self.kind {
            call(at);
        }
        for variable in &mut self.variables {
            variable.ty = ty(variable.ty);
        }
    }

    /// Moves all ranges: `to` says where an instruction went.
    pub(crate) fn move_ranges(&mut self, to: impl Fn(u32) -> u32) {
        for range in &mut self.ranges {
            *range = to(range.start)..to(range.end);
        }
        for range in self
            .variables
            .iter_mut()
            .flat_map(|variable| &mut variable.ranges)
        {
            (range.start, range.end) = (to(range.start), to(range.end));
        }
    }
}
