//! Scopes and variables by code address.
//!
//! In: code in its final order, the places in the source of its instructions, and what variables are in which moment.
//! Out: the scopes that code comes from, each with its ranges, and its variables with theirs. One walk: what is seen
//! changes where the scope or the moment of an instruction is another than that of the one before.
//!
//! Memory is what the source says it is only where every store of the source before an instruction has been made, and
//! none behind it. So a variable in memory is available in code that no pass on CLIF has optimised, and there where no
//! store of the block stands on the wrong side.

use super::moments::{self, Moments, NO_MOMENT};
use super::{Assigned, Base, Variables};
use crate::isa::PReg;
use crate::isa::table::Effects;
use crate::linear::Linear;
use crate::locations::{Location, Locations};
use crate::values::SourceValue;
use crate::values::tracking::Sources;
use crate::vcode::Entry;
use cranelift_codegen::ir::{Block, Value};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// What a scope is. `L` says where a call is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ScopeKind<L = Location> {
    /// A function, by its name in the language.
    Function(String),
    /// A part of a function.
    Block,
    /// A function that was inlined, by its name, at a call.
    Inlined(String, L),
}

/// A scope, and the code of a function that comes from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeLocations {
    /// The one that it is in, by its place in the list of the function, where it stands before this one.
    pub parent: Option<u32>,
    /// What it is.
    pub kind: ScopeKind,
    /// Byte offsets in the function, in ascending order.
    pub ranges: Vec<Range<u32>>,
    /// The variables that are declared in it.
    pub variables: Vec<VariableLocations>,
}

/// A variable, and what it is where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableLocations {
    /// Its name.
    pub name: String,
    /// Its type, by number in the object's list.
    pub ty: u32,
    /// Whether the function takes it.
    pub is_parameter: bool,
    /// In ascending order; they do not overlap.
    pub ranges: Vec<VariableRange>,
}

/// What a variable is while the next instruction of a thread is one of a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableRange {
    /// The first instruction, as byte offset in the function.
    pub start: u32,
    /// Behind the last one.
    pub end: u32,
    /// Parts that are known, by where they begin.
    pub parts: Vec<Part>,
}

/// Bytes of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// Where they begin in it.
    pub offset: u32,
    /// How many.
    pub bytes: u32,
    /// What they are.
    pub place: PartPlace,
}

/// What bytes of a variable are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PartPlace {
    /// The low bytes of a value of the CLIF, where that is available.
    Value(SourceValue),
    /// Always these, the lowest first; those behind the eighth are 0.
    Constant(u64),
    /// Memory. It begins there; then for each number, so many bytes behind the address that is there.
    Memory(Address, Vec<i64>),
}

/// Where memory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Address {
    /// In local memory of the thread, by the offset from R1 in bytes.
    Frame(u32),
    /// At the generic address that a value of the CLIF is, and bytes behind it.
    Value(SourceValue, i64),
}

impl VariableLocations {
    /// The parts that are known at a byte offset of the function.
    pub fn at(&self, offset: u32) -> &[Part] {
        let behind = self.ranges.partition_point(|range| range.end <= offset);
        let range = self
            .ranges
            .get(behind)
            .filter(|range| range.start <= offset);
        range.map_or(&[], |range| &range.parts)
    }
}

impl ScopeLocations {
    /// Whether an instruction comes from it, by its byte offset in the function.
    pub fn contains(&self, offset: u32) -> bool {
        let behind = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges
            .get(behind)
            .is_some_and(|range| range.start <= offset)
    }

    /// Gives types other numbers, and calls other places.
    pub(crate) fn renumber(&mut self, ty: impl Fn(u32) -> u32, call: impl FnOnce(&mut Location)) {
        if let ScopeKind::Inlined(_, at) = &mut self.kind {
            call(at);
        }
        for variable in &mut self.variables {
            variable.ty = ty(variable.ty);
        }
    }

    /// Moves all ranges: `to` says where an instruction went.
    pub(crate) fn move_ranges(&mut self, to: impl Fn(u32) -> u32) {
        for range in &mut self.ranges {
            *range = to(range.start)..to(range.end);
        }
        for range in self
            .variables
            .iter_mut()
            .flat_map(|variable| &mut variable.ranges)
        {
            (range.start, range.end) = (to(range.start), to(range.end));
        }
    }
}

/// What is seen of variables, by their numbers.
type Seen = BTreeMap<u32, Vec<Part>>;

/// What is seen from an instruction.
#[derive(Default)]
struct View {
    /// Scopes by their numbers in the front end's table, the outermost first.
    scopes: Vec<u32>,
    variables: Seen,
}

/// The scopes of a function, in numbers of instructions. With `keeps_stores` no store of the source was left out or
/// moved out of its block.
pub(crate) fn scopes(
    code: &Linear,
    sources: &Sources,
    locations: &Locations,
    variables: &Variables,
    keeps_stores: bool,
) -> Vec<ScopeLocations> {
    let moments = &sources.moments;
    let mut views: HashMap<Seat, Rc<View>> = HashMap::new();
    let mut walk = Walk {
        variables,
        open: Rc::default(),
        found: Found::default(),
    };
    let mut since = 0;
    for block in 0..code.block_count() {
        // What no place in the source is known of belongs to what is before it in its block.
        let mut before = None;
        // An instruction may stand where not all who run it come by its own block: that of a branch that was made one
        // with what is around it. Nobody knows what variables are there.
        let end = sources.place(code.line(block).0);
        let comes_by = |own: Block| end.is_some_and(|end| sources.dominates(own, end.block));
        let has_memory = match keeps_stores {
            true => in_order(code, block),
            false => vec![false; code.insts(block).count()],
        };
        let insts = code.insts(block).zip(code.positions(block)).zip(has_memory);
        for ((entry, position), has_memory) in insts {
            let place = sources.place(entry.line.0);
            let seat = place.map(|place| Seat {
                scope: locations.scope(place.line),
                moment: if comes_by(place.block) {
                    place.moment
                } else {
                    NO_MOMENT
                },
                has_memory,
            });
            let seat = seat.or(before);
            let view = match seat {
                None => Rc::default(),
                Some(seat) => views
                    .entry(seat)
                    .or_insert_with(|| Rc::new(seat.view(code, moments, variables)))
                    .clone(),
            };
            before = seat;
            if !Rc::ptr_eq(&view, &walk.open) {
                walk.show(since..position as u32, view);
                since = position as u32;
            }
        }
    }
    walk.show(since..code.len() as u32, Rc::default());
    walk.found.finish(variables)
}

/// For each instruction of a block whether the stores around it stand as they do in the source.
fn in_order(code: &Linear, block: usize) -> Vec<bool> {
    let writes = Effects::STORE.union(Effects::ATOMIC).union(Effects::CALL);
    let writes = |entry: &Entry<PReg>| entry.inst.optype().info().effects.intersects(writes);
    let numbers: Vec<(u32, bool)> = code
        .insts(block)
        .map(|entry| (entry.line.0, writes(entry)))
        .collect();
    // From behind, the first number in the source of the stores that are still to come.
    let mut next = u32::MAX;
    let mut behind: Vec<u32> = Vec::with_capacity(numbers.len());
    for &(number, is_store) in numbers.iter().rev() {
        if is_store {
            next = next.min(number);
        }
        behind.push(next);
    }
    let mut last = 0;
    let numbers = numbers.iter().zip(behind.iter().rev());
    let in_order = numbers.map(|(&(number, is_store), &next)| {
        let in_order = last <= number && number <= next;
        if is_store {
            last = last.max(number);
        }
        in_order
    });
    in_order.collect()
}

/// What decides what is seen from an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Seat {
    /// By number in the front end's table.
    scope: u32,
    moment: u32,
    /// Whether memory is what the source says it is.
    has_memory: bool,
}

impl Seat {
    fn view(self, code: &Linear, moments: &Moments, variables: &Variables) -> View {
        let mut scopes: Vec<u32> = variables.around(self.scope).collect();
        scopes.reverse();
        let mut seen = Seen::new();
        for (cell, assigned) in moments::seen(moments, variables, self.scope, self.moment) {
            let is_memory = matches!(assigned, Assigned::Memory { .. });
            if is_memory && !self.has_memory {
                continue;
            }
            if let Some(place) = place(code, assigned) {
                let (offset, bytes) = (cell.offset, cell.bytes);
                let part = Part {
                    offset,
                    bytes,
                    place,
                };
                seen.entry(cell.variable).or_default().push(part);
            }
        }
        View {
            scopes,
            variables: seen,
        }
    }
}

fn place(code: &Linear, assigned: &Assigned) -> Option<PartPlace> {
    let named = |value: &Value| SourceValue::Value(value.as_u32());
    Some(match assigned {
        Assigned::Value(value) => PartPlace::Value(named(value)),
        Assigned::Constant(bits) => PartPlace::Constant(*bits),
        Assigned::Memory { base, path } => {
            let address = match base {
                Base::Slot(slot, offset) => {
                    Address::Frame(code.frame.offset_of(*slot)?.checked_add(*offset)?)
                }
                Base::Value(value, offset) => Address::Value(named(value), *offset),
            };
            PartPlace::Memory(address, path.clone())
        }
        Assigned::Nothing => return None,
    })
}

struct Walk<'a> {
    variables: &'a Variables,
    /// What is seen up to here.
    open: Rc<View>,
    found: Found,
}

impl Walk<'_> {
    /// Over `range` was seen what is open; from its end on it is `next`.
    fn show(&mut self, range: Range<u32>, next: Rc<View>) {
        let open = std::mem::replace(&mut self.open, next);
        if range.is_empty() {
            return;
        }
        for &scope in &open.scopes {
            add(self.found.scopes.entry(scope).or_default(), range.clone());
        }
        for (&variable, parts) in &open.variables {
            let ranges = self.found.variables.entry(variable).or_default();
            match ranges
                .last_mut()
                .filter(|last| last.end == range.start && last.parts == *parts)
            {
                Some(last) => last.end = range.end,
                None => ranges.push(VariableRange {
                    start: range.start,
                    end: range.end,
                    parts: parts.clone(),
                }),
            }
        }
        debug_assert!(
            open.scopes
                .iter()
                .all(|scope| self.variables.scope(*scope).is_some())
        );
    }
}

/// By number in the front end's table.
#[derive(Default)]
struct Found {
    scopes: BTreeMap<u32, Vec<Range<u32>>>,
    variables: HashMap<u32, Vec<VariableRange>>,
}

fn add(ranges: &mut Vec<Range<u32>>, more: Range<u32>) {
    match ranges.last_mut().filter(|last| last.end == more.start) {
        Some(last) => last.end = more.end,
        None => ranges.push(more),
    }
}

impl Found {
    /// Scopes in the order of their numbers, in which parents come first.
    fn finish(mut self, variables: &Variables) -> Vec<ScopeLocations> {
        let place: HashMap<u32, u32> = self.scopes.keys().copied().zip(0..).collect();
        let scopes = std::mem::take(&mut self.scopes).into_iter();
        let scopes = scopes.filter_map(|(number, ranges)| {
            let scope = variables.scope(number)?;
            let declared = variables.declared(number).iter();
            let of_scope = declared.filter_map(|number| {
                let variable = variables.variable(*number)?;
                Some(VariableLocations {
                    name: variable.name.clone(),
                    ty: variable.ty,
                    is_parameter: variable.is_parameter,
                    // One that is declared and nowhere is shown to be not available.
                    ranges: self.variables.remove(number).unwrap_or_default(),
                })
            });
            Some(ScopeLocations {
                parent: place.get(&scope.parent).copied(),
                kind: scope.kind.clone(),
                ranges,
                variables: of_scope.collect(),
            })
        });
        scopes.collect()
    }
}
