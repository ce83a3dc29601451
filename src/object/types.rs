//! Types of variables in DWARF.

use super::dwarf::clean;
use crate::variables::{Member, TypeKind, VariableType, Variants};
use gimli::constants::{
    DW_AT_byte_size, DW_AT_const_value, DW_AT_count, DW_AT_data_member_location, DW_AT_discr,
    DW_AT_discr_value, DW_AT_encoding, DW_AT_name, DW_AT_type, DW_ATE_UTF, DW_ATE_boolean,
    DW_ATE_float, DW_ATE_signed, DW_ATE_unsigned, DW_TAG_array_type, DW_TAG_base_type,
    DW_TAG_enumeration_type, DW_TAG_enumerator, DW_TAG_member, DW_TAG_pointer_type,
    DW_TAG_structure_type, DW_TAG_subrange_type, DW_TAG_union_type, DW_TAG_variant,
    DW_TAG_variant_part,
};
use gimli::write::{AttributeValue, DwarfUnit, UnitEntryId};
use gimli::{DwAte, DwTag};

/// The entries of an object's types, in the same order.
pub(super) struct TypeEntries(Vec<UnitEntryId>);

impl TypeEntries {
    /// Adds all types.
    pub fn add(types: &[VariableType], unit: &mut DwarfUnit) -> Self {
        let root = unit.unit.root();
        // Types mean each other, so all have their entries before any is filled in.
        let entries = types.iter().map(|ty| unit.unit.add(root, tag(&ty.kind)));
        let entries = TypeEntries(entries.collect());
        for (ty, &entry) in types.iter().zip(&entries.0) {
            entries.fill(ty, entry, unit);
        }
        entries
    }

    /// The entry of a type by its number.
    pub fn get(&self, number: u32) -> Option<UnitEntryId> {
        self.0.get(number as usize).copied()
    }

    fn fill(&self, ty: &VariableType, id: UnitEntryId, unit: &mut DwarfUnit) {
        let entry = unit.unit.get_mut(id);
        if !ty.name.is_empty() {
            entry.set(DW_AT_name, AttributeValue::String(clean(&ty.name)));
        }
        entry.set(DW_AT_byte_size, AttributeValue::Udata(ty.bytes));
        if let Some(encoding) = encoding(&ty.kind) {
            entry.set(DW_AT_encoding, AttributeValue::Encoding(encoding));
        }
        match &ty.kind {
            TypeKind::Pointer(to) => self.set_type(id, *to, unit),
            TypeKind::Array(of, count) => {
                self.set_type(id, *of, unit);
                let range = unit.unit.add(id, DW_TAG_subrange_type);
                let range = unit.unit.get_mut(range);
                range.set(DW_AT_count, AttributeValue::Udata(*count));
            }
            TypeKind::Structure(members, variants) => {
                self.members(members, id, unit);
                if let Some(variants) = variants {
                    self.variants(variants, id, unit);
                }
            }
            TypeKind::Union(members) => self.members(members, id, unit),
            TypeKind::Enumeration(values, _) => {
                for (name, value) in values {
                    let value_of = unit.unit.add(id, DW_TAG_enumerator);
                    let entry = unit.unit.get_mut(value_of);
                    entry.set(DW_AT_name, AttributeValue::String(clean(name)));
                    entry.set(DW_AT_const_value, constant(*value));
                }
            }
            TypeKind::Unsigned
            | TypeKind::Signed
            | TypeKind::Float
            | TypeKind::Boolean
            | TypeKind::Character
            | TypeKind::Opaque => {}
        }
    }

    fn set_type(&self, entry: UnitEntryId, ty: u32, unit: &mut DwarfUnit) {
        if let Some(ty) = self.get(ty) {
            let entry = unit.unit.get_mut(entry);
            entry.set(DW_AT_type, AttributeValue::UnitRef(ty));
        }
    }

    fn members(&self, members: &[Member], parent: UnitEntryId, unit: &mut DwarfUnit) {
        for member in members {
            self.member(member, parent, unit);
        }
    }

    fn member(&self, member: &Member, parent: UnitEntryId, unit: &mut DwarfUnit) -> UnitEntryId {
        let id = unit.unit.add(parent, DW_TAG_member);
        let entry = unit.unit.get_mut(id);
        if !member.name.is_empty() {
            entry.set(DW_AT_name, AttributeValue::String(clean(&member.name)));
        }
        entry.set(
            DW_AT_data_member_location,
            AttributeValue::Udata(member.offset),
        );
        self.set_type(id, member.ty, unit);
        id
    }

    fn variants(&self, variants: &Variants, parent: UnitEntryId, unit: &mut DwarfUnit) {
        let part = unit.unit.add(parent, DW_TAG_variant_part);
        if let Some(discriminant) = &variants.discriminant {
            let member = self.member(discriminant, part, unit);
            let entry = unit.unit.get_mut(part);
            entry.set(DW_AT_discr, AttributeValue::UnitRef(member));
        }
        for variant in &variants.variants {
            let id = unit.unit.add(part, DW_TAG_variant);
            if let Some(value) = variant.value {
                let entry = unit.unit.get_mut(id);
                entry.set(DW_AT_discr_value, constant(value));
            }
            self.member(&variant.member, id, unit);
        }
    }
}

/// A number, of which DWARF has those of 64 bits alone; a larger one is a block of bytes.
fn constant(value: u128) -> AttributeValue {
    match u64::try_from(value) {
        Ok(value) => AttributeValue::Udata(value),
        Err(_) => AttributeValue::Block(value.to_le_bytes().to_vec()),
    }
}

fn tag(kind: &TypeKind) -> DwTag {
    match kind {
        TypeKind::Pointer(_) => DW_TAG_pointer_type,
        TypeKind::Structure(..) => DW_TAG_structure_type,
        TypeKind::Union(_) => DW_TAG_union_type,
        TypeKind::Array(..) => DW_TAG_array_type,
        TypeKind::Enumeration(..) => DW_TAG_enumeration_type,
        _ => DW_TAG_base_type,
    }
}

/// How a scalar is read.
fn encoding(kind: &TypeKind) -> Option<DwAte> {
    Some(match kind {
        TypeKind::Unsigned | TypeKind::Opaque => DW_ATE_unsigned,
        TypeKind::Signed => DW_ATE_signed,
        TypeKind::Float => DW_ATE_float,
        TypeKind::Boolean => DW_ATE_boolean,
        TypeKind::Character => DW_ATE_UTF,
        TypeKind::Enumeration(_, true) => DW_ATE_signed,
        _ => return None,
    })
}
