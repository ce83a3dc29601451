//! Natural loops.
//!
//! Takes a [`Graph`] and its [`Dominators`]; gives the loops, how they lie in each other, and the innermost one of each
//! node.

use super::{Dominators, Graph, NodeSet};

/// A natural loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The node that dominates all of the loop.
    pub header: usize,
    /// The next loop around it.
    pub parent: Option<usize>,
    /// Number of loops around its nodes, itself included.
    pub depth: u32,
    /// Its nodes, the header first, those of inner loops included.
    pub nodes: Vec<usize>,
}

/// The natural loops of a graph, outer loops before inner ones.
///
/// An edge to a node that dominates its origin closes a loop; edges to the same header close one loop. A cycle that can
/// be entered at two places has no such edge and is no loop here.
#[derive(Clone, Debug)]
pub struct Loops {
    loops: Vec<Loop>,
    innermost: Vec<Option<u32>>,
}

impl Loops {
    /// Finds them.
    pub fn new(graph: &Graph, dominators: &Dominators) -> Self {
        let mut loops: Vec<Loop> = Vec::new();
        let mut innermost = vec![None; graph.len()];
        let mut inside = NodeSet::new(graph.len());
        // Headers of outer loops come first in reverse postorder, so a later loop that holds a node lies further in.
        for &header in dominators.reverse_postorder() {
            let is_latch = |node: usize| dominators.dominates(header, node);
            if !graph.predecessors(header).any(is_latch) {
                continue;
            }
            inside.fill([header], |node, visit| {
                graph
                    .predecessors(node)
                    .filter(|&p| dominators.is_reachable(p) && (node != header || is_latch(p)))
                    .for_each(visit);
            });
            let nodes = inside.nodes().to_vec();
            let parent = innermost[header].map(|l: u32| l as usize);
            let depth = parent.map_or(1, |p| loops[p].depth + 1);
            nodes
                .iter()
                .for_each(|&n| innermost[n] = Some(loops.len() as u32));
            loops.push(Loop {
                header,
                parent,
                depth,
                nodes,
            });
        }
        Loops { loops, innermost }
    }

    /// All loops; positions are their names.
    pub fn all(&self) -> &[Loop] {
        &self.loops
    }

    /// The innermost loop around `node`.
    pub fn innermost(&self, node: usize) -> Option<usize> {
        self.innermost[node].map(|l| l as usize)
    }

    /// Number of loops around `node`.
    pub fn depth(&self, node: usize) -> u32 {
        self.innermost(node).map_or(0, |l| self.loops[l].depth)
    }

    /// Whether `node` belongs to loop `index` or to one inside it.
    pub fn contains(&self, index: usize, node: usize) -> bool {
        self.around(node).any(|l| l == index)
    }

    /// The loops around `node`, the innermost first.
    pub fn around(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.innermost(node), |&l| self.loops[l].parent)
    }

    /// Whether no other loop lies inside loop `index`.
    pub fn is_innermost(&self, index: usize) -> bool {
        self.loops[index]
            .nodes
            .iter()
            .all(|&node| self.innermost(node) == Some(index))
    }
}
