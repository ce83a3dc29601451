//! Where lanes that a divergent branch parts meet again.
//!
//! The meeting point of a branch is its immediate post-dominator. Lanes that end (EXIT, TRAP) leave every convergence barrier, so paths on
//! which lanes only end do not count, unless there is no other: post-dominators are taken with respect to the *main* exits, which are all
//! returns of a device function and in a kernel the exit that most blocks can reach. A block that cannot reach an exit at all, in an endless
//! loop, counts as an exit itself, so that nobody waits for its lanes. Every meeting point of `analysis::control_flow`, on which the notion of
//! a divergent block rests, is found here too, or a nearer one.

use super::edit::control_flow;
use crate::analysis::graph::{Dominators, Graph, NodeSet, PostDominators};
use crate::isa::Register;
use crate::vcode::{Block, FunctionKind, Terminator, VCode};
use cranelift_entity::EntityRef;

/// Control flow of a function, and where its lanes meet. Nodes are numbers of blocks.
pub struct Meetings {
    graph: Graph,
    dominators: Dominators,
    /// Blocks that end in a branch at which lanes may part.
    divergent: Vec<bool>,
    /// Blocks in which lanes end and nothing else happens.
    ends: Vec<bool>,
    /// With respect to the main exits; blocks that cannot reach them are not in it.
    main: PostDominators,
    /// With respect to all exits, for those blocks.
    all: PostDominators,
}

impl Meetings {
    /// Finds them.
    pub fn of<R: Register>(code: &VCode<R>) -> Self {
        let graph = control_flow(code);
        let dominators = Dominators::new(&graph, 0);
        let divergent = code
            .blocks
            .values()
            .map(|b| {
                matches!(
                    b.terminator,
                    Terminator::Branch {
                        divergent: true,
                        ..
                    } | Terminator::Table {
                        divergent: true,
                        ..
                    }
                )
            })
            .collect();
        let ends = only_end_lanes(code, &graph);
        let exits: Vec<usize> = (0..graph.len())
            .filter(|&b| graph.successors(b).len() == 0)
            .collect();
        let continuing = restricted(&graph, |_, to| !ends[to]);
        let endless = endless_regions(&continuing, &exits, |b| passes_only(code, Block::new(b)));
        let all = PostDominators::new(&continuing, exits.iter().chain(&endless).copied());
        let main_exits = main_exits(code, &continuing, &exits);
        let to_main = reaching(&continuing, &main_exits);
        let to_exit = reaching(&continuing, &exits);
        let towards_main = restricted(&continuing, |_, to| to_main[to] || !to_exit[to]);
        let main = PostDominators::new(&towards_main, main_exits.iter().chain(&endless).copied());
        Meetings {
            graph,
            dominators,
            divergent,
            ends,
            main,
            all,
        }
    }

    /// The control flow.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its dominators.
    pub fn dominators(&self) -> &Dominators {
        &self.dominators
    }

    /// The successors of `block` in which lanes do not merely end.
    pub fn lasting_ways(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        self.graph.successors(block).filter(|&s| !self.ends[s])
    }

    /// Whether lanes that go on may part at the end of a block. Those that merely end on one side leave the others together.
    pub fn parts(&self, block: usize) -> bool {
        let mut ways = self.lasting_ways(block);
        let first = ways.next();
        self.divergent[block] && ways.any(|way| Some(way) != first)
    }

    /// Where the lanes that go different ways from the end of `block` meet; none when they need not.
    pub fn meeting_point(&self, block: usize) -> Option<usize> {
        self.tree(block).immediate(block)
    }

    /// Whether every lane that leaves `block` reaches `meeting` or ends.
    pub fn reaches_surely(&self, block: usize, meeting: usize) -> bool {
        self.tree(block).post_dominates(meeting, block)
    }

    fn tree(&self, block: usize) -> &PostDominators {
        if self.main.reaches_exit(block) {
            &self.main
        } else {
            &self.all
        }
    }
}

/// Whether lanes end in each block, or behind it, and nothing else happens there.
fn only_end_lanes<R: Register>(code: &VCode<R>, graph: &Graph) -> Vec<bool> {
    let empty = |block: usize| code.block_insts(Block::new(block)).is_empty();
    let mut stack: Vec<usize> = (0..graph.len())
        .filter(|&b| {
            let terminator = &code.blocks[Block::new(b)].terminator;
            empty(b) && matches!(terminator, Terminator::Exit | Terminator::Trap(_))
        })
        .collect();
    let mut found = vec![false; graph.len()];
    while let Some(block) = stack.pop() {
        found[block] = true;
        stack.extend(
            graph
                .predecessors(block)
                .filter(|&p| passes_only(code, Block::new(p))),
        );
    }
    found
}

/// The graph without the edges that are not `kept`, except at nodes that would lose all.
fn restricted(graph: &Graph, kept: impl Fn(usize, usize) -> bool) -> Graph {
    let mut result = Graph::new(graph.len());
    for from in 0..graph.len() {
        let any = graph.successors(from).any(|to| kept(from, to));
        graph
            .successors(from)
            .filter(|&to| !any || kept(from, to))
            .for_each(|to| result.add_edge(from, to));
    }
    result
}

/// Whether each node reaches one of `targets`.
fn reaching(graph: &Graph, targets: &[usize]) -> Vec<bool> {
    let mut seen = vec![false; graph.len()];
    mark_reaching(graph, targets, &mut seen);
    seen
}

/// Marks the nodes that reach one of `targets`; what reaches a node that is marked already is marked too.
fn mark_reaching(graph: &Graph, targets: &[usize], seen: &mut [bool]) {
    let mut stack = targets.to_vec();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut seen[node], true) {
            stack.extend(graph.predecessors(node));
        }
    }
}

/// Whether `block` is the block of an edge, or looks like one.
fn passes_only<R: Register>(code: &VCode<R>, block: Block) -> bool {
    code.block_insts(block).is_empty()
        && matches!(code.blocks[block].terminator, Terminator::Jump { .. })
}

/// One block of each region that no exit can be reached from: the last block, then the last of what still does not reach one. Blocks are in
/// the order of CLIF's, whose analysis chooses in the same way; blocks of edges, which CLIF does not have, are left out.
fn endless_regions(graph: &Graph, exits: &[usize], is_edge: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut seen = vec![false; graph.len()];
    mark_reaching(graph, exits, &mut seen);
    let reachable = graph.reachable([0], &[]);
    let (edges, blocks): (Vec<usize>, Vec<usize>) = (0..graph.len())
        .rev()
        .filter(|&b| reachable[b])
        .partition(|&b| is_edge(b));
    for block in blocks.into_iter().chain(edges) {
        if !seen[block] {
            found.push(block);
            mark_reaching(graph, &[block], &mut seen);
        }
    }
    found
}

/// The exits that lanes are expected to reach.
fn main_exits<R: Register>(code: &VCode<R>, graph: &Graph, exits: &[usize]) -> Vec<usize> {
    let terminator = |b: usize| &code.blocks[Block::new(b)].terminator;
    match code.kind {
        FunctionKind::Device => exits
            .iter()
            .copied()
            .filter(|&b| !matches!(terminator(b), Terminator::Exit | Terminator::Trap(_)))
            .collect(),
        FunctionKind::Kernel(_) => {
            let candidates = exits
                .iter()
                .copied()
                .filter(|&b| matches!(terminator(b), Terminator::Exit));
            let mut reaching = NodeSet::new(graph.len());
            let mut sources = |exit: usize| {
                reaching.fill_reaching(graph, [exit]);
                reaching.nodes().len()
            };
            // Of equals the last in the order of the blocks.
            candidates
                .max_by_key(|&exit| (sources(exit), exit))
                .into_iter()
                .collect()
        }
    }
}
