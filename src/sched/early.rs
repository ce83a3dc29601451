//! Computing early what costs no register, before the order is looked for.
//!
//! Cranelift's mid-end computes a value as late as it can: in a block that ends in a jump, what it hands on is computed
//! behind everything else, also behind the barriers. Where that keeps operands alive for long (a tile of a matrix
//! product has all its operands loaded before the first is used), this pass computes what only computes as soon as its
//! operands are there, if that leaves no more values alive than before. So the list scheduling behind it, which looks
//! at runs of limited length and never needs more registers than the order that it is given, begins with few.
//!
//! Only what changes how many warps are resident counts: fewer registers than that give the order behind it less room
//! to hide latencies.
//!
//! Every instruction is issued once and looked at once for each of its operands: the time is linear. What is not moved
//! up keeps its order.

use super::alive::{Alive, Pressure};
use super::dependence::{crosses_barriers, is_fence};
use crate::abi;
use crate::isa::{Register, RegisterClass, VReg};
use crate::properties::DeviceProperties;
use crate::vcode::{Entry, VCode};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;

/// More readers than there are in a block: the value is read behind it.
const NEEDED: u32 = 1 << 31;
/// Registers of a thread with which all warps, half of them, a quarter and an eighth are resident.
const SHARES: [u32; 4] = [
    registers_of(1),
    registers_of(2),
    registers_of(4),
    registers_of(8),
];

const fn registers_of(part: u32) -> u32 {
    let device = DeviceProperties::ASSIGNED;
    let registers = device.registers_of_warps(device.warps / part);
    let most = abi::MAX_GPR as u32;
    if registers < most { registers } else { most }
}

/// The GPRs that so many values alive may use without fewer warps being resident.
pub(super) fn share(peak: Pressure) -> u32 {
    let words = peak.of(RegisterClass::Gpr);
    let share = SHARES.into_iter().find(|share| words <= *share);
    share.unwrap_or(words)
}

/// No edge.
const NONE: u32 = u32::MAX;

/// Who is still to read a value.
#[derive(Clone, Copy, Debug)]
struct Reads {
    /// How many instructions; [`NEEDED`] more if it is read behind them all.
    count: u32,
    /// Their numbers, joined by exclusive or: that of the only one.
    nodes: u32,
    /// The first of the edges to them, if it is written among them.
    first: u32,
    /// Whether it is written among them.
    inside: bool,
}

const UNREAD: Reads = Reads {
    count: 0,
    nodes: 0,
    first: NONE,
    inside: false,
};

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub(super) struct EarlyBuffers {
    /// By value; only those of the instructions at hand are not [`UNREAD`].
    reads: Vec<Reads>,
    /// From a value to an instruction that reads it, and the next edge of the value.
    edges: Vec<(u32, u32)>,
    /// By instruction how many of its operands have not been written.
    waiting: Vec<u32>,
    issued: Vec<bool>,
    order: Vec<u32>,
    ready: VecDeque<u32>,
    /// Values alive behind what was issued, and the most that were.
    count: Pressure,
    peak: Pressure,
    entries: Vec<Entry<VReg>>,
}

type Values = SmallVec<[VReg; 8]>;

/// What an instruction reads, each value once.
fn operands(code: &VCode<VReg>, entry: &Entry<VReg>) -> Values {
    let mut values = Values::new();
    for v in code.uses(entry) {
        if !values.contains(&v) {
            values.push(v);
        }
    }
    values
}

impl EarlyBuffers {
    /// Reorders the instructions of a block where that makes room for more warps, and says whether it did. What is
    /// `alive` goes from behind them to before them.
    pub fn compute_early(
        &mut self,
        code: &mut VCode<VReg>,
        range: Range<usize>,
        alive: &mut Alive,
    ) -> bool {
        let mut changed = false;
        if self.reads.len() < code.vreg_count as usize {
            self.reads.resize(code.vreg_count as usize, UNREAD);
        }
        let mut end = range.end;
        while end > range.start {
            let mut before = code.insts[range.start..end].iter();
            let first = range.start
                + before
                    .rposition(|e| is_fence(&e.inst))
                    .map_or(0, |fence| fence + 1);
            if first < end {
                changed |= self.part(code, first..end, alive);
            }
            end = first.saturating_sub(1).max(range.start);
            if end < first {
                alive.step_back(code, &code.insts[end]);
            }
        }
        changed
    }

    /// Reorders instructions without a fence among them, if that is worth it. What is alive goes from behind them to
    /// before them.
    fn part(&mut self, code: &mut VCode<VReg>, range: Range<usize>, alive: &mut Alive) -> bool {
        let insts = &code.insts[range.clone()];
        self.read_by(code, insts, alive);
        let mut old = alive.count();
        for entry in insts.iter().rev() {
            code.definitions(entry).for_each(|v| alive.insert(v));
            old = old.max(alive.count());
            alive.step_back(code, entry);
            old = old.max(alive.count());
        }
        (self.count, self.peak) = (alive.count(), alive.count());
        let count = insts.len();
        self.issued.clear();
        self.issued.resize(count, false);
        self.order.clear();
        self.ready.clear();
        for node in 0..count {
            if self.issued[node] {
                continue;
            }
            self.issue(code, insts, node);
            while let Some(next) = self.ready.pop_front() {
                if self.costs_nothing(code, insts, next as usize) {
                    self.issue(code, insts, next as usize);
                }
            }
        }
        let values = |entry| code.uses(entry).chain(code.definitions(entry));
        for v in insts.iter().flat_map(values) {
            self.reads[v.index()] = UNREAD;
        }
        let worthwhile = share(self.peak) < share(old);
        if worthwhile {
            self.entries.clear();
            (self.entries).extend(self.order.iter().map(|&node| insts[node as usize]));
            code.insts[range].copy_from_slice(&self.entries);
        }
        worthwhile
    }

    /// Finds who reads what.
    fn read_by(&mut self, code: &VCode<VReg>, insts: &[Entry<VReg>], alive: &Alive) {
        self.edges.clear();
        self.waiting.clear();
        for (node, entry) in insts.iter().enumerate() {
            let mut waiting = 0;
            for v in operands(code, entry) {
                let reads = &mut self.reads[v.index()];
                if reads.count == 0 && alive.contains(v) {
                    reads.count = NEEDED;
                }
                reads.count += 1;
                reads.nodes ^= node as u32;
                if reads.inside {
                    waiting += 1;
                    self.edges.push((node as u32, reads.first));
                    reads.first = self.edges.len() as u32 - 1;
                }
            }
            self.waiting.push(waiting);
            for v in code.definitions(entry) {
                self.reads[v.index()].inside = true;
                if alive.contains(v) {
                    self.reads[v.index()].count |= NEEDED;
                }
            }
        }
    }

    fn issue(&mut self, code: &VCode<VReg>, insts: &[Entry<VReg>], node: usize) {
        self.order.push(node as u32);
        self.issued[node] = true;
        let mut with_results = self.count;
        for v in code.definitions(&insts[node]) {
            with_results.add(v.class(), 1);
            self.count
                .add(v.class(), u32::from(self.reads[v.index()].count > 0));
        }
        // Operands and results are alive together for a moment.
        self.peak = self.peak.max(with_results);
        for v in operands(code, &insts[node]) {
            let reads = &mut self.reads[v.index()];
            reads.count -= 1;
            reads.nodes ^= node as u32;
            match reads.count {
                0 => self.count.take(v.class(), 1),
                1 => self.ready.push_back(reads.nodes),
                _ => {}
            }
        }
        for v in code.definitions(&insts[node]) {
            let mut edge = self.reads[v.index()].first;
            while edge != NONE {
                let (reader, next) = self.edges[edge as usize];
                self.waiting[reader as usize] -= 1;
                self.ready.push_back(reader);
                edge = next;
            }
        }
    }

    /// Whether an instruction can be issued now and leaves no more values alive of any class.
    fn costs_nothing(&self, code: &VCode<VReg>, insts: &[Entry<VReg>], node: usize) -> bool {
        let entry = &insts[node];
        if self.issued[node] || self.waiting[node] > 0 || !crosses_barriers(&entry.inst) {
            return false;
        }
        let mut change = [0i32; 3];
        for v in code.definitions(entry) {
            change[v.class() as usize] += 1;
        }
        for v in operands(code, entry) {
            change[v.class() as usize] -= i32::from(self.reads[v.index()].count == 1);
        }
        change.iter().all(|change| *change <= 0)
    }
}
