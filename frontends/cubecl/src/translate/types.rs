//! What CubeCL's types are in CLIF.
//!
//! A value of CubeCL is a list of CLIF values, its *lanes*: one for a scalar or a pointer, as many as it has elements
//! for a vector of any width, and those of its fields, one behind the other, for a slice or a checked pointer. CLIF has
//! no bf16: its lanes are the patterns, as i16.

use super::{Result, unsupported};
use cranelift_codegen::ir::{Type, types};
use cubecl_core::ir::{
    AddressSpace, AddressType, ContextExt, ElemType, FloatKind, IntKind, UIntKind,
    interfaces::{ScalarType, TypedExt},
    types::{ArrayType, AtomicType, PointerType, VectorType, aggregate},
};
use pliron::context::Context;
use pliron::printable::Printable;
use pliron::r#type::{TypeHandle, type_cast};

/// Where a pointer points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A buffer: an address in global memory.
    Global,
    /// Shared memory: an offset of 32 bits.
    Shared,
    /// A variable of the unit: an address of its stack.
    Local,
}

/// One lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// 0 or 1, in an i8; a byte in memory.
    Bool,
    /// An integer of so many bits.
    Int { bits: u8, signed: bool },
    /// f16.
    F16,
    /// The pattern of a bf16.
    BF16,
    /// f32, and the types that CubeCL lets a device compute in it.
    F32,
    /// f64.
    F64,
    /// An address.
    Pointer(Space),
}

impl Scalar {
    /// The type of the lane in CLIF.
    pub fn clif(self) -> Type {
        match self {
            Scalar::Bool => types::I8,
            Scalar::Int { bits, .. } => Type::int(bits.into()).unwrap_or(types::I64),
            Scalar::BF16 => types::I16,
            Scalar::F16 => types::F16,
            Scalar::F32 => types::F32,
            Scalar::F64 => types::F64,
            Scalar::Pointer(Space::Shared) => types::I32,
            Scalar::Pointer(Space::Global | Space::Local) => types::I64,
        }
    }

    /// The unsigned integer of as many bits, which a lane is the pattern of.
    pub fn pattern(self) -> Type {
        self.clif().as_int()
    }

    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        self.clif().bytes()
    }

    /// Whether it is a number with a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64)
    }

    /// Whether it is an integer with a sign.
    pub fn is_signed(self) -> bool {
        matches!(self, Scalar::Int { signed: true, .. })
    }
}

/// The lane that `usize` is in this kernel.
pub fn index(context: &Context) -> Scalar {
    let bits = match context.address_type() {
        AddressType::U32 => 32,
        AddressType::U64 => 64,
    };
    Scalar::Int {
        bits,
        signed: false,
    }
}

/// The lane of an element type.
fn element(context: &Context, element: ElemType) -> Option<Scalar> {
    let int = |bits, signed| Some(Scalar::Int { bits, signed });
    match element {
        ElemType::Index => Some(index(context)),
        ElemType::Bool => Some(Scalar::Bool),
        ElemType::Int(kind) => match kind {
            IntKind::I8 => int(8, true),
            IntKind::I16 => int(16, true),
            IntKind::I32 => int(32, true),
            IntKind::I64 => int(64, true),
        },
        ElemType::UInt(kind) => match kind {
            UIntKind::U8 => int(8, false),
            UIntKind::U16 => int(16, false),
            UIntKind::U32 => int(32, false),
            UIntKind::U64 => int(64, false),
        },
        ElemType::Float(kind) => match kind {
            FloatKind::F16 => Some(Scalar::F16),
            FloatKind::BF16 => Some(Scalar::BF16),
            FloatKind::F32 | FloatKind::Flex32 | FloatKind::TF32 => Some(Scalar::F32),
            FloatKind::F64 => Some(Scalar::F64),
            // Their conversions are arithmetic on the pattern: CubeCL lowers them before.
            FloatKind::E4M3 | FloatKind::E5M2 | FloatKind::UE8M0 | FloatKind::E2M1x2 => {
                int(8, false)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The lanes of a value of this type.
pub fn lanes(context: &Context, handle: TypeHandle) -> Result<Vec<Scalar>> {
    let mut found = Vec::new();
    collect(context, handle, &mut found)?;
    Ok(found)
}

fn collect(context: &Context, handle: TypeHandle, found: &mut Vec<Scalar>) -> Result<()> {
    let ty = handle.deref(context);
    if let Some(vector) = ty.downcast_ref::<VectorType>() {
        let lane = scalar(context, vector.inner)?;
        found.extend(std::iter::repeat_n(lane, vector.vectorization));
    } else if let Some(array) = ty.downcast_ref::<ArrayType>() {
        for _ in 0..array.length {
            collect(context, array.inner, found)?;
        }
    } else if let Some(atomic) = ty.downcast_ref::<AtomicType>() {
        collect(context, atomic.inner, found)?;
    } else if let Some(slice) = ty.downcast_ref::<aggregate::SliceType>() {
        collect(context, slice.base_ty, found)?;
        found.extend([index(context); 2]);
    } else if let Some(checked) = ty.downcast_ref::<aggregate::CheckedPtrType>() {
        collect(context, checked.base_ty, found)?;
        found.push(Scalar::Bool);
    } else {
        found.push(scalar(context, handle)?);
    }
    Ok(())
}

/// The lane of a type that has one.
pub fn scalar(context: &Context, handle: TypeHandle) -> Result<Scalar> {
    let ty = handle.deref(context);
    if let Some(pointer) = ty.downcast_ref::<PointerType>() {
        return Ok(Scalar::Pointer(match pointer.address_space {
            AddressSpace::Global(_) => Space::Global,
            AddressSpace::Shared => Space::Shared,
            AddressSpace::Local => Space::Local,
        }));
    }
    let found = type_cast::<dyn ScalarType>(&*ty).and_then(|ty| {
        let ty = ty.elem_type(context);
        element(context, ty)
    });
    found.ok_or_else(|| unsupported(format!("values of type {}", handle.disp(context))))
}

/// What a pointer points to.
pub fn pointee(context: &Context, pointer: TypeHandle) -> Result<TypeHandle> {
    let ty = pointer.deref(context);
    match ty.downcast_ref::<PointerType>() {
        Some(pointer) => Ok(pointer.inner),
        None => Err(unsupported(format!(
            "{} as a pointer",
            pointer.disp(context)
        ))),
    }
}

/// Bytes of a value in memory, and from one element of an array to the next.
pub fn bytes(context: &Context, handle: TypeHandle) -> u32 {
    u32::try_from(handle.size(context)).unwrap_or(u32::MAX)
}
