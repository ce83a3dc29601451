//! Instructions, by what they do.

use super::function::{Body, Parts, Result};
use super::shape::{self, Scalar};
use super::wide::is_wide;
use crate::data;
use crate::error::Problem;
use crate::layout;
use crate::model::{AddressOf, Binary, Instruction, Operand, Operation, Ordering, Type, Value};
use cranelift_codegen::ir::{self, InstBuilder, types};
use smallvec::smallvec;

impl<'p> Body<'_, 'p, '_> {
    /// Translates an instruction.
    ///
    /// # Errors
    /// What is not supported.
    pub fn instruction(&mut self, instruction: &'p Instruction) -> Result<()> {
        let parts = match &instruction.operation {
            Operation::Phi(_) => return Ok(()),
            Operation::Unsupported(reason) => return Err(Problem::Unread(reason.clone())),
            Operation::Return(_)
            | Operation::Jump(_)
            | Operation::Branch(..)
            | Operation::Switch { .. }
            | Operation::Unreachable => return self.terminator(instruction),
            Operation::Binary(binary, a, b) if is_wide(&a.ty) => self.binary_wide(*binary, a, b)?,
            Operation::Binary(binary, a, b) => self.binary(*binary, a, b)?,
            Operation::Negate(of) => {
                let parts = self.operand(of)?;
                parts
                    .into_iter()
                    .map(|part| self.builder.ins().fneg(part))
                    .collect()
            }
            Operation::Cast(cast, of) if is_wide(&of.ty) || is_wide(&instruction.ty) => {
                self.cast_wide(*cast, of, &instruction.ty)?
            }
            Operation::Cast(cast, of) => self.cast(*cast, of, &instruction.ty)?,
            Operation::CompareInts(predicate, a, b) => {
                let (left, right) = (self.operand(a)?, self.operand(b)?);
                let bits = Scalar::of(a.ty.lane())?.bits();
                let pairs = left.into_iter().zip(right);
                pairs
                    .map(|(a, b)| self.compare_ints(*predicate, bits, a, b))
                    .collect()
            }
            Operation::CompareFloats(predicate, a, b) => {
                let (left, right) = (self.operand(a)?, self.operand(b)?);
                let pairs = left.into_iter().zip(right);
                pairs
                    .map(|(a, b)| self.compare_floats(*predicate, a, b))
                    .collect()
            }
            Operation::Select(condition, then, otherwise) => {
                self.select(condition, then, otherwise)?
            }
            Operation::Freeze(of) => self.operand(of)?,
            Operation::Alloca { ty, count, align } => {
                let (address, slot) = self.stack_slot(ty, count, *align)?;
                let result = instruction.result.map(|result| (result, slot));
                self.slots.extend(result);
                smallvec![address]
            }
            Operation::Load(address, access) => self.load(&instruction.ty, address, *access)?,
            Operation::Store {
                value,
                address,
                access,
            } => {
                self.store(value, address, *access)?;
                Parts::new()
            }
            Operation::Fence(Ordering::Plain) => Parts::new(),
            Operation::Fence(_) => {
                self.builder.ins().fence();
                Parts::new()
            }
            Operation::CompareExchange {
                address,
                expected,
                new,
                access,
            } => self.compare_exchange(address, expected, new, *access)?,
            Operation::Update {
                update,
                address,
                operand,
                access,
            } => self.update(*update, address, operand, *access)?,
            Operation::Address(address) => smallvec![self.element_address(address)?],
            Operation::ExtractValue(of, path) => {
                let range = shape::part_range(&of.ty, path)?;
                let parts = self.operand(of)?;
                let parts = parts.get(range);
                let missing = || Problem::Inconsistent("parts that are not there".into());
                parts.ok_or_else(missing)?.into()
            }
            Operation::InsertValue(into, element, path) => {
                self.insert_value(into, element, path)?
            }
            Operation::ExtractElement(vector, index) => {
                smallvec![self.extract_element(vector, index)?]
            }
            Operation::InsertElement(vector, element, index) => {
                self.insert_element(vector, element, index)?
            }
            Operation::Shuffle(a, b, mask) => self.shuffle(a, b, mask)?,
            Operation::Call(call) => self.call(call, &instruction.ty)?,
        };
        self.define(instruction, parts);
        Ok(())
    }

    /// An operation of two operands, lane by lane.
    pub fn binary(&mut self, binary: Binary, a: &Operand, b: &Operand) -> Result<Parts> {
        let (left, right) = (self.operand(a)?, self.operand(b)?);
        let lane = Scalar::of(a.ty.lane())?;
        let mut parts = Parts::new();
        for (a, b) in left.into_iter().zip(right) {
            parts.push(match lane.is_float() {
                true => self.float_binary(binary, lane, a, b)?,
                false => self.int_binary(binary, lane.bits(), a, b)?,
            });
        }
        Ok(parts)
    }

    /// An aggregate with another element.
    fn insert_value(&mut self, into: &Operand, element: &Operand, path: &[u64]) -> Result<Parts> {
        let range = shape::part_range(&into.ty, path)?;
        let (mut parts, new) = (self.operand(into)?, self.operand(element)?);
        let place = parts.get_mut(range);
        let place = place.filter(|place| place.len() == new.len());
        let other = || Problem::Inconsistent("an element of another type".into());
        place.ok_or_else(other)?.copy_from_slice(&new);
        Ok(parts)
    }

    /// Lanes of two vectors, or zero where any value will do.
    fn shuffle(&mut self, a: &Operand, b: &Operand, mask: &[Option<u32>]) -> Result<Parts> {
        let mut lanes = self.operand(a)?;
        lanes.extend(self.operand(b)?);
        let lane = Scalar::of(a.ty.lane())?;
        let missing = || Problem::Inconsistent("a lane that is not there".into());
        let mut parts = Parts::new();
        for place in mask {
            parts.push(match place {
                Some(place) => *lanes.get(*place as usize).ok_or_else(missing)?,
                None => self.bits(lane, 0),
            });
        }
        Ok(parts)
    }

    fn select(
        &mut self,
        condition: &Operand,
        then: &Operand,
        otherwise: &Operand,
    ) -> Result<Parts> {
        let conditions = self.operand(condition)?;
        let (then, otherwise) = (self.operand(then)?, self.operand(otherwise)?);
        let lanes = condition.ty.lanes().is_some();
        let pairs = then.into_iter().zip(otherwise).enumerate();
        let mut parts = Parts::new();
        for (index, (then, otherwise)) in pairs {
            let condition = conditions.get(if lanes { index } else { 0 });
            let missing = || Problem::Inconsistent("a choice without a condition".into());
            let condition = *condition.ok_or_else(missing)?;
            parts.push(self.builder.ins().select(condition, then, otherwise));
        }
        Ok(parts)
    }

    /// What a `getelementptr` gives.
    fn element_address(&mut self, address: &AddressOf) -> Result<ir::Value> {
        let mut place = self.single(&address.base)?;
        let (mut constant, mut ty) = (0_i64, &address.element);
        for (depth, index) in address.indices.iter().enumerate() {
            if let Value::Constant(number) = &index.value
                && let data::Scalar::Bits(bits) = data::scalar(&index.ty, number)?
            {
                let width = Scalar::of(&index.ty)?.bits();
                let number = data::signed(bits, width) as i64;
                let (offset, inner) = data::step(ty, depth == 0, number)?;
                constant = constant.wrapping_add(offset);
                ty = inner;
                continue;
            }
            // Structures have constant indices only.
            let inner = match ty {
                _ if depth == 0 => ty,
                Type::Array(_, inner) | Type::Vector(_, inner) => inner,
                other => {
                    let message = format!("an index into {other:?}");
                    return Err(Problem::Inconsistent(message.into()));
                }
            };
            let unknown = || Problem::NoSize(format!("{inner:?} has no size").into());
            let size = layout::size(inner).ok_or_else(unknown)?;
            let number = self.single(index)?;
            let number = self.address_width(number, Scalar::of(&index.ty)?.bits());
            let offset = self.scaled(number, size);
            place = self.builder.ins().iadd(place, offset);
            ty = inner;
        }
        Ok(self.add_offset(place, constant))
    }

    /// A number with its sign as 64 bits.
    fn address_width(&mut self, number: ir::Value, bits: u32) -> ir::Value {
        let wide = self.with_sign(number, bits);
        match self.builder.func.dfg.value_type(wide).bits() {
            64 => wide,
            65.. => self.builder.ins().ireduce(types::I64, wide),
            _ => self.builder.ins().sextend(types::I64, wide),
        }
    }

    fn scaled(&mut self, number: ir::Value, size: u64) -> ir::Value {
        match size {
            1 => number,
            size => {
                let size = self.builder.ins().iconst(types::I64, size as i64);
                self.builder.ins().imul(number, size)
            }
        }
    }
}
