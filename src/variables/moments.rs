//! What variables are before each instruction of a function.
//!
//! In: the function as the front end gave it, its dominators, and the assignments. Instructions are numbered by
//! moments: neighbours between which nothing is assigned share one. Out: for each piece of a variable that is assigned
//! to as a whole ([`Cell`]), what it is in which moments.
//!
//! A cell that is assigned to once is that wherever its assignment dominates. For others there is a forward data flow
//! over the blocks: where paths meet on which it is different things, nobody knows. An assignment to some bytes ends
//! what was known of every cell that it overlaps.

use super::{Assigned, Assignment, Base, Position};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function, Inst};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes of a variable that are assigned to together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The variable.
    pub variable: u32,
    /// Where they begin in it.
    pub offset: u32,
    /// How many.
    pub bytes: u32,
    /// What it is from which moment to which, in ascending order.
    runs: Vec<Run>,
}

/// What a cell is, by number in [`Moments::assigned`].
type Number = u32;

/// Of what nobody knows.
const NOTHING: Number = 0;

/// In these moments a cell is this.
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
    cells: Vec<Cell>,
    /// All that is assigned, each once.
    assigned: Vec<Assigned>,
    /// The moment of the first instruction of a block, and the one behind that of its last.
    blocks: SecondaryMap<Block, (u32, u32)>,
    /// The moment of the branch to a block, if there is one only.
    branches: SecondaryMap<Block, u32>,
}

/// No moment: nothing is known of any variable.
pub(crate) const NO_MOMENT: u32 = u32::MAX;

/// In a block, from a moment on, a cell is this.
#[derive(Clone, Copy)]
struct Event {
    cell: u32,
    block: Block,
    moment: u32,
    assigned: Number,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            assigned: Vec::new(),
            blocks: SecondaryMap::with_default((0, 0)),
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
        assignments: &[Assignment],
    ) -> (Self, SecondaryMap<Inst, u32>) {
        let Numbered {
            mut moments,
            events,
            of_inst,
        } = number(func, assignments);
        for block in func.layout.blocks() {
            let mut edges = cfg.pred_iter(block);
            if let (Some(edge), None) = (edges.next(), edges.next()) {
                moments.branches[block] = moments.blocks[edge.block].1.saturating_sub(1);
            }
        }
        let flow = Flow { func, cfg, domtree };
        for of_cell in events.chunk_by(|a, b| a.cell == b.cell) {
            let starts = flow.starts(of_cell);
            let runs = moments.runs(func, of_cell, &starts);
            moments.cells[of_cell[0].cell as usize].runs = runs;
        }
        (moments, of_inst)
    }

    /// The cells of a variable.
    pub fn cells_of(&self, variable: u32) -> impl Iterator<Item = &Cell> {
        let first = self.cells.partition_point(|cell| cell.variable < variable);
        self.cells[first..]
            .iter()
            .take_while(move |cell| cell.variable == variable)
    }

    /// What a cell is from which moment to which, in order.
    pub fn runs_of<'a>(
        &'a self,
        cell: &'a Cell,
    ) -> impl Iterator<Item = (Range<u32>, &'a Assigned)> {
        let assigned = |number: Number| &self.assigned[number as usize];
        (cell.runs.iter()).map(move |run| (run.start..run.end, assigned(run.assigned)))
    }

    /// The moment of the branch to a block that one branch alone leads to.
    pub fn branch_to(&self, block: Block) -> u32 {
        self.branches[block]
    }

    /// What a cell is in each moment, where its blocks begin with what `starts` says.
    fn runs(
        &self,
        func: &Function,
        events: &[Event],
        starts: &SecondaryMap<Block, Number>,
    ) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut next = 0;
        for block in func.layout.blocks() {
            let (mut start, end) = self.blocks[block];
            let mut assigned = starts[block];
            let mut add = |start: u32, end: u32, assigned: Number| {
                if start == end || assigned == NOTHING {
                    return;
                }
                match runs
                    .last_mut()
                    .filter(|last| last.end == start && last.assigned == assigned)
                {
                    Some(last) => last.end = end,
                    None => runs.push(Run {
                        start,
                        end,
                        assigned,
                    }),
                }
            };
            while let Some(event) = events.get(next).filter(|event| event.block == block) {
                add(start, event.moment, assigned);
                (start, assigned) = (event.moment, event.assigned);
                next += 1;
            }
            add(start, end, assigned);
        }
        runs
    }
}

impl Cell {
    fn key(&self) -> (u32, u32, u32) {
        (self.variable, self.offset, self.bytes)
    }

    fn overlaps(&self, other: &Cell) -> bool {
        self.offset < other.offset + other.bytes && other.offset < self.offset + self.bytes
    }
}

/// The moments of a function, before anybody knows what cells are in them.
struct Numbered {
    moments: Moments,
    events: Vec<Event>,
    /// By instruction.
    of_inst: SecondaryMap<Inst, u32>,
}

/// Numbers the moments, and finds the cells and what happens to them.
fn number(func: &Function, assignments: &[Assignment]) -> Numbered {
    let mut behind: SecondaryMap<Inst, SmallVec<[u32; 1]>> = SecondaryMap::new();
    let mut at_start: SecondaryMap<Block, SmallVec<[u32; 1]>> = SecondaryMap::new();
    for (number, assignment) in (0..).zip(assignments) {
        match assignment.from {
            Position::Start(block) => at_start[block].push(number),
            Position::Behind(inst) => behind[inst].push(number),
        }
    }
    let mut assigned = Interned::default();
    let cells = cells(assignments);
    let mut events: Vec<Event> = Vec::new();
    let mut happens = |number: u32, block: Block, moment: u32| {
        let assignment = &assignments[number as usize];
        let Ok(own) = cells.binary_search_by_key(&key(assignment), Cell::key) else {
            return;
        };
        let first = cells.partition_point(|cell| cell.variable < assignment.variable);
        let of_variable = cells[first..].iter().zip(first..);
        let of_variable = of_variable.take_while(|(cell, _)| cell.variable == assignment.variable);
        for (_, index) in of_variable.filter(|(cell, _)| cell.overlaps(&cells[own])) {
            let assigned = match index == own {
                true => assigned.number(resolved(func, &assignment.assigned)),
                false => NOTHING,
            };
            let cell = index as u32;
            events.push(Event {
                cell,
                block,
                moment,
                assigned,
            });
        }
    };
    let mut blocks = SecondaryMap::with_default((0, 0));
    let mut of_inst = SecondaryMap::with_default(NO_MOMENT);
    let mut moment = 0;
    for block in func.layout.blocks() {
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
        blocks[block] = (first, moment);
    }
    // Of several that happen to a cell at one moment the last counts.
    events.sort_by_key(|event| (event.cell, event.moment));
    let last = events.chunk_by(|a, b| (a.cell, a.moment) == (b.cell, b.moment));
    let events = last.filter_map(|same| same.last().copied()).collect();
    let moments = Moments {
        cells,
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
fn cells(assignments: &[Assignment]) -> Vec<Cell> {
    let cell = |assignment: &Assignment| {
        let (variable, offset, bytes) = key(assignment);
        Cell {
            variable,
            offset,
            bytes,
            runs: Vec::new(),
        }
    };
    let mut cells: Vec<Cell> = assignments.iter().map(cell).collect();
    cells.sort_by_key(Cell::key);
    cells.dedup();
    cells
}

/// What tells cells apart.
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
    func: &'a Function,
    cfg: &'a ControlFlowGraph,
    domtree: &'a DominatorTree,
}

impl Flow<'_> {
    /// What a cell is at the start of each block, by what happens to it.
    fn starts(&self, events: &[Event]) -> SecondaryMap<Block, Number> {
        let mut starts = SecondaryMap::with_default(NOTHING);
        let first = events[0];
        if events.iter().all(|event| event.block == first.block) {
            // Blocks that it dominates have it, unless it comes round to its own block another way.
            let assigned = events[events.len() - 1].assigned;
            for block in self.func.layout.blocks() {
                if block != first.block && self.domtree.block_dominates(first.block, block) {
                    starts[block] = assigned;
                }
            }
            return starts;
        }
        let mut ends: HashMap<Block, Number> = HashMap::new();
        for event in events {
            ends.insert(event.block, event.assigned);
        }
        // What nothing has come to yet may still be anything.
        let mut known: SecondaryMap<Block, Option<Number>> = SecondaryMap::new();
        let entry = self.func.layout.entry_block();
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for &block in self.domtree.cfg_postorder().iter().rev() {
                let mut start = (Some(block) == entry).then_some(NOTHING);
                for edge in self.cfg.pred_iter(block) {
                    let end = ends.get(&edge.block).copied().or(known[edge.block]);
                    start = match (start, end) {
                        (start, None) => start,
                        (None, end) => end,
                        (Some(start), Some(end)) if start == end => Some(start),
                        _ => Some(NOTHING),
                    };
                }
                if known[block] != start {
                    known[block] = start;
                    has_changed = true;
                }
            }
        }
        for block in self.func.layout.blocks() {
            starts[block] = known[block].unwrap_or(NOTHING);
        }
        starts
    }
}
