//! The types of variables, as far as variables have them.

use super::Table;
use crate::link::Program;
use crate::model::{DebugType, Metadata};
use cranelift_thisgpu::variables::{Member, TypeKind, VariableType, Variant, Variants};
use hashbrown::hash_map::Entry;

impl Table {
    /// The number of a type, which is read with all that it is made of.
    pub(super) fn ty(&mut self, program: &Program, module: usize, node: u32) -> Option<u32> {
        let number = self.reserve(program, module, node)?;
        // LLVM has no names for arrays. They are made of those of their elements, which are read behind them.
        let mut arrays: Vec<(u32, u32, u64)> = Vec::new();
        while let Some((module, node, number)) = self.open.pop() {
            if let Some(ty) = debug_type(program, module, node) {
                let kind = self.kind(program, module, ty);
                if let TypeKind::Array(element, count) = kind {
                    arrays.push((number, element, count));
                }
                let (name, bytes) = (ty.name.to_string(), ty.size / 8);
                self.variables
                    .set_type(number, VariableType { name, bytes, kind });
            }
        }
        for (number, element, count) in arrays.into_iter().rev() {
            let types = self.variables.types();
            let (ty, element_of) = (types.get(number as usize), types.get(element as usize));
            if let (Some(ty), Some(element_of)) = (ty.cloned(), element_of)
                && ty.name.is_empty()
            {
                let name = format!("[{}; {count}]", element_of.name);
                self.variables.set_type(number, VariableType { name, ..ty });
            }
        }
        Some(number)
    }

    /// The number that a type has, or will have; `void` is none.
    fn reserve(&mut self, program: &Program, module: usize, node: u32) -> Option<u32> {
        let ty = debug_type(program, module, node)?;
        Some(match self.types.entry((module, node)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(entry) => {
                let (name, bytes) = (ty.name.to_string(), ty.size / 8);
                let kind = TypeKind::Opaque;
                let number = self.variables.add_type(VariableType { name, bytes, kind });
                self.open.push((module, node, number));
                *entry.insert(number)
            }
        })
    }

    fn kind(&mut self, program: &Program, module: usize, ty: &DebugType) -> TypeKind {
        match &*ty.tag {
            "DW_TAG_base_type" => match &*ty.encoding {
                "DW_ATE_unsigned" | "DW_ATE_unsigned_char" => TypeKind::Unsigned,
                "DW_ATE_signed" | "DW_ATE_signed_char" => TypeKind::Signed,
                "DW_ATE_float" => TypeKind::Float,
                "DW_ATE_boolean" => TypeKind::Boolean,
                "DW_ATE_UTF" => TypeKind::Character,
                _ => TypeKind::Opaque,
            },
            "DW_TAG_pointer_type" => {
                let to = ty.base.and_then(|to| self.reserve(program, module, to));
                to.map_or(TypeKind::Opaque, TypeKind::Pointer)
            }
            "DW_TAG_structure_type" => {
                let elements = elements(program, module, ty);
                let part = elements.iter().copied().find_map(|node| {
                    debug_type(program, module, node)
                        .filter(|part| &*part.tag == "DW_TAG_variant_part")
                });
                let variants = part.map(|part| self.variants(program, module, part));
                TypeKind::Structure(self.members(program, module, &elements), variants)
            }
            "DW_TAG_union_type" => {
                let elements = elements(program, module, ty);
                TypeKind::Union(self.members(program, module, &elements))
            }
            "DW_TAG_array_type" => {
                let of = ty.base.and_then(|of| self.reserve(program, module, of));
                let counts = elements(program, module, ty);
                let counts = counts.iter().map(|node| match program.node(module, *node) {
                    Some(Metadata::Count(count)) => Some(*count),
                    _ => None,
                });
                let count = counts.product::<Option<u64>>();
                match (of, count) {
                    (Some(of), Some(count)) => TypeKind::Array(of, count),
                    _ => TypeKind::Opaque,
                }
            }
            "DW_TAG_enumeration_type" => {
                let values = elements(program, module, ty).into_iter();
                let values = values.filter_map(|node| match program.node(module, node)? {
                    Metadata::Enumerator(name, value) => {
                        Some((name.to_string(), low(*value, ty.size)))
                    }
                    _ => None,
                });
                let base = ty.base.and_then(|of| debug_type(program, module, of));
                let has_sign = base.is_some_and(|of| of.encoding.starts_with("DW_ATE_signed"));
                TypeKind::Enumeration(values.collect(), has_sign)
            }
            _ => TypeKind::Opaque,
        }
    }

    fn members(&mut self, program: &Program, module: usize, nodes: &[u32]) -> Vec<Member> {
        let member = |node: &u32| {
            let member = debug_type(program, module, *node)?;
            (&*member.tag == "DW_TAG_member").then(|| self.member(program, module, member))?
        };
        nodes.iter().filter_map(member).collect()
    }

    fn member(&mut self, program: &Program, module: usize, member: &DebugType) -> Option<Member> {
        Some(Member {
            name: member.name.to_string(),
            offset: member.offset / 8,
            ty: self.reserve(program, module, member.base?)?,
        })
    }

    fn variants(&mut self, program: &Program, module: usize, part: &DebugType) -> Variants {
        let discriminant = part
            .discriminator
            .and_then(|node| debug_type(program, module, node));
        let discriminant = discriminant.and_then(|member| self.member(program, module, member));
        let bits = discriminant.as_ref().and_then(|member| {
            let ty = self.variables.types().get(member.ty as usize)?;
            Some(ty.bytes * 8)
        });
        let nodes = elements(program, module, part);
        let variants = nodes.into_iter().filter_map(|node| {
            let variant = debug_type(program, module, node)?;
            Some(Variant {
                value: variant.value.map(|value| low(value, bits.unwrap_or(128))),
                member: self.member(program, module, variant)?,
            })
        });
        Variants {
            variants: variants.collect(),
            discriminant,
        }
    }
}

/// The low bits of a number.
fn low(value: u128, bits: u64) -> u128 {
    match bits {
        0..128 => value & ((1 << bits) - 1),
        _ => value,
    }
}

fn debug_type(program: &Program, module: usize, node: u32) -> Option<&DebugType> {
    match program.node(module, node)? {
        Metadata::Type(ty) => Some(ty),
        _ => None,
    }
}

fn elements(program: &Program, module: usize, ty: &DebugType) -> Vec<u32> {
    match ty.elements.and_then(|node| program.node(module, node)) {
        Some(Metadata::List(nodes)) => nodes.clone(),
        _ => Vec::new(),
    }
}
