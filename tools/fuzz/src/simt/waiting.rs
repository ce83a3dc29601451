//! Statements in which threads wait for each other: locks, turns, a stack without locks.

use super::emit::{Emitter, aligned};
use super::kernel::{LockKind, Operand, RECORD, Space};
use super::locks;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, BlockArg, InstBuilder, Signature, Value, types,
};
use cranelift_codegen::isa::CallConv;

impl Emitter<'_, '_> {
    /// Calls the function of a lock, if it has one.
    fn by_function(&mut self, lock: usize, prefix: &str) -> bool {
        let data = self.kernel.locks[lock];
        if data.by_function {
            let mut place = self.place(data.space, self.kernel.lock_offset(lock));
            if self.builder.func.dfg.value_type(place) == types::I32 {
                let base = self.shared(types::I64);
                let offset = self
                    .builder
                    .ins()
                    .iconst(types::I64, i64::from(self.kernel.lock_offset(lock)));
                place = self.builder.ins().iadd(base, offset);
            }
            let mut signature = Signature::new(CallConv::Fast);
            signature.params.push(AbiParam::new(types::I64));
            let function = self.import(&format!("{prefix}_{}", locks::name(data.kind)), signature);
            self.builder.ins().call(function, &[place]);
        }
        data.by_function
    }

    pub(super) fn lock(&mut self, lock: usize) {
        if self.by_function(lock, "lock") {
            return;
        }
        let data = self.kernel.locks[lock];
        let place = self.place(data.space, self.kernel.lock_offset(lock));
        let (zero, one) = (self.constant(0), self.constant(1));
        let (again, taken) = (self.builder.create_block(), self.builder.create_block());
        match data.kind {
            LockKind::Swap | LockKind::SwapStore => {
                self.builder.ins().jump(again, &[]);
                self.builder.switch_to_block(again);
                let old = self.builder.ins().atomic_cas(aligned(), place, zero, one);
                self.builder.ins().brif(old, again, &[], taken, &[]);
            }
            LockKind::Watch => {
                let free = self.builder.create_block();
                self.builder.ins().jump(again, &[]);
                self.builder.switch_to_block(again);
                let seen = self.builder.ins().atomic_load(types::I32, aligned(), place);
                self.builder.ins().brif(seen, again, &[], free, &[]);
                self.builder.switch_to_block(free);
                let old = self.builder.ins().atomic_rmw(
                    types::I32,
                    aligned(),
                    AtomicRmwOp::Xchg,
                    place,
                    one,
                );
                self.builder.ins().brif(old, again, &[], taken, &[]);
            }
            LockKind::Ticket => {
                let ticket = self.builder.ins().atomic_rmw(
                    types::I32,
                    aligned(),
                    AtomicRmwOp::Add,
                    place,
                    one,
                );
                let turn = self.second_word(place);
                self.builder.ins().jump(again, &[]);
                self.builder.switch_to_block(again);
                let called = self.builder.ins().atomic_load(types::I32, aligned(), turn);
                let mine = self.builder.ins().icmp(IntCC::Equal, called, ticket);
                self.builder.ins().brif(mine, taken, &[], again, &[]);
            }
        }
        self.builder.switch_to_block(taken);
    }

    fn second_word(&mut self, place: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(place);
        let four = self.builder.ins().iconst(ty, 4);
        self.builder.ins().iadd(place, four)
    }

    pub(super) fn unlock(&mut self, lock: usize) {
        if self.by_function(lock, "unlock") {
            return;
        }
        let data = self.kernel.locks[lock];
        let place = self.place(data.space, self.kernel.lock_offset(lock));
        self.give_back(data.kind, place);
    }

    fn give_back(&mut self, kind: LockKind, place: Value) {
        let (zero, one) = (self.constant(0), self.constant(1));
        match kind {
            LockKind::Swap => {
                self.builder.ins().atomic_rmw(
                    types::I32,
                    aligned(),
                    AtomicRmwOp::Xchg,
                    place,
                    zero,
                );
            }
            LockKind::SwapStore | LockKind::Watch => {
                self.builder.ins().atomic_store(aligned(), zero, place);
            }
            LockKind::Ticket => {
                let turn = self.second_word(place);
                self.builder
                    .ins()
                    .atomic_rmw(types::I32, aligned(), AtomicRmwOp::Add, turn, one);
            }
        }
    }

    pub(super) fn try_lock(&mut self, lock: usize, cell: usize, value: Operand) {
        let data = self.kernel.locks[lock];
        let place = self.place(data.space, self.kernel.lock_offset(lock));
        let (zero, one) = (self.constant(0), self.constant(1));
        let [again, taken, tried, done] = [(); 4].map(|()| self.builder.create_block());
        let ready = self.builder.append_block_param(tried, types::I32);
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        let old = self.builder.ins().atomic_cas(aligned(), place, zero, one);
        self.builder
            .ins()
            .brif(old, tried, &[BlockArg::Value(zero)], taken, &[]);
        self.builder.switch_to_block(taken);
        self.update(cell, Operand::Const(0), value);
        self.give_back(data.kind, place);
        self.builder.ins().jump(tried, &[BlockArg::Value(one)]);
        self.builder.switch_to_block(tried);
        self.builder.ins().brif(ready, done, &[], again, &[]);
        self.builder.switch_to_block(done);
    }

    /// See [`super::kernel::Phase::InOrder`].
    pub(super) fn in_order(&mut self, var: usize) {
        let kernel = self.kernel;
        let place = self.place(Space::Global, kernel.order_offset());
        let thread = self.thread();
        let (again, turn) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        let now = self.builder.ins().atomic_load(types::I32, aligned(), place);
        let mine = self.builder.ins().icmp(IntCC::Equal, now, thread);
        self.builder.ins().brif(mine, turn, &[], again, &[]);
        self.builder.switch_to_block(turn);
        let hash = self.builder.ins().load(types::I32, aligned(), place, 4);
        let factor = self.constant(31);
        let product = self.builder.ins().imul(hash, factor);
        let value = self.var(var);
        let hash = self.builder.ins().iadd(product, value);
        self.builder.ins().store(aligned(), hash, place, 4);
        let one = self.constant(1);
        let next = self.builder.ins().iadd(thread, one);
        self.builder.ins().atomic_store(aligned(), next, place);
    }

    /// The thread's number in the grid.
    fn thread(&mut self) -> Value {
        let block = self.intrinsic("gpu_ctaid_x", &[], &[types::I32])[0];
        let threads = self.intrinsic("gpu_ntid_x", &[], &[types::I32])[0];
        let index = self.intrinsic("gpu_tid_x", &[], &[types::I32])[0];
        let start = self.builder.ins().imul(block, threads);
        self.builder.ins().iadd(start, index)
    }

    /// See [`super::kernel::Phase::Stack`]. The head is a number, 0 for none, and in its high half how often it
    /// changed.
    pub(super) fn stack(&mut self) {
        let kernel = self.kernel;
        let head = self.place(Space::Global, kernel.head_offset());
        let links = self.place(Space::Global, kernel.links_offset());
        let thread = self.thread();
        let one = self.constant(1);
        let number = self.builder.ins().iadd(thread, one);
        let wide = self.builder.ins().uextend(types::I64, number);
        let link = self.element(links, thread, 4);
        let high = self
            .builder
            .ins()
            .iconst(types::I64, 0xffff_ffff_0000_0000u64 as i64);
        let change = self.builder.ins().iconst(types::I64, 1 << 32);
        let [push, pushed, pop, popped] = [(); 4].map(|()| self.builder.create_block());
        let before = self.builder.append_block_param(push, types::I64);
        let top = self.builder.append_block_param(pop, types::I64);

        let first = self.builder.ins().atomic_load(types::I64, aligned(), head);
        self.builder.ins().jump(push, &[BlockArg::Value(first)]);
        self.builder.switch_to_block(push);
        let below = self.builder.ins().ireduce(types::I32, before);
        self.builder.ins().store(aligned(), below, link, 0);
        let changes = self.builder.ins().band(before, high);
        let changes = self.builder.ins().iadd(changes, change);
        let new = self.builder.ins().bor(changes, wide);
        let seen = self.builder.ins().atomic_cas(aligned(), head, before, new);
        let same = self.builder.ins().icmp(IntCC::Equal, seen, before);
        self.builder
            .ins()
            .brif(same, pushed, &[], push, &[BlockArg::Value(seen)]);
        self.builder.switch_to_block(pushed);

        let first = self.builder.ins().atomic_load(types::I64, aligned(), head);
        self.builder.ins().jump(pop, &[BlockArg::Value(first)]);
        self.builder.switch_to_block(pop);
        let number = self.builder.ins().ireduce(types::I32, top);
        let index = self.builder.ins().isub(number, one);
        let link = self.element(links, index, 4);
        let below = self.builder.ins().atomic_load(types::I32, aligned(), link);
        let below = self.builder.ins().uextend(types::I64, below);
        let changes = self.builder.ins().band(top, high);
        let changes = self.builder.ins().iadd(changes, change);
        let new = self.builder.ins().bor(changes, below);
        let seen = self.builder.ins().atomic_cas(aligned(), head, top, new);
        let same = self.builder.ins().icmp(IntCC::Equal, seen, top);
        self.builder
            .ins()
            .brif(same, popped, &[], pop, &[BlockArg::Value(seen)]);
        self.builder.switch_to_block(popped);

        if let Some(records) = self.records {
            let record = self.element(records, index, 4 * RECORD as u32);
            let last = self
                .builder
                .ins()
                .iconst(types::I64, 4 * (RECORD as i64 - 1));
            let count = self.builder.ins().iadd(record, last);
            self.builder
                .ins()
                .atomic_rmw(types::I32, aligned(), AtomicRmwOp::Add, count, one);
        }
    }
}
