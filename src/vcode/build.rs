//! Building a [`VCode`] backwards: blocks in postorder, each from its terminator to its first instruction.

use super::{Attachment, AttachmentId, Block, BlockData, Entry, Frame, FunctionKind, SourceLine, Terminator, VCode};
use crate::isa::{Inst, PReg, RegisterClass, VReg};
use cranelift_entity::{EntityRef, PrimaryMap};

/// Collects instructions in reverse.
///
/// Lowering walks a function from its end, because an instruction is selected only when its result was asked for. All vectors keep their
/// capacity when the builder is used for the next function.
#[derive(Debug, Default)]
pub struct VCodeBuilder {
    /// Instructions of finished blocks, each block's reversed, the last block first.
    insts: Vec<Entry<VReg>>,
    attachments: PrimaryMap<AttachmentId, Attachment<VReg>>,
    /// Finished blocks by number; the ranges are those of the reversed list.
    blocks: Vec<Option<BlockData<VReg>>>,
    /// Start of the current block in `insts`.
    start: usize,
    /// Instructions of the unit (one CLIF instruction) being emitted, in order.
    unit: Vec<Entry<VReg>>,
    line: SourceLine,
    vreg_count: u32,
}

impl VCodeBuilder {
    /// Prepares for a function of `blocks` blocks.
    pub fn begin(&mut self, blocks: usize) {
        self.insts.clear();
        self.attachments.clear();
        self.blocks.clear();
        self.blocks.resize_with(blocks, || None);
        self.unit.clear();
        self.start = 0;
        self.vreg_count = 0;
        self.line = SourceLine::default();
    }

    /// A new register.
    pub fn vreg(&mut self, class: RegisterClass) -> VReg {
        self.vreg_count += 1;
        VReg::new(class, self.vreg_count - 1)
    }

    /// Place of the instructions that follow.
    pub fn set_line(&mut self, line: SourceLine) {
        self.line = line;
    }

    /// Adds an instruction to the current unit, behind those already in it.
    pub fn emit(&mut self, inst: Inst<VReg>) {
        self.unit.push(Entry { inst, line: self.line, attachment: None });
    }

    /// Adds an instruction with an attachment to the current unit.
    pub fn emit_with(&mut self, inst: Inst<VReg>, attachment: Attachment<VReg>) {
        let attachment = Some(self.attachments.push(attachment));
        self.unit.push(Entry { inst, line: self.line, attachment });
    }

    /// Ends the unit: what it emitted stands before everything of this block emitted so far.
    pub fn end_unit(&mut self) {
        self.insts.extend(self.unit.drain(..).rev());
    }

    /// Number of instructions in the current unit.
    pub fn unit_len(&self) -> usize {
        self.unit.len()
    }

    /// Ends a block whose instructions were emitted backwards.
    pub fn end_block(&mut self, block: Block, params: Vec<VReg>, terminator: Terminator<VReg>, facts: BlockFacts) {
        self.end_unit();
        let range = self.start as u32..self.insts.len() as u32;
        self.start = self.insts.len();
        self.blocks[block.index()] = Some(BlockData {
            insts: range,
            params,
            terminator,
            line: facts.line,
            divergent: facts.divergent,
            loop_depth: facts.loop_depth,
            cold: facts.cold,
        });
    }

    /// The function, in forward order.
    ///
    /// # Panics
    /// When a block was not ended: a mistake of the lowering.
    pub fn finish(&mut self, name: String, kind: FunctionKind, entry: Vec<(VReg, PReg)>, frame: Frame) -> VCode<VReg> {
        let mut insts = Vec::with_capacity(self.insts.len());
        let mut blocks = PrimaryMap::with_capacity(self.blocks.len());
        for data in self.blocks.drain(..) {
            let mut data = data.expect("every block is lowered");
            let first = insts.len() as u32;
            insts.extend(self.insts[data.insts.start as usize..data.insts.end as usize].iter().rev().copied());
            data.insts = first..insts.len() as u32;
            blocks.push(data);
        }
        let attachments = std::mem::take(&mut self.attachments);
        VCode { name, kind, insts, attachments, blocks, entry, vreg_count: self.vreg_count, frame }
    }
}

/// What is known of a block when it is ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockFacts {
    /// Place of the terminator.
    pub line: SourceLine,
    /// See [`BlockData::divergent`].
    pub divergent: bool,
    /// See [`BlockData::loop_depth`].
    pub loop_depth: u32,
    /// See [`BlockData::cold`].
    pub cold: bool,
}
