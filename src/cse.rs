//! Common subexpressions of machine code: what is computed already is not computed again.
//!
//! In: lowered code in SSA form. Cranelift's mid-end has numbered values before, but repeats cheap operations in every
//! block that uses them (it hopes to fold them there), and one CLIF operation becomes several instructions, which it
//! never sees: a quotient and a remainder have their estimate in common, wide products their partial ones. Out: the
//! same without an instruction that an equal one dominates.
//!
//! Equal are instructions of one word with the same sources that only compute and write general registers. Predicates
//! stay where they are, since there are few; so do constants of a function that calls, which would be saved and loaded
//! instead. Of other functions a few constants are kept in registers: the allocator makes them again where registers
//! do not suffice. One walk over the blocks in reverse postorder, in which definitions come before their users.
//!
//! It runs once more where sides of branches have become one block ([`crate::simt`]): neither side dominated the other.

use crate::analysis::graph::Dominators;
use crate::isa::table::{Direction, Effects};
use crate::isa::{Inst, Optype, Register, RegisterClass, VReg};
use crate::simt::edit::control_flow;
use crate::vcode::{Block, Entry, VCode};
use cranelift_codegen::entity::EntityRef;
use hashbrown::hash_table::Entry as Slot;
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// How many constants a function may keep for blocks further on (*assumed*: more would cost registers that nobody
/// needs to save a MOV each).
const KEPT_CONSTANTS: usize = 8;

/// Leaves out what is computed already.
pub fn eliminate(mut code: VCode<VReg>) -> VCode<VReg> {
    let candidates = code.insts.iter().filter(|entry| may_repeat(entry)).count();
    if candidates < 2 {
        return code;
    }
    let dominators = (code.blocks.len() > 1).then(|| Dominators::new(&control_flow(&code), 0));
    let dominates = |block: Block, other: Block| match &dominators {
        Some(dominators) => dominators.dominates(block.index(), other.index()),
        None => true,
    };
    let read = read_anywhere(&code);
    let has_calls = code.frame.has_calls;
    // By what instructions compute, where the last one is that does.
    let mut known: HashTable<(Block, u32)> = HashTable::with_capacity(candidates);
    let hasher = DefaultHashBuilder::default();
    let mut aliases = Aliases::default();
    let mut gone: Vec<u32> = Vec::new();
    let mut kept: SmallVec<[u32; KEPT_CONSTANTS]> = SmallVec::new();
    for (block, data) in &code.blocks {
        for index in data.insts.clone() {
            let entry = &mut code.insts[index as usize];
            if !aliases.is_empty() {
                aliases.rename(&mut entry.inst);
            }
            if !may_repeat(entry) || has_calls && is_constant(&entry.inst) {
                continue;
            }
            let inst = entry.inst;
            let computed = without_results(inst);
            let of = |&(_, index): &(Block, u32)| without_results(code.insts[index as usize].inst);
            let hash = hasher.hash_one(computed);
            match known.entry(
                hash,
                |place| of(place) == computed,
                |place| hasher.hash_one(of(place)),
            ) {
                Slot::Vacant(slot) => _ = slot.insert((block, index)),
                Slot::Occupied(mut slot) => {
                    let (other, first) = *slot.get();
                    let is_read = inst.definitions().any(|reg| read[reg.index()]);
                    if !is_read {
                        continue;
                    }
                    let is_known = dominates(other, block)
                        && (!is_constant(&inst) || may_keep(&mut kept, first));
                    if is_known {
                        let first = code.insts[first as usize].inst;
                        aliases.add(inst.definitions().zip(first.definitions()));
                        gone.push(index);
                    } else {
                        *slot.get_mut() = (block, index);
                    }
                }
            }
        }
    }
    if !gone.is_empty() {
        aliases.rename_rest(&mut code);
        remove(&mut code, &gone);
    }
    code
}

/// For each register whether an instruction reads it wherever it is. What edges, calls and returns pass on, and a word
/// computed alone that is part of a wide operand, would be copied to where it has to be instead of computed there.
fn read_anywhere(code: &VCode<VReg>) -> Vec<bool> {
    let mut read = vec![false; code.vreg_count as usize];
    let mut alone = vec![false; code.vreg_count as usize];
    for entry in &code.insts {
        let mut definitions = entry.inst.definitions();
        if let (Some(only), None) = (definitions.next(), definitions.next()) {
            alone[only.index()] = true;
        }
    }
    for operand in code.insts.iter().flat_map(|entry| entry.inst.operands()) {
        if operand.info.direction != Direction::Out {
            let is_wide = operand.regs.iter().flatten().count() > 1;
            for reg in operand.regs.iter().flatten() {
                read[reg.index()] |= !(is_wide && alone[reg.index()]);
            }
        }
    }
    read
}

/// Whether an instruction is the same wherever its sources are.
fn may_repeat(entry: &Entry<VReg>) -> bool {
    let inst = &entry.inst;
    let effects = inst.optype().info().effects;
    let only_computes = !effects.intersects(
        Effects::KEPT
            .union(Effects::LOAD)
            .union(Effects::SPECIAL)
            .union(Effects::PREDICATES)
            .union(Effects::BARRIER),
    );
    let is_general = |reg: VReg| reg.class() == RegisterClass::Gpr;
    only_computes
        && entry.attachment.is_none()
        && inst.is_unguarded()
        && (inst.optype() != Optype::MOV || is_constant(inst))
        && inst.definitions().next().is_some()
        && inst.definitions().all(is_general)
}

/// Whether the constant that this instruction loads stays in its register.
fn may_keep(kept: &mut SmallVec<[u32; KEPT_CONSTANTS]>, index: u32) -> bool {
    let is_kept = kept.contains(&index);
    let may = is_kept || kept.len() < KEPT_CONSTANTS;
    if may && !is_kept {
        kept.push(index);
    }
    may
}

/// Whether an instruction reads no register.
fn is_constant(inst: &Inst<VReg>) -> bool {
    let mut operands = inst.operands();
    operands.all(|operand| {
        operand.info.direction == Direction::Out || operand.regs.iter().flatten().next().is_none()
    })
}

/// The instruction without the registers that it writes.
fn without_results(inst: Inst<VReg>) -> Inst<VReg> {
    let mut regs = *inst.regs();
    let writes = inst.info().writes;
    for (place, reg) in regs.iter_mut().enumerate() {
        if writes & 1 << place != 0 {
            *reg = None;
        }
    }
    Inst::from_parts(inst.form(), inst.word(), regs)
}

/// Registers that have the value of others.
#[derive(Default)]
struct Aliases {
    of: Vec<Option<VReg>>,
}

impl Aliases {
    fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    fn add(&mut self, pairs: impl Iterator<Item = (VReg, VReg)>) {
        for (reg, first) in pairs {
            if self.of.len() <= reg.index() {
                self.of.resize(reg.index() + 1, None);
            }
            self.of[reg.index()] = Some(first);
        }
    }

    /// What is read in its place. The first is none that is left out itself.
    fn get(&self, reg: VReg) -> VReg {
        self.of.get(reg.index()).copied().flatten().unwrap_or(reg)
    }

    fn rename(&self, inst: &mut Inst<VReg>) {
        inst.rename(|reg| self.get(reg));
    }

    /// In all that is not an operand of an instruction.
    fn rename_rest(&self, code: &mut VCode<VReg>) {
        for attachment in code.attachments.values_mut() {
            attachment.for_each_register(|reg| *reg = self.get(*reg));
        }
        for data in code.blocks.values_mut() {
            data.terminator
                .for_each_register(|reg| *reg = self.get(*reg));
        }
        for holder in &mut code.holders {
            holder.held.rename(|reg| self.get(reg));
        }
    }
}

/// Leaves out the instructions at these places, which are in order.
fn remove(code: &mut VCode<VReg>, gone: &[u32]) {
    let before = |index: u32| gone.partition_point(|&place| place < index) as u32;
    for data in code.blocks.values_mut() {
        data.insts =
            data.insts.start - before(data.insts.start)..data.insts.end - before(data.insts.end);
    }
    let mut places = gone.iter().copied().peekable();
    let mut index = 0;
    code.insts.retain(|_| {
        let goes = places.next_if_eq(&index).is_some();
        index += 1;
        !goes
    });
}
