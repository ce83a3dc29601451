//! Dominators, post-dominators and loops against their definitions.

use super::*;
use crate::testing::Random;

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
                // A node belongs to the loop if the header dominates it and it comes back to the header without leaving
                // that.
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
