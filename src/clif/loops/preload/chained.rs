//! Loads that the addresses of other loads are computed from, a turn ahead.
//!
//! A turn that loads an index, and then what is there, waits for memory twice. Here the index of the next turn is on
//! its way while this one waits for what its own leads to:
//!
//! ```text
//! header(p):     i = load p; x = load a + i; rest; brif test(p), header(p + 4), out
//!
//!                i0 = load p0; jump header(p0, i0)
//! header(p, i):  x = load a + i; brif test(p), ahead, work(i)
//! ahead:         i' = load p + 4; jump work(i')
//! work(i''):     rest; brif test(p), header(p + 4, i''), out
//! ```
//!
//! `ahead` becomes a load with a guard (`simt::if_convert`): lanes may make different numbers of turns, and nothing is
//! loaded that was not before. Where they all make as many it stays a branch, of which there is one for all loads. Only
//! loads are taken that nothing reads but addresses of loads in the header, so that i' gets the register of i. What
//! those addresses are computed from moves up with them.

use super::super::LoopContext;
use super::super::copy::Copied;
use super::super::count::{bottom, step};
use super::super::invariants::limit as room;
use super::super::overlap::is_plain;
use super::super::shape::{Body, Edge, Uses, branch, jump, words};
use super::super::sorted_set::SortedSet;
use super::effects::{Effects, Facts};
use super::loads::{Candidate, Loads};
use super::slice::Slice;
use super::{LARGEST, turns_equally_often};
use crate::analysis::uses::for_each_operand;
use crate::values::tracking::Tracking;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Value};
use smallvec::SmallVec;

/// Loads under one guard: `simt::if_convert` takes as many accesses.
const GROUP: usize = 3;

/// What is done with a loop.
pub(super) struct Plan {
    latch: Edge,
    loads: Loads,
    /// So many of them stand behind one test.
    group: usize,
    /// What stays in the header.
    first: SortedSet<Inst>,
    /// Sums of a parameter and a constant that are the next value of it, and wanted for the next addresses alone. They
    /// stay where the parameter is not read any more, and are made once more for the addresses, whose offsets they are.
    steps: Vec<Inst>,
}

/// A load whose address is computed from others.
struct Follower {
    inst: Inst,
    address: SortedSet<Inst>,
    read: SmallVec<[Inst; 4]>,
}

impl Plan {
    pub(super) fn of(
        context: &Context,
        given: &LoopContext<'_>,
        facts: &mut Facts,
        body: &Body,
    ) -> Option<Plan> {
        let func = &context.func;
        let (latch, _) = bottom(body).filter(|_| body.plain)?;
        let &[condition] = func.dfg.inst_args(latch.branch).first_chunk()?;
        let header = || func.layout.block_insts(body.header);
        let loads = header().filter(|&inst| func.dfg.insts[inst].opcode().can_load());
        if loads.take(2).count() < 2 {
            return None;
        }
        let effects =
            Effects::of(func, given, body, LARGEST).filter(|effects| !effects.has_barrier)?;
        let candidate = |inst| Candidate::of(context, given, (body, latch), inst);
        let mut candidates: Vec<Candidate> = header().filter_map(candidate).collect();
        let known: Vec<Inst> = candidates.iter().map(|load| load.inst).collect();
        let mut followers: Vec<Follower> = header()
            .filter_map(|inst| {
                let InstructionData::Load { opcode, arg, .. } = func.dfg.insts[inst] else {
                    return None;
                };
                let mut slice = Slice::new(context, given, body, &known);
                let follows = is_plain(opcode) && slice.add(arg) && !slice.read.is_empty();
                follows.then_some(Follower {
                    inst,
                    address: slice.insts,
                    read: slice.read,
                })
            })
            .collect();
        // Most loops end here, before it is asked where addresses point.
        keep_chains(func, body, &mut candidates, &mut followers);
        if candidates.is_empty() {
            return None;
        }
        candidates.retain(|load| effects.leave(context, given, facts, load.inst));
        let known = |load: &Inst| candidates.iter().any(|candidate| candidate.inst == *load);
        followers.retain(|load| {
            load.read.iter().all(known) && effects.leave(context, given, facts, load.inst)
        });
        keep_chains(func, body, &mut candidates, &mut followers);
        let carried: u32 = func.dfg.block_param_types(body.header).map(words).sum();
        let mut room = room(given.registers, carried);
        let mut chosen = Loads::default();
        for load in candidates {
            if load.words <= room {
                room -= load.words;
                chosen.add(&load);
            }
        }
        let mut test = Slice::new(context, given, body, &[]);
        if chosen.insts.is_empty() || !test.add(condition) {
            return None;
        }
        let mut first = test.insts;
        for follower in followers {
            if follower.read.iter().all(|load| chosen.insts.contains(load)) {
                first.insert(follower.inst);
                first.extend(follower.address.iter());
            }
        }
        let params = func.dfg.block_params(body.header);
        let args = latch.args(func);
        let steps: Vec<Inst> = (params.iter().zip(args))
            .filter(|&(&param, next)| step(func, body, param, next).is_some())
            .filter_map(|(_, next)| func.dfg.value_def(next).inst())
            .collect();
        let is_step = |inst: &Inst| !first.contains(*inst) && steps.contains(inst);
        let (steps, others): (Vec<Inst>, Vec<Inst>) = chosen.next.iter().partition(is_step);
        first.extend(others);
        let read = read_by(func, first.iter());
        let result = |inst: &Inst| func.dfg.first_result(*inst);
        let (wanted, steps): (Vec<Inst>, Vec<Inst>) = steps
            .into_iter()
            .partition(|step| read.contains(result(step)));
        first.extend(wanted);
        let together = turns_equally_often(context, given, body, latch);
        Some(Plan {
            latch,
            group: if together { chosen.insts.len() } else { GROUP },
            loads: chosen,
            first,
            steps,
        })
    }

    pub(super) fn build(
        self,
        func: &mut Function,
        uses: &mut Uses,
        body: &Body,
        entries: &[Edge],
        tracking: &Tracking,
    ) {
        let copies = tracking.copies(func, &body.blocks);
        copies.mark(func, &body.blocks);
        let header = body.header;
        let args = self.latch.args(func);
        let test = func.dfg.inst_args(self.latch.branch)[0];
        let location = func.srclocs[self.latch.branch];
        let early = copies.unnamed().number(1);
        let aside = (self.loads).begin(func, uses, (body, entries), early, location);
        // The next turn's, in a block that is taken away again.
        let mut again = Copied::with(early, &[], &[]);
        for &step in &self.steps {
            again.inst(func, uses, step, aside);
        }
        let next = again.values(&args);
        let next = self.loads.copy_to(func, uses, body, (&next, aside), early);
        let loaded = self.loads.replace(func, uses, header, tracking);
        let work = self.split(func, body);
        // What their addresses are computed from has no guard.
        let computed: Vec<Inst> = (func.layout.block_insts(aside))
            .filter(|&inst| !func.dfg.insts[inst].opcode().can_load())
            .collect();
        for inst in computed {
            func.layout.remove_inst(inst);
            func.layout.append_inst(inst, header);
        }
        let mut at = header;
        let mut kept: Vec<Value> = Vec::new();
        let groups = loaded.chunks(self.group).zip(next.chunks(self.group));
        let last = groups.len() - 1;
        for (index, (old, new)) in groups.enumerate() {
            let ahead = func.dfg.make_block();
            func.layout.insert_block_after(ahead, at);
            let join = if index == last {
                work
            } else {
                let join = func.dfg.make_block();
                func.layout.insert_block_after(join, ahead);
                join
            };
            for &value in new {
                let ty = func.dfg.value_type(value);
                kept.push(func.dfg.append_block_param(join, ty));
                let load = func.dfg.value_def(value).inst().expect("a load gives it");
                func.layout.remove_inst(load);
                func.layout.append_inst(load, ahead);
            }
            let ways: [(Block, &[Value]); 2] = match self.latch.index {
                0 => [(ahead, &[]), (join, old)],
                _ => [(join, old), (ahead, &[])],
            };
            for inst in [branch(func, at, test, ways), jump(func, ahead, join, new)] {
                func.srclocs[inst] = location;
                uses.add(func, inst);
            }
            at = join;
        }
        func.layout.remove_block(aside);
        // Nothing but the parameters of `work` is read behind the header.
        let handed: Vec<Value> = args.into_iter().chain(kept).collect();
        self.latch.redirect(func, header, &handed);
        uses.add(func, self.latch.branch);
    }

    /// Leaves in the header what stays there, with what else is needed for the test and the next addresses, and moves
    /// the rest to a block of its own.
    fn split(&self, func: &mut Function, body: &Body) -> Block {
        let header = body.header;
        let work = func.dfg.make_block();
        func.layout.insert_block_after(work, header);
        let insts: Vec<Inst> = body.insts(func).collect();
        for inst in insts {
            let is_there = func.layout.inst_block(inst) == Some(header);
            let to = match self.first.contains(inst) {
                true if !is_there => header,
                false if is_there => work,
                _ => continue,
            };
            func.layout.remove_inst(inst);
            func.layout.append_inst(inst, to);
        }
        work
    }
}

/// What instructions read.
fn read_by(func: &Function, insts: impl Iterator<Item = Inst>) -> SortedSet<Value> {
    let mut read = Vec::new();
    insts.for_each(|inst| for_each_operand(func, inst, |value| read.push(value)));
    read.into_iter().collect()
}

/// Leaves those loads that nothing in the loop reads but the addresses of `followers`, and those followers that read
/// nothing else.
fn keep_chains(
    func: &Function,
    body: &Body,
    candidates: &mut Vec<Candidate>,
    followers: &mut Vec<Follower>,
) {
    loop {
        if followers.is_empty() {
            candidates.clear();
            return;
        }
        let mut addresses: SortedSet<Inst> = SortedSet::default();
        for follower in followers.iter() {
            addresses.insert(follower.inst);
            addresses.extend(follower.address.iter());
        }
        let others = body.insts(func).filter(|inst| !addresses.contains(*inst));
        let read = read_by(func, others);
        let followed = |load: Inst| {
            followers
                .iter()
                .any(|follower| follower.read.contains(&load))
        };
        candidates
            .retain(|load| !read.contains(func.dfg.first_result(load.inst)) && followed(load.inst));
        let before = followers.len();
        let remains = |load: &Inst| candidates.iter().any(|candidate| candidate.inst == *load);
        followers.retain(|follower| follower.read.iter().all(remains));
        if followers.len() == before {
            return;
        }
    }
}
