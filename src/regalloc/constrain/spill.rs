//! Choosing where values of a class are in registers.
//!
//! Where more values are alive than there are registers, some must live elsewhere: a predicate or a uniform value in a GPR, a GPR value in
//! local memory, a constant nowhere (it is made again). Blocks are walked in reverse postorder with the set of values that are in registers
//! (Braun and Hack, "Register spilling and live-range splitting for SSA-form programs", CC 2009): a value that is used and not in the set
//! is brought back, where the set is full the value with the farthest next use leaves it. At the header of a loop the set begins with
//! what the loop uses; values that live through the loop unused get what its pressure leaves. Where paths meet, a value is in the set if
//! it is in a register on all of them, or on some and there is room; the others bring it back at their ends.
//!
//! The result is a [`Plan`]: sets at the borders of blocks and the places where values come back. [`super::homes`] decides where they
//! come back from, [`super::rewrite`] writes the code.

use super::distance::{Distances, LOOP, NEVER, length};
use super::flow::{Flow, OUTSIDE};
use super::plan::{Eviction, Plan, Point};
use super::pressure::{LiveSet, stack_pointer};
use super::uniform;
use crate::abi;
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::MIN_GPRS;
use crate::regalloc::liveness::{Liveness, edge_arguments};
use crate::vcode::{Block, Entry, Terminator, VCode};
use hashbrown::HashSet;

/// How many values of each class may be alive at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::regalloc) struct Capacity {
    /// By class.
    pub registers: [u32; 3],
    /// GPR values across a call.
    pub across_call: u32,
}

impl Capacity {
    /// What a machine with `gpr_limit` GPRs can hold; one predicate is left for exchanges.
    pub fn new(gpr_limit: u8) -> Capacity {
        let saved = u32::from(gpr_limit)
            .saturating_sub(u32::from(*abi::CALLEE_SAVED.start()))
            .min(abi::CALLEE_SAVED.len() as u32);
        let mut registers = [0; 3];
        registers[RegisterClass::Gpr as usize] = u32::from(gpr_limit) - 1;
        registers[RegisterClass::Uniform as usize] =
            u32::from(RegisterClass::Uniform.hardwired()) - 1;
        registers[RegisterClass::Predicate as usize] =
            u32::from(RegisterClass::Predicate.hardwired()) - 1;
        Capacity {
            registers,
            across_call: saved,
        }
    }

    /// Lowers what a class may hold; false when too little would be left for any instruction.
    pub fn shrink(&mut self, class: RegisterClass) -> bool {
        let registers = &mut self.registers[class as usize];
        let (step, least) = match class {
            // With few registers each one less is another chance for a run between the operands of an instruction.
            RegisterClass::Gpr if *registers <= u32::from(MIN_GPRS) => (1, SMALLEST),
            RegisterClass::Gpr => (2, SMALLEST),
            RegisterClass::Predicate | RegisterClass::Uniform => (1, 4),
        };
        *registers = registers.saturating_sub(step);
        if class == RegisterClass::Gpr {
            self.across_call = self.across_call.saturating_sub(1);
        }
        *registers >= least
    }

    /// Values of a class that may live across a call: callees keep neither predicates nor uniform registers.
    pub fn across(&self, class: RegisterClass) -> u32 {
        match class {
            RegisterClass::Gpr => self.across_call,
            RegisterClass::Uniform | RegisterClass::Predicate => 0,
        }
    }
}

/// Values that the widest instruction reads or writes at once: a quad, an address and a guarded result.
const SMALLEST: u32 = 7;

/// Walks with new knowledge of where values cannot come back, before the headers of loops start without registers (*assumed*).
const PATIENCE: u32 = 6;

/// How much farther away a value counts that has a home already, or gets it outside of the loops around (*assumed*).
const CLEAN: u64 = 2;

/// The same for a value that can be made again (*assumed*).
const FREE: u64 = 4;

/// Memory of the choice, kept between functions.
#[derive(Debug, Default)]
pub(in crate::regalloc) struct Spiller {
    distances: Distances,
    /// Values in registers at the place at hand.
    present: LiveSet,
    /// By value: steps from the entry of the block at hand to the next use.
    next: Vec<u32>,
    /// Values with an entry in `next`.
    touched: Vec<VReg>,
    /// Uses and definitions of the block at hand, with the next use behind each.
    events: Vec<(VReg, u32)>,
    /// By instruction of the block at hand: where its definitions and where its events end.
    bounds: Vec<(u32, u32)>,
    /// By value: on how many edges into the block at hand it is in a register.
    count: Vec<u32>,
    /// By value: the edge on which it was last seen in a register.
    mark: Vec<u32>,
    marks: u32,
    /// By value: whether it has left its register anywhere.
    left: Vec<bool>,
    /// By loop: the most values alive at once.
    pressure: Vec<u32>,
}

impl Spiller {
    /// Plans registers for the values of `class` so that at most `capacity` are in registers anywhere. `plan` is left empty if all
    /// values can stay where they are.
    ///
    /// # Errors
    /// The block where one instruction needs more values than fit.
    pub fn choose(
        &mut self,
        code: &VCode<VReg>,
        live: &Liveness,
        class: RegisterClass,
        capacity: &Capacity,
        plan: &mut Plan,
    ) -> Result<(), Block> {
        let flow = Flow::compute(code);
        let pinned = stack_pointer(code);
        let mine = |v: &VReg| v.class() == class && Some(*v) != pinned;
        let values = code.vreg_count as usize;
        self.distances.compute(code, live, &flow, mine);
        plan.recipes.find(code, class);
        self.next.clear();
        self.next.resize(values, NEVER);
        for list in [&mut self.count, &mut self.mark] {
            list.clear();
            list.resize(values, 0);
        }
        self.marks = 0;
        let limit = capacity.registers[class as usize];
        let across = capacity.across(class);
        self.find_pressure(code, live, &flow, &mine, class, limit - across.min(limit));
        let mut wishes = Wishes::default();
        let mut rounds = 0;
        let walk = |this: &mut Self, plan: &mut Plan, wishes: &Wishes| {
            this.left.clear();
            this.left.resize(values, false);
            plan.begin(code, class);
            let mut walk = Walk {
                code,
                live,
                flow: &flow,
                class,
                pinned,
                limit,
                across,
                wishes,
                spiller: this,
                plan,
            };
            code.blocks.keys().try_for_each(|block| {
                walk.enter(block);
                walk.run(block)
            })
        };
        loop {
            walk(self, plan, &wishes)?;
            if class != RegisterClass::Uniform {
                break;
            }
            let before = wishes.banned.len();
            ban(code, &flow, plan, &mut wishes.banned);
            if wishes.banned.len() == before {
                break;
            }
            rounds += 1;
            wishes.strict = rounds > PATIENCE;
        }
        if !plan.is_needed(code, &flow) {
            return Ok(());
        }
        if class != RegisterClass::Uniform && wishes.keep(code, &flow, plan) {
            // What a round of a loop ends with is often the cheapest to begin the next one with.
            let first = plan.cost(code, &flow);
            walk(self, plan, &wishes)?;
            if plan.cost(code, &flow) >= first {
                walk(self, plan, &Wishes::default())?;
            }
        }
        plan.settle(code, live, flow);
        Ok(())
    }

    /// The most values of `class` alive at once in each loop; a call counts as if it took all registers that callees do not keep.
    fn find_pressure(
        &mut self,
        code: &VCode<VReg>,
        live: &Liveness,
        flow: &Flow,
        mine: &impl Fn(&VReg) -> bool,
        class: RegisterClass,
        lost: u32,
    ) {
        self.pressure.clear();
        self.pressure.resize(flow.loop_count(), 0);
        let alive = &mut self.present;
        for (block, data) in code.blocks.iter() {
            if flow.innermost(block) == OUTSIDE {
                continue;
            }
            alive.reset(code.vreg_count as usize);
            for v in live.live_out(block).chain(data.terminator.uses()) {
                if mine(&v) {
                    alive.insert(v);
                }
            }
            let mut most = alive.count(class);
            for entry in code.block_insts(block).iter().rev() {
                let mut dead = 0;
                for v in code.definitions(entry).filter(mine) {
                    dead += u32::from(!alive.remove(v));
                }
                let defined = code.definitions(entry).filter(mine).count() as u32;
                most = most.max(alive.count(class) + defined.max(dead));
                if code.call(entry).is_some() {
                    most = most.max(alive.count(class) + lost);
                }
                let kept = code.else_values(entry).iter().flatten().filter(|v| mine(v));
                let kept = kept.count() as u32;
                for v in code.uses(entry).filter(mine) {
                    alive.insert(v);
                }
                most = most.max(alive.count(class) + kept);
            }
            let params = data
                .params
                .iter()
                .filter(|v| mine(v) && !alive.contains(**v));
            most = most.max(alive.count(class) + params.count() as u32);
            let mut around = flow.innermost(block);
            while around != OUTSIDE {
                let place = &mut self.pressure[around as usize];
                *place = (*place).max(most);
                around = flow.parent(around);
            }
        }
    }
}

/// Finds values that would have to be written to a uniform register where lanes are elsewhere: at the end of a divergent block where
/// they would have to come back, or where names of theirs might meet.
fn ban(code: &VCode<VReg>, flow: &Flow, plan: &Plan, banned: &mut HashSet<(Block, VReg)>) {
    let mut returning: HashSet<VReg> = plan.reloads.iter().map(|(v, _)| *v).collect();
    let joins = || code.blocks.keys().filter(|b| flow.is_join(*b));
    for block in joins() {
        for from in flow.predecessors(block) {
            let divergent = code.blocks[from].divergent;
            plan.missing(code, from, block, |v, wanted| {
                returning.insert(v);
                if divergent {
                    banned.insert((block, wanted));
                }
            });
        }
    }
    for block in joins() {
        let divergent = |b: Block| code.blocks[b].divergent;
        if divergent(block) || flow.predecessors(block).any(divergent) {
            let meeting = plan.entry.of(block).iter();
            let meeting = meeting.filter(|v| returning.contains(*v));
            banned.extend(meeting.map(|v| (block, *v)));
        }
    }
}

/// What earlier walks have found out.
#[derive(Default)]
struct Wishes {
    /// Values that cannot be in registers at the entry of a block.
    banned: HashSet<(Block, VReg)>,
    /// Headers of loops with divergent latches begin without registers.
    strict: bool,
    /// Values that are in registers at the ends of loops, with the loops' headers.
    kept: HashSet<(Block, VReg)>,
}

impl Wishes {
    /// Wishes that loops begin with what they end with. False if they do.
    fn keep(&mut self, code: &VCode<VReg>, flow: &Flow, plan: &Plan) -> bool {
        let mut differs = false;
        for header in code.blocks.keys().filter(|b| flow.is_header(*b)) {
            for latch in flow.predecessors(header).filter(|p| *p >= header) {
                plan.missing(code, latch, header, |_, _| differs = true);
                let end = plan.exit.of(latch).iter();
                self.kept.extend(end.map(|v| (header, *v)));
                let there = |v: &VReg| plan.exit.has(latch, *v);
                let passed = edge_arguments(code, latch).filter(|(arg, _)| there(arg));
                self.kept.extend(passed.map(|(_, param)| (header, param)));
            }
        }
        differs
    }
}

struct Walk<'a, 's> {
    code: &'a VCode<VReg>,
    live: &'a Liveness,
    flow: &'a Flow,
    class: RegisterClass,
    pinned: Option<VReg>,
    limit: u32,
    across: u32,
    wishes: &'a Wishes,
    spiller: &'s mut Spiller,
    plan: &'s mut Plan,
}

/// A value that may be in a register at the entry of a block.
struct Candidate {
    value: VReg,
    /// Wishes leave it for the end.
    deferred: bool,
    rank: u64,
}

impl Walk<'_, '_> {
    fn mine(&self, v: VReg) -> bool {
        v.class() == self.class && Some(v) != self.pinned
    }

    /// Chooses the values that are in registers at the entry of `block`.
    fn enter(&mut self, block: Block) {
        self.spiller.present.reset(self.code.vreg_count as usize);
        if block == self.code.entry_block() {
            for &(v, _) in &self.code.entry {
                if self.mine(v) && !self.live.is_dead(v) {
                    self.spiller.present.insert(v);
                }
            }
        } else if !self.flow.is_closed(block) {
            self.meet(block);
        }
        let present = &self.spiller.present;
        self.plan.entry.push(present.iter());
    }

    /// See [`Walk::enter`]; for a block with predecessors.
    fn meet(&mut self, block: Block) {
        let edges = self.count(block);
        let header = self.flow.is_header(block);
        let uniform = self.class == RegisterClass::Uniform;
        let code = self.code;
        // Where a value cannot come back it must not have left.
        let fixed = |from: Block| uniform && code.blocks[from].divergent;
        let closed = self.wishes.strict
            && self
                .flow
                .predecessors(block)
                .any(|p| p >= block && fixed(p));
        let rigid = self.flow.predecessors(block).any(fixed);
        let foreign = uniform && self.code.blocks[block].divergent;
        let mut wanted: Vec<Candidate> = Vec::new();
        let mut through: Vec<Candidate> = Vec::new();
        let values = self.spiller.distances.live_in(block).iter();
        let params = self.spiller.distances.params(block).iter();
        let mut live_through = 0;
        let all = values.map(|a| (a, false)).chain(params.map(|a| (a, true)));
        for (ahead, param) in all {
            live_through += u32::from(ahead.distance >= LOOP && !param);
            let count = self.spiller.count[ahead.value.index()];
            let everywhere = count == edges;
            let barred = closed
                || param && (foreign || rigid)
                || !everywhere && rigid
                || self.wishes.banned.contains(&(block, ahead.value));
            if ahead.distance == NEVER || barred {
                continue;
            }
            let near = ahead.distance < LOOP;
            let candidate = Candidate {
                value: ahead.value,
                deferred: header && !self.wishes.kept.contains(&(block, ahead.value)),
                rank: self.rank(ahead.value, ahead.distance, param && header),
            };
            match (header, near, everywhere) {
                (true, true, _) | (false, _, true) => wanted.push(candidate),
                (true, false, true) => through.push(candidate),
                (false, true, false) if count > 0 => through.push(candidate),
                _ => {}
            }
        }
        let room = if header {
            let number = self.flow.innermost(block);
            let pressure = self.spiller.pressure.get(number as usize);
            let own = pressure.map_or(0, |p| p.saturating_sub(live_through));
            self.limit.saturating_sub(own.max(wanted.len() as u32))
        } else {
            self.limit.saturating_sub(wanted.len() as u32)
        };
        for (list, most) in [(&mut wanted, self.limit), (&mut through, room)] {
            if list.len() > most as usize {
                list.sort_by_key(|c| (c.deferred, c.rank, c.value));
                list.truncate(most as usize);
            }
        }
        // A parameter that is not in a register may need one to be copied by.
        let taken = wanted.len() + through.len();
        for candidate in through.iter().chain(&wanted).take(taken) {
            self.spiller.present.insert(candidate.value);
        }
        let params = self.spiller.distances.params(block);
        let outside = |v: VReg| !self.spiller.present.contains(v);
        let copies = params
            .iter()
            .any(|a| a.distance != NEVER && outside(a.value));
        if copies && taken as u32 == self.limit && self.class == RegisterClass::Gpr {
            let farthest = through.iter().max_by_key(|c| (c.deferred, c.rank));
            let farthest = farthest.or_else(|| wanted.iter().max_by_key(|c| (c.deferred, c.rank)));
            if let Some(farthest) = farthest {
                self.spiller.present.remove(farthest.value);
            }
        }
        self.uncount(block);
    }

    /// The lower, the more a value deserves a register at the header of a loop.
    fn rank(&self, v: VReg, distance: u32, carried: bool) -> u64 {
        let distance = u64::from(distance);
        if self.plan.recipes.knows(v) {
            distance * FREE * CLEAN
        } else if carried {
            distance
        } else {
            distance * CLEAN
        }
    }

    /// Counts for every value on how many of the edges into `block` that are known it is in a register. Returns their number.
    fn count(&mut self, block: Block) -> u32 {
        let mut edges = 0;
        for from in self.flow.predecessors(block).filter(|p| *p < block) {
            edges += 1;
            let spiller = &mut *self.spiller;
            spiller.marks += 1;
            for v in self.plan.exit.of(from) {
                spiller.count[v.index()] += 1;
                spiller.mark[v.index()] = spiller.marks;
            }
            if edge_target(self.code, from) == Some(block) {
                for (arg, param) in edge_arguments(self.code, from) {
                    let there = spiller.mark[arg.index()] == spiller.marks;
                    if there || Some(arg) == self.pinned {
                        spiller.count[param.index()] += 1;
                    }
                }
            }
        }
        edges
    }

    fn uncount(&mut self, block: Block) {
        for from in self.flow.predecessors(block).filter(|p| *p < block) {
            for v in self.plan.exit.of(from) {
                self.spiller.count[v.index()] = 0;
            }
        }
        for param in &self.code.blocks[block].params {
            self.spiller.count[param.index()] = 0;
        }
    }

    /// Walks through `block`.
    fn run(&mut self, block: Block) -> Result<(), Block> {
        self.look_ahead(block);
        let data = &self.code.blocks[block];
        let mut start = 0;
        for (i, (index, entry)) in data
            .insts
            .clone()
            .zip(self.code.block_insts(block))
            .enumerate()
        {
            let (defs, end) = self.spiller.bounds[i];
            let at = Point::before(block, index);
            self.bring(block, Some(entry), start..defs, at);
            let early = self.early_results(entry, start..defs);
            self.reduce(self.limit, early, start..defs, at, i as u32)?;
            for event in start..defs {
                let (v, next) = self.spiller.events[event as usize];
                self.spiller.next[v.index()] = next;
            }
            for event in start..defs {
                let (v, _) = self.spiller.events[event as usize];
                if self.spiller.next[v.index()] == NEVER {
                    self.spiller.present.remove(v);
                }
            }
            let behind = Point::behind(block, index);
            let step = i as u32 + 1;
            if self.code.call(entry).is_some() {
                self.reduce(self.across, 0, 0..0, behind, step)?;
            }
            self.reduce(self.limit, end - defs, 0..0, behind, step)?;
            for event in defs..end {
                let (v, next) = self.spiller.events[event as usize];
                self.spiller.next[v.index()] = next;
                if next != NEVER {
                    self.spiller.present.insert(v);
                }
            }
            start = end;
        }
        let end = self.spiller.events.len() as u32;
        let at = Point::end(self.code, block);
        self.bring(block, None, start..end, at);
        self.reduce(self.limit, 0, start..end, at, data.insts.len() as u32)?;
        for event in start..end {
            let (v, next) = self.spiller.events[event as usize];
            self.spiller.next[v.index()] = next;
            if next == NEVER {
                self.spiller.present.remove(v);
            }
        }
        self.plan.exit.push(self.spiller.present.iter());
        for v in self.spiller.touched.drain(..) {
            self.spiller.next[v.index()] = NEVER;
        }
        Ok(())
    }

    /// Collects uses and definitions with the next use behind each; afterwards `next` holds for the entry of `block`.
    fn look_ahead(&mut self, block: Block) {
        let (code, class, pinned) = (self.code, self.class, self.pinned);
        let mine = |v: &VReg| v.class() == class && Some(*v) != pinned;
        let data = &code.blocks[block];
        let end = length(code, block);
        let spiller = &mut *self.spiller;
        spiller.distances.leave(code, self.flow, block);
        let args = edge_arguments(code, block).map(|(arg, _)| arg);
        for v in self.live.live_out(block).chain(args).filter(mine) {
            let ahead = spiller.distances.ahead[v.index()];
            if ahead != NEVER {
                spiller.next[v.index()] = ahead.saturating_add(end).min(NEVER - 1);
                spiller.touched.push(v);
            }
        }
        spiller.distances.forget(code, self.flow, block);
        spiller.events.clear();
        spiller.bounds.clear();
        let event = |v| (v, NEVER);
        for entry in code.block_insts(block) {
            spiller
                .events
                .extend(code.uses(entry).filter(mine).map(event));
            let defs = spiller.events.len() as u32;
            spiller
                .events
                .extend(code.definitions(entry).filter(mine).map(event));
            spiller.bounds.push((defs, spiller.events.len() as u32));
        }
        let last = spiller.events.len();
        if !matches!(data.terminator, Terminator::Jump { .. }) {
            let uses = data.terminator.uses().filter(mine).map(event);
            spiller.events.extend(uses);
        }
        let mut visit = |events: &mut [(VReg, u32)], at: u32| {
            for (v, next) in events.iter_mut().rev() {
                *next = std::mem::replace(&mut spiller.next[v.index()], at);
                spiller.touched.push(*v);
            }
        };
        visit(&mut spiller.events[last..], end - 1);
        for i in (0..spiller.bounds.len()).rev() {
            let start = if i == 0 { 0 } else { spiller.bounds[i - 1].1 };
            let (defs, end) = spiller.bounds[i];
            visit(&mut spiller.events[defs as usize..end as usize], NEVER);
            visit(&mut spiller.events[start as usize..defs as usize], i as u32);
        }
    }

    /// Brings back what an instruction, or the terminator, reads.
    fn bring(
        &mut self,
        block: Block,
        entry: Option<&Entry<VReg>>,
        uses: std::ops::Range<u32>,
        at: Point,
    ) {
        let divergent = self.code.blocks[block].divergent;
        for event in uses {
            let (v, _) = self.spiller.events[event as usize];
            if self.spiller.present.contains(v) {
                continue;
            }
            let home = self.class == RegisterClass::Uniform
                && entry.is_some_and(|e| uniform::can_read_home(&e.inst, divergent));
            if home {
                self.plan.read_home(v, at);
            } else {
                self.plan.bring(v, at);
                self.spiller.present.insert(v);
            }
        }
    }

    /// Results under a guard that need a register beside those of the sources, because the value they keep lives on.
    fn early_results(&self, entry: &Entry<VReg>, uses: std::ops::Range<u32>) -> u32 {
        let kept = self.code.else_values(entry);
        if kept.is_empty() {
            return 0;
        }
        let events = &self.spiller.events[uses.start as usize..uses.end as usize];
        let lives_on = |v: &VReg| {
            let last = events.iter().rev().find(|(u, _)| u == v);
            last.is_some_and(|(_, next)| *next != NEVER)
        };
        let mut early = 0;
        for (i, v) in kept.iter().enumerate() {
            let Some(v) = v.filter(|v| self.mine(*v)) else {
                continue;
            };
            early += u32::from(lives_on(&v) || kept[..i].contains(&Some(v)));
        }
        early
    }

    /// Takes values out of their registers, none of those that `needed` names, until at most `limit` are left beside `more` others.
    fn reduce(
        &mut self,
        limit: u32,
        more: u32,
        needed: std::ops::Range<u32>,
        at: Point,
        step: u32,
    ) -> Result<(), Block> {
        while self.spiller.present.count(self.class) + more > limit {
            let spiller = &*self.spiller;
            let needed = &spiller.events[needed.start as usize..needed.end as usize];
            let often = self.flow.frequency(at.block);
            let farness = |v: VReg| {
                let distance = u64::from(spiller.next[v.index()].saturating_sub(step)) + 1;
                if self.plan.recipes.knows(v) {
                    distance * FREE
                } else if spiller.left[v.index()]
                    || self.flow.frequency(self.live.def_block(v)) < often
                {
                    distance * CLEAN
                } else {
                    distance
                }
            };
            let candidates = spiller.present.iter();
            let victim = candidates
                .filter(|v| needed.iter().all(|(u, _)| u != v))
                .max_by_key(|v| (farness(*v), *v));
            let Some(victim) = victim else {
                return Err(at.block);
            };
            self.spiller.present.remove(victim);
            self.spiller.left[victim.index()] = true;
            self.plan.evictions.push(Eviction { value: victim, at });
        }
        Ok(())
    }
}

/// The block to which a block passes arguments.
fn edge_target(code: &VCode<VReg>, block: Block) -> Option<Block> {
    match &code.blocks[block].terminator {
        Terminator::Jump { target, .. } => Some(*target),
        _ => None,
    }
}
