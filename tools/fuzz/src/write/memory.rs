//! Stack slots: made and filled at the entry, accessed anywhere in them, or as variables of one type each.

use super::Writer;
use crate::swarm::{Form, Swarm};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, Opcode, StackSlot, StackSlotData, StackSlotKind, Type, Value, types,
};

/// Bytes of the widest access.
const WIDEST: u32 = 16;

/// A slot that is accessed as one type, or as its low part, and never by an address that is computed.
#[derive(Clone, Copy)]
pub(super) struct Variable {
    slot: StackSlot,
    ty: Type,
}

/// An address with at least [`WIDEST`] bytes behind it.
pub(super) struct Address {
    pub value: Value,
    /// Whether it is a multiple of [`WIDEST`].
    pub aligned: bool,
}

impl Writer<'_> {
    /// Makes some slots; their bytes are set, so that no load sees what was in memory before.
    pub(super) fn make_slots(&mut self) {
        if !self.swarm.has_form(Form::Memory) {
            return;
        }
        for _ in 0..self.random.pick(&[0, 1, 1, 2, 3]) {
            // Offsets up to a power of two leave room for the widest access.
            let size = WIDEST + (WIDEST << self.random.below(4));
            self.make_slot(size);
        }
        if !self.swarm.has_form(Form::Variables) {
            return;
        }
        let types = self.accessible(|_| true);
        for _ in 0..self.random.pick(&[0, 0, 1, 2, 4]) {
            let ty = self.random.pick(&types);
            // The interpreter has slots one behind the other, however they are to be aligned.
            let size = ty.bytes().next_multiple_of(WIDEST);
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4);
            let slot = self.func.create_sized_stack_slot(data);
            let variable = Variable { slot, ty };
            self.store_variable(variable);
            self.variables.push(variable);
        }
    }

    /// The types of the function that are wanted and that loads and stores may have.
    fn accessible(&self, wanted: impl Fn(Type) -> bool) -> Vec<Type> {
        let known = |opcode, ty| {
            let found = self.catalogue.find(opcode, ty, self.oracle, &Swarm::WHOLE);
            found.is_some()
        };
        let types = self.palette.iter().copied();
        types
            .filter(|ty| wanted(*ty) && known(Opcode::Load, *ty) && known(Opcode::Store, *ty))
            .collect()
    }

    /// A variable is read or gets a value.
    pub(super) fn variable(&mut self) {
        let variable = self.random.pick(&self.variables.clone());
        if self.random.once_in(2) {
            return self.store_variable(variable);
        }
        let Variable { slot, ty } = variable;
        let flags = MemFlagsData::new();
        let mut pos = FuncCursor::new(&mut self.func).at_bottom(self.block);
        let address = pos.ins().stack_addr(types::I64, slot, 0);
        let value = match self.random.below(8) {
            0 if ty == types::I64 => pos.ins().load(types::I32, flags, address, 0),
            1 if ty == types::I32 => pos.ins().uload8(ty, flags, address, 0),
            2 if ty == types::I32 => pos.ins().sload16(ty, flags, address, 0),
            _ => pos.ins().load(ty, flags, address, 0),
        };
        self.cost += self.turns;
        self.define(value);
    }

    fn store_variable(&mut self, variable: Variable) {
        let Variable { slot, ty } = variable;
        let value = self.closed_operand(ty);
        let filled = self.variables.iter().any(|known| known.slot == slot);
        let low = filled && ty == types::I64 && self.random.once_in(8);
        let mut pos = self.pos();
        let address = pos.ins().stack_addr(types::I64, slot, 0);
        let flags = MemFlagsData::new();
        if low {
            pos.ins().istore32(flags, value, address, 0);
        } else {
            pos.ins().store(flags, value, address, 0);
        }
        self.cost += self.turns;
    }

    /// Accesses of one or several widths beside and over each other, with little between them.
    pub(super) fn burst(&mut self) {
        let types = self.accessible(|ty| !ty.is_vector() && ty.bits() <= 64);
        let (base, room) = self.burst_base();
        let (main, stores) = (self.random.pick(&types), self.random.once_in(2));
        let center = 8 * self.random.below(room as usize / 8) as u32;
        for place in 0..self.random.between(3, 9) as u32 {
            let odd = self.random.once_in(3);
            let ty = if odd { self.random.pick(&types) } else { main };
            let store = stores ^ (odd && self.random.once_in(2));
            // One that touches another one, or has a byte in common with it, begins or ends at its edge.
            let edge = center + self.random.below(5) as u32 * main.bytes();
            let by_one = self.random.below(2) as u32;
            let offset = match self.random.below(3) {
                _ if !odd => center + place % 4 * ty.bytes(),
                0 => (edge + by_one).saturating_sub(ty.bytes()),
                1 => edge.saturating_sub(by_one),
                _ => center + self.random.below(16) as u32,
            };
            let offset = offset.min(room - ty.bytes()) as i32;
            let flags = match self.random.once_in(2) {
                true => MemFlagsData::new(),
                false => MemFlagsData::new().with_notrap(),
            };
            if store {
                let value = self.closed_operand(ty);
                self.pos().ins().store(flags, value, base, offset);
            } else {
                let value = self.pos().ins().load(ty, flags, base, offset);
                self.define(value);
            }
            self.cost += self.turns;
        }
    }

    /// Where a burst counts from, and the bytes behind that.
    fn burst_base(&mut self) -> (Value, u32) {
        if self.slots.is_empty() || self.random.once_in(3) {
            let address = self.address(false);
            return (address.value, WIDEST);
        }
        let slot = self.random.pick(&self.slots.clone());
        let room = self.func.sized_stack_slots[slot].size;
        let value = self.pos().ins().stack_addr(types::I64, slot, 0);
        (value, room)
    }

    fn make_slot(&mut self, size: u32) {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, 4);
        let slot = self.func.create_sized_stack_slot(data);
        for offset in (0..size as i32).step_by(8) {
            let value = self.closed_operand(types::I64);
            let mut pos = self.pos();
            let address = pos.ins().stack_addr(types::I64, slot, 0);
            pos.ins().store(MemFlagsData::new(), value, address, offset);
        }
        self.slots.push(slot);
    }

    /// An address in a slot, known or computed.
    pub(super) fn address(&mut self, must_align: bool) -> Address {
        if self.slots.is_empty() {
            // Only here is a slot made inside of control; it is filled here as well.
            self.make_slot(2 * WIDEST);
            let slot = self.slots.pop().expect("it was just made");
            let value = self.pos().ins().stack_addr(types::I64, slot, 0);
            return Address {
                value,
                aligned: true,
            };
        }
        let slot = self.random.pick(&self.slots.clone());
        let room = self.func.sized_stack_slots[slot].size - WIDEST;
        let aligned = must_align || self.random.once_in(3);
        let step = if aligned { WIDEST } else { 1 };
        if self.random.once_in(2) || !self.swarm.has_form(Form::Indices) {
            let offset = self.random.below((room / step) as usize + 1) as u32 * step;
            let value = self.pos().ins().stack_addr(types::I64, slot, offset as i32);
            return Address { value, aligned };
        }
        let from: Type = self.random.pick(&[types::I8, types::I32, types::I64]);
        let index = self.operand(from);
        let mut pos = self.pos();
        let index = if from == types::I64 {
            index
        } else {
            pos.ins().uextend(types::I64, index)
        };
        let mask = pos
            .ins()
            .iconst(types::I64, i64::from((room - 1) & !(step - 1)));
        let index = pos.ins().band(index, mask);
        let base = pos.ins().stack_addr(types::I64, slot, 0);
        let value = pos.ins().iadd(base, index);
        Address { value, aligned }
    }
}
