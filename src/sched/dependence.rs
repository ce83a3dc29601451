//! What must stay in order within a run of instructions before allocation.
//!
//! Everything is indexed by node (position in the run) or by the values that the run names, numbered as they come; the
//! lists are kept from run to run, so a graph costs no allocation once they have grown, and nothing that grows with the
//! function.

use super::alive::{Alive, Pressure};
use crate::isa::table::{Direction, Effects};
use crate::isa::{Inst, Optype, Register, RegisterClass, VReg};
use crate::vcode::{Entry, Terminator, VCode};
use std::ops::Range;

/// An edge: the cycles from the issue of one node to that of another.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The node at the other end.
    pub node: u32,
    /// From issue to issue.
    pub cycles: u32,
}

/// A value that a node reads, however often.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// Its number in the run.
    pub value: u32,
    /// Its class.
    pub class: RegisterClass,
}

/// The nodes that are still to read a value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Readers {
    /// How many; [`NEEDED`] are added when the value is read behind the run.
    pub count: u32,
    /// Their numbers, joined by exclusive or: that of the only one.
    pub nodes: u32,
}

/// More readers than there are in a run.
pub const NEEDED: u32 = 1 << 31;

/// The dependence graph of a run of instructions.
#[derive(Debug, Default)]
pub struct Dependences {
    nodes: Vec<Node>,
    /// What each node reads, node after node.
    uses: Vec<Use>,
    /// What each node writes, as numbers of values, node after node.
    results: Vec<u32>,
    /// Edges into each node, node after node.
    incoming: Vec<Edge>,
    /// Edges out of each node, once [`Dependences::link`] has made them.
    outgoing: Vec<Edge>,
    /// By node the place in `incoming` of the last edge from it.
    last_edge: Vec<u32>,
    values: Vec<Value>,
    /// By register its number in the run; only those of the run are set.
    numbers: Vec<u32>,
    /// Nodes that read values which others renew, with those values and the cycles until they have been read.
    old_reads: Vec<(VReg, u32, u32)>,
    spaces: [Space; SPACES.len()],
    /// The last barrier of the CTA.
    barrier: Option<u32>,
    /// All of them.
    barriers: Vec<u32>,
    /// It, and the nodes since that stay on their side of one.
    sided: Vec<u32>,
    /// The last ordered access.
    ordered: Option<u32>,
    /// It, and the accesses since that others may see.
    seen: Vec<u32>,
}

/// Values that loops hand on from one iteration to the next: which one takes the place of which.
#[derive(Debug, Default)]
pub struct Renewals {
    /// By value the block parameter that becomes it, and whether it is such a parameter; empty without loops.
    values: Vec<(Option<VReg>, bool)>,
}

impl Renewals {
    /// Finds the arguments of the edges that lead backwards.
    pub fn find(&mut self, code: &VCode<VReg>) {
        self.values.clear();
        for (block, data) in code.blocks.iter() {
            let Terminator::Jump { target, args } = &data.terminator else {
                continue;
            };
            if *target > block {
                continue;
            }
            self.values.resize(code.vreg_count as usize, (None, false));
            for (new, &old) in args.iter().zip(&code.blocks[*target].params) {
                self.values[new.index()].0.get_or_insert(old);
                self.values[old.index()].1 = true;
            }
        }
    }

    /// The value that another takes the place of in the next turn.
    pub fn old(&self, new: VReg) -> Option<VReg> {
        self.values.get(new.index()).and_then(|v| v.0)
    }

    fn is_old(&self, v: VReg) -> bool {
        self.values.get(v.index()).is_some_and(|v| v.1)
    }
}

/// A node: where its parts of the lists of the graph end, and what is counted when it is issued.
#[derive(Clone, Debug, Default)]
struct Node {
    uses: Range<u32>,
    results: Range<u32>,
    incoming: Range<u32>,
    outgoing: Range<u32>,
    height: u32,
    issue: Issue,
}

/// What the issue of a node means for what is alive and when all is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Issue {
    /// Values that it writes.
    pub written: Pressure,
    /// Those of them that are read later.
    pub alive: Pressure,
    /// Cycles from its issue until what is needed of it behind the run is there; at least one passes.
    pub cycles: u32,
}

/// A value that the run names.
#[derive(Clone, Copy, Debug)]
struct Value {
    reg: VReg,
    /// All that read it.
    readers: Readers,
    /// The node that writes it; [`NONE`] for one from before the run.
    writer: u32,
    /// From the issue of the writer until it can be read.
    cycles: u32,
}

impl Issue {
    /// Values that it writes and nobody reads.
    pub fn dead(&self) -> Pressure {
        self.written.less(self.alive)
    }
}

impl Value {
    /// Whether it is read behind the run.
    fn is_needed(&self) -> bool {
        self.readers.count >= NEEDED
    }
}

/// No such node, or no such number.
const NONE: u32 = u32::MAX;

/// Accesses to a kind of memory since the last that wrote to it.
#[derive(Debug, Default)]
struct Space {
    write: Option<u32>,
    reads: Vec<u32>,
}

fn part<'a, T>(list: &'a [T], range: &Range<u32>) -> &'a [T] {
    &list[range.start as usize..range.end as usize]
}

/// Whether an instruction keeps its place: everything before it stays before it, everything behind it behind.
///
/// These are calls and whatever changes which lanes run together (a uniform register must not be written before lanes
/// have met), waits for other warps, or names registers that are not in its operands.
pub fn keeps_its_place(inst: &Inst<VReg>) -> bool {
    let fixed = Effects::CONTROL.union(Effects::PREDICATES);
    inst.optype().info().effects.intersects(fixed)
}

/// Whether nothing moves across an instruction. A barrier of the CTA keeps its place, but what only computes may move
/// across it: it only keeps memory in order.
pub fn is_fence(inst: &Inst<VReg>) -> bool {
    inst.optype() != Optype::BAR && keeps_its_place(inst)
}

/// Whether an instruction may move across a barrier of the CTA.
pub fn crosses_barriers(inst: &Inst<VReg>) -> bool {
    // A uniform register may only be written where the lanes are together.
    inst.optype().info().effects == Effects::default()
        && inst
            .definitions()
            .all(|v| v.class() != RegisterClass::Uniform)
}

/// Kinds of memory; the last overlaps with all.
const SPACES: [Effects; 4] = [
    Effects::GLOBAL,
    Effects::SHARED,
    Effects::LOCAL,
    Effects::GENERIC,
];

/// All of them.
const ANY_SPACE: Effects = Effects::GLOBAL
    .union(Effects::SHARED)
    .union(Effects::LOCAL)
    .union(Effects::GENERIC);

/// Cycles from the issue of `inst` until a register that it writes can be used.
pub(super) fn latency_of(inst: &Inst<VReg>, reg: VReg) -> u32 {
    let info = inst.info();
    let latency = &info.optype.info().latency;
    let wide = || {
        let mut results = inst
            .operands()
            .filter(|o| o.info.direction == Direction::Out);
        results.any(|o| o.regs.len() > 1 && o.regs.contains(&Some(reg)))
    };
    u32::from(match reg.class() {
        RegisterClass::Predicate => latency.predicate,
        _ if info.wide && latency.wide != latency.result && wide() => latency.wide,
        _ => latency.result,
    })
}

impl Dependences {
    /// Makes the graph of `run`; `behind` is alive behind it. What renews a value stays behind the reads of the old
    /// one, unless that is alive behind the run anyway: one register will do for both.
    pub fn build(
        &mut self,
        code: &VCode<VReg>,
        run: &[Entry<VReg>],
        behind: &Alive,
        renewals: &Renewals,
    ) {
        self.clear(code.vreg_count as usize, run.len());
        let mut convergent: Option<u32> = None;
        let has_barriers = run.iter().any(|e| e.inst.optype() == Optype::BAR);
        let has_orders = run.iter().any(Entry::is_ordered);
        for (node, entry) in (0u32..).zip(run) {
            let start = (self.uses.len(), self.results.len(), self.incoming.len());
            let optype = entry.inst.optype().info();
            code.uses(entry).for_each(|reg| {
                if self.read(node, (start.0, start.2), reg, behind) && renewals.is_old(reg) {
                    let sources = u32::from(optype.latency.sources);
                    self.old_reads.push((reg, node, sources.max(1)));
                }
            });
            let effects = optype.effects;
            self.access(start.2, node, effects);
            if has_barriers && !crosses_barriers(&entry.inst) {
                self.keep_side(start.2, node, &entry.inst);
            }
            if has_orders && entry.part().is_some() {
                self.keep_order(start.2, node, entry.is_ordered());
            }
            if effects.contains(Effects::CONVERGENT)
                && let Some(earlier) = convergent.replace(node)
            {
                self.edge(start.2, earlier, 1);
            }
            code.definitions(entry).for_each(|reg| {
                let number = self.number(reg, behind);
                let value = &mut self.values[number as usize];
                value.writer = node;
                value.cycles = latency_of(&entry.inst, reg);
                self.results.push(number);
                if let Some(old) = renewals.old(reg).filter(|&old| !behind.contains(old)) {
                    self.stay_behind_reads(start.2, node, old);
                }
            });
            self.nodes.push(Node {
                uses: start.0 as u32..self.uses.len() as u32,
                results: start.1 as u32..self.results.len() as u32,
                incoming: start.2 as u32..self.incoming.len() as u32,
                ..Node::default()
            });
        }
        for node in (0..self.nodes.len()).rev() {
            let issue = self.issue_of(node);
            let height = self.nodes[node].height.max(issue.cycles);
            self.nodes[node].issue = issue;
            self.nodes[node].height = height;
            for edge in part(&self.incoming, &self.nodes[node].incoming.clone()) {
                let before = &mut self.nodes[edge.node as usize].height;
                *before = (*before).max(edge.cycles + height);
            }
        }
    }

    fn clear(&mut self, registers: usize, nodes: usize) {
        for value in self.values.drain(..) {
            self.numbers[value.reg.index()] = NONE;
        }
        if self.numbers.len() < registers {
            self.numbers.resize(registers, NONE);
        }
        if self.last_edge.len() < nodes {
            self.last_edge.resize(nodes, 0);
        }
        self.nodes.clear();
        self.uses.clear();
        self.results.clear();
        self.old_reads.clear();
        self.sided.clear();
        self.barrier = None;
        self.barriers.clear();
        self.seen.clear();
        self.ordered = None;
        self.incoming.clear();
        self.outgoing.clear();
        for space in &mut self.spaces {
            space.write = None;
            space.reads.clear();
        }
    }

    /// The number of a register in the run.
    fn number(&mut self, reg: VReg, behind: &Alive) -> u32 {
        let number = &mut self.numbers[reg.index()];
        if *number == NONE {
            *number = self.values.len() as u32;
            self.values.push(Value {
                reg,
                readers: Readers {
                    count: if behind.contains(reg) { NEEDED } else { 0 },
                    nodes: 0,
                },
                writer: NONE,
                cycles: 0,
            });
        }
        *number
    }

    /// Notes a read by a node, whose uses and edges begin at `uses` and `edges`; true if it is the node's first of the
    /// register.
    fn read(
        &mut self,
        node: u32,
        (uses, edges): (usize, usize),
        reg: VReg,
        behind: &Alive,
    ) -> bool {
        let number = self.number(reg, behind);
        if self.uses[uses..].iter().any(|known| known.value == number) {
            return false;
        }
        self.uses.push(Use {
            value: number,
            class: reg.class(),
        });
        let value = &mut self.values[number as usize];
        value.readers.count += 1;
        value.readers.nodes ^= node;
        let (writer, cycles) = (value.writer, value.cycles);
        if writer != NONE {
            self.edge(edges, writer, cycles);
        }
        true
    }

    fn issue_of(&self, node: usize) -> Issue {
        let mut issue = Issue::default();
        for &number in part(&self.results, &self.nodes[node].results) {
            let value = &self.values[number as usize];
            let class = value.reg.class();
            issue.written.add(class, 1);
            issue.alive.add(class, u32::from(value.readers.count > 0));
            if value.is_needed() {
                issue.cycles = issue.cycles.max(value.cycles);
            }
        }
        issue.cycles = issue.cycles.max(1);
        issue
    }

    /// Adds an edge to the node whose edges begin at `start`.
    fn edge(&mut self, start: usize, from: u32, cycles: u32) {
        // The place may be one of an earlier node, or of an earlier graph; then another edge is there, or none.
        let place = &mut self.last_edge[from as usize];
        if *place as usize >= start
            && let Some(edge) = self.incoming.get_mut(*place as usize)
            && edge.node == from
        {
            edge.cycles = edge.cycles.max(cycles);
            return;
        }
        *place = self.incoming.len() as u32;
        self.incoming.push(Edge { node: from, cycles });
    }

    /// Adds the edges that keep the definition of a value's next one behind its reads by other nodes.
    fn stay_behind_reads(&mut self, start: usize, node: u32, old: VReg) {
        for i in 0..self.old_reads.len() {
            let (read, reader, cycles) = self.old_reads[i];
            if read == old && reader != node {
                self.edge(start, reader, cycles);
            }
        }
    }

    /// Adds the edges that keep a node on its side of the barriers of the CTA, or a barrier behind what stands before
    /// it.
    fn keep_side(&mut self, start: usize, node: u32, inst: &Inst<VReg>) {
        if inst.optype() == Optype::BAR {
            for i in 0..self.sided.len() {
                self.edge(start, self.sided[i], 1);
            }
            self.sided.clear();
            self.barrier = Some(node);
            self.barriers.push(node);
        } else if let Some(barrier) = self.barrier {
            self.edge(start, barrier, 1);
        }
        self.sided.push(node);
    }

    /// Adds the edges that keep an access on its side of ordered ones, whatever their spaces, or an ordered one behind
    /// what stands before it.
    fn keep_order(&mut self, start: usize, node: u32, ordered: bool) {
        if ordered {
            for i in 0..self.seen.len() {
                self.edge(start, self.seen[i], 1);
            }
            self.seen.clear();
            self.ordered = Some(node);
        } else if let Some(ordered) = self.ordered {
            self.edge(start, ordered, 1);
        }
        self.seen.push(node);
    }

    /// Adds the edges that keep an access to memory in order with earlier ones: a write with every access that may be
    /// to the same place since the write before, a read with the last write.
    fn access(&mut self, start: usize, node: u32, effects: Effects) {
        let writes = effects.intersects(Effects::STORE.union(Effects::ATOMIC));
        if !writes && !effects.contains(Effects::LOAD) || !effects.intersects(ANY_SPACE) {
            return;
        }
        let generic = effects.contains(Effects::GENERIC);
        for (i, space) in SPACES.into_iter().enumerate() {
            let mine = effects.contains(space);
            if !(mine || generic || space == Effects::GENERIC) {
                continue;
            }
            if let Some(earlier) = self.spaces[i].write {
                self.edge(start, earlier, 1);
            }
            if writes {
                for at in 0..self.spaces[i].reads.len() {
                    self.edge(start, self.spaces[i].reads[at], 1);
                }
            }
            let space = &mut self.spaces[i];
            if writes && (mine || generic) {
                space.write = Some(node);
                space.reads.clear();
            } else if mine {
                space.reads.push(node);
            }
        }
    }

    /// Makes the edges out of each node from those into each.
    pub fn link(&mut self) {
        for edge in &self.incoming {
            self.nodes[edge.node as usize].outgoing.end += 1;
        }
        let mut sum = 0;
        for node in &mut self.nodes {
            let count = node.outgoing.end;
            node.outgoing = sum..sum;
            sum += count;
        }
        self.outgoing
            .resize(sum as usize, Edge { node: 0, cycles: 0 });
        for to in 0..self.nodes.len() {
            for edge in part(&self.incoming, &self.nodes[to].incoming.clone()) {
                let place = &mut self.nodes[edge.node as usize].outgoing.end;
                self.outgoing[*place as usize] = Edge {
                    node: to as u32,
                    cycles: edge.cycles,
                };
                *place += 1;
            }
        }
    }

    /// Whether a node is a barrier of the CTA: the sooner a warp is there, the sooner others go on.
    pub fn is_barrier(&self, node: usize) -> bool {
        !self.barriers.is_empty() && self.barriers.contains(&(node as u32))
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The values that a node reads.
    pub fn uses(&self, node: usize) -> &[Use] {
        part(&self.uses, &self.nodes[node].uses)
    }

    /// What the issue of a node means.
    pub fn issue(&self, node: usize) -> &Issue {
        &self.nodes[node].issue
    }

    /// The nodes that must come before a node.
    pub fn incoming(&self, node: usize) -> &[Edge] {
        part(&self.incoming, &self.nodes[node].incoming)
    }

    /// The nodes that must come behind a node; none before [`Dependences::link`].
    pub fn outgoing(&self, node: usize) -> &[Edge] {
        part(&self.outgoing, &self.nodes[node].outgoing)
    }

    /// Cycles from the issue of a node to the end of the run on the longest path, its own results included.
    pub fn height(&self, node: usize) -> u32 {
        self.nodes[node].height
    }

    /// All that read each value.
    pub fn readers(&self) -> impl Iterator<Item = Readers> + '_ {
        self.values.iter().map(|value| value.readers)
    }

    /// Numbers of values that are alive before the run; `behind` are those behind it.
    pub fn alive_before(&self, behind: Pressure) -> Pressure {
        let mut before = behind;
        for value in &self.values {
            let written = value.writer != NONE;
            if written && value.is_needed() {
                before.take(value.reg.class(), 1);
            } else if !written && !value.is_needed() {
                before.add(value.reg.class(), 1);
            }
        }
        before
    }
}
