//! Stack slots: made and filled at the entry, accessed anywhere in them.

use super::Writer;
use crate::swarm::Form;
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value, types,
};

/// Bytes of the widest access.
const WIDEST: u32 = 16;

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
