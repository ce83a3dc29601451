//! Which instruction wrote a place last, in the block that is being walked over and at the end of the others.

use super::NONE;
use super::added::Action;
use super::location::StorageLocation;
use crate::isa::PReg;
use crate::vcode::{Block, VCode};
use cranelift_codegen::entity::EntityRef;
use std::ops::Range;

/// Which instruction wrote which place last.
pub(super) struct Written {
    /// By place: the block, as [`Written::block`] counts them, and the instruction.
    last: Vec<(u32, u32)>,
    block: u32,
    /// Places written in the block.
    touched: Vec<StorageLocation>,
    /// The last call in the block.
    call: Option<u32>,
    /// For all blocks: places written, in order, each with the last instruction that did.
    ends: Vec<(StorageLocation, u32)>,
    /// For each block its range of [`Written::ends`], and its last call.
    blocks: Vec<(Range<u32>, Option<u32>)>,
    /// What added instructions do.
    actions: Vec<Action>,
    /// By instruction: an index of [`Written::actions`], and where its writers begin in [`Written::sources`].
    steps: Vec<(u32, u32)>,
    /// What wrote each place before that an added instruction reads, or a guarded result stands in.
    sources: Vec<Option<u32>>,
}

impl Written {
    /// Nothing is known of `after`, which has so many words of spill area.
    pub fn new(words: u32, after: &VCode<PReg>) -> Written {
        Written {
            last: vec![(0, 0); StorageLocation::count(words)],
            block: 0,
            touched: Vec::new(),
            call: None,
            ends: Vec::new(),
            blocks: Vec::with_capacity(after.blocks.len()),
            actions: Vec::new(),
            steps: vec![(NONE, 0); after.insts.len()],
            sources: Vec::new(),
        }
    }

    /// A block begins.
    pub fn begin(&mut self) {
        self.block += 1;
        self.touched.clear();
        self.call = None;
    }

    /// The instruction of the block that wrote `place` last so far.
    pub fn now(&self, place: StorageLocation) -> Option<u32> {
        let (block, index) = self.last[place.index()];
        let own = (block == self.block).then_some(index);
        own.max(self.call.filter(|_| !place.survives_call()))
    }

    /// Instruction `index` writes `place`.
    pub fn write(&mut self, place: StorageLocation, index: u32) {
        let last = &mut self.last[place.index()];
        if last.0 != self.block {
            self.touched.push(place);
        }
        *last = (self.block, index);
    }

    /// The block ends.
    pub fn end(&mut self) {
        self.touched.sort_unstable();
        let start = self.ends.len() as u32;
        let last = &self.last;
        self.ends
            .extend(self.touched.iter().map(|p| (*p, last[p.index()].1)));
        self.blocks.push((start..self.ends.len() as u32, self.call));
    }

    /// The instruction of `block` that wrote `place` last.
    pub fn at_end(&self, block: Block, place: StorageLocation) -> Option<u32> {
        let (range, call) = &self.blocks[block.index()];
        let ends = &self.ends[range.start as usize..range.end as usize];
        let found = ends.binary_search_by_key(&place, |(p, _)| *p);
        let own = found.ok().map(|i| ends[i].1);
        own.max(call.filter(|_| !place.survives_call()))
    }

    /// Instruction `index` is a call.
    pub fn call(&mut self, index: u32) {
        self.call = Some(index);
    }

    /// Instruction `index` does `action`.
    pub fn act(&mut self, index: u32, action: Action) {
        self.steps[index as usize].0 = self.actions.len() as u32;
        self.actions.push(action);
    }

    /// Notes what has written the places that instruction `index` reads, in the order in which [`Written::before`]
    /// counts them.
    pub fn read(&mut self, index: u32, places: impl Iterator<Item = StorageLocation>) {
        self.steps[index as usize].1 = self.sources.len() as u32;
        for place in places {
            let last = self.now(place);
            self.sources.push(last);
        }
    }

    /// What an added instruction does; none for one that belongs to the instructions before it.
    pub fn action(&self, index: u32) -> Option<&Action> {
        self.actions.get(self.steps[index as usize].0 as usize)
    }

    /// What wrote the place that is source `number` of instruction `index`, or its result of that number under a guard.
    pub fn before(&self, index: u32, number: usize) -> Option<u32> {
        self.sources[self.steps[index as usize].1 as usize + number]
    }
}
