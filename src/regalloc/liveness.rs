//! Which values are alive at the borders of blocks, and where each value's life ends.
//!
//! The sets are lists, because few of the values of a long function are alive at any one border: from every use outside
//! of the block that defines a value the walk goes backwards to the definition (liveness by use), so the work is the
//! size of the result. Inside a block everything follows from the sets and one walk.
//!
//! A *position* orders all places of a function: a block's entry, its instructions and its terminator, block after
//! block. It is the measure for "defined while alive" questions of the colouring.

use crate::isa::{Register, VReg};
use crate::vcode::{Block, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;

/// Not a value of the sets; not a position.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
struct Value {
    /// Block of the definition.
    block: u32,
    /// Position of the definition.
    position: u32,
    /// Its number in the sets.
    row: u32,
    /// Number of uses.
    uses: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// By value.
    known: Vec<Value>,
    /// The values of the sets.
    names: Vec<VReg>,
    live_in: Sets,
    live_out: Sets,
    /// The last position at which a value is alive, in the linear order.
    end: Vec<u32>,
    /// Start of a value's entries in `use_positions`; one more at the end.
    use_start: Vec<u32>,
    /// Positions of uses, ascending for each value.
    use_positions: Vec<u32>,
    /// Predecessors of each block, and where they begin.
    predecessors: Vec<u32>,
    predecessor_start: Vec<u32>,
    /// Blocks whose predecessors are still to be visited.
    pending: Vec<u32>,
    /// Uses of values outside of their block: `(row, block)`.
    crossing: Vec<(u32, u32)>,
    /// All uses in order: `(value, position)`.
    uses: Vec<(u32, u32)>,
}

/// The position of a block's entry.
pub(super) fn entry_position<R>(code: &VCode<R>, block: Block) -> u32
where
    R: Register,
{
    code.blocks[block].insts.start + 2 * block.index() as u32
}

/// The position of instruction `index` of [`VCode::insts`], which is in `block`.
pub(super) fn position(block: Block, index: u32) -> u32 {
    index + 2 * block.index() as u32 + 1
}

/// The position of a block's terminator.
pub(super) fn end_position<R: Register>(code: &VCode<R>, block: Block) -> u32 {
    position(block, code.blocks[block].insts.end)
}

impl Liveness {
    /// Computes everything for `code`.
    pub fn compute(&mut self, code: &VCode<VReg>) {
        self.walk::<true>(code);
        self.find_sets(code);
        self.sort_uses();
        self.find_ends(code);
    }

    /// Computes the sets alone: what [`Liveness::live_in`], [`Liveness::live_out`] and [`Liveness::is_dead`] need.
    pub fn compute_sets(&mut self, code: &VCode<VReg>) {
        self.walk::<false>(code);
        self.find_sets(code);
    }

    /// Finds definitions, uses, and with `POSITIONS` where the uses are. Blocks are in reverse postorder, so that a
    /// definition comes before its uses.
    fn walk<const POSITIONS: bool>(&mut self, code: &VCode<VReg>) {
        self.known.clear();
        let unknown = Value {
            block: NONE,
            position: NONE,
            row: NONE,
            uses: 0,
        };
        self.known.resize(code.vreg_count as usize, unknown);
        self.names.clear();
        self.crossing.clear();
        self.uses.clear();
        for (v, _) in &code.entry {
            self.define(*v, code.entry_block(), 0);
        }
        for (block, data) in code.blocks.iter() {
            for &v in &data.params {
                self.define(v, block, entry_position(code, block));
            }
            for (i, entry) in data.insts.clone().zip(code.block_insts(block)) {
                let position = position(block, i);
                code.uses(entry)
                    .for_each(|v| self.note::<POSITIONS>(v, block, position));
                code.definitions(entry)
                    .for_each(|v| self.define(v, block, position));
            }
            let end = end_position(code, block);
            for v in data.terminator.uses() {
                self.note::<POSITIONS>(v, block, end);
            }
        }
    }

    #[inline]
    fn define(&mut self, v: VReg, block: Block, position: u32) {
        let value = &mut self.known[v.index()];
        value.block = block.index() as u32;
        value.position = position;
    }

    #[inline]
    fn note<const POSITIONS: bool>(&mut self, v: VReg, block: Block, position: u32) {
        let number = block.index() as u32;
        let value = &mut self.known[v.index()];
        value.uses += 1;
        if value.block != number {
            if value.row == NONE {
                value.row = self.names.len() as u32;
                self.names.push(v);
            }
            self.crossing.push((value.row, number));
        }
        if POSITIONS {
            self.uses.push((v.index() as u32, position));
        }
    }

    fn find_sets(&mut self, code: &VCode<VReg>) {
        let blocks = code.blocks.len();
        self.live_in.clear(blocks);
        self.live_out.clear(blocks);
        if !self.crossing.is_empty() {
            self.find_predecessors(code);
            self.solve();
        }
        self.live_in.sort();
        self.live_out.sort();
    }

    /// Sorts the positions of uses by value.
    fn sort_uses(&mut self) {
        let starts = &mut self.use_start;
        starts.clear();
        let mut sum = 0;
        starts.extend(self.known.iter().map(|value| {
            let start = sum;
            sum += value.uses;
            start
        }));
        starts.push(sum);
        self.use_positions.clear();
        self.use_positions.resize(self.uses.len(), 0);
        for &(v, position) in &self.uses {
            let place = &mut starts[v as usize];
            self.use_positions[*place as usize] = position;
            *place += 1;
        }
        // Each start has moved to its end, which is the next one's start.
        starts.copy_within(..self.known.len(), 1);
        starts[0] = 0;
    }

    fn find_predecessors(&mut self, code: &VCode<VReg>) {
        let edges = || {
            let blocks = code.blocks.iter();
            blocks.flat_map(|(block, data)| {
                let successors = data.terminator.successors();
                successors
                    .into_iter()
                    .map(move |s| (block.index() as u32, s.index()))
            })
        };
        let starts = &mut self.predecessor_start;
        starts.clear();
        starts.resize(code.blocks.len() + 1, 0);
        edges().for_each(|(_, to)| starts[to + 1] += 1);
        for block in 0..code.blocks.len() {
            starts[block + 1] += starts[block];
        }
        self.predecessors.clear();
        self.predecessors
            .resize(starts[code.blocks.len()] as usize, 0);
        for (from, to) in edges() {
            self.predecessors[starts[to] as usize] = from;
            starts[to] += 1;
        }
        // Each start has moved to its end, which is the next one's start.
        starts.copy_within(..code.blocks.len(), 1);
        starts[0] = 0;
    }

    fn solve(&mut self) {
        // Value after value, so that one mark a block says whether the value is there.
        self.crossing.sort_unstable();
        for &(row, block) in &self.crossing {
            let definition = self.known[self.names[row as usize].index()].block;
            if !self.live_in.add(block, row) {
                continue;
            }
            self.pending.push(block);
            while let Some(block) = self.pending.pop() {
                let range = self.predecessor_start[block as usize] as usize
                    ..self.predecessor_start[block as usize + 1] as usize;
                for &before in &self.predecessors[range] {
                    let new = self.live_out.add(before, row);
                    if new && before != definition && self.live_in.add(before, row) {
                        self.pending.push(before);
                    }
                }
            }
        }
    }

    fn find_ends(&mut self, code: &VCode<VReg>) {
        self.end.clear();
        self.end.resize(self.known.len(), NONE);
        for (v, end) in self.end.iter_mut().enumerate() {
            let range = self.use_start[v] as usize..self.use_start[v + 1] as usize;
            *end = self.use_positions[range]
                .last()
                .copied()
                .unwrap_or(self.known[v].position);
        }
        for block in code.blocks.keys() {
            let position = end_position(code, block);
            for &row in self.live_out.of(block) {
                let end = &mut self.end[self.names[row as usize].index()];
                *end = (*end).max(position + 1);
            }
        }
    }

    /// Values alive at the entry of a block, its parameters left out.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = VReg> + '_ {
        let rows = self.live_in.of(block).iter();
        rows.map(|row| self.names[*row as usize])
    }

    /// Values alive on the edges out of a block, arguments left out unless they live on.
    pub fn live_out(&self, block: Block) -> impl Iterator<Item = VReg> + '_ {
        let rows = self.live_out.of(block).iter();
        rows.map(|row| self.names[*row as usize])
    }

    /// Whether `v` is alive on the edges out of `block`.
    pub fn is_live_out(&self, v: VReg, block: Block) -> bool {
        let row = self.known[v.index()].row;
        row != NONE && self.live_out.of(block).binary_search(&row).is_ok()
    }

    /// Whether `v` is alive at the entry of `block`; its parameters are not.
    pub fn is_live_in(&self, v: VReg, block: Block) -> bool {
        let row = self.known[v.index()].row;
        row != NONE && self.live_in.of(block).binary_search(&row).is_ok()
    }

    /// Position of the definition.
    pub fn def_position(&self, v: VReg) -> u32 {
        self.known[v.index()].position
    }

    /// The block of the definition, as a number.
    pub fn def_block(&self, v: VReg) -> Block {
        Block::from_u32(self.known[v.index()].block)
    }

    /// The last position at which it is alive, in the linear order.
    pub fn end(&self, v: VReg) -> u32 {
        self.end[v.index()]
    }

    /// Positions of its uses, ascending.
    pub fn uses(&self, v: VReg) -> &[u32] {
        &self.use_positions
            [self.use_start[v.index()] as usize..self.use_start[v.index() + 1] as usize]
    }

    /// How often it is used.
    pub fn use_count(&self, v: VReg) -> u32 {
        self.known[v.index()].uses
    }

    /// How many values of the function are defined at all, at most.
    pub fn defined_values(&self) -> usize {
        let defined = |value: &&Value| value.position != NONE;
        self.known.iter().filter(defined).count()
    }

    /// Whether it is never used.
    pub fn is_dead(&self, v: VReg) -> bool {
        self.known[v.index()].uses == 0
    }

    /// Whether `v` is alive behind `position`, which is in `block`: it is used later or leaves the block. True is meant
    /// as "holds a value that is still needed", so a use at `position` itself does not count.
    pub fn is_live_after<R: Register>(
        &self,
        code: &VCode<R>,
        v: VReg,
        position: u32,
        block: Block,
    ) -> bool {
        let known = &self.known[v.index()];
        if known.row == NONE {
            return known.position <= position && self.end[v.index()] > position;
        }
        let own = known.block == block.index() as u32;
        if own && known.position > position || !own && !self.is_live_in(v, block) {
            return false;
        }
        if self.is_live_out(v, block) {
            return true;
        }
        let uses = self.uses(v);
        let next = uses.partition_point(|&p| p <= position);
        next < uses.len() && uses[next] <= end_position(code, block)
    }
}

/// A set of values, by their numbers, for each block. It is filled value after value.
#[derive(Debug, Default)]
struct Sets {
    /// Block and value, in the order in which they were added.
    members: Vec<(u32, u32)>,
    /// By block the value that was added last.
    last: Vec<u32>,
    /// Where the values of each block begin; one more at the end.
    start: Vec<u32>,
    /// The values of each block, ascending.
    rows: Vec<u32>,
}

impl Sets {
    /// Empties the sets of so many blocks.
    fn clear(&mut self, blocks: usize) {
        self.members.clear();
        self.last.clear();
        self.last.resize(blocks, NONE);
    }

    /// Adds a value to a block's set; false if it was there.
    fn add(&mut self, block: u32, row: u32) -> bool {
        let new = std::mem::replace(&mut self.last[block as usize], row) != row;
        if new {
            self.members.push((block, row));
        }
        new
    }

    /// Brings the members together by block, after the last was added.
    fn sort(&mut self) {
        let blocks = self.last.len();
        self.start.clear();
        self.start.resize(blocks + 1, 0);
        for (block, _) in &self.members {
            self.start[*block as usize + 1] += 1;
        }
        for block in 0..blocks {
            self.start[block + 1] += self.start[block];
        }
        self.rows.clear();
        self.rows.resize(self.members.len(), 0);
        for &(block, row) in &self.members {
            let place = &mut self.start[block as usize];
            self.rows[*place as usize] = row;
            *place += 1;
        }
        // Each start has moved to its end, which is the next one's start.
        self.start.copy_within(..blocks, 1);
        self.start[0] = 0;
    }

    /// The values of a block.
    fn of(&self, block: Block) -> &[u32] {
        let range = self.start[block.index()] as usize..self.start[block.index() + 1] as usize;
        &self.rows[range]
    }
}

/// The arguments that a block passes with the parameters they go to.
pub(super) fn edge_arguments(
    code: &VCode<VReg>,
    block: Block,
) -> impl Iterator<Item = (VReg, VReg)> + '_ {
    let (args, params): (&[VReg], &[VReg]) = match &code.blocks[block].terminator {
        Terminator::Jump { target, args } => (args, &code.blocks[*target].params),
        _ => (&[], &[]),
    };
    args.iter().copied().zip(params.iter().copied())
}
