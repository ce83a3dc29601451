//! Types of variables.

use serde::{Deserialize, Serialize};

/// A type. Others are meant by their numbers in the list that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VariableType {
    /// Its name in the language; empty if it has none.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// What it is made of.
    pub kind: TypeKind,
}

/// What a type is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TypeKind {
    /// An integer without a sign.
    Unsigned,
    /// An integer in two's complement.
    Signed,
    /// A float of IEEE 754.
    Float,
    /// 0 or 1.
    Boolean,
    /// A code point of Unicode.
    Character,
    /// A generic address of this.
    Pointer(u32),
    /// Members, and perhaps one of several variants.
    Structure(Vec<Member>, Option<Variants>),
    /// Members at the same place.
    Union(Vec<Member>),
    /// So many of this.
    Array(u32, u64),
    /// An integer whose values have names, as many of its low bits as its bytes are; and whether it has a sign.
    Enumeration(Vec<(String, u128)>, bool),
    /// Bytes that nothing is known of.
    Opaque,
}

/// A part of a structure or union.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    /// Its name: `x`, or `__0` of a tuple.
    pub name: String,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its type.
    pub ty: u32,
}

/// What a structure may be besides.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variants {
    /// The integer that says which; none if there is one variant only.
    pub discriminant: Option<Member>,
    /// They.
    pub variants: Vec<Variant>,
}

/// A variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// The discriminant, as many of its low bits as its type has; none of the variant that all others mean.
    pub value: Option<u128>,
    /// What it holds, named as the variant.
    pub member: Member,
}

impl Variants {
    /// The variant of a discriminant.
    pub fn of(&self, discriminant: u128) -> Option<&Variant> {
        let named = |variant: &&Variant| variant.value == Some(discriminant);
        let variants = || self.variants.iter();
        variants()
            .find(named)
            .or_else(|| variants().find(|variant| variant.value.is_none()))
    }
}

impl VariableType {
    /// Gives the types that it is made of other numbers.
    pub(crate) fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        let members = |members: &mut [Member]| {
            for member in members {
                member.ty = number(member.ty);
            }
        };
        match &mut self.kind {
            TypeKind::Pointer(to) | TypeKind::Array(to, _) => *to = number(*to),
            TypeKind::Structure(of, variants) => {
                members(of);
                if let Some(variants) = variants {
                    members(variants.discriminant.as_mut_slice());
                    for variant in &mut variants.variants {
                        variant.member.ty = number(variant.member.ty);
                    }
                }
            }
            TypeKind::Union(of) => members(of),
            TypeKind::Unsigned
            | TypeKind::Signed
            | TypeKind::Float
            | TypeKind::Boolean
            | TypeKind::Character
            | TypeKind::Enumeration(..)
            | TypeKind::Opaque => {}
        }
    }
}
