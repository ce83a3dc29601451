//! Instructions that read offered values from uniform registers.

use super::search::Search;
use crate::isa::table::Direction;
use crate::isa::{Inst, RegisterClass, Role, VReg};
use smallvec::SmallVec;

impl Search<'_> {
    /// The instruction with as many operands as possible read from uniform registers, and predicates of the uniform
    /// datapath in the place of others. None if it stays as it is.
    pub fn converted(&self, inst: &Inst<VReg>) -> Option<Inst<VReg>> {
        let is_offered = |reg: VReg| !self.offered.is_empty(reg);
        if !inst.uses().any(is_offered) {
            return None;
        }
        let mut changed = None;
        if !inst.form().is_on_uniform_datapath() {
            // What was defined first has more that depends on it: offers begin with the last value.
            let mut operands: SmallVec<[(u32, Role); 4]> = (inst.operands())
                .filter(|o| o.info.direction == Direction::In)
                .filter(|o| o.info.class == Some(RegisterClass::Gpr))
                .filter_map(|o| {
                    let first = (*o.regs.first()?)?;
                    let (number, _) = self.offered.of(first).next()?;
                    Some((number, o.info.role))
                })
                .collect();
            operands.sort_unstable_by(|a, b| b.cmp(a));
            for (_, role) in operands {
                let now = changed.as_ref().unwrap_or(inst);
                if let Some(next) = self.reading_offer(now, role) {
                    changed = Some(next);
                }
            }
        }
        let now = changed.as_ref().unwrap_or(inst);
        if now.uses().any(|reg| self.renamed(reg).is_some()) {
            changed = Some(now.map_operands(|operand, _, reg| match operand.direction {
                Direction::In => self.renamed(reg).unwrap_or(reg),
                _ => reg,
            }));
        }
        changed
    }

    /// The instruction with the operand of a role read as an offer has it.
    fn reading_offer(&self, inst: &Inst<VReg>, role: Role) -> Option<Inst<VReg>> {
        let operand = inst.operand(role)?;
        if operand.class != Some(RegisterClass::Gpr) {
            return None;
        }
        let regs: SmallVec<[VReg; 4]> =
            (inst.operand_regs(operand).iter().copied()).collect::<Option<_>>()?;
        if regs.iter().all(|&reg| self.is_leaf(reg)) {
            return None;
        }
        let kept = |&(number, _): &(u32, u8)| self.kept[number as usize];
        let mut kept: SmallVec<[(u32, u8); 2]> = self.offered.of(regs[0]).filter(kept).collect();
        // A sum that is computed there is one register less.
        kept.sort_by_key(|(number, _)| self.offers[*number as usize].index.is_some());
        kept.into_iter().find_map(|(number, place)| {
            let offer = &self.offers[number as usize];
            let words = usize::from(place)..usize::from(place) + regs.len();
            if offer.general.get(words.clone()) != Some(&regs[..]) {
                return None;
            }
            let uniform = &offer.uniform[words];
            if role == Role::A
                && let Some(based) = with_base(inst, offer.index.as_deref(), uniform)
            {
                return Some(based);
            }
            match offer.index {
                Some(_) => None,
                None => inst.reading(role, RegisterClass::Uniform, uniform),
            }
        })
    }
}

/// A memory access that adds a uniform base to an index, or to zero.
fn with_base(inst: &Inst<VReg>, index: Option<&[VReg]>, base: &[VReg]) -> Option<Inst<VReg>> {
    let form = inst.form().with_base()?;
    let mut out = inst.in_form(form)?;
    let operand = form.uniform_operand()?;
    if out.register_count(operand) != base.len() {
        return None;
    }
    out.fill(operand, base);
    let address = out.operand(Role::A)?;
    match index {
        Some(index) => out.fill(address, index),
        None => {
            let none: SmallVec<[Option<VReg>; 2]> = smallvec::smallvec![None; base.len()];
            out.set_regs(address, &none);
        }
    }
    Some(out)
}
