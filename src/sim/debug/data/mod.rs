//! Variables of the source, and what they are made of.
//!
//! A [`Datum`] is bytes with a type: a variable, a member of one, an element, or what a reference points to. Bytes that
//! nobody knows stay unknown, and what depends on them is not available. [`path`] reads `p.x` and `xs[3]`, [`text`]
//! writes data as Rust writes them.

mod path;
mod text;

pub use path::Path;

use super::operand::Look;
use crate::variables::{
    Address, Member, Part, PartPlace, ScopeKind, ScopeLocations, TypeKind, VariableLocations,
    VariableType, Variants,
};

/// Most bytes of a variable that are looked at (*assumed*: nobody reads more of it at once).
const MOST_BYTES: u64 = 1 << 20;

/// Bytes with a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// The type, by number in the image's list.
    pub ty: u32,
    /// The bytes; none of those that are nowhere.
    pub bytes: Vec<Option<u8>>,
}

/// A variable that is seen from where a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableView {
    /// Its name.
    pub name: String,
    /// Whether the function takes it.
    pub is_parameter: bool,
    /// How many inlined calls further out its function is.
    pub frame: u32,
    /// What it is.
    pub datum: Datum,
}

/// A number as a variable or register has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer, a truth, a character, an address, an enumeration.
    Integer(i128),
    /// A float.
    Float(f64),
}

impl Number {
    /// Which is larger, if one can say.
    pub fn compare(self, other: Number) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => Some(a.cmp(&b)),
            (a, b) => a.as_float().partial_cmp(&b.as_float()),
        }
    }

    fn as_float(self) -> f64 {
        match self {
            Number::Integer(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

/// Types of the image.
pub(super) fn type_of<'a>(look: &Look<'a>, number: u32) -> Option<&'a VariableType> {
    look.image.types.get(number as usize)
}

/// The scopes that the next instruction is in, the innermost first.
pub(super) fn scopes<'a>(look: &Look<'a>) -> impl Iterator<Item = &'a ScopeLocations> + use<'a> {
    let function = look.image.function_at(look.pc);
    let (scopes, offset) = function.map_or((&[][..], 0), |function| {
        (function.scopes.as_slice(), look.pc - function.address)
    });
    // Inner ones stand behind outer ones, and those that an instruction is in are in each other.
    scopes
        .iter()
        .rev()
        .filter(move |scope| scope.contains(offset))
}

/// The variables that are seen from where a lane is, the innermost scope first, with the calls between it and theirs.
pub(super) fn seen<'a>(
    look: &Look<'a>,
) -> impl Iterator<Item = (u32, &'a VariableLocations)> + use<'a> {
    let mut frame = 0;
    scopes(look).flat_map(move |scope| {
        let own = frame;
        frame += u32::from(matches!(scope.kind, ScopeKind::Inlined(..)));
        scope
            .variables
            .iter()
            .rev()
            .map(move |variable| (own, variable))
    })
}

/// A variable as a lane has it.
pub(super) fn datum(look: &Look<'_>, variable: &VariableLocations, lane: usize) -> Option<Datum> {
    let size = type_of(look, variable.ty)?.bytes.min(MOST_BYTES) as usize;
    let mut bytes = vec![None; size];
    let start = look.image.function_at(look.pc)?.address;
    for part in variable.at(look.pc - start) {
        let room = bytes.get_mut(part.offset as usize..).unwrap_or_default();
        let bytes = room.len().min(part.bytes as usize);
        let room = &mut room[..bytes];
        fill(look, part, lane, room);
    }
    Some(Datum {
        ty: variable.ty,
        bytes,
    })
}

fn fill(look: &Look<'_>, part: &Part, lane: usize, room: &mut [Option<u8>]) {
    let low = |bits: u128, room: &mut [Option<u8>]| {
        let bytes = bits.to_le_bytes();
        for (index, byte) in room.iter_mut().enumerate() {
            *byte = Some(bytes.get(index).copied().unwrap_or(0));
        }
    };
    match &part.place {
        PartPlace::Value(value) => {
            if let Some(bits) = look.source(*value, lane) {
                low(bits, room);
            }
        }
        PartPlace::Constant(bits) => low(u128::from(*bits), room),
        PartPlace::Memory(from, path) => {
            let read =
                address(look, *from, path, lane).and_then(|at| look.memory(at, room.len(), lane));
            for (byte, read) in room.iter_mut().zip(read.unwrap_or_default()) {
                *byte = Some(read);
            }
        }
    }
}

/// Where memory begins, as a generic address.
fn address(look: &Look<'_>, from: Address, path: &[i64], lane: usize) -> Option<u64> {
    let mut address = match from {
        Address::Frame(offset) => look.frame(lane).checked_add(offset.into())?,
        Address::Value(value, more) => {
            let value = u64::try_from(look.source(value, lane)?).ok()?;
            value.wrapping_add_signed(more)
        }
    };
    for more in path {
        let pointer = look.memory(address, 8, lane)?;
        address = u64::from_le_bytes(*pointer.first_chunk()?).wrapping_add_signed(*more);
    }
    Some(address)
}

impl Datum {
    /// The bytes, if all of them are known.
    pub fn known(&self) -> Option<Vec<u8>> {
        self.bytes.iter().copied().collect()
    }

    /// The bits of a scalar.
    fn bits(&self) -> Option<u128> {
        let bytes = self
            .known()
            .filter(|bytes| (1..=16).contains(&bytes.len()))?;
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(&bytes);
        Some(u128::from_le_bytes(all))
    }

    /// The bits of what is one scalar.
    pub(super) fn scalar(&self, look: &Look<'_>) -> Option<u128> {
        self.number(look).and_then(|_| self.bits())
    }

    /// The number that a scalar is.
    pub(super) fn number(&self, look: &Look<'_>) -> Option<Number> {
        let ty = type_of(look, self.ty)?;
        let bits = self.bits()?;
        let unused = 128 - 8 * self.bytes.len() as u32;
        Some(match ty.kind {
            TypeKind::Float => Number::Float(text::float(bits, self.bytes.len())?),
            TypeKind::Signed => Number::Integer((bits << unused) as i128 >> unused),
            TypeKind::Unsigned
            | TypeKind::Boolean
            | TypeKind::Character
            | TypeKind::Pointer(_)
            | TypeKind::Enumeration(_) => {
                Number::Integer(i128::try_from(bits).unwrap_or(i128::MAX))
            }
            TypeKind::Structure(..)
            | TypeKind::Union(_)
            | TypeKind::Array(..)
            | TypeKind::Opaque => {
                // What is one scalar in the end: a structure around it.
                if self.slice(look).is_some() {
                    return None;
                }
                let members = self.parts(look, 2, 0);
                let mut filled = members.iter().filter(|(_, datum)| !datum.bytes.is_empty());
                let (only, more) = (filled.next()?, filled.next());
                return if more.is_none() {
                    only.1.number(look)
                } else {
                    None
                };
            }
        })
    }

    /// The part of its bytes that a member is.
    fn member(&self, look: &Look<'_>, member: &Member) -> Option<Datum> {
        let size = type_of(look, member.ty)?.bytes;
        let start = usize::try_from(member.offset).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        Some(Datum {
            ty: member.ty,
            bytes: self.bytes.get(start..end)?.to_vec(),
        })
    }

    /// What it points to; none of what is no pointer, or points to nothing that is there.
    fn pointee(&self, look: &Look<'_>, lane: usize) -> Option<Datum> {
        let TypeKind::Pointer(to) = type_of(look, self.ty)?.kind else {
            return None;
        };
        element(look, u64::try_from(self.bits()?).ok()?, to, 0, lane)
    }

    /// The variant that it is, by name.
    fn variant(&self, look: &Look<'_>, variants: &Variants) -> Option<(String, Datum)> {
        let variant = match &variants.discriminant {
            Some(member) => {
                let bits = self.member(look, member)?.bits()?;
                variants.of(u64::try_from(bits).ok()?)?
            }
            None => variants.variants.first()?,
        };
        Some((
            variant.member.name.clone(),
            self.member(look, &variant.member)?,
        ))
    }

    /// The slice that it is: the address of the first element, its type, and how many there are.
    fn slice(&self, look: &Look<'_>) -> Option<(u64, u32, u64)> {
        let TypeKind::Structure(members, None) = &type_of(look, self.ty)?.kind else {
            return None;
        };
        let [data, length] = &members[..] else {
            return None;
        };
        if data.name != "data_ptr" || length.name != "length" {
            return None;
        }
        let TypeKind::Pointer(to) = type_of(look, data.ty)?.kind else {
            return None;
        };
        let number = |member| u64::try_from(self.member(look, member)?.bits()?).ok();
        Some((number(data)?, to, number(length)?))
    }

    /// What it is made of, by name: members, at most so many elements, what it points to.
    pub(super) fn parts(&self, look: &Look<'_>, most: usize, lane: usize) -> Vec<(String, Datum)> {
        if let Some((first, ty, count)) = self.slice(look) {
            let elements = (0..count.min(most as u64)).map_while(|index| {
                Some((format!("[{index}]"), element(look, first, ty, index, lane)?))
            });
            return elements.collect();
        }
        let Some(ty) = type_of(look, self.ty) else {
            return Vec::new();
        };
        let named = |members: &[Member]| -> Vec<(String, Datum)> {
            let members = members.iter();
            members
                .filter_map(|member| {
                    Some((spoken(&member.name).to_owned(), self.member(look, member)?))
                })
                .collect()
        };
        match &ty.kind {
            TypeKind::Structure(members, variants) => {
                let mut parts = named(members);
                let variant = variants
                    .as_ref()
                    .and_then(|variants| self.variant(look, variants));
                parts
                    .extend(variant.map_or(Vec::new(), |(_, datum)| datum.parts(look, most, lane)));
                parts
            }
            TypeKind::Union(members) => named(members),
            TypeKind::Array(ty, count) => {
                let elements = (0..(*count).min(most as u64)).map_while(|index| {
                    let size = type_of(look, *ty)?.bytes;
                    let offset = index.checked_mul(size)?;
                    let member = Member {
                        name: String::new(),
                        offset,
                        ty: *ty,
                    };
                    Some((format!("[{index}]"), self.member(look, &member)?))
                });
                elements.collect()
            }
            TypeKind::Pointer(_) => {
                let pointee = self.pointee(look, lane);
                pointee
                    .map(|datum| ("*".to_owned(), datum))
                    .into_iter()
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// An element of what stands one behind the other from an address on.
fn element(look: &Look<'_>, first: u64, ty: u32, index: u64, lane: usize) -> Option<Datum> {
    let size = type_of(look, ty)?.bytes;
    let at = first.checked_add(index.checked_mul(size)?)?;
    let bytes = look.memory(at, usize::try_from(size.min(MOST_BYTES)).ok()?, lane)?;
    Some(Datum {
        ty,
        bytes: bytes.into_iter().map(Some).collect(),
    })
}

/// The name of a member as the source has it: `0` for rustc's `__0`.
fn spoken(name: &str) -> &str {
    let number = name.strip_prefix("__");
    number
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .unwrap_or(name)
}
