//! Static variables in DWARF.
//!
//! Those in global memory stand below the unit: their address is that of their data, a relocation also in a linked
//! file, because data has no address before it is loaded. Those in shared memory stand below each kernel in which they
//! are there: their address is the generic one, as pointers to them have it.

use super::Object;
use super::dwarf::clean;
use super::types::TypeEntries;
use crate::abi::SHARED_WINDOW;
use crate::variables::{Static, StaticPlace};
use gimli::constants::{DW_AT_location, DW_AT_name, DW_AT_type, DW_TAG_variable};
use gimli::write::{Address, AttributeValue, DwarfUnit, Expression, UnitEntryId};
use hashbrown::HashMap;

/// Adds the variables of an object that are in global memory.
pub(super) fn add_global(object: &Object, types: &TypeEntries, unit: &mut DwarfUnit) {
    if object.statics.is_empty() {
        return;
    }
    // Data is behind the functions in the numbers of symbols.
    let symbols = (object.functions.len()..).zip(&object.data);
    let symbols: HashMap<&str, usize> = symbols
        .map(|(symbol, data)| (data.name.as_str(), symbol))
        .collect();
    let root = unit.unit.root();
    for of in &object.statics {
        // Data of another object has its entry there.
        if let StaticPlace::Data(name) = &of.place
            && let Some(&symbol) = symbols.get(name.as_str())
        {
            add(of, Address::Symbol { symbol, addend: 0 }, root, types, unit);
        }
    }
}

/// The variables in shared memory, by the kernels in which they are there.
pub(super) struct SharedStatics<'a>(HashMap<&'a str, Vec<(&'a Static, u32)>>);

impl<'a> SharedStatics<'a> {
    pub fn of(statics: &'a [Static]) -> Self {
        let mut found: HashMap<&str, Vec<(&Static, u32)>> = HashMap::new();
        for of in statics {
            if let StaticPlace::Shared { offset, kernels } = &of.place {
                for kernel in kernels {
                    found.entry(kernel).or_default().push((of, *offset));
                }
            }
        }
        Self(found)
    }

    /// Adds those of a function below its entry.
    pub fn add(
        &self,
        function: &str,
        entry: UnitEntryId,
        types: &TypeEntries,
        unit: &mut DwarfUnit,
    ) {
        for (of, offset) in self.0.get(function).into_iter().flatten() {
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
