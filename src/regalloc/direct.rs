//! Emits the colouring as it is: every value in its register, parallel copies as sequences of moves.

use super::check::ADDED;
use super::colouring::{Colouring, Exit, Site};
use super::parallel::{Copy, Step, sequence};
use super::registers::{Numbers, RegisterSet};
use super::webs::NONE;
use super::{Report, moves};
use crate::abi;
use crate::isa::{Inst, PInst, PReg, Register, RegisterClass, VReg};
use crate::vcode::{
    Attachment, AttachmentId, BlockData, CallInfo, Callee, Entry, FunctionKind, Guard, SourceLine,
    Terminator, VCode,
};
use cranelift_entity::{EntityRef, PrimaryMap};

/// Writes the code of `code` under `colouring`. Also returned: for each instruction its index in `code`, or [`ADDED`].
pub(super) fn emit(
    code: &VCode<VReg>,
    colouring: &Colouring,
    report: &mut Report,
) -> (VCode<PReg>, Vec<u32>) {
    let available = available(code, colouring);
    let mut out = Writer {
        insts: Vec::with_capacity(code.insts.len()),
        origin: Vec::with_capacity(code.insts.len()),
        steps: Vec::new(),
        moves: Vec::new(),
        available,
        report,
    };
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
        }
        for (index, entry) in data.insts.clone().zip(code.block_insts(block)) {
            let site = sites.next_if(|(i, _)| *i == index).map(|(_, site)| site);
            if let Some(site) = site {
                out.copies(&site.before, &site.busy_before, entry.line);
            }
            out.insts.push(Entry {
                inst: instruction(&entry.inst, site, colouring),
                line: entry.line,
                attachment: entry.attachment,
            });
            out.origin.push(index);
            if let Some(site) = site {
                out.copies(&site.after, &site.busy_after, entry.line);
            }
        }
        let exit = &colouring.exits[block.index()];
        out.copies(&exit.before, &exit.busy, data.line);
        blocks.push(BlockData {
            insts: start..out.insts.len() as u32,
            params: Vec::new(),
            terminator: terminator(&data.terminator, exit, colouring),
            line: data.line,
            divergent: data.divergent,
            loop_depth: data.loop_depth,
            cold: data.cold,
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
    let mut used = RegisterSet::default();
    let values = code.blocks.values().flat_map(|b| b.params.iter().copied());
    let values = values
        .chain(code.insts.iter().flat_map(|e| code.definitions(e)))
        .chain(code.entry.iter().map(|e| e.0));
    for v in values.filter(|v| colouring.colour[v.index()] != NONE) {
        used.insert(colouring.register(v));
    }
    let top = used.of(RegisterClass::Gpr).last().unwrap_or(0);
    let mut gprs = Numbers::below(u32::from(top) + 1);
    if code.kind == FunctionKind::Device {
        let unsaved = Numbers::range(abi::CALLEE_SAVED).minus(*used.of(RegisterClass::Gpr));
        gprs = gprs.minus(unsaved);
    }
    gprs.remove(abi::STACK_POINTER.number());
    *used.of_mut(RegisterClass::Gpr) = gprs;
    *used.of_mut(RegisterClass::Predicate) =
        Numbers::below(u32::from(RegisterClass::Predicate.hardwired()));
    used
}

struct Writer<'a> {
    insts: Vec<Entry<PReg>>,
    origin: Vec<u32>,
    steps: Vec<Step>,
    moves: Vec<PInst>,
    available: RegisterSet,
    report: &'a mut Report,
}

impl Writer<'_> {
    fn copies(&mut self, copies: &[Copy], busy: &RegisterSet, line: SourceLine) {
        if copies.is_empty() {
            return;
        }
        self.steps.clear();
        sequence(copies, busy, &self.available, &mut self.steps);
        self.moves.clear();
        moves::instructions(&self.steps, &mut self.moves);
        self.report.moves += self.moves.len() as u32;
        self.insts.extend(self.moves.iter().map(|&inst| Entry {
            inst,
            line,
            attachment: None,
        }));
        self.origin.resize(self.insts.len(), ADDED);
    }
}

fn instruction(inst: &Inst<VReg>, site: Option<&Site>, colouring: &Colouring) -> PInst {
    inst.map_operands(|info, i, v| {
        let place = info.first + i as u8;
        let moved = site.and_then(|s| s.moved.iter().find(|m| m.0 == place));
        moved.map_or_else(|| colouring.register(v), |m| PReg::new(v.class(), m.1))
    })
}

fn terminator(
    terminator: &Terminator<VReg>,
    exit: &Exit,
    colouring: &Colouring,
) -> Terminator<PReg> {
    let fixed = |values: &[(VReg, PReg)]| values.iter().map(|(_, r)| (*r, *r)).collect();
    let address = |a: &[VReg; 2]| {
        exit.address
            .map_or_else(|| a.map(|v| colouring.register(v)), |a| a.map(PReg::gpr))
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
                reg: colouring.register(guard.reg),
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
            index: colouring.register(*index),
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
