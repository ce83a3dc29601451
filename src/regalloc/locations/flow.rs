//! The data flow: what each instruction does to what places hold.

use super::super::check::added::{self, Action, Pairs};
use super::super::check::{StorageLocation, layout::Layout};
use super::before::{Before, WordOf};
use super::record::{Recorded, Recorder};
use super::state::{Snapshot, State};
use super::{Definition, Definitions, Places};
use crate::abi;
use crate::isa::generated::Form;
use crate::isa::table::Effects;
use crate::isa::{PInst, PReg, Register, RegisterClass};
use crate::vcode::{Block, VCode};
use cranelift_codegen::entity::EntityRef;

/// Where holders are in `after`; they themselves are still left out.
pub(super) fn places(
    before: &Before,
    after: &VCode<PReg>,
    layout: &Layout,
    definitions: Definitions,
) -> Places {
    let mut flow = Flow {
        before,
        after,
        layout,
        definitions: definitions.0,
        state: State::new(
            StorageLocation::count(layout.words()),
            before.count,
            before.holders.len(),
        ),
        touched: Vec::new(),
        changed: Vec::new(),
        moved: Vec::new(),
        new: Vec::new(),
    };
    let mut recorder = Recorder::new(before, layout);
    let blocks = flow.solve(&mut recorder);
    recorder.places(blocks)
}

/// Instructions of an exchange.
const EXCHANGE: u32 = 3;

pub(super) struct Flow<'a> {
    before: &'a Before,
    after: &'a VCode<PReg>,
    layout: &'a Layout,
    /// In the order of instructions.
    definitions: Vec<Definition>,
    pub(super) state: State,
    /// Virtual registers whose places have changed, in the instruction at hand.
    pub(super) touched: Vec<u32>,
    /// Holders for which something else has.
    pub(super) changed: Vec<u32>,
    /// What the instruction at hand copies where.
    moved: Vec<(StorageLocation, u32)>,
    /// What it gives.
    new: Vec<u32>,
}

impl Flow<'_> {
    /// Goes through the blocks until nothing changes. What is written down of a block the last time is true: by then
    /// all is known that holds at its start. A block of a loop is not written down the first time, when what comes
    /// round is not known yet.
    fn solve(&mut self, recorder: &mut Recorder<'_>) -> Vec<Recorded> {
        let count = self.after.blocks.len();
        let mut inputs: Vec<Option<Snapshot>> = vec![None; count];
        let mut recorded: Vec<Option<Recorded>> = vec![None; count];
        let mut was_seen = vec![false; count];
        inputs[0] = Some(self.entry());
        let mut waiting = vec![false; count];
        waiting[0] = true;
        while waiting.contains(&true) {
            for (block, data) in self.after.blocks.iter() {
                let number = block.index();
                if !std::mem::take(&mut waiting[number]) {
                    continue;
                }
                let Some(input) = &inputs[number] else {
                    continue;
                };
                let is_first = !std::mem::replace(&mut was_seen[number], true);
                let is_written = !is_first || data.loop_depth == 0;
                self.block(block, input, is_written.then_some(&mut *recorder));
                recorded[number] = is_written.then(|| recorder.take());
                let output = self.state.passed(self.before.passed.get(number));
                for target in data.terminator.successors() {
                    let known = &mut inputs[target.index()];
                    waiting[target.index()] |= match known {
                        Some(known) => known.meet(&output),
                        None => {
                            *known = Some(output.clone());
                            true
                        }
                    };
                }
            }
        }
        for (block, input) in self.after.blocks.keys().zip(&inputs) {
            if let (None, Some(input)) = (&recorded[block.index()], input) {
                self.block(block, input, Some(&mut *recorder));
                recorded[block.index()] = Some(recorder.take());
            }
        }
        recorded
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect()
    }

    /// Goes through a block, and lets it be written down.
    fn block(&mut self, block: Block, input: &Snapshot, mut recorder: Option<&mut Recorder<'_>>) {
        self.begin(block, input);
        if let Some(recorder) = &mut recorder {
            recorder.start(self);
        }
        let range = self.after.blocks[block].insts.clone();
        let definitions = &self.definitions;
        let mut next = definitions.partition_point(|found| found.index < range.start);
        let mut index = range.start;
        while index < range.end {
            index += self.instruction(index, range.end, &mut next);
            match &mut recorder {
                Some(recorder) => recorder.note(self, index - 1),
                None => {
                    self.touched.clear();
                    self.changed.clear();
                }
            }
        }
    }

    /// What is known where the function begins.
    fn entry(&mut self) -> Snapshot {
        for &(number, register) in &self.before.entry {
            self.state.put(register.into(), number);
            self.defined(&[number]);
        }
        self.changed.clear();
        self.state.passed(&[])
    }

    /// The start of a block, where its parameters are new.
    fn begin(&mut self, block: Block, input: &Snapshot) {
        self.state.load(input);
        self.defined(self.before.params.get(block.index()));
        self.touched.clear();
        self.changed.clear();
    }

    /// These have new values together.
    fn defined(&mut self, numbers: &[u32]) {
        let words = &self.before.words;
        for &number in numbers {
            for &WordOf { holder, .. } in words.get(number as usize) {
                self.state.complete.set(holder, false);
                self.changed.push(holder);
            }
        }
        for &number in numbers {
            for word in words.get(number as usize).iter().filter(|w| w.is_last) {
                self.state.complete.set(word.holder, true);
            }
        }
    }

    /// An instruction, or several that belong together; how many.
    fn instruction(&mut self, index: u32, end: u32, next: &mut usize) -> u32 {
        let insts = &self.after.insts;
        let inst = &insts[index as usize].inst;
        let effects = inst.optype().info().effects;
        let count = self.moves(index, end, *next);
        for entry in &insts[index as usize..(index + count) as usize] {
            for register in entry.inst.definitions() {
                self.state.clear(register.into(), &mut self.touched);
            }
        }
        if effects.contains(Effects::PREDICATES) && inst.form() != Form::P2R_RI {
            self.clear_where(|place| {
                place
                    .register()
                    .is_some_and(|r| r.class() == RegisterClass::Predicate)
            });
        }
        if effects.contains(Effects::CALL) {
            self.clear_where(|place| !place.survives_call());
        }
        let moved = std::mem::take(&mut self.moved);
        for &(to, number) in &moved {
            self.state.put(to, number);
            self.touched.push(number);
        }
        self.moved = moved;
        self.new.clear();
        while let Some(found) = self.definitions.get(*next)
            && found.index < index + count
        {
            // A copy of itself has been made beside it.
            self.state.forget(found.number);
            self.state.put(found.register.into(), found.number);
            self.touched.push(found.number);
            self.new.push(found.number);
            *next += 1;
        }
        if !self.new.is_empty() {
            let new = std::mem::take(&mut self.new);
            self.defined(&new);
            self.new = new;
        }
        count
    }

    /// Gathers what an instruction copies, if it is a copy, a store, a load, or the first of an exchange; how many
    /// instructions do it together. A change of R1 is made known at once.
    fn moves(&mut self, index: u32, end: u32, next: usize) -> u32 {
        self.moved.clear();
        let entry = &self.after.insts[index as usize];
        let inst = &entry.inst;
        let Some(kind) = Kind::of(inst) else { return 1 };
        if !inst.is_unguarded() {
            return 1;
        }
        if kind == Kind::StackPointer {
            if let Some(Action::Adjust(amount)) = added::stack_pointer(inst)
                && amount > 0
            {
                // The frame goes: what is in it cannot be found any more.
                self.clear_where(|place| !place.is_register());
            }
            return 1;
        }
        if entry.attachment.is_some() {
            return 1;
        }
        let found = match kind {
            Kind::Copy => added::copy(inst),
            Kind::Memory => added::memory(inst, self.layout).unwrap_or_default(),
            Kind::StackPointer | Kind::Exchange => None,
        };
        if let Some(pairs) = found {
            self.gather(&pairs);
            return 1;
        }
        if matches!(kind, Kind::Copy | Kind::Exchange) {
            let last = end.min(index + EXCHANGE);
            // What gives results in between is none.
            let gives = |found: &Definition| found.index < last;
            let rest = &self.after.insts[index as usize..last as usize];
            if !self.definitions.get(next).is_some_and(gives)
                && let Some(pairs) = added::exchange_of(rest)
            {
                self.gather(&pairs);
                return EXCHANGE;
            }
        }
        1
    }

    fn gather(&mut self, pairs: &Pairs) {
        for &(to, from) in pairs {
            let content = self.state.content(from);
            self.moved.extend(content.map(|number| (to, number)));
        }
        // What is overwritten by something unknown is unknown.
        for &(to, _) in pairs.iter().filter(|(to, _)| !to.is_register()) {
            self.state.clear(to, &mut self.touched);
        }
    }

    fn clear_where(&mut self, goes: impl Fn(StorageLocation) -> bool) {
        let gone: Vec<StorageLocation> = self.state.occupied().filter(|p| goes(*p)).collect();
        for place in gone {
            self.state.clear(place, &mut self.touched);
        }
    }
}

/// What an instruction may be besides one that computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A copy in a file or between files; an exchange of predicates begins with the same form.
    Copy,
    /// A store or a load.
    Memory,
    /// The first of three that exchange two registers.
    Exchange,
    /// A change of R1.
    StackPointer,
}

impl Kind {
    fn of(inst: &PInst) -> Option<Kind> {
        Some(match inst.form() {
            Form::MOV_R
            | Form::MOV_U
            | Form::UMOV_U
            | Form::R2UR_R
            | Form::SEL_RI
            | Form::ISETP_RI
            | Form::PLOP3_X => Kind::Copy,
            Form::STL_RR | Form::LDL_R => Kind::Memory,
            Form::LOP3_RRR | Form::UIADD_RU => Kind::Exchange,
            Form::IADD_RI if inst.definitions().any(|r| r == abi::STACK_POINTER) => {
                Kind::StackPointer
            }
            _ => return None,
        })
    }
}
