//! The order of blocks.
//!
//! Reverse postorder from the entry, in which a loop's blocks stand together and before what comes after the loop;
//! loops are rotated so that one branch at the bottom both tests and repeats; blocks that rarely run stand last. Any
//! order is correct, this one saves branches.

use crate::analysis::graph::{Dominators, Graph, Loop, Loops, NodeSet};
use smallvec::SmallVec;

/// What the order depends on beside the graph.
#[derive(Debug)]
pub struct BlockTraits {
    /// Rarely runs.
    pub cold: bool,
    /// Ends in an unconditional branch to one successor.
    pub jumps: bool,
}

/// The nodes that can be reached from node 0, which comes first, in the order in which they are to stand.
///
/// `graph` lists the successors of a two-way branch with the one that should follow directly last.
pub fn block_order(graph: &Graph, traits: &[BlockTraits]) -> Vec<usize> {
    if graph.len() == 1 {
        return vec![0];
    }
    // Without an edge that goes back there is no loop.
    if (0..graph.len()).all(|node| graph.successors(node).all(|next| next > node)) {
        let (mut blocks, cold) = by_warmth(&depth_first(graph, |_| 0, traits), traits);
        blocks.extend(cold);
        return blocks;
    }
    let dominators = Dominators::new(graph, 0);
    let loops = Loops::new(graph, &dominators);
    let first = depth_first(graph, |node| loops.depth(node), traits);
    let mut order = Order::new(first, graph.len());
    for l in loops.all() {
        gather(&mut order, &l.nodes);
    }
    let (warm, cold) = by_warmth(&order.blocks, traits);
    order.set(warm);
    for index in (0..loops.all().len()).rev() {
        rotate(&mut order, graph, &loops, index, traits);
    }
    let mut blocks = order.blocks;
    blocks.extend(cold);
    blocks
}

/// Blocks that run, and those that rarely do, each in order.
fn by_warmth(blocks: &[usize], traits: &[BlockTraits]) -> (Vec<usize>, Vec<usize>) {
    (blocks.iter()).partition(|&&block| block == 0 || !traits[block].cold)
}

/// Reverse postorder; of the successors of a block those that leave more loops, and cold ones, come later. `depth` is
/// the number of loops around a block.
fn depth_first(graph: &Graph, depth: impl Fn(usize) -> u32, traits: &[BlockTraits]) -> Vec<usize> {
    let sorted = |node: usize| {
        let mut list: SmallVec<[usize; 2]> = graph.successors(node).collect();
        list.sort_by_key(|&s| (!traits[s].cold, depth(s)));
        list
    };
    let mut seen = vec![false; graph.len()];
    seen[0] = true;
    let mut order = Vec::new();
    let mut stack = vec![(0, sorted(0).into_iter())];
    while let Some((node, rest)) = stack.last_mut() {
        match rest.next() {
            Some(next) => {
                if !std::mem::replace(&mut seen[next], true) {
                    stack.push((next, sorted(next).into_iter()));
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

/// Moves what does not belong to a loop behind its last block.
fn gather(order: &mut Order, nodes: &[usize]) {
    let Some((first, last)) = order.span(nodes) else {
        return;
    };
    if last - first + 1 == nodes.len() {
        return;
    }
    order.inside.fill(nodes.iter().copied(), |_, _| {});
    let (mut members, others): (Vec<usize>, Vec<usize>) = order.blocks[first..=last]
        .iter()
        .partition(|&&b| order.inside.contains(b));
    members.extend(others);
    order.replace(first, &members);
}

/// Turns a loop that ends in a jump to its header so that it ends in a block with a branch out of it.
fn rotate(order: &mut Order, graph: &Graph, loops: &Loops, index: usize, traits: &[BlockTraits]) {
    let Loop { header, nodes, .. } = &loops.all()[index];
    let Some((first, last)) = order.span(nodes) else {
        return;
    };
    order.inside.fill(nodes.iter().copied(), |_, _| {});
    let inside = &order.inside;
    let len = order.blocks[first..=last]
        .iter()
        .take_while(|&&b| inside.contains(b))
        .count();
    let mut range = order.blocks[first..first + len].to_vec();
    if range[0] != *header || len < 2 {
        return;
    }
    let bottom = range[len - 1];
    if !traits[bottom].jumps || !graph.successors(bottom).eq([*header]) {
        return;
    }
    let exits = |b: usize| {
        loops.innermost(b) == Some(index)
            && graph.successors(b).len() > 1
            && graph.successors(b).any(|s| !inside.contains(s))
    };
    if let Some(last) = range.iter().rposition(|&b| exits(b)) {
        range.rotate_left(last + 1);
        order.replace(first, &range);
    }
}

/// Blocks in order, and the place of each.
struct Order {
    blocks: Vec<usize>,
    /// By block; [`ABSENT`] for those that have none.
    places: Vec<usize>,
    /// Of the loop that is looked at.
    inside: NodeSet,
}

const ABSENT: usize = usize::MAX;

impl Order {
    fn new(blocks: Vec<usize>, len: usize) -> Self {
        let mut order = Order {
            places: vec![ABSENT; len],
            inside: NodeSet::new(len),
            blocks: Vec::new(),
        };
        order.set(blocks);
        order
    }

    /// Makes it these blocks.
    fn set(&mut self, blocks: Vec<usize>) {
        self.places.fill(ABSENT);
        self.blocks = blocks;
        for (place, &block) in self.blocks.iter().enumerate() {
            self.places[block] = place;
        }
    }

    /// The places of the first and the last of some blocks.
    fn span(&self, blocks: &[usize]) -> Option<(usize, usize)> {
        let places = || {
            blocks
                .iter()
                .map(|&b| self.places[b])
                .filter(|&p| p != ABSENT)
        };
        places().min().zip(places().max())
    }

    /// Puts these blocks, which are those that stand there, at `first` and behind.
    fn replace(&mut self, first: usize, blocks: &[usize]) {
        for (place, &block) in (first..).zip(blocks) {
            self.blocks[place] = block;
            self.places[block] = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn order(len: usize, edges: &[(usize, usize)], cold: &[usize]) -> Vec<usize> {
        let graph = Graph::from_edges(len, edges.iter().copied());
        let traits: Vec<BlockTraits> = (0..len)
            .map(|b| BlockTraits {
                cold: cold.contains(&b),
                jumps: graph.successors(b).len() == 1,
            })
            .collect();
        block_order(&graph, &traits)
    }

    #[test]
    fn a_loop_tested_at_the_top_is_turned() {
        // 0 -> header 1 -> body 2 -> 1; 1 -> exit 3.
        assert_eq!(
            order(4, &[(0, 1), (1, 3), (1, 2), (2, 1)], &[]),
            [0, 2, 1, 3]
        );
    }

    #[test]
    fn a_loop_tested_at_the_bottom_stays() {
        assert_eq!(
            order(4, &[(0, 1), (1, 2), (2, 3), (2, 1)], &[]),
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn cold_blocks_stand_last() {
        assert_eq!(order(4, &[(0, 1), (0, 2), (2, 3)], &[1]), [0, 2, 3, 1]);
    }

    #[test]
    fn every_reachable_block_stands_once_and_loops_stand_together() {
        let mut random = Random::for_test("block order");
        for _ in 0..1000 {
            let len = 2 + random.below(10) as usize;
            let edges: Vec<(usize, usize)> = (0..random.below(2 * len as u64))
                .map(|_| {
                    (
                        random.below(len as u64) as usize,
                        1 + random.below(len as u64 - 1) as usize,
                    )
                })
                .collect();
            let found = order(len, &edges, &[]);
            let graph = Graph::from_edges(len, edges.iter().copied());
            let dominators = Dominators::new(&graph, 0);
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert_eq!(found[0], 0);
            assert_eq!(
                sorted,
                (0..len)
                    .filter(|&n| dominators.is_reachable(n))
                    .collect::<Vec<_>>()
            );
            let loops = Loops::new(&graph, &dominators);
            for index in 0..loops.all().len() {
                let at: Vec<usize> = (0..found.len())
                    .filter(|&i| loops.contains(index, found[i]))
                    .collect();
                assert_eq!(
                    at.len(),
                    at[at.len() - 1] - at[0] + 1,
                    "{edges:?}: {found:?}"
                );
            }
        }
    }
}
