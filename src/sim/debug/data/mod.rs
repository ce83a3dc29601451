//! Variables of the source, and what they are made of.
//!
//! A [`Datum`] is bytes with a type, or the place in memory where they are: a variable, a member of one, an element, or
//! what a reference points to. Memory is read where somebody looks, and no more of it than that needs. Bytes that
//! nobody knows stay unknown, and what depends on them is not available. [`path`] reads `p.x` and `xs[3]`, [`text`]
//! writes data as Rust writes them.

mod number;
mod path;
mod text;

pub use number::Number;
pub use path::Path;
pub(super) use path::is_named;

use super::operand::Look;
use crate::variables::{
    Address, Member, Part, PartPlace, ScopeKind, ScopeLocations, StaticPlace, TypeKind,
    VariableLocations, VariableType, Variant, Variants,
};

/// Most bytes of a variable that are looked at (*assumed*: nobody reads more of it at once).
const MOST_BYTES: u64 = 1 << 20;

/// Bytes with a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// The type, by number in the image's list.
    pub ty: u32,
    held: Held,
}

/// What a datum is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    /// Its bytes; none of those that are nowhere.
    Bytes(Vec<Option<u8>>),
    /// It stands in memory at this generic address.
    Memory(u64),
}

/// A variable that is seen from where a thread is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableView {
    /// Its name.
    pub name: String,
    /// How many inlined calls further out its function is.
    pub frame: u32,
    /// What it is.
    pub datum: Datum,
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

/// The static variables that the kernel has, with their paths.
pub(super) fn statics<'a>(look: &Look<'a>) -> impl Iterator<Item = (&'a str, Datum)> + use<'a> {
    let kernel = look.kernel;
    let statics = look.image.statics.iter();
    statics.filter_map(move |(of, address)| {
        let is_there = match &of.place {
            StaticPlace::Data(_) => true,
            StaticPlace::Shared { kernels, .. } => kernels.iter().any(|name| name == kernel),
        };
        let (ty, held) = (of.ty, Held::Memory(*address));
        is_there.then_some((of.name.as_str(), Datum { ty, held }))
    })
}

/// A variable as a lane has it.
pub(super) fn datum(look: &Look<'_>, variable: &VariableLocations, lane: usize) -> Option<Datum> {
    let size = type_of(look, variable.ty)?.bytes;
    let start = look.image.function_at(look.pc)?.address;
    let parts = variable.at(look.pc - start);
    let ty = variable.ty;
    if let [part] = parts
        && let PartPlace::Memory(from, path) = &part.place
        && part.offset == 0
        && u64::from(part.bytes) == size
    {
        let address = address(look, *from, path, lane);
        if let Some(address) = address.filter(|address| look.has_memory(*address, size)) {
            let held = Held::Memory(address);
            return Some(Datum { ty, held });
        }
    }
    let mut bytes = vec![None; size.min(MOST_BYTES) as usize];
    for part in parts {
        let room = bytes.get_mut(part.offset as usize..).unwrap_or_default();
        let known = room.len().min(part.bytes as usize);
        fill(look, part, lane, &mut room[..known]);
    }
    let held = Held::Bytes(bytes);
    Some(Datum { ty, held })
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
        Address::Frame(offset) => look.frame(lane)?.checked_add(offset.into())?,
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

/// Types that are made of each other, at most, where they are looked through for what can never be.
const MOST_NESTED: u32 = 16;

/// Whether there is no value of a type: it has a variant part without variants, or a part that is such a type.
fn is_uninhabited(look: &Look<'_>, ty: u32, nested: u32) -> bool {
    let Some(ty) = type_of(look, ty).filter(|_| nested < MOST_NESTED) else {
        return false;
    };
    match &ty.kind {
        TypeKind::Structure(members, variants) => {
            let has_none = |variants: &Variants| variants.variants.is_empty();
            variants.as_ref().is_some_and(has_none)
                || members
                    .iter()
                    .any(|member| is_uninhabited(look, member.ty, nested + 1))
        }
        TypeKind::Enumeration(values, _) => values.is_empty(),
        _ => ty.name == "!",
    }
}

impl Datum {
    /// The bytes; none of those that are nowhere.
    pub(super) fn bytes(&self, look: &Look<'_>, lane: usize) -> Vec<Option<u8>> {
        match &self.held {
            Held::Bytes(bytes) => bytes.clone(),
            Held::Memory(address) => {
                let size = type_of(look, self.ty).map_or(0, |ty| ty.bytes.min(MOST_BYTES)) as usize;
                match look.memory(*address, size, lane) {
                    Some(bytes) => bytes.into_iter().map(Some).collect(),
                    None => vec![None; size],
                }
            }
        }
    }

    /// The generic address at which it stands, if it is in memory.
    pub(super) fn address(&self) -> Option<u64> {
        match self.held {
            Held::Memory(address) => Some(address),
            Held::Bytes(_) => None,
        }
    }

    /// Whether nothing of it is known, though it has bytes.
    fn is_unknown(&self) -> bool {
        match &self.held {
            Held::Bytes(bytes) => !bytes.is_empty() && bytes.iter().all(Option::is_none),
            Held::Memory(_) => false,
        }
    }

    /// The bits of a scalar.
    fn bits(&self, look: &Look<'_>, lane: usize) -> Option<u128> {
        let size = type_of(look, self.ty)?.bytes;
        let is_scalar = (1..=16).contains(&size);
        let bytes = is_scalar.then(|| self.bytes(look, lane))?;
        let bytes: Vec<u8> = bytes.into_iter().collect::<Option<Vec<u8>>>()?;
        let mut all = [0; 16];
        all[..bytes.len()].copy_from_slice(&bytes);
        Some(u128::from_le_bytes(all))
    }

    /// The bits of what is one scalar.
    pub(super) fn scalar(&self, look: &Look<'_>, lane: usize) -> Option<u128> {
        let of = self.content(look);
        of.number(look, lane).and_then(|_| of.bits(look, lane))
    }

    /// The number that a scalar is.
    pub(super) fn number(&self, look: &Look<'_>, lane: usize) -> Option<Number> {
        let of = self.content(look);
        if of != *self {
            return of.number(look, lane);
        }
        let ty = type_of(look, self.ty)?;
        let is_made_of_others = matches!(
            ty.kind,
            TypeKind::Structure(..) | TypeKind::Union(_) | TypeKind::Array(..) | TypeKind::Opaque
        );
        if is_made_of_others {
            if self.slice(look, lane).is_some() {
                return None;
            }
            // What is one scalar in the end: a structure around it.
            let parts = self.parts(look, 2, lane);
            let size = |datum: &Datum| type_of(look, datum.ty).map_or(0, |ty| ty.bytes);
            let mut filled = parts.iter().filter(|(_, datum)| size(datum) > 0);
            let (only, more) = (filled.next()?, filled.next());
            return match more {
                None => only.1.number(look, lane),
                Some(_) => None,
            };
        }
        let bits = self.bits(look, lane)?;
        Some(match (&ty.kind, ty.bytes) {
            (TypeKind::Float, 2) => Number::Half(half::f16::from_bits(bits as u16)),
            (TypeKind::Float, 4) => Number::Single(f32::from_bits(bits as u32)),
            (TypeKind::Float, 8) => Number::Double(f64::from_bits(bits as u64)),
            (TypeKind::Float, _) => return None,
            (TypeKind::Signed | TypeKind::Enumeration(_, true), _) => {
                Number::signed(bits, 8 * ty.bytes as u32)
            }
            _ => Number::unsigned(bits),
        })
    }

    /// The part of it that a member is.
    fn member(&self, look: &Look<'_>, member: &Member) -> Option<Datum> {
        let size = type_of(look, member.ty)?.bytes;
        let ty = member.ty;
        let held = match &self.held {
            Held::Memory(address) => Held::Memory(address.checked_add(member.offset)?),
            Held::Bytes(bytes) => {
                let start = usize::try_from(member.offset).ok()?;
                let end = start.checked_add(usize::try_from(size).ok()?)?;
                Held::Bytes(bytes.get(start..end)?.to_vec())
            }
        };
        Some(Datum { ty, held })
    }

    /// What it points to; none of what is no pointer, or points to nothing that is there.
    fn pointee(&self, look: &Look<'_>, lane: usize) -> Option<Datum> {
        let TypeKind::Pointer(to) = type_of(look, self.ty)?.kind else {
            return None;
        };
        element(look, u64::try_from(self.bits(look, lane)?).ok()?, to, 0)
    }

    /// The variant that it is, by name.
    fn variant(
        &self,
        look: &Look<'_>,
        variants: &Variants,
        lane: usize,
    ) -> Option<(String, Datum)> {
        let variant = match &variants.discriminant {
            Some(member) => variants.of(self.member(look, member)?.bits(look, lane)?)?,
            None => {
                let can_be = |variant: &&Variant| !is_uninhabited(look, variant.member.ty, 0);
                let mut possible = variants.variants.iter().filter(can_be);
                let only = possible.next()?;
                possible.next().is_none().then_some(only)?
            }
        };
        let content = self.member(look, &variant.member)?;
        Some((variant.member.name.clone(), content))
    }

    /// The slice or text that it points to, or the elements of a `DisjointMut`: the address of the first element, its
    /// type, and how many there are.
    fn slice(&self, look: &Look<'_>, lane: usize) -> Option<(u64, u32, u64)> {
        let ty = type_of(look, self.ty)?;
        let [pointer, count] = match pointee_name(&ty.name) {
            Some(to) if to == "str" || to.starts_with('[') && to.ends_with(']') => {
                ["data_ptr", "length"]
            }
            None if base_name(&ty.name) == "DisjointMut" => ["start", "extents"],
            _ => return None,
        };
        let TypeKind::Structure(members, None) = &ty.kind else {
            return None;
        };
        let named = |name: &str| members.iter().find(|member| member.name == name);
        let (data, length) = (named(pointer)?, named(count)?);
        let TypeKind::Pointer(to) = type_of(look, data.ty)?.kind else {
            return None;
        };
        let number = |datum: &Datum| u64::try_from(datum.bits(look, lane)?).ok();
        let first = number(&self.member(look, data)?)?;
        let length = self.member(look, length)?;
        let count = match &type_of(look, length.ty)?.kind {
            // Elements along each axis.
            TypeKind::Structure(axes, None) => {
                let mut axes = length.members(look, axes).into_iter();
                axes.try_fold(1u64, |count, (_, axis)| count.checked_mul(number(&axis)?))?
            }
            _ => number(&length)?,
        };
        Some((first, to, count))
    }

    /// What a `Shared` or `DeviceStatic` holds, without the types around it; itself of everything else.
    pub(super) fn content(&self, look: &Look<'_>) -> Datum {
        let mut content = self.clone();
        let wanted = type_of(look, self.ty).and_then(|ty| held_by(&ty.name));
        let Some(wanted) = wanted else { return content };
        for _ in 0..MOST_NESTED {
            let Some(ty) = type_of(look, content.ty).filter(|ty| ty.name != wanted) else {
                return content;
            };
            let (TypeKind::Structure(members, None) | TypeKind::Union(members)) = &ty.kind else {
                break;
            };
            // Of what is around it, only one member has any bytes.
            let size = |member: &Member| type_of(look, member.ty).map_or(0, |ty| ty.bytes);
            let mut filled = members.iter().filter(|member| size(member) > 0);
            let only = filled.next().filter(|_| filled.next().is_none());
            match only.and_then(|member| content.member(look, member)) {
                Some(inner) => content = inner,
                None => break,
            }
        }
        self.clone()
    }

    /// How many elements it has, if it has elements.
    pub(super) fn elements(&self, look: &Look<'_>, lane: usize) -> Option<u64> {
        let of = self.content(look);
        if of != *self {
            return of.elements(look, lane);
        }
        match (self.slice(look, lane), &type_of(look, self.ty)?.kind) {
            (Some((_, _, count)), _) => Some(count),
            (None, TypeKind::Array(_, count)) => Some(*count),
            _ => None,
        }
    }

    /// What it is made of, by name: members, at most so many elements, what it points to.
    pub(super) fn parts(&self, look: &Look<'_>, most: usize, lane: usize) -> Vec<(String, Datum)> {
        let of = self.content(look);
        if of != *self {
            return of.parts(look, most, lane);
        }
        if let Some((first, ty, count)) = self.slice(look, lane) {
            let elements = (0..count.min(most as u64)).map_while(|index| {
                let element = element(look, first, ty, index)?;
                Some((format!("[{index}]"), element))
            });
            return elements.collect();
        }
        let Some(ty) = type_of(look, self.ty) else {
            return Vec::new();
        };
        match &ty.kind {
            TypeKind::Structure(members, variants) => {
                let mut parts = self.members(look, members);
                let variant = variants.as_ref();
                let variant = variant.and_then(|variants| self.variant(look, variants, lane));
                let content = variant.map(|(_, content)| content.parts(look, most, lane));
                parts.extend(content.unwrap_or_default());
                parts
            }
            TypeKind::Union(members) => self.members(look, members),
            TypeKind::Array(ty, count) => {
                let elements = (0..(*count).min(most as u64)).map_while(|index| {
                    let element = self.of_array(look, *ty, index)?;
                    Some((format!("[{index}]"), element))
                });
                elements.collect()
            }
            TypeKind::Pointer(_) => {
                let pointee = self.pointee(look, lane);
                let named = pointee.map(|datum| ("*".to_owned(), datum));
                named.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The parts of it that members are, by name.
    fn members(&self, look: &Look<'_>, members: &[Member]) -> Vec<(String, Datum)> {
        let named = |member: &Member| {
            let datum = self.member(look, member)?;
            Some((spoken(&member.name).to_owned(), datum))
        };
        members.iter().filter_map(named).collect()
    }

    /// An element of an array of a type.
    fn of_array(&self, look: &Look<'_>, ty: u32, index: u64) -> Option<Datum> {
        let offset = index.checked_mul(type_of(look, ty)?.bytes)?;
        let name = String::new();
        self.member(look, &Member { name, offset, ty })
    }
}

/// An element of what stands one behind the other from an address on.
fn element(look: &Look<'_>, first: u64, ty: u32, index: u64) -> Option<Datum> {
    let size = type_of(look, ty)?.bytes;
    let at = first.checked_add(index.checked_mul(size)?)?;
    let held = Held::Memory(at);
    look.has_memory(at, size).then_some(Datum { ty, held })
}

/// What a pointer of this name points to: `[u8]` for `&mut [u8]`.
fn pointee_name(name: &str) -> Option<&str> {
    let boxed = name.strip_prefix("alloc::boxed::Box<");
    let boxed = boxed.and_then(|of| of.strip_suffix('>'));
    ["&mut ", "&", "*const ", "*mut "]
        .iter()
        .find_map(|mark| name.strip_prefix(mark))
        .or(boxed)
}

/// The name of the type that a type of this name holds and hides: `[f32; 64]` for `thisgpu_gpu::shared::Shared<[f32;
/// 64]>`.
fn held_by(name: &str) -> Option<&str> {
    let (around, held) = name.strip_suffix('>')?.split_once('<')?;
    matches!(base_name(around), "Shared" | "DeviceStatic").then_some(held)
}

/// The name of a type without its path and arguments: `Point` of `geometry::Point<f32>`.
fn base_name(name: &str) -> &str {
    let plain = name.split(['<', ' ']).next().unwrap_or(name);
    match plain.starts_with(['(', '{', '&', '*']) {
        true => plain,
        false => plain.rsplit("::").next().unwrap_or(plain),
    }
}

/// The name of a member as the source has it: `0` for rustc's `__0`.
fn spoken(name: &str) -> &str {
    let number = name.strip_prefix("__");
    number
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .unwrap_or(name)
}
