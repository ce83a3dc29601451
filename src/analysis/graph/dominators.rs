//! Dominators and post-dominators.
//!
//! Takes a [`Graph`] and a root, or exits; gives the tree of immediate dominators of what is in reach. They are found
//! by semidominators with compressed paths, *semi-NCA* in Georgiadis, Tarjan and Werneck, *Finding Dominators in
//! Practice*: nearly linear, also in deep and in irreducible graphs. Post-dominators are dominators of the reversed
//! graph from a virtual exit.

use super::Graph;
use std::ops::Range;

/// A tree of immediate dominators.
#[derive(Clone, Debug)]
pub struct Dominators {
    root: usize,
    /// Immediate dominator; none for the root and for nodes out of its reach.
    parent: Vec<Option<u32>>,
    /// Distance from the root.
    depth: Vec<u32>,
    order: Vec<usize>,
    /// Where the node and all that it dominates stand when the tree is written down parents first.
    below: Vec<Range<u32>>,
}

impl Dominators {
    /// The dominators of the nodes that can be reached from `root`.
    pub fn new(graph: &Graph, root: usize) -> Self {
        let order = graph.reverse_postorder(root);
        let mut position = vec![u32::MAX; graph.len()];
        for (i, &node) in order.iter().enumerate() {
            position[node] = i as u32;
        }
        let search = DepthFirst::new(graph, root);
        let mut parent = vec![0; order.len()];
        for (number, &up) in search.immediate_dominators(graph).iter().enumerate() {
            let place = position[search.nodes[number] as usize];
            parent[place as usize] = position[search.nodes[up as usize] as usize];
        }
        let mut depth = vec![0; graph.len()];
        let mut parents = vec![None; graph.len()];
        for (i, &node) in order.iter().enumerate().skip(1) {
            let up = order[parent[i] as usize];
            parents[node] = Some(up as u32);
            depth[node] = depth[up] + 1;
        }
        let below = subtrees(&order, &parent, graph.len());
        Dominators {
            root,
            parent: parents,
            depth,
            order,
            below,
        }
    }

    /// The immediate dominator: none for the root and for nodes out of its reach.
    pub fn immediate(&self, node: usize) -> Option<usize> {
        self.parent[node].map(|n| n as usize)
    }

    /// Whether `node` can be reached from the root.
    pub fn is_reachable(&self, node: usize) -> bool {
        node == self.root || self.parent[node].is_some()
    }

    /// Number of dominators of `node` beside itself; 0 also for nodes out of reach.
    pub fn depth(&self, node: usize) -> u32 {
        self.depth[node]
    }

    /// The reachable nodes in reverse postorder.
    pub fn reverse_postorder(&self) -> &[usize] {
        &self.order
    }

    /// Whether every path from the root to `node` passes through `dominator`; every node dominates itself. False when
    /// one of the two is out of reach.
    pub fn dominates(&self, dominator: usize, node: usize) -> bool {
        // Nodes out of reach have an empty range at 0, where the root stands.
        !self.below[node].is_empty() && self.below[dominator].contains(&self.below[node].start)
    }

    /// The nearest node that dominates both.
    ///
    /// # Panics
    /// When one of the two is out of reach.
    pub fn common(&self, a: usize, b: usize) -> usize {
        assert!(
            self.is_reachable(a) && self.is_reachable(b),
            "a node out of reach has no dominator"
        );
        let (mut a, mut b) = (a, b);
        while a != b {
            let deeper = if self.depth[a] > self.depth[b] {
                &mut a
            } else {
                &mut b
            };
            *deeper = self.parent[*deeper].expect("only the root has depth 0") as usize;
        }
        a
    }
}

/// [`Dominators::below`]; `parent` gives positions in `order`, in which parents stand before their children.
fn subtrees(order: &[usize], parent: &[u32], len: usize) -> Vec<Range<u32>> {
    let mut sizes = vec![1; order.len()];
    for i in (1..order.len()).rev() {
        sizes[parent[i] as usize] += sizes[i];
    }
    let mut below = vec![0..0; len];
    // Where the next child of each node goes.
    let mut free = vec![1; order.len()];
    below[order[0]] = 0..sizes[0];
    for i in 1..order.len() {
        let next = &mut free[parent[i] as usize];
        let start = *next;
        *next += sizes[i];
        free[i] = start + 1;
        below[order[i]] = start..start + sizes[i];
    }
    below
}

/// A depth-first search: what semidominators are defined on. Nodes are numbered in preorder.
struct DepthFirst {
    /// By number: the node.
    nodes: Vec<u32>,
    /// By node: its number; `u32::MAX` out of reach.
    numbers: Vec<u32>,
    /// By number: that of the node from which it was found first; the root's own for the root.
    found_from: Vec<u32>,
}

impl DepthFirst {
    fn new(graph: &Graph, root: usize) -> Self {
        let mut search = DepthFirst {
            nodes: Vec::new(),
            numbers: vec![u32::MAX; graph.len()],
            found_from: Vec::new(),
        };
        let mut work = vec![(root, 0)];
        while let Some((node, from)) = work.pop() {
            if search.numbers[node] != u32::MAX {
                continue;
            }
            let number = search.nodes.len() as u32;
            search.numbers[node] = number;
            search.nodes.push(node as u32);
            search.found_from.push(from);
            work.extend(graph.successors(node).rev().map(|next| (next, number)));
        }
        search
    }

    /// By number: that of the immediate dominator; the root's own for the root.
    fn immediate_dominators(&self, graph: &Graph) -> Vec<u32> {
        let len = self.nodes.len();
        let mut forest = Forest {
            above: self.found_from.clone(),
            least: (0..len as u32).collect(),
            semi: (0..len as u32).collect(),
            path: Vec::new(),
        };
        for number in (1..len).rev() {
            let mut semi = self.found_from[number];
            for before in graph.predecessors(self.nodes[number] as usize) {
                let before = self.numbers[before];
                if before != u32::MAX {
                    semi = semi.min(forest.least_semi(before, number as u32));
                }
            }
            forest.semi[number] = semi;
        }
        // The immediate dominator is the nearest common ancestor of the parent and the semidominator in the tree made
        // so far.
        let mut dominators = self.found_from.clone();
        for number in 1..len {
            let mut up = dominators[number];
            while up > forest.semi[number] {
                up = dominators[up as usize];
            }
            dominators[number] = up;
        }
        dominators
    }
}

/// The nodes whose semidominators are known, in trees with compressed paths.
struct Forest {
    /// An ancestor in the search tree.
    above: Vec<u32>,
    /// The node with the least semidominator on the path up to `above`, that excluded.
    least: Vec<u32>,
    semi: Vec<u32>,
    /// Scratch: the path that is being compressed.
    path: Vec<u32>,
}

impl Forest {
    /// The least semidominator on the path from `node` up to nodes above `done`: those behind `done` in preorder have
    /// theirs already.
    fn least_semi(&mut self, node: u32, done: u32) -> u32 {
        if node <= done {
            return node;
        }
        let mut top = node;
        while self.above[top as usize] > done {
            self.path.push(top);
            top = self.above[top as usize];
        }
        // Every node of the path now hangs where its top does.
        while let Some(below) = self.path.pop() {
            let (least, above) = (self.least[below as usize], self.least[top as usize]);
            if self.semi[above as usize] < self.semi[least as usize] {
                self.least[below as usize] = above;
            }
            self.above[below as usize] = self.above[top as usize];
            top = below;
        }
        self.semi[self.least[node as usize] as usize]
    }
}

/// A tree of immediate post-dominators: what every path from a node to an exit passes through.
#[derive(Clone, Debug)]
pub struct PostDominators {
    tree: Dominators,
}

impl PostDominators {
    /// The post-dominators for paths that end at one of `exits`; paths that never reach one do not count.
    pub fn new(graph: &Graph, exits: impl IntoIterator<Item = usize>) -> Self {
        let virtual_exit = graph.len();
        let mut reversed = Graph::new(graph.len() + 1);
        exits
            .into_iter()
            .for_each(|exit| reversed.add_edge(virtual_exit, exit));
        for node in 0..graph.len() {
            graph
                .predecessors(node)
                .for_each(|p| reversed.add_edge(node, p));
        }
        PostDominators {
            tree: Dominators::new(&reversed, virtual_exit),
        }
    }

    /// The nearest other node on all paths from `node` to an exit; none when there is no such node, or no path.
    pub fn immediate(&self, node: usize) -> Option<usize> {
        self.tree.immediate(node).filter(|&n| n != self.tree.root)
    }

    /// Whether every path from `node` to an exit passes through `post`; false when there is no path.
    #[cfg(test)]
    pub fn post_dominates(&self, post: usize, node: usize) -> bool {
        self.tree.dominates(post, node)
    }

    /// Whether an exit can be reached from `node`.
    #[cfg(test)]
    pub fn reaches_exit(&self, node: usize) -> bool {
        self.tree.is_reachable(node)
    }
}
