//! The order of accesses to memory as a program has it, to be compared before and after passes.
//!
//! A [`Program`] is a control flow graph with the accesses that take part in orders, each under the label that it got
//! when it was lowered. [`crossings`] finds those that have come to the other side of an ordered access or a fence. Two
//! programs are compared as partial orders: what comes before what on a way without back edges, and who meets again in
//! a loop. Where the one program has no way between two accesses (they are on two sides of a branch) the other may have
//! them in any order, as guards do.
//!
//! The time grows with the number of ordered accesses times that of all: it is for debug builds, tests and
//! `--set verify=true`.

use crate::analysis::graph::{Dominators, Graph, NodeSet};
use crate::isa::VReg;
use crate::vcode::{MemoryEffect, MemoryOrder, VCode};
use cranelift_codegen::entity::EntityRef;
use hashbrown::HashMap;

/// An access or fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number as lowered; accesses of the same number are copies.
    pub label: u32,
    /// Whether accesses before and behind it stay there.
    pub orders: bool,
    /// The block that it stands in.
    pub block: u32,
    /// Where it stands: more is later in a block.
    pub position: u32,
}

/// The accesses of a function and the ways between them.
#[derive(Clone, Debug, Default)]
pub struct Program {
    events: Vec<Event>,
    graph: Graph,
    /// Without the edges that lead back to a block that dominates where they come from.
    forward: Graph,
}

/// Two accesses that have changed sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The ordered one.
    pub ordered: Event,
    /// The other one.
    pub other: Event,
}

impl Event {
    /// What an instruction is in the order, if it takes part.
    pub fn new(label: u32, part: MemoryEffect, order: MemoryOrder, place: (usize, usize)) -> Event {
        Event {
            label,
            orders: order == MemoryOrder::Ordered || part == MemoryEffect::Fence,
            block: place.0 as u32,
            position: place.1 as u32,
        }
    }
}

impl Program {
    /// Of events in the blocks of a graph, whose first is entered first.
    pub fn new(events: Vec<Event>, graph: Graph) -> Program {
        let mut forward = Graph::new(graph.len());
        if graph.len() > 0 {
            let dominators = Dominators::new(&graph, 0);
            for from in 0..graph.len() {
                let ahead = graph
                    .successors(from)
                    .filter(|&to| !dominators.dominates(to, from));
                ahead.for_each(|to| forward.add_edge(from, to));
            }
        }
        Program {
            events,
            graph,
            forward,
        }
    }

    /// Of a function before allocation; none where nothing is ordered.
    pub fn of(code: &VCode<VReg>) -> Option<Program> {
        if !code.insts.iter().any(|entry| entry.is_ordered()) {
            return None;
        }
        let mut events = Vec::new();
        for (block, data) in code.blocks.iter() {
            for position in data.insts.clone() {
                let entry = &code.insts[position as usize];
                if let Some(part) = entry.part() {
                    let place = (block.index(), position as usize);
                    events.push(Event::new(entry.label, part, entry.order, place));
                }
            }
        }
        let edges = code.blocks.iter().flat_map(|(block, data)| {
            let next = data.terminator.successors();
            next.into_iter().map(move |to| (block.index(), to.index()))
        });
        let graph = Graph::from_edges(code.blocks.len(), edges);
        Some(Program::new(events, graph))
    }

    /// Who comes behind each event, by the number of the other one: on a way without back edges, and on any.
    fn relations(&self, event: Event) -> Relations {
        let reach = |graph: &Graph, forwards: bool| {
            let mut nodes = NodeSet::new(graph.len());
            let from = event.block as usize;
            let next: Vec<usize> = match forwards {
                true => graph.successors(from).collect(),
                false => graph.predecessors(from).collect(),
            };
            nodes.fill(next, |node, visit| match forwards {
                true => graph.successors(node).for_each(visit),
                false => graph.predecessors(node).for_each(visit),
            });
            nodes
        };
        Relations {
            event,
            ahead: reach(&self.forward, true),
            back: reach(&self.forward, false),
            later: reach(&self.graph, true),
            earlier: reach(&self.graph, false),
        }
    }

    /// For each label the events that have it.
    fn by_label(&self) -> HashMap<u32, Vec<Event>> {
        let mut found: HashMap<u32, Vec<Event>> = HashMap::new();
        for &event in &self.events {
            found.entry(event.label).or_default().push(event);
        }
        found
    }

    /// Pairs of labels of which the first may come before the second on some way; those of ordered accesses with any.
    pub fn pairs(&self) -> Pairs {
        let mut known = Pairs::default();
        for &event in self.events.iter().filter(|event| event.orders) {
            let relations = self.relations(event);
            for &other in &self.events {
                if relations.may_be_before(other) {
                    known.0.insert((other.label, event.label));
                }
                if relations.may_be_behind(other) {
                    known.0.insert((event.label, other.label));
                }
            }
        }
        known
    }
}

/// See [`Program::pairs`].
#[derive(Clone, Debug, Default)]
pub struct Pairs(hashbrown::HashSet<(u32, u32)>);

impl Pairs {
    /// Whether the first may come before the second.
    pub fn has(&self, first: u32, second: u32) -> bool {
        self.0.contains(&(first, second))
    }
}

/// The blocks around an event.
struct Relations {
    event: Event,
    ahead: NodeSet,
    back: NodeSet,
    later: NodeSet,
    earlier: NodeSet,
}

impl Relations {
    fn is_here(&self, other: Event) -> bool {
        self.event.block == other.block
    }

    /// Whether the other one comes behind, and never before, as long as no turn of a loop is over.
    fn is_behind(&self, other: Event) -> bool {
        let block = other.block as usize;
        match self.is_here(other) {
            true => other.position > self.event.position,
            false => self.ahead.contains(block) && !self.back.contains(block),
        }
    }

    /// Whether it comes before, and never behind.
    fn is_before(&self, other: Event) -> bool {
        let block = other.block as usize;
        match self.is_here(other) {
            true => other.position < self.event.position,
            false => self.back.contains(block) && !self.ahead.contains(block),
        }
    }

    fn may_be_behind(&self, other: Event) -> bool {
        self.is_here(other) && other.position > self.event.position
            || self.later.contains(other.block as usize)
    }

    fn may_be_before(&self, other: Event) -> bool {
        self.is_here(other) && other.position < self.event.position
            || self.earlier.contains(other.block as usize)
    }

    /// Whether each may come before the other.
    fn meets_again(&self, other: Event) -> bool {
        self.may_be_behind(other) && self.may_be_before(other)
    }
}

/// What stands on another side of an ordered access in `after` than in `before`.
pub fn crossings(before: &Program, after: &Program) -> Vec<Crossing> {
    let mut found = Vec::new();
    let moved = after.by_label();
    for &ordered in before.events.iter().filter(|event| event.orders) {
        let Some(copies) = moved.get(&ordered.label) else {
            continue;
        };
        let old = before.relations(ordered);
        for &copy in copies {
            let new = after.relations(copy);
            for &other in before
                .events
                .iter()
                .filter(|event| event.label != ordered.label)
            {
                let places = moved.get(&other.label).into_iter().flatten();
                for &place in places {
                    let reversed = old.is_behind(other) && new.is_before(place)
                        || old.is_before(other) && new.is_behind(place);
                    if reversed || old.meets_again(other) && !new.meets_again(place) {
                        found.push(Crossing {
                            ordered: copy,
                            other: place,
                        });
                    }
                }
            }
        }
    }
    found
}
