//! Control flow in functions: what dominates what, and loops.

use crate::link::{Program, Symbol};
use crate::model::{BlockId, Function};
use hashbrown::HashMap;
use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::algo::{has_path_connecting, is_cyclic_directed, tarjan_scc};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

type Graph = DiGraph<(), (), u32>;

/// The control flow of a program's functions, each found when it is asked for first.
pub struct Controls<'p> {
    program: &'p Program,
    known: HashMap<Symbol, Control>,
}

impl<'p> Controls<'p> {
    /// None known yet.
    pub fn new(program: &'p Program) -> Self {
        let known = HashMap::new();
        Self { program, known }
    }

    /// That of a function; none if the symbol is no function.
    pub fn of(&mut self, symbol: Symbol) -> Option<&Control> {
        let function = self.program.function_of(symbol)?;
        Some((self.known.entry(symbol)).or_insert_with(|| Control::of(function)))
    }
}

/// The control flow of a function.
pub struct Control {
    dominators: Dominators<NodeIndex>,
    depths: Vec<u32>,
    /// The graph without the edges back to the heads of loops; none if it has circles all the same.
    forward: Option<Graph>,
}

impl Control {
    fn of(function: &Function) -> Self {
        let mut graph = Graph::new();
        let nodes: Vec<_> = function.blocks.iter().map(|_| graph.add_node(())).collect();
        for (block, &node) in function.blocks.iter().zip(&nodes) {
            for successor in block.successors() {
                graph.add_edge(node, nodes[successor.0 as usize], ());
            }
        }
        let dominators = simple_fast(&graph, NodeIndex::new(0));
        let forward = graph.filter_map(
            |_, ()| Some(()),
            |edge, ()| {
                let (from, to) = graph.edge_endpoints(edge)?;
                (!dominates(&dominators, to, from)).then_some(())
            },
        );
        Self {
            depths: depths(&graph),
            forward: (!is_cyclic_directed(&forward)).then_some(forward),
            dominators,
        }
    }

    /// Whether anything leads to a block.
    pub fn is_reached(&self, block: BlockId) -> bool {
        let node = node(block);
        node == self.dominators.root() || self.dominators.immediate_dominator(node).is_some()
    }

    /// In how many loops a block is.
    pub fn depth(&self, block: BlockId) -> u32 {
        self.depths[block.0 as usize]
    }

    /// Whether every way to `after` leads through `before`.
    pub fn dominates(&self, before: BlockId, after: BlockId) -> bool {
        dominates(&self.dominators, node(before), node(after))
    }

    /// Whether a way leads from one block to another without beginning a loop anew. Not known, and so denied, of loops
    /// with several entries.
    pub fn leads(&self, from: BlockId, to: BlockId) -> bool {
        let forward = self.forward.as_ref();
        forward.is_some_and(|graph| has_path_connecting(graph, node(from), node(to), None))
    }
}

fn node(block: BlockId) -> NodeIndex {
    NodeIndex::new(block.0 as usize)
}

fn dominates(dominators: &Dominators<NodeIndex>, before: NodeIndex, after: NodeIndex) -> bool {
    let mut ways = dominators.dominators(after);
    ways.as_mut()
        .is_some_and(|ways| ways.any(|way| way == before))
}

/// The loops around each block. A loop is a set of blocks that all lead to each other; inside are the loops that are
/// left when it can no longer be begun anew, which is without the edges to the blocks where it is entered. So a loop
/// with several entries is a loop, too.
fn depths(graph: &Graph) -> Vec<u32> {
    let mut depths = vec![0; graph.node_count()];
    let mut waiting = vec![graph.clone()];
    // Each turn takes an edge away from every loop, so that it ends.
    while let Some(inside) = waiting.pop() {
        let mut rest = Graph::new();
        let mut any = false;
        for _ in 0..graph.node_count() {
            rest.add_node(());
        }
        for circle in tarjan_scc(&inside) {
            let in_circle = |node: &NodeIndex| circle.contains(node);
            let again = |node: &NodeIndex| inside.contains_edge(*node, *node);
            if circle.len() == 1 && !circle.iter().any(again) {
                continue;
            }
            any = true;
            let entered = |node: &NodeIndex| {
                let mut from = graph.neighbors_directed(*node, petgraph::Incoming);
                from.any(|from| !in_circle(&from))
            };
            let mut heads: Vec<_> = circle.iter().copied().filter(entered).collect();
            if heads.is_empty() {
                // What nothing leads to, or what begins with the function.
                heads.extend(circle.iter().min());
            }
            for &block in &circle {
                depths[block.index()] += 1;
                for edge in inside.edges(block) {
                    if in_circle(&edge.target()) && !heads.contains(&edge.target()) {
                        rest.add_edge(block, edge.target(), ());
                    }
                }
            }
        }
        if any {
            waiting.push(rest);
        }
    }
    depths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u32, u32)]) -> Graph {
        Graph::from_edges(edges)
    }

    #[test]
    fn loops_count_once_each() {
        // 1 is the head of a loop with the loop of 2 in it; 4 leads to itself.
        let nested = graph(&[
            (0, 1),
            (1, 2),
            (2, 2),
            (2, 3),
            (3, 1),
            (3, 4),
            (4, 4),
            (4, 5),
        ]);
        assert_eq!(depths(&nested), [0, 1, 2, 1, 1, 0]);
        // Two entries.
        let irreducible = graph(&[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]);
        assert_eq!(depths(&irreducible), [0, 1, 1, 0]);
        assert_eq!(depths(&graph(&[(0, 1), (1, 0)])), [1, 1]);
    }
}
