//! The walk through the blocks of a function with the values that are in registers; see [`super::spill`].

use super::distance::{Distances, LOOP, NEVER, length};
use super::flow::Flow;
use super::plan::{BlockPoint, Eviction, NONE, Plan};
use super::pressure::LiveSet;
use super::uniform;
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::liveness::{Liveness, edge_arguments};
use crate::vcode::{Block, Entry, Terminator, VCode};
use hashbrown::HashSet;

/// How much farther away a value counts that has a home already, or gets it outside of the loops around (*measured*
/// over all functions of `filetests` with 24 registers: fewer accesses the more, and nothing beyond this).
const CLEAN: u64 = 8;

/// From this distance on parameters of loops deserve a register alike (*assumed*).
const FAR: u64 = 1000;

/// The same for a value that can be made again (*measured* likewise).
const FREE: u64 = 16;

/// How much nearer a parameter counts at the header of its loop, whose every round would load and store it (*assumed*).
const CARRY: u64 = 2;

/// Memory of the choice, kept between functions.
#[derive(Debug, Default)]
pub(in crate::regalloc) struct Spiller {
    pub(super) distances: Distances,
    /// Values in registers at the place at hand.
    pub(super) present: LiveSet,
    /// By value: steps from the entry of the block at hand to the next use.
    pub(super) next: Vec<u32>,
    /// Values with an entry in `next`.
    pub(super) touched: Vec<VReg>,
    /// Uses and definitions of the block at hand, with the next use behind each.
    pub(super) events: Vec<(VReg, u32)>,
    /// By instruction of the block at hand: where its definitions and where its events end.
    pub(super) bounds: Vec<(u32, u32)>,
    /// By value: on how many edges into the block at hand it is in a register.
    pub(super) count: Vec<u32>,
    /// By value: the edge on which it was last seen in a register.
    pub(super) mark: Vec<u32>,
    pub(super) marks: u32,
    /// By value: whether it has left its register anywhere.
    pub(super) left: Vec<bool>,
    /// By loop: the most values alive at once.
    pub(super) pressure: Vec<u32>,
}

/// What earlier walks have found out.
#[derive(Default)]
pub(super) struct Feedback {
    /// Values that cannot be in registers at the entry of a block.
    pub banned: HashSet<(Block, VReg)>,
    /// Headers of loops with divergent latches begin without registers.
    pub strict: bool,
    /// Values that are in registers at the ends of loops, with the loops' headers.
    pub kept: HashSet<(Block, VReg)>,
}

/// See the module.
pub(super) struct Walk<'a, 's> {
    pub code: &'a VCode<VReg>,
    pub live: &'a Liveness,
    pub flow: &'a Flow,
    pub class: RegisterClass,
    pub pinned: Option<VReg>,
    pub limit: u32,
    pub across: u32,
    pub feedback: &'a Feedback,
    pub spiller: &'s mut Spiller,
    pub plan: &'s mut Plan,
}

/// A value that may be in a register at the entry of a block.
struct Candidate {
    value: VReg,
    /// What earlier walks found leaves it for the end.
    deferred: bool,
    rank: u64,
}

impl Walk<'_, '_> {
    fn mine(&self, v: VReg) -> bool {
        v.class() == self.class && Some(v) != self.pinned
    }

    /// Chooses the values that are in registers at the entry of `block`.
    pub fn enter(&mut self, block: Block) {
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
        let closed = self.feedback.strict
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
                || self.feedback.banned.contains(&(block, ahead.value));
            if ahead.distance == NEVER || barred {
                continue;
            }
            let near = ahead.distance < LOOP;
            let candidate = Candidate {
                value: ahead.value,
                deferred: header && !self.feedback.kept.contains(&(block, ahead.value)),
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
        if self.plan.rematerializable.knows(v) {
            distance * CARRY * FREE
        } else if carried {
            distance.min(FAR)
        } else {
            distance * CARRY
        }
    }

    /// Counts for every value on how many of the edges into `block` that are known it is in a register. Returns their
    /// number.
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
    pub fn run(&mut self, block: Block) -> Result<(), Block> {
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
            let at = BlockPoint::before(block, index);
            let present = self.spiller.present.count(self.class);
            self.plan.crowds.note_before(at, present);
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
            let behind = BlockPoint::behind(block, index);
            let step = i as u32 + 1;
            if self.code.call(entry).is_some() {
                self.reduce(self.across, 0, 0..0, behind, step)?;
                if self.across == 0 {
                    self.plan.crowds.note(at, NONE);
                }
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
        let at = BlockPoint::end(self.code, block);
        let present = self.spiller.present.count(self.class);
        self.plan.crowds.note_before(at, present);
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
        at: BlockPoint,
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

    /// Takes values out of their registers, none of those that `needed` names, until at most `limit` are left beside
    /// `more` others.
    fn reduce(
        &mut self,
        limit: u32,
        more: u32,
        needed: std::ops::Range<u32>,
        at: BlockPoint,
        step: u32,
    ) -> Result<(), Block> {
        while self.spiller.present.count(self.class) + more > limit {
            let spiller = &*self.spiller;
            let needed = &spiller.events[needed.start as usize..needed.end as usize];
            let often = self.flow.frequency(at.block);
            let farness = |v: VReg| {
                let distance = u64::from(spiller.next[v.index()].saturating_sub(step)) + 1;
                if self.plan.rematerializable.knows(v) {
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
        let count = self.spiller.present.count(self.class) + more;
        self.plan.crowds.note(at, count);
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
