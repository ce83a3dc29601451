//! Directed graphs of blocks: order, dominators, post-dominators, natural loops.
//!
//! CLIF functions and machine functions both map their blocks to the nodes 0, 1, 2, … of a [`Graph`], so each algorithm
//! stands in this module once: orders and searches here, [`Dominators`] and [`PostDominators`], [`Loops`].

mod dominators;
mod loops;
#[cfg(test)]
mod tests;

pub use dominators::{Dominators, PostDominators};
pub use loops::{Loop, Loops};

use smallvec::SmallVec;

/// A directed graph over the nodes `0..len`.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    successors: Vec<SmallVec<[u32; 2]>>,
    predecessors: Vec<SmallVec<[u32; 2]>>,
}

impl Graph {
    /// `len` nodes without edges.
    pub fn new(len: usize) -> Self {
        Graph {
            successors: vec![SmallVec::new(); len],
            predecessors: vec![SmallVec::new(); len],
        }
    }

    /// `len` nodes with these edges, in this order; an edge may repeat.
    pub fn from_edges(len: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut graph = Graph::new(len);
        edges
            .into_iter()
            .for_each(|(from, to)| graph.add_edge(from, to));
        graph
    }

    /// Adds an edge behind those that leave `from` so far.
    pub fn add_edge(&mut self, from: usize, to: usize) {
        self.successors[from].push(to as u32);
        self.predecessors[to].push(from as u32);
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.successors.len()
    }

    /// Targets of the edges that leave `node`.
    pub fn successors(
        &self,
        node: usize,
    ) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + '_ {
        self.successors[node].iter().map(|&n| n as usize)
    }

    /// Origins of the edges that enter `node`.
    pub fn predecessors(&self, node: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.predecessors[node].iter().map(|&n| n as usize)
    }

    /// The nodes that can be reached from `root`, in reverse postorder. Where the graph leaves a choice, lower numbers
    /// come first, so that nodes that are in reverse postorder already stay in place.
    pub fn reverse_postorder(&self, root: usize) -> Vec<usize> {
        let mut seen = vec![false; self.len()];
        let mut order = Vec::with_capacity(self.len());
        let by_number = |node: usize| {
            let mut list = self.successors[node].clone();
            list.sort_unstable();
            list
        };
        let mut stack = vec![(root, by_number(root))];
        seen[root] = true;
        while let Some((node, rest)) = stack.last_mut() {
            match rest.pop() {
                Some(target) => {
                    if !std::mem::replace(&mut seen[target as usize], true) {
                        stack.push((target as usize, by_number(target as usize)));
                    }
                }
                None => {
                    order.push(*node);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// Whether each node can be reached from one of `roots` without passing through a node of `barriers`; roots count
    /// as reached.
    #[cfg(test)]
    pub fn reachable(
        &self,
        roots: impl IntoIterator<Item = usize>,
        barriers: &[usize],
    ) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        let mut stack: Vec<usize> = roots.into_iter().collect();
        stack.iter().for_each(|&n| seen[n] = true);
        while let Some(node) = stack.pop() {
            for target in self.successors(node) {
                if !barriers.contains(&target) && !std::mem::replace(&mut seen[target], true) {
                    stack.push(target);
                }
            }
        }
        seen
    }
}

/// A set of nodes that is emptied at no cost, to search one graph many times: a search costs what it finds, not the
/// size of the graph.
#[derive(Clone, Debug, Default)]
pub struct NodeSet {
    /// The filling in which each node was last added.
    added: Vec<u32>,
    filling: u32,
    nodes: Vec<usize>,
}

impl NodeSet {
    /// The empty set of nodes of a graph with `len` nodes.
    pub fn new(len: usize) -> Self {
        NodeSet {
            added: vec![0; len],
            filling: 1,
            nodes: Vec::new(),
        }
    }

    /// Takes all nodes out.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.filling = self.filling.checked_add(1).unwrap_or_else(|| {
            self.added.fill(0);
            1
        });
    }

    /// Adds a node; false if it is there already.
    pub fn insert(&mut self, node: usize) -> bool {
        let new = std::mem::replace(&mut self.added[node], self.filling) != self.filling;
        if new {
            self.nodes.push(node);
        }
        new
    }

    /// Whether it holds a node.
    pub fn contains(&self, node: usize) -> bool {
        self.added[node] == self.filling
    }

    /// The nodes, as they were added.
    pub fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// Makes it the nodes that can be reached from one of `roots` without passing through `barrier`; roots count as
    /// reached.
    pub fn fill_reachable(
        &mut self,
        graph: &Graph,
        roots: impl IntoIterator<Item = usize>,
        barrier: Option<usize>,
    ) {
        self.fill(roots, |node, visit| {
            graph
                .successors(node)
                .filter(|target| Some(*target) != barrier)
                .for_each(visit);
        });
    }

    /// Makes it the nodes from which one of `targets` can be reached, the targets among them.
    pub fn fill_reaching(&mut self, graph: &Graph, targets: impl IntoIterator<Item = usize>) {
        self.fill(targets, |node, visit| {
            graph.predecessors(node).for_each(visit);
        });
    }

    /// Makes it `roots` and all that `next` leads to from a node of it.
    pub fn fill(
        &mut self,
        roots: impl IntoIterator<Item = usize>,
        next: impl Fn(usize, &mut dyn FnMut(usize)),
    ) {
        self.clear();
        for root in roots {
            self.insert(root);
        }
        let mut at = 0;
        while let Some(&node) = self.nodes.get(at) {
            next(node, &mut |target| {
                self.insert(target);
            });
            at += 1;
        }
    }
}
