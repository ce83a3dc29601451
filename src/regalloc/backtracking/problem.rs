//! A function as regalloc2 asks for it: flat lists, kept between functions.

use regalloc2 as ra;
use std::ops::Range;

/// One instruction: where its operands are, and what it is. The entry of the function and terminators are instructions
/// as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    pub first: u32,
    pub end: u32,
    pub kind: Kind,
}

/// What an instruction is to regalloc2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// Overwrites the registers at this index of [`Problem::clobbers`].
    Call(u32),
    Branch,
    Return,
}

/// One block: its instructions, and where its part of each list begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockInfo {
    pub instructions: ra::InstRange,
    pub successors: u32,
    pub predecessors: u32,
    pub params: u32,
    pub args: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Problem {
    pub instructions: Vec<Instruction>,
    pub operands: Vec<ra::Operand>,
    pub clobbers: Vec<ra::PRegSet>,
    pub blocks: Vec<BlockInfo>,
    pub successors: Vec<ra::Block>,
    pub predecessors: Vec<ra::Block>,
    pub params: Vec<ra::VReg>,
    pub args: Vec<ra::VReg>,
    /// Numbers of values are below it.
    pub values: usize,
}

impl Problem {
    /// Begins an instruction.
    pub fn begin(&mut self, kind: Kind) {
        let first = self.operands.len() as u32;
        let end = first;
        self.instructions.push(Instruction { first, end, kind });
    }

    /// Adds an operand of the last instruction; returns its index.
    pub fn add(&mut self, operand: ra::Operand) -> u32 {
        let index = self.operands.len() as u32;
        self.operands.push(operand);
        if let Some(instruction) = self.instructions.last_mut() {
            instruction.end = index + 1;
        }
        index
    }

    /// The index of an operand of the last instruction that is the same.
    pub fn find(&self, operand: ra::Operand) -> Option<u32> {
        let first = self.instructions.last()?.first;
        let mut own = (first..).zip(&self.operands[first as usize..]);
        own.find(|(_, known)| **known == operand)
            .map(|(index, _)| index)
    }

    pub fn clear(&mut self) {
        self.instructions.clear();
        self.operands.clear();
        self.clobbers.clear();
        self.blocks.clear();
        self.successors.clear();
        self.predecessors.clear();
        self.params.clear();
        self.args.clear();
        self.values = 0;
    }

    /// Lists the predecessors of every block, once all successors are known.
    pub fn find_predecessors(&mut self) {
        for successor in &self.successors {
            self.blocks[successor.index()].predecessors += 1;
        }
        let mut end = 0;
        for block in &mut self.blocks {
            end += block.predecessors;
            block.predecessors = end;
        }
        self.predecessors
            .resize(self.successors.len(), ra::Block::invalid());
        // Filled from the end, so that each count ends where the block's list begins.
        for block in (0..self.blocks.len()).rev() {
            for index in self.range(block, |b| b.successors, self.successors.len()) {
                let place = &mut self.blocks[self.successors[index].index()].predecessors;
                *place -= 1;
                self.predecessors[*place as usize] = ra::Block::new(block);
            }
        }
    }

    /// The part of a list of `len` entries that belongs to a block.
    fn range(&self, block: usize, start: impl Fn(&BlockInfo) -> u32, len: usize) -> Range<usize> {
        let end = self
            .blocks
            .get(block + 1)
            .map_or(len, |b| start(b) as usize);
        start(&self.blocks[block]) as usize..end
    }
}

impl ra::Function for Problem {
    fn num_insts(&self) -> usize {
        self.instructions.len()
    }
    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }
    fn entry_block(&self) -> ra::Block {
        ra::Block::new(0)
    }
    fn block_insns(&self, block: ra::Block) -> ra::InstRange {
        self.blocks[block.index()].instructions
    }
    fn block_succs(&self, block: ra::Block) -> &[ra::Block] {
        &self.successors[self.range(block.index(), |b| b.successors, self.successors.len())]
    }
    fn block_preds(&self, block: ra::Block) -> &[ra::Block] {
        &self.predecessors[self.range(block.index(), |b| b.predecessors, self.predecessors.len())]
    }
    fn block_params(&self, block: ra::Block) -> &[ra::VReg] {
        &self.params[self.range(block.index(), |b| b.params, self.params.len())]
    }
    fn is_ret(&self, inst: ra::Inst) -> bool {
        self.instructions[inst.index()].kind == Kind::Return
    }
    fn is_branch(&self, inst: ra::Inst) -> bool {
        self.instructions[inst.index()].kind == Kind::Branch
    }
    fn branch_blockparams(&self, block: ra::Block, _: ra::Inst, _: usize) -> &[ra::VReg] {
        &self.args[self.range(block.index(), |b| b.args, self.args.len())]
    }
    fn inst_operands(&self, inst: ra::Inst) -> &[ra::Operand] {
        // Asked for at every operand, so both ends are at hand.
        let Instruction { first, end, .. } = self.instructions[inst.index()];
        &self.operands[first as usize..end as usize]
    }
    fn inst_clobbers(&self, inst: ra::Inst) -> ra::PRegSet {
        match self.instructions[inst.index()].kind {
            Kind::Call(index) => self.clobbers[index as usize],
            Kind::Plain | Kind::Branch | Kind::Return => ra::PRegSet::empty(),
        }
    }
    fn num_vregs(&self) -> usize {
        self.values
    }
    fn spillslot_size(&self, _: ra::RegClass) -> usize {
        1
    }
}
