//! Scopes and variables in DWARF: lexical blocks, inlined calls, and for each variable a location list.
//!
//! A variable is values of the CLIF, constants and memory, in parts; where the values are is known by address. Both
//! together are the list: it has a new entry wherever a part becomes another, or a value of one is elsewhere.

use super::ObjectFunction;
use super::dwarf::{Files, clean};
use super::types::TypeEntries;
use super::values::{WORD, address, piece, push_sum, stack_pointer};
use crate::values::{SourceValue, ValueLocations};
use crate::variables::{Address, Part, PartPlace, ScopeKind, ScopeLocations, VariableLocations};
use gimli::constants::{
    DW_AT_abstract_origin, DW_AT_call_column, DW_AT_call_file, DW_AT_call_line, DW_AT_inline,
    DW_AT_location, DW_AT_name, DW_AT_ranges, DW_AT_type, DW_INL_inlined, DW_OP_stack_value,
    DW_TAG_formal_parameter, DW_TAG_inlined_subroutine, DW_TAG_lexical_block, DW_TAG_subprogram,
    DW_TAG_variable,
};
use gimli::write::{
    Address as CodeAddress, AttributeValue, DwarfUnit, Expression, Location, LocationList, Range,
    RangeList, UnitEntryId,
};
use hashbrown::HashMap;

/// What scopes of all functions have in common.
pub(super) struct Scopes<'a> {
    types: &'a TypeEntries,
    /// By name the entries of functions that were inlined.
    inlined: HashMap<String, UnitEntryId>,
}

impl<'a> Scopes<'a> {
    pub fn new(types: &'a TypeEntries) -> Self {
        let inlined = HashMap::new();
        Self { types, inlined }
    }

    /// Adds the scopes of a function that begins at `start`, below its entry `parent`.
    pub fn add(
        &mut self,
        function: &ObjectFunction,
        start: CodeAddress,
        parent: UnitEntryId,
        files: &Files,
        unit: &mut DwarfUnit,
    ) {
        // By scope its entry; parents come first.
        let mut entries: Vec<UnitEntryId> = Vec::new();
        for scope in &function.scopes {
            let around = scope.parent.and_then(|around| entries.get(around as usize));
            let around = around.copied().unwrap_or(parent);
            let entry = match &scope.kind {
                ScopeKind::Function(_) => around,
                ScopeKind::Block => unit.unit.add(around, DW_TAG_lexical_block),
                ScopeKind::Inlined(name, call) => {
                    let origin = self.origin(name, unit);
                    let id = unit.unit.add(around, DW_TAG_inlined_subroutine);
                    let entry = unit.unit.get_mut(id);
                    entry.set(DW_AT_abstract_origin, AttributeValue::UnitRef(origin));
                    let file = Some(files.id(call.file));
                    entry.set(DW_AT_call_file, AttributeValue::FileIndex(file));
                    entry.set(DW_AT_call_line, AttributeValue::Udata(call.line.into()));
                    entry.set(DW_AT_call_column, AttributeValue::Udata(call.column.into()));
                    id
                }
            };
            if entry != around {
                let ranges = unit
                    .unit
                    .ranges
                    .add(RangeList(ranges(scope, start, function.len())));
                let entry = unit.unit.get_mut(entry);
                entry.set(DW_AT_ranges, AttributeValue::RangeListRef(ranges));
            }
            entries.push(entry);
            for variable in &scope.variables {
                self.variable(variable, function, start, entry, unit);
            }
        }
    }

    /// The entry of a function that was inlined.
    fn origin(&mut self, name: &str, unit: &mut DwarfUnit) -> UnitEntryId {
        let add = || {
            let root = unit.unit.root();
            let id = unit.unit.add(root, DW_TAG_subprogram);
            let entry = unit.unit.get_mut(id);
            entry.set(DW_AT_name, AttributeValue::String(clean(name)));
            entry.set(DW_AT_inline, AttributeValue::Inline(DW_INL_inlined));
            id
        };
        *self.inlined.entry(name.to_owned()).or_insert_with(add)
    }

    fn variable(
        &self,
        variable: &VariableLocations,
        function: &ObjectFunction,
        start: CodeAddress,
        parent: UnitEntryId,
        unit: &mut DwarfUnit,
    ) {
        let list = list(variable, function, start);
        let list = unit.unit.locations.add(LocationList(list));
        let tag = match variable.is_parameter {
            true => DW_TAG_formal_parameter,
            false => DW_TAG_variable,
        };
        let entry = unit.unit.add(parent, tag);
        let entry = unit.unit.get_mut(entry);
        entry.set(DW_AT_name, AttributeValue::String(clean(&variable.name)));
        if let Some(ty) = self.types.get(variable.ty) {
            entry.set(DW_AT_type, AttributeValue::UnitRef(ty));
        }
        entry.set(DW_AT_location, AttributeValue::LocationListRef(list));
    }
}

fn ranges(scope: &ScopeLocations, start: CodeAddress, len: u64) -> Vec<Range> {
    let inside = scope
        .ranges
        .iter()
        .filter(|range| range.start < range.end && u64::from(range.end) <= len);
    let ranges = inside.map(|range| Range::StartLength {
        begin: address(start, range.start),
        length: (range.end - range.start).into(),
    });
    ranges.collect()
}

/// Where a variable is by address.
fn list(
    variable: &VariableLocations,
    function: &ObjectFunction,
    start: CodeAddress,
) -> Vec<Location> {
    let len = function.len();
    let mut list = Vec::new();
    for range in variable
        .ranges
        .iter()
        .filter(|range| u64::from(range.end) <= len)
    {
        let parts: Vec<(&Part, Option<&ValueLocations>)> = range
            .parts
            .iter()
            .map(|part| (part, value_of(part, function)))
            .collect();
        let mut cuts: Vec<u32> = vec![range.start, range.end];
        for of_value in parts
            .iter()
            .filter_map(|(_, value)| *value)
            .flat_map(|value| &value.ranges)
        {
            cuts.extend([of_value.start, of_value.end]);
        }
        cuts.retain(|cut| (range.start..=range.end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        for cut in cuts.windows(2) {
            if let Some(data) = expression(&parts, cut[0]) {
                list.push(Location::StartLength {
                    begin: address(start, cut[0]),
                    length: (cut[1] - cut[0]).into(),
                    data,
                });
            }
        }
    }
    list
}

/// The value of the CLIF that a part needs.
fn value_of<'a>(part: &Part, function: &'a ObjectFunction) -> Option<&'a ValueLocations> {
    let (PartPlace::Value(source) | PartPlace::Memory(Address::Value(source, _), _)) = &part.place
    else {
        return None;
    };
    let source: &SourceValue = source;
    let index = function
        .values
        .binary_search_by_key(source, |value| value.source)
        .ok()?;
    function.values.get(index)
}

/// Where a variable is while the next instruction is the one at an offset; none if no part is known.
fn expression(parts: &[(&Part, Option<&ValueLocations>)], offset: u32) -> Option<Expression> {
    let mut expression = Expression::new();
    let (mut end, mut is_known) = (0, false);
    for (part, value) in parts {
        // Parts are in order; between them there are bytes that nobody knows.
        let Some(gap) = part.offset.checked_sub(end) else {
            continue;
        };
        if gap > 0 {
            expression.op_piece(gap.into());
        }
        is_known |= add_part(part, *value, offset, &mut expression);
        end = part.offset + part.bytes;
    }
    is_known.then_some(expression)
}

/// Adds the pieces of a part; whether it is known.
fn add_part(
    part: &Part,
    value: Option<&ValueLocations>,
    offset: u32,
    expression: &mut Expression,
) -> bool {
    let whole = u64::from(part.bytes);
    let at = value.and_then(|value| value.at(offset));
    match (&part.place, at) {
        (PartPlace::Constant(bits), _) => {
            expression.op_constu(*bits);
            expression.op(DW_OP_stack_value);
        }
        (PartPlace::Value(_), Some(at)) if at.addend != 0 => {
            if push_sum(at, expression).is_none() {
                expression.op_piece(whole);
                return false;
            }
            expression.op(DW_OP_stack_value);
        }
        (PartPlace::Value(_), Some(at)) => {
            let mut left = whole;
            for place in &at.places {
                let bytes = left.min(WORD);
                if bytes > 0 {
                    piece(*place, expression);
                    expression.op_piece(bytes);
                }
                left -= bytes;
            }
            if left > 0 {
                expression.op_piece(left);
            }
            return true;
        }
        (PartPlace::Memory(from, path), at) => {
            let is_there = match (from, at) {
                (Address::Frame(offset), _) => {
                    expression.op_breg(stack_pointer(), (*offset).into());
                    true
                }
                (Address::Value(_, more), Some(at)) => push_sum(at, expression).is_some_and(|()| {
                    expression.op_consts(*more);
                    expression.op(gimli::constants::DW_OP_plus);
                    true
                }),
                (Address::Value(..), None) => false,
            };
            if !is_there {
                expression.op_piece(whole);
                return false;
            }
            for more in path {
                expression.op_deref();
                expression.op_consts(*more);
                expression.op(gimli::constants::DW_OP_plus);
            }
        }
        (PartPlace::Value(_), None) => {
            expression.op_piece(whole);
            return false;
        }
    }
    expression.op_piece(whole);
    true
}
