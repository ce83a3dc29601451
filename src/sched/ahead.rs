//! Computing ahead of a branch what stands behind it.
//!
//! A branch waits for its condition, a predicate, longer than anything else of fixed latency takes. What only computes
//! and stands behind the branch can be computed in that time, before it is known whether it will be needed: of a loop
//! the condition of the next branch, of a kernel the addresses behind the test of its bounds.
//!
//! An instruction of a block goes to the end of its only predecessor, if that is going to branch there most of the time
//! – the other way leaves the loop, ends the function or is rare – and if it issues there before the branch could:
//! nothing waits longer than it did. It needs no more registers than the function does anyway, up to the step in which
//! they are given out. What accesses memory, traps, or writes a register that the warp shares stays; so does what a
//! loop hands on where that replaces something that is still read behind the branch, which would cost a copy in every
//! turn.
//!
//! Every instruction of a block that is looked at is looked at once for each of at most as many issues as a predicate
//! takes cycles; blocks whose predecessor has no cycle to spare are not.

use super::alive::Pressure;
use super::dependence::{Renewals, latency_of};
use crate::isa::table::Effects;
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::liveness::Liveness;
use crate::vcode::{Block, Entry, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use smallvec::SmallVec;
use std::ops::Range;

/// So many instructions behind a branch are looked at (*assumed*): what is further behind does not hold up the block.
const FIRST: usize = 40;

/// A block that runs ahead of another: it ends in a branch that mostly goes there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// The block with the branch.
    pub from: Block,
    /// The block behind it, which nothing else leads to.
    pub to: Block,
    /// The block on the other way.
    pub other: Block,
}

/// What is known of values from outside.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// What is alive at the borders of blocks.
    pub live: &'a Liveness,
    /// What loops hand on.
    pub renewals: &'a Renewals,
}

/// When a value is there.
#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    /// The block that the cycle is counted in, plus one.
    block: u32,
    cycle: u32,
    /// The block that it is written in.
    home: u32,
    /// Written by what takes an unknown time, or by whom is not known. In other blocks than [`Arrival::block`] it may
    /// have to be waited for.
    slow: bool,
}

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub(super) struct AheadBuffers {
    /// By value.
    arrivals: Vec<Arrival>,
    /// By block how many edges lead there.
    entered: Vec<u32>,
    /// By instruction the block that it moves to the end of, if it does.
    moved: Vec<Option<Block>>,
    /// What moves, in the order in which it is issued.
    order: Vec<u32>,
    entries: Vec<Entry<VReg>>,
    /// By instruction behind the branch the cycles from its issue to the last of those that are looked at.
    heights: Vec<u32>,
    /// By value the height of those that read it, and the pair that this was found for.
    readers: Vec<(u32, u32)>,
}

/// Whether an instruction may run where it is not needed, and where lanes are together that are not later, or the other
/// way round.
fn only_computes(entry: &Entry<VReg>, divergent: bool) -> bool {
    let inst = &entry.inst;
    let shared = |r: VReg| r.class() == RegisterClass::Uniform;
    inst.optype().info().effects == Effects::default()
        && entry.attachment.is_none()
        && inst.is_unguarded()
        && !inst.definitions().any(shared)
        && !(divergent && inst.uses().any(shared))
}

/// Whether a block only ends the function, by itself or in the next.
fn ends(code: &VCode<VReg>, block: Block) -> bool {
    let mut block = block;
    for _ in 0..2 {
        let data = &code.blocks[block];
        if !data.insts.is_empty() {
            return false;
        }
        match &data.terminator {
            Terminator::Exit | Terminator::Trap(_) | Terminator::Return { .. } => return true,
            Terminator::Jump { target, .. } => block = *target,
            _ => return false,
        }
    }
    false
}

impl AheadBuffers {
    /// Finds the pairs of blocks of a function, in the order of the first.
    pub(super) fn pairs(&mut self, code: &VCode<VReg>) -> SmallVec<[Pair; 8]> {
        self.entered.clear();
        self.entered.resize(code.blocks.len(), 0);
        for data in code.blocks.values() {
            for next in data.terminator.successors() {
                self.entered[next.index()] += 1;
            }
        }
        let mut pairs = SmallVec::new();
        for (from, data) in code.blocks.iter() {
            let Terminator::Branch {
                taken, fallthrough, ..
            } = data.terminator
            else {
                continue;
            };
            let ways = [(taken, fallthrough), (fallthrough, taken)];
            let often = |&(to, other): &(Block, Block)| {
                let (there, elsewhere) = (&code.blocks[to], &code.blocks[other]);
                self.entered[to.index()] == 1
                    && to > from
                    && !there.insts.is_empty()
                    && !there.cold
                    && there.loop_depth >= data.loop_depth
                    && (elsewhere.loop_depth < there.loop_depth
                        || elsewhere.cold
                        || ends(code, other))
            };
            pairs.extend(
                ways.into_iter()
                    .find(often)
                    .map(|(to, other)| Pair { from, to, other }),
            );
        }
        pairs
    }

    /// Begins with a function.
    pub(super) fn start(&mut self, code: &VCode<VReg>) {
        self.moved.clear();
        self.moved.resize(code.insts.len(), None);
        self.order.clear();
        self.arrivals.clear();
        self.arrivals
            .resize(code.vreg_count as usize, Arrival::default());
        self.readers.clear();
        self.readers.resize(code.vreg_count as usize, (0, u32::MAX));
        for (block, data) in code.blocks.iter() {
            let home = block.index() as u32;
            for &param in &data.params {
                let arrival = &mut self.arrivals[param.index()];
                (arrival.home, arrival.slow) = (home, true);
            }
            for entry in code.block_insts(block) {
                let slow = entry.inst.optype().info().latency.variable;
                for result in code.definitions(entry) {
                    let arrival = &mut self.arrivals[result.index()];
                    (arrival.home, arrival.slow) = (home, slow);
                }
            }
        }
    }

    /// Looks for what to compute ahead in a pair; `room` are the values that may be alive at the end of the first block
    /// beside those that are. What has been found moves when [`AheadBuffers::finish`] is called.
    pub(super) fn look(
        &mut self,
        code: &VCode<VReg>,
        known: Known<'_>,
        pair: Pair,
        room: Pressure,
    ) {
        let Terminator::Branch { guard, .. } = &code.blocks[pair.from].terminator else {
            return;
        };
        let number = pair.from.index() as u32 + 1;
        let mut now = 0;
        let own = code.blocks[pair.from].insts.clone();
        for (index, entry) in own.zip(code.block_insts(pair.from)) {
            if self.moved[index as usize].is_none() {
                now = self.issue(code, entry, number, now);
            }
        }
        let branch = now.max(self.arrival(guard.reg, pair).unwrap_or(0));
        if branch <= now {
            return;
        }
        let range = code.blocks[pair.to].insts.clone();
        let range = range.start as usize..(range.end as usize).min(range.start as usize + FIRST);
        self.find_heights(code, range.clone());
        let divergent = code.blocks[pair.from].divergent;
        let mut room = room;
        // Each turn finds the one on the longest path of those that can be issued before the branch.
        while now < branch {
            let mut best: Option<(u32, usize, u32)> = None;
            for index in range.clone() {
                let entry = &code.insts[index];
                let height = self.heights[index - range.start];
                if self.moved[index].is_some()
                    || best.is_some_and(|best| best.0 >= height)
                    || !only_computes(entry, divergent)
                    || !fits(entry, room)
                {
                    continue;
                }
                let ready = entry
                    .inst
                    .uses()
                    .try_fold(now, |at, v| Some(at.max(self.arrival(v, pair)?)));
                if let Some(at) = ready.filter(|at| *at < branch)
                    && self.replaces_nothing(code, known, pair, index)
                {
                    best = Some((height, index, at));
                }
            }
            let Some((_, index, at)) = best else { return };
            let entry = &code.insts[index];
            self.moved[index] = Some(pair.from);
            self.order.push(index as u32);
            now = self.issue(code, entry, number, at);
            for result in entry.inst.definitions() {
                room.take(result.class(), 1);
            }
        }
    }

    /// Whether nobody behind the branch reads the values that those of an instruction there, at `index`, replace in the
    /// next turn of a loop.
    fn replaces_nothing(
        &self,
        code: &VCode<VReg>,
        known: Known<'_>,
        pair: Pair,
        index: usize,
    ) -> bool {
        let Known { live, renewals } = known;
        let results = &mut code.insts[index].inst.definitions();
        results.filter_map(|v| renewals.old(v)).all(|old| {
            let mut others = code.blocks[pair.to].insts.clone().map(|i| i as usize);
            !live.is_live_in(old, pair.other)
                && !live.is_live_out(old, pair.to)
                && !others.any(|i| {
                    let reads = || code.uses(&code.insts[i]).any(|v| v == old);
                    i != index && self.moved[i].is_none() && reads()
                })
        })
    }

    /// Moves what was found; whether anything was.
    pub(super) fn finish(&mut self, code: &mut VCode<VReg>) -> bool {
        if self.order.is_empty() {
            return false;
        }
        self.entries.clear();
        // Those of a block follow each other, and blocks come in order.
        let mut order = self.order.iter().peekable();
        for (block, data) in code.blocks.iter_mut() {
            let start = self.entries.len() as u32;
            let stay = data
                .insts
                .clone()
                .filter(|&i| self.moved[i as usize].is_none());
            self.entries
                .extend(stay.map(|index| code.insts[index as usize]));
            while let Some(index) = order.next_if(|i| self.moved[**i as usize] == Some(block)) {
                self.entries.push(code.insts[*index as usize]);
            }
            data.insts = start..self.entries.len() as u32;
        }
        std::mem::swap(&mut code.insts, &mut self.entries);
        true
    }

    /// Issues an instruction in a block, not before `earliest`; the first cycle in which the next can issue.
    fn issue(&mut self, code: &VCode<VReg>, entry: &Entry<VReg>, block: u32, earliest: u32) -> u32 {
        let mut at = earliest;
        for v in code.uses(entry) {
            let arrival = &self.arrivals[v.index()];
            if arrival.block == block {
                at = at.max(arrival.cycle);
            }
        }
        for v in code.uses(entry) {
            let arrival = &mut self.arrivals[v.index()];
            if arrival.block != block {
                // Whatever it takes, it is waited for here.
                (arrival.block, arrival.cycle) = (block, at);
            }
        }
        for v in code.definitions(entry) {
            let arrival = &mut self.arrivals[v.index()];
            (arrival.block, arrival.cycle) = (block, at + latency_of(&entry.inst, v));
        }
        at + 1
    }

    /// When a value is there, in cycles of the first block of a pair, if it is computed there or before and that is
    /// known.
    fn arrival(&self, v: VReg, pair: Pair) -> Option<u32> {
        let arrival = &self.arrivals[v.index()];
        if arrival.block == pair.from.index() as u32 + 1 {
            return Some(arrival.cycle);
        }
        let known = !arrival.slow && arrival.home != pair.to.index() as u32;
        known.then_some(0)
    }

    /// Finds the heights of the instructions of a range.
    fn find_heights(&mut self, code: &VCode<VReg>, range: Range<usize>) {
        let epoch = range.start as u32;
        self.heights.clear();
        self.heights.resize(range.len(), 0);
        for index in range.clone().rev() {
            let entry = &code.insts[index];
            let read = |v: VReg| match self.readers[v.index()] {
                (height, known) if known == epoch => height + latency_of(&entry.inst, v),
                _ => 0,
            };
            let height = code.definitions(entry).map(read).max().unwrap_or(0);
            let height = height.max(1);
            self.heights[index - range.start] = height;
            for v in code.uses(entry) {
                let readers = &mut self.readers[v.index()];
                if readers.1 != epoch {
                    *readers = (0, epoch);
                }
                readers.0 = readers.0.max(height);
            }
        }
    }
}

/// Whether there is room for the results of an instruction.
fn fits(entry: &Entry<VReg>, room: Pressure) -> bool {
    let mut results = Pressure::default();
    let made = entry.inst.definitions();
    made.for_each(|v| results.add(v.class(), 1));
    results.fits(room)
}
