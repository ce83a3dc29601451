//! Values of the source in DWARF: an entry for each, with its type and a location list.
//!
//! Registers have numbers of their own (*assigned*): R0 is 0, UR0 is [`UNIFORM`], P0 is [`PREDICATE`]. A value of
//! several words is put together by pieces. A place in the constant bank of the launch has no address that DWARF could
//! name: the piece is left open.

use super::ObjectFunction;
use crate::abi::STACK_POINTER;
use crate::type_name::name_of;
use crate::values::{Location, Place, ValueLocations};
use cranelift_codegen::ir::Type;
use gimli::Register;
use gimli::constants::{
    DW_AT_byte_size, DW_AT_encoding, DW_AT_location, DW_AT_name, DW_AT_type, DW_ATE_float,
    DW_ATE_signed, DW_ATE_unsigned, DW_OP_eq, DW_OP_lit0, DW_OP_or, DW_OP_plus, DW_OP_shl,
    DW_OP_stack_value, DW_TAG_base_type, DW_TAG_variable,
};
use gimli::write::{
    Address, AttributeValue, DwarfUnit, Expression, Location as Range, LocationList, UnitEntryId,
};
use hashbrown::HashMap;

/// The number of UR0.
const UNIFORM: u16 = 256;
/// The number of P0.
const PREDICATE: u16 = 512;
/// Bytes of a word.
pub(super) const WORD: u64 = 4;

/// The types that have entries.
#[derive(Default)]
pub(super) struct Types(HashMap<Type, UnitEntryId>);

impl Types {
    /// Adds the entries of a function's values below its own; it begins at `start`.
    pub fn add_values(
        &mut self,
        function: &ObjectFunction,
        start: Address,
        parent: UnitEntryId,
        unit: &mut DwarfUnit,
    ) {
        for value in &function.values {
            let ty = self.entry(value.ty, unit);
            let ranges = ranges(value, start, function.len());
            let ranges = unit.unit.locations.add(LocationList(ranges));
            let entry = unit.unit.add(parent, DW_TAG_variable);
            let entry = unit.unit.get_mut(entry);
            let name = value.source.to_string().into_bytes();
            entry.set(DW_AT_name, AttributeValue::String(name));
            entry.set(DW_AT_type, AttributeValue::UnitRef(ty));
            entry.set(DW_AT_location, AttributeValue::LocationListRef(ranges));
        }
    }

    fn entry(&mut self, ty: Type, unit: &mut DwarfUnit) -> UnitEntryId {
        let add = || {
            let root = unit.unit.root();
            let id = unit.unit.add(root, DW_TAG_base_type);
            let entry = unit.unit.get_mut(id);
            let encoding = match ty {
                _ if ty.is_float() => DW_ATE_float,
                _ if ty.is_vector() => DW_ATE_unsigned,
                _ => DW_ATE_signed,
            };
            entry.set(
                DW_AT_name,
                AttributeValue::String(name_of(ty).as_bytes().into()),
            );
            entry.set(DW_AT_encoding, AttributeValue::Encoding(encoding));
            entry.set(DW_AT_byte_size, AttributeValue::Udata(ty.bytes().into()));
            id
        };
        *self.0.entry(ty).or_insert_with(add)
    }
}

/// The ranges of a value; what lies outside of the function is of nobody's use.
fn ranges(value: &ValueLocations, start: Address, len: u64) -> Vec<Range> {
    let inside =
        |range: &&crate::values::ValueRange| range.start < range.end && u64::from(range.end) <= len;
    let list = value
        .ranges
        .iter()
        .filter(inside)
        .map(|range| Range::StartLength {
            begin: address(start, range.start),
            length: (range.end - range.start).into(),
            data: expression(&range.location),
        });
    list.collect()
}

/// An address so many bytes behind another.
pub(super) fn address(start: Address, offset: u32) -> Address {
    match start {
        Address::Constant(start) => Address::Constant(start + u64::from(offset)),
        Address::Symbol { symbol, addend } => Address::Symbol {
            symbol,
            addend: addend + i64::from(offset),
        },
    }
}

/// Where a value is.
fn expression(location: &Location) -> Expression {
    let mut expression = Expression::new();
    match &location.places[..] {
        _ if location.addend != 0 => {
            if push_sum(location, &mut expression).is_some() {
                expression.op(DW_OP_stack_value);
            }
        }
        [place] => piece(*place, &mut expression),
        places => {
            for place in places {
                piece(*place, &mut expression);
                expression.op_piece(WORD);
            }
        }
    }
    expression
}

/// The place of a word.
pub(super) fn piece(place: Place, expression: &mut Expression) {
    match place {
        Place::Register(number) => expression.op_reg(Register(number.into())),
        Place::Uniform(number) => expression.op_reg(Register(UNIFORM + u16::from(number))),
        Place::Predicate(number, false) => {
            expression.op_reg(Register(PREDICATE + u16::from(number)));
        }
        Place::Frame(offset) => expression.op_breg(stack_pointer(), offset.into()),
        Place::Predicate(_, true) | Place::Constant(_) => {
            push(place, expression);
            expression.op(DW_OP_stack_value);
        }
        Place::Launch(_) => {}
    }
}

/// Puts the number on the stack that a value of at most 64 bits is; none, and nothing, if it reads the launch's bank.
pub(super) fn push_sum(location: &Location, expression: &mut Expression) -> Option<()> {
    let Location { places, addend } = location;
    if places.iter().any(|place| matches!(place, Place::Launch(_))) {
        return None;
    }
    for (word, place) in places.iter().enumerate().take(2) {
        push(*place, expression);
        if word > 0 {
            expression.op_constu(32);
            expression.op(DW_OP_shl);
            expression.op(DW_OP_or);
        }
    }
    if *addend != 0 {
        expression.op_consts(*addend);
        expression.op(DW_OP_plus);
    }
    Some(())
}

/// Puts the contents of a place on the stack.
fn push(place: Place, expression: &mut Expression) {
    match place {
        Place::Register(number) => expression.op_breg(Register(number.into()), 0),
        Place::Uniform(number) => expression.op_breg(Register(UNIFORM + u16::from(number)), 0),
        Place::Predicate(number, opposite) => {
            expression.op_breg(Register(PREDICATE + u16::from(number)), 0);
            if opposite {
                expression.op(DW_OP_lit0);
                expression.op(DW_OP_eq);
            }
        }
        Place::Frame(offset) => {
            expression.op_breg(stack_pointer(), offset.into());
            expression.op_deref_size(WORD as u8);
        }
        Place::Constant(word) => expression.op_constu(word.into()),
        Place::Launch(_) => expression.op_constu(0),
    }
}

pub(super) fn stack_pointer() -> Register {
    Register(STACK_POINTER.number().into())
}
