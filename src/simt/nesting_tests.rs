//! Regions found level by level against regions found one by one, and the work that takes.

use super::barriers::{Assignment, BARRIERS, Extent, LiveRange, assign};
use super::block_set::BlockSet;
use super::convergence::insert_barriers_around;
use super::meeting::Meetings;
use super::nesting;
use super::region::{Extents, Nesting, Regions};
use super::regions::{branches_by_meeting, regions, search_one_by_one};

use super::tests::{
    branch, count, guard, marker, meet_at_post_dominators, merely_end, random_function,
    split_edges, successors_of,
};
use crate::emit::testing::{block, jump, kernel};
use crate::isa::{Inst, Optype, VReg};
use crate::testing::Random;
use crate::vcode::{Meeting, Terminator, VCode};
use std::cell::{Cell, RefCell};

/// Random code made of nested statements, as blocks with everything but their numbers in order.
struct Structured<'a> {
    random: &'a mut Random,
    vregs: u32,
    blocks: Vec<(Vec<Inst<VReg>>, Terminator<VReg>)>,
    /// Where `continue` and `break` go, by loop.
    loops: Vec<(usize, usize)>,
}

impl Structured<'_> {
    /// A block that jumps nowhere as yet.
    fn open(&mut self) -> usize {
        let body = match self.random.below(3) {
            0 => vec![],
            _ => vec![marker(&mut self.vregs, self.blocks.len())],
        };
        self.blocks.push((body, Terminator::Exit));
        self.blocks.len() - 1
    }

    /// A branch, on which lanes mostly disagree.
    fn fork(&mut self, taken: usize, fallthrough: usize) -> Terminator<VReg> {
        Terminator::Branch {
            guard: guard(),
            taken: block(taken),
            fallthrough: block(fallthrough),
            divergent: self.random.below(6) != 0,
        }
    }

    /// Statements from the end of `at`; gives the block in which they end, if they do.
    fn statements(&mut self, mut at: usize, depth: u64) -> Option<usize> {
        for _ in 0..1 + self.random.below(3) {
            at = self.statement(at, depth)?;
        }
        Some(at)
    }

    fn statement(&mut self, at: usize, depth: u64) -> Option<usize> {
        let kind = if depth == 0 { 5 } else { self.random.below(8) };
        match kind {
            // An if, with or without another side, whose ends may share a block with what follows.
            0..=2 => {
                let (then, behind) = (self.open(), self.open());
                let other = if kind == 0 { behind } else { self.open() };
                self.blocks[at].1 = self.fork(then, other);
                if let Some(end) = self.statements(then, depth - 1) {
                    self.blocks[end].1 = jump(behind);
                }
                if other != behind
                    && let Some(end) = self.statements(other, depth - 1)
                {
                    self.blocks[end].1 = jump(behind);
                }
                Some(behind)
            }
            // A loop that is left at its head or at its end.
            3 | 4 => {
                let (head, body, behind) = (self.open(), self.open(), self.open());
                self.blocks[at].1 = jump(head);
                self.loops.push((head, behind));
                self.blocks[head].1 = match kind {
                    3 => self.fork(body, behind),
                    _ => jump(body),
                };
                if let Some(end) = self.statements(body, depth - 1) {
                    self.blocks[end].1 = match kind {
                        3 => jump(head),
                        _ => self.fork(head, behind),
                    };
                }
                self.loops.pop();
                Some(behind)
            }
            // `a && b && c`: several branches to one block.
            6 => {
                let (no, behind) = (self.open(), self.open());
                let mut last = at;
                for _ in 0..2 + self.random.below(3) {
                    let next = self.open();
                    self.blocks[last].1 = self.fork(next, no);
                    last = next;
                }
                self.blocks[last].1 = jump(behind);
                self.blocks[no].1 = jump(behind);
                Some(behind)
            }
            // Out of the loop, on in it, or to the end.
            7 => {
                let (out, behind) = (self.open(), self.open());
                self.blocks[at].1 = self.fork(out, behind);
                let (kind, inmost) = (self.random.below(4), self.loops.last().copied());
                self.blocks[out].1 = match (kind, inmost) {
                    (0, _) => Terminator::Exit,
                    (1, Some((head, _))) => jump(head),
                    (_, Some((_, behind))) => jump(behind),
                    _ => Terminator::Trap(1),
                };
                Some(behind)
            }
            _ => Some(at),
        }
    }
}

fn structured_function(random: &mut Random) -> VCode<VReg> {
    finished(structured_blocks(random, 4))
}

fn finished((blocks, vregs): (Blocks, u32)) -> VCode<VReg> {
    let mut code = kernel(blocks);
    code.vreg_count = vregs;
    super::edit::Editor::new(code).finish()
}

/// A small random function of nested statements, without critical edges.
pub(super) fn structured_function_with_split_edges(random: &mut Random) -> VCode<VReg> {
    let (mut blocks, mut vregs) = structured_blocks(random, 2);
    // Lanes that come to an exit by several ways do not merely end.
    for (number, (body, end)) in blocks.iter_mut().enumerate() {
        if body.is_empty() && matches!(end, Terminator::Exit) {
            body.push(marker(&mut vregs, number));
        }
    }
    split_edges(&mut blocks);
    finished((blocks, vregs))
}

type Blocks = Vec<(Vec<Inst<VReg>>, Terminator<VReg>)>;

/// The blocks of a random function of so many levels at most, and how many registers it has.
fn structured_blocks(random: &mut Random, levels: u64) -> (Blocks, u32) {
    let mut code = Structured {
        random,
        vregs: 1,
        blocks: Vec::new(),
        loops: Vec::new(),
    };
    let first = code.open();
    let depth = 1 + code.random.below(levels);
    code.statements(first, depth);
    let (vregs, threads) = (code.vregs, code.random.flip());
    let mut blocks = code.blocks;
    // Where sides come together that end in ifs themselves, all their ends may lead to one block.
    for at in (0..blocks.len()).rev().filter(|_| threads) {
        if let &[through] = &blocks[at].1.successors()[..]
            && let (body, Terminator::Jump { target, .. }) = &blocks[through.as_u32() as usize]
            && body.is_empty()
        {
            blocks[at].1 = jump(target.as_u32() as usize);
        }
    }
    (blocks, vregs)
}

/// Lets lanes of some branches meet nowhere, or later than their ways come together.
fn delay_some(random: &mut Random, code: &mut VCode<VReg>) {
    let meetings: Vec<Meeting> = code.blocks.values().map(|data| data.meeting).collect();
    for data in code.blocks.values_mut() {
        if let Meeting::At(at) = data.meeting {
            data.meeting = match random.below(8) {
                0 => Meeting::Nowhere,
                // Where those meet that part there.
                1..=2 if meetings[at.as_u32() as usize] != Meeting::Together => {
                    meetings[at.as_u32() as usize]
                }
                _ => data.meeting,
            };
        }
    }
}

fn one_by_one(meetings: &Meetings) -> Regions {
    search_one_by_one(meetings, &branches_by_meeting(meetings))
}

/// The text of code, all barriers having one number.
fn without_numbers(text: &str) -> String {
    let word = |word: &str| match word
        .strip_prefix('B')
        .map(|rest| rest.trim_end_matches(','))
    {
        Some(rest) if rest.parse::<u8>().is_ok() => "B".to_owned(),
        _ => word.to_owned(),
    };
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    words.join(" ")
}

/// Whether `nesting` says of the regions what their sets of blocks say.
fn agree(regions: &Regions, nesting: &Nesting, sets: &[BlockSet]) {
    let starts = |i: usize| regions.found[i].starts.iter().copied();
    for (i, set) in sets.iter().enumerate() {
        let mut around = 0;
        for (j, other) in sets.iter().enumerate().filter(|(j, _)| *j != i) {
            if starts(j).any(|s| set.contains(s)) || starts(i).any(|s| other.contains(s)) {
                let outer = other.is_superset(set);
                assert!(outer != set.is_superset(other), "{i} {j}: {regions:?}");
                assert_eq!(outer, nesting.blocks(j) > nesting.blocks(i));
                around += u32::from(outer);
            }
        }
        assert_eq!(nesting.around(i), around, "{i}: {regions:?}");
    }
    for block in 0..regions.apart.len() {
        let holding = || (0..sets.len()).filter(|&i| sets[i].contains(block));
        if holding().all(|i| starts(i).all(|s| s != block)) && holding().next().is_some() {
            // Lost blocks are in no region's level.
            let around = nesting.around_block(block);
            assert!(around == 0 || around as usize == holding().count());
        }
    }
}

#[test]
fn regions_do_not_depend_on_how_they_are_searched() {
    let mut random = Random::for_test("nested regions");
    let (mut nested, mut closed, mut given_up, mut deep) = (0, 0, 0, 0);
    for round in 0..3000 {
        let code = match round % 3 {
            0 => random_function(&mut random, round % 2 == 0),
            _ => structured_function(&mut random),
        };
        let ends = merely_end(&code);
        let mut code = meet_at_post_dominators(code, &ends);
        if round % 4 == 3 {
            delay_some(&mut random, &mut code);
        }
        let several = Cell::new(false);
        let check = |meetings: &Meetings| {
            let expected = one_by_one(meetings);
            several.set(expected.found.iter().any(|region| region.starts.len() > 1));
            if let Some(found) = nesting::search(meetings, &branches_by_meeting(meetings)) {
                assert_eq!(found.found, expected.found, "round {round}\n{code}");
                assert_eq!(found.apart, expected.apart, "round {round}\n{code}");
                let whole = found.found.iter().all(|region| region.places.is_empty());
                if let (Extents::Nested(nesting), Extents::Sets(sets), true) =
                    (&found.extents, &expected.extents, whole)
                {
                    agree(&found, nesting, sets);
                    return (expected, Some(found.found.len()));
                }
                return (expected, Some(0));
            }
            (expected, None)
        };
        let results = RefCell::new(Vec::new());
        let search = |meetings: &Meetings| {
            let (expected, regions) = check(meetings);
            results.borrow_mut().push(regions);
            expected
        };
        let expected = insert_barriers_around(code.clone(), search, BARRIERS);
        let done = insert_barriers_around(code.clone(), regions, BARRIERS);
        match results.borrow().last() {
            Some(Some(regions)) => {
                nested += 1;
                closed += regions;
                deep += usize::from(*regions > 4);
            }
            Some(None) => given_up += 1,
            None => {}
        }
        // A region that is entered at several places may come behind those in it when all are numbered by their sets.
        let text = |code: &VCode<VReg>| match several.get() {
            true => without_numbers(&code.to_string()),
            false => code.to_string(),
        };
        assert_eq!(
            done.as_ref().map(text),
            expected.as_ref().map(text),
            "round {round}\n{code}"
        );
    }
    println!("{nested} nested, {closed} regions in them, {deep} of many, {given_up} given up");
    assert!(
        nested > 1000 && closed > 3000 && deep > 200 && given_up > 50,
        "{nested} {closed} {deep} {given_up}"
    );
}

#[test]
fn nested_regions_get_the_barriers_of_their_sets() {
    // Regions that each hold the next ones up to 2 blocks from both ends.
    let depth = 40;
    let sets = |i: usize| -> BlockSet { (2 * i..4 * depth - 2 * i).collect() };
    let ranges = |extent: &dyn Fn(usize) -> Extent| -> Vec<LiveRange> {
        let range = |i| LiveRange {
            starts: vec![2 * i],
            meeting: 4 * depth - 2 * i,
            call: None,
            extent: extent(i),
        };
        (0..depth).map(range).collect()
    };
    let by_sets = assign(&ranges(&|i| Extent::Set(sets(i))), 4 * depth + 1, BARRIERS);
    let by_depth = assign(
        &ranges(&|i| Extent::Nested {
            around: i as u32,
            blocks: sets(i).len(),
        }),
        4 * depth + 1,
        BARRIERS,
    );
    assert_eq!(by_depth, by_sets);
    let aside = |a: &&Assignment| a.aside.is_some();
    assert_eq!(by_sets.iter().filter(aside).count(), depth - 15);
}

/// A function being written block by block; every block computes something.
#[derive(Default)]
struct Shape {
    vregs: u32,
    ends: Vec<Terminator<VReg>>,
}

impl Shape {
    fn add(&mut self, end: Terminator<VReg>) {
        self.ends.push(end);
    }

    /// Where lanes meet is known: at the post-dominators.
    fn finish(mut self) -> VCode<VReg> {
        self.add(Terminator::Exit);
        let vregs = &mut self.vregs;
        *vregs = 1;
        let blocks = self.ends.into_iter().enumerate();
        let mut code = kernel(
            blocks
                .map(|(number, end)| (vec![marker(vregs, number)], end))
                .collect(),
        );
        code.vreg_count = *vregs;
        let early = |b: usize| b + 1 != code.blocks.len() && successors_of(&code, b).is_empty();
        let ends: Vec<bool> = (0..code.blocks.len()).map(early).collect();
        meet_at_post_dominators(super::edit::Editor::new(code).finish(), &ends)
    }
}

/// Ifs in ifs, with something behind each.
fn nested_ifs(count: usize) -> VCode<VReg> {
    let mut shape = Shape::default();
    for i in 0..count {
        shape.add(branch(i + 1, 2 * count - i));
    }
    for i in count..2 * count {
        shape.add(jump(i + 1));
    }
    shape.finish()
}

/// Loops in loops that lanes leave at their ends one by one.
fn nested_loops(count: usize) -> VCode<VReg> {
    let mut shape = Shape::default();
    for i in 0..=count {
        shape.add(jump(i + 1));
    }
    for i in 0..count {
        shape.add(branch(count - i, count + 2 + i));
    }
    shape.finish()
}

/// `if (a && b && ...)`: the other side has one block.
fn conjunction(count: usize) -> VCode<VReg> {
    let mut shape = Shape::default();
    for i in 0..count {
        shape.add(branch(i + 1, count + 1));
    }
    shape.add(jump(count + 2));
    shape.add(jump(count + 2));
    shape.finish()
}

/// One loop with many places from which lanes go on to its next round.
fn continues(count: usize) -> VCode<VReg> {
    let mut shape = Shape::default();
    shape.add(jump(1));
    for i in 0..count {
        shape.add(branch(1, i + 2));
    }
    shape.finish()
}

/// Ifs one behind the other, each with an early end in it.
fn sequence(count: usize) -> VCode<VReg> {
    let mut shape = Shape::default();
    for i in (0..4 * count).step_by(4) {
        shape.add(branch(i + 1, i + 4));
        shape.add(branch(i + 2, i + 3));
        shape.add(Terminator::Exit);
        shape.add(jump(i + 4));
    }
    shape.finish()
}

/// All blocks and all regions are looked at a bounded number of times, whatever the shape of the code.
#[test]
fn the_search_takes_time_as_the_code_grows() {
    type Maker = fn(usize) -> VCode<VReg>;
    let shapes: [(&str, Maker); 5] = [
        ("nested ifs", nested_ifs),
        ("nested loops", nested_loops),
        ("conjunction", conjunction),
        ("continues", continues),
        ("sequence", sequence),
    ];
    for (name, make) in shapes {
        for size in [40, 1000] {
            let code = make(size);
            let meetings = Meetings::of(&code);
            let (steps, done) = nesting::steps(&meetings, &branches_by_meeting(&meetings));
            assert!(done, "{name}");
            let edges: usize = (0..code.blocks.len())
                .map(|b| meetings.graph().successors(b).len())
                .sum();
            assert!(steps <= 4 * edges, "{name}: {steps} for {edges} edges");
            let expected = match name {
                "conjunction" => 1,
                _ => size,
            };
            let rounds = Cell::new(0);
            let search = |meetings: &Meetings| {
                rounds.set(rounds.get() + 1);
                regions(meetings)
            };
            let done = insert_barriers_around(code, search, BARRIERS).unwrap();
            assert!(rounds.get() <= 2, "{name}: {} rounds", rounds.get());
            assert_eq!(count(&done, Optype::BSSY), expected, "{name}");
            assert_eq!(count(&done, Optype::BSYNC), expected, "{name}");
        }
    }
}
