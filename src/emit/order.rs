//! The order of blocks.
//!
//! Reverse postorder from the entry, in which a loop's blocks stand together and before what comes after the loop; loops are rotated so that
//! one branch at the bottom both tests and repeats; blocks that rarely run stand last. Any order is correct, this one saves branches.

use crate::analysis::graph::{Dominators, Graph, Loops};

/// What the order depends on beside the graph.
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
    let dominators = Dominators::new(graph, 0);
    let loops = Loops::new(graph, &dominators);
    let mut order = depth_first(graph, &loops, traits);
    for index in 0..loops.all().len() {
        gather(&mut order, &loops, index);
    }
    let (mut warm, cold): (Vec<usize>, Vec<usize>) =
        order.iter().partition(|&&b| b == 0 || !traits[b].cold);
    for index in (0..loops.all().len()).rev() {
        rotate(&mut warm, graph, &loops, index, traits);
    }
    warm.extend(cold);
    warm
}

/// Reverse postorder; of the successors of a block those that leave more loops, and cold ones, come later.
fn depth_first(graph: &Graph, loops: &Loops, traits: &[BlockTraits]) -> Vec<usize> {
    let sorted = |node: usize| {
        let mut list: Vec<usize> = graph.successors(node).collect();
        list.sort_by_key(|&s| (!traits[s].cold, loops.depth(s)));
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
fn gather(order: &mut [usize], loops: &Loops, index: usize) {
    let inside = |b: &usize| loops.contains(index, *b);
    let (Some(first), Some(last)) = (
        order.iter().position(inside),
        order.iter().rposition(inside),
    ) else {
        return;
    };
    let range = &mut order[first..=last];
    let (members, others): (Vec<usize>, Vec<usize>) = range.iter().partition(|b| inside(b));
    range[..members.len()].copy_from_slice(&members);
    range[members.len()..].copy_from_slice(&others);
}

/// Turns a loop that ends in a jump to its header so that it ends in a block with a branch out of it.
fn rotate(order: &mut [usize], graph: &Graph, loops: &Loops, index: usize, traits: &[BlockTraits]) {
    let inside = |b: usize| loops.contains(index, b);
    let Some(first) = order.iter().position(|&b| inside(b)) else {
        return;
    };
    let len = order[first..].iter().take_while(|&&b| inside(b)).count();
    let range = &mut order[first..first + len];
    let header = loops.all()[index].header;
    if range[0] != header || len < 2 {
        return;
    }
    let bottom = range[len - 1];
    if !traits[bottom].jumps || !graph.successors(bottom).eq([header]) {
        return;
    }
    let exits = |b: usize| {
        loops.innermost(b) == Some(index)
            && graph.successors(b).len() > 1
            && graph.successors(b).any(|s| !inside(s))
    };
    if let Some(last) = range.iter().rposition(|&b| exits(b)) {
        range.rotate_left(last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::semantics::tests::random::Random;

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
