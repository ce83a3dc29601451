//! Gives chosen values another home and brings them back where they are used.
//!
//! Behind the definition of a chosen value stands a copy to its home, before each use a copy back under a new name; a copy brought
//! back serves the next few instructions as well where registers are left. Parameters move to their home with all arguments: a predicate
//! parameter becomes a GPR parameter, a GPR parameter in memory is stored at the end of each predecessor.

use super::pressure::stack_pointer;
use super::{Constrained, Origins};
use super::{spill, uniform};
use crate::abi;
use crate::isa::{Register, RegisterClass, VInst, VReg};
use crate::regalloc::check::ADDED;
use crate::regalloc::moves;
use crate::vcode::{Attachment, Block, Entry, SourceLine, Terminator, VCode};
use cranelift_entity::EntityRef;
use hashbrown::HashMap;

/// Where a chosen value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::regalloc) enum Home {
    /// In a GPR.
    Gpr,
    /// In local memory.
    Memory,
    /// Nowhere: its instruction is repeated.
    Again,
}

/// A chosen value's home.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The GPR value that stands for it.
    Gpr(VReg),
    /// Byte offset from R1.
    Memory(u32),
    /// Index of the instruction to repeat.
    Again(u32),
}

/// How long a value brought back is kept for further uses, in instructions (*assumed*).
const KEEP: u32 = 12;

/// Chosen values.
#[derive(Debug, Default)]
pub(in crate::regalloc) struct Plan {
    chosen: Vec<bool>,
    homes: Vec<(VReg, Home)>,
    order: Vec<VReg>,
    slack: Vec<u32>,
    definition: HashMap<VReg, u32>,
}

impl Plan {
    /// Starts over.
    pub fn begin(&mut self, code: &VCode<VReg>) {
        self.chosen.clear();
        self.chosen.resize(code.vreg_count as usize, false);
        self.homes.clear();
        self.order.clear();
        self.slack.clear();
        self.slack.resize(code.insts.len(), 0);
        self.definition.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub fn is_chosen(&self, v: VReg) -> bool {
        self.chosen.get(v.index()).is_some_and(|c| *c)
    }

    /// Adds a value.
    pub fn choose(&mut self, v: VReg) {
        if !std::mem::replace(&mut self.chosen[v.index()], true) {
            self.order.push(v);
        }
    }

    /// How many more values of the class fit at an instruction.
    pub fn set_slack(&mut self, inst: u32, slack: u32) {
        self.slack[inst as usize] = slack;
    }

    /// Decides the homes.
    pub fn settle(&mut self, code: &VCode<VReg>) {
        for (index, entry) in code.insts.iter().enumerate() {
            for v in code.definitions(entry) {
                if self.chosen[v.index()] {
                    self.definition.insert(v, index as u32);
                }
            }
        }
        let definition = |v: &VReg| self.definition.get(v).map(|i| &code.insts[*i as usize]);
        self.homes = self
            .order
            .iter()
            .map(|v| (*v, spill::home(code, *v, definition(v))))
            .collect();
    }
}

/// Rewrites `constrained` by `plan`; new values that exist only around one place are marked in `temporary`.
pub(in crate::regalloc) fn apply(
    constrained: Constrained,
    plan: &Plan,
    temporary: &mut Vec<bool>,
) -> Constrained {
    let Constrained { mut code, origins } = constrained;
    let mut places = HashMap::new();
    let mut slots = code.frame.spill_bytes;
    for (v, home) in &plan.homes {
        let place = match home {
            Home::Gpr => Place::Gpr(code.new_vreg(RegisterClass::Gpr)),
            Home::Again => Place::Again(plan.definition[v]),
            Home::Memory => {
                slots += 4;
                Place::Memory(code.frame.spill_offset() + slots - 4)
            }
        };
        places.insert(*v, place);
    }
    temporary.resize(code.vreg_count as usize, false);
    plan.order.iter().for_each(|v| temporary[v.index()] = true);
    code.frame.spill_bytes = slots;
    let uses_memory = places.values().any(|p| matches!(p, Place::Memory(_)));
    let pointer = match stack_pointer(&code) {
        Some(pointer) => pointer,
        None if uses_memory => {
            let pointer = code.new_vreg(RegisterClass::Gpr);
            code.entry.push((pointer, abi::STACK_POINTER));
            pointer
        }
        // Never used.
        None => VReg::new(RegisterClass::Gpr, 0),
    };
    temporary.resize(code.vreg_count as usize, false);
    let old = std::mem::take(&mut code.insts);
    let mut rewriter = Rewriter {
        out: Vec::with_capacity(old.len()),
        origin: origins
            .are_recorded()
            .then(|| Vec::with_capacity(old.len())),
        old: &old,
        origins: &origins,
        places,
        pointer,
        plan,
        temporary,
        kept: Vec::new(),
        code,
    };
    rewriter.run();
    let (mut code, origin) = (rewriter.code, rewriter.origin);
    code.insts = rewriter.out;
    Constrained::rewritten(code, origin)
}

/// A value that is in a register although its home is elsewhere.
struct Kept {
    value: VReg,
    copy: VReg,
    left: u32,
}

struct Rewriter<'a> {
    code: VCode<VReg>,
    old: &'a [Entry<VReg>],
    /// Where each of `old` comes from.
    origins: &'a Origins,
    out: Vec<Entry<VReg>>,
    /// Where each of `out` comes from, if it is recorded.
    origin: Option<Vec<u32>>,
    places: HashMap<VReg, Place>,
    pointer: VReg,
    plan: &'a Plan,
    temporary: &'a mut Vec<bool>,
    kept: Vec<Kept>,
}

impl Rewriter<'_> {
    fn run(&mut self) {
        // Blocks are rewritten one by one; a block's parameters are needed by its predecessors as they were.
        let params: Vec<Vec<VReg>> = self
            .code
            .blocks
            .values()
            .map(|b| b.params.clone())
            .collect();
        for index in 0..self.code.blocks.len() {
            let block = Block::new(index);
            let start = self.out.len() as u32;
            self.kept.clear();
            let range = self.code.blocks[block].insts.clone();
            let line = self.code.blocks[block].line;
            if block == self.code.entry_block() {
                let line = self.old.get(range.start as usize).map_or(line, |e| e.line);
                for (v, _) in self.code.entry.clone() {
                    self.save(v, line);
                }
            }
            for index in range {
                self.instruction(block, index);
            }
            let mut terminator = self.code.blocks[block].terminator.clone();
            self.terminator(&mut terminator, &params, line);
            let data = &mut self.code.blocks[block];
            data.terminator = terminator;
            data.insts = start..self.out.len() as u32;
            data.params.retain_mut(|v| match self.places.get(v) {
                Some(Place::Memory(_)) => false,
                Some(Place::Gpr(home)) => {
                    *v = *home;
                    true
                }
                _ => true,
            });
        }
    }

    fn fresh(&mut self, class: RegisterClass) -> VReg {
        let v = self.code.new_vreg(class);
        self.temporary.push(true);
        v
    }

    fn push(&mut self, inst: VInst, line: SourceLine) {
        self.add(Entry {
            inst,
            line,
            attachment: None,
        });
    }

    /// Notes where the next instruction comes from.
    fn record(&mut self, origin: u32) {
        if let Some(origins) = &mut self.origin {
            origins.push(origin);
        }
    }

    /// An instruction that spilling adds.
    fn add(&mut self, entry: Entry<VReg>) {
        self.out.push(entry);
        self.record(ADDED);
    }

    /// Copies a chosen value that has just been defined to its home.
    fn save(&mut self, v: VReg, line: SourceLine) {
        let Some(place) = self.places.get(&v).copied() else {
            return;
        };
        self.save_to(v, place, line);
        self.kept.push(Kept {
            value: v,
            copy: v,
            left: KEEP,
        });
    }

    fn save_to(&mut self, v: VReg, place: Place, line: SourceLine) {
        match (place, v.class()) {
            (Place::Again(_), _) => {}
            (Place::Memory(offset), _) => {
                let inst = moves::spill_store(v, self.pointer, offset);
                self.push(inst, line);
            }
            (Place::Gpr(home), RegisterClass::Predicate) => {
                self.push(moves::predicate_to_gpr(home, v), line)
            }
            (Place::Gpr(home), _) => self.push(moves::uniform_to_gpr(home, v), line),
        }
    }

    /// Brings a chosen value back.
    fn bring(&mut self, v: VReg, place: Place, line: SourceLine) -> VReg {
        if let Some(kept) = self.kept.iter().find(|k| k.value == v) {
            return kept.copy;
        }
        let copy = self.fresh(v.class());
        match (place, v.class()) {
            (Place::Again(index), _) => {
                let old = &self.old[index as usize];
                let attachment = old.attachment.map(|a| self.code.attachments[a].clone());
                let attachment = attachment.map(|a| self.code.attachments.push(a));
                self.add(Entry {
                    inst: old.inst.map(|_| copy),
                    line,
                    attachment,
                });
            }
            (Place::Memory(offset), _) => {
                let inst = moves::spill_load(copy, self.pointer, offset);
                self.push(inst, line);
            }
            (Place::Gpr(home), RegisterClass::Predicate) => {
                self.push(moves::gpr_to_predicate(copy, home), line)
            }
            (Place::Gpr(home), _) => self.push(moves::gpr_to_uniform(copy, home), line),
        }
        self.kept.push(Kept {
            value: v,
            copy,
            left: KEEP,
        });
        copy
    }

    /// The value under the name that holds it here.
    fn here(&mut self, v: VReg, line: SourceLine) -> VReg {
        match self.places.get(&v).copied() {
            Some(place) => self.bring(v, place, line),
            None => v,
        }
    }

    fn instruction(&mut self, block: Block, index: u32) {
        let mut entry = self.old[index as usize];
        let line = entry.line;
        let made_again = entry
            .inst
            .definitions()
            .all(|v| matches!(self.places.get(&v), Some(Place::Again(_))));
        if made_again && entry.inst.definitions().next().is_some() {
            return;
        }
        let slack = self.plan.slack[index as usize] as usize;
        let excess = self.kept.len().saturating_sub(slack);
        self.kept.drain(..excess);
        self.replace_uniform(block, &mut entry);
        let uses: Vec<VReg> = self
            .code
            .uses(&entry)
            .filter(|v| self.places.contains_key(v))
            .collect();
        if !uses.is_empty() {
            let names: HashMap<VReg, VReg> =
                uses.iter().map(|v| (*v, self.here(*v, line))).collect();
            let name = |v: &mut VReg| *v = names.get(v).copied().unwrap_or(*v);
            entry.inst = entry.inst.map_operands(|info, _, mut v| {
                if info.direction == crate::isa::table::Direction::In {
                    name(&mut v);
                }
                v
            });
            match entry.attachment.map(|a| &mut self.code.attachments[a]) {
                Some(Attachment::Else(kept)) => kept.iter_mut().flatten().for_each(name),
                Some(Attachment::Call(call)) => call.uses.iter_mut().for_each(|(v, _)| name(v)),
                _ => {}
            }
        }
        self.out.push(entry);
        self.record(self.origins.of(index));
        if self.code.call(&entry).is_some() {
            self.kept.clear();
        }
        self.kept.retain_mut(|k| {
            k.left -= 1;
            k.left > 0
        });
        let defs: Vec<VReg> = self.code.definitions(&entry).collect();
        for v in defs {
            self.save(v, line);
        }
        let excess = self.kept.len().saturating_sub(slack);
        self.kept.drain(..excess);
    }

    /// A use of a uniform value that now lives in a GPR takes the form that reads GPRs.
    fn replace_uniform(&mut self, block: Block, entry: &mut Entry<VReg>) {
        let homes: HashMap<VReg, VReg> = entry
            .inst
            .uses()
            .filter(|v| v.class() == RegisterClass::Uniform)
            .filter_map(|v| match self.places.get(&v) {
                Some(Place::Gpr(home)) => Some((v, *home)),
                _ => None,
            })
            .collect();
        if homes.is_empty() {
            return;
        }
        if let Some(inst) = uniform::in_gprs(&entry.inst, &homes) {
            entry.inst = inst;
        } else if self.code.blocks[block].divergent {
            // An address is added up in GPRs, because nothing may be written to a uniform register here.
            let (code, temporary) = (&mut self.code, &mut *self.temporary);
            let mut new = |class| {
                temporary.push(true);
                code.new_vreg(class)
            };
            let mut added = Vec::new();
            if let Some(inst) = uniform::address_in_gprs(&entry.inst, &homes, &mut new, &mut added)
            {
                let line = entry.line;
                added.into_iter().for_each(|inst| self.push(inst, line));
                entry.inst = inst;
            }
        }
    }

    fn terminator(
        &mut self,
        terminator: &mut Terminator<VReg>,
        params: &[Vec<VReg>],
        line: SourceLine,
    ) {
        self.kept.clear();
        match terminator {
            Terminator::Jump { target, args } => {
                *args = self.arguments(args, &params[target.index()], line)
            }
            Terminator::Branch { guard, .. } => guard.reg = self.here(guard.reg, line),
            Terminator::Table { index, .. } => *index = self.here(*index, line),
            Terminator::Return { address, values } => {
                address.iter_mut().for_each(|v| *v = self.here(*v, line));
                values
                    .iter_mut()
                    .for_each(|(v, _)| *v = self.here(*v, line));
            }
            Terminator::TailCall { callee, values } => {
                if let crate::vcode::Callee::Registers(address) = callee {
                    address.iter_mut().for_each(|v| *v = self.here(*v, line));
                }
                values
                    .iter_mut()
                    .for_each(|(v, _)| *v = self.here(*v, line));
            }
            Terminator::Exit | Terminator::Trap(_) => {}
        }
    }

    /// Passes arguments. All copies back come before the first store to a parameter's home; a parameter that another one's argument is
    /// read from by way of memory gets its new value last.
    fn arguments(&mut self, args: &[VReg], params: &[VReg], line: SourceLine) -> Vec<VReg> {
        let mut passed = Vec::with_capacity(args.len());
        let mut stored: Vec<(VReg, u32)> = Vec::new();
        for (&arg, &param) in args.iter().zip(params) {
            match (
                self.places.get(&param).copied(),
                self.places.get(&arg).copied(),
            ) {
                (Some(Place::Memory(to)), Some(Place::Memory(from))) if to == from => {}
                (Some(Place::Memory(to)), _) => stored.push((arg, to)),
                (Some(Place::Gpr(_)), Some(Place::Gpr(home))) => passed.push(home),
                (Some(Place::Gpr(_)), _) => {
                    let here = self.here(arg, line);
                    let home = self.fresh(RegisterClass::Gpr);
                    self.save_to(here, Place::Gpr(home), line);
                    passed.push(home);
                }
                _ => {
                    let here = self.here(arg, line);
                    passed.push(here);
                }
            }
        }
        let rotates = |this: &Self, arg: VReg| {
            params.contains(&arg) && matches!(this.places.get(&arg), Some(Place::Memory(_)))
        };
        let (rotated, plain): (Vec<_>, Vec<_>) =
            stored.into_iter().partition(|(arg, _)| rotates(self, *arg));
        let mut last = Vec::new();
        for (arg, to) in rotated {
            let here = self.here(arg, line);
            self.kept.clear();
            let shadow = self.code.frame.spill_offset() + self.code.frame.spill_bytes;
            self.code.frame.spill_bytes += 4;
            self.save_to(here, Place::Memory(shadow), line);
            last.push((shadow, to));
        }
        for (arg, to) in plain {
            let here = self.here(arg, line);
            self.kept.clear();
            self.save_to(here, Place::Memory(to), line);
        }
        for (shadow, to) in last {
            let copy = self.fresh(RegisterClass::Gpr);
            let inst = moves::spill_load(copy, self.pointer, shadow);
            self.push(inst, line);
            self.save_to(copy, Place::Memory(to), line);
        }
        passed
    }
}
