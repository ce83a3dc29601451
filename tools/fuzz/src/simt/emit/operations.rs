//! What statements compute, count and update.

use super::{Emitter, aligned, word};
use crate::simt::kernel::{COUNTED, Cell, Counting, GROUP, Op, Operand, Update, VALUES};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, Type, Value, types};

impl Emitter<'_, '_> {
    pub(super) fn operation(&mut self, op: Op, a: Value, b: Value) -> Value {
        let ins = self.builder.ins();
        match op {
            Op::Add => ins.iadd(a, b),
            Op::Sub => ins.isub(a, b),
            Op::Mul => ins.imul(a, b),
            Op::And => ins.band(a, b),
            Op::Or => ins.bor(a, b),
            Op::Xor => ins.bxor(a, b),
            Op::Shl => ins.ishl(a, b),
            Op::Shr => ins.ushr(a, b),
            Op::Sar => ins.sshr(a, b),
            Op::Max => ins.umax(a, b),
            Op::Min => ins.smin(a, b),
            Op::Smax => ins.smax(a, b),
            Op::Umin => ins.umin(a, b),
            Op::Pick => {
                let bit = self.constant(4);
                let masked = self.builder.ins().band(a, bit);
                let set = self.builder.ins().icmp(IntCC::Equal, masked, bit);
                self.builder.ins().select(set, a, b)
            }
            Op::Wide => {
                let [most, seven, half] = [29, 7, 32].map(|n| self.constant(n));
                let a = self.builder.ins().sextend(types::I64, a);
                let b = self.builder.ins().uextend(types::I64, b);
                let high = self.builder.ins().ishl(a, most);
                let sum = self.builder.ins().iadd(high, b);
                let less = self.builder.ins().ishl(b, seven);
                let difference = self.builder.ins().isub(sum, less);
                let upper = self.builder.ins().sshr(difference, half);
                self.builder.ins().ireduce(types::I32, upper)
            }
            Op::WidePick => {
                let half = self.constant(32);
                let [a, b] = [a, b].map(|v| self.builder.ins().sextend(types::I64, v));
                let sum = self.builder.ins().iadd(a, b);
                let difference = self.builder.ins().isub(a, b);
                let less = (self.builder.ins()).icmp(IntCC::SignedLessThan, difference, sum);
                let chosen = self.builder.ins().select(less, difference, sum);
                let upper = self.builder.ins().ushr(chosen, half);
                let both = self.builder.ins().bxor(chosen, upper);
                self.builder.ins().ireduce(types::I32, both)
            }
        }
    }

    /// A loop with a counter of its own, as [`Stmt::Count`] says.
    pub(super) fn count(&mut self, to: usize, number: Operand, counting: Counting, wide: bool) {
        let ty = if wide { types::I64 } else { types::I32 };
        let number = self.operand(number);
        let mask = self.constant(COUNTED);
        let mut number = self.builder.ins().band(number, mask);
        if wide {
            number = self.builder.ins().uextend(ty, number);
        }
        let step = match counting {
            Counting::Steps(step) => Some(self.step(step, ty)),
            _ => None,
        };
        let [zero, one, two] = [0, 1, 2].map(|n| self.builder.ins().iconst(ty, n));
        let [header, body, exit] = [(); 3].map(|()| self.builder.create_block());
        let counter = self.builder.append_block_param(header, ty);
        let (from, code, end) = match counting {
            Counting::Up => (zero, IntCC::UnsignedLessThan, number),
            Counting::Down | Counting::Steps(_) => (number, IntCC::SignedGreaterThan, zero),
            Counting::Shift => (number, IntCC::NotEqual, zero),
        };
        self.builder.ins().jump(header, &[from.into()]);
        self.builder.switch_to_block(header);
        let goes_on = self.builder.ins().icmp(code, counter, end);
        self.builder.ins().brif(goes_on, body, &[], exit, &[]);
        self.builder.switch_to_block(body);
        let mut offset = self.builder.ins().ishl(counter, two);
        if !wide {
            offset = self.builder.ins().uextend(types::I64, offset);
        }
        let record = self.record();
        let place = self.builder.ins().iadd(record, offset);
        let own = (self.builder.ins()).load(types::I32, aligned(), place, word(VALUES));
        let (var, three) = (self.var(to), self.constant(3));
        let product = self.builder.ins().imul(var, three);
        let term = match wide {
            true => self.builder.ins().ireduce(types::I32, counter),
            false => counter,
        };
        let sum = self.builder.ins().iadd(product, term);
        let sum = self.builder.ins().iadd(sum, own);
        self.set(to, sum);
        let next = match counting {
            Counting::Up => self.builder.ins().iadd(counter, one),
            Counting::Down | Counting::Steps(_) => {
                self.builder.ins().isub(counter, step.unwrap_or(one))
            }
            Counting::Shift => self.builder.ins().ushr(counter, one),
        };
        self.builder.ins().jump(header, &[next.into()]);
        self.builder.switch_to_block(exit);
        let last = match wide {
            true => self.builder.ins().ireduce(types::I32, counter),
            false => counter,
        };
        let var = self.var(to);
        let sum = self.builder.ins().iadd(var, last);
        self.set(to, sum);
    }

    /// Each variable gets the value of the next one.
    pub(super) fn rotate(&mut self, list: &[usize]) {
        let old: Vec<Value> = list.iter().map(|var| self.var(*var)).collect();
        for (place, var) in list.iter().enumerate() {
            self.set(*var, old[(place + 1) % old.len()]);
        }
    }

    /// The same in a loop with nothing else.
    pub(super) fn rotate_often(&mut self, list: &[usize], times: Operand) {
        let times = self.operand(times);
        let [mask, zero, one] = [COUNTED, 0, 1].map(|n| self.constant(n));
        let number = self.builder.ins().band(times, mask);
        let [header, body, exit] = [(); 3].map(|()| self.builder.create_block());
        let counter = self.builder.append_block_param(header, types::I32);
        self.builder.ins().jump(header, &[number.into()]);
        self.builder.switch_to_block(header);
        let more = (self.builder.ins()).icmp(IntCC::NotEqual, counter, zero);
        self.builder.ins().brif(more, body, &[], exit, &[]);
        self.builder.switch_to_block(body);
        self.rotate(list);
        let next = self.builder.ins().isub(counter, one);
        self.builder.ins().jump(header, &[next.into()]);
        self.builder.switch_to_block(exit);
    }

    /// The step of [`Counting::Steps`].
    fn step(&mut self, step: Operand, ty: Type) -> Value {
        let step = self.operand(step);
        let [two, one] = [2, 1].map(|n| self.constant(n));
        let step = self.builder.ins().band(step, two);
        let step = self.builder.ins().bor(step, one);
        match ty {
            types::I64 => self.builder.ins().uextend(ty, step),
            _ => step,
        }
    }

    pub(in crate::simt) fn update(&mut self, cell: usize, which: Operand, value: Operand) {
        let Cell {
            space,
            update,
            bytes,
            lock,
        } = self.kernel.cells[cell];
        let base = self.place(space, self.kernel.cell_offset(cell));
        let (which, value) = (self.operand(which), self.operand(value));
        let mask = self.constant(GROUP - 1);
        let index = self.builder.ins().band(which, mask);
        let size = self.constant(bytes);
        let offset = self.builder.ins().imul(index, size);
        let offset = match self.builder.func.dfg.value_type(base) {
            types::I64 => self.builder.ins().uextend(types::I64, offset),
            _ => offset,
        };
        let place = self.builder.ins().iadd(base, offset);
        let ty = Type::int(8 * bytes as u16).unwrap_or(types::I32);
        let value = match bytes {
            8 => self.builder.ins().uextend(ty, value),
            4 => value,
            _ => self.builder.ins().ireduce(ty, value),
        };
        if lock.is_none() {
            let op = match update {
                Update::Add => AtomicRmwOp::Add,
                Update::And => AtomicRmwOp::And,
                Update::Or => AtomicRmwOp::Or,
                Update::Xor => AtomicRmwOp::Xor,
                Update::Umax => AtomicRmwOp::Umax,
                Update::Umin => AtomicRmwOp::Umin,
                Update::Smax => AtomicRmwOp::Smax,
                Update::Smin => AtomicRmwOp::Smin,
            };
            self.builder
                .ins()
                .atomic_rmw(ty, aligned(), op, place, value);
            return;
        }
        let old = self.builder.ins().load(ty, aligned(), place, 0);
        let ins = self.builder.ins();
        let new = match update {
            Update::Add => ins.iadd(old, value),
            Update::And => ins.band(old, value),
            Update::Or => ins.bor(old, value),
            Update::Xor => ins.bxor(old, value),
            Update::Umax => ins.umax(old, value),
            Update::Umin => ins.umin(old, value),
            Update::Smax => ins.smax(old, value),
            Update::Smin => ins.smin(old, value),
        };
        self.builder.ins().store(aligned(), new, place, 0);
    }
}
