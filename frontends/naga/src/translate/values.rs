//! Values: lists of CLIF values, or, where these would be too many, memory that nobody writes any more.

use super::memory::Address;
use super::places::Place;
use super::types::{Ty, clif};
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use cranelift_codegen::ir;
use cranelift_codegen::ir::types::{F16, F32, F64, I16};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData};
use naga::Scalar;

/// The leaves of a value.
pub(super) type Lanes = Vec<ir::Value>;

/// A value of more leaves than these lies in memory (*assumed*).
pub(super) const MOST_LANES: u64 = 64;

/// A value of naga.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Its leaves.
    Lanes(Lanes),
    /// Memory that holds it, laid out as its type, and is not written while the value lives: the thread's own, or what
    /// the kernel only reads.
    Stored(Address),
    /// A pointer.
    Place(Place),
}

impl Translator<'_, '_, '_> {
    /// The type of an expression.
    pub(super) fn type_of(&self, expression: naga::Handle<naga::Expression>) -> Ty {
        self.frame.info[expression].ty.clone()
    }

    /// A value as its leaves.
    pub(super) fn lanes(&mut self, expression: naga::Handle<naga::Expression>) -> Result<Lanes> {
        match self.value(expression)? {
            Value::Lanes(lanes) => Ok(lanes),
            Value::Stored(address) => {
                let ty = self.type_of(expression);
                self.load_lanes(address, &ty)
            }
            Value::Place(_) => Err(invalid("a pointer as a value")),
        }
    }

    /// A value that is one scalar.
    pub(super) fn single(
        &mut self,
        expression: naga::Handle<naga::Expression>,
    ) -> Result<ir::Value> {
        match self.lanes(expression)?[..] {
            [value] => Ok(value),
            _ => Err(invalid("several components where one is expected")),
        }
    }

    /// A pointer.
    pub(super) fn place(&mut self, expression: naga::Handle<naga::Expression>) -> Result<Place> {
        match self.value(expression)? {
            Value::Place(place) => Ok(place),
            _ => Err(invalid("a value as a pointer")),
        }
    }

    /// A number of a scalar type, whose pattern it is in the low bits.
    pub(super) fn constant(&mut self, scalar: Scalar, pattern: u64) -> Result<ir::Value> {
        let ty = clif(scalar)?;
        Ok(match ty {
            F16 => {
                let bits = self.builder.ins().iconst(I16, pattern as u16 as i64);
                self.builder.ins().bitcast(F16, MemFlagsData::new(), bits)
            }
            F32 => (self.builder.ins()).f32const(ir::immediates::Ieee32::with_bits(pattern as u32)),
            F64 => (self.builder.ins()).f64const(ir::immediates::Ieee64::with_bits(pattern)),
            _ => self.integer(ty, pattern as i64),
        })
    }

    /// A number of floating point.
    pub(super) fn float_constant(&mut self, scalar: Scalar, value: f64) -> Result<ir::Value> {
        let pattern = match scalar.width {
            2 => half::f16::from_f64(value).to_bits().into(),
            4 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        };
        self.constant(scalar, pattern)
    }

    /// An integer, cut to its type.
    pub(super) fn integer(&mut self, ty: ir::Type, value: i64) -> ir::Value {
        let mask = match ty.bits() {
            64.. => u64::MAX,
            bits => (1 << bits) - 1,
        };
        self.builder.ins().iconst(ty, (value as u64 & mask) as i64)
    }

    /// The zero of each leaf.
    pub(super) fn zero_lanes(&mut self, ty: &Ty) -> Result<Lanes> {
        let leaves = self.leaves(ty)?;
        let mut lanes = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            lanes.push(self.constant(leaf.scalar, 0)?);
        }
        Ok(lanes)
    }

    /// Whether values of a type lie in memory.
    pub(super) fn is_stored(&self, ty: &Ty) -> Result<bool> {
        let count = self.count(ty)?;
        if count > MOST_ELEMENTS {
            return Err(unsupported(format!(
                "a value of {count} scalars: keep it in a buffer or in workgroup memory"
            )));
        }
        Ok(count > MOST_LANES)
    }
}

/// The most leaves of a value, so that it fits in the local memory of a thread.
const MOST_ELEMENTS: u64 = 1 << 19;
