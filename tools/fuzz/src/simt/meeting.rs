//! Where lanes that part at the end of a block meet again, by the definition and nothing else.
//!
//! It is the first block that all of them come to: the immediate post-dominator. Exits that only some lanes take do not
//! count: an exit whose tail, the blocks that reach no other exit, holds nothing convergent is the end of its lanes. If
//! all exits are like that, or all behind something convergent, the one with the largest tail counts. This shares
//! nothing with the compiler, works on the generator's own graph, and is as slow as it is simple.

use super::kernel::{Block, End, Function, Label, Stmt};
use std::collections::BTreeSet;

/// Where the lanes of a function meet.
#[derive(Clone, Debug)]
pub struct Meetings {
    points: Vec<Option<Label>>,
}

impl Meetings {
    /// Finds them. `converges` says of each function whether it holds something convergent.
    pub fn new(function: &Function, is_kernel: bool, converges: &[bool]) -> Meetings {
        let count = function.blocks.len();
        let targets: Vec<Vec<Label>> = function.blocks.iter().map(|b| b.end.targets()).collect();
        let ends: Vec<Label> = (0..count).filter(|&b| targets[b].is_empty()).collect();
        let tails: Vec<(Label, BTreeSet<Label>)> =
            ends.iter().map(|&end| (end, tail(&targets, end))).collect();
        let holds = |block: &Label| is_convergent(&function.blocks[*block], converges);
        let mut gone = BTreeSet::new();
        if is_kernel {
            let silent = |(_, tail): &&(Label, BTreeSet<Label>)| !tail.iter().any(holds);
            let mut early: Vec<&(Label, BTreeSet<Label>)> = tails.iter().filter(silent).collect();
            let is_early = |end: Label| early.iter().any(|(early, _)| *early == end);
            let convergent = (0..count).filter(|b| holds(b));
            let without_end = |from: &Label| {
                let reached = reachable(&targets, &BTreeSet::new(), *from);
                !ends
                    .iter()
                    .any(|end| reached.contains(end) && !is_early(*end))
            };
            let mut from: Vec<Label> = convergent.filter(without_end).collect();
            if from.is_empty() && early.len() == tails.len() {
                from.push(0);
            }
            let largest = |from: Label| {
                let reached = reachable(&targets, &BTreeSet::new(), from);
                let behind = early.iter().filter(|(end, _)| reached.contains(end));
                behind.map(|(end, tail)| (tail.len(), *end)).max()
            };
            let main: BTreeSet<_> = from.into_iter().filter_map(largest).collect();
            early.retain(|(end, tail)| !main.contains(&(tail.len(), *end)));
            gone.extend(early.into_iter().flat_map(|(_, tail)| tail.iter().copied()));
        }
        Meetings {
            points: (0..count)
                .map(|block| point(&targets, &gone, block))
                .collect(),
        }
    }

    /// Where lanes that part at the end of a block meet; nowhere before they leave the function without it.
    pub fn point(&self, block: Label) -> Option<Label> {
        self.points[block]
    }
}

/// Whether lanes do something together in a block.
fn is_convergent(block: &Block, converges: &[bool]) -> bool {
    let calls = |callees: &[usize]| callees.iter().any(|&callee| converges[callee]);
    let tail = matches!(&block.end, End::TailCall { callees, .. } if calls(callees));
    tail || block.stmts.iter().any(|stmt| match stmt {
        Stmt::Probe | Stmt::Phase(_) => true,
        Stmt::Call { callees, .. } => calls(callees),
        _ => false,
    })
}

/// Whether each function holds something convergent, itself or in what it calls.
pub fn convergent_functions(functions: &[Function]) -> Vec<bool> {
    let mut converges = vec![false; functions.len()];
    loop {
        let next: Vec<bool> = functions
            .iter()
            .map(|f| {
                f.blocks
                    .iter()
                    .any(|block| is_convergent(block, &converges))
            })
            .collect();
        if next == converges {
            return converges;
        }
        converges = next;
    }
}

/// The blocks that reach `end` and no other block without targets.
fn tail(targets: &[Vec<Label>], end: Label) -> BTreeSet<Label> {
    let only = |block: &Label| {
        let reached = reachable(targets, &BTreeSet::new(), *block);
        reached.contains(&end) && reached.iter().all(|&b| b == end || !targets[b].is_empty())
    };
    (0..targets.len()).filter(only).collect()
}

/// What can be reached from a block, itself included, without the blocks of `without`.
fn reachable(targets: &[Vec<Label>], without: &BTreeSet<Label>, from: Label) -> BTreeSet<Label> {
    let mut seen = BTreeSet::new();
    let mut stack = vec![from];
    while let Some(block) = stack.pop() {
        if !without.contains(&block) && seen.insert(block) {
            stack.extend(&targets[block]);
        }
    }
    seen
}

/// The first block that every way from the targets of `block` to an end passes, when the blocks of `gone` do not count.
fn point(targets: &[Vec<Label>], gone: &BTreeSet<Label>, block: Label) -> Option<Label> {
    let starts: Vec<Label> = targets[block]
        .iter()
        .copied()
        .filter(|t| !gone.contains(t))
        .collect();
    let ends = |from: Label, without: &BTreeSet<Label>| {
        reachable(targets, without, from)
            .into_iter()
            .any(|b| targets[b].is_empty())
    };
    // All post-dominators: without them no start reaches an end.
    let passed = |candidate: &Label| {
        let mut without = gone.clone();
        without.insert(*candidate);
        !starts.iter().any(|&start| ends(start, &without))
    };
    let all: Vec<Label> = (0..targets.len())
        .filter(|b| !gone.contains(b) && starts.iter().any(|&s| ends(s, gone)))
        .filter(passed)
        .collect();
    // The first of them: without it, no other is reached.
    let is_first = |candidate: &Label| {
        let mut without = gone.clone();
        without.insert(*candidate);
        let reached: BTreeSet<Label> = starts
            .iter()
            .flat_map(|&start| reachable(targets, &without, start))
            .collect();
        all.iter()
            .all(|other| other == candidate || !reached.contains(other))
    };
    all.iter().copied().find(is_first)
}

/// Whether every block reaches one without targets.
pub fn every_block_ends(function: &Function) -> bool {
    let targets: Vec<Vec<Label>> = function.blocks.iter().map(|b| b.end.targets()).collect();
    let ends = |block| {
        reachable(&targets, &BTreeSet::new(), block)
            .into_iter()
            .any(|b| targets[b].is_empty())
    };
    (0..targets.len()).all(ends)
}

/// Whether a function has a cycle with two entries: an edge back in a walk in depth whose target does not dominate its
/// source.
pub fn is_irreducible(function: &Function) -> bool {
    let targets: Vec<Vec<Label>> = function.blocks.iter().map(|b| b.end.targets()).collect();
    let mut open = vec![false; targets.len()];
    let mut seen = vec![false; targets.len()];
    let mut walk: Vec<(Label, usize)> = vec![(0, 0)];
    (open[0], seen[0]) = (true, true);
    while let Some((block, next)) = walk.pop() {
        let Some(&target) = targets[block].get(next) else {
            open[block] = false;
            continue;
        };
        walk.push((block, next + 1));
        if open[target] {
            let without = BTreeSet::from([target]);
            if target != 0 && reachable(&targets, &without, 0).contains(&block) {
                return true;
            }
        } else if !std::mem::replace(&mut seen[target], true) {
            open[target] = true;
            walk.push((target, 0));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::kernel::{Compare, Condition, Operand};
    use super::*;

    fn branch(then: Label, other: Label) -> End {
        let condition = Condition {
            value: Operand::Var(0),
            salted: false,
            mask: 1,
            compare: Compare::Equal,
            with: 0,
        };
        End::Branch {
            condition,
            fuel: false,
            then,
            other,
        }
    }

    fn points(ends: Vec<(End, bool)>) -> Vec<Option<Label>> {
        let block = |(end, probe): (End, bool)| Block {
            stmts: if probe { vec![Stmt::Probe] } else { vec![] },
            end,
        };
        let function = Function {
            blocks: ends.into_iter().map(block).collect(),
            tail: false,
        };
        Meetings::new(&function, true, &[false]).points
    }

    fn done() -> End {
        End::Return(Operand::Const(0))
    }

    #[test]
    fn a_diamond_and_a_loop_meet_behind() {
        let diamond = [
            (branch(1, 2), false),
            (End::Jump(3), false),
            (End::Jump(3), false),
            (done(), false),
        ];
        assert_eq!(points(diamond.to_vec()), [Some(3), Some(3), Some(3), None]);
        let turns = [
            (End::Jump(1), false),
            (branch(1, 2), false),
            (done(), false),
        ];
        assert_eq!(points(turns.to_vec()), [Some(1), Some(2), None]);
    }

    #[test]
    fn an_early_return_keeps_nobody_from_meeting() {
        // A loop 1-2 with a side exit 3; 4 is behind the loop.
        let graph = |early: bool, late: bool| {
            points(vec![
                (End::Jump(1), false),
                (branch(3, 2), false),
                (branch(1, 4), false),
                (done(), early),
                (done(), late),
            ])
        };
        assert_eq!(graph(false, true), [Some(1), Some(2), Some(4), None, None]);
        assert_eq!(
            graph(true, false)[1..3],
            [Some(3), Some(1)],
            "the early one is the main one"
        );
        assert_eq!(graph(true, true)[1..3], [None, None], "both count");
    }

    #[test]
    fn two_entries_of_a_loop_meet_behind_it() {
        let graph = vec![
            (branch(1, 2), false),
            (branch(2, 3), false),
            (branch(1, 3), false),
            (done(), true),
        ];
        let block = |(end, _): &(End, bool)| Block {
            stmts: vec![],
            end: end.clone(),
        };
        let function = Function {
            blocks: graph.iter().map(block).collect(),
            tail: false,
        };
        assert!(is_irreducible(&function));
        assert_eq!(points(graph), [Some(3), Some(3), Some(3), None]);
    }
}
