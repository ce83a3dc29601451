//! Where arrays lie: their copies, shared memory from its zeros to what is left, addresses.

use super::{Emitter, flag_type, integer};
use crate::simt::emit::aligned;
use crate::simt::events::plan::{Array, Sync};
use crate::simt::kernel::Space;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, ExternalName, GlobalValueData, InstBuilder, StackSlotData, StackSlotKind, Type, Value,
    types,
};

impl Emitter<'_, '_> {
    /// Where a copy of an array begins.
    pub(in crate::simt::events) fn copy(
        &mut self,
        base: Value,
        number: Option<Value>,
        array: &Array,
    ) -> Value {
        match number {
            None => base,
            Some(number) => self.element_at(base, number, array.size()),
        }
    }

    /// The first thread of the block clears shared memory, and sets the flags.
    pub(in crate::simt::events) fn clear(&mut self, index: Value, end: u32, flags: u32) {
        let behind = self.first_thread(index);
        self.bytes(end, |emitter, offset| {
            let base = emitter.shared_address(types::I32, 0);
            let place = emitter.builder.ins().iadd(base, offset);
            let zero = emitter.builder.ins().iconst(types::I8, 0);
            emitter.builder.ins().store(aligned(), zero, place, 0);
        });
        let plan = self.plan;
        if plan.space == Space::Shared && plan.start != 0 && plan.sync == Sync::Turns {
            let place = self.shared_address(types::I32, flags + plan.skipped * plan.flag_bytes);
            let start = self.number(flag_type(plan), plan.start);
            self.builder.ins().store(aligned(), start, place, 0);
        }
        self.builder.ins().jump(behind, &[]);
        self.builder.switch_to_block(behind);
        self.intrinsic("gpu_bar_sync", &[], &[]);
    }

    pub(in crate::simt::events) fn collect(
        &mut self,
        index: Value,
        block: Value,
        collected: Value,
        end: u32,
    ) {
        self.intrinsic("gpu_bar_sync", &[], &[]);
        let behind = self.first_thread(index);
        let to = self.element_at(collected, block, end);
        self.bytes(end, |emitter, offset| {
            let base = emitter.shared_address(types::I32, 0);
            let place = emitter.builder.ins().iadd(base, offset);
            let value = emitter.builder.ins().load(types::I8, aligned(), place, 0);
            let place = emitter.element_at(to, offset, 1);
            emitter.builder.ins().store(aligned(), value, place, 0);
        });
        self.builder.ins().jump(behind, &[]);
        self.builder.switch_to_block(behind);
    }

    pub(in crate::simt::events) fn first_thread(&mut self, index: Value) -> ir::Block {
        let (inside, behind) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(index, behind, &[], inside, &[]);
        self.builder.switch_to_block(inside);
        behind
    }

    /// A loop over offsets.
    pub(in crate::simt::events) fn bytes(&mut self, end: u32, each: impl FnOnce(&mut Self, Value)) {
        let offset = self.builder.declare_var(types::I32);
        let zero = self.constant(0);
        self.builder.def_var(offset, zero);
        let (again, out) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        let now = self.builder.use_var(offset);
        each(self, now);
        let (one, end) = (self.constant(1), self.constant(end));
        let next = self.builder.ins().iadd(now, one);
        self.builder.def_var(offset, next);
        let more = self.builder.ins().icmp(IntCC::UnsignedLessThan, next, end);
        self.builder.ins().brif(more, again, &[], out, &[]);
        self.builder.switch_to_block(out);
    }

    /// A slot for an array, cleared.
    pub(in crate::simt::events) fn slot_array(&mut self, array: &Array) -> Value {
        let shift = array.bytes.trailing_zeros() as u8;
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, array.size(), shift);
        let slot = self.builder.create_sized_stack_slot(data);
        let zero = self.builder.ins().iconst(integer(8 * array.bytes), 0);
        for index in 0..array.count {
            let offset = (array.bytes * index) as i32;
            self.builder
                .ins()
                .stack_store(types::I64, zero, slot, offset);
        }
        self.builder.ins().stack_addr(types::I64, slot, 0)
    }

    /// The address of an element of so many bytes.
    pub(in crate::simt::events) fn element_at(
        &mut self,
        base: Value,
        index: Value,
        bytes: u32,
    ) -> Value {
        let ty = self.builder.func.dfg.value_type(base);
        let wide = self.converted(index, ty);
        let size = self.number(ty, u64::from(bytes));
        let offset = self.builder.ins().imul(wide, size);
        self.builder.ins().iadd(base, offset)
    }

    /// An address in shared memory.
    pub(in crate::simt::events) fn shared_address(&mut self, ty: Type, offset: u32) -> Value {
        let builder = &mut self.builder;
        let symbol = *self.shared.get_or_insert_with(|| {
            builder.create_global_value(GlobalValueData::Symbol {
                name: ExternalName::testcase("gpu_shared"),
                offset: 0.into(),
                colocated: false,
                tls: false,
            })
        });
        let base = self.builder.ins().symbol_value(ty, symbol);
        let offset = self.number(ty, u64::from(offset));
        self.builder.ins().iadd(base, offset)
    }
}
