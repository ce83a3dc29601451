//! Scopes and variables by code address.
//!
//! In: code in its final order, the places in the source of its instructions, and what variables are in which moment.
//! Out: the scopes that code comes from, each with its ranges, and its variables with theirs. One walk gathers where
//! code of each scope is, and stretches of code whose moments ascend; then what a variable is in some moments is found
//! in them by search.
//!
//! Memory is what the source says it is only where every store of the source before an instruction has been made, and
//! none behind it. So a variable in memory is available in code that no pass on CLIF has optimised, and there where no
//! store of the block stands on the wrong side.

use super::moments::{Moments, NO_MOMENT};
use super::{
    Address, Assigned, Base, Part, PartPlace, ScopeLocations, VariableLocations, VariableRange,
    Variables,
};
use crate::isa::PReg;
use crate::isa::table::Effects;
use crate::linear::Linear;
use crate::locations::Locations;
use crate::values::SourceValue;
use crate::values::tracking::{SourcePlace, Sources};
use crate::vcode::Entry;
use cranelift_codegen::ir::Value;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// The scopes of a function, in numbers of instructions. With `keeps_stores` no store of the source was left out or
/// moved out of its block.
pub(crate) fn scopes(
    code: &Linear,
    sources: &Sources,
    locations: &Locations,
    variables: &Variables,
    keeps_stores: bool,
) -> Vec<ScopeLocations> {
    let mut points = Points::new(variables);
    for block in 0..code.block_count() {
        // What no line of the source is known of, or which stands between other stores than its place in the source,
        // belongs to what is before it in its block.
        let mut before = None;
        let end = sources.place(code.line(block).0);
        let orders = match keeps_stores {
            true => orders(code, block),
            false => vec![Order::Mixed; code.insts(block).count()],
        };
        let insts = code.insts(block).zip(code.positions(block)).zip(orders);
        for ((entry, position), order) in insts {
            let place = sources.place(entry.line.0);
            let own = place.filter(|place| place.line != 0).map(|place| Point {
                scope: locations.scope(place.line),
                moment: moment(entry, place, end, sources),
                has_memory: order == Order::Here,
            });
            let point = match order {
                Order::Elsewhere => before.or(own),
                Order::Here | Order::Mixed => own.or(before),
            };
            points.add(point.unwrap_or(Point::NOWHERE), position as u32);
            before = point;
        }
    }
    points.add(Point::NOWHERE, code.len() as u32);
    points.finish(code, &sources.moments)
}

/// The moment of an instruction whose way on comes from `end`.
///
/// It may stand where not all who run it come by its own block: that of a branch that was made one with what is around
/// it. Nobody knows what variables are there. But who comes to a trap under a guard is at the branch to the trap's
/// block.
fn moment(
    entry: &Entry<PReg>,
    own: SourcePlace,
    end: Option<SourcePlace>,
    sources: &Sources,
) -> u32 {
    let comes_by = end.is_some_and(|end| sources.dominates(own.block, end.block));
    match comes_by {
        true => own.moment,
        false if is_trap(entry) => sources.moments.branch_to(own.block),
        false => NO_MOMENT,
    }
}

fn is_trap(entry: &Entry<PReg>) -> bool {
    entry.inst.optype().info().effects.intersects(Effects::TRAP)
}

/// How an instruction stands to the stores of its block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As in the source.
    Here,
    /// Those around it stand as in the source, but it is from between others.
    Elsewhere,
    /// A store that the source has before others stands behind one of them.
    Mixed,
}

/// How each instruction of a block stands.
fn orders(code: &Linear, block: usize) -> Vec<Order> {
    let writes = Effects::STORE.union(Effects::ATOMIC).union(Effects::CALL);
    let writes = |entry: &Entry<PReg>| entry.inst.optype().info().effects.intersects(writes);
    // A trap stands between the stores wherever its block stood.
    let number = |entry: &Entry<PReg>| (!is_trap(entry)).then_some(entry.line.0);
    let numbers: Vec<(Option<u32>, bool)> = code
        .insts(block)
        .map(|entry| (number(entry), writes(entry)))
        .collect();
    // From behind, the first number in the source of the stores that are still to come.
    let mut next = u32::MAX;
    let mut behind: Vec<u32> = Vec::with_capacity(numbers.len());
    for &(number, is_store) in numbers.iter().rev() {
        if is_store {
            next = next.min(number.unwrap_or(next));
        }
        behind.push(next);
    }
    let mut last = 0;
    let numbers = numbers.iter().zip(behind.iter().rev());
    let orders = numbers.map(|(&(number, is_store), &next)| {
        let number = number.unwrap_or(last);
        let order = match (last <= next, (last..=next).contains(&number)) {
            (true, true) => Order::Here,
            (true, false) => Order::Elsewhere,
            (false, _) => Order::Mixed,
        };
        if is_store {
            last = last.max(number);
        }
        order
    });
    orders.collect()
}

/// What decides what is seen from an instruction: a point of the program as the source has it.
#[derive(Clone, Copy)]
struct Point {
    /// By number in the front end's table.
    scope: u32,
    moment: u32,
    /// Whether memory is what the source says it is.
    has_memory: bool,
}

impl Point {
    const NOWHERE: Point = Point {
        scope: 0,
        moment: NO_MOMENT,
        has_memory: false,
    };
}

/// The points of a function's instructions, gathered to what does not change for long.
struct Points<'a> {
    variables: &'a Variables,
    /// The scopes around the last instruction, the outermost first, and since when.
    open: Vec<(u32, u32)>,
    /// By scope, where its code is.
    scopes: BTreeMap<u32, Vec<Range<u32>>>,
    /// Where memory is what the source says it is.
    memory: Vec<Range<u32>>,
    stretches: Vec<Stretch>,
    /// The moment of the last instruction.
    moment: u32,
    has_memory: bool,
}

/// Instructions next to each other whose moments ascend.
struct Stretch {
    /// The moments, and where the first instruction of each stands.
    moments: Vec<(u32, u32)>,
    /// Behind the last instruction.
    end: u32,
}

impl Stretch {
    fn first(&self) -> u32 {
        self.moments[0].0
    }

    fn last(&self) -> u32 {
        self.moments[self.moments.len() - 1].0
    }

    /// The code of some moments.
    fn code(&self, moments: Range<u32>) -> Option<Range<u32>> {
        let first = self
            .moments
            .partition_point(|(moment, _)| *moment < moments.start);
        let behind = self
            .moments
            .partition_point(|(moment, _)| *moment < moments.end);
        let start = self.moments.get(first)?.1;
        let end = self
            .moments
            .get(behind)
            .map_or(self.end, |(_, start)| *start);
        (start < end).then_some(start..end)
    }
}

impl<'a> Points<'a> {
    fn new(variables: &'a Variables) -> Self {
        Self {
            variables,
            open: Vec::new(),
            scopes: BTreeMap::new(),
            memory: Vec::new(),
            stretches: Vec::new(),
            moment: NO_MOMENT,
            has_memory: false,
        }
    }

    /// The next instruction, or the end.
    fn add(&mut self, point: Point, position: u32) {
        self.enter(point.scope, position);
        if point.moment != self.moment {
            let goes_on = self.moment != NO_MOMENT && self.moment < point.moment;
            self.moment = point.moment;
            if let Some(stretch) = self
                .stretches
                .last_mut()
                .filter(|stretch| stretch.end == u32::MAX)
            {
                match goes_on && point.moment != NO_MOMENT {
                    true => stretch.moments.push((point.moment, position)),
                    false => stretch.end = position,
                }
            }
            if point.moment != NO_MOMENT && !goes_on {
                self.stretches.push(Stretch {
                    moments: vec![(point.moment, position)],
                    end: u32::MAX,
                });
            }
        }
        if point.has_memory != self.has_memory {
            self.has_memory = point.has_memory;
            match point.has_memory {
                true => self.memory.push(position..u32::MAX),
                false => {
                    if let Some(last) = self.memory.last_mut() {
                        last.end = position;
                    }
                }
            }
        }
    }

    /// Code of another scope begins; what both are in stays open.
    fn enter(&mut self, scope: u32, position: u32) {
        if self.open.last().map_or(0, |(scope, _)| *scope) == scope {
            return;
        }
        let mut entered = Vec::new();
        let mut outer = scope;
        let depth = |scope: u32| self.variables.depth(scope) as usize;
        while depth(outer) > self.open.len() {
            entered.push(outer);
            outer = self.variables.parent(outer);
        }
        let mut kept = depth(outer);
        while kept > 0 && self.open[kept - 1].0 != outer {
            entered.push(outer);
            outer = self.variables.parent(outer);
            kept -= 1;
        }
        for (scope, since) in self.open.drain(kept..) {
            if since < position {
                add(self.scopes.entry(scope).or_default(), since..position);
            }
        }
        self.open
            .extend(entered.into_iter().rev().map(|scope| (scope, position)));
    }

    /// Scopes in the order of their numbers, in which parents come first.
    fn finish(mut self, code: &Linear, moments: &Moments) -> Vec<ScopeLocations> {
        self.stretches.sort_by_key(Stretch::first);
        // Up to each stretch, the last moment of any.
        let mut reach = 0;
        let reaches: Vec<u32> = (self.stretches.iter())
            .map(|stretch| {
                reach = reach.max(stretch.last());
                reach
            })
            .collect();
        let place: HashMap<u32, u32> = self.scopes.keys().copied().zip(0..).collect();
        let scopes = self.scopes.iter().filter_map(|(&number, ranges)| {
            let scope = self.variables.scope(number)?;
            let declared = self.variables.declared(number).iter();
            let of_scope = declared.filter_map(|&number| {
                let variable = self.variables.variable(number)?;
                let pieces = self.pieces(number, ranges, &reaches, code, moments);
                Some(VariableLocations {
                    name: variable.name.clone(),
                    ty: variable.ty,
                    is_parameter: variable.is_parameter,
                    // One that is declared and nowhere is shown to be not available.
                    ranges: combined(pieces),
                })
            });
            Some(ScopeLocations {
                parent: place.get(&scope.parent).copied(),
                kind: scope.kind.clone(),
                ranges: ranges.clone(),
                variables: of_scope.collect(),
            })
        });
        scopes.collect()
    }

    /// Where parts of a variable are what, within the code of its scope.
    fn pieces(
        &self,
        variable: u32,
        of_scope: &[Range<u32>],
        reaches: &[u32],
        code: &Linear,
        moments: &Moments,
    ) -> Vec<(Range<u32>, Part)> {
        let mut pieces = Vec::new();
        for fragment in moments.fragments_of(variable) {
            for (of_moments, assigned) in moments.runs_of(fragment) {
                let Some(place) = place(code, assigned) else {
                    continue;
                };
                let is_memory = matches!(place, PartPlace::Memory(..));
                let (offset, bytes) = (fragment.offset, fragment.bytes);
                let part = Part {
                    offset,
                    bytes,
                    place,
                };
                let behind = self
                    .stretches
                    .partition_point(|s| s.first() < of_moments.end);
                for index in (0..behind).rev() {
                    if reaches[index] < of_moments.start {
                        break;
                    }
                    let Some(range) = self.stretches[index].code(of_moments.clone()) else {
                        continue;
                    };
                    for range in within(of_scope, range) {
                        match is_memory {
                            true => {
                                let within = within(&self.memory, range);
                                pieces.extend(within.map(|range| (range, part.clone())));
                            }
                            false => pieces.push((range, part.clone())),
                        }
                    }
                }
            }
        }
        pieces
    }
}

/// What a range has in common with others, which are in order.
fn within(ranges: &[Range<u32>], range: Range<u32>) -> impl Iterator<Item = Range<u32>> + '_ {
    let first = ranges.partition_point(|other| other.end <= range.start);
    let end = range.end;
    ranges[first..]
        .iter()
        .take_while(move |other| other.start < end)
        .map(move |other| other.start.max(range.start)..other.end.min(range.end))
}

/// The parts of a variable together, by range.
fn combined(pieces: Vec<(Range<u32>, Part)>) -> Vec<VariableRange> {
    let mut edges: Vec<(u32, bool, usize)> = Vec::new();
    for (index, (range, _)) in pieces.iter().enumerate() {
        edges.extend([(range.start, true, index), (range.end, false, index)]);
    }
    edges.sort_unstable();
    let mut ranges: Vec<VariableRange> = Vec::new();
    // By the place of a part in the variable, which of the pieces it is.
    let mut active: BTreeMap<u32, usize> = BTreeMap::new();
    let mut edges = edges.into_iter().peekable();
    while let Some((start, begins, index)) = edges.next() {
        let offset = pieces[index].1.offset;
        match begins {
            true => _ = active.insert(offset, index),
            false if active.get(&offset) == Some(&index) => _ = active.remove(&offset),
            false => {}
        }
        let Some(end) = edges.peek().map(|edge| edge.0).filter(|end| *end > start) else {
            continue;
        };
        if active.is_empty() {
            continue;
        }
        let parts: Vec<Part> = active
            .values()
            .map(|index| pieces[*index].1.clone())
            .collect();
        match ranges
            .last_mut()
            .filter(|last| last.end == start && last.parts == parts)
        {
            Some(last) => last.end = end,
            None => ranges.push(VariableRange { start, end, parts }),
        }
    }
    ranges
}

fn add(ranges: &mut Vec<Range<u32>>, more: Range<u32>) {
    match ranges.last_mut().filter(|last| last.end == more.start) {
        Some(last) => last.end = more.end,
        None => ranges.push(more),
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
