//! How values of LLVM's types are values of CLIF's.
//!
//! A scalar is one value. A vector, an array and a structure are the values of their elements, one after the other. An
//! integer whose width CLIF lacks is the next wider one; the bits above its own are zero wherever it is at rest. One of
//! 256 bits is two of 128.

use super::wide::is_wide;
use crate::error::Problem;
use crate::layout;
use crate::model::Type;
use cranelift_codegen::ir::{self, types};

/// A value of CLIF that is part of one of LLVM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer of so many bits.
    Int(u32),
    /// A half.
    F16,
    /// A float.
    F32,
    /// A double.
    F64,
    /// A generic address.
    Pointer,
}

/// Most bits of an integer.
const MAX_BITS: u32 = 128;
/// Most parts of a value.
const MAX_PARTS: u64 = 4096;

impl Scalar {
    /// The truth of a condition.
    pub const BOOL: Scalar = Scalar::Int(1);

    /// Of a type that is no aggregate or vector.
    ///
    /// # Errors
    /// What has no values on the device.
    pub fn of(ty: &Type) -> Result<Self, Problem> {
        Ok(match ty {
            Type::Int(bits @ 1..=MAX_BITS) => Scalar::Int(*bits),
            Type::Int(bits) => {
                let message =
                    format!("integers of {bits} bits are not supported: {MAX_BITS} at most");
                return Err(Problem::Unsupported(message.into()));
            }
            Type::Half => Scalar::F16,
            Type::Float => Scalar::F32,
            Type::Double => Scalar::F64,
            Type::Pointer(0) => Scalar::Pointer,
            Type::Pointer(space) => {
                let message = format!(
                    "pointers of address space {space} are not supported; addresses are generic"
                );
                return Err(Problem::Unsupported(message.into()));
            }
            Type::Other(name) => {
                let message = format!("type `{name}` is not supported");
                return Err(Problem::Unsupported(message.into()));
            }
            Type::Void | Type::Vector(..) | Type::Array(..) | Type::Struct(_) => {
                return Err(Problem::Inconsistent(format!("{ty:?} is no scalar").into()));
            }
        })
    }

    /// The type in CLIF.
    pub fn clif(self) -> ir::Type {
        match self {
            Scalar::Int(bits) => container(bits),
            Scalar::F16 => types::F16,
            Scalar::F32 => types::F32,
            Scalar::F64 => types::F64,
            Scalar::Pointer => types::I64,
        }
    }

    /// The integer of the same size.
    pub fn pattern(self) -> ir::Type {
        match self {
            Scalar::F16 => types::I16,
            Scalar::F32 => types::I32,
            Scalar::F64 => types::I64,
            other => other.clif(),
        }
    }

    /// Its width.
    pub fn bits(self) -> u32 {
        match self {
            Scalar::Int(bits) => bits,
            other => other.clif().bits(),
        }
    }

    /// Whether it is a float.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::F32 | Scalar::F64)
    }
}

/// The narrowest integer of CLIF that has so many bits.
pub fn container(bits: u32) -> ir::Type {
    match bits {
        0..=8 => types::I8,
        9..=16 => types::I16,
        17..=32 => types::I32,
        33..=64 => types::I64,
        _ => types::I128,
    }
}

/// The parts of a value, in order.
///
/// # Errors
/// What has no values on the device.
pub fn parts(ty: &Type) -> Result<Vec<Scalar>, Problem> {
    let mut parts = Vec::with_capacity(count(ty)?);
    collect(ty, 0, &mut |scalar, _| parts.push(scalar))?;
    Ok(parts)
}

/// The parts of a value and where they are in memory.
///
/// # Errors
/// What has no values on the device, and vectors whose lanes are not whole bytes.
pub fn placed_parts(ty: &Type) -> Result<Vec<(Scalar, u64)>, Problem> {
    let mut parts = Vec::with_capacity(count(ty)?);
    collect(ty, 0, &mut |scalar, at| parts.push((scalar, at)))?;
    Ok(parts)
}

/// Whether it is a vector whose lanes share bytes in memory.
pub fn is_packed(ty: &Type) -> bool {
    ty.lanes().is_some() && layout::bits(ty.lane()).is_some_and(|bits| bits % 8 != 0)
}

/// How many parts of a value stand before an element of it, and how many the element has.
///
/// # Errors
/// An element that the type does not have.
pub fn part_range(ty: &Type, path: &[u64]) -> Result<std::ops::Range<usize>, Problem> {
    count(ty)?;
    let (mut start, mut inner) = (0, ty);
    for index in path {
        let missing = || Problem::Inconsistent(format!("{inner:?} has no element {index}").into());
        let element = inner.element(*index).ok_or_else(missing)?;
        start += match inner {
            Type::Struct(of) => {
                let before = &of.fields()[..*index as usize];
                before.iter().map(count).sum::<Result<usize, Problem>>()?
            }
            _ => *index as usize * count(element)?,
        };
        inner = element;
    }
    Ok(start..start + count(inner)?)
}

/// How many parts a value has.
///
/// # Errors
/// More than a value can have.
pub fn count(ty: &Type) -> Result<usize, Problem> {
    let parts = ty.extent().parts;
    if parts > MAX_PARTS {
        let message = format!(
            "a value of {parts} elements is not supported: {MAX_PARTS} at most; use memory"
        );
        return Err(Problem::TooLarge(message.into()));
    }
    Ok(parts as usize)
}

/// Hands the parts of a type that has [not too many](count) to `each`.
fn collect(ty: &Type, at: u64, each: &mut dyn FnMut(Scalar, u64)) -> Result<(), Problem> {
    match ty {
        _ if ty.extent().parts == 0 => {}
        Type::Vector(..) | Type::Array(..) | Type::Struct(_) => {
            for index in 0..ty.elements().unwrap_or(0) {
                let element = ty
                    .element(index)
                    .ok_or(Problem::Inconsistent("an element without a type".into()))?;
                let offset = layout::offset(ty, index).ok_or_else(|| {
                    Problem::NoSize(format!("{ty:?} has no place in memory").into())
                })?;
                collect(element, at + offset, each)?;
            }
        }
        wide if is_wide(wide) => [at, at + 16]
            .into_iter()
            .for_each(|at| each(Scalar::Int(128), at)),
        scalar => each(Scalar::of(scalar)?, at),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn aggregates_are_flat() {
        let inner = Type::Array(2, Arc::new(Type::Int(24)));
        let fields = vec![Type::BOOL, inner, Type::Double];
        let ty = layout::structure(false, fields);
        use Scalar::*;
        let placed = [(Int(1), 0), (Int(24), 4), (Int(24), 8), (F64, 16)];
        assert_eq!(placed_parts(&ty).unwrap(), placed);
        assert_eq!(part_range(&ty, &[1, 1]), Ok(2..3));
        assert_eq!(part_range(&ty, &[1]), Ok(1..3));
        assert_eq!(part_range(&ty, &[2]), Ok(3..4));
        assert!(part_range(&ty, &[3]).is_err());
        assert!(parts(&Type::Int(129)).is_err());
    }
}
