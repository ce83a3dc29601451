//! Loops with few turns: what counts them, what they carry, and what of them is used behind them.

use super::Writer;
use super::control::block_args;
use super::values::resized;
use crate::swarm::Form;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Opcode, Type, Value, types};

/// Turns of a loop, at most: a power of two.
const MAX_TURNS: u64 = 8;

/// What a loop changes in each turn by one operation.
const REDUCTIONS: [Opcode; 9] = [
    Opcode::Iadd,
    Opcode::Isub,
    Opcode::Band,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Smin,
    Opcode::Smax,
    Opcode::Umin,
    Opcode::Umax,
];

/// How a loop counts.
struct Counter {
    first: Value,
    /// Added in each turn, or taken off.
    step: Value,
    down: bool,
    /// There are turns left while the counter compares with the end in this way.
    code: IntCC,
    end: Value,
    /// Whether that is asked before the step is made.
    early: bool,
}

impl Writer<'_> {
    /// A loop that changes some values and counts.
    pub(super) fn repetition(&mut self) {
        let most = if self.random.once_in(6) { 12 } else { 3 };
        let types = self.some_types(most);
        let counter = self.counter();
        let steady = [(); 3].map(|()| self.operand(types::I64));
        let (body, after) = (self.new_block(), self.new_block());
        let carried = self.params(body, &types, false);
        let ty = self.value_type(counter.first);
        let count = self.func.dfg.append_block_param(body, ty);
        let results = self.params(after, &types, false);
        let mut starts = self.closed_operands(&types);
        starts.push(counter.first);
        let skips = self.random.once_in(4);
        if skips {
            let skipped = self.closed_operands(&types);
            let (starts, skipped) = (block_args(&starts), block_args(&skipped));
            let mut pos = self.pos();
            let more = (pos.ins()).icmp(counter.code, counter.first, counter.end);
            pos.ins().brif(more, body, &starts, after, &skipped);
        } else {
            self.pos().ins().jump(body, &block_args(&starts));
        }

        let before = self.scope.mark();
        self.continue_in(body, &carried);
        self.define(count);
        self.turns *= MAX_TURNS;
        let grows = self.swarm.has_form(Form::Carried) && self.random.once_in(2);
        let growing = grows.then(|| self.growing(count, &steady));
        self.inner_statements();
        let mut known = self.scope.mark();
        if self.random.once_in(3) {
            // Another way out.
            let leave = self.decision();
            let (values, go_on) = (self.closed_operands(&types), self.new_block());
            known = self.scope.mark();
            self.pos()
                .ins()
                .brif(leave, after, &block_args(&values), go_on, &[]);
            self.block = go_on;
            self.operations(3);
        }
        let next = self.next(&types, &carried, growing);
        self.turns /= MAX_TURNS;
        let mut pos = self.pos();
        let now = match counter.down {
            true => pos.ins().isub(count, counter.step),
            false => pos.ins().iadd(count, counter.step),
        };
        let tested = if counter.early { count } else { now };
        let more = pos.ins().icmp(counter.code, tested, counter.end);
        let mut again = next.clone();
        again.push(now);
        pos.ins()
            .brif(more, body, &block_args(&again), after, &block_args(&next));
        // What each way out has passed is known behind the loop.
        let escapes = !skips && self.swarm.has_form(Form::Escapes);
        self.scope.return_to(if escapes { known } else { before });
        self.continue_in(after, &results);
    }

    /// A counter that has at most [`MAX_TURNS`] turns.
    fn counter(&mut self) -> Counter {
        let ty = self
            .random
            .pick(&[types::I8, types::I32, types::I64, types::I64]);
        let number = match self.random.once_in(3) {
            true => {
                let number = self.random.below(MAX_TURNS as usize) as i64;
                self.number(ty, number)
            }
            false => {
                let number = self.operand(ty);
                let mask = self.number(ty, MAX_TURNS as i64 - 1);
                self.pos().ins().band(number, mask)
            }
        };
        let [zero, one] = [0, 1].map(|n| self.number(ty, n));
        let down = Counter {
            first: number,
            step: one,
            down: true,
            code: IntCC::NotEqual,
            end: zero,
            early: true,
        };
        match self.random.below(5) {
            0 => down,
            // The form in which most counters count down.
            1 => Counter {
                step: self.number(ty, -1),
                down: false,
                ..down
            },
            2 => Counter {
                step: self.step(ty),
                code: IntCC::SignedGreaterThan,
                early: false,
                ..down
            },
            3 => {
                let first = self.random.below(100) as i64;
                let first = self.number(ty, first);
                Counter {
                    first,
                    step: self.step(ty),
                    down: false,
                    code: IntCC::UnsignedLessThan,
                    end: self.pos().ins().iadd(first, number),
                    early: false,
                }
            }
            // From a negative number to zero.
            _ => {
                let number = self.pos().ins().bor(number, one);
                Counter {
                    first: self.pos().ins().ineg(number),
                    down: false,
                    early: false,
                    ..down
                }
            }
        }
    }

    /// A small step, often one that is not known.
    fn step(&mut self, ty: Type) -> Value {
        if self.random.once_in(2) {
            let step = self.random.between(1, 3) as i64;
            return self.number(ty, step);
        }
        let step = self.operand(ty);
        let [three, one] = [3, 1].map(|n| self.number(ty, n));
        let mut pos = self.pos();
        let step = pos.ins().band(step, three);
        pos.ins().bor(step, one)
    }

    /// Products and sums of a counter and of what is steady in the loop: it grows by the same in each turn.
    fn growing(&mut self, count: Value, steady: &[Value]) -> Value {
        let from = self.value_type(count);
        let signed = self.random.once_in(2);
        let mut value = resized(self.pos(), count, from, types::I64, signed);
        for _ in 0..self.random.between(1, 4) {
            let factor = self.random.between(2, 40) as i64;
            let other = match self.random.once_in(3) {
                true => self.number(types::I64, factor),
                false => self.random.pick(steady),
            };
            let amount = self.number(types::I8, factor % 5);
            let how = self.random.below(6);
            let mut pos = self.pos();
            value = match how {
                0..=2 => pos.ins().imul(value, other),
                3 => pos.ins().ishl(value, amount),
                4 => pos.ins().iadd(other, value),
                _ => pos.ins().isub(other, value),
            };
            self.cost += self.turns;
        }
        self.define(value);
        value
    }

    /// What a loop carries to its next turn.
    fn next(&mut self, list: &[Type], carried: &[Value], growing: Option<Value>) -> Vec<Value> {
        if !self.swarm.has_form(Form::Carried) {
            return self.closed_operands(list);
        }
        if self.random.once_in(4) {
            return self.rotated(list, carried);
        }
        let mut next = Vec::new();
        for (&ty, &value) in list.iter().zip(carried) {
            if let Some(growing) = growing.filter(|_| ty == types::I64)
                && self.random.once_in(2)
            {
                next.push(self.pos().ins().bxor(value, growing));
                continue;
            }
            let reduced = self.random.once_in(3).then(|| self.reduced(ty, value));
            next.push(match reduced.flatten() {
                Some(value) => value,
                None => self.closed_operand(ty),
            });
        }
        next
    }

    /// The same values, those of a type in other places.
    fn rotated(&mut self, types: &[Type], carried: &[Value]) -> Vec<Value> {
        let by = self.random.between(1, 3);
        let places = types.iter().enumerate().map(|(place, ty)| {
            let alike: Vec<usize> = (0..types.len()).filter(|i| types[*i] == *ty).collect();
            let own = alike.iter().position(|i| *i == place).unwrap_or(0);
            alike[(own + by) % alike.len()]
        });
        places.map(|place| carried[place]).collect()
    }

    /// A value changed by one operation.
    fn reduced(&mut self, ty: Type, value: Value) -> Option<Value> {
        let opcode = self.random.pick(&REDUCTIONS);
        let (oracle, swarm) = (self.oracle, self.swarm);
        let operation = self.catalogue.find(opcode, ty, oracle, &swarm)?;
        let other = self.closed_operand(ty);
        self.apply(operation, vec![value, other])
    }
}
