//! Where the values of a class are in registers, and where they are when they are not.

use super::flow::{Flow, OUTSIDE};
use super::rematerialization::Rematerializable;
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::liveness::edge_arguments;
use crate::vcode::{Block, VCode};
use cranelift_codegen::entity::EntityRef;
use hashbrown::HashSet;

/// No slot, no group.
pub(super) const NONE: u32 = u32::MAX;

/// A place in a block, before or behind an instruction or before the terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockPoint {
    pub block: Block,
    /// Twice the index of the instruction, and one more behind it.
    place: u32,
}

impl BlockPoint {
    /// Before instruction `index`, or the terminator that would have this index.
    pub fn before(block: Block, index: u32) -> BlockPoint {
        BlockPoint {
            block,
            place: 2 * index,
        }
    }

    /// Behind instruction `index`.
    pub fn behind(block: Block, index: u32) -> BlockPoint {
        BlockPoint {
            block,
            place: 2 * index + 1,
        }
    }

    /// Before the terminator.
    pub fn end(code: &VCode<VReg>, block: Block) -> BlockPoint {
        BlockPoint::before(block, code.blocks[block].insts.end)
    }

    /// The instruction, or the terminator's index.
    pub fn index(self) -> u32 {
        self.place / 2
    }

    /// Whether every path to `other` passes here.
    pub fn dominates(self, other: BlockPoint, flow: &Flow) -> bool {
        if self.block == other.block {
            self.place <= other.place
        } else {
            flow.dominates(self.block, other.block)
        }
    }

    /// The last place that dominates both.
    pub fn common(self, other: BlockPoint, code: &VCode<VReg>, flow: &Flow) -> BlockPoint {
        let block = flow.common(self.block, other.block);
        let within = |p: BlockPoint| (p.block == block).then_some(p.place);
        let place = match (within(self), within(other)) {
            (Some(a), Some(b)) => a.min(b),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => BlockPoint::end(code, block).place,
        };
        BlockPoint { block, place }
    }
}

/// How many predicates are in registers around the instructions of a function, while they are being placed; by
/// [`place`].
#[derive(Debug, Default)]
pub(super) struct Crowds {
    /// Before what the instruction reads comes back.
    pub before: Vec<u32>,
    /// The most that there are at the instruction; [`NONE`] where none survives it.
    pub most: Vec<u32>,
}

/// The place of an instruction or terminator in [`Crowds`].
pub(super) fn place(at: BlockPoint) -> usize {
    (at.index() + at.block.as_u32()) as usize
}

impl Crowds {
    /// Forgets all.
    pub fn reset(&mut self, code: &VCode<VReg>, class: RegisterClass) {
        let places = match class {
            RegisterClass::Predicate => code.insts.len() + code.blocks.len(),
            RegisterClass::Gpr | RegisterClass::Uniform => 0,
        };
        for list in [&mut self.before, &mut self.most] {
            list.clear();
            list.resize(places, 0);
        }
    }

    /// So many are in registers at a place.
    pub fn note(&mut self, at: BlockPoint, count: u32) {
        if let Some(most) = self.most.get_mut(place(at)) {
            *most = (*most).max(count);
        }
    }

    /// So many are in registers before a place.
    pub fn note_before(&mut self, at: BlockPoint, count: u32) {
        if let Some(before) = self.before.get_mut(place(at)) {
            *before = count;
        }
    }
}

/// A value that leaves its register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eviction {
    pub value: VReg,
    /// It is in its register up to here.
    pub at: BlockPoint,
}

/// A sorted list of values for every block.
#[derive(Debug, Default)]
pub(super) struct Lists {
    ends: Vec<u32>,
    values: Vec<VReg>,
}

impl Lists {
    fn clear(&mut self) {
        self.ends.clear();
        self.values.clear();
    }

    /// Adds the list of the next block.
    pub fn push(&mut self, values: impl Iterator<Item = VReg>) {
        let start = self.values.len();
        self.values.extend(values);
        self.values[start..].sort_unstable();
        self.ends.push(self.values.len() as u32);
    }

    /// The list of a block.
    pub fn of(&self, block: Block) -> &[VReg] {
        let start = match block.index() {
            0 => 0,
            i => self.ends[i - 1],
        };
        &self.values[start as usize..self.ends[block.index()] as usize]
    }

    /// Whether the list of a block has a value.
    pub fn has(&self, block: Block, v: VReg) -> bool {
        self.of(block).binary_search(&v).is_ok()
    }
}

/// What a value is stored for, and where; see [`super::homes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Store {
    pub value: VReg,
    pub block: Block,
    /// The instruction before which it is stored, or the index of the terminator.
    pub index: u32,
}

/// See the module. Made by [`super::spill`], completed by [`super::homes`].
#[derive(Debug)]
pub(in crate::regalloc) struct Plan {
    pub(super) class: RegisterClass,
    /// Values in registers at the entry of each block.
    pub(super) entry: Lists,
    /// Values in registers at the end of each block.
    pub(super) exit: Lists,
    /// Values that come back before an instruction or terminator, in order.
    pub(super) reloads: Vec<(VReg, BlockPoint)>,
    /// Values that an instruction reads at their home.
    pub(super) home_reads: Vec<(VReg, BlockPoint)>,
    pub(super) evictions: Vec<Eviction>,
    pub(super) rematerializable: Rematerializable,
    /// By value: whether it is not in its register somewhere where it is needed.
    pub(super) split: Vec<bool>,
    /// By value: whether it has a home that must be filled.
    pub(super) housed: Vec<bool>,
    /// By value: the block of which it is a parameter.
    param_of: Vec<u32>,
    /// By value: which values share its home because one becomes the other.
    pub(super) group: Vec<u32>,
    /// By value: number of its slot.
    pub(super) slot: Vec<u32>,
    /// Number of slots.
    pub(super) slots: u32,
    /// In order of their places, those of a pack next to each other.
    pub(super) stores: Vec<Store>,
    /// By value: the pack that has its home, or [`NONE`].
    pub(super) pack_of: Vec<u32>,
    /// Number of packs.
    pub(super) packs: u32,
    /// How many values may be in registers.
    pub(super) limit: u32,
    pub(super) crowds: Crowds,
    /// Values that come back in a loop: `(loop, value)`.
    /// With [`OUTSIDE`] for all values that come back anywhere.
    pub(super) returns: HashSet<(u32, VReg)>,
    pub(super) flow: Option<Flow>,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            class: RegisterClass::Gpr,
            entry: Lists::default(),
            exit: Lists::default(),
            reloads: Vec::new(),
            home_reads: Vec::new(),
            evictions: Vec::new(),
            rematerializable: Rematerializable::default(),
            split: Vec::new(),
            housed: Vec::new(),
            param_of: Vec::new(),
            group: Vec::new(),
            slot: Vec::new(),
            slots: 0,
            stores: Vec::new(),
            pack_of: Vec::new(),
            packs: 0,
            limit: 0,
            crowds: Crowds::default(),
            returns: HashSet::new(),
            flow: None,
        }
    }
}

impl Plan {
    /// Starts over.
    pub(super) fn begin(&mut self, code: &VCode<VReg>, class: RegisterClass, limit: u32) {
        self.class = class;
        self.limit = limit;
        self.packs = 0;
        self.crowds.reset(code, class);
        self.entry.clear();
        self.exit.clear();
        self.reloads.clear();
        self.home_reads.clear();
        self.evictions.clear();
        for list in [&mut self.split, &mut self.housed] {
            list.clear();
            list.resize(code.vreg_count as usize, false);
        }
        for list in [
            &mut self.group,
            &mut self.slot,
            &mut self.param_of,
            &mut self.pack_of,
        ] {
            list.clear();
            list.resize(code.vreg_count as usize, NONE);
        }
        for (block, data) in code.blocks.iter() {
            for v in &data.params {
                self.param_of[v.index()] = block.index() as u32;
            }
        }
        self.slots = 0;
        self.stores.clear();
        self.returns.clear();
        self.flow = None;
    }

    /// Whether nothing has to be done.
    pub fn is_empty(&self) -> bool {
        self.flow.is_none()
    }

    /// Notes that a value comes back.
    pub(super) fn bring(&mut self, v: VReg, at: BlockPoint) {
        self.reloads.push((v, at));
    }

    /// Notes that an instruction reads a value at its home.
    pub(super) fn read_home(&mut self, v: VReg, at: BlockPoint) {
        self.home_reads.push((v, at));
    }

    /// Whether a value is a parameter of a block.
    pub(super) fn is_parameter(&self, v: VReg, block: Block) -> bool {
        self.param_of[v.index()] == block.index() as u32
    }

    /// Whether a value is a parameter that begins at its home, and of which block.
    pub(super) fn displaced_from(&self, v: VReg) -> Option<Block> {
        let block = self.param_of[v.index()];
        let block = (block != NONE).then(|| Block::new(block as usize))?;
        (!self.entry.has(block, v)).then_some(block)
    }

    /// Parameters of a block that do not begin in registers, with their numbers.
    pub(super) fn displaced<'a>(
        &'a self,
        code: &'a VCode<VReg>,
        block: Block,
    ) -> impl Iterator<Item = (usize, VReg)> + 'a {
        let params = code.blocks[block].params.iter().copied().enumerate();
        let outside =
            move |(_, p): &(usize, VReg)| p.class() == self.class && !self.entry.has(block, *p);
        params.filter(outside)
    }

    /// Visits what has to come back at the end of `from` for the sake of its only successor `to`: values in registers
    /// there, or which become parameters in registers there. A value may be visited more than once; the second is what
    /// it becomes.
    pub(super) fn missing(
        &self,
        code: &VCode<VReg>,
        from: Block,
        to: Block,
        mut visit: impl FnMut(VReg, VReg),
    ) {
        for v in self.entry.of(to) {
            if !self.exit.has(from, *v) && !self.is_parameter(*v, to) {
                visit(*v, *v);
            }
        }
        let pinned = super::pressure::stack_pointer(code);
        for (arg, param) in edge_arguments(code, from) {
            let register = param.class() == self.class && self.entry.has(to, param);
            if register && !self.exit.has(from, arg) && Some(arg) != pinned {
                visit(arg, param);
            }
        }
    }

    /// Whether a value is not in a register somewhere where it is needed.
    pub(super) fn is_needed(&self, code: &VCode<VReg>, flow: &Flow) -> bool {
        if !self.reloads.is_empty() || !self.home_reads.is_empty() {
            return true;
        }
        code.blocks.keys().any(|block| {
            let mut missing = false;
            if flow.is_join(block) {
                for from in flow.predecessors(block) {
                    self.missing(code, from, block, |_, _| missing = true);
                }
            }
            // Also those that nobody reads, if nothing may be written to them.
            let foreign = self.class == RegisterClass::Uniform;
            missing || foreign && self.displaced(code, block).next().is_some()
        })
    }

    /// What bringing values back costs, by how often blocks run.
    pub(super) fn cost(&self, code: &VCode<VReg>, flow: &Flow) -> f32 {
        let one = |v: VReg, block: Block| {
            flow.frequency(block)
                * if self.rematerializable.knows(v) {
                    0.25
                } else {
                    1.0
                }
        };
        let mut cost: f32 = self.reloads.iter().map(|(v, at)| one(*v, at.block)).sum();
        for block in code.blocks.keys() {
            let displaced = self.displaced(code, block).count();
            for from in flow.predecessors(block).filter(|_| flow.is_join(block)) {
                self.missing(code, from, block, |v, _| cost += one(v, from));
                cost += flow.frequency(from) * displaced as f32;
            }
        }
        cost
    }

    /// Notes that a value comes back in a block.
    pub(super) fn note_return(&mut self, v: VReg, block: Block, flow: &Flow) {
        let mut around = flow.innermost(block);
        self.returns.insert((OUTSIDE, v));
        while around != OUTSIDE && self.returns.insert((around, v)) {
            around = flow.parent(around);
        }
    }
}
