//! Copies the turns of a loop, so that fewer tests are made and more loads are on their way at once.
//!
//! Takes loops that hold no other, with one way out, at the end, that a counter decides ([`super::count`]). There are three ways:
//!
//! - *completely*, if the number of turns is known and small: no loop is left, and the mid-end is run again to work the counters into
//!   what is computed from them;
//! - *by a divisor* of a known number of turns: no test is left between the copies;
//! - *with the rolled loop behind*, if the number is only known when it runs. A guard asks whether so many turns are to come, and so does the test at
//!   the end of the copies; else the loop as it was makes those that are left:
//!
//! ```text
//! guard: brif enough(i), copies(i), rolled(i)
//! copies(i): work(i); work(i+1); work(i+2); work(i+3); brif enough(i+4), copies(i+4), ending
//! ending: brif test(i+4), rolled(i+4), out
//! rolled(i): work(i); brif test(i+1), rolled(i+1), out
//! ```
//!
//! A copy is entered only when its turn is sure to come, so nothing is speculated, and every test that is left out would have succeeded: `enough` is exact about
//! wrapping (`Counter::limit`). Additions stay in their order. The counters of all copies are sums of the first one's and a constant, and so are addresses
//! (`super::affine`), which accesses take as their offset.
//!
//! Not unrolled are loops that wait for other threads: those are left by what was read from memory, which is no counter. Operations on the active
//! lanes need all lanes to take the same number of turns; that number must then be a constant or come from a kernel's parameters.

use super::Given;
use super::affine::{Affine, Steady};
use super::copy::Copied;
use super::count::{Bound, Counter, Limit, bottom, compares, step, turns};
use super::hints::Hints;
use super::overlap::overlap;
use super::shape::{Body, Edge, Uses, branch, close, integer, jump, signed, unsigned};
use super::size::size;
use super::uniform::is_uniform;
use crate::clif::intrinsics::Effect;
use crate::remarks::{Missed, Remarks};
use crate::settings::{OptLevel, Unroll};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{
    Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value, types,
};

/// Most machine instructions of all copies together (*assumed*: a tenth of the smallest instruction cache that GPUs of the kind have).
const LARGEST: u32 = 128;
/// The same where a number of copies is asked for.
const LARGEST_ASKED: u32 = 1024;
/// Copies by default (*assumed*: as many loads as hide a third of the latency of memory with eight warps).
const COPIES: u32 = 4;
/// Most turns that are followed to see how many there are (*assumed*).
const FOLLOWED: u32 = 4096;

/// What is done with a loop.
#[derive(Clone, Copy, Debug)]
enum Plan {
    Complete(u32),
    /// In the copies the parameter is steady.
    Divisor(u32, Option<Steady>),
    /// The rolled loop makes the rest; the counter says how much that is.
    Rest(u32, Counter, Limit),
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unrolled {
    /// Some loop was unrolled.
    pub(super) any: bool,
    /// Some loop is gone, so that there is something to fold.
    pub(super) folds: bool,
}

/// Unrolls what is worth it. The graph and what is made from it are not up to date then if anything was.
pub(super) fn unroll(
    context: &mut Context,
    given: &Given<'_>,
    hints: &Hints,
    uses: &mut Option<Uses>,
    remarks: &mut Remarks,
) -> Unrolled {
    let mut done = Unrolled::default();
    let mut planned = Vec::new();
    for body in Body::innermost(context) {
        match plan(context, given, hints, &body) {
            Ok(plan) => planned.push((body, plan)),
            Err(None) => {}
            Err(Some(reason)) => {
                remarks.missed(body.line(&context.func), Missed::Unrolling, || reason)
            }
        }
    }
    if planned.is_empty() {
        return done;
    }
    let uses = uses.get_or_insert_with(|| Uses::of(&context.func));
    for (body, _) in &planned {
        let exit = body.exits[0];
        let alone = context.cfg.pred_iter(exit.to(&context.func)).count() == 1;
        close(&mut context.func, uses, body, exit, alone);
    }
    // The ways into a loop may come from blocks in between now.
    context.compute_cfg();
    for (body, plan) in &planned {
        let entries = body.entries(context);
        let affine = Affine::of(context, body, plan.steady());
        let mut work = Unrolling {
            func: &mut context.func,
            uses,
            body,
            affine,
        };
        let copies = work.build(*plan, &entries);
        if let [_] = body.blocks[..] {
            overlap(&mut context.func, given.intrinsics, copies);
        }
        done.any = true;
        done.folds |= matches!(plan, Plan::Complete(_));
    }
    done
}

impl Plan {
    fn copies(self) -> u32 {
        match self {
            Plan::Complete(copies) | Plan::Divisor(copies, _) | Plan::Rest(copies, ..) => copies,
        }
    }

    /// The counter that does not wrap within the copies.
    fn steady(self) -> Option<Steady> {
        match self {
            Plan::Complete(_) => None,
            Plan::Divisor(_, steady) => steady,
            Plan::Rest(_, counter, limit) => match limit {
                Limit::Moved { signed, .. } => Some(Steady {
                    counter: counter.param,
                    signed,
                    unsigned: !signed,
                }),
                Limit::Distance { .. } => None,
            },
        }
    }
}

/// What to do with `body`, or why nothing; without a reason if nobody asked for anything.
fn plan(
    context: &Context,
    given: &Given<'_>,
    hints: &Hints,
    body: &Body,
) -> Result<Plan, Option<&'static str>> {
    let func = &context.func;
    let asked = match (given.settings.unroll, hints.of(body.header)) {
        (Unroll::Off, _) | (_, Some(0 | 1)) => return Err(None),
        (_, Some(times)) | (Unroll::Times(times), None) => Some(u32::from(times)),
        (Unroll::Auto, None) if given.settings.opt_level == OptLevel::Speed => None,
        (Unroll::Auto, None) => return Err(None),
    };
    let Some((latch, _)) = bottom(body) else {
        return Err(Some(
            "it has more than one way out, or is not left at its end",
        ));
    };
    if !body.plain {
        return Err(Some("it has a branch with many targets"));
    }
    let mut total = 0;
    let mut convergent = false;
    for inst in body.insts(func) {
        let row = given.intrinsics.of_call(func, inst);
        if row.is_none() && func.dfg.insts[inst].opcode().is_call() {
            return Err(Some("it calls a function"));
        }
        convergent |= row.is_some_and(|row| row.effect == Effect::Convergent);
        total += size(func, given.intrinsics, inst);
    }
    // The branch is not copied, and the test mostly is not.
    let turn = total.saturating_sub(2).max(1);
    let largest = match asked {
        Some(_) => LARGEST_ASKED,
        None => LARGEST,
    };
    let room = largest / turn;
    if room < if asked.is_some() { 2 } else { COPIES } {
        return Err(Some("its body is long"));
    }
    let start = starts(context, body);
    let known = turns(func, body, latch, &start, FOLLOWED);
    if let Some(turns) = known {
        if turns <= asked.unwrap_or(room).min(room) {
            return Ok(Plan::Complete(turns));
        }
        let copies = asked.unwrap_or(2 * COPIES).min(room);
        let divides = |copies: &u32| turns % copies == 0;
        let least = if asked.is_some() { copies } else { 3 };
        if let Some(copies) = (least..=copies).rev().find(divides) {
            let counter = Counter::of(func, body, latch);
            return Ok(Plan::Divisor(
                copies,
                counter.and_then(|counter| steady(func, body, &counter, &start, turns)),
            ));
        }
    }
    let copies = asked.unwrap_or(COPIES).min(room);
    let counter =
        Counter::of(func, body, latch).ok_or(Some("no counter decides how often it turns"))?;
    if convergent && known.is_none() && !is_uniform_count(context, given, body, &counter) {
        return Err(Some(
            "lanes may take different numbers of turns, and it has operations on the active lanes",
        ));
    }
    let limit = counter.limit(copies - 1).ok_or(Some(
        "its test and its step do not say how many turns are left",
    ))?;
    if limit.never(&counter) {
        return Err(Some("it makes too few turns"));
    }
    Ok(Plan::Rest(copies, counter, limit))
}

/// `counter` if it does not wrap in so many turns.
fn steady(
    func: &Function,
    body: &Body,
    counter: &Counter,
    start: &[Option<i64>],
    turns: u32,
) -> Option<Steady> {
    let mut params = func.dfg.block_params(body.header).iter();
    let first = start[params.position(|param| *param == counter.param)?]?;
    let last = first.checked_add(counter.step.checked_mul(i64::from(turns))?)?;
    let [_, largest] = range(counter, true);
    let inside = |value: i64| (0..=largest).contains(&value);
    (inside(first) && inside(last)).then_some(Steady {
        counter: counter.param,
        signed: true,
        unsigned: true,
    })
}

/// What is known of the parameters of the header in the first turn.
fn starts(context: &Context, body: &Body) -> Vec<Option<i64>> {
    let func = &context.func;
    let mut found: Option<Vec<Option<i64>>> = None;
    for entry in body.entries(context) {
        let args = entry
            .args(func)
            .into_iter()
            .map(|value| integer(func, value));
        found = Some(match found {
            None => args.collect(),
            Some(others) => others
                .into_iter()
                .zip(args)
                .map(|(a, b)| a.filter(|_| a == b))
                .collect(),
        });
    }
    found.unwrap_or_default()
}

/// Whether all lanes that enter the loop together leave it together.
fn is_uniform_count(context: &Context, given: &Given<'_>, body: &Body, counter: &Counter) -> bool {
    let func = &context.func;
    let uniform = |value| is_uniform(func, given, value);
    let bound = match counter.bound {
        Bound::Constant(_) => true,
        Bound::Value(value) => uniform(value),
    };
    let params = func.dfg.block_params(body.header);
    let Some(index) = params.iter().position(|param| *param == counter.param) else {
        return false;
    };
    let entries = body.entries(context);
    bound && entries.len() == 1 && uniform(entries[0].args(func)[index])
}

impl Limit {
    /// Whether it is known that there are never so many turns.
    fn never(self, counter: &Counter) -> bool {
        match (self, counter.bound) {
            (Limit::Moved { less, signed }, Bound::Constant(bound)) => {
                !stays(counter, bound, less, signed)
            }
            _ => false,
        }
    }
}

/// The least and the largest value of the counter's type, sign-extended.
fn range(counter: &Counter, is_signed: bool) -> [i64; 2] {
    let ty = counter.ty;
    let [least, largest] = match is_signed {
        true => [
            1i64 << (ty.bits() - 1),
            (1i64 << (ty.bits() - 1)).wrapping_sub(1),
        ],
        false => [0, -1],
    };
    [signed(ty, least), signed(ty, largest)]
}

/// Whether `bound` minus `less` does not wrap.
fn stays(counter: &Counter, bound: i64, less: i64, is_signed: bool) -> bool {
    let (condition, edge) = edge(counter, less, is_signed);
    compares(condition, counter.ty, bound, edge)
}

/// How a bound compares with what if it minus `less` does not wrap.
fn edge(counter: &Counter, less: i64, is_signed: bool) -> (IntCC, i64) {
    let [least, largest] = range(counter, is_signed);
    let end = if less > 0 { least } else { largest };
    let condition = match (less > 0, is_signed) {
        (true, true) => IntCC::SignedGreaterThanOrEqual,
        (true, false) => IntCC::UnsignedGreaterThanOrEqual,
        (false, true) => IntCC::SignedLessThanOrEqual,
        (false, false) => IntCC::UnsignedLessThanOrEqual,
    };
    (condition, signed(counter.ty, end.wrapping_add(less)))
}

/// The work on one loop.
struct Unrolling<'a> {
    func: &'a mut Function,
    uses: &'a mut Uses,
    body: &'a Body,
    affine: Affine,
}

impl Unrolling<'_> {
    /// Returns the block where the copies begin.
    fn build(&mut self, plan: Plan, entries: &[Edge]) -> Block {
        let body = self.body;
        let (latch, exit) = (body.latches[0], body.exits[0]);
        let copies = self.block(true);
        let (end, last) = self.copies(plan.copies(), copies);
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
    fn copies(&mut self, count: u32, at: Block) -> (Block, Copied) {
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
        let mut copied = Copied::with(&params, &first);
        let mut of_first: Option<Copied> = None;
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
                let done = std::mem::replace(&mut copied, Copied::with(&params, &next));
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

    /// The guard: enters the copies if there are turns enough, else the rolled loop. Returns the limit, which holds in all turns.
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

    /// Whether there are turns enough from a `start` that is a constant: the bound compares with the sum of it and of the way.
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
