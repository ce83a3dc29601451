//! Directed graphs of blocks: order, dominators, post-dominators, natural loops.
//!
//! CLIF functions and machine functions both map their blocks to the nodes 0, 1, 2, … of a [`Graph`], so each algorithm stands here
//! once. Dominators are found by semidominators with compressed paths, *semi-NCA* in Georgiadis, Tarjan and Werneck, *Finding Dominators in
//! Practice*: nearly linear, also in deep and in irreducible graphs. Post-dominators are dominators of the reversed graph from a virtual exit.

use smallvec::SmallVec;
use std::ops::Range;

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

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.successors.is_empty()
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

    /// The nodes that can be reached from `root`, in reverse postorder. Where the graph leaves a choice, lower numbers come first, so that
    /// nodes that are in reverse postorder already stay in place.
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

    /// Whether each node can be reached from one of `roots` without passing through a node of `barriers`; roots count as reached.
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

/// A set of nodes that is emptied at no cost, to search one graph many times: a search costs what it finds, not the size of the graph.
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

    /// Makes it the nodes that [`Graph::reachable`] tells of.
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

    /// Whether every path from the root to `node` passes through `dominator`; every node dominates itself. False when one of the two is
    /// out of reach.
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
        // The immediate dominator is the nearest common ancestor of the parent and the semidominator in the tree made so far.
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
    /// The least semidominator on the path from `node` up to nodes above `done`: those behind `done` in preorder have theirs already.
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
    pub fn post_dominates(&self, post: usize, node: usize) -> bool {
        self.tree.dominates(post, node)
    }

    /// Whether an exit can be reached from `node`.
    pub fn reaches_exit(&self, node: usize) -> bool {
        self.tree.is_reachable(node)
    }
}

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
/// An edge to a node that dominates its origin closes a loop; edges to the same header close one loop. A cycle that can be entered at
/// two places has no such edge and is no loop here.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::semantics::tests::random::Random;

    /// Nodes on every path from `from` to a node of `to`, by removing each in turn; none when there is no path.
    fn on_all_paths(graph: &Graph, from: usize, to: &[usize]) -> Option<Vec<usize>> {
        let reaches = |removed: Option<usize>| {
            if removed == Some(from) {
                return false;
            }
            let seen = graph.reachable([from], removed.as_slice());
            to.iter().any(|&t| seen[t])
        };
        reaches(None).then(|| (0..graph.len()).filter(|&n| !reaches(Some(n))).collect())
    }

    fn random_graph(random: &mut Random) -> Graph {
        let len = 1 + random.below(9) as usize;
        let edges = random.below(2 * len as u64 + 1);
        Graph::from_edges(
            len,
            (0..edges)
                .map(|_| {
                    (
                        random.below(len as u64) as usize,
                        random.below(len as u64) as usize,
                    )
                })
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn dominators_agree_with_the_removal_of_nodes() {
        let mut random = Random::for_test("dominators");
        for _ in 0..2000 {
            let graph = random_graph(&mut random);
            let tree = Dominators::new(&graph, 0);
            for node in 0..graph.len() {
                let expected = on_all_paths(&graph, 0, &[node]);
                assert_eq!(tree.is_reachable(node), expected.is_some(), "{graph:?}");
                let found: Vec<usize> = (0..graph.len())
                    .filter(|&d| tree.dominates(d, node))
                    .collect();
                assert_eq!(found, expected.unwrap_or_default(), "{graph:?} node {node}");
                if let Some(up) = tree.immediate(node) {
                    assert!(
                        found
                            .iter()
                            .filter(|&&d| d != node)
                            .all(|&d| tree.dominates(d, up))
                    );
                }
            }
        }
    }

    /// A node's dominators are itself and those that all its predecessors have.
    #[test]
    fn dominators_of_larger_graphs_solve_the_equations() {
        let mut random = Random::for_test("larger dominators");
        for round in 0..200 {
            let len = 2 + random.below(60) as usize;
            let edges = len as u64 + random.below(2 * len as u64);
            // Every third graph is a chain with long jumps back and forth, most of them irreducible.
            let chain = (0..len - 1).filter(|_| round % 3 == 0).map(|n| (n, n + 1));
            let jumps = (0..edges).map(|_| {
                (
                    random.below(len as u64) as usize,
                    random.below(len as u64) as usize,
                )
            });
            let graph = Graph::from_edges(len, chain.chain(jumps).collect::<Vec<_>>());
            let tree = Dominators::new(&graph, 0);
            let reachable = graph.reachable([0], &[]);
            let mut sets = vec![vec![true; len]; len];
            sets[0] = (0..len).map(|n| n == 0).collect();
            loop {
                let mut changed = false;
                for node in (1..len).filter(|&n| reachable[n]) {
                    let mut set = vec![true; len];
                    for before in graph.predecessors(node).filter(|&p| reachable[p]) {
                        (0..len).for_each(|d| set[d] &= sets[before][d]);
                    }
                    set[node] = true;
                    changed |= set != sets[node];
                    sets[node] = set;
                }
                if !changed {
                    break;
                }
            }
            for node in (0..len).filter(|&n| reachable[n]) {
                let found: Vec<bool> = (0..len).map(|d| tree.dominates(d, node)).collect();
                assert_eq!(found, sets[node], "{graph:?} node {node}");
            }
        }
    }

    #[test]
    fn deep_graphs_take_no_time_and_no_stack() {
        const LEN: usize = 50_000;
        let chain = (0..LEN - 1).map(|n| (n, n + 1));
        let nested = (0..LEN / 2).map(|n| (LEN - 1 - n, n));
        let graph = Graph::from_edges(LEN, chain.clone().chain(nested));
        let tree = Dominators::new(&graph, 0);
        assert!((1..LEN).all(|n| tree.immediate(n) == Some(n - 1)));
        // A ladder of two chains with rungs both ways: nothing but the root dominates anything.
        let half = LEN / 2;
        let left = (1..half - 1).map(|n| (n, n + 1));
        let right = (half..LEN - 1).map(|n| (n, n + 1));
        let rungs = (1..half).flat_map(|n| [(n, n + half - 1), (n + half - 1, n)]);
        let graph = Graph::from_edges(
            LEN,
            left.chain(right).chain(rungs).chain([(0, 1), (0, half)]),
        );
        let tree = Dominators::new(&graph, 0);
        assert!((1..LEN - 1).all(|n| tree.immediate(n) == Some(0)));
    }

    #[test]
    fn post_dominators_agree_with_the_removal_of_nodes() {
        let mut random = Random::for_test("post-dominators");
        for _ in 0..2000 {
            let graph = random_graph(&mut random);
            let exits: Vec<usize> = (0..graph.len())
                .filter(|&n| graph.successors(n).len() == 0)
                .collect();
            let tree = PostDominators::new(&graph, exits.iter().copied());
            for node in 0..graph.len() {
                let expected = on_all_paths(&graph, node, &exits);
                assert_eq!(tree.reaches_exit(node), expected.is_some());
                let found: Vec<usize> = (0..graph.len())
                    .filter(|&d| tree.post_dominates(d, node))
                    .collect();
                assert_eq!(found, expected.unwrap_or_default(), "{graph:?} node {node}");
                match tree.immediate(node) {
                    Some(next) => assert!(
                        found
                            .iter()
                            .filter(|&&d| d != node)
                            .all(|&d| tree.post_dominates(d, next))
                    ),
                    None => assert!(found.iter().all(|&d| d == node)),
                }
            }
        }
    }

    #[test]
    fn loops_are_the_cycles_through_their_header() {
        let mut random = Random::for_test("loops");
        for _ in 0..2000 {
            let graph = random_graph(&mut random);
            let tree = Dominators::new(&graph, 0);
            let loops = Loops::new(&graph, &tree);
            for (i, l) in loops.all().iter().enumerate() {
                for node in 0..graph.len() {
                    // A node belongs to the loop if the header dominates it and it comes back to the header without leaving that.
                    let outside: Vec<usize> = (0..graph.len())
                        .filter(|&n| !tree.dominates(l.header, n) || n == l.header)
                        .collect();
                    let back = graph.successors(node).any(|s| s == l.header)
                        || graph
                            .reachable([node], &outside)
                            .iter()
                            .enumerate()
                            .any(|(n, &r)| r && graph.successors(n).any(|s| s == l.header));
                    let member = tree.dominates(l.header, node) && (node == l.header || back);
                    assert_eq!(
                        loops.contains(i, node),
                        member,
                        "{graph:?} loop of {} node {node}",
                        l.header
                    );
                    assert_eq!(l.nodes.contains(&node), member);
                }
                assert!(
                    l.parent
                        .is_none_or(|p| p < i && loops.all()[p].nodes.contains(&l.header))
                );
            }
            for node in 0..graph.len() {
                assert_eq!(
                    loops.depth(node) as usize,
                    loops
                        .all()
                        .iter()
                        .filter(|l| l.nodes.contains(&node))
                        .count()
                );
            }
        }
    }

    #[test]
    fn nested_loops_know_their_depth() {
        let graph = Graph::from_edges(5, [(0, 1), (1, 2), (2, 2), (2, 3), (3, 1), (3, 4)]);
        let loops = Loops::new(&graph, &Dominators::new(&graph, 0));
        assert_eq!(
            (0..5).map(|n| loops.depth(n)).collect::<Vec<_>>(),
            [0, 1, 2, 1, 0]
        );
        assert!(!loops.is_innermost(0) && loops.is_innermost(1));
    }
}
