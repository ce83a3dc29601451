//! Values that go to kernels: scalars by value, buffers by address; and elements of buffers.

use super::Buffer;
use crate::object::{Parameter, ParameterKind};
use half::{bf16, f16};

/// A plain number, little-endian on the device.
pub trait Element: Copy {
    /// Bytes.
    const BYTES: usize;
    /// Name in messages.
    const NAME: &'static str;
    /// Appends its bytes.
    fn put(self, bytes: &mut Vec<u8>);
    /// Reads it from [`Element::BYTES`] bytes.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($ty:ident),*) => {
        $(
            impl Element for $ty {
                const BYTES: usize = size_of::<$ty>();
                const NAME: &'static str = stringify!($ty);
                fn put(self, bytes: &mut Vec<u8>) {
                    bytes.extend_from_slice(&self.to_le_bytes());
                }
                fn get(bytes: &[u8]) -> Self {
                    let mut buffer = [0; size_of::<$ty>()];
                    buffer.copy_from_slice(bytes);
                    $ty::from_le_bytes(buffer)
                }
            }
            impl Argument for $ty {
                fn value(&self) -> Value {
                    let mut bytes = Vec::with_capacity(Self::BYTES);
                    self.put(&mut bytes);
                    Value { bytes, kind: Kind::Scalar(Self::NAME), owner: None }
                }
            }
        )*
    };
}

elements!(
    i8, u8, i16, u16, i32, u32, i64, u64, i128, u128, f32, f64, f16, bf16
);

/// An address on the device that no [`Buffer`] stands for: part of a buffer, a data object, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DevicePointer(pub u64);

/// A value that a kernel parameter can take.
pub trait Argument {
    /// Its bytes and what it is.
    fn value(&self) -> Value;
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of this type.
    Scalar(&'static str),
    /// An address.
    Pointer,
}

/// An argument's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Little-endian.
    pub bytes: Vec<u8>,
    /// What it is.
    pub kind: Kind,
    /// Identity of the device that the memory belongs to; none for numbers and raw addresses.
    pub owner: Option<usize>,
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

impl Argument for Buffer {
    fn value(&self) -> Value {
        Value {
            bytes: self.address().to_le_bytes().to_vec(),
            kind: Kind::Pointer,
            owner: Some(self.device_identity()),
        }
    }
}

impl<A: Argument + ?Sized> Argument for &A {
    fn value(&self) -> Value {
        (**self).value()
    }
}

impl Value {
    /// Whether a parameter takes it. An eight-byte value may be an address: CLIF has one type for both.
    pub fn fits(&self, parameter: &Parameter) -> bool {
        let size = self.bytes.len() == parameter.size as usize;
        size && (parameter.kind == ParameterKind::Value || self.kind == Kind::Pointer)
    }

    /// What it is, for messages.
    pub fn describe(&self) -> String {
        match self.kind {
            Kind::Scalar(name) => format!("{name}, {} bytes", self.bytes.len()),
            Kind::Pointer => "an address of 8 bytes".to_string(),
        }
    }
}

/// What a parameter is, for messages.
pub fn describe(parameter: &Parameter) -> String {
    match parameter.kind {
        ParameterKind::Value => format!("a value of {} bytes", parameter.size),
        ParameterKind::Pointer => "an address: pass a buffer".to_string(),
    }
}
