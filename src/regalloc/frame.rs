//! The frame in local memory: its layout, prologue and epilogues, and the offsets that lowering left open.
//!
//! From R1 upwards: outgoing stack arguments, spill slots and saved registers, stack slots; behind the frame the
//! incoming stack arguments. A device function lowers R1 by the frame's size and raises it before it returns; a kernel
//! derives R1 from its initial value in constant bank 0, if anything uses it. Lowering refers to stack slots and
//! incoming arguments by two symbols ([`SLOTS`], [`INCOMING`]) that are resolved here.

use super::check::ADDED;
use super::registers::{CALLEE_SAVED, Numbers, RegisterSet};
use super::{Report, moves};
use crate::abi;
use crate::isa::{PInst, PReg, RegisterClass};
use crate::vcode::{Attachment, Block, Entry, Frame, FunctionKind, Terminator, VCode};

/// Symbol of the stack slots; the addend is the offset among them.
pub const SLOTS: &str = Frame::SLOTS;
/// Symbol of the incoming stack arguments; the addend is the offset among them.
pub const INCOMING: &str = Frame::INCOMING;

/// A register or an aligned run of registers with its place in local memory.
struct Saved {
    first: PReg,
    width: u8,
    offset: u32,
}

/// Lays out the frame of allocated code, which names the registers `named`, and completes the report. `origin`, where
/// it is kept, has an entry for each instruction.
pub(super) fn finish(
    mut code: VCode<PReg>,
    mut named: RegisterSet,
    mut report: Report,
    origin: Option<&mut Vec<u32>>,
) -> (VCode<PReg>, Report) {
    let saved = match code.kind {
        FunctionKind::Device => save_slots(&mut code, &named, &mut report),
        FunctionKind::Kernel(_) => Vec::new(),
    };
    resolve_offsets(&mut code);
    let (prologue, epilogue) = frame_code(&code, &saved, &named);
    if !prologue.is_empty() || !epilogue.is_empty() {
        named.insert(abi::STACK_POINTER);
        insert(&mut code, &prologue, &epilogue, origin);
    }
    let count = |class| named.of(class).last().map_or(0, |r| u32::from(r) + 1);
    report.registers = count(RegisterClass::Gpr);
    report.predicates = count(RegisterClass::Predicate);
    report.uniforms = count(RegisterClass::Uniform);
    (code, report)
}

/// Places for the callee-saved registers that are named: what nobody has written nobody names.
fn save_slots(code: &mut VCode<PReg>, named: &RegisterSet, report: &mut Report) -> Vec<Saved> {
    let kept = CALLEE_SAVED;
    let mut used = named.of(RegisterClass::Gpr).and(kept);
    if used.is_empty() {
        return Vec::new();
    }
    let mut saved = Vec::new();
    // The widest runs first keep every offset aligned.
    code.frame.spill_bytes = code.frame.spill_bytes.next_multiple_of(16);
    let mut offset = code.frame.spill_offset() + code.frame.spill_bytes;
    let start = offset;
    for width in [4u8, 2, 1] {
        for first in abi::CALLEE_SAVED.step_by(usize::from(width)) {
            let run = Numbers::range(first..=first + (width - 1));
            if run.minus(used).is_empty() {
                used = used.minus(run);
                saved.push(Saved {
                    first: PReg::gpr(first),
                    width,
                    offset,
                });
                offset += 4 * u32::from(width);
                report.saved += u32::from(width);
            }
        }
    }
    code.frame.spill_bytes += offset - start;
    saved
}

/// Puts offsets from R1 where lowering left a symbol of the frame.
fn resolve_offsets(code: &mut VCode<PReg>) {
    let size = code.frame.size();
    let slots = code.frame.spill_offset() + code.frame.spill_bytes.next_multiple_of(16);
    for zone in &mut code.frame.redzones {
        zone.offset += slots;
    }
    for offset in code.frame.slots.iter_mut().flatten() {
        *offset += slots;
    }
    let open = |a: &Attachment<PReg>| matches!(a, Attachment::Symbol(s) if matches!(s.name.as_str(), SLOTS | INCOMING));
    if !code.attachments.values().any(open) {
        return;
    }
    for entry in &mut code.insts {
        let Some(Attachment::Symbol(symbol)) = entry.attachment.map(|a| &code.attachments[a])
        else {
            continue;
        };
        let base = match symbol.name.as_str() {
            SLOTS => slots,
            INCOMING => size,
            _ => continue,
        };
        let value = i64::from(base) + symbol.addend;
        entry.inst.set_number(symbol.role, value as u64);
        entry.attachment = None;
    }
}

fn frame_code(
    code: &VCode<PReg>,
    saved: &[Saved],
    named: &RegisterSet,
) -> (Vec<PInst>, Vec<PInst>) {
    let size = code.frame.size();
    let (mut prologue, mut epilogue) = (Vec::new(), Vec::new());
    match code.kind {
        FunctionKind::Kernel(_) => {
            let reads_pointer = || {
                let pointer = abi::STACK_POINTER.number();
                named.of(RegisterClass::Gpr).contains(pointer)
            };
            if size > 0
                || code.frame.has_calls
                || code.frame.uses_pointer
                || has_call(code)
                || reads_pointer()
            {
                prologue.push(moves::initial_stack_pointer());
                if size > 0 {
                    prologue.push(moves::adjust_stack_pointer(-(size as i32)));
                }
            }
        }
        FunctionKind::Device => {
            if size > 0 {
                prologue.push(moves::adjust_stack_pointer(-(size as i32)));
                prologue.extend(
                    saved
                        .iter()
                        .map(|s| moves::store(s.first, s.width, s.offset)),
                );
                epilogue.extend(
                    saved
                        .iter()
                        .map(|s| moves::load(s.first, s.width, s.offset)),
                );
                epilogue.push(moves::adjust_stack_pointer(size as i32));
            }
        }
    }
    (prologue, epilogue)
}

fn has_call(code: &VCode<PReg>) -> bool {
    let mut attachments = code.attachments.values();
    attachments.any(|a| matches!(a, Attachment::Call(_)))
}

/// Puts `prologue` at the start of the entry block and `epilogue` before every way out; both are [`ADDED`] to `origin`.
fn insert(
    code: &mut VCode<PReg>,
    prologue: &[PInst],
    epilogue: &[PInst],
    origin: Option<&mut Vec<u32>>,
) {
    let mut insts = Vec::with_capacity(code.insts.len() + prologue.len() + epilogue.len());
    let entry_block: Block = code.entry_block();
    let mut origins = origin.as_ref().map(|o| Vec::with_capacity(o.len()));
    for (block, data) in code.blocks.iter_mut() {
        let start = insts.len() as u32;
        let own = &code.insts[data.insts.start as usize..data.insts.end as usize];
        let line = own.first().map_or(data.line, |e| e.line);
        let range = data.insts.start as usize..data.insts.end as usize;
        if block == entry_block {
            insts.extend(prologue.iter().map(|&inst| Entry::new(inst, line)));
        }
        let before = insts.len();
        insts.extend_from_slice(own);
        if let (Some(origins), Some(origin)) = (&mut origins, &origin) {
            origins.resize(before, ADDED);
            origins.extend_from_slice(&origin[range]);
        }
        if matches!(
            data.terminator,
            Terminator::Return { .. } | Terminator::TailCall { .. }
        ) {
            insts.extend(epilogue.iter().map(|&inst| Entry::new(inst, data.line)));
        }
        data.insts = start..insts.len() as u32;
    }
    if let (Some(mut origins), Some(origin)) = (origins, origin) {
        origins.resize(insts.len(), ADDED);
        *origin = origins;
    }
    code.insts = insts;
}
