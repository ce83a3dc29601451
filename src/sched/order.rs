//! The order of instructions within a block, before allocation.
//!
//! List scheduling on the dependence graph ([`super::dependence`]): of the instructions whose operands are there that on the longest path to
//! the end of the block goes first, so that loads are issued early and what is independent fills the time until they arrive. When as many
//! values are alive as the function needs anyway (up to the step in which registers are given out), the instruction that frees most goes first
//! instead: more registers would mean fewer warps, which hide more than an order can. The new order is kept only if it is estimated to be
//! faster than the old one and needs no more registers.

use super::dependence::{Dependences, keeps_its_place};
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::liveness::Liveness;
use crate::vcode::{Block, Entry, VCode};
use hashbrown::HashMap;

/// Uniform registers and predicates that may be alive in any case (*assumed*): so few that they limit nothing.
const FREE: [u32; 3] = [0, 32, 4];
/// Registers are given to warps in steps of this many (design.md section 8); what a step leaves free costs nothing.
const STEP: u32 = 8;
/// Registers of a step that are left to the gaps of aligned operands (*assumed*).
const GAPS: u32 = 2;
/// Longest run that is ordered at once (*assumed*); bounds the time, which grows with its square.
const LONGEST_RUN: usize = 400;

/// Orders the instructions of every block.
pub fn order(mut code: VCode<VReg>) -> VCode<VReg> {
    let mut live = Liveness::default();
    live.compute(&code);
    let peaks: Vec<Pressure> = code
        .blocks
        .keys()
        .map(|b| block_peak(&code, &live, b))
        .collect();
    let mut limit = peaks.iter().fold(Pressure(FREE), |all, p| all.max(*p));
    let words = &mut limit.0[RegisterClass::Gpr as usize];
    *words = (*words).max(words.next_multiple_of(STEP).saturating_sub(GAPS));
    for block in code.blocks.keys().collect::<Vec<_>>() {
        let mut behind = alive_at_end(&code, &live, block);
        let (mut end, start) = (
            code.blocks[block].insts.end as usize,
            code.blocks[block].insts.start as usize,
        );
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
            } else if let Some(order) = order_run(&code, &code.insts[first..end], &behind, limit) {
                let run: Vec<Entry<VReg>> = order
                    .iter()
                    .map(|&i| code.insts[first + i as usize])
                    .collect();
                code.insts[first..end].copy_from_slice(&run);
            }
            code.insts[first..end]
                .iter()
                .rev()
                .for_each(|e| behind.step_back(&code, e));
            end = first;
        }
    }
    code
}

/// Numbers of values alive, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pressure([u32; 3]);

impl Pressure {
    fn max(self, other: Pressure) -> Pressure {
        Pressure([0, 1, 2].map(|c| self.0[c].max(other.0[c])))
    }

    fn fits(self, limit: Pressure) -> bool {
        (0..3).all(|c| self.0[c] <= limit.0[c])
    }
}

/// The values alive at a place.
#[derive(Clone, Debug, Default)]
struct Alive {
    values: hashbrown::HashSet<VReg>,
    count: Pressure,
}

impl Alive {
    fn insert(&mut self, reg: VReg) {
        self.count.0[reg.class() as usize] += u32::from(self.values.insert(reg));
    }

    fn remove(&mut self, reg: VReg) {
        self.count.0[reg.class() as usize] -= u32::from(self.values.remove(&reg));
    }

    /// From behind an instruction to before it.
    fn step_back(&mut self, code: &VCode<VReg>, entry: &Entry<VReg>) {
        code.definitions(entry).for_each(|r| self.remove(r));
        code.uses(entry).for_each(|r| self.insert(r));
    }
}

/// What is alive before the terminator of a block.
fn alive_at_end(code: &VCode<VReg>, live: &Liveness, block: Block) -> Alive {
    let mut alive = Alive::default();
    live.live_out(block)
        .chain(code.blocks[block].terminator.uses())
        .for_each(|r| alive.insert(r));
    alive
}

fn block_peak(code: &VCode<VReg>, live: &Liveness, block: Block) -> Pressure {
    let mut alive = alive_at_end(code, live, block);
    let mut peak = alive.count;
    for entry in code.block_insts(block).iter().rev() {
        code.definitions(entry).for_each(|r| alive.insert(r));
        peak = peak.max(alive.count);
        alive.step_back(code, entry);
        peak = peak.max(alive.count);
    }
    peak
}

/// A run of instructions while it is walked forwards.
struct Walk<'a> {
    code: &'a VCode<VReg>,
    run: &'a [Entry<VReg>],
    graph: &'a Dependences,
    behind: &'a Alive,
    /// Reads of each register in the run that are still to come.
    reads: HashMap<VReg, u32>,
    count: Pressure,
    peak: Pressure,
    /// Earliest issue of each instruction by those it depends on.
    earliest: Vec<u32>,
    now: u32,
    /// When all results that are needed behind the run are there.
    end: u32,
}

impl<'a> Walk<'a> {
    fn new(
        code: &'a VCode<VReg>,
        run: &'a [Entry<VReg>],
        graph: &'a Dependences,
        behind: &'a Alive,
    ) -> Self {
        let mut reads: HashMap<VReg, u32> = HashMap::new();
        let mut before = behind.clone();
        for entry in run.iter().rev() {
            code.uses(entry)
                .for_each(|r| *reads.entry(r).or_default() += 1);
            before.step_back(code, entry);
        }
        let count = before.count;
        Walk {
            code,
            run,
            graph,
            behind,
            reads,
            count,
            peak: count,
            earliest: vec![0; run.len()],
            now: 0,
            end: 0,
        }
    }

    /// Change of the number of values of a class that are alive, if `node` were next.
    fn change(&self, node: usize, class: RegisterClass) -> i32 {
        let entry = &self.run[node];
        let made = self
            .code
            .definitions(entry)
            .filter(|r| r.class() == class && self.is_read(*r))
            .count() as i32;
        let mut used: smallvec::SmallVec<[VReg; 12]> = self
            .code
            .uses(entry)
            .filter(|r| r.class() == class)
            .collect();
        used.sort_unstable();
        let freed = used.chunk_by(|a, b| a == b).filter(|u| {
            self.reads[&u[0]] as usize == u.len() && !self.behind.values.contains(&u[0])
        });
        made - freed.count() as i32
    }

    fn is_read(&self, reg: VReg) -> bool {
        self.reads.contains_key(&reg) || self.behind.values.contains(&reg)
    }

    /// Issues `node` next.
    fn issue(&mut self, node: usize) {
        let entry = &self.run[node];
        let at = self.now.max(self.earliest[node]);
        self.now = at + 1;
        self.end = self.end.max(at + self.own_height(node));
        for &(next, cycles) in &self.graph.successors[node] {
            let earliest = &mut self.earliest[next as usize];
            *earliest = (*earliest).max(at + cycles);
        }
        // Operands and results are alive together for a moment.
        let mut during = self.count;
        for reg in self.code.definitions(entry) {
            during.0[reg.class() as usize] += 1;
        }
        self.peak = self.peak.max(during);
        for class in RegisterClass::ALL {
            let change = self.change(node, class);
            let count = &mut self.count.0[class as usize];
            *count = count.saturating_add_signed(change);
        }
        for reg in self.code.uses(entry) {
            *self.reads.get_mut(&reg).expect("it was counted") -= 1;
        }
    }

    /// Cycles until the results of `node` that are needed behind the run are there.
    fn own_height(&self, node: usize) -> u32 {
        let entry = &self.run[node];
        let needed = self
            .code
            .definitions(entry)
            .filter(|r| self.behind.values.contains(r));
        needed
            .map(|r| super::dependence::latency_of(&entry.inst, r))
            .max()
            .unwrap_or(1)
    }
}

/// A better order of a run, as positions in it; none when the old one is as good.
fn order_run(
    code: &VCode<VReg>,
    run: &[Entry<VReg>],
    behind: &Alive,
    limit: Pressure,
) -> Option<Vec<u32>> {
    if run.len() < 3 {
        return None;
    }
    let graph = Dependences::of(code, run, |r| behind.values.contains(&r));
    let mut old = Walk::new(code, run, &graph, behind);
    (0..run.len()).for_each(|node| old.issue(node));
    let mut walk = Walk::new(code, run, &graph, behind);
    let mut waiting = graph.predecessors.clone();
    let mut ready: Vec<usize> = (0..run.len()).filter(|&n| waiting[n] == 0).collect();
    let mut order = Vec::with_capacity(run.len());
    while !ready.is_empty() {
        let node = ready.swap_remove(choose(&walk, &ready, limit));
        walk.issue(node);
        order.push(node as u32);
        for &(next, _) in &graph.successors[node] {
            waiting[next as usize] -= 1;
            if waiting[next as usize] == 0 {
                ready.push(next as usize);
            }
        }
    }
    (walk.end < old.end && walk.peak.fits(limit.max(old.peak))).then_some(order)
}

/// The position in `ready` of the instruction to issue next.
fn choose(walk: &Walk<'_>, ready: &[usize], limit: Pressure) -> usize {
    // The result of one more instruction of any width must fit.
    let full = RegisterClass::ALL.into_iter().find(|&c| {
        let margin = if c == RegisterClass::Gpr { 4 } else { 1 };
        walk.count.0[c as usize] + margin > limit.0[c as usize]
    });
    let key = |node: usize| {
        let change = full.map_or(0, |class| walk.change(node, class));
        let wait = walk.earliest[node].saturating_sub(walk.now);
        (
            change,
            wait,
            std::cmp::Reverse(walk.graph.height[node]),
            node,
        )
    };
    (0..ready.len())
        .min_by_key(|&i| key(ready[i]))
        .expect("something is ready")
}
