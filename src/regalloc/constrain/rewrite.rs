//! Writes a function as a plan has it.
//!
//! Blocks are rewritten in order with the name under which each value is in a register. A value that comes back does so
//! under a new name; where names meet, a new block parameter joins them. Values that come back on an edge do so at the
//! end of the predecessor, where parameters at their homes are stored as well, all of them at once in effect. Uses of a
//! uniform value that is not in its register take the form that reads its GPR. What nobody reads in the end is left out
//! again ([`super::tidy`]).

mod borders;

use super::flow::Flow;
use super::plan::{NONE, Plan, Store};
use super::pressure::stack_pointer;
use super::rematerialization::is_repeatable;
use super::tidy::{Join, tidy};
use super::{Constrained, uniform};
use crate::abi;
use crate::isa::table::Direction;
use crate::isa::{Register, RegisterClass, VInst, VReg};
use crate::regalloc::check::ADDED;
use crate::regalloc::moves;
use crate::vcode::{Attachment, Bit, Block, Entry, SourceLine, VCode};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Rewrites `before` by `plan`, which must not be empty.
pub(in crate::regalloc) fn apply(before: &Constrained, plan: &Plan) -> Constrained {
    let old = &before.code;
    let flow = plan.flow.as_ref().expect("the plan is not empty");
    let mut code = VCode {
        insts: Vec::new(),
        ..old.clone()
    };
    let slots = code.frame.spill_offset() + code.frame.spill_bytes;
    code.frame.spill_bytes += 4 * plan.slots;
    let pointer = stack_pointer(old).or_else(|| {
        (plan.slots > 0).then(|| {
            let pointer = code.new_vreg(RegisterClass::Gpr);
            code.entry.push((pointer, abi::STACK_POINTER));
            pointer
        })
    });
    let mut rewriter = Rewriter {
        old,
        before,
        plan,
        flow,
        slots,
        pointer,
        out: Vec::with_capacity(old.insts.len()),
        origin: Vec::with_capacity(old.insts.len()),
        name: Vec::new(),
        home: HashMap::new(),
        bits: HashMap::new(),
        names: Vec::new(),
        name_ends: Vec::new(),
        joins: Vec::new(),
        first_new: 0,
        shadow: None,
        code,
    };
    rewriter.run();
    let Rewriter {
        mut code,
        out,
        origin,
        joins,
        first_new,
        ..
    } = rewriter;
    code.insts = out;
    let origin = tidy(&mut code, origin, joins, flow, first_new, is_repeatable);
    let recorded = before.origins.are_recorded();
    Constrained::rewritten(code, recorded.then_some(origin))
}

/// The writer, with what it knows at the place at hand.
pub(super) struct Rewriter<'a> {
    pub old: &'a VCode<VReg>,
    before: &'a Constrained,
    pub plan: &'a Plan,
    pub flow: &'a Flow,
    /// Offset of the first slot.
    pub slots: u32,
    pub pointer: Option<VReg>,
    /// Without instructions; blocks as before until they are rewritten.
    pub code: VCode<VReg>,
    pub out: Vec<Entry<VReg>>,
    /// Where each of `out` comes from.
    origin: Vec<u32>,
    /// By value: the name it has in a register, if it is in one.
    pub name: Vec<VReg>,
    /// GPRs that hold predicates and uniform values.
    pub home: HashMap<VReg, VReg>,
    /// Predicates that share homes, with their bits.
    bits: HashMap<VReg, Bit>,
    /// By block, values with their names at its end.
    pub names: Vec<(VReg, VReg)>,
    pub name_ends: Vec<u32>,
    pub joins: Vec<Join>,
    /// The first virtual register that is new.
    pub first_new: u32,
    /// A slot for a cycle of copies between slots.
    pub shadow: Option<u32>,
}

impl Rewriter<'_> {
    fn run(&mut self) {
        let values = self.old.vreg_count;
        self.first_new = values;
        self.name = self.values_as_they_are();
        if self.plan.class != RegisterClass::Gpr {
            for (v, housed) in self.plan.housed.iter().enumerate() {
                if *housed {
                    let home = self.code.new_vreg(RegisterClass::Gpr);
                    self.home.insert(VReg::new(self.plan.class, v as u32), home);
                }
            }
        }
        self.open_packs();
        let mut stores = self.plan.stores.iter().peekable();
        let mut reloads = self.plan.reloads.iter().peekable();
        let mut home_reads = self.plan.home_reads.iter().peekable();
        for (block, data) in self.old.blocks.iter() {
            let start = self.out.len() as u32;
            self.enter(block);
            for (index, entry) in data.insts.clone().zip(self.old.block_insts(block)) {
                let here = |s: &&Store| s.block == block && s.index == index;
                while let Some(store) = stores.next_if(here) {
                    self.store(store.value, entry.line);
                }
                let at = |(_, p): &&(VReg, _)| is_at(p, block, index);
                while let Some((v, _)) = reloads.next_if(at) {
                    self.bring(*v, entry.line);
                }
                let mut at_home: SmallVec<[VReg; 4]> = SmallVec::new();
                while let Some((v, _)) = home_reads.next_if(at) {
                    at_home.push(*v);
                }
                self.instruction(block, index, entry, &at_home);
            }
            let line = data.line;
            while let Some(store) = stores.next_if(|s| s.block == block) {
                self.store(store.value, line);
            }
            while let Some((v, _)) = reloads.next_if(|(_, p)| p.block == block) {
                self.bring(*v, line);
            }
            self.leave(block, line);
            self.code.blocks[block].insts = start..self.out.len() as u32;
            self.rename_params(block);
        }
        self.pass_joined();
    }

    /// Gives the predicates of each pack one home.
    fn open_packs(&mut self) {
        let packed = |s: &&Store| self.plan.pack_of[s.value.index()] != NONE;
        let mut open = None;
        for store in self.plan.stores.iter().filter(packed) {
            let number = self.plan.pack_of[store.value.index()];
            let pack = match open {
                Some((known, pack)) if known == number => pack,
                _ => self
                    .code
                    .attachments
                    .push(Attachment::Pack(SmallVec::new())),
            };
            open = Some((number, pack));
            let Attachment::Pack(values) = &mut self.code.attachments[pack] else {
                unreachable!("it has just been made");
            };
            let place = values.len() as u8;
            values.push(store.value);
            if let Some(first) = values.first().filter(|first| **first != store.value) {
                let home = self.home[first];
                self.home.insert(store.value, home);
            }
            self.bits.insert(store.value, Bit { pack, place });
        }
    }

    fn values_as_they_are(&self) -> Vec<VReg> {
        let mut names = vec![VReg::new(self.plan.class, 0); self.old.vreg_count as usize];
        for (i, name) in names.iter_mut().enumerate() {
            *name = VReg::new(self.plan.class, i as u32);
        }
        names
    }

    fn is_split(&self, v: VReg) -> bool {
        v.class() == self.plan.class && self.plan.split[v.index()]
    }

    /// The name of a value where it is in a register.
    pub(super) fn here(&self, v: VReg) -> VReg {
        if self.is_split(v) {
            self.name[v.index()]
        } else {
            v
        }
    }

    pub(super) fn fresh(&mut self, class: RegisterClass) -> VReg {
        self.code.new_vreg(class)
    }

    pub(super) fn push(&mut self, inst: VInst, line: SourceLine) {
        self.add(Entry::new(inst, line));
    }

    /// Adds an instruction that was not there.
    fn add(&mut self, entry: Entry<VReg>) {
        self.out.push(entry);
        self.origin.push(ADDED);
    }

    pub(super) fn pointer(&self) -> VReg {
        self.pointer.expect("there are slots")
    }

    pub(super) fn slot(&self, v: VReg) -> u32 {
        debug_assert_ne!(self.plan.slot[v.index()], NONE);
        self.slots + 4 * self.plan.slot[v.index()]
    }

    /// Puts a value into its home. That of a pack is written by the first that comes, for all of them.
    fn store(&mut self, v: VReg, line: SourceLine) {
        let here = self.here(v);
        if let Some(bit) = self.bits.get(&v) {
            let Attachment::Pack(values) = &mut self.code.attachments[bit.pack] else {
                unreachable!("bits are of packs");
            };
            values[usize::from(bit.place)] = here;
            if bit.place == 0 {
                self.add(Entry::new(moves::pack(self.home[&v]), line).with(Some(bit.pack)));
            }
            return;
        }
        match self.plan.class {
            RegisterClass::Gpr => {
                let inst = moves::spill_store(here, self.pointer(), self.slot(v));
                self.push(inst, line);
            }
            _ => self.copy_to_gpr(self.home[&v], here, line),
        }
    }

    pub(super) fn copy_to_gpr(&mut self, to: VReg, from: VReg, line: SourceLine) {
        let inst = match from.class() {
            RegisterClass::Predicate => moves::predicate_to_gpr(to, from),
            _ => moves::uniform_to_gpr(to, from),
        };
        self.push(inst, line);
    }

    /// Brings a value back under a new name.
    pub(super) fn bring(&mut self, v: VReg, line: SourceLine) {
        let copy = self.bring_copy(v, line);
        self.name[v.index()] = copy;
    }

    pub(super) fn bring_copy(&mut self, v: VReg, line: SourceLine) -> VReg {
        let copy = self.fresh(v.class());
        if self.plan.rematerializable.knows(v) {
            let (inst, attachment) = self.plan.rematerializable.make(self.old, v, copy);
            let attachment = attachment.map(|a| {
                let same = self.code.attachments[a].clone();
                self.code.attachments.push(same)
            });
            self.add(Entry::new(inst, line).with(attachment));
            return copy;
        }
        let inst = match v.class() {
            RegisterClass::Gpr => moves::spill_load(copy, self.pointer(), self.slot(v)),
            RegisterClass::Predicate if let Some(bit) = self.bits.get(&v) => {
                let attachment = self.code.attachments.push(Attachment::Bit(*bit));
                self.add(
                    Entry::new(moves::test_bit(copy, self.home[&v]), line).with(Some(attachment)),
                );
                return copy;
            }
            RegisterClass::Predicate => moves::gpr_to_predicate(copy, self.home[&v]),
            RegisterClass::Uniform => moves::gpr_to_uniform(copy, self.home[&v]),
        };
        self.push(inst, line);
        copy
    }

    fn instruction(&mut self, block: Block, index: u32, old: &Entry<VReg>, at_home: &[VReg]) {
        let mut entry = *old;
        if !at_home.is_empty() {
            self.read_at_home(block, &mut entry, at_home);
        }
        let class = self.plan.class;
        let (split, name) = (&self.plan.split, &self.name);
        let rename = |v: &mut VReg| {
            if v.class() == class
                && let Some(true) = split.get(v.index())
            {
                *v = name[v.index()];
            }
        };
        entry.inst = entry.inst.map_operands(|info, _, mut v| {
            if info.direction == Direction::In {
                rename(&mut v);
            }
            v
        });
        match entry.attachment.map(|a| &mut self.code.attachments[a]) {
            Some(Attachment::Else(kept)) => kept.iter_mut().flatten().for_each(rename),
            Some(Attachment::Call(call)) => call.uses.iter_mut().for_each(|(v, _)| rename(v)),
            _ => {}
        }
        self.out.push(entry);
        self.origin.push(self.before.origins.of(index));
        for v in self.old.definitions(old) {
            if self.is_split(v) {
                self.name[v.index()] = v;
            }
        }
    }

    /// Lets an instruction read uniform values from GPRs: `at_home` from their homes, others from copies.
    fn read_at_home(&mut self, block: Block, entry: &mut Entry<VReg>, at_home: &[VReg]) {
        let mut homes: HashMap<VReg, VReg> = HashMap::new();
        let read: SmallVec<[VReg; 4]> = entry
            .inst
            .uses()
            .filter(|v| v.class() == RegisterClass::Uniform)
            .collect();
        for v in read {
            if homes.contains_key(&v) {
                continue;
            }
            let home = if at_home.contains(&v) {
                self.home[&v]
            } else {
                let copy = self.fresh(RegisterClass::Gpr);
                self.copy_to_gpr(copy, self.here(v), entry.line);
                copy
            };
            homes.insert(v, home);
        }
        if let Some(inst) = uniform::in_gprs(&entry.inst, &homes) {
            entry.inst = inst;
            return;
        }
        debug_assert!(self.code.blocks[block].divergent);
        let code = &mut self.code;
        let mut new = |class| code.new_vreg(class);
        let mut added = Vec::new();
        let inst = uniform::address_in_gprs(&entry.inst, &homes, &mut new, &mut added);
        entry.inst = inst.expect("the plan has asked whether it can");
        let line = entry.line;
        added.into_iter().for_each(|inst| self.push(inst, line));
    }
}

fn is_at(point: &super::plan::BlockPoint, block: Block, index: u32) -> bool {
    point.block == block && point.index() == index
}
