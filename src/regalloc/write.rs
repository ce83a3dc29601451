//! Writes the allocated code: every operand in its register, copies as sequences of moves.

use super::check::ADDED;
use super::colouring::{Colouring, Exit, Site};
use super::parallel::{Copy, Step, sequence};
use super::registers::{Numbers, RegisterSet};
use super::through_regalloc2::{Answer, Purpose, number};
use super::{Report, moves};
use crate::abi;
use crate::isa::{Inst, PInst, PReg, Register, RegisterClass, VReg};
use crate::vcode::{
    Attachment, AttachmentId, BlockData, CallInfo, Callee, Entry, FunctionKind, Guard, SourceLine,
    Terminator, VCode,
};
use cranelift_entity::{EntityRef, PrimaryMap};
use smallvec::SmallVec;
use std::iter::Peekable;

/// Writes `code` with the registers of `answer` for its classes, and of `colouring` for the others. Also returned, if
/// it is to be recorded: for each instruction its index in `code`, or [`ADDED`].
pub(super) fn write(
    code: &VCode<VReg>,
    colouring: &Colouring,
    answer: Option<&Answer>,
    report: &mut Report,
    record: bool,
) -> (VCode<PReg>, Option<Vec<u32>>) {
    let registers = Registers { colouring, answer };
    let mut out = Writer {
        insts: Vec::with_capacity(code.insts.len()),
        origin: record.then(|| Vec::with_capacity(code.insts.len())),
        steps: Vec::new(),
        moves: Vec::new(),
        available: available(code, colouring),
        colouring_only: answer.map_or([true; 3], |a| a.classes.map(|c| !c)),
        report,
    };
    let mut edits = answer.into_iter().flat_map(|a| a.edits()).peekable();
    let mut blocks = PrimaryMap::with_capacity(code.blocks.len());
    let mut sites = colouring.sites.iter().peekable();
    for (block, data) in code.blocks.iter() {
        let start = out.insts.len() as u32;
        if block == code.entry_block() {
            let line = code
                .block_insts(block)
                .first()
                .map_or(data.line, |e| e.line);
            out.copies(&colouring.entry, &colouring.entry_busy, line);
            out.edits(&mut edits, 0, true, line);
        }
        for (index, entry) in data.insts.clone().zip(code.block_insts(block)) {
            let number = number(block, index);
            let site = sites.next_if(|(i, _)| *i == index).map(|(_, site)| site);
            out.edits(&mut edits, number, false, entry.line);
            if let Some(site) = site {
                out.copies(&site.before, &site.busy_before, entry.line);
            }
            out.insts.push(Entry {
                inst: registers.instruction(&entry.inst, number, site),
                line: entry.line,
                attachment: entry.attachment,
            });
            if let Some(origin) = &mut out.origin {
                origin.push(index);
            }
            if let Some(site) = site {
                out.copies(&site.after, &site.busy_after, entry.line);
            }
            out.edits(&mut edits, number, true, entry.line);
        }
        let exit = &colouring.exits[block.index()];
        let number = number(block, data.insts.end);
        out.edits(&mut edits, number, false, data.line);
        out.copies(&exit.before, &exit.busy, data.line);
        blocks.push(BlockData {
            insts: start..out.insts.len() as u32,
            params: Vec::new(),
            terminator: registers.terminator(&data.terminator, number, exit),
            line: data.line,
            divergent: data.divergent,
            loop_depth: data.loop_depth,
            cold: data.cold,
            meeting: data.meeting,
        });
    }
    let attachments = attachments(code, &out.insts);
    let allocated = VCode {
        name: code.name.clone(),
        kind: code.kind.clone(),
        insts: out.insts,
        attachments,
        blocks,
        entry: code.entry.iter().map(|(_, r)| (*r, *r)).collect(),
        vreg_count: 0,
        frame: code.frame.clone(),
    };
    (allocated, out.origin)
}

/// Registers that may break cycles of copies: those that the function uses anyway.
fn available(code: &VCode<VReg>, colouring: &Colouring) -> RegisterSet {
    let mut available = colouring.used;
    let used = *colouring.used.of(RegisterClass::Gpr);
    let mut gprs = Numbers::below(used.last().map_or(0, |top| u32::from(top) + 1));
    if code.kind == FunctionKind::Device {
        gprs = gprs.minus(Numbers::range(abi::CALLEE_SAVED).minus(used));
    }
    gprs.remove(abi::STACK_POINTER.number());
    *available.of_mut(RegisterClass::Gpr) = gprs;
    *available.of_mut(RegisterClass::Predicate) =
        Numbers::below(u32::from(RegisterClass::Predicate.hardwired()));
    available
}

struct Writer<'a> {
    insts: Vec<Entry<PReg>>,
    origin: Option<Vec<u32>>,
    steps: Vec<Step>,
    moves: Vec<PInst>,
    available: RegisterSet,
    /// Classes that have the registers of the colouring, and its copies.
    colouring_only: [bool; 3],
    report: &'a mut Report,
}

impl Writer<'_> {
    /// Adds a parallel copy of the colouring.
    fn copies(&mut self, copies: &[Copy], busy: &RegisterSet, line: SourceLine) {
        let copies: SmallVec<[Copy; 8]> = copies
            .iter()
            .copied()
            .filter(|c| self.colouring_only[c.to.class() as usize])
            .collect();
        if copies.is_empty() {
            return;
        }
        self.steps.clear();
        sequence(&copies, busy, &self.available, &mut self.steps);
        self.add(line);
    }

    /// Adds regalloc2's copies of one place.
    fn edits(
        &mut self,
        edits: &mut Peekable<impl Iterator<Item = (usize, bool, Copy)>>,
        number: usize,
        behind: bool,
        line: SourceLine,
    ) {
        self.steps.clear();
        while let Some((_, _, copy)) = edits.next_if(|e| (e.0, e.1) <= (number, behind)) {
            if copy.from != copy.to {
                self.steps.push(Step::Move(copy));
            }
        }
        self.add(line);
    }

    fn add(&mut self, line: SourceLine) {
        self.moves.clear();
        moves::instructions(&self.steps, &mut self.moves);
        self.report.moves += self.moves.len() as u32;
        self.insts.extend(self.moves.iter().map(|&inst| Entry {
            inst,
            line,
            attachment: None,
        }));
        if let Some(origin) = &mut self.origin {
            origin.resize(self.insts.len(), ADDED);
        }
    }
}

/// Where every operand is.
struct Registers<'a> {
    colouring: &'a Colouring,
    answer: Option<&'a Answer>,
}

impl Registers<'_> {
    fn instruction(&self, inst: &Inst<VReg>, number: usize, site: Option<&Site>) -> PInst {
        if self.answer.is_none() && site.is_none_or(|s| s.moved.is_empty()) {
            return inst.map(|v| self.colouring.register(v));
        }
        inst.map_operands(|info, i, v| {
            let place = info.first + i as u8;
            if let Some(r) = self
                .answer
                .and_then(|a| a.operand(number, Purpose::Entry(place)))
            {
                return r;
            }
            let moved = site.and_then(|s| s.moved.iter().find(|m| m.0 == place));
            moved.map_or_else(|| self.colouring.register(v), |m| PReg::new(v.class(), m.1))
        })
    }

    fn exit(&self, v: VReg, number: usize, place: u8) -> PReg {
        let answer = self
            .answer
            .and_then(|a| a.operand(number, Purpose::Exit(place)));
        answer.unwrap_or_else(|| self.colouring.register(v))
    }

    fn terminator(
        &self,
        terminator: &Terminator<VReg>,
        number: usize,
        exit: &Exit,
    ) -> Terminator<PReg> {
        let fixed = |values: &[(VReg, PReg)]| values.iter().map(|(_, r)| (*r, *r)).collect();
        let address = |a: &[VReg; 2]| match exit.address {
            Some(a) => a.map(PReg::gpr),
            None => [self.exit(a[0], number, 0), self.exit(a[1], number, 1)],
        };
        match terminator {
            Terminator::Jump { target, .. } => Terminator::Jump {
                target: *target,
                args: Vec::new(),
            },
            Terminator::Branch {
                guard,
                taken,
                fallthrough,
                divergent,
            } => Terminator::Branch {
                guard: Guard {
                    reg: self.exit(guard.reg, number, 0),
                    negated: guard.negated,
                },
                taken: *taken,
                fallthrough: *fallthrough,
                divergent: *divergent,
            },
            Terminator::Table {
                index,
                table,
                targets,
                divergent,
            } => Terminator::Table {
                index: self.exit(*index, number, 0),
                table: *table,
                targets: targets.clone(),
                divergent: *divergent,
            },
            Terminator::Return { address: a, values } => Terminator::Return {
                address: address(a),
                values: fixed(values),
            },
            Terminator::TailCall { callee, values } => Terminator::TailCall {
                callee: match callee {
                    Callee::Symbol(name) => Callee::Symbol(name.clone()),
                    Callee::Registers(a) => Callee::Registers(address(a)),
                },
                values: fixed(values),
            },
            Terminator::Exit => Terminator::Exit,
            Terminator::Trap(trap) => Terminator::Trap(*trap),
        }
    }
}

/// Attachments in registers, for the allocated `insts`. A value kept is where the result is, whatever it was in before.
pub(super) fn attachments(
    code: &VCode<VReg>,
    insts: &[Entry<PReg>],
) -> PrimaryMap<AttachmentId, Attachment<PReg>> {
    let mut out: PrimaryMap<AttachmentId, Attachment<PReg>> =
        PrimaryMap::with_capacity(code.attachments.len());
    for attachment in code.attachments.values() {
        let fixed = |values: &[(VReg, PReg)]| values.iter().map(|(_, r)| (*r, *r)).collect();
        out.push(match attachment {
            Attachment::Else(values) => Attachment::Else(values.iter().map(|_| None).collect()),
            Attachment::Call(call) => Attachment::Call(Box::new(CallInfo {
                callee: call.callee.clone(),
                uses: fixed(&call.uses),
                defs: fixed(&call.defs),
                meeting: call.meeting,
            })),
            Attachment::Symbol(symbol) => Attachment::Symbol(symbol.clone()),
            Attachment::Label(block) => Attachment::Label(*block),
        });
    }
    for entry in insts {
        if let Some(id) = entry.attachment
            && let Attachment::Else(kept) = &code.attachments[id]
        {
            let registers = entry.inst.definitions().zip(kept);
            out[id] = Attachment::Else(registers.map(|(r, k)| k.map(|_| r)).collect());
        }
    }
    out
}
