//! One side of a branch: which of its instructions may run where both sides do, and how.

use super::Refusal;
use crate::isa::table::Effects;
use crate::isa::{Inst, Register, RegisterClass, Role, VReg};
use crate::vcode::{Block, Entry, Guard, VCode};
use hashbrown::HashSet;
use smallvec::SmallVec;

/// How an instruction of a side runs before the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// In all lanes: it only computes, from values that all lanes have.
    AsItIs,
    /// Under the side's guard.
    Guarded,
    /// Under its own guard and the side's.
    Combined,
}

/// One way from the branch to the join.
pub struct Side {
    /// The block between.
    pub block: Block,
    /// When lanes go this way.
    pub guard: Guard<VReg>,
    /// What they hand to the join.
    pub args: Vec<VReg>,
    /// The instructions.
    pub body: Vec<(Entry<VReg>, Treatment)>,
}

impl Side {
    /// The guards of its own that have to be combined with the side's.
    pub fn own_guards(&self) -> SmallVec<[Guard<VReg>; 2]> {
        let mut guards: SmallVec<[Guard<VReg>; 2]> = SmallVec::new();
        for (entry, treatment) in &self.body {
            if let (Treatment::Combined, (Some(reg), negated)) = (*treatment, entry.inst.guard())
                && !guards.contains(&Guard { reg, negated })
            {
                guards.push(Guard { reg, negated });
            }
        }
        guards
    }
}

/// What is known while the instructions of a side are looked at.
pub struct Legality<'a> {
    /// Registers that are written under the guard of some other branch's side only.
    pub partial: &'a HashSet<VReg>,
    /// The same of this side.
    pub partial_here: HashSet<VReg>,
}

impl Legality<'_> {
    /// How an instruction of the side runs.
    pub fn treatment(
        &mut self,
        code: &VCode<VReg>,
        entry: &Entry<VReg>,
    ) -> Result<Treatment, Refusal> {
        let inst = &entry.inst;
        let name = inst.optype().info().name;
        let refused = Err(Refusal::Instruction(name, entry.line));
        let uniform = (inst.definitions()).any(|r| r.class() == RegisterClass::Uniform);
        if uniform || inst.operand(Role::Pg).is_none() {
            return refused;
        }
        let computes = has_only_results(inst);
        if !computes && !only_accesses(inst) {
            return refused;
        }
        if inst.is_unguarded() {
            if computes && !inst.uses().any(|r| self.partial_here.contains(&r)) {
                return Ok(Treatment::AsItIs);
            }
            if entry.attachment.is_some() && inst.definitions().next().is_some() {
                return refused;
            }
            self.partial_here.extend(inst.definitions());
            return Ok(Treatment::Guarded);
        }
        let kept = code.else_values(entry);
        let complete = kept.len() == inst.definitions().count();
        if !complete && (entry.attachment.is_some() || inst.definitions().next().is_some()) {
            return refused;
        }
        let everywhere = |r: VReg| !self.partial.contains(&r) && !self.partial_here.contains(&r);
        let keeps_all = kept.iter().all(|k| k.is_some_and(everywhere));
        if computes && keeps_all && code.uses(entry).all(everywhere) {
            return Ok(Treatment::AsItIs);
        }
        if (inst.guard().0).is_some_and(|guard| self.partial_here.contains(&guard)) {
            return Err(Refusal::Nested(name, entry.line));
        }
        if !keeps_all {
            self.partial_here.extend(inst.definitions());
        }
        Ok(Treatment::Combined)
    }
}

/// Whether an instruction has no effect but its results, so that it may run in lanes that do not need it.
pub fn only_computes(inst: &Inst<VReg>) -> bool {
    has_only_results(inst) && inst.is_unguarded()
}

/// The same under whatever guard.
pub fn has_only_results(inst: &Inst<VReg>) -> bool {
    let effects = inst.optype().info().effects;
    effects == Effects::default() || effects == Effects::SPECIAL
}

/// Whether an instruction does nothing but access memory, which it may do under a guard.
fn only_accesses(inst: &Inst<VReg>) -> bool {
    let memory = Effects::LOAD
        .union(Effects::STORE)
        .union(Effects::ATOMIC)
        .union(Effects::GLOBAL)
        .union(Effects::SHARED)
        .union(Effects::LOCAL)
        .union(Effects::GENERIC)
        .union(Effects::CONSTANT);
    memory.contains(inst.optype().info().effects)
}

/// Whether an instruction loads from the memory of the CTA or stores there.
pub fn accesses_shared(inst: &Inst<VReg>) -> bool {
    let effects = inst.optype().info().effects;
    effects.contains(Effects::SHARED) && !effects.contains(Effects::ATOMIC)
}

/// Removes from `side` what `other`, which runs first, computes as well; the registers whose values those of `other`
/// are, each with its own. Values that attachments name are left to the caller.
pub fn share(other: &Side, side: &mut Side) -> Vec<(VReg, VReg)> {
    let mut renamed: Vec<(VReg, VReg)> = Vec::new();
    let shareable = |(entry, treatment): &(Entry<VReg>, Treatment)| {
        *treatment == Treatment::AsItIs
            && entry.attachment.is_none()
            && entry.inst.optype().info().effects == Effects::default()
    };
    side.body.retain_mut(|(entry, treatment)| {
        let new_name = |r: VReg| renamed.iter().find(|(old, _)| *old == r).map_or(r, |n| n.1);
        entry.inst.rename(new_name);
        let inst = entry.inst;
        let twin = other
            .body
            .iter()
            .filter(|e| shareable(e))
            .find_map(|(e, _)| {
                let names: SmallVec<[(VReg, VReg); 2]> =
                    inst.definitions().zip(e.inst.definitions()).collect();
                let mut same = inst;
                same.rename(|r| names.iter().find(|(own, _)| *own == r).map_or(r, |n| n.1));
                (same == e.inst).then_some(names)
            });
        match twin.filter(|_| shareable(&(*entry, *treatment))) {
            Some(names) => {
                renamed.extend(names);
                false
            }
            None => true,
        }
    });
    let new_name = |r: VReg| renamed.iter().find(|(old, _)| *old == r).map_or(r, |n| n.1);
    side.args.iter_mut().for_each(|arg| *arg = new_name(*arg));
    renamed
}
