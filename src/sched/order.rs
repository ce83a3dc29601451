//! The order of instructions within a block, before allocation.
//!
//! List scheduling on the dependence graph ([`super::dependence`]): of the instructions whose operands are there that on the longest path to
//! the end of the block goes first, so that loads are issued early and what is independent fills the time until they arrive. When as many
//! values are alive as the function needs anyway (up to the step in which registers are given out), the instruction that frees most goes first
//! instead: more registers would mean fewer warps, which hide more than an order can. The new order is kept only if it is estimated to be
//! faster than the old one and needs no more registers. What a loop hands on stays behind the last read of what it replaces
//! ([`Renewals`]), because a copy in every iteration costs more than the time that would be filled.

use super::dependence::{Dependences, Renewals, keeps_its_place};
use crate::abi::REGISTER_STEP;
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::constrain::pressure::LiveSet;
use crate::regalloc::liveness::Liveness;
use crate::vcode::{Block, Entry, VCode};

/// Uniform registers and predicates that may be alive in any case (*assumed*): so few that they limit nothing.
const FREE: [u32; 3] = [0, 32, 4];
/// Registers of a step that are left to the gaps of aligned operands (*assumed*).
const GAPS: u32 = 2;
/// Longest run that is ordered at once (*assumed*); bounds the time, which grows with its square.
const LONGEST_RUN: usize = 400;

/// Shortest run that has more than one order worth a look.
const SHORTEST_RUN: usize = 3;

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub struct Scratch {
    live: Liveness,
    /// Values alive behind the instructions that are looked at.
    behind: LiveSet,
    graph: Dependences,
    renewals: Renewals,
    walk: Walk,
    /// For each node how many of the nodes before it have not been issued.
    waiting: Vec<u32>,
    ready: Vec<u32>,
    order: Vec<u32>,
    entries: Vec<Entry<VReg>>,
}

/// Orders the instructions of every block.
pub fn order(mut code: VCode<VReg>, scratch: &mut Scratch) -> VCode<VReg> {
    if code.blocks.values().all(|b| b.insts.len() < SHORTEST_RUN) {
        return code;
    }
    scratch.live.compute_sets(&code);
    scratch.renewals.find(&code);
    let mut limit = Pressure(FREE);
    for block in code.blocks.keys() {
        limit = limit.max(scratch.peak(&code, block));
    }
    let words = &mut limit.0[RegisterClass::Gpr as usize];
    *words = (*words).max(words.next_multiple_of(REGISTER_STEP).saturating_sub(GAPS));
    for block in code.blocks.keys().collect::<Vec<_>>() {
        let range = code.blocks[block].insts.clone();
        let (start, mut end) = (range.start as usize, range.end as usize);
        if end - start < SHORTEST_RUN {
            continue;
        }
        scratch.enter_from_behind(&code, block);
        // From the last run to the first: what is alive behind each is known then.
        while end > start {
            let mut first = end;
            while first > start
                && end - first < LONGEST_RUN
                && !keeps_its_place(&code.insts[first - 1].inst)
            {
                first -= 1;
            }
            if first == end {
                first -= 1;
            } else if scratch.order_run(&code, &code.insts[first..end], limit) {
                let run = &mut code.insts[first..end];
                scratch.entries.clear();
                scratch
                    .entries
                    .extend(scratch.order.iter().map(|&i| run[i as usize]));
                run.copy_from_slice(&scratch.entries);
            }
            if first > start {
                for entry in code.insts[first..end].iter().rev() {
                    step_back(&mut scratch.behind, &code, entry);
                }
            }
            end = first;
        }
    }
    code
}

/// Numbers of values alive, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pressure([u32; 3]);

impl Pressure {
    fn of(alive: &LiveSet) -> Pressure {
        Pressure(RegisterClass::ALL.map(|class| alive.count(class)))
    }

    fn max(self, other: Pressure) -> Pressure {
        Pressure([0, 1, 2].map(|c| self.0[c].max(other.0[c])))
    }

    fn fits(self, limit: Pressure) -> bool {
        (0..3).all(|c| self.0[c] <= limit.0[c])
    }
}

/// From behind an instruction to before it.
fn step_back(alive: &mut LiveSet, code: &VCode<VReg>, entry: &Entry<VReg>) {
    code.definitions(entry).for_each(|r| {
        alive.remove(r);
    });
    code.uses(entry).for_each(|r| {
        alive.insert(r);
    });
}

/// A walk over a run in some order: what is alive, and when what arrives.
#[derive(Debug, Default)]
struct Walk {
    /// By value the reads in the run that are still to come: all 0 behind it.
    reads: Vec<u32>,
    /// Cycle in which each node was issued.
    issued: Vec<u32>,
    /// Values alive before the run.
    before: Pressure,
    count: Pressure,
    peak: Pressure,
    now: u32,
    /// When all results that are needed behind the run are there.
    end: u32,
}

impl Walk {
    /// Counts what is alive before the run.
    fn prepare(&mut self, graph: &Dependences, behind: &LiveSet, values: usize) {
        if self.reads.len() < values {
            self.reads.resize(values, 0);
        }
        self.before = Pressure::of(behind);
        self.issued.clear();
        self.issued.resize(graph.len(), 0);
        for node in 0..graph.len() {
            for &(reg, times) in graph.uses(node) {
                let reads = &mut self.reads[reg.index()];
                let from_before = !graph.writes(reg) && !behind.contains(reg) && *reads == 0;
                self.before.0[reg.class() as usize] += u32::from(from_before);
                *reads += times;
            }
        }
        for node in 0..graph.len() {
            for (reg, _) in graph.results(node) {
                self.before.0[reg.class() as usize] -= u32::from(behind.contains(*reg));
            }
        }
    }

    /// Goes to the start of the run.
    fn restart(&mut self) {
        (self.count, self.peak) = (self.before, self.before);
        (self.now, self.end) = (0, 0);
    }

    /// Goes back to the start of the run after a walk.
    fn rewind(&mut self, graph: &Dependences) {
        for node in 0..graph.len() {
            for &(reg, times) in graph.uses(node) {
                self.reads[reg.index()] += times;
            }
        }
        self.restart();
    }

    /// Changes of the numbers of values that are alive, by class, if `node` were next.
    fn change(&self, graph: &Dependences, behind: &LiveSet, node: usize) -> [i32; 3] {
        let mut change = [0; 3];
        for &(reg, _) in graph.results(node) {
            let read = self.reads[reg.index()] > 0 || behind.contains(reg);
            change[reg.class() as usize] += i32::from(read);
        }
        for &(reg, times) in graph.uses(node) {
            let last = self.reads[reg.index()] == times && !behind.contains(reg);
            change[reg.class() as usize] -= i32::from(last);
        }
        change
    }

    /// The earliest cycle for a node behind those it depends on, which have been issued.
    fn earliest(&self, graph: &Dependences, node: usize) -> u32 {
        let arrivals = graph.incoming(node).iter();
        arrivals
            .map(|edge| self.issued[edge.node as usize] + edge.cycles)
            .max()
            .unwrap_or(0)
    }

    /// Issues `node` next.
    fn issue(&mut self, graph: &Dependences, behind: &LiveSet, node: usize) {
        let at = self.now.max(self.earliest(graph, node));
        self.issued[node] = at;
        self.now = at + 1;
        let needed = graph.results(node).iter();
        let needed = needed.filter(|(reg, _)| behind.contains(*reg));
        self.end = self.end.max(at + needed.map(|r| r.1).max().unwrap_or(1));
        // Operands and results are alive together for a moment.
        let mut during = self.count;
        for (reg, _) in graph.results(node) {
            during.0[reg.class() as usize] += 1;
        }
        self.peak = self.peak.max(during);
        let changes = self.change(graph, behind, node);
        for (count, change) in self.count.0.iter_mut().zip(changes) {
            *count = count.saturating_add_signed(change);
        }
        for &(reg, times) in graph.uses(node) {
            self.reads[reg.index()] -= times;
        }
    }
}

impl Scratch {
    /// Makes `behind` what is alive before the terminator of a block.
    fn enter_from_behind(&mut self, code: &VCode<VReg>, block: Block) {
        self.behind.reset(code.vreg_count as usize);
        for reg in self.live.live_out(block) {
            self.behind.insert(reg);
        }
        for reg in code.blocks[block].terminator.uses() {
            self.behind.insert(reg);
        }
    }

    /// The most values that are alive at once in a block.
    fn peak(&mut self, code: &VCode<VReg>, block: Block) -> Pressure {
        self.enter_from_behind(code, block);
        let mut peak = Pressure::of(&self.behind);
        for entry in code.block_insts(block).iter().rev() {
            code.definitions(entry).for_each(|r| {
                self.behind.insert(r);
            });
            peak = peak.max(Pressure::of(&self.behind));
            step_back(&mut self.behind, code, entry);
            peak = peak.max(Pressure::of(&self.behind));
        }
        peak
    }

    /// Looks for a better order of a run and leaves it, as positions in the run, in `order`; false when the old one is as good.
    fn order_run(&mut self, code: &VCode<VReg>, run: &[Entry<VReg>], limit: Pressure) -> bool {
        if run.len() < SHORTEST_RUN {
            return false;
        }
        let Scratch {
            behind,
            graph,
            renewals,
            walk,
            ..
        } = self;
        graph.build(code, run, |r| behind.contains(r), renewals);
        walk.prepare(graph, behind, code.vreg_count as usize);
        walk.restart();
        (0..run.len()).for_each(|node| walk.issue(graph, behind, node));
        let old = (walk.end, walk.peak);
        // No order ends before the longest path does, or before everything is issued.
        let longest = (0..run.len()).map(|node| graph.height(node)).max();
        if old.0 <= longest.unwrap_or(0).max(run.len() as u32) {
            return false;
        }
        walk.rewind(graph);
        graph.link();
        self.list_schedule(limit);
        self.walk.end < old.0 && self.walk.peak.fits(limit.max(old.1))
    }

    /// Issues what is ready, one after the other, until all of the run is.
    fn list_schedule(&mut self, limit: Pressure) {
        let Scratch {
            behind,
            graph,
            walk,
            waiting,
            ready,
            order,
            ..
        } = self;
        waiting.clear();
        waiting.extend((0..graph.len()).map(|node| graph.incoming(node).len() as u32));
        ready.clear();
        ready.extend((0..graph.len() as u32).filter(|&node| waiting[node as usize] == 0));
        order.clear();
        while !ready.is_empty() {
            let node = ready.swap_remove(choose(walk, graph, behind, ready, limit));
            walk.issue(graph, behind, node as usize);
            order.push(node);
            for edge in graph.outgoing(node as usize) {
                let left = &mut waiting[edge.node as usize];
                *left -= 1;
                if *left == 0 {
                    ready.push(edge.node);
                }
            }
        }
    }
}

/// The position in `ready` of the instruction to issue next.
fn choose(
    walk: &Walk,
    graph: &Dependences,
    behind: &LiveSet,
    ready: &[u32],
    limit: Pressure,
) -> usize {
    // The result of one more instruction of any width must fit.
    let full = RegisterClass::ALL.into_iter().find(|&c| {
        let margin = if c == RegisterClass::Gpr { 4 } else { 1 };
        walk.count.0[c as usize] + margin > limit.0[c as usize]
    });
    let key = |node: u32| {
        let change = full.map_or(0, |class| {
            walk.change(graph, behind, node as usize)[class as usize]
        });
        let wait = (walk.earliest(graph, node as usize)).saturating_sub(walk.now);
        let height = std::cmp::Reverse(graph.height(node as usize));
        (change, wait, height, node)
    };
    (0..ready.len())
        .min_by_key(|&i| key(ready[i]))
        .expect("something is ready")
}
