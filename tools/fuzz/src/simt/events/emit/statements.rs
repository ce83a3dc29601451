//! Statements, and the conditions of branches.

use super::{Emitter, Level, integer};
use crate::simt::emit::aligned;
use crate::simt::events::plan::{Element, Role, Stmt, Test};
use crate::simt::kernel::{Compare, Condition, Op, Operand, SALT, Update};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AtomicRmwOp, InstBuilder, MemFlagsData, Type, Value, types};

impl Emitter<'_, '_> {
    pub(in crate::simt::events) fn stmts(&mut self, stmts: &[Stmt]) {
        stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    pub(in crate::simt::events) fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign { to, op, a, b } => {
                let (a, b) = (self.operand(*a), self.operand(*b));
                let value = self.operation(*op, a, b);
                self.set(*to, value);
            }
            Stmt::Load { to, from } => {
                let (ty, place, offset) = self.address(from);
                let flags = self.flags(from);
                let value = self.builder.ins().load(ty, flags, place, offset);
                let value = self.folded(value);
                let (var, three) = (self.var(*to), self.constant(3));
                let product = self.builder.ins().imul(var, three);
                let sum = self.builder.ins().iadd(product, value);
                self.set(*to, sum);
            }
            Stmt::Store { to, value } => {
                let (ty, place, offset) = self.address(to);
                let value = self.operand(*value);
                let value = self.converted(value, ty);
                let flags = self.flags(to);
                self.builder.ins().store(flags, value, place, offset);
            }
            Stmt::Update { to, value } => self.update(to, *value),
            Stmt::If { when, then } => {
                let (inside, behind) = (self.builder.create_block(), self.builder.create_block());
                self.branch(when, inside, behind);
                self.builder.switch_to_block(inside);
                self.stmts(then);
                self.builder.ins().jump(behind, &[]);
                self.builder.switch_to_block(behind);
            }
            Stmt::Loop(inner) => self.repeat(inner),
        }
    }

    pub(in crate::simt::events) fn operation(&mut self, op: Op, a: Value, b: Value) -> Value {
        let ins = self.builder.ins();
        match op {
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
            // The generator takes simple ones only.
            Op::Add | Op::Pick | Op::Wide | Op::WidePick => ins.iadd(a, b),
        }
    }

    pub(in crate::simt::events) fn update(&mut self, to: &Element, value: Operand) {
        let role = self.plan.arrays[to.array].role;
        let (ty, place, offset) = self.address(to);
        let value = self.operand(value);
        let value = self.converted(value, ty);
        let (update, atomic) = match role {
            Role::Atomic(update) => (update, true),
            Role::Locked(update) => (update, false),
            _ => (Update::Add, false),
        };
        if atomic {
            let address = self.builder.func.dfg.value_type(place);
            let offset = self.number(address, offset as u64);
            let place = self.builder.ins().iadd(place, offset);
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
        let old = self.builder.ins().load(ty, aligned(), place, offset);
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
        self.builder.ins().store(aligned(), new, place, offset);
    }

    pub(in crate::simt::events) fn flags(&self, element: &Element) -> MemFlagsData {
        let flags = aligned();
        match (element.flags, self.plan.arrays[element.array].role) {
            (false, _) => flags,
            (true, Role::Input) => flags.with_notrap().with_readonly(),
            (true, _) => flags.with_notrap(),
        }
    }

    /// Type, address and offset of an element.
    pub(in crate::simt::events) fn address(&mut self, element: &Element) -> (Type, Value, i32) {
        let array = self.plan.arrays[element.array];
        let (ty, index) = (integer(8 * array.bytes), &element.index);
        let bytes = array.bytes as i32;
        let bases = if element.previous {
            &self.previous
        } else {
            &self.bases
        };
        let mut base = bases[element.array].expect("arrays have addresses");
        let wide = self.builder.func.dfg.value_type(base);
        if let Some(var) = index.var {
            let (var, count) = (self.var(var), self.constant(array.count));
            let index = self.builder.ins().urem(var, count);
            return (ty, self.element_at(base, index, array.bytes), 0);
        }
        if index.pointer
            && let [(level, 1)] = index.terms[..]
            && let Some(&Level::Pointer(var, of)) = self.levels.get(level)
            && of == element.array
        {
            return (ty, self.builder.use_var(var), index.plus * bytes);
        }
        if index.terms.is_empty() {
            return (ty, base, index.plus * bytes);
        }
        if index.split {
            let plus = self.number(wide, i64::from(index.plus * bytes) as u64);
            base = self.builder.ins().iadd(base, plus);
        }
        let bits = integer(index.bits);
        let mut sum = None;
        for (level, factor) in &index.terms {
            let position = self.position(*level, bits);
            let term = match factor {
                1 => position,
                _ => {
                    let factor = self.number(bits, u64::from(*factor));
                    self.builder.ins().imul(position, factor)
                }
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.builder.ins().iadd(sum, term),
            });
        }
        let mut sum = sum.expect("there is a term");
        if !index.split && !index.offset && index.plus != 0 {
            let plus = self.number(bits, i64::from(index.plus) as u64);
            sum = self.builder.ins().iadd(sum, plus);
        }
        let sum = self.extended(sum, wide, index.signed);
        let size = self.number(wide, u64::from(array.bytes));
        let offset = self.builder.ins().imul(sum, size);
        let place = self.builder.ins().iadd(base, offset);
        let offset = if index.offset && !index.split {
            index.plus * bytes
        } else {
            0
        };
        (ty, place, offset)
    }

    pub(in crate::simt::events) fn branch(
        &mut self,
        test: &Test,
        inside: ir::Block,
        behind: ir::Block,
    ) {
        let holds = match test {
            Test::Value(condition) => self.condition(condition),
            Test::HasPrevious => self.rank.expect("the kernel has ranks"),
            Test::Fits { constant, below } => {
                let (constant, below) = (self.constant(*constant), self.bound(*below, types::I32));
                self.builder
                    .ins()
                    .icmp(IntCC::UnsignedLessThan, constant, below)
            }
            Test::Inside {
                level,
                plus,
                below,
                form,
            } => {
                let ty = self.position_type(*level);
                let position = self.position(*level, ty);
                let below = self.bound(*below, ty);
                let plus_value = self.number(ty, i64::from(*plus) as u64);
                let sum = self.builder.ins().iadd(position, plus_value);
                if *plus < 0 && *form == 1 {
                    // The sum is not negative, and then it is below, or not.
                    let least = self.number(ty, u64::from(plus.unsigned_abs()));
                    let next = self.builder.create_block();
                    let code = IntCC::UnsignedGreaterThanOrEqual;
                    let enough = self.builder.ins().icmp(code, position, least);
                    self.builder.ins().brif(enough, next, &[], behind, &[]);
                    self.builder.switch_to_block(next);
                }
                self.builder.ins().icmp(IntCC::UnsignedLessThan, sum, below)
            }
        };
        self.builder.ins().brif(holds, inside, &[], behind, &[]);
    }

    pub(in crate::simt::events) fn condition(&mut self, condition: &Condition) -> Value {
        let mut value = self.operand(condition.value);
        if condition.salted {
            let (salt, factor) = (
                self.salt.expect("the kernel has a salt"),
                self.constant(SALT),
            );
            let salt = self.builder.ins().imul(salt, factor);
            value = self.builder.ins().bxor(value, salt);
        }
        let mask = self.constant(condition.mask);
        let masked = self.builder.ins().band(value, mask);
        let with = self.constant(condition.with);
        let code = match condition.compare {
            Compare::Equal => IntCC::Equal,
            Compare::NotEqual => IntCC::NotEqual,
            Compare::Less => IntCC::UnsignedLessThan,
            Compare::Greater => IntCC::SignedGreaterThan,
        };
        self.builder.ins().icmp(code, masked, with)
    }
}
