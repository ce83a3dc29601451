use super::*;
use crate::analysis::testing::{Rng, random_graph};
use hashbrown::HashSet;

fn flow_of(text: &str, kernel: bool) -> ControlFlow {
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    ControlFlow::compute(&func, kernel, &Callees::default())
}

fn block(number: u32) -> Block {
    Block::from_u32(number)
}

/// True if `from` reaches one of `targets` without entering `avoided`.
fn reaches(
    from: Block,
    targets: &HashSet<Block>,
    avoided: Block,
    successors: &dyn Fn(Block) -> Vec<Block>,
) -> bool {
    let (mut seen, mut stack) = (HashSet::new(), vec![from]);
    while let Some(block) = stack.pop() {
        if block == avoided || !seen.insert(block) {
            continue;
        }
        if targets.contains(&block) {
            return true;
        }
        stack.extend(successors(block));
    }
    false
}

#[test]
fn post_dominators_agree_with_their_definition() {
    for seed in 0..400 {
        let func = random_graph(&mut Rng::new(seed), 14);
        for kernel in [false, true] {
            let flow = ControlFlow::compute(&func, kernel, &Callees::default());
            let blocks = flow.reverse_postorder().to_vec();
            // The definition, on the graph itself: exits are the blocks without successors, the pseudo exits, and
            // the cuts, which are blocks of their own here.
            let cut = |block: Block| Block::from_u32(1000 + block.as_u32());
            let successors = |b: Block| -> Vec<Block> {
                func.block_successors(b)
                    .filter(|s| flow.is_reachable(b) && flow.continues(b, *s))
                    .map(|s| {
                        if flow.cuts.contains(&s) && flow.is_cut(b, s) {
                            cut(s)
                        } else {
                            s
                        }
                    })
                    .collect()
            };
            let mut exits: HashSet<Block> = blocks
                .iter()
                .copied()
                .filter(|b| func.block_successors(*b).next().is_none())
                .collect();
            exits.extend(&flow.pseudo_exits);
            let cuts = || flow.cuts.iter().copied().map(cut);
            exits.extend(cuts());
            let nodes: Vec<Block> = blocks.iter().copied().chain(cuts()).collect();
            let post_dominates = |a: Block, b: Block| a == b || !reaches(b, &exits, a, &successors);
            for &b in &blocks {
                let strict: Vec<Block> = (nodes.iter().copied())
                    .filter(|a| *a != b && post_dominates(*a, b))
                    .collect();
                let nearest = (strict.iter().copied())
                    .find(|a| strict.iter().all(|other| post_dominates(*other, *a)));
                let found = flow.immediate_post_dominator(b).map(|post| match post {
                    PostDominator::Block(block) => block,
                    PostDominator::NextTurn(header) => cut(header),
                });
                assert_eq!(found, nearest, "seed {seed} kernel {kernel}: {b}\n{func}");
            }
            // A cut stands only where no true exit can be reached.
            let true_exits: HashSet<Block> = blocks
                .iter()
                .copied()
                .filter(|b| func.block_successors(*b).next().is_none())
                .collect();
            let nowhere = Block::from_u32(100_000);
            for &pseudo in flow.pseudo_exits.iter().chain(&flow.cuts) {
                assert!(
                    !reaches(pseudo, &true_exits, nowhere, &successors),
                    "seed {seed}: {pseudo}\n{func}"
                );
            }
        }
    }
}

#[test]
fn loops_agree_with_their_definition() {
    for seed in 0..400 {
        let func = random_graph(&mut Rng::new(seed), 12);
        let flow = ControlFlow::compute(&func, false, &Callees::default());
        let blocks = flow.reverse_postorder();
        let successors = |b: Block| -> Vec<Block> { func.block_successors(b).collect() };
        for lp in flow.loops() {
            let header = flow.loop_header(lp);
            // Natural loop: the blocks that reach a back edge's source without passing the header, and the header.
            let latches: HashSet<Block> = blocks
                .iter()
                .copied()
                .filter(|b| successors(*b).contains(&header) && flow.dominates(header, *b))
                .collect();
            for &b in blocks {
                let expected = b == header
                    || (flow.dominates(header, b) && reaches(b, &latches, header, &successors));
                assert_eq!(
                    flow.is_in_loop(b, lp),
                    expected,
                    "seed {seed}: {b} in loop of {header}\n{func}"
                );
            }
        }
        for &b in blocks {
            let enclosing: Vec<Loop> = flow.loops().filter(|lp| flow.is_in_loop(b, *lp)).collect();
            for &other in blocks {
                let without = |lp: &Loop| !flow.is_in_loop(other, *lp);
                // Outer before inner.
                let expected = enclosing.iter().copied().find(without);
                assert_eq!(flow.outermost_loop_without(b, Some(other)), expected);
            }
            let outermost = flow.outermost_loop_without(b, None);
            assert_eq!(outermost, enclosing.first().copied());
            for &lp in &enclosing {
                let around = flow.loops().filter(|outer| flow.loop_contains(*outer, lp));
                assert_eq!(flow.loop_nesting(lp), around.count());
            }
        }
    }
}

#[test]
fn a_guarded_return_divides_only_device_functions() {
    let text = "function %f(i8) {
        block0(v0: i8):
            brif v0, block2, block1
        block1:
            nop
            jump block2
        block2:
            return
        }";
    let of_first = |kernel| flow_of(text, kernel).immediate_post_dominator(block(0));
    assert_eq!(of_first(false), Some(PostDominator::Block(block(2))));
    assert_eq!(of_first(true), Some(PostDominator::Block(block(1))));
}

#[test]
fn a_branch_into_an_endless_loop_has_no_post_dominator() {
    let flow = flow_of(
        "function %f(i8) {
        block0(v0: i8):
            brif v0, block1, block2
        block1:
            jump block1
        block2:
            nop
            return
        }",
        false,
    );
    assert_eq!(flow.immediate_post_dominator(block(0)), None);
    assert_eq!(flow.cuts, [block(1)]);
}

#[test]
fn a_turn_of_a_loop_that_a_kernel_leaves_by_returning_has_its_meetings() {
    let text = "function %f(i8, i8, i8) {
        block0(v0: i8, v1: i8, v2: i8):
            jump block1
        block1:
            brif v0, block2, block6
        block2:
            brif v1, block3, block4
        block3:
            nop
            jump block4
        block4:
            brif v2, block5, block1
        block5:
            nop
            jump block1
        block6:
            return
        }";
    let flow = flow_of(text, true);
    let of = |number| flow.immediate_post_dominator(block(number));
    assert_eq!(of(0), Some(PostDominator::Block(block(1))));
    assert_eq!(of(1), Some(PostDominator::Block(block(2))));
    assert_eq!(of(2), Some(PostDominator::Block(block(4))));
    assert_eq!(of(4), Some(PostDominator::NextTurn(block(1))));
    assert_eq!(of(5), Some(PostDominator::NextTurn(block(1))));
}

#[test]
fn irreducible_cycles_are_found() {
    let flow = flow_of(
        "function %f(i8) {
        block0(v0: i8):
            jump block1
        block1:
            brif v0, block2, block3
        block2:
            jump block1
        block3:
            return
        }",
        false,
    );
    assert!(flow.innermost_loop(block(2)).is_some() && !flow.is_irreducible());
    let twisted = flow_of(
        "function %f(i8) {
        block0(v0: i8):
            brif v0, block1, block2
        block1:
            brif v0, block2, block3
        block2:
            jump block1
        block3:
            return
        }",
        false,
    );
    assert!(twisted.is_irreducible());
}
