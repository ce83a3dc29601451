//! Convergence on random graphs, run by a little machine whose lanes decide at random ([`super::machine`]).

use super::convergence::insert_barriers_around;
use super::machine::run;
use super::nesting_tests::structured_function_with_split_edges;
use super::regions::regions;
use super::*;
use crate::analysis::graph::{Graph, NodeSet, PostDominators};
use crate::emit::Constants;
use crate::emit::testing::{block, jump, kernel};
use crate::isa::generated::{MOVW, mov};
use crate::isa::operand::RZ;
use crate::isa::{Inst, Optype, RegisterClass, Role, VReg, build};
use crate::testing::Random;
use crate::vcode::{
    Attachment, Block, CallInfo, Entry, FunctionKind, Guard, Meeting, Terminator, VCode,
};
use cranelift_codegen::entity::EntityRef;
use hashbrown::HashMap;

/// `MOV v, number`: says in which block of the original graph the lanes are.
pub(super) fn marker(code: &mut u32, number: usize) -> Inst<VReg> {
    *code += 1;
    let result = VReg::new(RegisterClass::Gpr, *code - 1);
    build::mov_i(mov::Options::new(MOVW::W32), result, number as u32)
}

pub(super) fn guard() -> Guard<VReg> {
    Guard {
        reg: VReg::new(RegisterClass::Predicate, 0),
        negated: false,
    }
}

pub(super) fn branch(taken: usize, fallthrough: usize) -> Terminator<VReg> {
    Terminator::Branch {
        guard: guard(),
        taken: block(taken),
        fallthrough: block(fallthrough),
        divergent: true,
    }
}

/// A random function with critical edges split; every block marks itself, some call.
pub(super) fn random_function(random: &mut Random, device: bool) -> VCode<VReg> {
    let len = 2 + random.below(8) as usize;
    let mut vregs = 1;
    let mut blocks = Vec::new();
    for number in 0..len {
        let mut target = || 1 + random.below(len as u64 - 1) as usize;
        let (a, b) = (target(), target());
        let terminator = match random.below(10) {
            0 if device => Terminator::Return {
                address: [VReg::new(RegisterClass::Gpr, 0); 2],
                values: Vec::new(),
            },
            0 => Terminator::Exit,
            1 if random.flip() => Terminator::Trap(1),
            1..=3 => jump(a),
            n => Terminator::Branch {
                guard: guard(),
                taken: block(a),
                fallthrough: block(b),
                divergent: n >= 6,
            },
        };
        let mut body = vec![];
        if random.below(5) != 0 {
            body.push(marker(&mut vregs, number));
        }
        if random.below(12) == 0 {
            body.push(build::call_i(RZ));
            body.push(marker(&mut vregs, number));
        }
        blocks.push((body, terminator));
    }
    split_edges(&mut blocks);
    let mut code = kernel(blocks);
    code.vreg_count = vregs;
    if device {
        code.kind = FunctionKind::Device;
    }
    let call = code.attachments.push(Attachment::Call(Box::new(CallInfo {
        callee: None,
        uses: vec![],
        defs: vec![],
        meeting: Meeting::Together,
    })));
    code.insts
        .iter_mut()
        .filter(|e| e.inst.optype() == Optype::CALL)
        .for_each(|e| e.attachment = Some(call));
    super::edit::Editor::new(code).finish()
}

/// Gives edges between blocks with other edges a block of their own.
pub(super) fn split_edges(blocks: &mut Vec<(Vec<Inst<VReg>>, Terminator<VReg>)>) {
    let len = blocks.len();
    let mut entered = vec![0; len];
    blocks
        .iter()
        .flat_map(|b| b.1.successors())
        .for_each(|s| entered[s.index()] += 1);
    for number in 0..len {
        if blocks[number].1.successors().len() > 1 {
            let mut terminator = blocks[number].1.clone();
            terminator.for_each_target(|t| {
                if entered[t.index()] > 1 {
                    blocks.push((vec![], jump(t.index())));
                    *t = block(blocks.len() - 1);
                }
            });
            blocks[number].1 = terminator;
        }
    }
}

pub(super) fn successors_of(code: &VCode<VReg>, b: usize) -> Vec<usize> {
    let successors = code.blocks[block(b)].terminator.successors();
    successors.iter().map(|s| s.index()).collect()
}

/// Whether lanes end in each block, and nothing else happens there.
pub(super) fn merely_end(code: &VCode<VReg>) -> Vec<bool> {
    let kernel = matches!(code.kind, FunctionKind::Kernel(_));
    (0..code.blocks.len())
        .map(|mut b| {
            // The block of an edge is none in CLIF.
            if let (true, &[only]) = (
                code.block_insts(block(b)).is_empty(),
                successors_of(code, b).as_slice(),
            ) {
                b = only;
            }
            let t = &code.blocks[block(b)].terminator;
            code.block_insts(block(b)).is_empty()
                && (matches!(t, Terminator::Trap(_)) || kernel && matches!(t, Terminator::Exit))
        })
        .collect()
}

/// Writes into the blocks of a graph that came from no analysis where its lanes meet: at the immediate post-dominators,
/// when ways to blocks that `end` lanes do not count, and endless loops are ends.
pub(super) fn meet_at_post_dominators(mut code: VCode<VReg>, ends: &[bool]) -> VCode<VReg> {
    let len = code.blocks.len();
    let lasting = |b: usize| -> Vec<usize> {
        let all = successors_of(&code, b);
        let kept: Vec<usize> = all.iter().copied().filter(|&s| !ends[s]).collect();
        if kept.is_empty() { all } else { kept }
    };
    let edges = (0..len).flat_map(|b| lasting(b).into_iter().map(move |s| (b, s)));
    let graph = Graph::from_edges(len, edges.collect::<Vec<_>>());
    let mut exits: Vec<usize> = (0..len).filter(|&b| lasting(b).is_empty()).collect();
    let mut reaching = NodeSet::new(len);
    reaching.fill_reaching(&graph, exits.iter().copied());
    exits.extend((0..len).filter(|&b| !reaching.contains(b)));
    let post = PostDominators::new(&graph, exits);
    let ways: Vec<usize> = (0..len).map(|b| lasting(b).len()).collect();
    for (b, &ways) in ways.iter().enumerate() {
        let parts = matches!(
            code.blocks[block(b)].terminator,
            Terminator::Branch {
                divergent: true,
                ..
            }
        );
        if parts && ways > 1 {
            let meeting = post.immediate(b).map(block);
            code.blocks[block(b)].meeting = meeting.map_or(Meeting::Nowhere, Meeting::At);
        }
    }
    code
}

/// With barriers for lanes that meet at post-dominators.
fn converged(code: VCode<VReg>) -> VCode<VReg> {
    converged_by(BARRIERS, code)
}

/// The same on a machine of so many barriers.
fn converged_by(barriers: u8, code: VCode<VReg>) -> VCode<VReg> {
    let ends = merely_end(&code);
    insert_barriers_around(meet_at_post_dominators(code, &ends), regions, barriers).unwrap()
}

/// Whether each block may run while some live lanes are elsewhere, by the definition of `analysis::uniformity`: it can
/// be reached from a divergent branch without passing the branch's post-dominator, where successors that merely end
/// lanes do not count.
fn divergent_blocks(code: &VCode<VReg>) -> Vec<bool> {
    let len = code.blocks.len();
    let successors = |b: usize| successors_of(code, b);
    let ends = merely_end(code);
    let lasting = |b: usize| -> Vec<usize> {
        let all = successors(b);
        let kept: Vec<usize> = all.iter().copied().filter(|&s| !ends[s]).collect();
        if kept.is_empty() { all } else { kept }
    };
    let reach = |from: Vec<usize>, without: Option<usize>| {
        let mut seen = vec![false; len];
        let mut stack: Vec<usize> = from.into_iter().filter(|&b| Some(b) != without).collect();
        while let Some(b) = stack.pop() {
            if !std::mem::replace(&mut seen[b], true) {
                stack.extend(lasting(b).into_iter().filter(|&s| Some(s) != without));
            }
        }
        seen
    };
    // A lane that can be caught in an endless loop may never come: whatever is behind counts as not post-dominating.
    let caught = |b: usize| {
        !reach(vec![b], None)
            .iter()
            .enumerate()
            .any(|(x, r)| *r && successors(x).is_empty())
    };
    let mut result = vec![false; len];
    for b in 0..len {
        if !matches!(
            code.blocks[block(b)].terminator,
            Terminator::Branch {
                divergent: true,
                ..
            }
        ) {
            continue;
        }
        successors(b)
            .into_iter()
            .filter(|&s| ends[s])
            .for_each(|s| result[s] = true);
        let on_all_paths = |m: usize| {
            let seen = reach(lasting(b), Some(m));
            m != b && !(0..len).any(|x| seen[x] && (successors(x).is_empty() || caught(x)))
        };
        let candidates: Vec<usize> = (0..len)
            .filter(|&m| reach(lasting(b), None)[m] && on_all_paths(m))
            .collect();
        // Which block stands for an endless loop is left open: near one nothing is claimed.
        let endless = reach(vec![b], None)
            .iter()
            .enumerate()
            .any(|(x, r)| *r && caught(x));
        let candidates = if endless { Vec::new() } else { candidates };
        // The nearest is the one from which all others are still to come.
        let nearest = candidates.iter().copied().find(|&m| {
            candidates
                .iter()
                .all(|&other| other == m || !reach(lasting(b), Some(m))[other])
        });
        reach(lasting(b), nearest)
            .into_iter()
            .enumerate()
            .for_each(|(x, r)| result[x] |= r);
    }
    result
}

#[test]
fn lanes_are_together_wherever_no_divergence_is_expected() {
    let mut random = Random::for_test("convergence");
    let (mut together, mut barriers, mut aside) = (0, 0, [0; 2]);
    for round in 0..900 {
        let code = match round % 4 {
            0 => structured_function_with_split_edges(&mut random),
            _ => random_function(&mut random, round % 2 == 0),
        };
        code.verify_shape().unwrap();
        let divergent = divergent_blocks(&code);
        // The marks of a block stay those of the graph that was generated; the ways they are numbered may not.
        let names: HashMap<usize, bool> = code
            .blocks
            .keys()
            .flat_map(|b| code.block_insts(b).iter().map(move |e| (b, e)))
            .filter(|(_, e)| e.inst.optype() == Optype::MOV)
            .map(|(b, e)| {
                (
                    e.inst.number(Role::B).unwrap() as usize,
                    divergent[b.index()],
                )
            })
            .collect();
        // Of few barriers some are shared: their masks are in registers, and in slots.
        let machine = [BARRIERS, 1, 2][round % 3];
        let done = converged_by(machine, code.clone());
        done.verify_shape().unwrap();
        barriers += count(&done, Optype::BSYNC);
        aside[0] += count(&done, Optype::BMOV);
        aside[1] += count(&done, Optype::STL);
        for _ in 0..8 {
            let mut wrong = None;
            let finished = run(&done, &mut random, &mut |mark, lanes, live| {
                if !names[&mark] {
                    together += 1;
                    if lanes.len() != live.len() {
                        wrong = Some((mark, lanes.to_vec(), live.to_vec()));
                    }
                }
            });
            assert!(finished, "deadlock in round {round}\n{code}\n{done}");
            assert!(wrong.is_none(), "round {round}: {wrong:?}\n{code}\n{done}");
        }
    }
    assert!(together > 3_000 && barriers > 450, "{together} {barriers}");
    assert!(aside[0] > 200 && aside[1] > 8, "{aside:?}");
}

#[test]
fn a_missing_barrier_is_noticed() {
    let mut vregs = 1;
    let mut code = kernel(vec![
        (vec![], branch(1, 2)),
        (vec![], jump(3)),
        (vec![], jump(3)),
        (vec![marker(&mut vregs, 3)], Terminator::Exit),
    ]);
    code.vreg_count = vregs;
    let mut random = Random::for_test("missing barrier");
    let apart = |code: &VCode<VReg>, random: &mut Random| {
        (0..50).any(|_| {
            let mut apart = false;
            run(code, random, &mut |_, lanes, live| {
                apart |= lanes.len() != live.len()
            });
            apart
        })
    };
    assert!(apart(&code, &mut random));
    assert!(!apart(&converged(code), &mut random));
}

#[test]
fn twenty_nested_branches_share_sixteen_barriers() {
    const DEPTH: usize = 20;
    // Block i < DEPTH branches to i + 1 or past it to an empty block 2 * DEPTH + 1 + i; 2 * DEPTH - i joins both.
    let mut vregs = 1;
    let mut blocks: Vec<(Vec<Inst<VReg>>, Terminator<VReg>)> = Vec::new();
    for i in 0..DEPTH {
        blocks.push((vec![], branch(i + 1, 2 * DEPTH + 1 + i)));
    }
    blocks.push((vec![], jump(DEPTH + 1)));
    for i in (0..DEPTH).rev() {
        let end = if i == 0 {
            Terminator::Exit
        } else {
            jump(2 * DEPTH - i + 1)
        };
        blocks.push((vec![marker(&mut vregs, i)], end));
    }
    for i in 0..DEPTH {
        blocks.push((vec![], jump(2 * DEPTH - i)));
    }
    let mut code = kernel(blocks);
    code.vreg_count = vregs;
    code.verify_shape().unwrap();
    let done = converged(code);
    let saved = done
        .insts
        .iter()
        .filter(|e| e.inst.optype() == Optype::BMOV)
        .count();
    // The last barrier is for six of them.
    assert_eq!(saved, 2 * (DEPTH + 1 - usize::from(BARRIERS)), "{done}");
    let mut random = Random::for_test("nested");
    for _ in 0..200 {
        assert!(run(&done, &mut random, &mut |mark, lanes, live| assert!(
            mark != 0 || lanes.len() == live.len()
        )));
    }
}

#[test]
fn a_loop_with_a_divergent_exit_is_entered_once_with_the_barrier() {
    let mut vregs = 1;
    let mut code = kernel(vec![
        (vec![marker(&mut vregs, 0)], jump(1)),
        (vec![marker(&mut vregs, 1)], branch(2, 3)),
        (vec![marker(&mut vregs, 2)], jump(1)),
        (vec![marker(&mut vregs, 3)], Terminator::Exit),
    ]);
    code.vreg_count = vregs;
    let done = converged(code);
    let at = |b: Block| {
        done.block_insts(b)
            .iter()
            .map(|e| e.inst.optype())
            .collect::<Vec<_>>()
    };
    assert_eq!(at(block(0)), [Optype::MOV, Optype::BSSY]);
    assert!(
        done.blocks
            .keys()
            .any(|b| at(b) == [Optype::BSYNC, Optype::MOV])
    );
}

#[test]
fn jump_tables_are_read_from_the_constants() {
    let index = VReg::new(RegisterClass::Gpr, 0);
    let table = Terminator::Table {
        index,
        table: None,
        targets: vec![block(1), block(2)],
        divergent: false,
    };
    let mut code = kernel(vec![
        (vec![], table),
        (vec![], Terminator::Exit),
        (vec![], Terminator::Exit),
    ]);
    code.vreg_count = 1;
    let mut constants = Constants::new();
    constants.reserve_jump_table(1).unwrap();
    let code = load_jump_tables(code, &mut constants).unwrap();
    let [scale, load] = code.block_insts(block(0)) else {
        panic!("{code}")
    };
    assert_eq!(
        (scale.inst.optype(), load.inst.optype()),
        (Optype::LEA, Optype::LDC)
    );
    let Terminator::Table {
        index,
        table: Some(4),
        ..
    } = code.blocks[block(0)].terminator
    else {
        panic!("{code}")
    };
    assert_eq!(Some(index), load.inst.reg(Role::D));
    assert_eq!(constants.bytes().len(), 12);
}

pub(super) fn count(code: &VCode<VReg>, optype: Optype) -> usize {
    let is_it = |e: &&Entry<VReg>| e.inst.optype() == optype;
    code.insts.iter().filter(is_it).count()
}

/// None of this may take time that grows much faster than the function.
#[test]
fn many_regions_are_found_at_once() {
    const COUNT: usize = 4000;
    let mut vregs = 1;
    let mut blocks = Vec::new();
    // Branches whose sides meet, then loops that lanes leave one by one, then early ends.
    for first in (0..3 * COUNT).step_by(3) {
        blocks.push((
            vec![marker(&mut vregs, first)],
            branch(first + 1, first + 2),
        ));
        blocks.push((vec![marker(&mut vregs, first + 1)], jump(first + 3)));
        blocks.push((vec![marker(&mut vregs, first + 2)], jump(first + 3)));
    }
    for first in (3 * COUNT..6 * COUNT).step_by(3) {
        blocks.push((
            vec![marker(&mut vregs, first)],
            branch(first + 1, first + 2),
        ));
        blocks.push((vec![], jump(first)));
        blocks.push((vec![], jump(first + 3)));
    }
    for first in (6 * COUNT..9 * COUNT).step_by(3) {
        blocks.push((
            vec![marker(&mut vregs, first)],
            branch(first + 1, first + 2),
        ));
        blocks.push((vec![marker(&mut vregs, first + 1)], Terminator::Exit));
        blocks.push((vec![], jump(first + 3)));
    }
    blocks.push((vec![], Terminator::Exit));
    let mut code = kernel(blocks);
    code.vreg_count = vregs;
    let last = code.blocks.len() - 1;
    let early = |b: usize| b != last && successors_of(&code, b).is_empty();
    let ends: Vec<bool> = (0..=last).map(early).collect();
    let done = insert_barriers(meet_at_post_dominators(code, &ends)).unwrap();
    // Early ends part nobody.
    assert_eq!(count(&done, Optype::BSSY), 2 * COUNT);
    assert_eq!(count(&done, Optype::BSYNC), 2 * COUNT);

    let calls = vec![build::call_i(RZ); COUNT];
    let mut code = kernel(vec![(calls, Terminator::Exit)]);
    let call = code.attachments.push(Attachment::Call(Box::new(CallInfo {
        callee: None,
        uses: vec![],
        defs: vec![],
        meeting: Meeting::Together,
    })));
    code.insts
        .iter_mut()
        .for_each(|e| e.attachment = Some(call));
    let done = insert_barriers(code).unwrap();
    assert_eq!(count(&done, Optype::BSSY), COUNT);
}
