//! The colouring as an allocation.

use super::allocation::{Allocation, ProgramPoint, number};
use super::colouring::{Colouring, Site};
use super::parallel::{Copy, CopyStep, sequence};
use super::registers::{CALLEE_SAVED, Numbers, RegisterSet};
use crate::abi;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::vcode::{Callee, FunctionKind, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use smallvec::SmallVec;

/// Makes the allocation that `colouring` of `code` is.
pub(super) fn allocate(code: &VCode<VReg>, colouring: &Colouring, out: &mut Allocation) {
    out.clear();
    out.registers.reserve(4 * code.insts.len());
    let mut sites = colouring.sites.iter().peekable();
    for (block, data) in code.blocks.iter() {
        for (index, entry) in data.insts.clone().zip(code.block_insts(block)) {
            let values = entry.inst.entries();
            match sites.next_if(|(i, _)| *i == index) {
                Some((_, site)) => out
                    .registers
                    .extend(values.map(|(place, v)| moved(colouring, site, v, place as u8))),
                None => out
                    .registers
                    .extend(values.map(|(_, v)| colouring.register(v))),
            }
            let packed = code.packed(entry).iter();
            out.registers.extend(packed.map(|v| colouring.register(*v)));
        }
        let exit = &colouring.exits[block.index()];
        match (&data.terminator, exit.address) {
            (
                Terminator::Return { .. }
                | Terminator::TailCall {
                    callee: Callee::Registers(_),
                    ..
                },
                Some(address),
            ) => out.registers.extend(address.map(PReg::gpr)),
            (terminator, _) => out
                .registers
                .extend(own_uses(terminator).iter().map(|v| colouring.register(*v))),
        }
    }
    steps(code, colouring, [true; 3], out);
    out.source.entries = out.registers.len() as u32;
}

/// The register of the entry at `place`.
pub(super) fn moved(colouring: &Colouring, site: &Site, v: VReg, place: u8) -> PReg {
    let moved = site.moved.iter().find(|m| m.0 == place);
    moved.map_or_else(|| colouring.register(v), |m| PReg::new(v.class(), m.1))
}

/// The values that a terminator reads in places of its own.
pub(super) fn own_uses(terminator: &Terminator<VReg>) -> SmallVec<[VReg; 2]> {
    match terminator {
        Terminator::Branch { guard, .. } => SmallVec::from_slice(&[guard.reg]),
        Terminator::Table { index, .. } => SmallVec::from_slice(&[*index]),
        Terminator::Return { address, .. }
        | Terminator::TailCall {
            callee: Callee::Registers(address),
            ..
        } => SmallVec::from_slice(address),
        Terminator::Jump { .. }
        | Terminator::TailCall { .. }
        | Terminator::Exit
        | Terminator::Trap(_) => SmallVec::new(),
    }
}

/// Adds the copies of the colouring between registers of `classes`.
pub(super) fn steps(
    code: &VCode<VReg>,
    colouring: &Colouring,
    classes: [bool; 3],
    out: &mut Allocation,
) {
    let available = available(code, colouring);
    let mut sequencer = Sequencer {
        classes,
        available: &available,
        sequence: Vec::new(),
        out,
    };
    sequencer.add(ProgramPoint::ENTRY, &colouring.entry, &colouring.entry_busy);
    let mut sites = colouring.sites.iter().peekable();
    for (block, data) in code.blocks.iter() {
        while let Some((index, site)) = sites.next_if(|(i, _)| *i < data.insts.end) {
            let number = number(block, *index);
            sequencer.add(
                ProgramPoint::before(number),
                &site.before,
                &site.busy_before,
            );
            sequencer.add(ProgramPoint::behind(number), &site.after, &site.busy_after);
        }
        let exit = &colouring.exits[block.index()];
        let number = number(block, data.insts.end);
        sequencer.add(ProgramPoint::before(number), &exit.before, &exit.busy);
    }
}

struct Sequencer<'a> {
    classes: [bool; 3],
    available: &'a RegisterSet,
    sequence: Vec<CopyStep>,
    out: &'a mut Allocation,
}

impl Sequencer<'_> {
    fn add(&mut self, point: ProgramPoint, copies: &[Copy], busy: &RegisterSet) {
        let wanted = |c: &Copy| self.classes[c.to.class() as usize];
        if !copies.iter().any(wanted) {
            return;
        }
        let copies: SmallVec<[Copy; 8]> = copies.iter().copied().filter(wanted).collect();
        self.sequence.clear();
        sequence(&copies, busy, self.available, &mut self.sequence);
        let steps = self.sequence.iter().map(|step| (point, *step));
        self.out.steps.extend(steps);
    }
}

/// Registers that may break cycles of copies: those that the function uses anyway.
fn available(code: &VCode<VReg>, colouring: &Colouring) -> RegisterSet {
    let mut available = colouring.used;
    let used = *colouring.used.of(RegisterClass::Gpr);
    let mut gprs = Numbers::below(used.last().map_or(0, |top| u32::from(top) + 1));
    if code.kind == FunctionKind::Device {
        gprs = gprs.minus(CALLEE_SAVED.minus(used));
    }
    gprs.remove(abi::STACK_POINTER.number());
    *available.of_mut(RegisterClass::Gpr) = gprs;
    *available.of_mut(RegisterClass::Predicate) =
        Numbers::below(u32::from(RegisterClass::Predicate.hardwired()));
    available
}
