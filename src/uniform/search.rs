//! Which offers are kept. Offers are only ever dropped.

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

/// Effects for which an instruction stays although nobody reads its results.
const KEPT: Effects = Effects::CONTROL
    .union(Effects::STORE)
    .union(Effects::ATOMIC)
    .union(Effects::CONVERGENT)
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

/// What is known of a register.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub definition: Definition,
    /// Offers whose general words it is among, by number and place.
    pub offered: SmallVec<[(u32, u8); 1]>,
    /// Offers whose uniform words it is among.
    pub offers: SmallVec<[u32; 1]>,
    /// Instructions of the uniform datapath that read it.
    readers: SmallVec<[u32; 2]>,
    /// Parameters that it is passed for.
    receivers: SmallVec<[VReg; 1]>,
    /// What is passed for it.
    pub arguments: SmallVec<[VReg; 2]>,
    /// Whether the uniform datapath does not compute it.
    pub lost: bool,
    /// Whether somebody reads it, as things are.
    pub needed: bool,
}

/// The search.
pub(super) struct Search<'a> {
    pub code: &'a VCode<VReg>,
    pub offers: &'a [Offer],
    pub kept: Vec<bool>,
    pub known: Vec<Known>,
    /// By instruction, whether it stays, as things are.
    pub stays: Vec<bool>,
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
        let nothing = Known {
            definition: Definition::None,
            offered: SmallVec::new(),
            offers: SmallVec::new(),
            readers: SmallVec::new(),
            receivers: SmallVec::new(),
            arguments: SmallVec::new(),
            lost: false,
            needed: false,
        };
        let mut search = Search {
            code,
            offers,
            kept: vec![true; offers.len()],
            known: vec![nothing; code.vreg_count as usize],
            stays: vec![false; code.insts.len()],
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
            for (place, reg) in (0..).zip(&offer.general) {
                self.known[reg.index()].offered.push((number, place));
            }
            for reg in &offer.uniform {
                self.known[reg.index()].offers.push(number);
            }
        }
        for (block, data) in code.blocks.iter() {
            for &param in &data.params {
                self.known[param.index()].definition = Definition::Param(block);
            }
            for index in data.insts.clone() {
                let inst = &code.insts[index as usize].inst;
                self.block_of[index as usize] = block;
                for reg in inst.definitions() {
                    self.known[reg.index()].definition = Definition::Inst(index);
                }
                if inst.form().is_on_uniform_datapath() {
                    for reg in inst.uses() {
                        self.known[reg.index()].readers.push(index);
                    }
                }
            }
            if let Terminator::Jump { target, args } = &data.terminator {
                for (&argument, &param) in args.iter().zip(&code.blocks[*target].params) {
                    self.known[argument.index()].receivers.push(param);
                    self.known[param.index()].arguments.push(argument);
                }
            }
        }
    }

    /// What has no definition goes first, and what stands where only part of the warp runs and cannot move: it reads a
    /// predicate.
    fn lose_what_is_not_computed(&mut self) {
        let mut lost: Vec<VReg> = Vec::new();
        for (index, known) in self.known.iter().enumerate() {
            let undefined = matches!(known.definition, Definition::None);
            if undefined && !(known.readers.is_empty() && known.receivers.is_empty()) {
                lost.push(VReg::new(RegisterClass::Uniform, index as u32));
            }
        }
        for offer in self.offers {
            let undefined =
                |r: &&VReg| matches!(self.known[r.index()].definition, Definition::None);
            lost.extend(offer.uniform.iter().filter(undefined));
        }
        for (entry, &block) in self.code.insts.iter().zip(&self.block_of) {
            let here = self.together[block] == Some(block);
            let moves = self.together[block].is_some()
                && (entry.inst.uses()).all(|r| r.class() == RegisterClass::Uniform);
            if entry.inst.form().is_on_uniform_datapath() && !here && !moves {
                lost.extend(entry.inst.definitions());
            }
        }
        self.lose(lost);
    }

    /// Notes that the uniform datapath does not compute these, and what follows.
    fn lose(&mut self, mut work: Vec<VReg>) {
        while let Some(reg) = work.pop() {
            let known = &mut self.known[reg.index()];
            if std::mem::replace(&mut known.lost, true) {
                continue;
            }
            for &offer in &known.offers {
                // The words of a value stay together.
                if std::mem::replace(&mut self.kept[offer as usize], false) {
                    work.extend(&self.offers[offer as usize].uniform);
                }
            }
            let known = &self.known[reg.index()];
            for &index in &known.readers {
                work.extend(self.code.insts[index as usize].inst.definitions());
            }
            let uniform = |r: &&VReg| r.class() == RegisterClass::Uniform;
            work.extend(known.receivers.iter().filter(uniform));
        }
    }

    /// Drops an offer. A sum leaves its pointer where it is.
    pub fn drop(&mut self, number: usize) {
        let offer = &self.offers[number];
        match offer.index {
            Some(_) => self.kept[number] = false,
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
            None => self.known[offer.uniform[0].index()].definition,
        }
    }

    /// Drops what somebody reads who cannot read it from uniform registers, until nobody does.
    pub fn settle(&mut self) {
        for _ in 0..SWEEPS {
            let failed = self.sweep();
            if failed.is_empty() {
                return;
            }
            failed.into_iter().for_each(|number| self.drop(number));
        }
        (0..self.offers.len()).for_each(|number| self.drop(number));
        self.sweep();
    }

    /// Goes through the function backwards and finds what is needed if all offers that are kept are taken. Gives those
    /// that cannot be: somebody reads their general registers.
    pub fn sweep(&mut self) -> Vec<usize> {
        let code = self.code;
        let mut failed = Vec::new();
        self.known.iter_mut().for_each(|known| known.needed = false);
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
                    || (entry.inst.definitions()).any(|r| self.known[r.index()].needed);
                self.stays[index as usize] = stays;
                if stays {
                    self.read_operands(entry, &mut failed);
                }
            }
        }
        failed.sort_unstable();
        failed.dedup();
        failed
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
        self.known[reg.index()].needed = true;
        if reg.class() != RegisterClass::Gpr || self.is_leaf(reg) {
            return;
        }
        for &(number, _) in &self.known[reg.index()].offered {
            let number = number as usize;
            if self.kept[number] {
                failed.push(number);
            }
        }
    }

    /// The predicate of the uniform datapath that takes the place of another.
    pub fn renamed(&self, reg: VReg) -> Option<VReg> {
        let known = &self.known[reg.index()];
        if reg.class() != RegisterClass::Predicate {
            return None;
        }
        let kept = known.offered.iter().find(|(n, _)| self.kept[*n as usize])?;
        Some(self.offers[kept.0 as usize].uniform[0])
    }

    /// Whether a parameter is passed, as things are.
    fn stays_parameter(&self, param: VReg) -> bool {
        let known = &self.known[param.index()];
        let passed = |number: u32| {
            self.kept[number as usize]
                && matches!(self.definition(number as usize), Definition::Param(_))
        };
        match param.class() {
            RegisterClass::Uniform => known.offers.iter().any(|&n| passed(n)),
            _ => !known.offered.iter().any(|&(n, _)| passed(n)),
        }
    }

    /// Whether a register holds what an operand could be by itself: an immediate or constant memory.
    pub fn is_leaf(&self, reg: VReg) -> bool {
        let Definition::Inst(index) = self.known[reg.index()].definition else {
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
            for reg in data.params.iter().filter(uniform).skip(PARAMETER_WORDS) {
                crowded.extend_from_slice(&self.known[reg.index()].offers);
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
        let mut gone = vec![false; self.known.len()];
        for &param in code.blocks.values().flat_map(|data| &data.params) {
            gone[param.index()] = !self.stays_parameter(param);
        }
        let predicate = |index: usize| VReg::new(RegisterClass::Predicate, index as u32);
        let renamed = (0..self.known.len())
            .map(|index| {
                let of_predicate = |&(n, _): &(u32, u8)| {
                    self.offers[n as usize].general[0].class() == RegisterClass::Predicate
                };
                let known = &self.known[index];
                (known.offered.iter().any(of_predicate))
                    .then(|| self.renamed(predicate(index)))
                    .flatten()
            })
            .collect();
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
