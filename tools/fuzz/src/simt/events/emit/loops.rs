//! Loops: their counters, bounds and ends.

use super::{Emitter, Level, integer};
use crate::simt::events::plan::{Bound, Form, Loop};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types};

impl Emitter<'_, '_> {
    /// The position in a loop, in so many bits.
    pub(in crate::simt::events) fn position(&mut self, level: usize, ty: Type) -> Value {
        let value = match self.levels[level] {
            Level::Counter(var, _) => self.builder.use_var(var),
            Level::Sum(var, number) => {
                let now = self.builder.use_var(var);
                self.builder.ins().iadd(now, number)
            }
            Level::Pointer(var, array) => {
                let (now, base) = (self.builder.use_var(var), self.bases[array]);
                let base = base.expect("arrays have addresses");
                let distance = self.builder.ins().isub(now, base);
                let shift = self.constant(self.plan.arrays[array].bytes.trailing_zeros());
                self.builder.ins().ushr(distance, shift)
            }
        };
        self.converted(value, ty)
    }

    /// The type in which the position of a level is computed.
    pub(in crate::simt::events) fn position_type(&self, level: usize) -> Type {
        match self.levels[level] {
            Level::Counter(_, ty) => ty,
            Level::Sum(_, number) => self.builder.func.dfg.value_type(number),
            Level::Pointer(..) => types::I32,
        }
    }

    pub(in crate::simt::events) fn bound(&mut self, bound: Bound, ty: Type) -> Value {
        let passed = self
            .numbers
            .iter()
            .find(|(number, _)| *number == bound.number);
        match passed.filter(|_| bound.passed) {
            Some((_, value)) => {
                let value = *value;
                self.converted(value, ty)
            }
            None => self.number(ty, u64::from(bound.number)),
        }
    }

    pub(in crate::simt::events) fn repeat(&mut self, inner: &Loop) {
        let pointer = match inner.form {
            Form::PointerUp(array) | Form::PointerDown(array) => {
                let base = self.bases[array].expect("arrays have addresses");
                Some((array, base, self.plan.arrays[array].bytes))
            }
            _ => None,
        };
        let ty = match pointer {
            Some((_, base, _)) => self.builder.func.dfg.value_type(base),
            None => integer(inner.bits),
        };
        let number = self.bound(inner.bound, ty);
        let bytes = pointer.map_or(1, |pointer| pointer.2);
        let step = match inner.step.passed {
            true => {
                let step = self.bound(inner.step, ty);
                let bytes = self.number(ty, u64::from(bytes));
                self.builder.ins().imul(step, bytes)
            }
            false => self.number(ty, u64::from(inner.step.number * bytes)),
        };
        let (base, end) = match pointer {
            Some((_, base, bytes)) => (base, self.element_at(base, number, bytes)),
            None => (self.number(ty, 0), number),
        };
        let downwards = matches!(inner.form, Form::Down | Form::PointerDown(_));
        let first = match inner.form {
            Form::Up | Form::UpTo | Form::PointerUp(_) => base,
            Form::Down | Form::PointerDown(_) => end,
            Form::Negative => self.builder.ins().ineg(number),
        };
        let counter = self.builder.declare_var(ty);
        self.builder.def_var(counter, first);
        let level = match (pointer, inner.form) {
            (Some((array, ..)), _) => Level::Pointer(counter, array),
            (None, Form::Negative) => Level::Sum(counter, number),
            (None, _) => Level::Counter(counter, ty),
        };
        let [test, body, out] = [(); 3].map(|()| self.builder.create_block());
        let start = if inner.rotated { body } else { test };
        self.builder.ins().jump(start, &[]);
        self.builder.switch_to_block(body);
        self.levels.push(level);
        let now = self.builder.use_var(counter);
        if downwards {
            let next = self.builder.ins().isub(now, step);
            self.builder.def_var(counter, next);
        }
        self.stmts(&inner.body);
        self.levels.pop();
        if let Some(leave) = &inner.leave {
            let on = self.builder.create_block();
            let left = self.condition(leave);
            self.builder.ins().brif(left, out, &[], on, &[]);
            self.builder.switch_to_block(on);
        }
        if !downwards {
            let now = self.builder.use_var(counter);
            let next = self.builder.ins().iadd(now, step);
            self.builder.def_var(counter, next);
        }
        self.builder.ins().jump(test, &[]);
        self.builder.switch_to_block(test);
        let now = self.builder.use_var(counter);
        let (code, with) = match inner.form {
            Form::Up if inner.bits >= 32 && inner.bound.number.is_multiple_of(3) => {
                (IntCC::SignedLessThan, number)
            }
            Form::Up => (IntCC::UnsignedLessThan, number),
            Form::UpTo | Form::PointerUp(_) => (IntCC::NotEqual, end),
            Form::Down if inner.step.number != 1 => (IntCC::UnsignedGreaterThanOrEqual, step),
            Form::Down | Form::PointerDown(_) => (IntCC::NotEqual, base),
            Form::Negative => (IntCC::NotEqual, base),
        };
        let more = self.builder.ins().icmp(code, now, with);
        self.builder.ins().brif(more, body, &[], out, &[]);
        self.builder.switch_to_block(out);
    }
}
