//! Static variables in DWARF.
//!
//! Those in global memory stand below the unit: their address is that of their data, a relocation also in a linked
//! file, because data has no address before it is loaded. Those in shared memory stand below each kernel in which they
//! are there: their address is the generic one, as pointers to them have it.

use super::dwarf::clean;
use super::types::TypeEntries;
use super::{Object, ObjectFunction};
use crate::abi::SHARED_WINDOW;
use crate::variables::{Static, StaticPlace};
use gimli::constants::{DW_AT_location, DW_AT_name, DW_AT_type, DW_TAG_variable};
use gimli::write::{Address, AttributeValue, DwarfUnit, Expression, UnitEntryId};

/// Adds the variables of an object that are in global memory.
pub(super) fn add_global(object: &Object, types: &TypeEntries, unit: &mut DwarfUnit) {
    let root = unit.unit.root();
    for of in &object.statics {
        let StaticPlace::Data(name) = &of.place else {
            continue;
        };
        // Data of another object has its entry there.
        let Some(data) = object.data.iter().position(|data| data.name == *name) else {
            continue;
        };
        // Data is behind the functions in the numbers of symbols.
        let symbol = object.functions.len() + data;
        add(of, Address::Symbol { symbol, addend: 0 }, root, types, unit);
    }
}

/// Adds the variables that are in shared memory of a kernel, below its entry.
pub(super) fn add_shared(
    statics: &[Static],
    kernel: &ObjectFunction,
    entry: UnitEntryId,
    types: &TypeEntries,
    unit: &mut DwarfUnit,
) {
    for of in statics {
        if let StaticPlace::Shared { offset, kernels } = &of.place
            && kernels.contains(&kernel.name)
        {
            let address = Address::Constant(SHARED_WINDOW + u64::from(*offset));
            add(of, address, entry, types, unit);
        }
    }
}

fn add(
    of: &Static,
    address: Address,
    parent: UnitEntryId,
    types: &TypeEntries,
    unit: &mut DwarfUnit,
) {
    let mut location = Expression::new();
    location.op_addr(address);
    let entry = unit.unit.add(parent, DW_TAG_variable);
    let entry = unit.unit.get_mut(entry);
    entry.set(DW_AT_name, AttributeValue::String(clean(&of.name)));
    if let Some(ty) = types.get(of.ty) {
        entry.set(DW_AT_type, AttributeValue::UnitRef(ty));
    }
    entry.set(DW_AT_location, AttributeValue::Exprloc(location));
}
