//! Loads of the next turn under way while this one works.
//!
//! A turn that begins with loads waits for them. Here a turn loads what the next one begins with, and works on what the
//! turn before has loaded (software pipelining with two stages):
//!
//! ```text
//! header(p):     x = load p; share x; barrier; rest; brif test(p), header(p + 4), out
//!
//!                x0 = load p0; jump header(p0, x0)
//! header(p, x):  share x; barrier; brif test(p), again, last
//! again:         x' = load p + 4; rest; jump header(p + 4, x')
//! last:          rest; jump out
//! ```
//!
//! The last turn is a copy without the loads, so nothing is loaded that was not before. The order of blocks puts the
//! test at the end of `again`: a turn has as many branches as it had.
//!
//! Taken are innermost loops, and short ones around such, that load a part of global memory, share it by a barrier of
//! the block in the header, and compute from what was shared. The loads in front of the barrier are over when it opens,
//! so those of the next turn take no more registers than what they load. (*Measured*: where loads are read until the
//! end of the turn, those of the next one take as many registers again and copies, which costs loops that compute up to
//! a third.)
//!
//! In loops without barriers those loads go a turn ahead that other loads wait for ([`chained`]).
//!
//! Addresses, and the test, have to be computed from the header's parameters without loads. A load passes what a turn
//! does behind it, so all that the loop stores has to lie in another space of memory, or the load has to be marked
//! `readonly`; loops with atomic operations, fences, traps and calls stay as they are. The barrier keeps in order what
//! other threads write *before* the loop: behind it, where the loads of the next turn stand, every thread of the block
//! is in the loop, which writes nothing that they could read. All threads have to make as many turns: the last turn's
//! barriers are instructions of their own.

mod chained;
mod effects;
mod loads;
mod slice;

use super::LoopContext;
use super::copy::Copied;
use super::count::{Counter, FOLLOWED, bottom, is_uniform_count, starts, turns};
use super::hints::Hints;
use super::invariants::limit as room;
use super::shape::{Body, Edge, Uses, branch, close, jump, words};
use super::sorted_set::SortedSet;
use crate::settings::{OptLevel, Unroll};
use crate::values::tracking::{Copies, Tracking};
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use effects::{Effects, Facts};
use loads::{Candidate, Loads};
use slice::Slice;

/// Most machine instructions of a loop; the last turn of some is copied (*assumed*: a third of the smallest instruction
/// cache that GPUs of the kind have).
const LARGEST: u32 = 512;
/// The same where it holds others (*assumed*, as for copies of a turn: a load is little beside more turns of those).
const LARGEST_AROUND: u32 = 128;

/// What is done with a loop.
struct Plan {
    body: Body,
    latch: Edge,
    exit: Edge,
    loads: Loads,
    /// What the test and the next turn's addresses are computed from.
    early: SortedSet<Inst>,
    /// The barrier that the next turn's loads stand behind.
    barrier: Inst,
}

/// Does so with the loops for which it is worth it, but not with those of `rest`, which make few turns; true if
/// anything has changed. The graph and what is made from it are not up to date then.
pub(super) fn preload(
    context: &mut Context,
    given: &LoopContext<'_>,
    hints: &Hints,
    rest: &EntitySet<Block>,
    uses: &mut Option<Uses>,
) -> bool {
    if given.settings.unroll == Unroll::Off || given.settings.opt_level != OptLevel::Speed {
        return false;
    }
    let mut facts = Facts::default();
    let mut plans = Vec::new();
    let mut chained = Vec::new();
    let refused =
        |body: &Body| rest.contains(body.header) || matches!(hints.of(body.header), Some(0 | 1));
    let mut changed: EntitySet<Block> = EntitySet::new();
    for body in Body::innermost(context) {
        if refused(&body) {
            continue;
        }
        let header = body.header;
        if let Some(plan) = chained::Plan::of(context, given, &mut facts, &body) {
            chained.push((body, plan));
        } else if let Some(plan) = Plan::of(context, given, &mut facts, body, LARGEST) {
            plans.push(plan);
        } else {
            continue;
        }
        changed.insert(header);
    }
    for body in Body::around_innermost(context) {
        let is_changed = |block: &Block| changed.contains(*block);
        if !refused(&body) && !body.blocks.iter().any(is_changed) {
            plans.extend(Plan::of(context, given, &mut facts, body, LARGEST_AROUND));
        }
    }
    if plans.is_empty() && chained.is_empty() {
        return false;
    }
    let uses = uses.get_or_insert_with(|| Uses::of(&context.func));
    for Plan { body, exit, .. } in &plans {
        let alone = context.cfg.pred_iter(exit.to(&context.func)).count() == 1;
        close(&mut context.func, uses, body, *exit, alone, given.tracking);
    }
    // The ways into a loop may come from blocks in between now.
    context.compute_cfg();
    for plan in plans {
        let entries = plan.body.entries(context);
        plan.build(&mut context.func, uses, &entries, given.tracking);
    }
    for (body, plan) in chained {
        let entries = body.entries(context);
        plan.build(&mut context.func, uses, &body, &entries, given.tracking);
    }
    true
}

impl Plan {
    fn of(
        context: &Context,
        given: &LoopContext<'_>,
        facts: &mut Facts,
        body: Body,
        largest: u32,
    ) -> Option<Plan> {
        let func = &context.func;
        let (latch, exit) = bottom(&body).filter(|_| body.plain)?;
        let &[condition] = func.dfg.inst_args(latch.branch).first_chunk()?;
        let effects = Effects::of(func, given, &body, largest)?;
        let barrier = effects.barrier?;
        let carried: u32 = func.dfg.block_param_types(body.header).map(words).sum();
        let mut room = room(given.registers, carried);
        let mut loads = Loads::default();
        let header = func.layout.block_insts(body.header);
        for inst in header.take_while(|inst| *inst != barrier) {
            let candidate = Candidate::of(context, given, (&body, latch), inst)
                .filter(|load| load.words <= room)
                .filter(|load| effects.leave(context, given, facts, load.inst));
            if let Some(load) = candidate {
                room -= load.words;
                loads.add(&load);
            }
        }
        if loads.insts.is_empty() {
            return None;
        }
        let mut test = Slice::new(context, given, &body, &[]);
        if !test.add(condition) || !turns_equally_often(context, given, &body, latch) {
            return None;
        }
        let mut early = test.insts;
        early.extend(loads.next.iter());
        Some(Plan {
            body,
            latch,
            exit,
            loads,
            early,
            barrier,
        })
    }

    fn build(self, func: &mut Function, uses: &mut Uses, entries: &[Edge], tracking: &Tracking) {
        let copies = tracking.copies(func, &self.body.blocks);
        copies.mark(func, &self.body.blocks);
        let header = self.body.header;
        let args = self.latch.args(func);
        let test = func.dfg.inst_args(self.latch.branch)[0];
        let location = func.srclocs[self.latch.branch];
        let early = copies.unnamed().number(1);
        let body = &self.body;
        let aside = (self.loads).begin(func, uses, (body, entries), early, location);
        // The next turn's, in a block that is taken away again.
        let next = self.loads.copy_to(func, uses, body, (&args, aside), early);
        self.loads.replace(func, uses, header, tracking);
        // What is handed on may be what was loaded.
        let (args, exit_args) = (self.latch.args(func), self.exit.args(func));
        let exit = (self.exit.to(func), exit_args);
        let again = self.split(func);
        let last = self.copy_rest(func, uses, again, exit, copies);
        let targets = match self.latch.index {
            0 => [again, last],
            _ => [last, again],
        };
        let inst = branch(func, header, test, targets.map(|block| (block, &[][..])));
        func.srclocs[inst] = location;
        uses.add(func, inst);
        if let Some(top) = func.layout.first_inst(again) {
            while let Some(inst) = func.layout.first_inst(aside) {
                func.layout.remove_inst(inst);
                func.layout.insert_inst(inst, top);
            }
        }
        func.layout.remove_block(aside);
        // The way back.
        let from = self.home(self.latch.from, again);
        func.layout.remove_inst(self.latch.branch);
        let handed: Vec<Value> = args.into_iter().chain(next).collect();
        let inst = jump(func, from, header, &handed);
        func.srclocs[inst] = location;
        uses.add(func, inst);
    }

    /// Where what is left of a block stands, once the header was split.
    fn home(&self, block: Block, again: Block) -> Block {
        match block == self.body.header {
            true => again,
            false => block,
        }
    }

    /// Moves what is computed early to the end of the header, and what stands behind that to a block of its own.
    fn split(&self, func: &mut Function) -> Block {
        let header = self.body.header;
        let again = func.dfg.make_block();
        func.layout.insert_block_after(again, header);
        let early: Vec<Inst> = (self.body.insts(func))
            .filter(|inst| self.early.contains(*inst))
            .collect();
        let mut is_behind = false;
        let mut moved = Vec::new();
        for inst in func.layout.block_insts(header) {
            if is_behind {
                moved.push(inst);
            }
            is_behind |= inst == self.barrier;
        }
        for inst in moved {
            func.layout.remove_inst(inst);
            func.layout.append_inst(inst, again);
        }
        for inst in early {
            // What stands before the barrier is there already.
            if func.layout.inst_block(inst) != Some(header) {
                func.layout.remove_inst(inst);
                func.layout.append_inst(inst, header);
            }
        }
        again
    }

    /// The last turn: a copy of the rest, which leaves the loop.
    fn copy_rest(
        &self,
        func: &mut Function,
        uses: &mut Uses,
        again: Block,
        (target, args): (Block, Vec<Value>),
        // It goes on with the turn that the header has begun.
        same_turn: Copies<'_>,
    ) -> Block {
        let last = func.dfg.make_block();
        func.layout.insert_block(last, target);
        let mut blocks = self.body.blocks.clone();
        blocks[0] = again;
        let mut rest = Body::new(blocks);
        rest.latches.push(self.latch);
        let mut copied = Copied::with(same_turn, &[], &[]);
        let end = copied.turn(func, uses, &rest, (last, target), &mut |_, _, _, _| None);
        let inst = jump(func, end, target, &copied.values(&args));
        func.srclocs[inst] = func.srclocs[self.latch.branch];
        uses.add(func, inst);
        last
    }
}

/// Whether all threads of a block make as many turns.
fn turns_equally_often(
    context: &Context,
    given: &LoopContext<'_>,
    body: &Body,
    latch: Edge,
) -> bool {
    let func = &context.func;
    turns(func, body, latch, &starts(context, body), FOLLOWED).is_some()
        || Counter::of(func, body, latch)
            .is_some_and(|counter| is_uniform_count(context, given, body, &counter))
}
