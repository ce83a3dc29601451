//! What becomes of the values of the source while CLIF is rewritten.
//!
//! In: a function as it was given. Each of its instructions gets a number in place of its `srcloc`, which stands for a
//! [`SourcePlace`]: its line, its block, and a turn. All passes hand `srcloc` on, so every instruction of the machine
//! knows in the end where the source has it. Each value gets its names: the value of the source that it is.
//!
//! The passes keep both true. A pass that gives up a value for another says so by an alias, which [`Tracking::resolve`]
//! follows, or by [`Tracking::also`]. A pass that copies instructions says which [`Turn`] a copy belongs to
//! ([`Copies`]), or a debugger in the second copy would show what the first has computed. Cranelift's mid-end says
//! nothing: [`Tracking::recover`] finds equal values behind it.
//!
//! With tracking off nothing is done and nothing is kept.

use crate::error::line_of;
use crate::locations::Locations;
use crate::values::SourceValue;
use crate::values::preorder::Preorder;
use crate::variables::Assignment;
use crate::variables::moments::{Moments, NO_MOMENT};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::packed_option::ReservedValue;
use cranelift_codegen::entity::{EntityRef, SecondaryMap};
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    Block, Function, Inst, RelSourceLoc, SourceLoc, Type, Value, ValueDef, ValueLabelAssignments,
};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::cell::{Ref, RefCell};

/// A turn of copied loops: the pairs of copied loop and copy around an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Turn(u32);

/// The turn of instructions that may belong to any.
const UNKNOWN: Turn = Turn(u32::MAX);

/// In place of the number of a copy: what is the same in all of them.
const EVERY: u32 = u32::MAX;

/// The copy `index` of loop `group`, in a turn of what is around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TurnOf {
    around: Turn,
    group: u32,
    index: u32,
}

/// A name of a value: it is what the source's value of this number is, in this turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Number in [`Sources::values`].
    pub value: u32,
    /// The block of the source that defines it.
    pub block: Block,
    /// The turn that it is computed for.
    pub turn: Turn,
}

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourcePlace {
    /// What the front end put into `srcloc`; 0 is unknown.
    pub line: u32,
    /// The block of the source.
    pub block: Block,
    /// The turn.
    pub turn: Turn,
    /// The moment of the variables ([`crate::variables::moments`]).
    pub moment: u32,
}

/// What the source says, and what the numbers of instructions stand for.
#[derive(Debug, Default)]
pub struct Sources {
    /// Everything that has names, with its type.
    pub values: Vec<(SourceValue, Type)>,
    /// What variables of the front end are.
    pub(crate) moments: Moments,
    /// The place of each number, from 1.
    places: Vec<SourcePlace>,
    /// A number that no instruction can have: relative to the function's base location it would stand for none.
    unusable: u32,
    copied: HashMap<SourcePlace, u32>,
    turns: Vec<TurnOf>,
    known_turns: HashMap<TurnOf, Turn>,
    /// What [`Sources::within`] was asked last, and its answer: next to each other instructions are of one turn.
    last_within: Option<((Turn, u32, u32), Turn)>,
    /// Loops that were copied.
    loops: u32,
    /// By block of the source, the copied loops that it was a part of.
    copied_loops: SecondaryMap<Block, SmallVec<[u32; 1]>>,
    /// The blocks of the source.
    order: Preorder,
}

impl Sources {
    /// The place of a number of an instruction.
    pub fn place(&self, number: u32) -> Option<SourcePlace> {
        let index = number.checked_sub(1)?;
        self.places.get(index as usize).copied()
    }

    /// Whether one block of the source dominates another.
    pub fn dominates(&self, block: Block, other: Block) -> bool {
        self.order.dominates(block, other)
    }

    /// Whether what has a name is what the source's value is in a turn: of all copied loops that the value is computed
    /// in, both belong to the same copy, or to none.
    pub fn is_of_turn(&self, name: &Name, turn: Turn) -> bool {
        if turn == UNKNOWN {
            return !self.was_copied(name);
        }
        let of = |turn: Turn, group: u32| {
            let found = self.chain(turn).find(|of| of.group == group);
            found.map(|of| of.index)
        };
        self.copied_loops[name.block].iter().all(|&group| {
            let index = of(name.turn, group);
            index == Some(EVERY) || index == of(turn, group)
        })
    }

    /// The number of a place that no instruction of the source has.
    fn number_of_place(&mut self, place: SourcePlace) -> u32 {
        let known = self.copied.get(&place).copied();
        known.unwrap_or_else(|| {
            let number = self.add_place(place);
            self.copied.insert(place, number);
            number
        })
    }

    /// A new number for a place.
    fn add_place(&mut self, place: SourcePlace) -> u32 {
        if self.places.len() as u32 + 1 == self.unusable {
            self.places.push(place);
        }
        self.places.push(place);
        self.places.len() as u32
    }

    /// Whether the source computes a value in a loop that was copied.
    fn is_in_loop(&self, name: &Name, group: u32) -> bool {
        self.copied_loops[name.block].contains(&group)
    }

    /// Whether the value is computed in a loop that was copied.
    pub fn was_copied(&self, name: &Name) -> bool {
        !self.copied_loops[name.block].is_empty()
    }

    fn chain(&self, turn: Turn) -> impl Iterator<Item = TurnOf> + '_ {
        let of = |turn: Turn| self.turns.get((turn.0 as usize).checked_sub(1)?).copied();
        std::iter::successors(of(turn), move |found| of(found.around))
    }

    /// What the numbers stand for, where the front end's stand for `locations`.
    pub fn located(&self, locations: &Locations) -> Locations {
        locations.renumbered(self.places.iter().map(|place| place.line))
    }

    /// Copy `index` of loop `group` in a turn, whichever copy of that loop it was before.
    fn within(&mut self, turn: Turn, group: u32, index: u32) -> Turn {
        let asked = (turn, group, index);
        if let Some((last, found)) = self.last_within
            && last == asked
        {
            return found;
        }
        let others: SmallVec<[TurnOf; 4]> =
            self.chain(turn).filter(|of| of.group != group).collect();
        let around = others.iter().rev().fold(Turn::default(), |around, of| {
            self.known(TurnOf { around, ..*of })
        });
        let found = self.known(TurnOf {
            around,
            group,
            index,
        });
        self.last_within = Some((asked, found));
        found
    }

    fn known(&mut self, turn: TurnOf) -> Turn {
        let turns = &mut self.turns;
        *self.known_turns.entry(turn).or_insert_with(|| {
            turns.push(turn);
            Turn(turns.len() as u32)
        })
    }

    /// The number of a place in a copy.
    fn number_in(&mut self, number: u32, group: u32, index: u32) -> u32 {
        let Some(place) = self.place(number) else {
            return number;
        };
        let turn = self.within(place.turn, group, index);
        self.number_of_place(SourcePlace { turn, ..place })
    }
}

/// What a value is of the source.
pub(super) type Names = SmallVec<[Name; 1]>;

/// The names of values, and what the source says.
#[derive(Debug, Default)]
struct Tables {
    sources: Sources,
    names: SecondaryMap<Value, Names>,
}

/// Follows the values of a function, or does nothing.
#[derive(Debug, Default)]
pub struct Tracking {
    tables: Option<Box<RefCell<Tables>>>,
}

impl Tracking {
    /// Names the values of a valid function, with what its front end assigns to variables, and numbers its
    /// instructions.
    pub fn begin(&mut self, func: &mut Function, assignments: &[Assignment]) {
        let cfg = ControlFlowGraph::with_function(func);
        let domtree = DominatorTree::with_function(func, &cfg);
        let order = Preorder::of(func, &domtree);
        let (moments, moment_of) = Moments::of(func, &cfg, &domtree, &order, assignments);
        let mut sources = Sources {
            order,
            moments,
            ..Sources::default()
        };
        let types = (0..func.dfg.num_values()).map(Value::new);
        sources.values = types
            .map(|value| {
                (
                    SourceValue::Value(value.as_u32()),
                    func.dfg.value_type(value),
                )
            })
            .collect();
        let mut names: SecondaryMap<Value, Names> = SecondaryMap::new();
        names.resize(func.dfg.num_values());
        let labels = Labels::of(func);
        let mut numbers: HashMap<SourceValue, u32> = HashMap::new();
        let blocks: Vec<Block> = func.layout.blocks().collect();
        for &block in &blocks {
            let results = (func.layout.block_insts(block))
                .flat_map(|inst| func.dfg.inst_results(inst).iter().copied());
            for value in func.dfg.block_params(block).iter().copied().chain(results) {
                let name = |value: u32| Name {
                    value,
                    block,
                    turn: Turn::default(),
                };
                names[value].push(name(value.as_u32()));
                for (label, ty) in labels.of_value(func, value) {
                    let number = *numbers.entry(label).or_insert_with(|| {
                        sources.values.push((label, ty));
                        sources.values.len() as u32 - 1
                    });
                    names[value].push(name(number));
                }
            }
        }
        let base = func.params.ensure_base_srcloc(SourceLoc::new(0));
        sources.unusable = base.bits().wrapping_sub(1);
        for block in blocks {
            let mut next = func.layout.first_inst(block);
            while let Some(inst) = next {
                next = func.layout.next_inst(inst);
                let number = sources.add_place(SourcePlace {
                    line: line_of(func.srcloc(inst)).unwrap_or(0),
                    block,
                    turn: Turn::default(),
                    moment: moment_of[inst],
                });
                set_number(func, inst, number);
            }
        }
        self.tables = Some(Box::new(RefCell::new(Tables { sources, names })));
        self.resolve_names(func);
    }

    /// Forgets everything: nothing is followed from now on.
    pub fn end(&mut self) -> Option<Sources> {
        Some(self.tables.take()?.into_inner().sources)
    }

    /// What the source says, if values are followed.
    pub fn sources(&self) -> Option<Ref<'_, Sources>> {
        let tables = self.tables.as_ref()?;
        Some(Ref::map(tables.borrow(), |tables| &tables.sources))
    }

    /// Whether values are followed.
    pub fn is_on(&self) -> bool {
        self.tables.is_some()
    }

    /// Goes through the values that have names, in order.
    pub fn each_named(&self, mut with: impl FnMut(Value, &[Name])) {
        let Some(tables) = &self.tables else { return };
        let tables = tables.borrow();
        for (value, names) in tables.names.iter().filter(|(_, names)| !names.is_empty()) {
            with(value, names);
        }
    }

    /// Resolves all aliases, whose names go to what they stand for.
    pub fn resolve(&self, func: &mut Function) {
        self.resolve_names(func);
        func.dfg.resolve_all_aliases();
    }

    fn resolve_names(&self, func: &Function) {
        let Some(tables) = &self.tables else { return };
        let names = &mut tables.borrow_mut().names;
        for value in (0..func.dfg.num_values()).map(Value::new) {
            // What was an alias once and is resolved is nothing any more.
            if !names[value].is_empty() && func.dfg.value_is_alias(value) {
                if let Some(original) = original(func, value) {
                    add_names(names, value, original);
                }
                names[value].clear();
            }
        }
    }

    /// Says that `new` is what `old` is as well, where it is read instead.
    pub fn also(&self, old: Value, new: Value) {
        if let Some(tables) = &self.tables {
            add_names(&mut tables.borrow_mut().names, old, new);
        }
    }

    /// Says that `old` becomes something else, and `new` is what it was.
    pub fn moves(&self, old: Value, new: Value) {
        if let Some(tables) = &self.tables {
            let names = &mut tables.borrow_mut().names;
            add_names(names, old, new);
            names[old].clear();
        }
    }

    /// Says that a value becomes something that the source does not have.
    pub fn forget(&self, value: Value) {
        if let Some(tables) = &self.tables {
            tables.borrow_mut().names[value].clear();
        }
    }

    /// Forgets values that are not computed any more: what they were computed from will be something else.
    pub fn forget_lost(&self, func: &Function) {
        let Some(tables) = &self.tables else { return };
        let names = &mut tables.borrow_mut().names;
        for value in (0..func.dfg.num_values()).map(Value::new) {
            if defining_block(func, value).is_none() {
                names[value].clear();
            }
        }
    }

    /// A loop of these blocks that is about to be copied. What it reads and does not compute is the same in all turns.
    pub fn copies(&self, func: &Function, body: &[Block]) -> Copies<'_> {
        let mut copies = Copies {
            tracking: self,
            group: 0,
            index: 0,
            names: true,
        };
        if let Some(tables) = &self.tables {
            let Tables { sources, names } = &mut *tables.borrow_mut();
            sources.loops += 1;
            copies.group = sources.loops;
            let insts = || {
                body.iter()
                    .flat_map(|block| func.layout.block_insts(*block))
            };
            for inst in insts() {
                if let Some(place) = sources.place(number_of(func, inst)) {
                    let groups = &mut sources.copied_loops[place.block];
                    if !groups.contains(&copies.group) {
                        groups.push(copies.group);
                    }
                }
            }
            let is_inside = |value: Value| {
                defining_block(func, value).is_some_and(|block| body.contains(&block))
            };
            for value in insts().flat_map(|inst| func.dfg.inst_values(inst)) {
                if !names[value].is_empty() && !is_inside(value) {
                    for name in &mut names[value] {
                        name.turn = sources.within(name.turn, copies.group, EVERY);
                    }
                }
            }
        }
        copies
    }

    /// Looks over the function that is to be lowered. An instruction may stand where its own block is not run:
    /// constants and what was hoisted have the number of where they came from. They belong to the block that they stand
    /// in, which is that of its end, and to no turn that is known.
    pub fn settle(&self, func: &mut Function) {
        let Some(tables) = &self.tables else { return };
        let sources = &mut tables.borrow_mut().sources;
        let blocks: Vec<Block> = func.layout.blocks().collect();
        for block in blocks {
            let end = func
                .layout
                .last_inst(block)
                .map(|inst| number_of(func, inst));
            let Some(end) = end.and_then(|number| sources.place(number)) else {
                continue;
            };
            let mut next = func.layout.first_inst(block);
            while let Some(inst) = next {
                next = func.layout.next_inst(inst);
                let own = sources.place(number_of(func, inst));
                if let Some(own) = own.filter(|own| !sources.dominates(own.block, end.block)) {
                    let number = sources.number_of_place(SourcePlace {
                        block: end.block,
                        turn: UNKNOWN,
                        moment: NO_MOMENT,
                        ..own
                    });
                    set_number(func, inst, number);
                }
            }
        }
    }

    /// Finds for named values that Cranelift's mid-end has left out others that are equal: those of its unions, and
    /// those that compute the same from equal ones.
    pub fn recover(&self, func: &Function) {
        if let Some(tables) = &self.tables {
            super::recover::recover(func, &mut tables.borrow_mut().names);
        }
    }
}

/// The block in which a value is defined; none of an alias, of a union, and of what is not computed any more.
pub(super) fn defining_block(func: &Function, value: Value) -> Option<Block> {
    let is_real = func.dfg.value_is_real(value);
    match is_real.then(|| func.dfg.value_def(value))? {
        ValueDef::Result(inst, _) => func.layout.inst_block(inst),
        ValueDef::Param(block, _) => Some(block).filter(|b| func.layout.is_block_inserted(*b)),
        ValueDef::Union(..) => None,
    }
}

/// What an alias stands for in the end; none of one that has been resolved and is nothing any more.
pub(super) fn original(func: &Function, value: Value) -> Option<Value> {
    let mut original = value;
    while let Some(next) = func.dfg.value_alias_dest_for_serialization(original) {
        if next.is_reserved_value() {
            return None;
        }
        original = next;
    }
    Some(original)
}

/// Gives `new` the names of `old` too.
pub(super) fn add_names(names: &mut SecondaryMap<Value, Names>, old: Value, new: Value) {
    if old == new || names[old].is_empty() {
        return;
    }
    let more = names[old].clone();
    let names = &mut names[new];
    for name in more {
        if !names.contains(&name) {
            names.push(name);
        }
    }
}

/// A copy of a loop, or the loop itself beside its copies.
#[derive(Clone, Copy)]
pub struct Copies<'a> {
    tracking: &'a Tracking,
    group: u32,
    index: u32,
    /// Whether copies of values have their names.
    names: bool,
}

impl Copies<'_> {
    /// The copy of this number.
    #[must_use]
    pub fn number(self, index: u32) -> Self {
        Self { index, ..self }
    }

    /// Copies whose values are no values of the source yet.
    #[must_use]
    pub fn unnamed(self) -> Self {
        Self {
            names: false,
            ..self
        }
    }

    /// `new` is in this copy what `old` is in the loop.
    pub fn value(&self, old: Value, new: Value) {
        let Some(tables) = &self.tracking.tables else {
            return;
        };
        let Tables { sources, names } = &mut *tables.borrow_mut();
        if !self.names || old == new {
            return;
        }
        // What is a value of the source behind the loop is so in no copy, but where the loop is left.
        for name in names[old].clone() {
            if !sources.is_in_loop(&name, self.group) {
                continue;
            }
            let turn = sources.within(name.turn, self.group, self.index);
            let name = Name { turn, ..name };
            if !names[new].contains(&name) {
                names[new].push(name);
            }
        }
    }

    /// `new` is in this copy what `old` is in the loop.
    pub fn inst(&self, func: &mut Function, old: Inst, new: Inst) {
        if let Some(tables) = &self.tracking.tables {
            let sources = &mut tables.borrow_mut().sources;
            let number = sources.number_in(number_of(func, old), self.group, self.index);
            set_number(func, new, number);
        }
    }

    /// These blocks are this copy themselves.
    pub fn mark(&self, func: &mut Function, blocks: &[Block]) {
        let Some(tables) = &self.tracking.tables else {
            return;
        };
        for &block in blocks {
            let Tables { sources, names } = &mut *tables.borrow_mut();
            let mut values: Vec<Value> = func.dfg.block_params(block).to_vec();
            let mut next = func.layout.first_inst(block);
            while let Some(inst) = next {
                next = func.layout.next_inst(inst);
                let number = sources.number_in(number_of(func, inst), self.group, self.index);
                set_number(func, inst, number);
                values.extend_from_slice(func.dfg.inst_results(inst));
            }
            for value in values {
                for name in &mut names[value] {
                    if sources.is_in_loop(name, self.group) {
                        name.turn = sources.within(name.turn, self.group, self.index);
                    }
                }
            }
        }
    }
}

fn number_of(func: &Function, inst: Inst) -> u32 {
    line_of(func.srcloc(inst)).unwrap_or(0)
}

fn set_number(func: &mut Function, inst: Inst, number: u32) {
    let base = func.params.ensure_base_srcloc(SourceLoc::new(0));
    func.srclocs[inst] = RelSourceLoc::from_base_offset(base, SourceLoc::new(number));
}

/// The variables that a front end has named.
struct Labels {
    /// Those that are given a value several times, or behind its definition. Which of them it is at a place, and from
    /// when on, is not known, so nothing is said of them. In order.
    unclear: Vec<u32>,
}

impl Labels {
    fn of(func: &Function) -> Labels {
        let mut given: Vec<u32> = Vec::new();
        let mut unclear: Vec<u32> = Vec::new();
        for (&value, assignments) in func.dfg.values_labels.iter().flatten() {
            match assignments {
                ValueLabelAssignments::Starts(starts) => {
                    let here = func.dfg.value_def(value).inst();
                    let here = here.map(|inst| func.srclocs[inst]);
                    let is_late = |from: RelSourceLoc| here.is_some_and(|here| here != from);
                    let late = starts.iter().filter(|start| is_late(start.from));
                    unclear.extend(late.map(|start| start.label.as_u32()));
                    given.extend(starts.iter().map(|start| start.label.as_u32()));
                }
                ValueLabelAssignments::Alias { value, .. } => {
                    unclear.extend(starts_of(func, *value).map(|(label, _)| label));
                }
            }
        }
        given.sort_unstable();
        let twice = given.windows(2).filter(|pair| pair[0] == pair[1]);
        unclear.extend(twice.map(|pair| pair[0]));
        unclear.sort_unstable();
        Labels { unclear }
    }

    fn of_value(&self, func: &Function, value: Value) -> SmallVec<[(SourceValue, Type); 1]> {
        starts_of(func, value)
            .filter(|(label, _)| self.unclear.binary_search(label).is_err())
            .map(|(label, ty)| (SourceValue::Label(label), ty))
            .collect()
    }
}

/// The labels that begin at the definition of a value.
fn starts_of(func: &Function, value: Value) -> impl Iterator<Item = (u32, Type)> + '_ {
    let labels = func.dfg.values_labels.as_ref();
    let assignments = labels.and_then(|labels| labels.get(&value));
    let starts = match assignments {
        Some(ValueLabelAssignments::Starts(starts)) => &starts[..],
        Some(ValueLabelAssignments::Alias { .. }) | None => &[],
    };
    let ty = func.dfg.value_type(value);
    starts.iter().map(move |start| (start.label.as_u32(), ty))
}
