//! Steps that all threads of a block take together: shared memory is filled, read across threads, and copied to global
//! memory.

use super::emit::{Emitter, aligned};
use super::kernel::{Cell, GROUP, Phase, Space};
use cranelift_codegen::ir::{self, InstBuilder, Type, types};

impl Emitter<'_, '_> {
    pub(super) fn phase(&mut self, phase: Phase) {
        match phase {
            Phase::Clear => {
                let behind = self.first_thread();
                self.clear();
                self.go_on(Some(behind));
                self.barrier();
            }
            Phase::Collect => {
                self.barrier();
                let behind = self.first_thread();
                self.collect();
                self.go_on(Some(behind));
            }
            Phase::Exchange { var, distance } => self.exchange(var, distance),
            Phase::Barrier => self.barrier(),
            Phase::InOrder { var } => self.in_order(var),
            Phase::Stack => self.stack(),
        }
    }

    /// Only the first thread of the block goes on; returns where the others are.
    fn first_thread(&mut self) -> ir::Block {
        let index = self.intrinsic("gpu_tid_x", &[], &[types::I32])[0];
        let (inside, behind) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(index, behind, &[], inside, &[]);
        self.builder.switch_to_block(inside);
        behind
    }

    fn clear(&mut self) {
        let kernel = self.kernel;
        let shared = self.shared(types::I32);
        for offset in (0..kernel.common_bytes(Space::Shared)).step_by(4) {
            let zero = self.constant(0);
            self.builder
                .ins()
                .store(aligned(), zero, shared, offset as i32);
        }
        for (cell, &Cell { space, bytes, .. }) in kernel.cells.iter().enumerate() {
            let initial = kernel.initial(cell);
            if space == Space::Global || initial == 0 {
                continue;
            }
            let ty = Type::int(8 * bytes as u16).unwrap_or(types::I32);
            for index in 0..GROUP {
                let bits = initial as i64;
                // A constant is written as its type's signed number.
                let shift = 64 - 8 * bytes;
                let value = self
                    .builder
                    .ins()
                    .iconst(ty, ((bits << shift) as u64 >> shift) as i64);
                let offset = kernel.cell_offset(cell) + index * bytes;
                self.builder
                    .ins()
                    .store(aligned(), value, shared, offset as i32);
            }
        }
    }

    fn collect(&mut self) {
        let kernel = self.kernel;
        let bytes = kernel.cell_bytes(Space::Shared);
        let block = self.intrinsic("gpu_ctaid_x", &[], &[types::I32])[0];
        let data = self.data();
        let to = self.element(data, block, bytes);
        let shared = self.shared(types::I32);
        for offset in (0..bytes).step_by(8) {
            let value = self
                .builder
                .ins()
                .load(types::I64, aligned(), shared, offset as i32);
            let place = kernel.collected_offset() + offset;
            self.builder.ins().store(aligned(), value, to, place as i32);
        }
    }

    fn exchange(&mut self, var: usize, distance: u32) {
        let base = self.shared(types::I32);
        let index = self.intrinsic("gpu_tid_x", &[], &[types::I32])[0];
        let threads = self.intrinsic("gpu_ntid_x", &[], &[types::I32])[0];
        let four = self.constant(4);
        let start = self.kernel.common_bytes(Space::Shared) as i32;
        let offset = self.builder.ins().imul(index, four);
        let place = self.builder.ins().iadd(base, offset);
        let value = self.var(var);
        self.builder.ins().store(aligned(), value, place, start);
        self.barrier();
        let distance = self.constant(distance);
        let sum = self.builder.ins().iadd(index, distance);
        let other = self.builder.ins().urem(sum, threads);
        let offset = self.builder.ins().imul(other, four);
        let place = self.builder.ins().iadd(base, offset);
        let value = self.builder.ins().load(types::I32, aligned(), place, start);
        self.set(var, value);
        self.barrier();
    }
}
