//! The stack pointer as an ordinary value.
//!
//! The value that is R1 lives there everywhere and takes part in no allocation. Operands of one register can name it;
//! what is passed on, returned, kept under a guard, given to a callee or part of a pair must be a value like any other,
//! so these read a copy.

use super::Constrained;
use super::pressure::stack_pointer;
use crate::isa::generated::{MOVW, mov};
use crate::isa::table::Direction;
use crate::isa::{RegisterClass, VReg, build};
use crate::regalloc::check::ADDED;
use crate::vcode::{Attachment, Entry, SourceLine, Terminator, VCode};

/// Gives each such use a copy of its own, made right before it.
pub(in crate::regalloc) fn separate(constrained: Constrained) -> Constrained {
    let Some(pointer) = stack_pointer(&constrained.code) else {
        return constrained;
    };
    let Constrained { mut code, origins } = constrained;
    let awkward = |code: &VCode<VReg>, entry: &Entry<VReg>| {
        in_run(entry, pointer)
            || code.else_values(entry).contains(&Some(pointer))
            || code
                .call(entry)
                .is_some_and(|c| c.uses.iter().any(|(v, _)| *v == pointer))
    };
    let passed = |terminator: &Terminator<VReg>| {
        let uses_own = matches!(terminator, Terminator::Table { .. });
        !uses_own && terminator.uses().any(|v| v == pointer)
    };
    let any = code.insts.iter().any(|e| awkward(&code, e))
        || code.blocks.values().any(|b| passed(&b.terminator));
    if !any {
        return Constrained { code, origins };
    }
    let old = std::mem::take(&mut code.insts);
    let (mut insts, mut origin) = (Vec::with_capacity(old.len() + 8), Vec::new());
    let copy = |code: &mut VCode<VReg>, line: SourceLine| {
        let copy = code.new_vreg(RegisterClass::Gpr);
        let inst = build::mov_r(mov::Options::new(MOVW::W32), copy, pointer);
        let entry = Entry::new(inst, line);
        (copy, entry)
    };
    for block in code.blocks.keys() {
        let start = insts.len() as u32;
        for index in code.blocks[block].insts.clone() {
            let mut entry = old[index as usize];
            if awkward(&code, &entry) {
                let (copy, added) = copy(&mut code, entry.line);
                insts.push(added);
                origin.push(ADDED);
                let name = |v: &mut VReg| {
                    if *v == pointer {
                        *v = copy;
                    }
                };
                if in_run(&entry, pointer) {
                    entry.inst = entry.inst.map_operands(|info, _, mut v| {
                        if info.direction == Direction::In {
                            name(&mut v);
                        }
                        v
                    });
                }
                match entry.attachment.map(|a| &mut code.attachments[a]) {
                    Some(Attachment::Else(kept)) => kept.iter_mut().flatten().for_each(name),
                    Some(Attachment::Call(call)) => call.uses.iter_mut().for_each(|(v, _)| name(v)),
                    _ => {}
                }
            }
            insts.push(entry);
            origin.push(origins.of(index));
        }
        if passed(&code.blocks[block].terminator) {
            let line = code.blocks[block].line;
            let (copy, added) = copy(&mut code, line);
            insts.push(added);
            origin.push(ADDED);
            code.blocks[block].terminator.for_each_register(|v| {
                if *v == pointer {
                    *v = copy;
                }
            });
        }
        code.blocks[block].insts = start..insts.len() as u32;
    }
    code.insts = insts;
    Constrained::rewritten(code, origins.are_recorded().then_some(origin))
}

/// Whether the pointer is part of a pair or quad that is read.
fn in_run(entry: &Entry<VReg>, pointer: VReg) -> bool {
    entry.inst.info().wide
        && entry
            .inst
            .operands()
            .any(|o| o.regs.len() > 1 && o.regs.contains(&Some(pointer)))
}
