//! What must stay in order within a run of instructions before allocation.
//!
//! Everything is indexed by node (position in the run) or by value; the lists are kept from run to run, so a graph costs no allocation
//! once they have grown.

use crate::isa::table::{Direction, Effects};
use crate::isa::{Inst, Register, RegisterClass, VReg};
use crate::vcode::{Entry, Terminator, VCode};
use smallvec::SmallVec;
use std::ops::Range;

/// An edge: the cycles from the issue of one node to that of another.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The node at the other end.
    pub node: u32,
    /// From issue to issue.
    pub cycles: u32,
}

/// The dependence graph of a run of instructions.
#[derive(Debug, Default)]
pub struct Dependences {
    nodes: Vec<Node>,
    /// What each node reads, and how often, node after node.
    uses: Vec<(VReg, u32)>,
    /// What each node writes, and the cycles until it can be read, node after node.
    results: Vec<(VReg, u32)>,
    /// Edges into each node, node after node.
    incoming: Vec<Edge>,
    /// Edges out of each node, once [`Dependences::link`] has made them.
    outgoing: Vec<Edge>,
    /// By value the node that writes it and the cycles that takes; only entries of the run are set.
    writer: Vec<Option<(u32, u32)>>,
    /// Nodes that read values which others renew, with those values and the cycles until they have been read.
    old_reads: Vec<(VReg, u32, u32)>,
    spaces: [Space; SPACES.len()],
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

    fn old(&self, new: VReg) -> Option<VReg> {
        self.values.get(new.index()).and_then(|v| v.0)
    }

    fn is_old(&self, v: VReg) -> bool {
        self.values.get(v.index()).is_some_and(|v| v.1)
    }
}

/// A node: its parts of the lists of the graph.
#[derive(Clone, Debug, Default)]
struct Node {
    uses: Range<u32>,
    results: Range<u32>,
    incoming: Range<u32>,
    outgoing: Range<u32>,
    height: u32,
}

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
/// These are calls and whatever changes which lanes run together (a uniform register must not be written before lanes have met), waits for
/// other warps, or names registers that are not in its operands.
pub fn keeps_its_place(inst: &Inst<VReg>) -> bool {
    let fixed = Effects::CONTROL.union(Effects::PREDICATES);
    inst.optype().info().effects.intersects(fixed)
}

/// Kinds of memory; the last overlaps with all.
const SPACES: [Effects; 4] = [
    Effects::GLOBAL,
    Effects::SHARED,
    Effects::LOCAL,
    Effects::GENERIC,
];

/// Cycles from the issue of `inst` until a register that it writes can be used.
fn latency_of(inst: &Inst<VReg>, reg: VReg) -> u32 {
    let latency = &inst.optype().info().latency;
    let wide = || {
        let mut results = inst
            .operands()
            .filter(|o| o.info.direction == Direction::Out);
        results.any(|o| o.regs.len() > 1 && o.regs.contains(&Some(reg)))
    };
    u32::from(match reg.class() {
        RegisterClass::Predicate => latency.predicate,
        _ if latency.wide != latency.result && wide() => latency.wide,
        _ => latency.result,
    })
}

impl Dependences {
    /// Makes the graph of `run`; `needed` says whether a register is read behind it. What renews a value stays behind the reads of the old
    /// one, unless that is needed anyway: one register will do for both.
    pub fn build(
        &mut self,
        code: &VCode<VReg>,
        run: &[Entry<VReg>],
        needed: impl Fn(VReg) -> bool,
        renewals: &Renewals,
    ) {
        self.clear(code.vreg_count as usize);
        let mut convergent: Option<u32> = None;
        for (node, entry) in (0u32..).zip(run) {
            let start = (self.uses.len(), self.results.len(), self.incoming.len());
            for reg in code.uses(entry) {
                match self.uses[start.0..].iter_mut().find(|(r, _)| *r == reg) {
                    Some((_, times)) => *times += 1,
                    None => {
                        self.uses.push((reg, 1));
                        if renewals.is_old(reg) {
                            let sources = entry.inst.optype().info().latency.sources;
                            self.old_reads.push((reg, node, u32::from(sources).max(1)));
                        }
                        if let Some((writer, cycles)) = self.writer[reg.index()] {
                            self.edge(start.2, writer, cycles);
                        }
                    }
                }
            }
            let effects = entry.inst.optype().info().effects;
            self.access(start.2, node, effects);
            if effects.contains(Effects::CONVERGENT)
                && let Some(earlier) = convergent.replace(node)
            {
                self.edge(start.2, earlier, 1);
            }
            for reg in code.definitions(entry) {
                let cycles = latency_of(&entry.inst, reg);
                self.results.push((reg, cycles));
                self.writer[reg.index()] = Some((node, cycles));
                if let Some(old) = renewals.old(reg).filter(|&old| !needed(old)) {
                    self.stay_behind_reads(start.2, node, old);
                }
            }
            self.nodes.push(Node {
                uses: start.0 as u32..self.uses.len() as u32,
                results: start.1 as u32..self.results.len() as u32,
                incoming: start.2 as u32..self.incoming.len() as u32,
                outgoing: 0..0,
                height: 0,
            });
        }
        for node in (0..self.nodes.len()).rev() {
            let own = part(&self.results, &self.nodes[node].results).iter();
            let own = own.filter(|(r, _)| needed(*r)).map(|(_, cycles)| *cycles);
            let height = self.nodes[node].height.max(own.max().unwrap_or(0)).max(1);
            self.nodes[node].height = height;
            for edge in part(&self.incoming, &self.nodes[node].incoming.clone()) {
                let before = &mut self.nodes[edge.node as usize].height;
                *before = (*before).max(edge.cycles + height);
            }
        }
    }

    fn clear(&mut self, values: usize) {
        for (reg, _) in self.results.drain(..) {
            if let Some(writer) = self.writer.get_mut(reg.index()) {
                *writer = None;
            }
        }
        self.writer.resize(values, None);
        self.nodes.clear();
        self.uses.clear();
        self.old_reads.clear();
        self.incoming.clear();
        self.outgoing.clear();
        for space in &mut self.spaces {
            space.write = None;
            space.reads.clear();
        }
    }

    /// Adds an edge to the node whose edges begin at `start`.
    fn edge(&mut self, start: usize, from: u32, cycles: u32) {
        match self.incoming[start..].iter_mut().find(|e| e.node == from) {
            Some(edge) => edge.cycles = edge.cycles.max(cycles),
            None => self.incoming.push(Edge { node: from, cycles }),
        }
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

    /// Adds the edges that keep an access to memory in order with earlier ones: a write with every access that may be to the same place
    /// since the write before, a read with the last write.
    fn access(&mut self, start: usize, node: u32, effects: Effects) {
        let writes = effects.intersects(Effects::STORE.union(Effects::ATOMIC));
        if !writes && !effects.contains(Effects::LOAD) {
            return;
        }
        let generic = effects.contains(Effects::GENERIC);
        for (i, space) in SPACES.into_iter().enumerate() {
            let mine = effects.contains(space);
            let any = effects.intersects(SPACES.into_iter().fold(Effects(0), Effects::union));
            if !any || !(mine || generic || space == Effects::GENERIC) {
                continue;
            }
            let mut before: SmallVec<[u32; 8]> = self.spaces[i].write.into_iter().collect();
            if writes {
                before.extend_from_slice(&self.spaces[i].reads);
            }
            for earlier in before {
                self.edge(start, earlier, 1);
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

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The registers that a node reads, and how often.
    pub fn uses(&self, node: usize) -> &[(VReg, u32)] {
        part(&self.uses, &self.nodes[node].uses)
    }

    /// The registers that a node writes, and the cycles until each can be read.
    pub fn results(&self, node: usize) -> &[(VReg, u32)] {
        part(&self.results, &self.nodes[node].results)
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

    /// Whether a register is written in the run.
    pub fn writes(&self, reg: VReg) -> bool {
        self.writer[reg.index()].is_some()
    }
}
