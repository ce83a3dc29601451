//! The copies of a loop.
//!
//! Takes a loop that has blocks for the edges out of it, and the [`Plan`]; writes the copies, their guard and the way
//! to what is left of the loop, and keeps [`Uses`] up to date.

use super::super::affine::Affine;
use super::super::copy::Copied;
use super::super::count::{Bound, Counter, Limit, compares, step};
use super::super::shape::{Body, Edge, Uses, branch, jump};
use super::plan::{Plan, edge};
use crate::constants::{integer, signed, unsigned};
use crate::values::tracking::Copies;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{
    Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types,
};

/// The work on one loop.
pub(super) struct Unrolling<'a> {
    pub(super) func: &'a mut Function,
    pub(super) uses: &'a mut Uses,
    pub(super) body: &'a Body,
    pub(super) affine: Affine,
    /// For those who follow the values of the source.
    pub(super) copies: Copies<'a>,
}

impl<'a> Unrolling<'a> {
    /// Returns the block where the copies begin.
    pub(super) fn build(&mut self, plan: Plan, entries: &[Edge]) -> Block {
        let body = self.body;
        let (latch, exit) = (body.latches[0], body.exits[0]);
        let copies = self.block(true);
        let (end, last) = self.copies(plan.copies(), copies);
        if matches!(plan, Plan::Rest(..)) {
            let rest = self.copies.number(plan.copies());
            rest.mark(self.func, &body.blocks);
        }
        let next = last.values(&latch.args(self.func));
        let out = (exit.to(self.func), last.values(&exit.args(self.func)));
        let location = self.func.srclocs[latch.branch];
        match plan {
            Plan::Complete(_) => {
                let jump = jump(self.func, end, out.0, &out.1);
                self.uses.add(self.func, jump);
                self.func.srclocs[jump] = location;
            }
            Plan::Divisor(..) => {
                let condition = match self.func.dfg.inst_args(latch.branch) {
                    &[condition, ..] => last.value(condition),
                    [] => return copies,
                };
                self.fork(end, condition, latch, [(copies, &next), (out.0, &out.1)]);
            }
            Plan::Rest(_, counter, limit) => {
                let ending = self.block(false);
                let tested = last.value(counter.tested);
                let end_of_range = self.guard(entries, (copies, &counter, limit));
                let enough = self.is_enough(end, &counter, (tested, limit, end_of_range));
                let branches = [(copies, &next[..]), (ending, &[][..])];
                let inst = branch(self.func, end, enough, branches);
                self.finish(inst, location);
                let bound = self.bound(ending, &counter);
                let mut pos = FuncCursor::new(self.func).at_bottom(ending);
                let again = pos.ins().icmp(counter.condition, tested, bound);
                self.note(again);
                let inst = branch(
                    self.func,
                    ending,
                    again,
                    [(body.header, &next), (out.0, &out.1)],
                );
                self.finish(inst, location);
                return copies;
            }
        }
        for entry in entries {
            let args = entry.args(self.func);
            entry.redirect(self.func, copies, &args);
        }
        // The rolled loop cannot be reached any more.
        for &block in &body.blocks {
            while let Some(inst) = self.func.layout.first_inst(block) {
                self.func.layout.remove_inst(inst);
            }
            self.func.layout.remove_block(block);
        }
        copies
    }

    /// All copies, from `at` on; where the last one ends, and what its values are.
    fn copies(&mut self, count: u32, at: Block) -> (Block, Copied<'a>) {
        let body = self.body;
        let latch = body.latches[0];
        let params = self.func.dfg.block_params(body.header).to_vec();
        let first = self.func.dfg.block_params(at).to_vec();
        let args = latch.args(self.func);
        // What a turn adds to each parameter, by the instruction that does.
        let updates: Vec<(Inst, Value, i64)> = (params.iter().zip(&first).zip(&args))
            .filter_map(|((&param, &first), &next)| {
                let step = step(self.func, body, param, next)?;
                Some((self.func.dfg.value_def(next).inst()?, first, step))
            })
            .collect();
        let mut copied = Copied::with(self.copies, &params, &first);
        let mut of_first: Option<Copied<'_>> = None;
        let mut end = at;
        for copy in 0..count {
            let affine = &self.affine;
            let mut instead = |func: &mut Function, uses: &mut Uses, inst: Inst, block: Block| {
                let (from, offset) =
                    match (updates.iter().find(|update| update.0 == inst), &of_first) {
                        (Some(&(_, first, step)), _) => {
                            (first, step.wrapping_mul(i64::from(copy) + 1))
                        }
                        (None, Some(of_first)) => {
                            let stride = affine.stride(inst)?;
                            let first = of_first.value(func.dfg.first_result(inst));
                            (first, stride.wrapping_mul(i64::from(copy)))
                        }
                        (None, None) => return None,
                    };
                Some(sum(func, uses, block, (from, offset), inst))
            };
            end = copied.turn(self.func, self.uses, body, (end, body.header), &mut instead);
            if copy + 1 < count {
                let next = copied.values(&args);
                let next = Copied::with(self.copies.number(copy + 1), &params, &next);
                let done = std::mem::replace(&mut copied, next);
                of_first.get_or_insert(done);
            }
        }
        (end, copied)
    }

    /// A new block in front of the loop, perhaps with the parameters of its header.
    fn block(&mut self, with_params: bool) -> Block {
        let func = &mut *self.func;
        let block = func.dfg.make_block();
        func.layout.insert_block(block, self.body.header);
        if with_params {
            let types: Vec<_> = func.dfg.block_param_types(self.body.header).collect();
            for ty in types {
                func.dfg.append_block_param(block, ty);
            }
        }
        block
    }

    /// The guard: enters the copies if there are turns enough, else the rolled loop. Returns the limit, which holds in
    /// all turns.
    fn guard(
        &mut self,
        entries: &[Edge],
        (copies, counter, limit): (Block, &Counter, Limit),
    ) -> Option<Value> {
        let header = self.body.header;
        let (guard, params) = self.entrance(entries, copies);
        let mut of_header = self.func.dfg.block_params(header).iter();
        let index = of_header.position(|param| *param == counter.param);
        let start = index.map_or(counter.param, |index| params[index]);
        if let Some(condition) = self.is_enough_at_first(guard, counter, (start, limit)) {
            let end = self.limit_value(guard, counter, limit);
            let inst = branch(
                self.func,
                guard,
                condition,
                [(copies, &params), (header, &params)],
            );
            let location = self.func.srclocs[self.body.latches[0].branch];
            self.finish(inst, location);
            return end;
        }
        let mut stays = None;
        if let (
            Limit::Moved {
                less,
                signed: is_signed,
            },
            Bound::Value(bound),
        ) = (limit, counter.bound)
        {
            let (condition, edge) = edge(counter, less, is_signed);
            let mut pos = FuncCursor::new(self.func).at_bottom(guard);
            let edge = pos.ins().iconst(counter.ty, payload(counter, edge));
            let within = pos.ins().icmp(condition, bound, edge);
            self.note(within);
            stays = Some(within);
        }
        let end = self.limit_value(guard, counter, limit);
        let mut condition = self.is_enough(guard, counter, (start, limit, end));
        if let Some(stays) = stays {
            let mut pos = FuncCursor::new(self.func).at_bottom(guard);
            condition = pos.ins().band(stays, condition);
            self.note(condition);
        }
        let inst = branch(
            self.func,
            guard,
            condition,
            [(copies, &params), (header, &params)],
        );
        let location = self.func.srclocs[self.body.latches[0].branch];
        self.finish(inst, location);
        end
    }

    /// Whether there are turns enough from a `start` that is a constant: the bound compares with the sum of it and of
    /// the way.
    fn is_enough_at_first(
        &mut self,
        guard: Block,
        counter: &Counter,
        (start, limit): (Value, Limit),
    ) -> Option<Value> {
        let (
            Limit::Moved {
                less,
                signed: is_signed,
            },
            Bound::Value(bound),
        ) = (limit, counter.bound)
        else {
            return None;
        };
        let start = integer(self.func, start)?;
        let sum = signed(counter.ty, start.wrapping_add(less));
        let further = match less > 0 {
            true if is_signed => IntCC::SignedGreaterThan,
            true => IntCC::UnsignedGreaterThan,
            false if is_signed => IntCC::SignedLessThan,
            false => IntCC::UnsignedLessThan,
        };
        if !compares(further, counter.ty, sum, start) {
            return None;
        }
        let mut pos = FuncCursor::new(self.func).at_bottom(guard);
        let sum = pos.ins().iconst(counter.ty, payload(counter, sum));
        let enough = pos.ins().icmp(counter.condition.swap_args(), bound, sum);
        self.note(enough);
        Some(enough)
    }

    /// The bound that the copies compare with, if it is no constant.
    fn limit_value(&mut self, guard: Block, counter: &Counter, limit: Limit) -> Option<Value> {
        let (Limit::Moved { less, .. }, Bound::Value(bound)) = (limit, counter.bound) else {
            return None;
        };
        let mut pos = FuncCursor::new(self.func).at_bottom(guard);
        let back = pos
            .ins()
            .iconst(counter.ty, payload(counter, less.wrapping_neg()));
        let moved = pos.ins().iadd(bound, back);
        self.note(moved);
        Some(moved)
    }

    /// The block in front of the loop, and what the header's parameters are there.
    fn entrance(&mut self, entries: &[Edge], copies: Block) -> (Block, Vec<Value>) {
        if let [entry] = entries {
            let args = entry.args(self.func);
            if self.func.dfg.insts[entry.branch].opcode() == Opcode::Jump {
                self.func.layout.remove_inst(entry.branch);
                return (entry.from, args);
            }
            let guard = self.func.dfg.make_block();
            self.func.layout.insert_block(guard, copies);
            entry.redirect(self.func, guard, &[]);
            return (guard, args);
        }
        let guard = self.block(true);
        self.func.layout.remove_block(guard);
        self.func.layout.insert_block(guard, copies);
        for entry in entries {
            let args = entry.args(self.func);
            entry.redirect(self.func, guard, &args);
        }
        (guard, self.func.dfg.block_params(guard).to_vec())
    }

    /// Whether all copies can be gone through from the turn on before which `tested` was tested, or would have been.
    fn is_enough(
        &mut self,
        block: Block,
        counter: &Counter,
        (tested, limit, end): (Value, Limit, Option<Value>),
    ) -> Value {
        let ty = counter.ty;
        let bound = match (limit, end) {
            (Limit::Moved { .. }, Some(end)) => end,
            (Limit::Moved { less, .. }, None) => {
                let Bound::Constant(bound) = counter.bound else {
                    unreachable!("the guard moves a bound that is no constant");
                };
                let mut pos = FuncCursor::new(self.func).at_bottom(block);
                pos.ins()
                    .iconst(ty, payload(counter, signed(ty, bound.wrapping_sub(less))))
            }
            (Limit::Distance { .. }, _) => self.bound(block, counter),
        };
        let mut pos = FuncCursor::new(self.func).at_bottom(block);
        let enough = match limit {
            Limit::Moved { .. } => pos.ins().icmp(counter.condition, tested, bound),
            Limit::Distance { above, rising } => {
                let zero = counter.bound == Bound::Constant(0);
                let distance = match rising {
                    true => pos.ins().isub(bound, tested),
                    false if zero => tested,
                    false => pos.ins().isub(tested, bound),
                };
                let above = pos.ins().iconst(ty, above);
                let enough = pos.ins().icmp(IntCC::UnsignedGreaterThan, distance, above);
                self.note(distance);
                enough
            }
        };
        self.note(enough);
        debug_assert_eq!(self.func.dfg.value_type(enough), types::I8);
        enough
    }

    /// What the counter is compared with, in `block`.
    fn bound(&mut self, block: Block, counter: &Counter) -> Value {
        match counter.bound {
            Bound::Value(value) => value,
            Bound::Constant(constant) => {
                let mut pos = FuncCursor::new(self.func).at_bottom(block);
                pos.ins().iconst(counter.ty, payload(counter, constant))
            }
        }
    }

    /// Ends `block` with the branch of the loop: to the first destination for another turn.
    fn fork(
        &mut self,
        block: Block,
        condition: Value,
        latch: Edge,
        [again, out]: [(Block, &[Value]); 2],
    ) {
        let targets = if latch.index == 0 {
            [again, out]
        } else {
            [out, again]
        };
        let inst = branch(self.func, block, condition, targets);
        self.finish(inst, self.func.srclocs[latch.branch]);
    }

    fn finish(&mut self, inst: Inst, location: cranelift_codegen::ir::RelSourceLoc) {
        self.func.srclocs[inst] = location;
        self.uses.add(self.func, inst);
    }

    /// Takes note of the operation that makes `value`.
    fn note(&mut self, value: Value) {
        if let Some(inst) = self.func.dfg.value_def(value).inst() {
            self.func.srclocs[inst] = self.func.srclocs[self.body.latches[0].branch];
            self.uses.add(self.func, inst);
        }
    }
}

/// An integer as an `iconst` of the counter's type takes it.
fn payload(counter: &Counter, value: i64) -> i64 {
    unsigned(counter.ty, value) as i64
}

/// `from` plus a constant, at the end of `block`, in the place of `inst`.
fn sum(
    func: &mut Function,
    uses: &mut Uses,
    block: Block,
    (from, offset): (Value, i64),
    inst: Inst,
) -> Value {
    let ty = func.dfg.value_type(from);
    let location = func.srclocs[inst];
    // What it is the sum of itself.
    let (from, offset) = match func
        .dfg
        .value_def(from)
        .inst()
        .map(|def| func.dfg.insts[def])
    {
        Some(InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [base, constant],
        }) => match integer(func, constant) {
            Some(more) => (base, offset.wrapping_add(more)),
            None => (from, offset),
        },
        _ => (from, offset),
    };
    let mut pos = FuncCursor::new(func).at_bottom(block);
    let offset = pos.ins().iconst(ty, unsigned(ty, offset) as i64);
    let sum = pos.ins().iadd(from, offset);
    let made = func.dfg.value_def(sum).unwrap_inst();
    func.srclocs[made] = location;
    uses.add(func, made);
    sum
}
