//! Types of CLIF by their names, as files hold them.

use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::types::{F16, F32, F64, F128, I8, I16, I32, I64, I128};
use serde::{Deserialize, Deserializer, Serializer};
use std::borrow::Cow;

/// Bytes of the largest type of a parameter.
const LARGEST: u32 = 64;
/// Types of a lane, with their names.
const LANES: [(&str, Type); 9] = [
    ("i8", I8),
    ("i16", I16),
    ("i32", I32),
    ("i64", I64),
    ("i128", I128),
    ("f16", F16),
    ("f32", F32),
    ("f64", F64),
    ("f128", F128),
];

/// The type that CLIF writes so: a number, or a vector of them.
pub fn type_named(name: &str) -> Option<Type> {
    let lane_named = |name: &str| Some(LANES.iter().find(|(lane, _)| *lane == name)?.1);
    let Some((lane, count)) = name.split_once('x') else {
        return lane_named(name);
    };
    let lane = lane_named(lane)?;
    let counts = (1..).map_while(|log| lane.by(1 << log));
    let mut types = counts.take_while(|ty| ty.bytes() <= LARGEST);
    types.find(|ty| is_written(count, ty.lane_count()))
}

/// Whether text is a number as it is written.
fn is_written(text: &str, number: u32) -> bool {
    text.parse() == Ok(number) && text.starts_with(|first: char| ('1'..='9').contains(&first))
}

/// What CLIF writes for a type.
pub fn name_of(ty: Type) -> Cow<'static, str> {
    match LANES.iter().find(|(_, lane)| *lane == ty) {
        Some((name, _)) => (*name).into(),
        None => ty.to_string().into(),
    }
}

/// Writes a type as its name; for `#[serde(with)]`.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(ty: &Type, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&name_of(*ty))
}

/// Reads a type by its name; for `#[serde(with)]`.
///
/// # Errors
/// The deserializer's, and words that are no type's name.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Type, D::Error> {
    let name = Cow::<str>::deserialize(deserializer)?;
    type_named(&name).ok_or_else(|| serde::de::Error::custom(format!("no type `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type that a parameter can have is found by what CLIF writes; other words are none.
    #[test]
    fn types_have_their_names() {
        for name in [
            "i8", "i128", "f16", "f32", "f64", "f16x2", "i32x4", "i8x16", "i8x64",
        ] {
            let ty = type_named(name).unwrap();
            assert_eq!((&*ty.to_string(), &*name_of(ty)), (name, name));
        }
        for name in [
            "", "ptr", "at", "i7", "f32x3", "f32x0", "bf16", "f32x1", "f32x04", "f32x+4", "f32x",
            "xf32", "i8x128", "f32x4x", "i32x4xN",
        ] {
            assert_eq!(type_named(name), None, "{name}");
        }
    }
}
