//! The data flow: what each instruction does to what places hold.

use super::super::check::added::{Action, action};
use super::super::check::{StorageLocation, layout::Layout};
use super::state::{Snapshot, State};
use super::{Definition, Definitions, Places, Tracked, Words, place};
use crate::isa::generated::Form;
use crate::isa::table::Effects;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::values::{Held, Holder, Word};
use crate::vcode::{Block, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use smallvec::SmallVec;

/// Where holders are in `after`.
pub(super) fn places(
    before: &VCode<VReg>,
    after: &VCode<PReg>,
    layout: &Layout,
    definitions: Definitions,
    tracked: Tracked,
    holders: Vec<Holder>,
) -> Places {
    let mut flow = Flow {
        before,
        after,
        layout,
        definitions: definitions.0,
        state: State::new(
            StorageLocation::count(layout.words()),
            &tracked,
            holders.len(),
        ),
        tracked: &tracked,
        touched: Vec::new(),
        changed: Vec::new(),
    };
    let mut recorder = Recorder {
        holders: &holders,
        layout,
        shown: vec![None; holders.len()],
        touched: Vec::new(),
    };
    let blocks = flow.solve(&mut recorder);
    let mut starts = Vec::with_capacity(blocks.len());
    let mut changes = Vec::new();
    for block in blocks {
        starts.push(block.start);
        changes.extend(block.changes);
    }
    Places {
        holders,
        starts,
        changes,
    }
}

/// What is written down of a block; nothing of those that nothing leads to.
#[derive(Clone, Default)]
struct Recorded {
    /// As [`Places::starts`].
    start: Vec<(u32, Words)>,
    /// As [`Places::changes`].
    changes: Vec<(u32, u32, Option<Words>)>,
}

struct Flow<'a> {
    before: &'a VCode<VReg>,
    after: &'a VCode<PReg>,
    layout: &'a Layout,
    /// In the order of instructions.
    definitions: Vec<Definition>,
    tracked: &'a Tracked,
    state: State,
    /// Virtual registers whose places have changed, in the instruction at hand.
    touched: Vec<u32>,
    /// Holders for which something else has.
    changed: Vec<u32>,
}

impl Flow<'_> {
    /// Goes through the blocks until nothing changes. What is written down of a block the last time is true: by then
    /// all is known that holds at its start.
    fn solve(&mut self, recorder: &mut Recorder<'_>) -> Vec<Recorded> {
        let mut inputs: Vec<Option<Snapshot>> = vec![None; self.after.blocks.len()];
        let mut recorded = vec![Recorded::default(); inputs.len()];
        inputs[0] = Some(self.entry());
        let mut waiting = vec![false; inputs.len()];
        waiting[0] = true;
        while waiting.contains(&true) {
            for block in self.after.blocks.keys() {
                if !std::mem::take(&mut waiting[block.index()]) {
                    continue;
                }
                let Some(input) = &inputs[block.index()] else {
                    continue;
                };
                self.begin(block, input);
                let Recorded { start, changes } = &mut recorded[block.index()];
                *start = recorder.start(self);
                changes.clear();
                let range = self.after.blocks[block].insts.clone();
                let mut next = self.first_definition(range.start);
                let mut index = range.start;
                while index < range.end {
                    index += self.instruction(index, range.end, &mut next);
                    recorder.note(self, index - 1, changes);
                }
                let terminator = &self.before.blocks[block].terminator;
                let output = self.state.passed(&self.arguments(terminator));
                for target in terminator.successors() {
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
        recorded
    }

    /// What is known where the function begins.
    fn entry(&mut self) -> Snapshot {
        for &(value, register) in &self.before.entry {
            if let Some(number) = self.tracked.number(value) {
                self.state.put(register.into(), number);
                self.defined(&[number]);
            }
        }
        self.state.passed(&[])
    }

    /// The parameters of the target of a jump with their arguments.
    fn arguments(&self, terminator: &Terminator<VReg>) -> SmallVec<[(u32, u32); 8]> {
        let Terminator::Jump { target, args } = terminator else {
            return SmallVec::new();
        };
        let params = self.before.blocks[*target].params.iter();
        params
            .zip(args)
            .filter_map(|(param, arg)| {
                Some((self.tracked.number(*param)?, self.tracked.number(*arg)?))
            })
            .collect()
    }

    /// The start of a block, where its parameters are new.
    fn begin(&mut self, block: Block, input: &Snapshot) {
        self.state.load(input);
        let params = self.before.blocks[block].params.iter();
        let params: SmallVec<[u32; 8]> = params
            .filter_map(|param| self.tracked.number(*param))
            .collect();
        self.defined(&params);
        self.touched.clear();
        self.changed.clear();
    }

    /// These have new values together.
    fn defined(&mut self, numbers: &[u32]) {
        let tracked = self.tracked;
        for &number in numbers {
            for &holder in &tracked.holders[number as usize] {
                self.state.complete.set(holder, false);
                self.changed.push(holder);
            }
        }
        for &number in numbers {
            for &holder in &tracked.last_of[number as usize] {
                self.state.complete.set(holder, true);
            }
        }
    }

    fn first_definition(&self, index: u32) -> usize {
        self.definitions
            .partition_point(|found| found.index < index)
    }

    /// An instruction, or several that belong together; how many.
    fn instruction(&mut self, index: u32, end: u32, next: &mut usize) -> u32 {
        let rest = &self.after.insts[index as usize..end as usize];
        let inst = &rest[0].inst;
        let effects = inst.optype().info().effects;
        let mut count = 1;
        let mut moved: SmallVec<[(StorageLocation, SmallVec<[u32; 2]>); 4]> = SmallVec::new();
        if is_copy(inst.form())
            && inst.is_unguarded()
            && let Ok((action, length)) = action(&rest[..rest.len().min(3)], self.layout)
        {
            count = length as u32;
            match action {
                Action::Move(pairs) => {
                    let contents = pairs
                        .iter()
                        .map(|(to, from)| (*to, self.state.content(*from)));
                    moved.extend(contents);
                }
                // The frame goes: what is in it cannot be found any more.
                Action::Adjust(amount) if amount > 0 => {
                    self.clear_where(|place| place.register().is_none());
                }
                _ => {}
            }
        }
        for entry in &rest[..count as usize] {
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
        for (to, content) in moved {
            self.state.clear(to, &mut self.touched);
            for number in content {
                self.state.put(to, number);
                self.touched.push(number);
            }
        }
        let first = *next;
        while self
            .definitions
            .get(*next)
            .is_some_and(|found| found.index < index + count)
        {
            *next += 1;
        }
        let mut new: SmallVec<[u32; 4]> = SmallVec::new();
        for found in first..*next {
            let Definition {
                value, register, ..
            } = self.definitions[found];
            if let Some(number) = self.tracked.number(value) {
                // A copy of itself has been made beside it.
                self.state.forget(number);
                self.state.put(register.into(), number);
                self.touched.push(number);
                new.push(number);
            }
        }
        self.defined(&new);
        count
    }

    fn clear_where(&mut self, goes: impl Fn(StorageLocation) -> bool) {
        let gone: Vec<StorageLocation> = self.state.occupied().filter(|p| goes(*p)).collect();
        for place in gone {
            self.state.clear(place, &mut self.touched);
        }
    }
}

/// Whether an instruction of this form may be a copy, or a part of one, or move R1.
fn is_copy(form: Form) -> bool {
    matches!(
        form,
        Form::MOV_R
            | Form::MOV_U
            | Form::UMOV_U
            | Form::R2UR_R
            | Form::SEL_RI
            | Form::ISETP_RI
            | Form::PLOP3_X
            | Form::LOP3_RRR
            | Form::UIADD_RU
            | Form::STL_RR
            | Form::LDL_R
            | Form::IADD_RI
    )
}

/// Writes down where holders are.
struct Recorder<'a> {
    holders: &'a [Holder],
    layout: &'a Layout,
    /// By holder, where it was said to be last.
    shown: Vec<Option<Words>>,
    /// Holders that were said to be somewhere in the block at hand.
    touched: Vec<u32>,
}

impl Recorder<'_> {
    /// All that is somewhere at the start of a block.
    fn start(&mut self, flow: &Flow<'_>) -> Vec<(u32, Words)> {
        for holder in self.touched.drain(..) {
            self.shown[holder as usize] = None;
        }
        let held = flow
            .state
            .occupied()
            .flat_map(|place| flow.state.content(place));
        let mut holders: Vec<u32> = held
            .flat_map(|number| flow.tracked.holders[number as usize].iter().copied())
            .collect();
        holders.sort_unstable();
        holders.dedup();
        let mut found = Vec::new();
        for holder in holders {
            if let Some(words) = self.words(flow, holder) {
                self.shown[holder as usize] = Some(words.clone());
                self.touched.push(holder);
                found.push((holder, words));
            }
        }
        found
    }

    /// What has changed with instruction `index`.
    fn note(
        &mut self,
        flow: &mut Flow<'_>,
        index: u32,
        changes: &mut Vec<(u32, u32, Option<Words>)>,
    ) {
        let mut changed = std::mem::take(&mut flow.changed);
        for number in flow.touched.drain(..) {
            changed.extend(&flow.tracked.holders[number as usize]);
        }
        changed.sort_unstable();
        changed.dedup();
        for holder in changed.drain(..) {
            let words = self.words(flow, holder);
            if self.shown[holder as usize] != words {
                changes.push((index, holder, words.clone()));
                self.touched.push(holder);
                self.shown[holder as usize] = words;
            }
        }
        flow.changed = changed;
    }

    /// Where a holder is, all of it. It stays where it was said to be while it is there.
    fn words(&self, flow: &Flow<'_>, holder: u32) -> Option<Words> {
        if !flow.state.complete.has(holder) {
            return None;
        }
        let find = |register: VReg, opposite: bool| {
            let found = flow.state.find(flow.tracked.number(register)?)?;
            Some(place(found, self.layout, opposite))
        };
        match &self.holders[holder as usize].held {
            Held::Predicate(register, opposite) => {
                let found = find(*register, *opposite)?;
                Some(Words::from_slice(&[found]))
            }
            Held::Words(words, _) => {
                let words = words.iter().map(|word| match word {
                    Word::Register(register) => find(*register, false),
                    Word::Always(place) => Some(*place),
                });
                words.collect()
            }
        }
    }
}
