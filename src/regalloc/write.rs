//! Writes the allocated code: every operand in its register, copies as instructions between them.

use super::allocation::{Allocation, Point, number};
use super::check::ADDED;
use super::parallel::Step;
use super::{Report, moves};
use crate::isa::{PInst, PReg, VReg};
use crate::vcode::{
    Attachment, AttachmentId, BlockData, CallInfo, Callee, Entry, Guard, SourceLine, Terminator,
    VCode,
};
use cranelift_entity::PrimaryMap;
use std::iter::Copied;
use std::slice::Iter;

/// Writes `code` as `allocation` says. `origins` gets for each instruction its index in `code`, or [`ADDED`], if anyone wants to know.
///
/// # Panics
/// When the allocation is not of this code.
pub(super) fn write(
    code: &VCode<VReg>,
    allocation: &Allocation,
    origins: Option<&mut Vec<u32>>,
    report: &mut Report,
) -> VCode<PReg> {
    let mut out = Writer {
        insts: Vec::with_capacity(code.insts.len() + allocation.steps.len()),
        origins,
        registers: allocation.registers.iter().copied(),
        pending: &allocation.steps,
        sequence: Vec::new(),
        moves: Vec::new(),
        report,
    };
    let mut blocks = PrimaryMap::with_capacity(code.blocks.len());
    for (block, data) in code.blocks.iter() {
        let start = out.insts.len() as u32;
        if block == code.entry_block() {
            let first = code.block_insts(block).first();
            out.copies(Point::ENTRY, first.map_or(data.line, |e| e.line));
        }
        for (index, entry) in data.insts.clone().zip(code.block_insts(block)) {
            let number = number(block, index);
            out.copies(Point::before(number), entry.line);
            out.instruction(entry, index);
            out.copies(Point::behind(number), entry.line);
        }
        out.copies(Point::before(number(block, data.insts.end)), data.line);
        let terminator = out.terminator(&data.terminator);
        blocks.push(BlockData {
            insts: start..out.insts.len() as u32,
            params: Vec::new(),
            terminator,
            line: data.line,
            divergent: data.divergent,
            loop_depth: data.loop_depth,
            cold: data.cold,
            meeting: data.meeting,
        });
    }
    debug_assert!(out.registers.len() == 0 && out.pending.is_empty());
    let insts = out.insts;
    VCode {
        name: code.name.clone(),
        kind: code.kind.clone(),
        attachments: attachments(code, &insts),
        insts,
        blocks,
        entry: code.entry.iter().map(|(_, r)| (*r, *r)).collect(),
        vreg_count: 0,
        frame: code.frame.clone(),
    }
}

struct Writer<'a> {
    insts: Vec<Entry<PReg>>,
    origins: Option<&'a mut Vec<u32>>,
    /// Registers of the entries to come.
    registers: Copied<Iter<'a, PReg>>,
    /// Steps to come.
    pending: &'a [(Point, Step)],
    sequence: Vec<Step>,
    moves: Vec<PInst>,
    report: &'a mut Report,
}

impl Writer<'_> {
    /// Adds the copies of one point.
    fn copies(&mut self, point: Point, line: SourceLine) {
        let here = self.pending.iter().take_while(|(p, _)| *p <= point).count();
        if here == 0 {
            return;
        }
        let (now, later) = self.pending.split_at(here);
        self.pending = later;
        self.sequence.clear();
        self.sequence.extend(now.iter().map(|(_, step)| *step));
        self.moves.clear();
        moves::instructions(&self.sequence, &mut self.moves);
        self.report.moves += self.moves.len() as u32;
        self.insts.extend(self.moves.iter().map(|&inst| Entry {
            inst,
            line,
            attachment: None,
        }));
        if let Some(origins) = &mut self.origins {
            origins.resize(self.insts.len(), ADDED);
        }
    }

    fn instruction(&mut self, entry: &Entry<VReg>, index: u32) {
        let inst = entry.inst.map(|_| self.register());
        self.insts.push(Entry {
            inst,
            line: entry.line,
            attachment: entry.attachment,
        });
        if let Some(origins) = &mut self.origins {
            origins.push(index);
        }
    }

    /// The register of the next entry.
    fn register(&mut self) -> PReg {
        self.registers.next().expect("a register for every entry")
    }

    fn terminator(&mut self, terminator: &Terminator<VReg>) -> Terminator<PReg> {
        let fixed = |values: &[(VReg, PReg)]| values.iter().map(|(_, r)| (*r, *r)).collect();
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
                    reg: self.register(),
                    negated: guard.negated,
                },
                taken: *taken,
                fallthrough: *fallthrough,
                divergent: *divergent,
            },
            Terminator::Table {
                table,
                targets,
                divergent,
                ..
            } => Terminator::Table {
                index: self.register(),
                table: *table,
                targets: targets.clone(),
                divergent: *divergent,
            },
            Terminator::Return { values, .. } => Terminator::Return {
                address: [self.register(), self.register()],
                values: fixed(values),
            },
            Terminator::TailCall { callee, values } => Terminator::TailCall {
                callee: match callee {
                    Callee::Symbol(name) => Callee::Symbol(name.clone()),
                    Callee::Registers(_) => Callee::Registers([self.register(), self.register()]),
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
