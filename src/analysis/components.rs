//! Strongly connected components, by Tarjan's algorithm (*Depth-First Search and Linear Graph Algorithms*) without
//! recursion.

use super::graph::Graph;

/// The strongly connected components of all nodes; a component comes after those that it leads to.
pub fn components(graph: &Graph) -> Vec<Vec<usize>> {
    const UNSEEN: u32 = 0;
    let len = graph.len();
    let mut number = vec![UNSEEN; len];
    let mut low = vec![0; len];
    let mut open = vec![false; len];
    let (mut path, mut next, mut found) = (Vec::new(), UNSEEN, Vec::new());
    // A node and how many of its successors have been looked at.
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for root in 0..len {
        if number[root] != UNSEEN {
            continue;
        }
        stack.push((root, 0));
        while let Some(&mut (node, ref mut at)) = stack.last_mut() {
            if *at == 0 && number[node] == UNSEEN {
                next += 1;
                (number[node], low[node], open[node]) = (next, next, true);
                path.push(node);
            }
            if let Some(target) = graph.successors(node).nth(*at) {
                *at += 1;
                if number[target] == UNSEEN {
                    stack.push((target, 0));
                } else if open[target] {
                    low[node] = low[node].min(number[target]);
                }
                continue;
            }
            stack.pop();
            if let Some(&(parent, _)) = stack.last() {
                low[parent] = low[parent].min(low[node]);
            }
            if low[node] == number[node] {
                let start = path
                    .iter()
                    .rposition(|n| *n == node)
                    .expect("a node is on the path until its component is closed");
                let members = path.split_off(start);
                members.iter().for_each(|&n| open[n] = false);
                found.push(members);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::Rng;

    #[test]
    fn members_reach_each_other_and_nobody_else_does() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let len = 1 + rng.below(12);
            let edges: Vec<(usize, usize)> = (0..rng.below(2 * len + 1))
                .map(|_| (rng.below(len), rng.below(len)))
                .collect();
            let graph = Graph::from_edges(len, edges);
            let reach: Vec<Vec<bool>> = (0..len).map(|n| graph.reachable([n], &[])).collect();
            let mut home = vec![usize::MAX; len];
            let found = components(&graph);
            for (index, members) in found.iter().enumerate() {
                members.iter().for_each(|&n| home[n] = index);
            }
            for a in 0..len {
                for b in 0..len {
                    let together = reach[a][b] && reach[b][a];
                    assert_eq!(home[a] == home[b], together, "seed {seed}: {a} and {b}");
                    if reach[a][b] && !together {
                        assert!(home[b] < home[a], "seed {seed}: {a} leads to {b}");
                    }
                }
            }
        }
    }
}
