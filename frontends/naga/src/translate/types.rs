//! Types of naga: the scalars in them, where these lie in memory, and the types of CLIF that they are.
//!
//! A scalar of a value is a *leaf*. Leaves are counted in the order of the type: members of a structure, elements of an
//! array, columns of a matrix, components of a vector. Padding has none.

use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::types::{F16, F32, F64, I8, I16, I32, I64};
use naga::proc::{IndexableLength, TypeResolution};
use naga::{ArraySize, Scalar, ScalarKind, TypeInner, VectorSize};

/// A type: a handle, or one that the module's list does not have.
pub(super) type Ty = TypeResolution;

/// A scalar in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaf {
    pub scalar: Scalar,
    /// In bytes from the beginning of the value.
    pub offset: u32,
}

/// A part of a type.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub ty: Ty,
    /// In bytes from the beginning of the whole.
    pub offset: u32,
    /// The number of leaves in front of it.
    pub first: u64,
}

/// What is indexed, and how far its parts are apart.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub element: Ty,
    /// In bytes.
    pub stride: u32,
    /// None of an array whose length is that of its buffer.
    pub length: Option<u32>,
}

/// The type of CLIF of a scalar; a bool is an i8 of 0 or 1.
pub(super) fn clif(scalar: Scalar) -> Result<ir::Type> {
    Ok(match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => I8,
        (ScalarKind::Sint | ScalarKind::Uint, 2) => I16,
        (ScalarKind::Sint | ScalarKind::Uint, 4) => I32,
        (ScalarKind::Sint | ScalarKind::Uint, 8) => I64,
        (ScalarKind::Float, 2) => F16,
        (ScalarKind::Float, 4) => F32,
        (ScalarKind::Float, 8) => F64,
        (kind, width) => {
            return Err(invalid(format!("a scalar {kind:?} of {width} bytes")));
        }
    })
}

/// A scalar type's resolution.
pub(super) fn scalar_ty(scalar: Scalar) -> Ty {
    TypeResolution::Value(TypeInner::Scalar(scalar))
}

/// Bytes from one column of a matrix to the next.
pub(super) fn column_stride(rows: VectorSize, scalar: Scalar) -> u32 {
    let rows = match rows {
        VectorSize::Tri if !planted(Mistake::ColumnStride) => 4,
        rows => rows.into(),
    };
    rows * u32::from(scalar.width)
}

impl<'a> Translator<'a, '_, '_> {
    /// The inside of a type.
    pub(super) fn inner<'t>(&self, ty: &'t Ty) -> &'t TypeInner
    where
        'a: 't,
    {
        ty.inner_with(self.types.types)
    }

    /// The number of an array's elements; none if it is its buffer's.
    fn array_length(&self, size: ArraySize) -> Result<Option<u32>> {
        match size.resolve(self.types) {
            Ok(IndexableLength::Known(length)) => Ok(Some(length)),
            Ok(IndexableLength::Dynamic) => Ok(None),
            Err(error) => Err(invalid(error.to_string())),
        }
    }

    /// What of a type an index chooses.
    pub(super) fn sequence(&self, ty: &Ty) -> Result<Sequence> {
        Ok(match *self.inner(ty) {
            TypeInner::Vector { size, scalar } => Sequence {
                element: scalar_ty(scalar),
                stride: scalar.width.into(),
                length: Some(size.into()),
            },
            TypeInner::Matrix {
                columns,
                rows,
                scalar,
            } => Sequence {
                element: Ty::Value(TypeInner::Vector { size: rows, scalar }),
                stride: column_stride(rows, scalar),
                length: Some(columns.into()),
            },
            TypeInner::Array { base, size, stride } => Sequence {
                element: Ty::Handle(base),
                stride,
                length: self.array_length(size)?,
            },
            TypeInner::BindingArray { .. } => return Err(unsupported("arrays of bindings")),
            ref inner => return Err(invalid(format!("an index into {inner:?}"))),
        })
    }

    /// A part of a type by a constant index.
    pub(super) fn part(&self, ty: &Ty, index: u32) -> Result<Part> {
        if let TypeInner::Struct { members, .. } = self.inner(ty) {
            let member = members.get(index as usize);
            let member = member.ok_or_else(|| invalid("a member that there is not"))?;
            let mut first = 0;
            for before in &members[..index as usize] {
                first += self.count(&Ty::Handle(before.ty))?;
            }
            return Ok(Part {
                ty: Ty::Handle(member.ty),
                offset: match planted(Mistake::Padding) {
                    true => 4 * first as u32,
                    false => member.offset,
                },
                first,
            });
        }
        let sequence = self.sequence(ty)?;
        if sequence.length.is_some_and(|length| index >= length) {
            return Err(invalid(format!("the constant index {index}")));
        }
        let count = self.count(&sequence.element)?;
        let offset = u64::from(index) * u64::from(sequence.stride);
        Ok(Part {
            offset: u32::try_from(offset).map_err(|_| unsupported("an offset of 4 GiB"))?,
            ty: sequence.element,
            first: u64::from(index) * count,
        })
    }

    /// How many leaves a type has.
    pub(super) fn count(&self, ty: &Ty) -> Result<u64> {
        Ok(match *self.inner(ty) {
            TypeInner::Scalar(_) | TypeInner::Atomic(_) => 1,
            TypeInner::Vector { size, .. } => u64::from(u32::from(size)),
            TypeInner::Matrix { columns, rows, .. } => {
                u64::from(u32::from(columns) * u32::from(rows))
            }
            TypeInner::Array { base, size, .. } => {
                let length = self.array_length(size)?;
                let length = length.ok_or_else(|| invalid("a value without a length"))?;
                self.count(&Ty::Handle(base))?.saturating_mul(length.into())
            }
            TypeInner::Struct { ref members, .. } => {
                let mut count = 0u64;
                for member in members {
                    count = count.saturating_add(self.count(&Ty::Handle(member.ty))?);
                }
                count
            }
            ref other => return Err(self.no_value(other)),
        })
    }

    /// The leaves of a type, which must be few.
    pub(super) fn leaves(&self, ty: &Ty) -> Result<Vec<Leaf>> {
        let mut leaves = Vec::new();
        self.add_leaves(ty, 0, &mut leaves)?;
        Ok(leaves)
    }

    fn add_leaves(&self, ty: &Ty, offset: u32, leaves: &mut Vec<Leaf>) -> Result<()> {
        match self.inner(ty) {
            &TypeInner::Scalar(scalar) | &TypeInner::Atomic(scalar) => {
                leaves.push(Leaf { scalar, offset });
            }
            TypeInner::Struct { members, .. } => {
                for member in members {
                    self.add_leaves(&Ty::Handle(member.ty), offset + member.offset, leaves)?;
                }
            }
            TypeInner::Vector { .. } | TypeInner::Matrix { .. } | TypeInner::Array { .. } => {
                let sequence = self.sequence(ty)?;
                let length = sequence.length;
                let length = length.ok_or_else(|| invalid("a value without a length"))?;
                for index in 0..length {
                    let offset = offset + index * sequence.stride;
                    self.add_leaves(&sequence.element, offset, leaves)?;
                }
            }
            other => return Err(self.no_value(other)),
        }
        Ok(())
    }

    fn no_value(&self, inner: &TypeInner) -> crate::error::Reason {
        match inner {
            TypeInner::Image { .. } => unsupported("textures"),
            TypeInner::Sampler { .. } => unsupported("samplers"),
            TypeInner::AccelerationStructure { .. } | TypeInner::RayQuery { .. } => {
                unsupported("ray queries")
            }
            TypeInner::CooperativeMatrix { .. } => unsupported("cooperative matrices"),
            TypeInner::BindingArray { .. } => unsupported("arrays of bindings"),
            other => invalid(format!("a value of the type {other:?}")),
        }
    }

    /// The scalar that all leaves of a type are.
    pub(super) fn scalar(&self, ty: &Ty) -> Result<Scalar> {
        let scalar = self.inner(ty).scalar();
        scalar.ok_or_else(|| invalid("an operand that is neither scalar, vector nor matrix"))
    }

    /// Size of a type in bytes, and what its address is a multiple of.
    pub(super) fn layout(&self, ty: &Ty) -> Result<(u32, u32)> {
        if let Ty::Handle(handle) = ty {
            let layout = self.layouter[*handle];
            return Ok((layout.size, layout.alignment * 1));
        }
        let leaves = self.leaves(ty)?;
        let end = |leaf: &Leaf| leaf.offset + u32::from(leaf.scalar.width);
        let size = leaves.iter().map(end).max().unwrap_or(0);
        let width = leaves
            .first()
            .map_or(1, |leaf| u32::from(leaf.scalar.width));
        Ok((
            size.next_multiple_of(width),
            (size.next_power_of_two()).min(16),
        ))
    }
}
