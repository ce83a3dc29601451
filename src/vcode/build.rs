//! Building a [`VCode`] backwards: blocks in postorder, each from its terminator to its first instruction.

use super::{
    Attachment, AttachmentId, Block, BlockData, Entry, Frame, FunctionKind, Meeting, MemoryOrder,
    SourceLine, Terminator, VCode,
};
use crate::isa::table::{Direction, Effects};
use crate::isa::{Inst, PReg, RegisterClass, VReg};
use cranelift_codegen::entity::{EntityRef, PrimaryMap};
use smallvec::SmallVec;
use std::ops::Range;

/// Collects instructions in reverse.
///
/// Lowering walks a function from its end, because an instruction is selected only when its result was asked for. A
/// register may be asked for before the instruction that defines it exists; [`VCodeBuilder::bind`] says later which
/// register it is. Instructions and results that nobody reads are left out as they come. All vectors keep their
/// capacity when the builder is used for the next function.
#[derive(Debug, Default)]
pub struct VCodeBuilder {
    /// Instructions of finished units and of the current one, the last unit of the function first. A unit is what one
    /// CLIF instruction became; its instructions are in order.
    insts: Vec<Entry<VReg>>,
    /// Finished units: where in `insts` what is left of each stands.
    units: Vec<Range<u32>>,
    attachments: PrimaryMap<AttachmentId, Attachment<VReg>>,
    /// Finished blocks by number; the ranges are those of `units`.
    blocks: Vec<Option<BlockData<VReg>>>,
    /// Start of the current block in `units`.
    block_start: usize,
    /// The current block.
    current: Option<(Block, Terminator<VReg>, BlockFacts)>,
    /// Start of the current unit in `insts`.
    unit_start: usize,
    /// Loads of the unit stay though nobody reads what they load.
    keeps_loads: bool,
    line: SourceLine,
    /// How accesses of the unit take part in the orders of memory.
    order: MemoryOrder,
    /// By register: what is known of it.
    regs: Vec<Known>,
    /// Values computed twice.
    offers: Vec<Offer>,
}

/// The same value in two register files, computed in both: the `uniform` pass keeps one.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Its words in general registers, or its predicate.
    pub general: SmallVec<[VReg; 2]>,
    /// Its words in uniform registers, or the predicate that the uniform datapath gives.
    pub uniform: SmallVec<[VReg; 2]>,
    /// For an address: what an access that reads `uniform` as its base adds to it, nothing for zero. The value is the
    /// sum.
    pub index: Option<SmallVec<[VReg; 2]>>,
}

/// What is known of a register so far.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// What it was bound to.
    bound: Option<VReg>,
    /// Whether somebody reads it.
    used: bool,
}

/// What is known of a block when it is started.
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
    /// See [`BlockData::meeting`].
    pub meeting: Meeting,
}

impl VCodeBuilder {
    /// Prepares for a function of `blocks` blocks.
    pub fn begin(&mut self, blocks: usize) {
        self.insts.clear();
        self.units.clear();
        self.attachments.clear();
        self.blocks.clear();
        self.blocks.resize_with(blocks, || None);
        self.keeps_loads = false;
        self.current = None;
        self.block_start = 0;
        self.unit_start = 0;
        self.regs.clear();
        self.offers.clear();
        self.line = SourceLine::default();
        self.order = MemoryOrder::default();
    }

    /// A new register.
    pub fn vreg(&mut self, class: RegisterClass) -> VReg {
        self.regs.push(Known::default());
        VReg::new(class, self.regs.len() as u32 - 1)
    }

    /// Says that a register asked for earlier is `actual`.
    ///
    /// # Panics
    /// When the classes differ or it was bound before: a mistake of the lowering.
    pub fn bind(&mut self, asked: VReg, actual: VReg) {
        use crate::isa::Register;
        if asked == actual {
            return;
        }
        assert_eq!(asked.class(), actual.class(), "{asked} and {actual}");
        let known = &mut self.regs[asked.index()];
        assert!(known.bound.is_none(), "{asked} is defined twice");
        known.bound = Some(actual);
        if known.used {
            self.mark_used(actual);
        }
    }

    /// Notes that a register is read.
    pub fn mark_used(&mut self, reg: VReg) {
        mark_used(&mut self.regs, reg);
    }

    /// Says that a value is computed in two register files. Both stay, whoever reads them.
    pub fn offer(&mut self, offer: Offer) {
        let index = offer.index.iter().flatten();
        for &reg in offer.uniform.iter().chain(index) {
            mark_used(&mut self.regs, reg);
        }
        self.offers.push(offer);
    }

    /// All offers of a finished function, the last values first.
    pub fn take_offers(&mut self) -> Vec<Offer> {
        let mut offers = std::mem::take(&mut self.offers);
        for offer in &mut offers {
            let index = offer.index.iter_mut().flatten();
            let regs = (offer.general.iter_mut())
                .chain(&mut offer.uniform)
                .chain(index);
            regs.for_each(|reg| *reg = self.resolve(*reg));
        }
        offers
    }

    /// Place of the instructions that follow.
    pub fn set_line(&mut self, line: SourceLine) {
        self.line = line;
    }

    /// How accesses of the current unit take part in the orders of memory; those of the next are weak.
    pub fn set_order(&mut self, order: MemoryOrder) {
        self.order = order;
    }

    /// The line of the instructions to come.
    pub fn line(&self) -> SourceLine {
        self.line
    }

    /// Adds an instruction to the current unit, behind those already in it.
    pub fn emit(&mut self, inst: Inst<VReg>) {
        self.push(inst, None);
    }

    /// Adds an instruction with an attachment to the current unit.
    pub fn emit_with(&mut self, inst: Inst<VReg>, attachment: Attachment<VReg>) {
        let attachment = Some(self.attachments.push(attachment));
        self.push(inst, attachment);
    }

    fn push(&mut self, inst: Inst<VReg>, attachment: Option<AttachmentId>) {
        self.insts.push(Entry {
            inst,
            line: self.line,
            attachment,
            order: self.order,
            label: 0,
        });
    }

    /// The last instruction of the current unit, to amend it.
    pub fn last(&mut self) -> Option<&mut Entry<VReg>> {
        self.insts[self.unit_start..].last_mut()
    }

    /// Attaches to the last instruction of the unit.
    ///
    /// # Panics
    /// When the unit is empty.
    pub fn attach_to_last(&mut self, attachment: Attachment<VReg>) {
        let id = self.attachments.push(attachment);
        self.last().expect("an instruction was emitted").attachment = Some(id);
    }

    /// Starts a block from its end.
    ///
    /// # Panics
    /// When the block before was not ended.
    pub fn start_block(&mut self, block: Block, terminator: Terminator<VReg>, facts: BlockFacts) {
        assert!(self.current.is_none(), "one block at a time");
        for reg in terminator.uses() {
            self.mark_used(reg);
        }
        self.end_unit();
        self.current = Some((block, terminator, facts));
    }

    /// Says that the loads of this unit may end in a fault, so that they stay though nobody reads what they load.
    pub fn keep_loads(&mut self) {
        self.keeps_loads = true;
    }

    /// Ends the unit: what it emitted, and somebody reads, stands before everything of this block emitted so far.
    pub fn end_unit(&mut self) {
        self.order = MemoryOrder::default();
        let kept = if std::mem::take(&mut self.keeps_loads) {
            Effects::KEPT.union(Effects::LOAD)
        } else {
            Effects::KEPT
        };
        // Backwards; what stays moves up to what stayed before.
        let end = self.insts.len();
        let mut first = end;
        for index in (self.unit_start..end).rev() {
            let inst = &self.insts[index].inst;
            let (mut read, mut unread) = (false, false);
            for reg in inst.definitions() {
                let used = self.regs[reg.index()].used;
                (read, unread) = (read | used, unread | !used);
            }
            if !read && !inst.optype().info().effects.intersects(kept) {
                continue;
            }
            first -= 1;
            if first != index {
                self.insts[first] = self.insts[index];
            }
            let entry = &mut self.insts[first];
            let attached = entry.attachment.map(|id| &self.attachments[id]);
            if unread && matches!(attached, None | Some(Attachment::Symbol(_))) {
                drop_unread(&self.regs, &mut entry.inst);
            }
            for reg in entry.inst.uses() {
                mark_used(&mut self.regs, reg);
            }
            match entry.attachment.map(|id| &self.attachments[id]) {
                Some(Attachment::Else(values)) => {
                    (values.iter().flatten()).for_each(|&reg| mark_used(&mut self.regs, reg))
                }
                Some(Attachment::Call(call)) => {
                    (call.uses.iter()).for_each(|&(reg, _)| mark_used(&mut self.regs, reg))
                }
                Some(Attachment::Pack(values)) => {
                    (values.iter()).for_each(|&reg| mark_used(&mut self.regs, reg))
                }
                Some(Attachment::Symbol(_) | Attachment::Label(_) | Attachment::Bit(_)) | None => {}
            }
        }
        if first < end {
            self.units.push(first as u32..end as u32);
        }
        self.unit_start = end;
    }

    /// Ends the block started last.
    ///
    /// # Panics
    /// When none was started.
    pub fn end_block(&mut self, params: Vec<VReg>) {
        self.end_unit();
        let (block, terminator, facts) = self.current.take().expect("a block was started");
        let insts = self.block_start as u32..self.units.len() as u32;
        self.block_start = self.units.len();
        self.blocks[block.index()] = Some(BlockData {
            insts,
            params,
            terminator,
            line: facts.line,
            divergent: facts.divergent,
            loop_depth: facts.loop_depth,
            cold: facts.cold,
            meeting: facts.meeting,
        });
    }

    /// The register that was bound to one.
    pub(crate) fn resolve(&self, mut reg: VReg) -> VReg {
        while let Some(next) = self.regs[reg.index()].bound {
            reg = next;
        }
        reg
    }

    /// The function, in forward order.
    ///
    /// # Panics
    /// When a block was not ended: a mistake of the lowering.
    pub fn finish(
        &mut self,
        name: String,
        kind: FunctionKind,
        entry: Vec<(VReg, PReg)>,
        frame: Frame,
    ) -> VCode<VReg> {
        let mut insts = Vec::with_capacity(self.insts.len());
        let mut blocks = PrimaryMap::with_capacity(self.blocks.len());
        let mut finished = std::mem::take(&mut self.blocks);
        for data in finished.drain(..) {
            let mut data = data.expect("every block is lowered");
            let first = insts.len() as u32;
            for unit in self.units[data.insts.start as usize..data.insts.end as usize]
                .iter()
                .rev()
            {
                insts.extend_from_slice(&self.insts[unit.start as usize..unit.end as usize]);
            }
            (insts[first as usize..].iter_mut())
                .for_each(|entry| entry.inst.rename(|reg| self.resolve(reg)));
            data.insts = first..insts.len() as u32;
            data.terminator.for_each_register(|r| *r = self.resolve(*r));
            data.params.iter_mut().for_each(|r| *r = self.resolve(*r));
            blocks.push(data);
        }
        if insts.iter().any(Entry::is_ordered) {
            let accesses = insts.iter_mut().filter(|entry| entry.part().is_some());
            (1..)
                .zip(accesses)
                .for_each(|(label, entry)| entry.label = label);
        }
        self.blocks = finished;
        let mut attachments = std::mem::take(&mut self.attachments);
        for attachment in attachments.values_mut() {
            attachment.for_each_register(|r| *r = self.resolve(*r));
        }
        let entry = entry
            .into_iter()
            .map(|(r, p)| (self.resolve(r), p))
            .collect();
        VCode {
            name,
            kind,
            insts,
            attachments,
            blocks,
            entry,
            vreg_count: self.regs.len() as u32,
            frame,
            holders: Vec::new(),
        }
    }
}

/// Notes that a register is read, and all that it is bound to.
fn mark_used(regs: &mut [Known], mut reg: VReg) {
    loop {
        let known = &mut regs[reg.index()];
        known.used = true;
        match known.bound {
            Some(next) => reg = next,
            None => return,
        }
    }
}

/// Makes results that nobody reads RZ or PT.
fn drop_unread(known: &[Known], inst: &mut Inst<VReg>) {
    for operand in inst.info().operands {
        if operand.direction != Direction::Out || operand.class.is_none() {
            continue;
        }
        let regs = inst.operand_regs(operand);
        if regs.iter().flatten().all(|r| !known[r.index()].used) {
            let none: smallvec::SmallVec<[Option<VReg>; 4]> = smallvec::smallvec![None; regs.len()];
            inst.set_regs(operand, &none);
        }
    }
}
