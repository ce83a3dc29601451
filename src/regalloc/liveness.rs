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

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// Row index of a value in the sets.
    global: Vec<u32>,
    /// The values of the sets.
    names: Vec<VReg>,
    /// Words of a set.
    words: usize,
    live_in: Vec<u64>,
    live_out: Vec<u64>,
    /// Block of the definition by value.
    def_block: Vec<u32>,
    /// Position of the definition by value.
    def_position: Vec<u32>,
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
        self.compute_sets(code);
        self.collect_uses(code);
        self.find_ends(code);
    }

    /// Computes the sets alone: what [`Liveness::live_in`] and [`Liveness::live_out`] and their likes need.
    pub fn compute_sets(&mut self, code: &VCode<VReg>) {
        let values = code.vreg_count as usize;
        for list in [
            &mut self.def_block,
            &mut self.def_position,
            &mut self.global,
        ] {
            list.clear();
            list.resize(values, NONE);
        }
        for (v, _) in &code.entry {
            self.define(*v, code.entry_block(), 0);
        }
        for (block, data) in code.blocks.iter() {
            for &v in &data.params {
                self.define(v, block, entry_position(code, block));
            }
            for (i, entry) in data.insts.clone().zip(code.block_insts(block)) {
                for v in code.definitions(entry) {
                    self.define(v, block, position(block, i));
                }
            }
        }
        self.names.clear();
        self.crossing.clear();
        if code.blocks.len() > 1 {
            self.collect_names(code);
        }
        self.words = self.names.len().div_ceil(64);
        for set in [&mut self.live_in, &mut self.live_out, &mut self.defined] {
            set.clear();
            set.resize(code.blocks.len() * self.words, 0);
        }
        if self.words > 0 {
            self.solve(code);
        }
    }

    fn define(&mut self, v: VReg, block: Block, position: u32) {
        self.def_block[v.index()] = block.index() as u32;
        self.def_position[v.index()] = position;
    }

    /// Finds the values of the sets and where they are used outside of their block.
    fn collect_names(&mut self, code: &VCode<VReg>) {
        for (block, data) in code.blocks.iter() {
            let number = block.index() as u32;
            let mut note = |v: VReg| {
                if self.def_block[v.index()] != number {
                    let row = &mut self.global[v.index()];
                    if *row == NONE {
                        *row = self.names.len() as u32;
                        self.names.push(v);
                    }
                    self.crossing.push((*row, number));
                }
            };
            for entry in code.block_insts(block) {
                code.uses(entry).for_each(&mut note);
            }
            data.terminator.uses().for_each(note);
        }
    }

    /// Collects the positions of the uses of every value, in order.
    fn collect_uses(&mut self, code: &VCode<VReg>) {
        let starts = &mut self.use_start;
        starts.clear();
        starts.resize(code.vreg_count as usize + 1, 0);
        self.uses.clear();
        for (block, data) in code.blocks.iter() {
            let mut note = |v: VReg, position: u32| {
                starts[v.index() + 1] += 1;
                self.uses.push((v.index() as u32, position));
            };
            for (i, entry) in data.insts.clone().zip(code.block_insts(block)) {
                code.uses(entry).for_each(|v| note(v, position(block, i)));
            }
            let end = end_position(code, block);
            data.terminator.uses().for_each(|v| note(v, end));
        }
        let mut sum = 0;
        for start in starts.iter_mut() {
            sum += *start;
            *start = sum;
        }
        self.use_positions.clear();
        self.use_positions.resize(self.uses.len(), 0);
        for &(v, position) in &self.uses {
            let place = &mut starts[v as usize];
            self.use_positions[*place as usize] = position;
            *place += 1;
        }
        // Each start has moved to its end, which is the next one's start.
        starts.copy_within(..code.vreg_count as usize, 1);
        starts[0] = 0;
    }

    fn solve(&mut self, code: &VCode<VReg>) {
        let words = self.words;
        for (row, &v) in self.names.iter().enumerate() {
            let (word, bit) = (row / 64, 1u64 << (row % 64));
            let block = self.def_block[v.index()];
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
        self.end.resize(code.vreg_count as usize, NONE);
        for (v, end) in self.end.iter_mut().enumerate() {
            let range = self.use_start[v] as usize..self.use_start[v + 1] as usize;
            *end = self.use_positions[range]
                .last()
                .copied()
                .unwrap_or(self.def_position[v]);
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
        let row = self.global[v.index()];
        row != NONE
            && self.live_out[block.index() * self.words + row as usize / 64] >> (row % 64) & 1 != 0
    }

    /// Whether `v` is alive at the entry of `block`; its parameters are not.
    pub fn is_live_in(&self, v: VReg, block: Block) -> bool {
        let row = self.global[v.index()];
        row != NONE
            && self.live_in[block.index() * self.words + row as usize / 64] >> (row % 64) & 1 != 0
    }

    /// Position of the definition.
    pub fn def_position(&self, v: VReg) -> u32 {
        self.def_position[v.index()]
    }

    /// The block of the definition, as a number.
    pub fn def_block(&self, v: VReg) -> Block {
        Block::from_u32(self.def_block[v.index()])
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

    /// Whether it is never used.
    pub fn is_dead(&self, v: VReg) -> bool {
        self.uses(v).is_empty()
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
        if self.global[v.index()] == NONE {
            return self.def_position[v.index()] <= position && self.end[v.index()] > position;
        }
        let own = self.def_block[v.index()] == block.index() as u32;
        if own && self.def_position[v.index()] > position || !own && !self.is_live_in(v, block) {
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
