//! Cycles that threads leave only when another thread has written what they read by an atomic operation.
//!
//! Strongly connected components first, and those inside them: a loop in a loop is looked at by itself, with what is
//! read in it, and the outer one for the cycles through its header. In each the atomic reads taint what is computed
//! from them ([`super::taint`]). If one of the ways of a tainted branch comes back to it before it comes to where the
//! ways meet (the branch's immediate post-dominator), a thread may go round there for as long as memory says so:
//! these blocks poll. A branch whose ways always meet before it is reached again only chooses what a turn does. A
//! loop without an atomic read of its own ends or not, whatever others write.
//!
//! Edges on which a turn surely got somewhere do not count ([`super::advance`]).

use super::advance::Advance;
use super::components::components;
use super::control_flow::ControlFlow;
use super::endings::Trapping;
use super::graph::{Graph, PostDominators};
use super::taint::{Accesses, Places, Taint};
use super::uses::Users;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst};

/// How deep loops in loops are looked at one by one (*assumed*: more than programs nest them); deeper ones are taken
/// with those around them.
const LEVELS: usize = 16;

/// Blocks among which some cycles poll: a component of the graph.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// The blocks of those cycles.
    pub blocks: Vec<Block>,
    /// A cycle among the blocks polls if it comes through one of these.
    pub headers: Vec<Block>,
    /// The atomic reads, and calls, in them.
    pub atomics: Vec<Inst>,
}

/// All cycles of `func` that poll.
pub fn polled_cycles(func: &Function, flow: &ControlFlow, accesses: &dyn Accesses) -> Vec<Cycle> {
    if !has_cycles(flow) {
        return Vec::new();
    }
    let graph = graph_of(flow);
    let mut finder = Finder {
        func,
        flow,
        post: &post_dominators(&graph),
        graph: &graph,
        accesses,
        users: None,
        places: Vec::new(),
        found: Vec::new(),
    };
    finder.look();
    finder.found
}

/// Whether an edge goes back in reverse postorder: without one there is no cycle.
fn has_cycles(flow: &ControlFlow) -> bool {
    let mut blocks = flow.reverse_postorder().iter();
    blocks.any(|&block| {
        let mut targets = flow.successors(block);
        targets.any(|target| flow.order(target) <= flow.order(block))
    })
}

/// The graph of the blocks, by their order.
fn graph_of(flow: &ControlFlow) -> Graph {
    let blocks = flow.reverse_postorder();
    let number = |block| flow.order(block).expect("a reachable block");
    let edges = blocks.iter().flat_map(|&block| {
        let targets = flow.successors(block);
        targets.map(move |target| (number(block), number(target)))
    });
    Graph::from_edges(blocks.len(), edges)
}

/// Post-dominators over all paths: unlike those of [`ControlFlow`], which leaves out where lanes only end.
fn post_dominators(graph: &Graph) -> PostDominators {
    let exits = (0..graph.len()).filter(|&node| graph.successors(node).len() == 0);
    PostDominators::new(graph, exits)
}

struct Finder<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    graph: &'a Graph,
    post: &'a PostDominators,
    accesses: &'a dyn Accesses,
    users: Option<Users>,
    /// By node, its place among those that are looked at.
    places: Vec<usize>,
    found: Vec<Cycle>,
}

impl Finder<'_> {
    /// Finds the polling cycles of the function.
    fn look(&mut self) {
        let all = (0..self.graph.len()).collect();
        for component in self.cyclic_components(all) {
            let mut found = Cycle::default();
            // With how many levels are around them. The members of each level have been members of the one around it.
            let mut work = vec![(component, 0)];
            while let Some((nodes, level)) = work.pop() {
                let header = nodes.iter().copied().min().filter(|_| level < LEVELS);
                if !self.look_at(&nodes, header, &mut found) {
                    continue;
                }
                if let Some(header) = header {
                    let inner = nodes.into_iter().filter(|node| *node != header).collect();
                    let inner = self.cyclic_components(inner);
                    work.extend(inner.into_iter().map(|nodes| (nodes, level + 1)));
                }
            }
            if !found.blocks.is_empty() {
                self.found.push(found);
            }
        }
    }

    /// Adds the cycles among `nodes` that poll and lead through `header`. False if nothing in them is read by an
    /// atomic operation.
    fn look_at(&mut self, nodes: &[usize], header: Option<usize>, found: &mut Cycle) -> bool {
        let (func, accesses) = (self.func, self.accesses);
        let blocks = self.flow.reverse_postorder();
        let members: Vec<Block> = nodes.iter().map(|node| blocks[*node]).collect();
        let mut atomics: Vec<Inst> = members
            .iter()
            .flat_map(|&block| func.layout.block_insts(block))
            .filter(|&inst| accesses.observes(inst))
            .collect();
        if !atomics.is_empty() {
            let users = self.users.get_or_insert_with(|| Users::compute(func));
            let used = |inst: Inst| {
                let mut results = func.dfg.inst_results(inst).iter();
                results.any(|result| !users.of(*result).is_empty())
            };
            atomics.retain(|&inst| used(inst) || accesses.leaves(inst) != Places::NONE);
        }
        let Some(users) = self.users.as_ref().filter(|_| !atomics.is_empty()) else {
            return false;
        };
        let mut within: EntitySet<Block> = EntitySet::new();
        within.extend(members.iter().copied());
        let mut taint = Taint::new(func, self.flow, self.post, users, &within, accesses);
        taint.advancing = Advance::new(func, self.flow, accesses, &within).edges(&members);
        taint.header = header.map(|header| blocks[header]);
        taint.spread(&members, &atomics);
        let polled: Vec<Block> = match taint.gave_up() {
            true => members,
            false => (members.into_iter())
                .filter(|block| taint.polled.contains(*block))
                .collect(),
        };
        if !polled.is_empty() {
            match header.filter(|_| !taint.gave_up()) {
                Some(header) => found.headers.push(blocks[header]),
                None => found.headers.extend_from_slice(&polled),
            }
            found.blocks.extend_from_slice(&polled);
            found.atomics.extend_from_slice(&atomics);
        }
        true
    }

    /// The strongly connected components among `nodes` that have a cycle.
    fn cyclic_components(&mut self, nodes: Vec<usize>) -> Vec<Vec<usize>> {
        const OUTSIDE: usize = usize::MAX;
        let graph = self.graph;
        self.places.resize(graph.len(), OUTSIDE);
        for (place, &node) in nodes.iter().enumerate() {
            self.places[node] = place;
        }
        let edges = nodes.iter().enumerate().flat_map(|(from, &node)| {
            let targets = graph.successors(node).map(|target| self.places[target]);
            targets
                .filter(|to| *to != OUTSIDE)
                .map(move |to| (from, to))
        });
        let inner = Graph::from_edges(nodes.len(), edges);
        for &node in &nodes {
            self.places[node] = OUTSIDE;
        }
        let cyclic = |component: &Vec<usize>| match component[..] {
            [only] => inner.successors(only).any(|target| target == only),
            _ => true,
        };
        (components(&inner).into_iter().filter(cyclic))
            .map(|component| component.into_iter().map(|place| nodes[place]).collect())
            .collect()
    }
}

/// What depends in a device function on what `accesses` observe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// What it returns, or stores where its caller may look.
    pub result: bool,
    /// Whether, or with which arguments, it calls itself.
    pub recursion: bool,
}

/// Finds out what depends on observations in `func`; `recurs` says which calls lead back to it. What lanes do that only
/// trap does not count: nobody waits for them, and they tell nobody.
pub fn observed(
    func: &Function,
    flow: &ControlFlow,
    accesses: &dyn Accesses,
    recurs: &dyn Fn(Inst) -> bool,
) -> Observed {
    let members = flow.reverse_postorder();
    let insts = || {
        let blocks = members.iter();
        blocks.flat_map(|&block| func.layout.block_insts(block))
    };
    let mut atomics: Vec<Inst> = insts().filter(|&inst| accesses.observes(inst)).collect();
    if atomics.is_empty() {
        return Observed::default();
    }
    let trapping = Trapping::find(func, flow);
    let goes_on = |inst: &Inst| {
        let home = func.layout.inst_block(*inst);
        home.is_some_and(|home| !trapping.contain(home))
    };
    atomics.retain(goes_on);
    if atomics.is_empty() {
        return Observed::default();
    }
    let mut within: EntitySet<Block> = EntitySet::new();
    within.extend(members.iter().copied());
    let users = Users::compute(func);
    let post = post_dominators(&graph_of(flow));
    let mut taint = Taint::new(func, flow, &post, &users, &within, accesses);
    taint.spread(members, &atomics);
    let unknown = taint.stored != Places::NONE || taint.gave_up();
    let tainted = |inst: Inst| {
        let mut args = func.dfg.inst_args(inst).iter();
        args.any(|value| taint.tainted.contains(*value))
    };
    let returned = |inst: Inst| func.dfg.insts[inst].opcode().is_return() && tainted(inst);
    let again = |inst: Inst| {
        let home = func.layout.inst_block(inst);
        recurs(inst)
            && goes_on(&inst)
            && (unknown || tainted(inst) || home.is_some_and(|home| taint.decided.contains(home)))
    };
    Observed {
        result: unknown || taint.open_end || insts().any(returned),
        recursion: insts().any(again),
    }
}

#[cfg(test)]
#[path = "polling_tests.rs"]
mod tests;
