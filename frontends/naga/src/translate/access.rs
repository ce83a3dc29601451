//! Indices: of pointers and of values, with the policy for those behind the end.

use super::memory::{Address, Space};
use super::places::{Place, Storage};
use super::types::{Sequence, Ty};
use super::values::{Lanes, Value};
use super::{Bounds, Result, Translator};
use crate::error::{invalid, unsupported};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, TrapCode};
use naga::{ArraySize, Expression, Handle, Literal, ScalarKind, TypeInner};

/// What ends a launch under [`Bounds::Fault`].
const OUT_OF_BOUNDS: TrapCode = TrapCode::unwrap_user(Bounds::TRAP);

/// A value with more elements than these is indexed in memory (*assumed*).
const MOST_SELECTS: u32 = 4;

/// An index that has been looked at: no larger than 32 bits, and whether it is inside where that is to be told.
struct Checked {
    index: ir::Value,
    inside: Option<ir::Value>,
}

impl Translator<'_, '_, '_> {
    /// `Expression::Access`.
    pub(super) fn access(
        &mut self,
        base: Handle<Expression>,
        index: Handle<Expression>,
    ) -> Result<Value> {
        let known = self.constant_index(index);
        let base_value = match self.value(base)? {
            Value::Place(place) => return self.access_place(place, index).map(Value::Place),
            value => value,
        };
        let ty = self.type_of(base);
        let sequence = self.sequence(&ty)?;
        let length = sequence
            .length
            .ok_or_else(|| invalid("a value without a length"))?;
        if let Some(index) = known
            && index < length
        {
            return self.access_part(base_value, &ty, index);
        }
        // Constants have memory that is written once.
        let stored = match base_value {
            Value::Stored(address) => Some(address),
            _ if length > MOST_SELECTS => self.constant_slot(base)?,
            _ => None,
        };
        let index = self.index(index)?;
        let bounds = self.options.bounds;
        let length_value = self.integer(I32, length.into());
        let checked = self.checked(index, length_value, bounds);
        let address = match (stored, base_value) {
            (Some(address), _) => address,
            (None, Value::Lanes(lanes)) if length <= MOST_SELECTS => {
                return self.selected(&lanes, length, &checked).map(Value::Lanes);
            }
            (None, Value::Lanes(lanes)) => {
                let address = self.slot(&ty)?;
                self.store_lanes(address, &ty, &lanes)?;
                address
            }
            (None, _) => return Err(invalid("an index into a pointer")),
        };
        let mut element = self.element(address, checked.index, sequence.stride);
        element.inside = checked.inside;
        self.load(&Place {
            ty: sequence.element,
            storage: Storage::Memory(element),
        })
    }

    /// A part of a value by a constant index.
    pub(super) fn access_part(&mut self, value: Value, ty: &Ty, index: u32) -> Result<Value> {
        match value {
            Value::Place(place) => self.part_place(&place, index).map(Value::Place),
            Value::Stored(address) => {
                let part = self.part(ty, index)?;
                let storage = Storage::Memory(address.plus(part.offset)?);
                self.load(&Place {
                    ty: part.ty,
                    storage,
                })
            }
            Value::Lanes(lanes) => {
                let part = self.part(ty, index)?;
                let first = part.first as usize;
                let count = self.count(&part.ty)? as usize;
                let lanes = lanes.get(first..first + count);
                let lanes = lanes.ok_or_else(|| invalid("a part outside of its value"))?;
                Ok(Value::Lanes(lanes.to_vec()))
            }
        }
    }

    /// A part of what is at a place, by a constant index. naga knows it to be inside but for an array without a length;
    /// of that the first element is always there.
    fn part_place(&mut self, place: &Place, index: u32) -> Result<Place> {
        match self.inner(&place.ty) {
            TypeInner::Array {
                size: ArraySize::Dynamic,
                ..
            } if index > 0 => {
                let sequence = self.sequence(&place.ty)?;
                let index = self.integer(I32, index.into());
                self.element_place(place, sequence, index)
            }
            _ => self.part_of(place, index),
        }
    }

    fn access_place(&mut self, place: Place, index: Handle<Expression>) -> Result<Place> {
        let sequence = self.sequence(&place.ty)?;
        if let (Some(known), Some(length)) = (self.constant_index(index), sequence.length)
            && known < length
        {
            return self.part_of(&place, known);
        }
        let index = self.index(index)?;
        self.element_place(&place, sequence, index)
    }

    /// An index of 32 or 64 bits: a narrow one keeps its number, so that a negative one is behind every end.
    fn index(&mut self, index: Handle<Expression>) -> Result<ir::Value> {
        let value = self.single(index)?;
        let scalar = self.scalar(&self.type_of(index))?;
        Ok(match scalar.kind {
            _ if scalar.width >= 4 => value,
            ScalarKind::Sint => self.builder.ins().sextend(I32, value),
            _ => self.builder.ins().uextend(I32, value),
        })
    }

    /// The element at an index that has not been looked at.
    fn element_place(
        &mut self,
        place: &Place,
        sequence: Sequence,
        index: ir::Value,
    ) -> Result<Place> {
        let Storage::Memory(address) = place.storage else {
            return Err(invalid("an index of a variable that has no memory"));
        };
        let length = match sequence.length {
            Some(length) => self.integer(I32, length.into()),
            None => self.runtime_length(&address, &sequence)?,
        };
        let bounds = match address.space {
            Space::Buffer { .. } | Space::Immediates => self.options.buffer_bounds,
            Space::Own | Space::Workgroup | Space::Constants => self.options.bounds,
        };
        let checked = self.checked(index, length, bounds);
        let mut element = self.element(address, checked.index, sequence.stride);
        element.inside = match (address.inside, checked.inside) {
            (Some(a), Some(b)) => Some(self.builder.ins().band(a, b)),
            (a, b) => a.or(b),
        };
        Ok(Place {
            ty: sequence.element,
            storage: Storage::Memory(element),
        })
    }

    /// Applies a policy to an index below a length, an i32.
    fn checked(&mut self, index: ir::Value, length: ir::Value, bounds: Bounds) -> Checked {
        let is_wide = self.builder.func.dfg.value_type(index) == I64;
        let length = match is_wide {
            true => self.builder.ins().uextend(I64, length),
            false => length,
        };
        let (mut index, mut inside) = (index, None);
        match bounds {
            Bounds::Restrict => {
                let behind = i64::from(!planted(Mistake::LastElement));
                let last = self.builder.ins().iadd_imm_s(length, -behind);
                index = self.builder.ins().umin(index, last);
            }
            Bounds::Zero | Bounds::Fault => {
                let below = (self.builder.ins()).icmp(IntCC::UnsignedLessThan, index, length);
                match bounds {
                    Bounds::Fault => {
                        self.builder.ins().trapz(below, OUT_OF_BOUNDS);
                    }
                    _ => inside = Some(below),
                }
            }
        }
        if is_wide {
            index = self.builder.ins().ireduce(I32, index);
        }
        Checked { index, inside }
    }

    /// The element that an index chooses among few.
    fn selected(&mut self, lanes: &[ir::Value], length: u32, checked: &Checked) -> Result<Lanes> {
        let size = lanes.len() / length as usize;
        let elements: Vec<_> = lanes.chunks(size.max(1)).collect();
        let [others @ .., last] = &elements[..] else {
            return Err(invalid("an index into nothing"));
        };
        let mut result = last.to_vec();
        for (number, element) in others.iter().enumerate().rev() {
            let number = self.integer(I32, number as i64);
            let here = self.builder.ins().icmp(IntCC::Equal, checked.index, number);
            for (lane, &own) in result.iter_mut().zip(*element) {
                *lane = self.builder.ins().select(here, own, *lane);
            }
        }
        if let Some(inside) = checked.inside {
            for lane in &mut result {
                let ty = self.builder.func.dfg.value_type(*lane);
                let zero = self.zero_of(ty);
                *lane = self.builder.ins().select(inside, *lane, zero);
            }
        }
        Ok(result)
    }

    /// How many elements fit behind an address in its buffer, an i32.
    fn runtime_length(&mut self, address: &Address, sequence: &Sequence) -> Result<ir::Value> {
        let Space::Buffer { number, .. } = address.space else {
            return Err(unsupported("an array without a length outside of a buffer"));
        };
        let bytes = self.lengths.get(number).copied();
        let bytes = bytes.ok_or_else(|| invalid("a buffer without a length"))?;
        let offset = self.integer(I32, address.offset.into());
        let rest = match address.offset {
            0 => bytes,
            _ if planted(Mistake::ArrayLength) => bytes,
            _ => self.builder.ins().isub(bytes, offset),
        };
        let stride = self.integer(I32, sequence.stride.into());
        Ok(self.builder.ins().udiv(rest, stride))
    }

    /// `arrayLength`.
    pub(super) fn array_length_of(&mut self, array: Handle<Expression>) -> Result<ir::Value> {
        let place = self.place(array)?;
        let sequence = self.sequence(&place.ty)?;
        match (sequence.length, &place.storage) {
            (Some(length), _) => Ok(self.integer(I32, length.into())),
            (None, Storage::Memory(address)) => self.runtime_length(&address.clone(), &sequence),
            (None, _) => Err(invalid("a variable without a length")),
        }
    }

    /// An index that is known.
    pub(super) fn constant_index(&self, index: Handle<Expression>) -> Option<u32> {
        let literal = match self.frame.function.expressions[index] {
            Expression::Literal(literal) => literal,
            Expression::Constant(constant) => {
                let init = self.module.constants[constant].init;
                match self.module.global_expressions[init] {
                    Expression::Literal(literal) => literal,
                    _ => return None,
                }
            }
            _ => return None,
        };
        match literal {
            Literal::U32(index) => Some(index),
            Literal::I32(index) => u32::try_from(index).ok(),
            Literal::U16(index) => Some(index.into()),
            Literal::I16(index) => u32::try_from(index).ok(),
            Literal::U64(index) => u32::try_from(index).ok(),
            Literal::I64(index) => u32::try_from(index).ok(),
            _ => None,
        }
    }

    /// A bool of CLIF.
    pub(super) fn bool(&mut self, value: bool) -> ir::Value {
        self.builder.ins().iconst(I8, i64::from(value))
    }
}
