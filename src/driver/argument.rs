//! Values that go to kernels: numbers by value, buffers by address.
//!
//! A parameter takes what has its kind and size: an integer parameter integers, of either sign, a float parameter
//! floats. Who passes an address to an i64 may do so, since CLIF has no type for addresses. A vector parameter takes
//! whatever has its size, but no address. Of a kernel whose object does not name types, only sizes are checked.

use super::buffer::{Buffer, DevicePointer, Memory};
use crate::object::{Parameter, ParameterKind};
use bytemuck::Pod;
use cranelift_codegen::ir::types::F128;
use half::{bf16, f16};
use std::fmt;
use std::sync::Arc;

macro_rules! numbers {
    ($($ty:ident $kind:ident),*) => {
        $(
            impl Argument for $ty {
                fn value(&self) -> Value {
                    Value {
                        bytes: self.to_le_bytes().to_vec(),
                        kind: Kind::$kind(stringify!($ty)),
                        owner: None,
                    }
                }
            }
        )*
    };
}

// CLIF has no type for bf16; its values are those of i16.
numbers!(
    i8 Integer, u8 Integer, i16 Integer, u16 Integer, i32 Integer, u32 Integer, i64 Integer, u64 Integer,
    i128 Integer, u128 Integer, f16 Float, f32 Float, f64 Float, bf16 Integer
);

/// A vector: its elements in order. Addresses make no vector, since none would keep their memory.
impl<T: Argument, const N: usize> Argument for [T; N] {
    fn value(&self) -> Value {
        let elements = self.each_ref().map(T::value);
        let is_pointer = elements.iter().any(|e| e.kind == Kind::Pointer);
        Value {
            bytes: elements.iter().flat_map(|e| e.bytes.clone()).collect(),
            kind: if is_pointer {
                Kind::Pointers(N)
            } else {
                Kind::Vector(std::any::type_name::<Self>())
            },
            owner: None,
        }
    }
}

/// A value that a kernel parameter can take.
pub trait Argument {
    /// Its bytes and what it is.
    fn value(&self) -> Value;
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An integer of this type.
    Integer(&'static str),
    /// A float of this type.
    Float(&'static str),
    /// Several numbers.
    Vector(&'static str),
    /// An address.
    Pointer,
    /// So many addresses, which no parameter takes.
    Pointers(usize),
}

/// Keeps the memory of an argument alive.
#[derive(Clone)]
pub struct Owner(Arc<Memory>);

impl Owner {
    /// The number of the device it is on.
    pub(super) fn device_identity(&self) -> usize {
        self.0.device_identity()
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

/// An argument's bytes.
#[derive(Clone, Debug)]
pub struct Value {
    /// Little-endian.
    pub bytes: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// The memory that it is the address of; none for numbers and raw addresses.
    pub owner: Option<Owner>,
}

impl Argument for DevicePointer {
    fn value(&self) -> Value {
        Value {
            bytes: self.0.to_le_bytes().to_vec(),
            kind: Kind::Pointer,
            owner: None,
        }
    }
}

impl<T: Pod> Argument for Buffer<T> {
    fn value(&self) -> Value {
        Value {
            bytes: self.address().to_le_bytes().to_vec(),
            kind: Kind::Pointer,
            owner: Some(Owner(self.memory().clone())),
        }
    }
}

impl<A: Argument + ?Sized> Argument for &A {
    fn value(&self) -> Value {
        (**self).value()
    }
}

impl Value {
    /// Whether a parameter takes it.
    pub fn fits(&self, parameter: &Parameter) -> bool {
        if matches!(self.kind, Kind::Pointers(_)) {
            return false;
        }
        let is_pointer = self.kind == Kind::Pointer;
        let fits_kind = match (parameter.kind, parameter.ty) {
            (ParameterKind::Pointer, _) => is_pointer,
            (ParameterKind::Value, None) => true,
            (ParameterKind::Value, Some(ty)) if ty.is_float() && ty != F128 => {
                matches!(self.kind, Kind::Float(_))
            }
            (ParameterKind::Value, Some(ty)) if ty.is_int() => {
                matches!(self.kind, Kind::Integer(_) | Kind::Pointer)
            }
            // No number of the host's is a vector or an f128: whoever passes one passes its bits.
            (ParameterKind::Value, Some(_)) => !is_pointer,
        };
        fits_kind && self.bytes.len() == parameter.size as usize
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        let bytes = self.bytes.len();
        match self.kind {
            Kind::Integer("bf16") => "bf16, which goes to an i16".to_string(),
            Kind::Integer(name) | Kind::Float(name) => name.to_string(),
            Kind::Vector(name) => format!("{name}, {bytes} bytes"),
            Kind::Pointer => "an address".to_string(),
            Kind::Pointers(number) => {
                format!("an array of {number}, each an address: pass one an argument")
            }
        }
    }
}

/// What a parameter is, for messages.
pub fn describe(parameter: &Parameter) -> String {
    match (parameter.kind, parameter.ty) {
        (ParameterKind::Pointer, _) => "an address: pass a buffer".to_string(),
        (ParameterKind::Value, Some(ty)) if ty.is_vector() => {
            format!("{ty}, {} bytes", parameter.size)
        }
        (ParameterKind::Value, Some(ty)) => ty.to_string(),
        (ParameterKind::Value, None) => format!("a value of {} bytes", parameter.size),
    }
}
