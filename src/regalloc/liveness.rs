//! Which values are alive at the borders of blocks, and where each value's life ends.
//!
//! Only values used outside of the block that defines them have a bit in the sets (Cooper and Torczon's "global names"), so the matrix
//! stays small. Inside a block everything follows from the sets and one walk.
//!
//! A *position* orders all places of a function: a block's entry, its instructions and its terminator, block after block. It is the
//! measure for "defined while alive" questions of the colouring.

use crate::isa::{Register, VReg};
use crate::vcode::{Block, Terminator, VCode};
use cranelift_entity::EntityRef;

/// Not a value of the sets; not a position.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
struct Value {
    /// Block of the definition.
    block: u32,
    /// Position of the definition.
    position: u32,
    /// Row index in the sets.
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
    /// Words of a set.
    words: usize,
    live_in: Vec<u64>,
    live_out: Vec<u64>,
    /// The last position at which a value is alive, in the linear order.
    end: Vec<u32>,
    /// Start of a value's entries in `use_positions`; one more at the end.
    use_start: Vec<u32>,
    /// Positions of uses, ascending for each value.
    use_positions: Vec<u32>,
    defined: Vec<u64>,
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

    /// Finds definitions, uses, and with `POSITIONS` where the uses are. Blocks are in reverse postorder, so that a definition comes before
    /// its uses.
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
        self.words = self.names.len().div_ceil(64);
        for set in [&mut self.live_in, &mut self.live_out, &mut self.defined] {
            set.clear();
            set.resize(code.blocks.len() * self.words, 0);
        }
        if self.words > 0 {
            self.solve(code);
        }
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

    fn solve(&mut self, code: &VCode<VReg>) {
        let words = self.words;
        for (row, &v) in self.names.iter().enumerate() {
            let (word, bit) = (row / 64, 1u64 << (row % 64));
            let block = self.known[v.index()].block;
            if block != NONE {
                self.defined[block as usize * words + word] |= bit;
            }
        }
        for &(row, block) in &self.crossing {
            self.live_in[block as usize * words + row as usize / 64] |= 1 << (row % 64);
        }
        loop {
            let mut changed = false;
            for (block, data) in code.blocks.iter().rev() {
                let base = block.index() * words;
                for successor in data.terminator.successors() {
                    let from = successor.index() * words;
                    for w in 0..words {
                        let new = self.live_in[from + w] & !self.live_out[base + w];
                        if new != 0 {
                            self.live_out[base + w] |= new;
                            self.live_in[base + w] |= new & !self.defined[base + w];
                            changed = true;
                        }
                    }
                }
            }
            if !changed {
                return;
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
            for row in ones(&self.live_out[block.index() * self.words..][..self.words]) {
                let end = &mut self.end[self.names[row].index()];
                *end = (*end).max(position + 1);
            }
        }
    }

    /// Values alive at the entry of a block, its parameters left out.
    pub fn live_in(&self, block: Block) -> impl Iterator<Item = VReg> + '_ {
        ones(&self.live_in[block.index() * self.words..][..self.words]).map(|row| self.names[row])
    }

    /// Values alive on the edges out of a block, arguments left out unless they live on.
    pub fn live_out(&self, block: Block) -> impl Iterator<Item = VReg> + '_ {
        ones(&self.live_out[block.index() * self.words..][..self.words]).map(|row| self.names[row])
    }

    /// Whether `v` is alive on the edges out of `block`.
    pub fn is_live_out(&self, v: VReg, block: Block) -> bool {
        let row = self.known[v.index()].row;
        row != NONE
            && self.live_out[block.index() * self.words + row as usize / 64] >> (row % 64) & 1 != 0
    }

    /// Whether `v` is alive at the entry of `block`; its parameters are not.
    pub fn is_live_in(&self, v: VReg, block: Block) -> bool {
        let row = self.known[v.index()].row;
        row != NONE
            && self.live_in[block.index() * self.words + row as usize / 64] >> (row % 64) & 1 != 0
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

    /// Whether `v` is alive behind `position`, which is in `block`: it is used later or leaves the block. True is meant as "holds a
    /// value that is still needed", so a use at `position` itself does not count.
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

/// Indices of the ones of a bit set.
fn ones(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(i, &word)| {
        let mut word = word;
        std::iter::from_fn(move || {
            if word == 0 {
                return None;
            }
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            Some(i * 64 + bit)
        })
    })
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
