//! Lets a counter count in bytes where it is read as an offset only.
//!
//! A loop over shared memory counts elements, `for (i = tid; i < 256; i += ntid) s[i] = 0`, and shifts the counter in
//! each turn to access one. If nothing else reads the counter, and its test cannot tell the difference, it starts
//! shifted, grows by a shifted step, and is compared with a shifted bound; the shift in the loop goes. Offsets of
//! global memory stay: IMAD.WIDE scales them for nothing.
//!
//! The test says the same as long as no number involved wraps when it is shifted: the counter starts between 0 and what
//! is known of its start ([`greatest`]), and another turn begins below the bound only.

use super::LoopContext;
use super::count::is_invariant;
use super::shape::{Body, Edge, Uses, passed};
use crate::analysis::bounds::greatest;
use crate::constants::integer;
use crate::values::tracking::Tracking;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};

/// Scales the counters for which that is worth it; true if anything has changed.
pub(super) fn scale(
    context: &mut Context,
    given: &LoopContext<'_>,
    uses: &mut Option<Uses>,
) -> bool {
    let mut changed = false;
    for body in Body::innermost(context) {
        let Some((entry, latch)) = body.only_ways(context) else {
            continue;
        };
        let func = &mut context.func;
        for index in 0..func.dfg.block_params(body.header).len() {
            let param = func.dfg.block_params(body.header)[index];
            if func.dfg.value_type(param) != types::I32 {
                continue;
            }
            let uses = uses.get_or_insert_with(|| Uses::of(func));
            if let Some(counter) = Counter::of(func, given, uses, &body, (entry, latch), index) {
                counter.count_in_bytes(func, uses, given.tracking);
                changed = true;
            }
        }
    }
    changed
}

/// A counter that is shifted, tested and nothing else.
struct Counter {
    entry: Edge,
    latch: Edge,
    /// Which parameter of the header it is.
    index: usize,
    param: Value,
    /// What makes its next value of it and the step.
    update: Inst,
    step: Value,
    /// The comparison of the next value with a constant.
    test: Inst,
    bound: i64,
    /// The shifts, and their amount.
    shifts: Vec<Inst>,
    amount: i64,
}

impl Counter {
    fn of(
        func: &Function,
        given: &LoopContext<'_>,
        uses: &Uses,
        body: &Body,
        (entry, latch): (Edge, Edge),
        index: usize,
    ) -> Option<Self> {
        let param = func.dfg.block_params(body.header)[index];
        let (start, next) = (entry.args(func)[index], latch.args(func)[index]);
        let update = func.dfg.value_def(next).inst()?;
        let step = match func.dfg.insts[update] {
            InstructionData::Binary {
                opcode: Opcode::Iadd,
                args: [a, b],
            } if (a == param) != (b == param) => {
                if a == param {
                    b
                } else {
                    a
                }
            }
            _ => return None,
        };
        let readers = |value: Value| uses.of_value(value).iter().copied();
        let shifts: Vec<Inst> = readers(param).filter(|&reader| reader != update).collect();
        let amount = shift_amount(func, *shifts.first()?, param)?;
        let is_offset = |&shift: &Inst| {
            let offset = func.dfg.first_result(shift);
            shift_amount(func, shift, param) == Some(amount)
                && readers(offset).all(|reader| is_address_of(func, reader, offset))
        };
        let mut tests = readers(next).filter(|&reader| reader != latch.branch);
        let test = tests.next().filter(|_| tests.next().is_none())?;
        let bound = match func.dfg.insts[test] {
            InstructionData::IntCompare {
                cond: IntCC::SignedLessThan | IntCC::UnsignedLessThan,
                args: [tested, bound],
                ..
            } if tested == next => integer(func, bound)?,
            _ => return None,
        };
        // Another turn begins only where the test says so.
        let is_decided = matches!(
            func.dfg.insts[latch.branch],
            InstructionData::Brif { arg, .. } if arg == func.dfg.first_result(test) && latch.index == 0
        );
        let most = |value| greatest(func, given.intrinsics, value);
        let in_turns = most(start).max(u64::try_from(bound).ok()?);
        let fits = (in_turns + most(step)) << amount < 1 << 31;
        let may = shifts.iter().all(is_offset)
            && is_decided
            && fits
            && passed(func, latch, next) == 1
            && is_invariant(func, body, step);
        may.then_some(Counter {
            entry,
            latch,
            index,
            param,
            update,
            step,
            test,
            bound,
            shifts,
            amount,
        })
    }

    fn count_in_bytes(self, func: &mut Function, uses: &mut Uses, tracking: &Tracking) {
        let mut args = self.entry.args(func);
        let header = self.entry.to(func);
        let next = func.dfg.first_result(self.update);
        let mut pos = FuncCursor::new(func).at_inst(self.entry.branch);
        let line = pos.func.srcloc(self.shifts[0]);
        pos.set_srcloc(line);
        let start = self.shifted(&mut pos, uses, args[self.index]);
        let step = self.shifted(&mut pos, uses, self.step);
        args[self.index] = start;
        self.entry.redirect(pos.func, header, &args);
        uses.add(pos.func, self.entry.branch);
        pos.goto_inst(self.test);
        let bound = pos.ins().iconst(types::I32, self.bound << self.amount);
        for (inst, operands) in [
            (self.update, [self.param, step]),
            (self.test, [next, bound]),
        ] {
            pos.func.dfg.inst_args_mut(inst).copy_from_slice(&operands);
            uses.add(pos.func, inst);
        }
        tracking.forget(self.param);
        tracking.forget(next);
        for &shift in &self.shifts {
            let offset = pos.func.dfg.first_result(shift);
            tracking.also(offset, self.param);
            uses.replace(pos.func, (offset, self.param), |_, _| true);
            pos.func.layout.remove_inst(shift);
        }
        debug_assert_eq!(self.latch.args(func)[self.index], next);
    }

    /// A number in front of the loop, shifted; an instruction only where it is not known.
    fn shifted(&self, pos: &mut FuncCursor<'_>, uses: &mut Uses, value: Value) -> Value {
        if let Some(number) = integer(pos.func, value) {
            return pos.ins().iconst(types::I32, number << self.amount);
        }
        let amount = pos.ins().iconst(types::I32, self.amount);
        let shifted = pos.ins().ishl(value, amount);
        if let Some(inst) = pos.func.dfg.value_def(shifted).inst() {
            uses.add(pos.func, inst);
        }
        shifted
    }
}

/// By how much an instruction shifts a value to the left.
fn shift_amount(func: &Function, inst: Inst, value: Value) -> Option<i64> {
    match func.dfg.insts[inst] {
        InstructionData::Binary {
            opcode: Opcode::Ishl,
            args: [shifted, by],
        } if shifted == value => integer(func, by).filter(|by| (1..=8).contains(by)),
        _ => None,
    }
}

/// Whether an instruction accesses memory at a value.
fn is_address_of(func: &Function, inst: Inst, value: Value) -> bool {
    match func.dfg.insts[inst] {
        InstructionData::Load { arg, .. } => arg == value,
        InstructionData::Store { args, .. } => args[0] != value && args[1] == value,
        _ => false,
    }
}
