//! Accesses of memory and of stack slots, atomic ones among them: this lane is the only one.

use super::lanes::joined;
use super::{SLOT, State, Walk, slot_address, width_of};
use crate::address::Address;
use crate::outcome::Open;
use crate::smt::definitions_first;
use crate::term::{Operation, Term, variable_of};
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, InstructionData, MemFlags, Opcode, StackSlot, Type, Value,
};

/// What a load makes of the bits that it reads.
struct Extension {
    /// Bits of each number in memory, and how many there are.
    bits: u32,
    count: u32,
    is_signed: bool,
}

impl Extension {
    /// Of a load whose result has `width` bits.
    fn of(opcode: Opcode, width: u32) -> Option<Self> {
        let (bits, count, is_signed) = match opcode {
            Opcode::Load | Opcode::AtomicLoad => (width, 1, false),
            Opcode::Uload8 => (8, 1, false),
            Opcode::Sload8 => (8, 1, true),
            Opcode::Uload16 => (16, 1, false),
            Opcode::Sload16 => (16, 1, true),
            Opcode::Uload32 => (32, 1, false),
            Opcode::Sload32 => (32, 1, true),
            Opcode::Uload8x8 => (8, 8, false),
            Opcode::Sload8x8 => (8, 8, true),
            Opcode::Uload16x4 => (16, 4, false),
            Opcode::Sload16x4 => (16, 4, true),
            Opcode::Uload32x2 => (32, 2, false),
            Opcode::Sload32x2 => (32, 2, true),
            _ => return None,
        };
        Some(Self {
            bits,
            count,
            is_signed,
        })
    }

    fn extended(&self, loaded: Term, width: u32) -> Term {
        let numbers: Vec<Term> = (0..self.count)
            .map(|i| loaded.part(i * self.bits, self.bits))
            .map(|number| match self.is_signed {
                true => number.sign_extended(width / self.count),
                false => number.zero_extended(width / self.count),
            })
            .collect();
        joined(&numbers)
    }
}

impl Walk<'_> {
    /// Accesses; none if the instruction is something else.
    pub(super) fn memory(
        &mut self,
        data: InstructionData,
        state: &mut State,
        args: &[Term],
        ty: Option<Type>,
    ) -> Result<Option<Vec<Term>>, Open> {
        let opcode = data.opcode();
        Ok(Some(match data {
            InstructionData::Load { flags, offset, .. } => {
                let Some(ty) = ty else { return Ok(None) };
                let at = address(args[0], offset.into());
                vec![self.load(state, opcode, at, ty, flags)?]
            }
            InstructionData::LoadNoOffset { flags, .. } if opcode == Opcode::AtomicLoad => {
                let Some(ty) = ty else { return Ok(None) };
                vec![self.load(state, opcode, address(args[0], 0), ty, flags)?]
            }
            InstructionData::Store { flags, offset, .. } => {
                let bits = match opcode {
                    Opcode::Store => args[0].width(),
                    Opcode::Istore8 => 8,
                    Opcode::Istore16 => 16,
                    Opcode::Istore32 => 32,
                    _ => return Err(Open::new(opcode.to_string())),
                };
                let value = args[0].part(0, bits);
                let at = address(args[1], offset.into());
                self.store(state, at, self.in_memory(value, self.stored(data), flags))?;
                Vec::new()
            }
            InstructionData::StoreNoOffset { flags, .. } if opcode == Opcode::AtomicStore => {
                let value = self.in_memory(args[0], self.stored(data), flags);
                self.store(state, address(args[1], 0), value)?;
                Vec::new()
            }
            InstructionData::AtomicRmw { op, flags, .. } => {
                let Some(ty) = ty else { return Ok(None) };
                let at = address(args[0], 0);
                let old = self.load(state, Opcode::AtomicLoad, at, ty, flags)?;
                let new = self.in_memory(modified(op, old, args[1]), Some(ty), flags);
                self.store(state, at, new)?;
                vec![old]
            }
            InstructionData::AtomicCas { flags, .. } => {
                let Some(ty) = ty else { return Ok(None) };
                let at = address(args[0], 0);
                let old = self.load(state, Opcode::AtomicLoad, at, ty, flags)?;
                let new = Term::choose(old.equals(args[1]), args[2], old);
                self.store(state, at, self.in_memory(new, Some(ty), flags))?;
                vec![old]
            }
            InstructionData::NullAry {
                opcode: Opcode::Fence,
            } => Vec::new(),
            InstructionData::StackAddr {
                stack_slot, offset, ..
            } => {
                let offset = Term::number(i64::from(i32::from(offset)) as u128, 64);
                vec![slot_address(stack_slot).plus(offset)]
            }
            InstructionData::UnaryGlobalValue { global_value, .. } => {
                let Some(ty) = ty else { return Ok(None) };
                vec![self.symbol(global_value, width_of(ty)?)?]
            }
            _ => return Ok(None),
        }))
    }

    /// The type of what a store writes, if all of it is written.
    fn stored(&self, data: InstructionData) -> Option<Type> {
        let value: Option<&Value> = data.arguments(&self.func.dfg.value_lists).first();
        let is_whole = matches!(data.opcode(), Opcode::Store | Opcode::AtomicStore);
        value
            .filter(|_| is_whole)
            .map(|&v| self.func.dfg.value_type(v))
    }

    /// A value in the order of bytes that memory has, or the other way round.
    fn in_memory(&self, value: Term, ty: Option<Type>, flags: MemFlags) -> Term {
        match self.func.dfg.mem_flags[flags].explicit_endianness() {
            // The bytes of each lane; lanes stay in their order.
            Some(Endianness::Big) => {
                let lane = ty.map_or(value.width(), |ty| value.width() / ty.lane_count());
                let reversed = |first: u32| {
                    let bytes = (0..lane / 8).map(|i| value.part(first + 8 * i, 8));
                    bytes.reduce(Term::above).unwrap_or(value)
                };
                let lanes = (0..value.width() / lane).map(|i| reversed(i * lane));
                joined(&lanes.collect::<Vec<_>>())
            }
            Some(Endianness::Little) | None => value,
        }
    }

    fn load(
        &self,
        state: &State,
        opcode: Opcode,
        at: Address,
        ty: Type,
        flags: MemFlags,
    ) -> Result<Term, Open> {
        let width = width_of(ty)?;
        let extension = Extension::of(opcode, width);
        let extension = extension.ok_or_else(|| Open::new(opcode.to_string()))?;
        let bits = extension.bits * extension.count;
        let loaded = match slot_of(at)? {
            Some((slot, first)) => {
                let byte = |i: u32| {
                    let found = state.slots.get(&(slot, first + i64::from(i))).copied();
                    found
                        .ok_or_else(|| Open::new("a stack slot is read that nothing is written to"))
                };
                (1..bits / 8).try_fold(byte(0)?, |low, i| Ok::<Term, Open>(byte(i)?.above(low)))?
            }
            None => at.load(state.memory, bits / 8),
        };
        let read = (extension.count > 1 || opcode == Opcode::Load).then_some(ty);
        let loaded = self.in_memory(loaded, read, flags);
        Ok(extension.extended(loaded, width))
    }

    fn store(&self, state: &mut State, at: Address, value: Term) -> Result<(), Open> {
        match slot_of(at)? {
            Some((slot, first)) => {
                let bytes = (0..value.width() / 8)
                    .map(|i| ((slot, first + i64::from(i)), value.part(8 * i, 8)));
                state.slots.extend(bytes);
            }
            None => state.memory = at.store(state.memory, value),
        }
        Ok(())
    }
}

/// The address of an access: one of 32 bits is in shared memory.
fn address(pointer: Term, offset: i32) -> Address {
    let width = pointer.width();
    let at = pointer.plus(Term::number(i64::from(offset) as u128, width));
    match width {
        64 => Address::Generic(at),
        _ => Address::Shared(at),
    }
}

/// What an atomic operation writes.
fn modified(op: AtomicRmwOp, old: Term, operand: Term) -> Term {
    match op {
        AtomicRmwOp::Add => old.plus(operand),
        AtomicRmwOp::Sub => old.minus(operand),
        AtomicRmwOp::And => old.and(operand),
        AtomicRmwOp::Nand => old.and(operand).not(),
        AtomicRmwOp::Or => old.or(operand),
        AtomicRmwOp::Xor => old.xor(operand),
        AtomicRmwOp::Xchg => operand,
        AtomicRmwOp::Umin => Term::choose(operand.is_below(old), operand, old),
        AtomicRmwOp::Umax => Term::choose(old.is_below(operand), operand, old),
        AtomicRmwOp::Smin => Term::choose(operand.is_less(old), operand, old),
        AtomicRmwOp::Smax => Term::choose(old.is_less(operand), operand, old),
    }
}

/// The stack slot that an address is in, and where in it.
fn slot_of(address: Address) -> Result<Option<(StackSlot, i64)>, Open> {
    let Address::Generic(address) = address else {
        return Ok(None);
    };
    let slot = |term: Term| match term.operation() {
        Operation::Variable(number) => {
            let number = variable_of(number).0.strip_prefix(SLOT)?.parse().ok()?;
            Some(StackSlot::from_u32(number))
        }
        _ => None,
    };
    if let Some(slot) = slot(address) {
        return Ok(Some((slot, 0)));
    }
    if let Operation::Add(base, number) = address.operation()
        && let (Some(slot), Some(number)) = (slot(base), number.as_number())
    {
        return Ok(Some((slot, number as i64)));
    }
    let is_computed = definitions_first(address)
        .into_iter()
        .any(|term| slot(term).is_some());
    if is_computed {
        return Err(Open::new("a place of a stack slot that is computed"));
    }
    Ok(None)
}
