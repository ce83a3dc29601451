//! Sizes and alignments of types in memory, and the check of what a module says about them.
//!
//! The kernel's crate is compiled for the host, whose layout the device has too: little-endian, pointers of 64 bits,
//! every integer up to 128 bits and every float aligned to its size.

use crate::error::ReadError;
use crate::model::{Places, Struct, Type};
use std::borrow::Cow;
use std::sync::Arc;

/// Bytes of a generic address.
pub const POINTER_BYTES: u64 = 8;

/// Checks that a data layout is the one that the functions here assume.
///
/// # Errors
/// What is different.
pub fn check(layout: &str) -> Result<(), ReadError> {
    let specifications: Vec<&str> = layout.split('-').collect();
    let wrong = |difference: Cow<'static, str>| {
        let layout = layout.to_owned();
        Err(ReadError::Layout { layout, difference })
    };
    if !specifications.contains(&"e") {
        return wrong("memory must be little-endian".into());
    }
    // Without a word, LLVM aligns i64 to 4 bytes and i128 to those of i64.
    for integer in ["i64:64", "i128:128"] {
        if !specifications
            .iter()
            .any(|found| *found == integer || found.starts_with(&format!("{integer}:")))
        {
            return wrong(format!("`{integer}` must be there").into());
        }
    }
    for specification in &specifications {
        let Some((kind, sizes)) = specification.split_once(':') else {
            continue;
        };
        let expected = match kind {
            "p" | "p0" => "64:64",
            "i1" | "i8" => "8",
            "i16" | "f16" => "16",
            "i32" | "f32" => "32",
            "f64" | "v64" => "64",
            "v128" => "128",
            _ => continue,
        };
        if !(sizes == expected || sizes.starts_with(&format!("{expected}:"))) {
            return wrong(format!("`{specification}` must be `{kind}:{expected}`").into());
        }
    }
    Ok(())
}

/// A structure with these fields, `packed` if none of them is aligned.
pub fn structure(packed: bool, fields: Vec<Type>) -> Type {
    let places = places(packed, &fields);
    Type::Struct(Arc::new(Struct::new(packed, fields, places)))
}

/// Lays out the fields of a structure; none if one of them has no place in memory, or all of them are too many bytes.
fn places(packed: bool, fields: &[Type]) -> Option<Places> {
    let (mut end, mut most) = (0_u64, 1);
    let mut offsets = Vec::with_capacity(fields.len());
    for field in fields {
        if !packed {
            let align = align(field)?;
            end = end.checked_next_multiple_of(align)?;
            most = most.max(align);
        }
        offsets.push(end);
        end = end.checked_add(size(field)?)?;
    }
    Some(Places {
        offsets,
        size: end.checked_next_multiple_of(most)?,
        align: most,
    })
}

/// Bytes that a value takes, without what fills up to its alignment; none of a type that has no place in memory.
pub fn store_size(ty: &Type) -> Option<u64> {
    Some(match ty {
        Type::Int(bits) => u64::from(bits.div_ceil(8)),
        Type::Half => 2,
        Type::Float => 4,
        Type::Double => 8,
        Type::Pointer(0) => POINTER_BYTES,
        Type::Vector(lanes, lane) => u64::from(*lanes).checked_mul(bits(lane)?)?.div_ceil(8),
        Type::Array(count, element) => size(element)?.checked_mul(*count)?,
        Type::Struct(of) => of.places()?.size,
        Type::Void | Type::Pointer(_) | Type::Other(_) => return None,
    })
}

/// Bits of a lane of a vector.
pub fn bits(lane: &Type) -> Option<u64> {
    match lane {
        Type::Int(bits) => Some(u64::from(*bits)),
        other => store_size(other)?.checked_mul(8),
    }
}

/// Bytes from one element of an array to the next.
pub fn size(ty: &Type) -> Option<u64> {
    match ty {
        Type::Array(..) | Type::Struct(_) => store_size(ty),
        _ => store_size(ty)?.checked_next_multiple_of(align(ty)?),
    }
}

/// Alignment in bytes.
pub fn align(ty: &Type) -> Option<u64> {
    Some(match ty {
        Type::Int(bits) => u64::from(bits.div_ceil(8)).next_power_of_two().min(16),
        Type::Vector(..) => store_size(ty)?.checked_next_power_of_two()?,
        Type::Array(_, element) => align(element)?,
        Type::Struct(of) => of.places()?.align,
        other => store_size(other)?,
    })
}

/// The byte at which an element of an aggregate begins.
pub fn offset(ty: &Type, index: u64) -> Option<u64> {
    match ty {
        Type::Struct(of) => {
            let places = of.places()?;
            places.offsets.get(usize::try_from(index).ok()?).copied()
        }
        Type::Array(_, element) => size(element)?.checked_mul(index),
        Type::Vector(_, lane) => (bits(lane)?.checked_mul(index)?).checked_div(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_of_hosts_is_taken_and_others_are_not() {
        let x86 = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128";
        let arm = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32";
        assert_eq!((check(x86), check(arm)), (Ok(()), Ok(())));
        for wrong in [
            "E-i64:64-i128:128",
            "e-m:e-p:32:32-i64:64-i128:128",
            "e-i128:128",
            "e-i64:64",
            "e-i64:64-i128:128-f64:32:64",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_offsets() {
        let fields = vec![
            Type::Int(8),
            Type::Int(24),
            Type::Int(128),
            Type::Array(3, Arc::new(Type::Int(16))),
        ];
        let of = |packed| {
            let fields = fields.clone();
            structure(packed, fields)
        };
        let (loose, packed) = (of(false), of(true));
        let offsets = |ty| [0, 1, 2, 3].map(|index| offset(ty, index).unwrap());
        assert_eq!(offsets(&loose), [0, 4, 16, 32]);
        assert_eq!((size(&loose), align(&loose)), (Some(48), Some(16)));
        assert_eq!(offsets(&packed), [0, 1, 5, 21]);
        assert_eq!((size(&packed), align(&packed)), (Some(27), Some(1)));
        let mask = Type::Vector(12, Arc::new(Type::BOOL));
        assert_eq!((store_size(&mask), align(&mask)), (Some(2), Some(2)));
        assert_eq!(size(&Type::Pointer(3)), None);
    }
}
