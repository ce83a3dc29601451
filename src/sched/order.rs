//! The order of instructions within a block, before allocation.
//!
//! Long blocks are looked at first for what is better computed early ([`early`]).
//!
//! List scheduling on the dependence graph ([`super::dependence`]): of the instructions whose operands are there that
//! on the longest path to the end of the block goes first, so that loads are issued early and what is independent fills
//! the time until they arrive. When as many values are alive as the function needs anyway (up to the step in which
//! registers are given out), the instruction that frees most goes first instead: more registers would mean fewer warps,
//! which hide more than an order can. The new order is kept only if it is estimated to be faster than the old one and
//! needs no more registers; where it runs most often, one that is a quarter faster may have another step of them. What
//! a loop hands on stays behind the last read of what it replaces ([`Renewals`]), because a copy in every iteration
//! costs more than the time that would be filled. What only computes moves across barriers of the CTA, which keep
//! memory in order.

use super::ahead;
use super::alive::{Alive, Pressure};
use super::dependence::{Dependences, Readers, Renewals, is_fence};
use super::early;
use crate::abi::{CALLEE_SAVED, REGISTER_STEP};
use crate::isa::{RegisterClass, VReg};
use crate::regalloc::liveness::Liveness;
use crate::vcode::{Block, Entry, FunctionKind, VCode};
use std::ops::Range;

/// Uniform registers and predicates that may be alive in any case (*assumed*): so few that they limit nothing.
const FREE: [u32; 3] = [0, 32, 4];
/// The same where they are counted at last: an order that aims at [`FREE`] may need more for a moment. What there are
/// without one to copy with.
const ALL_FREE: [u32; 3] = [0, 32, 6];
/// Registers of a step that are left to the gaps of aligned operands (*assumed*).
const GAPS: u32 = 2;
/// How often an order is looked for, each time with so many registers less to aim at (*measured*: a third time finds
/// next to nothing).
const TRIES: u32 = 2;
const ROOM: u32 = 2;
/// An order is worth another step of registers if it takes a part like this less time, and so many cycles less
/// (*assumed*: a step costs at most a fifth of the warps, and a third of what memory takes is felt by few of them).
const GAIN: u32 = 4;
const LEAST_GAIN: u32 = 100;
/// Longest run that is ordered at once (*assumed*); bounds the time, which grows with its square.
const LONGEST_RUN: usize = 400;

/// Rank of what goes first whatever else there is: a barrier of the CTA, for which other warps wait.
const FIRST: u64 = 0;
/// More than any wait, and any change to the number of values alive.
const OTHERS: i64 = 1 << 62;

/// Shortest block in which values are computed [`early`] (*assumed*): others have no room for many.
const LONG: usize = 32;
/// Shortest run that has more than one order worth a look.
const SHORTEST_RUN: usize = 3;

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub struct OrderBuffers {
    live: Liveness,
    early: early::EarlyBuffers,
    ahead: ahead::AheadBuffers,
    /// Whether a block needs so much less than it did that it may have some of that back.
    has_room: bool,
    /// Registers that a thread may have.
    registers: u32,
    /// Whether the run may have another step of registers if that makes it faster: it runs as often as any, and no run
    /// has had one.
    may_have_more: bool,
    /// Values alive behind the instructions that are looked at.
    behind: Alive,
    /// Most values that may be alive at once, once it is asked for.
    limit: Option<Pressure>,
    /// To find the limit.
    counted: Alive,
    graph: Dependences,
    renewals: Renewals,
    walk: Walk,
    /// For each node how many of the nodes before it have not been issued.
    waiting: Vec<u32>,
    /// For each node the cycle in which all is there that it needs of nodes issued so far.
    arrival: Vec<u32>,
    /// For each node what would happen to the numbers of values alive, by class, if it were next.
    changes: Vec<[i32; 3]>,
    ready: Vec<Ready>,
    order: Vec<u32>,
    /// The order that was found with the registers that the function needs.
    found: Vec<u32>,
    entries: Vec<Entry<VReg>>,
}

/// Orders the instructions of every block of a function whose threads may have so many registers.
pub fn order(mut code: VCode<VReg>, registers: u8, scratch: &mut OrderBuffers) -> VCode<VReg> {
    if code.blocks.values().all(|b| b.insts.len() < SHORTEST_RUN) {
        return code;
    }
    scratch.limit = None;
    scratch.has_room = false;
    scratch.renewals.find(&code);
    if code.blocks.len() > 1 {
        scratch.live.compute_sets(&code);
        scratch.compute_ahead(&mut code);
    }
    for block in code.blocks.keys() {
        if code.blocks[block].insts.len() >= LONG {
            scratch.has_room |= scratch.compute_early(&mut code, block);
        }
    }
    // A device function saves more for its caller.
    scratch.registers = match code.kind {
        FunctionKind::Kernel(_) => registers,
        FunctionKind::Device => registers.min(*CALLEE_SAVED.start()),
    }
    .into();
    let deepest = code.blocks.values().map(|data| data.loop_depth).max();
    let mut has_more = false;
    for block in code.blocks.keys() {
        let data = &code.blocks[block];
        scratch.may_have_more = !has_more && !data.cold && Some(data.loop_depth) == deepest;
        let could_have = scratch.may_have_more;
        let range = code.blocks[block].insts.clone();
        let (start, mut end) = (range.start as usize, range.end as usize);
        if end - start < SHORTEST_RUN {
            continue;
        }
        enter_from_behind(&mut scratch.behind, &scratch.live, &code, block);
        // From the last run to the first: what is alive behind each is known then.
        while end > start {
            let mut first = end;
            while first > start
                && end - first < LONGEST_RUN
                && !is_fence(&code.insts[first - 1].inst)
            {
                first -= 1;
            }
            if first == end {
                first -= 1;
            } else if scratch.order_run(&code, first..end) {
                let run = &mut code.insts[first..end];
                scratch.entries.clear();
                scratch
                    .entries
                    .extend(scratch.order.iter().map(|&i| run[i as usize]));
                run.copy_from_slice(&scratch.entries);
            }
            if first > start {
                for entry in code.insts[first..end].iter().rev() {
                    scratch.behind.step_back(&code, entry);
                }
            }
            end = first;
        }
        has_more |= could_have && !scratch.may_have_more;
    }
    code
}

/// Makes `alive` what is alive before the terminator of a block.
fn enter_from_behind(alive: &mut Alive, live: &Liveness, code: &VCode<VReg>, block: Block) {
    alive.reset(code.vreg_count as usize);
    // Nothing lives on behind an only block, and its sets are not computed.
    if code.blocks.len() > 1 {
        live.live_out(block).for_each(|reg| alive.insert(reg));
    }
    let uses = code.blocks[block].terminator.uses();
    uses.for_each(|reg| alive.insert(reg));
}

/// A walk over a run in some order: what is alive, and when what arrives.
#[derive(Debug, Default)]
struct Walk {
    /// By value of the run who is still to read it.
    readers: Vec<Readers>,
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
    /// Goes to the start of the run.
    fn start(&mut self, graph: &Dependences) {
        self.readers.clear();
        self.readers.extend(graph.readers());
        (self.count, self.peak) = (self.before, self.before);
        (self.now, self.end) = (0, 0);
    }

    /// The earliest cycle for a node behind those it depends on, which have been issued.
    fn earliest(&self, graph: &Dependences, node: usize) -> u32 {
        let arrivals = graph.incoming(node).iter();
        arrivals
            .map(|edge| self.issued[edge.node as usize] + edge.cycles)
            .max()
            .unwrap_or(0)
    }

    /// What would happen to the numbers of values alive if `node` were next.
    fn change(&self, graph: &Dependences, node: usize) -> [i32; 3] {
        let mut change = graph.issue(node).alive.0.map(|count| count as i32);
        for used in graph.uses(node) {
            let last = self.readers[used.value as usize].count == 1;
            change[used.class as usize] -= i32::from(last);
        }
        change
    }

    /// Issues `node` next, not before the cycle `earliest`; the cycle of its issue.
    fn issue(&mut self, graph: &Dependences, node: usize, earliest: u32) -> u32 {
        let at = self.now.max(earliest);
        self.now = at + 1;
        let issue = graph.issue(node);
        self.end = self.end.max(at + issue.cycles);
        // Operands and results are alive together for a moment.
        self.peak = self.peak.max(self.count.plus(issue.written));
        self.count = self.count.plus(issue.alive);
        for used in graph.uses(node) {
            let readers = &mut self.readers[used.value as usize];
            readers.count -= 1;
            readers.nodes ^= node as u32;
            self.count.take(used.class, u32::from(readers.count == 0));
        }
        at
    }
}

/// What an order has to keep to.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// Values alive at once that the function may have.
    limit: Pressure,
    /// Those that the run may have: it has had more.
    most: Pressure,
    /// It has to end before this cycle.
    end: u32,
}

/// An instruction that nothing issued later is needed for.
#[derive(Clone, Copy, Debug)]
struct Ready {
    node: u32,
    /// When all that it needs is there.
    earliest: u32,
    /// Less for one on a longer path to the end, and for an earlier one of those.
    rank: u64,
}

impl OrderBuffers {
    /// The most values that may be alive at once: what the function needs anyway, up to the step in which registers are
    /// given out. `peak` is the most that are, where that is known.
    fn limit(&mut self, code: &VCode<VReg>, peak: Option<Pressure>) -> Pressure {
        if let Some(limit) = self.limit {
            return limit;
        }
        let mut limit = Pressure(FREE);
        match peak {
            Some(peak) => limit = limit.max(peak),
            None => {
                for block in code.blocks.keys() {
                    limit = limit.max(self.peak(code, block));
                }
            }
        }
        let most = match self.has_room {
            // Quads leave larger gaps (*measured*: 126 values in 140 registers).
            true => early::share(limit) / 8 * 7,
            false => limit.of(RegisterClass::Gpr).next_multiple_of(REGISTER_STEP),
        };
        let words = &mut limit.0[RegisterClass::Gpr as usize];
        *words = (*words).max(most.saturating_sub(GAPS));
        *self.limit.insert(limit)
    }

    /// Takes registers that nobody needs from a block.
    fn compute_early(&mut self, code: &mut VCode<VReg>, block: Block) -> bool {
        let range = code.blocks[block].insts.clone();
        let range = range.start as usize..range.end as usize;
        let behind = &mut self.behind;
        enter_from_behind(behind, &self.live, code, block);
        self.early.compute_early(code, range, behind)
    }

    /// Computes ahead of branches what stands behind them.
    fn compute_ahead(&mut self, code: &mut VCode<VReg>) {
        let pairs = self.ahead.pairs(code);
        if pairs.is_empty() {
            return;
        }
        self.ahead.start(code);
        let limit = self.limit(code, None);
        let known = ahead::Known {
            live: &self.live,
            renewals: &self.renewals,
        };
        for pair in pairs {
            enter_from_behind(&mut self.counted, &self.live, code, pair.from);
            let room = limit.beyond(self.counted.count());
            self.ahead.look(code, known, pair, room);
        }
        // The order may need as much as before, or what it needs now.
        self.limit = None;
        if self.ahead.finish(code) {
            self.live.compute_sets(code);
        }
    }

    /// The most values that are alive at once in a block.
    fn peak(&mut self, code: &VCode<VReg>, block: Block) -> Pressure {
        let alive = &mut self.counted;
        enter_from_behind(alive, &self.live, code, block);
        let mut peak = alive.count();
        for entry in code.block_insts(block).iter().rev() {
            code.definitions(entry).for_each(|reg| alive.insert(reg));
            peak = peak.max(alive.count());
            alive.step_back(code, entry);
            peak = peak.max(alive.count());
        }
        peak
    }

    /// Looks for a better order of a run and leaves it, as positions in the run, in `order`; false when the old one is
    /// as good.
    fn order_run(&mut self, code: &VCode<VReg>, range: Range<usize>) -> bool {
        let run = &code.insts[range];
        if run.len() < SHORTEST_RUN {
            return false;
        }
        let OrderBuffers {
            behind,
            graph,
            renewals,
            walk,
            ..
        } = self;
        graph.build(code, run, behind, renewals);
        walk.before = graph.alive_before(behind.count());
        walk.start(graph);
        walk.issued.clear();
        // A run that is all of the function tells what the function needs.
        let is_all = code.blocks.len() == 1 && code.insts.len() == run.len();
        let mut most = is_all.then_some(walk.before);
        for node in 0..run.len() {
            let at = walk.issue(graph, node, walk.earliest(graph, node));
            walk.issued.push(at);
            if let Some(most) = &mut most {
                *most = most.max(walk.count.plus(graph.issue(node).dead()));
            }
        }
        let (end, peak) = (walk.end, walk.peak);
        // No order ends before the longest path does, or before everything is issued.
        let longest = (0..run.len()).map(|node| graph.height(node)).max();
        let shortest = longest.unwrap_or(0).max(run.len() as u32);
        if end <= shortest {
            return false;
        }
        graph.link();
        let limit = self.limit(code, most);
        let bound = Bound {
            limit,
            most: limit.max(peak).max(Pressure(ALL_FREE)),
            end,
        };
        let found = self.order_with(bound);
        let end = if found { self.walk.end } else { end };
        self.order_with_more(Bound { end, ..bound }, shortest, found)
    }

    /// Looks for an order with the registers that the function needs.
    fn order_with(&mut self, bound: Bound) -> bool {
        let mut aim = bound.limit;
        for _ in 0..TRIES {
            if self.list_schedule(aim, bound) {
                return true;
            }
            if self.walk.peak.fits(bound.most) {
                return false;
            }
            // It went beyond what it aimed at. Results that are written while their operands are alive are the reason,
            // so a little room will do.
            let words = &mut aim.0[RegisterClass::Gpr as usize];
            *words = words.saturating_sub(ROOM);
        }
        false
    }

    /// Looks for an order that is so much faster that it is worth another step of registers, which the runs of the
    /// function that follow may use, too. If there is none, that which was found stays.
    fn order_with_more(&mut self, mut bound: Bound, shortest: u32, found: bool) -> bool {
        let gain = (bound.end / GAIN).max(LEAST_GAIN);
        let Some(wanted) = bound.end.checked_sub(gain).filter(|&end| end > shortest) else {
            return found;
        };
        let words = bound
            .limit
            .of(RegisterClass::Gpr)
            .next_multiple_of(REGISTER_STEP);
        let words = words + REGISTER_STEP - GAPS;
        if !self.may_have_more || words + GAPS > self.registers {
            return found;
        }
        bound.end = wanted;
        for pressure in [&mut bound.limit, &mut bound.most] {
            pressure.0[RegisterClass::Gpr as usize] = words;
        }
        std::mem::swap(&mut self.order, &mut self.found);
        if self.list_schedule(bound.limit, bound) {
            self.limit = Some(bound.limit);
            self.may_have_more = false;
            return true;
        }
        std::mem::swap(&mut self.order, &mut self.found);
        found
    }

    /// Issues what is ready, one after the other, until all of the run is: an order within `bound`, or false. `aim` is
    /// the number of values alive that it aims at.
    fn list_schedule(&mut self, aim: Pressure, bound: Bound) -> bool {
        self.walk.start(&self.graph);
        let OrderBuffers {
            graph,
            walk,
            waiting,
            arrival,
            changes,
            ready,
            order,
            ..
        } = self;
        changes.clear();
        changes.extend((0..graph.len()).map(|node| walk.change(graph, node)));
        waiting.clear();
        waiting.extend((0..graph.len()).map(|node| graph.incoming(node).len() as u32));
        arrival.clear();
        arrival.resize(graph.len(), 0);
        let is_ready = |node: usize, earliest: u32| Ready {
            node: node as u32,
            earliest,
            rank: match graph.is_barrier(node) {
                true => FIRST,
                false => u64::from(!graph.height(node)) << 32 | node as u64,
            },
        };
        ready.clear();
        let first = (0..graph.len()).filter(|&node| waiting[node] == 0);
        ready.extend(first.map(|node| is_ready(node, 0)));
        order.clear();
        while !ready.is_empty() {
            let next = ready.swap_remove(choose(walk, changes, ready, aim));
            let at = walk.issue(graph, next.node as usize, next.earliest);
            order.push(next.node);
            // Neither gets less later.
            let left = (graph.len() - order.len()) as u32;
            if (at + graph.height(next.node as usize)).max(walk.now + left) >= bound.end
                || !walk.peak.fits(bound.most)
            {
                return false;
            }
            for used in graph.uses(next.node as usize) {
                let readers = walk.readers[used.value as usize];
                if readers.count == 1 {
                    changes[readers.nodes as usize][used.class as usize] -= 1;
                }
            }
            for edge in graph.outgoing(next.node as usize) {
                let node = edge.node as usize;
                arrival[node] = arrival[node].max(at + edge.cycles);
                waiting[node] -= 1;
                if waiting[node] == 0 {
                    ready.push(is_ready(node, arrival[node]));
                }
            }
        }
        walk.end < bound.end
    }
}

/// The position in `ready` of the instruction to issue next.
fn choose(walk: &Walk, changes: &[[i32; 3]], ready: &[Ready], limit: Pressure) -> usize {
    // The result of one more instruction of any width must fit.
    let full = RegisterClass::ALL.map(|class| {
        let margin = if class == RegisterClass::Gpr { 4 } else { 1 };
        walk.count.of(class) + margin > limit.of(class)
    });
    if full == [false; 3] {
        return least(walk.now, ready, |_| 0);
    }
    least(walk.now, ready, |node| {
        let changes = changes[node as usize].iter().zip(full);
        changes
            .map(|(change, full)| if full { *change } else { 0 })
            .sum()
    })
}

/// The position in `ready` of the instruction with the least change; then that which waits least at `now`, that on the
/// longest path, and the first.
fn least(now: u32, ready: &[Ready], change: impl Fn(u32) -> i32) -> usize {
    let key = |next: &Ready| {
        let wait = i64::from(next.earliest.saturating_sub(now));
        match next.rank {
            FIRST => (wait, next.rank),
            _ => (
                OTHERS + (i64::from(change(next.node)) << 32 | wait),
                next.rank,
            ),
        }
    };
    let (mut best, mut first) = (0, key(&ready[0]));
    for (index, next) in ready.iter().enumerate().skip(1) {
        let key = key(next);
        if key < first {
            (best, first) = (index, key);
        }
    }
    best
}
