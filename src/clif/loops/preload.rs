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
//! Taken are loops that load a part of global memory, share it by a barrier of the block in the header, and compute
//! from what was shared. The loads in front of the barrier are over when it opens, so those of the next turn take no
//! more registers than what they load. (*Measured*: where loads are read until the end of the turn, those of the next
//! one take as many registers again and copies, which costs loops that compute up to a third.)
//!
//! Addresses, and the test, have to be computed from the header's parameters without loads. A load passes what a turn
//! does behind it, so all that the loop stores has to lie in another space of memory, or the load has to be marked
//! `readonly`; loops with atomic operations, fences, traps and calls stay as they are. The barrier keeps in order what
//! other threads write *before* the loop: behind it, where the loads of the next turn stand, every thread of the block
//! is in the loop, which writes nothing that they could read. All threads have to make as many turns: the last turn's
//! barriers are instructions of their own.

use super::LoopContext;
use super::copy::Copied;
use super::count::{Counter, FOLLOWED, bottom, is_uniform_count, starts, turns};
use super::hints::Hints;
use super::invariants::limit as room;
use super::overlap::is_plain;
use super::shape::{Body, Edge, Uses, branch, close, jump, words};
use super::size::size;
use crate::analysis::calls::Callees;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::provenance::{Provenance, Space};
use crate::analysis::uses::{for_each_operand, has_effect};
use crate::intrinsics::Lowering;
use crate::settings::{OptLevel, Unroll};
use crate::values::tracking::{Copies, Tracking};
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value, ValueDef};
use smallvec::SmallVec;

/// Most machine instructions of a loop whose last turn is copied (*assumed*: a third of the smallest instruction cache
/// that GPUs of the kind have).
const LARGEST: u32 = 512;
/// Most operations that an address or a test takes (*assumed*).
const LONGEST_SLICE: usize = 32;

/// What is known when it is asked for first.
#[derive(Default)]
struct Facts(Option<Provenance>);

impl Facts {
    fn space(&mut self, context: &Context, given: &LoopContext<'_>, address: Value) -> Space {
        let func = &context.func;
        let provenance = self.0.get_or_insert_with(|| {
            let flow = ControlFlow::compute(func, given.kernel, &Callees::default());
            Provenance::compute(func, &flow, given.intrinsics, given.kernel)
        });
        provenance.space(func, address)
    }
}

/// What is done with a loop.
struct Plan {
    body: Body,
    latch: Edge,
    exit: Edge,
    /// The loads, in order.
    loads: SmallVec<[Inst; 4]>,
    /// What their addresses are computed from in a turn.
    addresses: EntitySet<Inst>,
    /// What the test and the next turn's addresses are computed from.
    early: EntitySet<Inst>,
    /// The barrier that the next turn's loads stand behind.
    barrier: Inst,
}

/// Does so with the loops for which it is worth it, but not with those of `rest`, which make few turns; true if
/// anything has changed. The graph and what is made from it are not up to date then.
pub(super) fn preload(
    context: &mut Context,
    given: &LoopContext<'_>,
    hints: &Hints,
    rest: &[Block],
    uses: &mut Option<Uses>,
) -> bool {
    if given.settings.unroll == Unroll::Off || given.settings.opt_level != OptLevel::Speed {
        return false;
    }
    let mut facts = Facts::default();
    let mut plans = Vec::new();
    for body in Body::innermost(context) {
        let asked = hints.of(body.header);
        if !rest.contains(&body.header) && !matches!(asked, Some(0 | 1)) {
            plans.extend(Plan::of(context, given, &mut facts, body));
        }
    }
    if plans.is_empty() {
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
    true
}

impl Plan {
    fn of(
        context: &Context,
        given: &LoopContext<'_>,
        facts: &mut Facts,
        body: Body,
    ) -> Option<Plan> {
        let func = &context.func;
        let (latch, exit) = bottom(&body).filter(|_| body.plain)?;
        let &[condition] = func.dfg.inst_args(latch.branch).first_chunk()?;
        let effects = Effects::of(func, given, &body)?;
        let barrier = effects.barrier?;
        let mut early = EntitySet::new();
        let mut addresses = EntitySet::new();
        let mut loads = SmallVec::new();
        let carried: u32 = func.dfg.block_param_types(body.header).map(words).sum();
        let mut room = room(given.registers, carried);
        let params = func.dfg.block_params(body.header);
        let args = latch.args(func);
        for inst in func.layout.block_insts(body.header) {
            if inst == barrier {
                break;
            }
            let InstructionData::Load {
                opcode, arg, flags, ..
            } = func.dfg.insts[inst]
            else {
                continue;
            };
            let needed = words(func.dfg.value_type(func.dfg.first_result(inst)));
            if !is_plain(opcode) || needed > room {
                continue;
            }
            let mut slice = Slice::new(context, given, &body);
            if !slice.add(arg) {
                continue;
            }
            // An address that is the same in all turns is not worth a register.
            let mut next = Slice::new(context, given, &body);
            let changing = |param: &&Value| slice.params.contains(param);
            let changes = params
                .iter()
                .zip(&args)
                .filter(|(param, _)| changing(param));
            let mut changes = changes.peekable();
            if changes.peek().is_none() || !changes.all(|(_, &arg)| next.add(arg)) {
                continue;
            }
            let readonly = func.dfg.mem_flags[flags].readonly();
            if !readonly && !effects.leave(context, given, facts, arg) {
                continue;
            }
            room -= needed;
            early.extend(next.insts.iter());
            addresses.extend(slice.insts.iter());
            loads.push(inst);
        }
        if loads.is_empty() {
            return None;
        }
        let mut test = Slice::new(context, given, &body);
        if !test.add(condition) || !turns_equally_often(context, given, &body, latch) {
            return None;
        }
        early.extend(test.insts.iter());
        Some(Plan {
            body,
            latch,
            exit,
            loads,
            addresses,
            early,
            barrier,
        })
    }

    fn build(self, func: &mut Function, uses: &mut Uses, entries: &[Edge], tracking: &Tracking) {
        let copies = tracking.copies(func, &self.body.blocks);
        copies.mark(func, &self.body.blocks);
        let header = self.body.header;
        let params = func.dfg.block_params(header).to_vec();
        let args = self.latch.args(func);
        let test = func.dfg.inst_args(self.latch.branch)[0];
        let location = func.srclocs[self.latch.branch];
        // In front of the loop.
        let before = func.dfg.make_block();
        func.layout.insert_block(before, header);
        let starts: Vec<Value> = (params.iter())
            .map(|&param| {
                let ty = func.dfg.value_type(param);
                func.dfg.append_block_param(before, ty)
            })
            .collect();
        for entry in entries {
            let args = entry.args(func);
            entry.redirect(func, before, &args);
            uses.add(func, entry.branch);
        }
        let early = copies.unnamed().number(1);
        let first = self.load(func, uses, (&params, &starts), before, early);
        // The next turn's, in a block that is taken away again.
        let aside = func.dfg.make_block();
        func.layout.append_block(aside);
        let next = self.load(func, uses, (&params, &args), aside, early);
        // What the loop works on.
        for &load in &self.loads {
            let old = func.dfg.first_result(load);
            let ty = func.dfg.value_type(old);
            let new = func.dfg.append_block_param(header, ty);
            tracking.also(old, new);
            uses.replace(func, (old, new), |_, _| true);
            func.layout.remove_inst(load);
        }
        // What is handed on may be what was loaded.
        let (args, exit_args) = (self.latch.args(func), self.exit.args(func));
        let exit = (self.exit.to(func), exit_args);
        let handed: Vec<Value> = starts.into_iter().chain(first).collect();
        let inst = jump(func, before, header, &handed);
        func.srclocs[inst] = location;
        uses.add(func, inst);
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

    /// Makes the loads at the end of `block`, with `values` for the parameters of the header.
    fn load(
        &self,
        func: &mut Function,
        uses: &mut Uses,
        (params, values): (&[Value], &[Value]),
        block: Block,
        copy: Copies<'_>,
    ) -> Vec<Value> {
        let mut copied = Copied::with(copy, params, values);
        let wanted = |inst: &Inst| self.addresses.contains(*inst) || self.loads.contains(inst);
        let insts: Vec<Inst> = self.body.insts(func).filter(wanted).collect();
        for inst in insts {
            copied.inst(func, uses, inst, block);
        }
        let results = self.loads.iter().map(|&load| func.dfg.first_result(load));
        results.map(|value| copied.value(value)).collect()
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
        let mut rest = Body {
            header: again,
            blocks: self.body.blocks.clone(),
            within: EntitySet::new(),
            exits: SmallVec::new(),
            latches: SmallVec::from_slice(&[self.latch]),
            plain: true,
        };
        rest.blocks[0] = again;
        let mut copied = Copied::with(same_turn, &[], &[]);
        let end = copied.turn(func, uses, &rest, (last, target), &mut |_, _, _, _| None);
        let inst = jump(func, end, target, &copied.values(&args));
        func.srclocs[inst] = func.srclocs[self.latch.branch];
        uses.add(func, inst);
        last
    }
}

/// What a turn does to the world.
struct Effects {
    /// Addresses that are written.
    stores: SmallVec<[Value; 8]>,
    /// The first barrier of the header.
    barrier: Option<Inst>,
}

impl Effects {
    /// None if loads may not pass them, or the loop is too long.
    fn of(func: &Function, given: &LoopContext<'_>, body: &Body) -> Option<Effects> {
        let mut effects = Effects {
            stores: SmallVec::new(),
            barrier: None,
        };
        let mut total = 0;
        for inst in body.insts(func) {
            total += size(func, given.intrinsics, inst);
            if total > LARGEST {
                return None;
            }
            if let Some(row) = given.intrinsics.of_call(func, inst) {
                if row.lowering == Lowering::BarSync {
                    if func.layout.inst_block(inst) == Some(body.header) {
                        effects.barrier.get_or_insert(inst);
                    }
                } else if !row.is_pure() {
                    return None;
                }
                continue;
            }
            match func.dfg.insts[inst] {
                InstructionData::Load { opcode, .. } if is_plain(opcode) => {}
                InstructionData::Store { args, .. } => effects.stores.push(args[1]),
                InstructionData::Jump { .. } | InstructionData::Brif { .. } => {}
                _ if has_effect(func, inst, given.intrinsics) => return None,
                _ => {}
            }
        }
        Some(effects)
    }

    /// Whether they leave what is read at `address` as it is.
    fn leave(
        &self,
        context: &Context,
        given: &LoopContext<'_>,
        facts: &mut Facts,
        address: Value,
    ) -> bool {
        let space = facts.space(context, given, address);
        space != Space::Generic
            && (self.stores.iter()).all(|&store| {
                let written = facts.space(context, given, store);
                written != Space::Generic && written != space
            })
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

/// What a value is computed from in a turn, by operations that may be done at any time.
struct Slice<'a> {
    context: &'a Context,
    given: &'a LoopContext<'a>,
    body: &'a Body,
    insts: EntitySet<Inst>,
    count: usize,
    /// The parameters of the header that it depends on.
    params: SmallVec<[Value; 4]>,
}

impl<'a> Slice<'a> {
    fn new(context: &'a Context, given: &'a LoopContext<'a>, body: &'a Body) -> Self {
        Slice {
            context,
            given,
            body,
            insts: EntitySet::new(),
            count: 0,
            params: SmallVec::new(),
        }
    }

    /// Adds what `value` is computed from; false if that is something else.
    fn add(&mut self, value: Value) -> bool {
        let func = &self.context.func;
        let inst = match func.dfg.value_def(value) {
            ValueDef::Param(block, _) if block == self.body.header => {
                if !self.params.contains(&value) {
                    self.params.push(value);
                }
                return true;
            }
            ValueDef::Param(block, _) => return !self.body.within.contains(block),
            ValueDef::Result(inst, _) => inst,
            ValueDef::Union(..) => return false,
        };
        let home = func.layout.inst_block(inst);
        if home.is_none_or(|block| !self.body.within.contains(block)) || self.insts.contains(inst) {
            return true;
        }
        if func.dfg.insts[inst].opcode().can_load()
            || has_effect(func, inst, self.given.intrinsics)
            || self.count == LONGEST_SLICE
        {
            return false;
        }
        self.count += 1;
        self.insts.insert(inst);
        let mut is_pure = true;
        let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
        for_each_operand(func, inst, |operand| operands.push(operand));
        for operand in operands {
            is_pure = is_pure && self.add(operand);
        }
        is_pure
    }
}
