//! Types of CLIF by their names, as files hold them.

use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::types::{F16, F32, F64, F128, I8, I16, I32, I64, I128};
use serde::{Deserialize, Deserializer, Serializer};

/// Bytes of the largest type of a parameter.
const LARGEST: u32 = 64;

/// The type that CLIF writes so: a number, or a vector of them.
pub fn type_named(name: &str) -> Option<Type> {
    let lanes = [I8, I16, I32, I64, I128, F16, F32, F64, F128];
    let mut types = lanes.into_iter().flat_map(|lane| {
        let counts = (0..).map_while(move |log| lane.by(1 << log));
        counts.take_while(|ty| ty.bytes() <= LARGEST)
    });
    types.find(|ty| ty.to_string() == name)
}

/// Writes a type as its name; for `#[serde(with)]`.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(ty: &Type, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(ty)
}

/// Reads a type by its name; for `#[serde(with)]`.
///
/// # Errors
/// The deserializer's, and words that are no type's name.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Type, D::Error> {
    let name = String::deserialize(deserializer)?;
    type_named(&name).ok_or_else(|| serde::de::Error::custom(format!("no type `{name}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every type that a parameter can have is found by what CLIF writes; other words are none.
    #[test]
    fn types_have_their_names() {
        for name in ["i8", "i128", "f16", "f32", "f64", "f16x2", "i32x4", "i8x16"] {
            assert_eq!(type_named(name).map(|ty| ty.to_string()), Some(name.into()));
        }
        for name in ["", "ptr", "at", "i7", "f32x3", "f32x0", "bf16"] {
            assert_eq!(type_named(name), None, "{name}");
        }
    }
}
