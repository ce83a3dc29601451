//! Writes the allocated code: every operand in its register, copies as instructions between them, packed predicates
//! with their bits.

use super::allocation::{Allocation, ProgramPoint, number};
use super::check::ADDED;
use super::parallel::{Copy, CopyStep};
use super::registers::RegisterSet;
use super::{Report, moves};
use crate::abi;
use crate::isa::{PInst, PReg, VReg};
use crate::vcode::{
    Attachment, AttachmentId, BlockData, CallInfo, Callee, Entry, Guard, SourceLine, Terminator,
    VCode,
};
use cranelift_codegen::entity::PrimaryMap;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::iter::Copied;
use std::slice::Iter;

/// Writes `code` as `allocation` says. `origins` gets for each instruction its index in `code`, or [`ADDED`], if anyone
/// wants to know. Also returned: the registers that the written code names, and the indices of instructions that test a
/// bit of packed predicates.
///
/// # Panics
/// When the allocation is not of this code.
pub(super) fn write(
    code: VCode<VReg>,
    allocation: &Allocation,
    origins: Option<&mut Vec<u32>>,
    report: &mut Report,
) -> (VCode<PReg>, RegisterSet, Vec<u32>) {
    // The branches that layout puts behind them have room too.
    let most = code.insts.len() + allocation.steps.len() + 2 * code.blocks.len();
    let mut out = Writer {
        insts: Vec::with_capacity(most),
        origins,
        registers: allocation.registers.iter().copied(),
        pending: &allocation.steps,
        sequence: Vec::new(),
        moves: Vec::new(),
        packs: HashMap::new(),
        tests: Vec::new(),
        report,
    };
    let entry_block = code.entry_block();
    let mut named = named(&code, allocation);
    let mut blocks = PrimaryMap::with_capacity(code.blocks.len());
    for (block, data) in code.blocks {
        let start = out.insts.len() as u32;
        let range = data.insts;
        let insts = &code.insts[range.start as usize..range.end as usize];
        if block == entry_block {
            out.copies(
                ProgramPoint::ENTRY,
                insts.first().map_or(data.line, |e| e.line),
            );
        }
        for (index, entry) in range.clone().zip(insts) {
            let number = number(block, index);
            out.copies(ProgramPoint::before(number), entry.line);
            out.instruction(&code.attachments, entry, index);
            out.copies(ProgramPoint::behind(number), entry.line);
        }
        out.copies(ProgramPoint::before(number(block, range.end)), data.line);
        let terminator = out.terminator(data.terminator);
        if let Terminator::Return { values, .. } | Terminator::TailCall { values, .. } = &terminator
        {
            values.iter().for_each(|(r, _)| named.insert(*r));
        }
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
    let (insts, tests) = (out.insts, out.tests);
    let code = VCode {
        name: code.name,
        kind: code.kind,
        attachments: attachments(code.attachments, &insts),
        insts,
        blocks,
        entry: code.entry.iter().map(|(_, r)| (*r, *r)).collect(),
        vreg_count: 0,
        frame: code.frame,
        holders: Vec::new(),
    };
    (code, named, tests)
}

/// Registers that the code names, those of its terminators' values left out.
fn named(code: &VCode<VReg>, allocation: &Allocation) -> RegisterSet {
    let mut named = RegisterSet::default();
    allocation.registers.iter().for_each(|r| named.insert(*r));
    for (_, step) in &allocation.steps {
        let (CopyStep::Move(Copy { from: a, to: b }) | CopyStep::Swap(a, b)) = *step;
        named.insert(a);
        named.insert(b);
    }
    code.entry.iter().for_each(|(_, r)| named.insert(*r));
    for attachment in code.attachments.values() {
        if let Attachment::Call(call) = attachment {
            call.uses
                .iter()
                .chain(&call.defs)
                .for_each(|(_, r)| named.insert(*r));
        }
    }
    named
}

struct Writer<'a> {
    insts: Vec<Entry<PReg>>,
    origins: Option<&'a mut Vec<u32>>,
    /// Registers of the entries to come.
    registers: Copied<Iter<'a, PReg>>,
    /// Steps to come.
    pending: &'a [(ProgramPoint, CopyStep)],
    sequence: Vec<CopyStep>,
    moves: Vec<PInst>,
    /// The bits of packed predicates.
    packs: HashMap<AttachmentId, SmallVec<[u8; 6]>>,
    /// Instructions that test one.
    tests: Vec<u32>,
    report: &'a mut Report,
}

impl Writer<'_> {
    /// Adds the copies of one point.
    fn copies(&mut self, point: ProgramPoint, line: SourceLine) {
        if self.pending.first().is_none_or(|(p, _)| *p > point) {
            return;
        }
        let here = self.pending.iter().take_while(|(p, _)| *p <= point).count();
        let (now, later) = self.pending.split_at(here);
        self.pending = later;
        self.sequence.clear();
        self.sequence.extend(now.iter().map(|(_, step)| *step));
        self.moves.clear();
        moves::instructions(&self.sequence, &mut self.moves);
        self.report.moves += self.moves.len() as u32;
        self.insts
            .extend(self.moves.iter().map(|&inst| Entry::new(inst, line)));
        if let Some(origins) = &mut self.origins {
            origins.resize(self.insts.len(), ADDED);
        }
    }

    fn instruction(
        &mut self,
        attachments: &PrimaryMap<AttachmentId, Attachment<VReg>>,
        entry: &Entry<VReg>,
        index: u32,
    ) {
        let mut inst = entry.inst.map(|_| self.register());
        let mut attachment = entry.attachment;
        if let Some(id) = attachment
            && let Some(mask) = self.bits(id, &attachments[id])
        {
            moves::set_mask(&mut inst, mask);
            attachment = None;
        }
        self.insts.push(Entry {
            inst,
            line: entry.line,
            attachment,
            order: entry.order,
            label: entry.label,
        });
        if let Some(origins) = &mut self.origins {
            origins.push(index);
        }
    }

    /// The bits that an instruction with this attachment writes or tests, where it is about packed predicates.
    fn bits(&mut self, id: AttachmentId, attachment: &Attachment<VReg>) -> Option<u8> {
        match attachment {
            Attachment::Pack(values) => {
                let bits: SmallVec<[u8; 6]> = values
                    .iter()
                    .map(|_| 1 << self.register().number())
                    .collect();
                let mask = bits.iter().fold(0, |mask, bit| mask | bit);
                self.packs.insert(id, bits);
                Some(mask)
            }
            Attachment::Bit(bit) => {
                self.tests.push(self.insts.len() as u32);
                // What writes the bits comes first, but perhaps not where no path leads.
                let bits = self.packs.get(&bit.pack);
                Some(bits.map_or(0, |bits| bits[usize::from(bit.place)]))
            }
            Attachment::Else(_)
            | Attachment::Call(_)
            | Attachment::Symbol(_)
            | Attachment::Label(_) => None,
        }
    }

    /// The register of the next entry.
    fn register(&mut self) -> PReg {
        self.registers.next().expect("a register for every entry")
    }

    fn terminator(&mut self, terminator: Terminator<VReg>) -> Terminator<PReg> {
        match terminator {
            Terminator::Jump { target, .. } => Terminator::Jump {
                target,
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
                taken,
                fallthrough,
                divergent,
            },
            Terminator::Table {
                table,
                targets,
                divergent,
                ..
            } => Terminator::Table {
                index: self.register(),
                table,
                targets,
                divergent,
            },
            Terminator::Return { values, .. } => Terminator::Return {
                address: [self.register(), self.register()],
                values: fixed(&values),
            },
            Terminator::TailCall { callee, values } => Terminator::TailCall {
                callee: match callee {
                    Callee::Symbol(name) => Callee::Symbol(name),
                    Callee::Registers(_) => Callee::Registers([self.register(), self.register()]),
                },
                values: fixed(&values),
            },
            Terminator::Exit => Terminator::Exit,
            Terminator::Trap(trap) => Terminator::Trap(trap),
        }
    }
}

/// Values of the calling convention where it wants them.
fn fixed(values: &[(VReg, PReg)]) -> Vec<(PReg, PReg)> {
    values.iter().map(|(_, r)| (*r, *r)).collect()
}

/// Attachments in registers, for the allocated `insts`. A value kept is where the result is, whatever it was in before.
fn attachments(
    attachments: PrimaryMap<AttachmentId, Attachment<VReg>>,
    insts: &[Entry<PReg>],
) -> PrimaryMap<AttachmentId, Attachment<PReg>> {
    let mut out: PrimaryMap<AttachmentId, Attachment<PReg>> =
        PrimaryMap::with_capacity(attachments.len());
    let mut any_kept = false;
    for attachment in attachments.into_iter().map(|(_, a)| a) {
        out.push(match attachment {
            Attachment::Else(values) => {
                any_kept = true;
                // Where a value is kept is filled in below; for now the fact that one is.
                Attachment::Else(
                    values
                        .iter()
                        .map(|v| v.map(|_| abi::STACK_POINTER))
                        .collect(),
                )
            }
            Attachment::Call(call) => Attachment::Call(Box::new(CallInfo {
                uses: fixed(&call.uses),
                defs: fixed(&call.defs),
                callee: call.callee,
                meeting: call.meeting,
            })),
            Attachment::Symbol(symbol) => Attachment::Symbol(symbol),
            Attachment::Label(block) => Attachment::Label(block),
            // Nothing refers to these any more.
            Attachment::Pack(_) => Attachment::Pack(SmallVec::new()),
            Attachment::Bit(bit) => Attachment::Bit(bit),
        });
    }
    if any_kept {
        for entry in insts {
            if let Some(Attachment::Else(kept)) = entry.attachment.map(|id| &mut out[id]) {
                for (register, kept) in entry.inst.definitions().zip(kept) {
                    *kept = kept.map(|_| register);
                }
            }
        }
    }
    out
}
