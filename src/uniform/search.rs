//! Which offers are kept. Offers are only ever dropped.

use super::lists::Lists;
use crate::analysis::graph::{Dominators, Loops};
use crate::isa::table::Effects;
use crate::isa::{Inst, Register, RegisterClass, VReg};
use crate::simt::edit::control_flow;
use crate::vcode::{Block, Entry, Offer, Terminator, VCode};
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use smallvec::SmallVec;

/// Words of a block's parameters in uniform registers, of which there are 63: all are taken at once where they are
/// passed (*assumed*: half).
const PARAMETER_WORDS: usize = 32;
/// Sweeps over the function until nothing is dropped any more. What takes longer keeps no offer (*assumed*: most
/// functions take two or three).
const SWEEPS: u32 = 16;

/// Effects for which an instruction stays although nobody reads its results: a load may fault.
const KEPT: Effects = Effects::KEPT
    .union(Effects::GLOBAL)
    .union(Effects::SHARED)
    .union(Effects::LOCAL)
    .union(Effects::GENERIC);

/// Where a register gets its value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Definition {
    /// Nowhere.
    None,
    /// By an instruction.
    Inst(u32),
    /// As a parameter of a block.
    Param(Block),
}

/// The search.
pub(super) struct Search<'a> {
    pub code: &'a VCode<VReg>,
    pub offers: &'a [Offer],
    pub kept: Vec<bool>,
    /// By register, where it gets its value.
    pub definitions: Vec<Definition>,
    /// By register, offers whose general words it is among, by number and place.
    pub offered: Lists<(u32, u8)>,
    /// By register, offers whose uniform words it is among.
    within: Lists<u32>,
    /// By register, instructions of the uniform datapath that read it.
    readers: Lists<u32>,
    /// By uniform register, the parameters that it is passed for.
    receivers: Lists<VReg>,
    /// By uniform parameter, what is passed for it.
    pub arguments: Lists<VReg>,
    /// By register, whether the uniform datapath does not compute it.
    lost: Vec<bool>,
    /// By instruction, whether it reads what is offered.
    involved: Vec<bool>,
    /// By register, whether somebody reads it, as things are.
    pub needed: Vec<bool>,
    /// By instruction, whether it stays, as things are.
    pub stays: Vec<bool>,
    /// Whether what is needed and stays is known of the offers that are kept.
    settled: bool,
    /// The block of each instruction.
    pub block_of: Vec<Block>,
    /// The block itself, or the nearest above that runs with the whole warp.
    pub together: SecondaryMap<Block, Option<Block>>,
    pub loops: Loops,
}

/// What was decided.
pub(super) struct Decision {
    /// By instruction, what becomes of it; none where it goes.
    pub insts: Vec<Option<Inst<VReg>>>,
    /// By register, whether it is a parameter that goes.
    pub gone: Vec<bool>,
    /// By register, the predicate that takes its place.
    pub renamed: Vec<Option<VReg>>,
    /// Where instructions of the uniform datapath go that stand in a block that runs with part of the warp.
    pub places: SecondaryMap<Block, Option<Block>>,
}

impl<'a> Search<'a> {
    pub fn new(code: &'a VCode<VReg>, offers: &'a [Offer]) -> Self {
        let graph = control_flow(code);
        let dominators = Dominators::new(&graph, code.entry_block().index());
        let loops = Loops::new(&graph, &dominators);
        let registers = code.vreg_count as usize;
        let mut search = Search {
            code,
            offers,
            kept: vec![true; offers.len()],
            definitions: vec![Definition::None; registers],
            offered: Lists::new(registers),
            within: Lists::new(registers),
            readers: Lists::new(registers),
            receivers: Lists::new(registers),
            arguments: Lists::new(registers),
            lost: vec![false; registers],
            involved: vec![false; code.insts.len()],
            needed: vec![false; registers],
            stays: vec![false; code.insts.len()],
            settled: false,
            block_of: vec![code.entry_block(); code.insts.len()],
            together: places(code, &dominators),
            loops,
        };
        search.collect();
        search.lose_what_is_not_computed();
        search
    }

    /// Definitions, readers, and what is passed.
    fn collect(&mut self) {
        let code = self.code;
        for (number, offer) in (0..).zip(self.offers) {
            for (place, &reg) in (0..).zip(&offer.general) {
                self.offered.push(reg, (number, place));
            }
            for &reg in &offer.uniform {
                self.within.push(reg, number);
            }
        }
        for (block, data) in code.blocks.iter() {
            for &param in &data.params {
                self.definitions[param.index()] = Definition::Param(block);
            }
            for index in data.insts.clone() {
                let entry = &code.insts[index as usize];
                self.block_of[index as usize] = block;
                for reg in entry.inst.definitions() {
                    self.definitions[reg.index()] = Definition::Inst(index);
                }
                let on_datapath = entry.inst.form().is_on_uniform_datapath();
                for reg in code.uses(entry) {
                    self.involved[index as usize] |= !self.offered.is_empty(reg);
                    if on_datapath {
                        self.readers.push(reg, index);
                    }
                }
            }
            if let Terminator::Jump { target, args } = &data.terminator {
                for (&argument, &param) in args.iter().zip(&code.blocks[*target].params) {
                    if param.class() == RegisterClass::Uniform {
                        self.receivers.push(argument, param);
                        self.arguments.push(param, argument);
                    }
                }
            }
        }
    }

    /// What has no definition goes first, and what stands where only part of the warp runs and cannot move: it reads a
    /// predicate.
    fn lose_what_is_not_computed(&mut self) {
        let mut lost: Vec<VReg> = Vec::new();
        let undefined = |reg: &VReg| matches!(self.definitions[reg.index()], Definition::None);
        for data in self.code.blocks.values() {
            if let Terminator::Jump { args, .. } = &data.terminator {
                lost.extend(args.iter().filter(|reg| undefined(reg)));
            }
        }
        for offer in self.offers {
            lost.extend(offer.uniform.iter().filter(|reg| undefined(reg)));
        }
        for (entry, &block) in self.code.insts.iter().zip(&self.block_of) {
            let here = self.together[block] == Some(block);
            let moves = self.together[block].is_some()
                && (entry.inst.uses()).all(|r| r.class() == RegisterClass::Uniform);
            if entry.inst.form().is_on_uniform_datapath() {
                lost.extend(entry.inst.uses().filter(undefined));
                if !here && !moves {
                    lost.extend(entry.inst.definitions());
                }
            }
        }
        self.lose(lost);
    }

    /// Notes that the uniform datapath does not compute these, and what follows.
    fn lose(&mut self, mut work: Vec<VReg>) {
        self.settled = false;
        while let Some(reg) = work.pop() {
            if std::mem::replace(&mut self.lost[reg.index()], true) {
                continue;
            }
            for number in self.within.of(reg) {
                // The words of a value stay together.
                if std::mem::replace(&mut self.kept[number as usize], false) {
                    work.extend(&self.offers[number as usize].uniform);
                }
            }
            for index in self.readers.of(reg) {
                work.extend(self.code.insts[index as usize].inst.definitions());
            }
            work.extend(self.receivers.of(reg));
        }
    }

    /// Drops an offer. A sum leaves its pointer where it is.
    pub fn drop(&mut self, number: usize) {
        let offer = &self.offers[number];
        match offer.index {
            Some(_) => {
                self.kept[number] = false;
                self.settled = false;
            }
            None => self.lose(offer.uniform.to_vec()),
        }
    }

    /// Parameters of loops that would wait for their next value.
    pub fn drop_not_hidden(&mut self) {
        let sizes = self.loop_sizes();
        for number in (0..self.offers.len()).rev() {
            if self.kept[number]
                && let Definition::Param(block) = self.definition(number)
                && !self.is_hidden(number, block, &sizes)
            {
                self.drop(number);
            }
        }
    }

    /// Where the uniform words of an offer come from.
    fn definition(&self, number: usize) -> Definition {
        let offer = &self.offers[number];
        match offer.index {
            Some(_) => Definition::None,
            None => self.definitions[offer.uniform[0].index()],
        }
    }

    /// Drops what somebody reads who cannot read it from uniform registers, until nobody does.
    pub fn settle(&mut self) {
        for sweep in 0.. {
            if self.settled {
                return;
            }
            self.settled = true;
            let mut failed = self.sweep();
            if sweep == SWEEPS {
                failed = (0..self.offers.len()).collect();
            }
            failed.into_iter().for_each(|number| self.drop(number));
        }
    }

    /// Goes through the function backwards and finds what is needed if all offers that are kept are taken. Gives those
    /// that cannot be: somebody reads their general registers.
    fn sweep(&mut self) -> Vec<usize> {
        let code = self.code;
        let mut failed = Vec::new();
        self.needed.fill(false);
        for (_, data) in code.blocks.iter().rev() {
            match &data.terminator {
                Terminator::Jump { target, args } => {
                    for (&argument, &param) in args.iter().zip(&code.blocks[*target].params) {
                        if self.stays_parameter(param) {
                            self.read(argument, &mut failed);
                        }
                    }
                }
                other => other.uses().for_each(|reg| self.read(reg, &mut failed)),
            }
            for index in data.insts.clone().rev() {
                let entry = &code.insts[index as usize];
                let stays = entry.inst.optype().info().effects.intersects(KEPT)
                    || (entry.inst.definitions()).any(|r| self.needed[r.index()]);
                self.stays[index as usize] = stays;
                if stays && self.involved[index as usize] {
                    self.read_operands(entry, &mut failed);
                } else if stays {
                    (code.uses(entry)).for_each(|reg| self.needed[reg.index()] = true);
                }
            }
        }
        failed.sort_unstable();
        failed.dedup();
        failed
    }

    /// By instruction, whether it stays if no offer is taken.
    pub fn stays_without_offers(&self) -> Vec<bool> {
        let code = self.code;
        let mut needed = vec![false; self.needed.len()];
        let mut stays = vec![false; code.insts.len()];
        for data in code.blocks.values().rev() {
            (data.terminator.uses())
                .filter(|reg| reg.class() != RegisterClass::Uniform)
                .for_each(|reg| needed[reg.index()] = true);
            for index in data.insts.clone().rev() {
                let entry = &code.insts[index as usize];
                if entry.inst.optype().info().effects.intersects(KEPT)
                    || (entry.inst.definitions()).any(|reg| needed[reg.index()])
                {
                    stays[index as usize] = true;
                    (code.uses(entry)).for_each(|reg| needed[reg.index()] = true);
                }
            }
        }
        stays
    }

    fn read_operands(&mut self, entry: &Entry<VReg>, failed: &mut Vec<usize>) {
        let converted = self.converted(&entry.inst);
        let inst = converted.as_ref().unwrap_or(&entry.inst);
        inst.uses().for_each(|reg| self.read(reg, failed));
        let beside: SmallVec<[VReg; 4]> = {
            let operands = entry.inst.uses().count();
            self.code.uses(entry).skip(operands).collect()
        };
        beside.into_iter().for_each(|reg| self.read(reg, failed));
    }

    /// Notes that a register is read as it is.
    fn read(&mut self, reg: VReg, failed: &mut Vec<usize>) {
        let reg = self.renamed(reg).unwrap_or(reg);
        self.needed[reg.index()] = true;
        if reg.class() == RegisterClass::Gpr && !self.offered.is_empty(reg) && !self.is_leaf(reg) {
            let numbers = self.offered.of(reg).map(|(number, _)| number as usize);
            failed.extend(numbers.filter(|&number| self.kept[number]));
        }
    }

    /// The predicate of the uniform datapath that takes the place of another.
    pub fn renamed(&self, reg: VReg) -> Option<VReg> {
        if reg.class() != RegisterClass::Predicate {
            return None;
        }
        let mut numbers = self.offered.of(reg).map(|(number, _)| number as usize);
        let kept = numbers.find(|&number| self.kept[number])?;
        Some(self.offers[kept].uniform[0])
    }

    /// Whether a parameter is passed, as things are.
    fn stays_parameter(&self, param: VReg) -> bool {
        let passed = |number: u32| {
            self.kept[number as usize]
                && matches!(self.definition(number as usize), Definition::Param(_))
        };
        match param.class() {
            RegisterClass::Uniform => self.within.of(param).any(passed),
            _ => !self.offered.of(param).any(|(number, _)| passed(number)),
        }
    }

    /// Whether a register holds what an operand could be by itself: an immediate or constant memory.
    pub fn is_leaf(&self, reg: VReg) -> bool {
        let Definition::Inst(index) = self.definitions[reg.index()] else {
            return false;
        };
        let inst = &self.code.insts[index as usize].inst;
        let effects = inst.optype().info().effects;
        inst.uses().next().is_none() && !effects.intersects(KEPT.union(Effects::SPECIAL))
    }

    /// Parameters of a block beyond [`PARAMETER_WORDS`]: allocation cannot bring them elsewhere where they are passed.
    pub fn drop_crowded_parameters(&mut self) {
        let mut crowded = Vec::new();
        for data in self.code.blocks.values() {
            let uniform =
                |reg: &&VReg| reg.class() == RegisterClass::Uniform && self.stays_parameter(**reg);
            for &reg in data.params.iter().filter(uniform).skip(PARAMETER_WORDS) {
                crowded.extend(self.within.of(reg));
            }
        }
        if !crowded.is_empty() {
            crowded
                .into_iter()
                .for_each(|number| self.drop(number as usize));
            self.settle();
        }
    }

    /// What becomes of the function.
    pub fn finish(mut self) -> Decision {
        self.settle();
        let code = self.code;
        let insts = (code.insts.iter().zip(&self.stays))
            .map(|(entry, stays)| stays.then(|| self.converted(&entry.inst).unwrap_or(entry.inst)))
            .collect();
        let mut gone = vec![false; self.needed.len()];
        for &param in code.blocks.values().flat_map(|data| &data.params) {
            gone[param.index()] = !self.stays_parameter(param);
        }
        let mut renamed = vec![None; self.needed.len()];
        for offer in self.offers {
            let reg = offer.general[0];
            renamed[reg.index()] = self.renamed(reg);
        }
        Decision {
            insts,
            gone,
            renamed,
            places: self.together,
        }
    }
}

/// For each block itself, or the nearest above that runs with the whole warp.
fn places(code: &VCode<VReg>, dominators: &Dominators) -> SecondaryMap<Block, Option<Block>> {
    let mut places: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    // Dominators stand first.
    for (block, data) in code.blocks.iter() {
        places[block] = match data.divergent {
            true => (dominators.immediate(block.index())).and_then(|up| places[Block::new(up)]),
            false => Some(block),
        };
    }
    places
}
