//! What variables are before each instruction of a function.
//!
//! In: the function as the front end gave it, its dominators, and the assignments. Instructions are numbered by
//! moments: neighbours between which nothing is assigned share one. Out: for each piece of a variable that is assigned
//! to as a whole ([`Fragment`]), what it is in which moments.
//!
//! Moments ascend in the preorder of the dominator tree, so what holds wherever a block dominates holds in one range of
//! them. A fragment that is assigned to in one block is that there. For others there is a forward data flow over the
//! blocks that their nearest common dominator dominates, since elsewhere they are nothing: where paths meet on which it
//! is different things, nobody knows. An assignment to some bytes ends what was known of every fragment that it
//! overlaps.

use super::{Assigned, Assignment, Base, Position};
use crate::values::preorder::Preorder;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes of a variable that are assigned to together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// The variable.
    pub variable: u32,
    /// Where they begin in it.
    pub offset: u32,
    /// How many.
    pub bytes: u32,
    /// What it is from which moment to which, in ascending order.
    runs: Vec<Run>,
}

/// What a fragment is, by number in [`Moments::assigned`].
type Number = u32;

/// Of what nobody knows.
const NOTHING: Number = 0;

/// In these moments a fragment is this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: u32,
    end: u32,
    assigned: Number,
}

/// The moments of a function.
#[derive(Debug)]
pub(crate) struct Moments {
    /// By variable, then by offset.
    fragments: Vec<Fragment>,
    /// All that is assigned, each once.
    assigned: Vec<Assigned>,
    /// The moments of a block.
    blocks: SecondaryMap<Block, Range<u32>>,
    /// The moment of the branch to a block, if there is one only.
    branches: SecondaryMap<Block, u32>,
}

/// No moment: nothing is known of any variable.
pub(crate) const NO_MOMENT: u32 = u32::MAX;

/// In a block, from a moment on, a fragment is this.
#[derive(Clone, Copy)]
struct Event {
    fragment: u32,
    block: Block,
    moment: u32,
    assigned: Number,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            fragments: Vec::new(),
            assigned: Vec::new(),
            blocks: SecondaryMap::with_default(0..0),
            branches: SecondaryMap::with_default(NO_MOMENT),
        }
    }
}

impl Moments {
    /// Finds them; and for each instruction its own.
    pub fn of(
        func: &Function,
        cfg: &ControlFlowGraph,
        domtree: &DominatorTree,
        order: &Preorder,
        assignments: &[Assignment],
    ) -> (Self, SecondaryMap<Inst, u32>) {
        let Numbered {
            mut moments,
            events,
            of_inst,
        } = number(func, order, assignments);
        for &block in order.blocks() {
            let mut edges = cfg.pred_iter(block);
            if let (Some(edge), None) = (edges.next(), edges.next()) {
                moments.branches[block] = moments.blocks[edge.block].end.saturating_sub(1);
            }
        }
        let flow = Flow {
            cfg,
            domtree,
            order,
        };
        for events in events.chunk_by(|a, b| a.fragment == b.fragment) {
            let is_of_one = events.iter().all(|event| event.block == events[0].block);
            let runs = match is_of_one {
                true => moments.runs_of_block(events, order),
                false => moments.runs(events, &flow.starts(events)),
            };
            moments.fragments[events[0].fragment as usize].runs = runs;
        }
        (moments, of_inst)
    }

    /// The fragments of a variable.
    pub fn fragments_of(&self, variable: u32) -> impl Iterator<Item = &Fragment> {
        let first = self
            .fragments
            .partition_point(|fragment| fragment.variable < variable);
        self.fragments[first..]
            .iter()
            .take_while(move |fragment| fragment.variable == variable)
    }

    /// What a fragment is from which moment to which, in order.
    pub fn runs_of<'a>(
        &'a self,
        fragment: &'a Fragment,
    ) -> impl Iterator<Item = (Range<u32>, &'a Assigned)> {
        let assigned = |number: Number| &self.assigned[number as usize];
        (fragment.runs.iter()).map(move |run| (run.start..run.end, assigned(run.assigned)))
    }

    /// The moment of the branch to a block that one branch alone leads to.
    pub fn branch_to(&self, block: Block) -> u32 {
        self.branches[block]
    }

    /// What a fragment is in each moment, by what happens to it and what it is at the start of blocks.
    fn runs(&self, events: &[Event], starts: &[(Block, Number)]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut add = |start: u32, end: u32, assigned: Number| {
            if start == end || assigned == NOTHING {
                return;
            }
            let last = runs.last_mut();
            match last.filter(|last| last.end == start && last.assigned == assigned) {
                Some(last) => last.end = end,
                None => runs.push(Run {
                    start,
                    end,
                    assigned,
                }),
            }
        };
        let mut events = events.iter().peekable();
        for &(block, at_start) in starts {
            let Range { mut start, end } = self.blocks[block].clone();
            let mut assigned = at_start;
            while let Some(event) = events.next_if(|event| event.block == block) {
                add(start, event.moment, assigned);
                (start, assigned) = (event.moment, event.assigned);
            }
            add(start, end, assigned);
        }
        runs
    }

    /// The same of a fragment that is assigned to in one block: the last holds wherever that dominates.
    fn runs_of_block(&self, events: &[Event], order: &Preorder) -> Vec<Run> {
        let dominated = order.subtree(events[0].block);
        let last = order.blocks()[dominated.end - 1];
        let ends = events.iter().skip(1).map(|event| event.moment);
        let ends = ends.chain([self.blocks[last].end]);
        let runs = events.iter().zip(ends).map(|(event, end)| Run {
            start: event.moment,
            end,
            assigned: event.assigned,
        });
        let is_known = |run: &Run| run.start < run.end && run.assigned != NOTHING;
        runs.filter(is_known).collect()
    }
}

impl Fragment {
    fn key(&self) -> (u32, u32, u32) {
        (self.variable, self.offset, self.bytes)
    }

    fn overlaps(&self, other: &Fragment) -> bool {
        self.offset < other.offset + other.bytes && other.offset < self.offset + self.bytes
    }
}

/// The moments of a function, before anybody knows what fragments are in them.
struct Numbered {
    moments: Moments,
    events: Vec<Event>,
    /// By instruction.
    of_inst: SecondaryMap<Inst, u32>,
}

/// Numbers the moments, and finds the fragments and what happens to them.
fn number(func: &Function, order: &Preorder, assignments: &[Assignment]) -> Numbered {
    let mut behind: SecondaryMap<Inst, SmallVec<[u32; 1]>> = SecondaryMap::new();
    let mut at_start: SecondaryMap<Block, SmallVec<[u32; 1]>> = SecondaryMap::new();
    for (number, assignment) in (0..).zip(assignments) {
        match assignment.from {
            Position::Start(block) => at_start[block].push(number),
            Position::Behind(inst) => behind[inst].push(number),
        }
    }
    let mut assigned = Interned::default();
    let fragments = fragments(assignments);
    let mut events: Vec<Event> = Vec::new();
    let mut happens = |number: u32, block: Block, moment: u32| {
        let assignment = &assignments[number as usize];
        let Ok(own) = fragments.binary_search_by_key(&key(assignment), Fragment::key) else {
            return;
        };
        let first = fragments.partition_point(|fragment| fragment.variable < assignment.variable);
        let of_variable = fragments[first..].iter().zip(first..);
        let of_variable =
            of_variable.take_while(|(fragment, _)| fragment.variable == assignment.variable);
        for (_, index) in of_variable.filter(|(fragment, _)| fragment.overlaps(&fragments[own])) {
            let assigned = match index == own {
                true => assigned.number(resolved(func, &assignment.assigned)),
                false => NOTHING,
            };
            let fragment = index as u32;
            events.push(Event {
                fragment,
                block,
                moment,
                assigned,
            });
        }
    };
    let mut blocks = SecondaryMap::with_default(0..0);
    let mut of_inst = SecondaryMap::with_default(NO_MOMENT);
    let mut moment = 0;
    for &block in order.blocks() {
        let first = moment;
        for &number in &at_start[block] {
            happens(number, block, moment);
        }
        for inst in func.layout.block_insts(block) {
            of_inst[inst] = moment;
            if !behind[inst].is_empty() {
                moment += 1;
                for &number in &behind[inst] {
                    happens(number, block, moment);
                }
            }
        }
        moment += 1;
        blocks[block] = first..moment;
    }
    // Of several that happen to a fragment at one moment the last counts.
    events.sort_by_key(|event| (event.fragment, event.moment));
    let last = events.chunk_by(|a, b| (a.fragment, a.moment) == (b.fragment, b.moment));
    let events = last.filter_map(|same| same.last().copied()).collect();
    let moments = Moments {
        fragments,
        assigned: assigned.list,
        blocks,
        branches: SecondaryMap::with_default(NO_MOMENT),
    };
    Numbered {
        moments,
        events,
        of_inst,
    }
}

/// The bytes that are assigned to, each piece once, in order.
fn fragments(assignments: &[Assignment]) -> Vec<Fragment> {
    let fragment = |assignment: &Assignment| {
        let (variable, offset, bytes) = key(assignment);
        Fragment {
            variable,
            offset,
            bytes,
            runs: Vec::new(),
        }
    };
    let mut fragments: Vec<Fragment> = assignments.iter().map(fragment).collect();
    fragments.sort_by_key(Fragment::key);
    fragments.dedup();
    fragments
}

/// What tells fragments apart.
fn key(assignment: &Assignment) -> (u32, u32, u32) {
    let bytes = &assignment.bytes;
    (assignment.variable, bytes.start, bytes.len() as u32)
}

/// What is assigned, with values in the place of their aliases.
fn resolved(func: &Function, assigned: &Assigned) -> Assigned {
    match assigned {
        Assigned::Value(value) => Assigned::Value(func.dfg.resolve_aliases(*value)),
        Assigned::Memory {
            base: Base::Value(value, offset),
            path,
        } => Assigned::Memory {
            base: Base::Value(func.dfg.resolve_aliases(*value), *offset),
            path: path.clone(),
        },
        other => other.clone(),
    }
}

/// What is assigned, each once.
struct Interned {
    list: Vec<Assigned>,
    numbers: HashMap<Assigned, Number>,
}

impl Default for Interned {
    fn default() -> Self {
        Self {
            list: vec![Assigned::Nothing],
            numbers: HashMap::from([(Assigned::Nothing, NOTHING)]),
        }
    }
}

impl Interned {
    fn number(&mut self, assigned: Assigned) -> Number {
        let list = &mut self.list;
        *self.numbers.entry(assigned).or_insert_with_key(|assigned| {
            list.push(assigned.clone());
            list.len() as Number - 1
        })
    }
}

struct Flow<'a> {
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
    order: &'a Preorder,
}

impl Flow<'_> {
    /// What a fragment is at the start of each block where it may be anything, by what happens to it: in order those
    /// that the nearest common dominator of its assignments dominates. Whoever comes to others has not come by any.
    fn starts(&self, events: &[Event]) -> Vec<(Block, Number)> {
        // What a block dominates stands together: if the first and the last are in it, all are.
        let (mut common, last) = (events[0].block, events[events.len() - 1].block);
        while !self.order.dominates(common, last)
            && let Some(next) = self.domtree.idom(common)
        {
            common = next;
        }
        let mut ends: HashMap<Block, Number> = HashMap::new();
        for event in events {
            ends.insert(event.block, event.assigned);
        }
        // What nothing has come to yet may still be anything.
        let places = self.order.subtree(common);
        let blocks = &self.order.blocks()[places.clone()];
        let mut known: Vec<Option<Number>> = vec![None; blocks.len()];
        known[0] = Some(NOTHING);
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for (index, &block) in blocks.iter().enumerate().skip(1) {
                let mut start = None;
                for edge in self.cfg.pred_iter(block) {
                    let from = self.order.subtree(edge.block).start;
                    let known = from.checked_sub(places.start).map(|from| known[from]);
                    let end = ends.get(&edge.block).copied().or(known.flatten());
                    start = match (start, end) {
                        (start, None) => start,
                        (None, end) => end,
                        (Some(start), Some(end)) if start == end => Some(start),
                        _ => Some(NOTHING),
                    };
                }
                if known[index] != start {
                    known[index] = start;
                    has_changed = true;
                }
            }
        }
        let starts = known.into_iter().map(|start| start.unwrap_or(NOTHING));
        blocks.iter().copied().zip(starts).collect()
    }
}
