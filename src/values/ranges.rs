//! Ranges of code in which values are where.
//!
//! In: code in its final order, where its virtual registers are ([`Places`]), and what the source says ([`Sources`]).
//! Out: for each value of the source its ranges. One walk over the code: behind each instruction the holders are known
//! that have a place. Those are shown whose definition dominates, in the source, both the instruction's own block and
//! the way on from where it is now: whoever runs it comes there, while an instruction may have been moved to where its
//! own block is not run. Of a value that was copied with a loop only that copy is shown which the instruction belongs
//! to.

use super::tracking::{Name, Sources, Turn};
use super::{Location, ValueLocations, ValueRange};
use crate::linear::Linear;
use crate::regalloc::locations::{Places, Words};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::Block;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::ops::Range;

/// The ranges of a function, in numbers of instructions.
pub(crate) fn ranges(code: &Linear, places: &Places, sources: &Sources) -> Vec<ValueLocations> {
    let mut of_value: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); sources.values.len()];
    for (number, holder) in (0..).zip(&places.holders) {
        of_value[holder.name.value as usize].push(number);
    }
    let mut walk = Walk {
        places,
        sources,
        of_value: &of_value,
        is_active: vec![false; places.holders.len()],
        at: vec![None; places.holders.len()],
        active: Vec::new(),
        open: vec![None; sources.values.len()],
        opened: Vec::new(),
        found: vec![Vec::new(); sources.values.len()],
    };
    let mut scopes: Vec<Run> = Vec::new();
    for block in 0..code.block_count() {
        walk.block(code, block, &mut scopes);
    }
    walk.close_all(code.len() as u32);
    walk.constants(&scopes);
    let values = sources.values.iter().zip(walk.found);
    let mut values: Vec<ValueLocations> = values
        .filter(|(_, ranges)| !ranges.is_empty())
        .map(|((source, ty), ranges)| ValueLocations {
            source: *source,
            ty: ty.to_string(),
            ranges,
        })
        .collect();
    values.sort_by_key(|value| value.source);
    values
}

/// What can be seen from an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Scope {
    /// The block of the source where the way on from the instruction's block is.
    end: Block,
    /// The block and the turn that the instruction itself belongs to; none if that is not known.
    own: Option<(Block, Turn)>,
}

/// Instructions next to each other from which the same can be seen.
struct Run {
    start: u32,
    end: u32,
    scope: Scope,
}

struct Walk<'a> {
    places: &'a Places,
    sources: &'a Sources,
    /// By value of the source, its holders.
    of_value: &'a [SmallVec<[u32; 2]>],
    /// By holder, where it is.
    at: Vec<Option<Words>>,
    /// Holders that are somewhere, and perhaps others; and by holder whether it is there.
    active: Vec<u32>,
    is_active: Vec<bool>,
    /// By value of the source, since when it is where.
    open: Vec<Option<(u32, Location)>>,
    /// Values that are open, and perhaps others.
    opened: Vec<u32>,
    /// By value of the source.
    found: Vec<Vec<ValueRange>>,
}

impl Walk<'_> {
    fn block(&mut self, code: &Linear, block: usize, scopes: &mut Vec<Run>) {
        let positions = code.positions(block);
        self.close_all(positions.start as u32);
        for holder in self.active.drain(..) {
            self.at[holder as usize] = None;
            self.is_active[holder as usize] = false;
        }
        // What several blocks of allocation became has what all of them have; that is not known.
        let Some(origin) = code.origin(block) else {
            return;
        };
        for (holder, words) in self.places.starts.get(origin.index()).into_iter().flatten() {
            self.at[*holder as usize] = Some(words.clone());
            self.activate(*holder);
        }
        let end = self.sources.place(code.line(block).0);
        let body = code.body(block);
        let changes = &self.places.changes;
        let mut next = changes.partition_point(|(index, ..)| *index < body.start);
        let mut scope: Option<Scope> = None;
        let mut changed: Vec<u32> = Vec::new();
        for ((entry, position), number) in code.insts(block).zip(positions).zip(0..) {
            let position = position as u32;
            let own = self.sources.place(entry.line.0);
            let here = end.map(|end| Scope {
                end: end.block,
                own: own.map(|own| (own.block, own.turn)),
            });
            if let Some(here) = here {
                let last = scopes.last_mut();
                match last.filter(|last| last.end == position && last.scope == here) {
                    Some(last) => last.end += 1,
                    None => scopes.push(Run {
                        start: position,
                        end: position + 1,
                        scope: here,
                    }),
                }
            }
            if scope != here {
                scope = here;
                self.enter(here, position);
            } else {
                self.update(here, position, &changed);
            }
            changed.clear();
            let index = body.start + number;
            while let Some((_, holder, words)) = changes
                .get(next)
                .filter(|c| c.0 == index && number < body.len() as u32)
            {
                self.at[*holder as usize].clone_from(words);
                self.activate(*holder);
                changed.push(*holder);
                next += 1;
            }
        }
    }

    /// Another block of the source begins.
    fn enter(&mut self, here: Option<Scope>, position: u32) {
        let mut values = self.open_values();
        let (at, is_active) = (&self.at, &mut self.is_active);
        self.active.retain(|holder| {
            is_active[*holder as usize] = at[*holder as usize].is_some();
            is_active[*holder as usize]
        });
        let holders = &self.places.holders;
        values.extend(
            self.active
                .iter()
                .map(|holder| holders[*holder as usize].name.value),
        );
        values.sort_unstable();
        values.dedup();
        for value in values {
            self.show(value, self.seen(value, here), position);
        }
    }

    fn activate(&mut self, holder: u32) {
        if !std::mem::replace(&mut self.is_active[holder as usize], true) {
            self.active.push(holder);
        }
    }

    /// Where a value is seen to be from a place of the source.
    fn seen(&self, value: u32, here: Option<Scope>) -> Option<Location> {
        let holders = self.of_value[value as usize].iter();
        holders
            .filter_map(|holder| self.shown(*holder, here))
            .next()
    }

    /// The values that are open, each once, in order.
    fn open_values(&mut self) -> Vec<u32> {
        let open = &self.open;
        self.opened.retain(|value| open[*value as usize].is_some());
        self.opened.sort_unstable();
        self.opened.dedup();
        self.opened.clone()
    }

    /// Holders have changed.
    fn update(&mut self, here: Option<Scope>, position: u32, changed: &[u32]) {
        for &holder in changed {
            let value = self.places.holders[holder as usize].name.value;
            self.show(value, self.seen(value, here), position);
        }
    }

    /// Where a holder is seen to be from a place of the source.
    fn shown(&self, holder: u32, here: Option<Scope>) -> Option<Location> {
        let words = self.at[holder as usize].as_ref()?;
        self.is_visible(&self.places.holders[holder as usize].name, &here?)
            .then(|| Location {
                places: words.to_vec(),
                addend: self.places.holders[holder as usize].held.addend(),
            })
    }

    fn is_visible(&self, name: &Name, here: &Scope) -> bool {
        let dominates = |block: Block| self.sources.dominates(name.block, block);
        dominates(here.end)
            && match here.own {
                Some((block, turn)) => dominates(block) && self.sources.is_of_turn(name, turn),
                None => !self.sources.was_copied(name),
            }
    }

    /// From `position` on a value is there.
    fn show(&mut self, value: u32, location: Option<Location>, position: u32) {
        let open = &mut self.open[value as usize];
        if open.as_ref().map(|(_, location)| location) == location.as_ref() {
            return;
        }
        if let Some((start, location)) = open.take() {
            let ranges = &mut self.found[value as usize];
            if start < position {
                ranges.push(ValueRange {
                    start,
                    end: position,
                    location,
                });
            }
        }
        if location.is_some() {
            self.opened.push(value);
        }
        *open = location.map(|location| (position, location));
    }

    fn close_all(&mut self, position: u32) {
        for value in self.open_values() {
            self.show(value, None, position);
        }
    }

    /// Adds values that are always the same, where nothing else is known of them.
    fn constants(&mut self, scopes: &[Run]) {
        // Where names are seen is the same for all of one block and turn.
        let mut seen: HashMap<(Block, Turn), Vec<Range<u32>>> = HashMap::new();
        for holder in &self.places.holders {
            let (Some(location), name) = (holder.held.always(), &holder.name) else {
                continue;
            };
            let ranges = seen
                .entry((name.block, name.turn))
                .or_insert_with(|| self.visible(name, scopes));
            let more = ranges.iter().map(|range| ValueRange {
                start: range.start,
                end: range.end,
                location: location.clone(),
            });
            add_where_free(&mut self.found[name.value as usize], more);
        }
    }

    /// Where a name is seen.
    fn visible(&self, name: &Name, scopes: &[Run]) -> Vec<Range<u32>> {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for run in scopes
            .iter()
            .filter(|run| self.is_visible(name, &run.scope))
        {
            match ranges.last_mut().filter(|last| last.end == run.start) {
                Some(last) => last.end = run.end,
                None => ranges.push(run.start..run.end),
            }
        }
        ranges
    }
}

/// Adds ranges where there are none yet.
fn add_where_free(ranges: &mut Vec<ValueRange>, more: impl Iterator<Item = ValueRange>) {
    let mut free = Vec::new();
    for range in more {
        let mut start = range.start;
        let first = ranges.partition_point(|other| other.end <= range.start);
        for other in ranges[first..]
            .iter()
            .take_while(|other| other.start < range.end)
        {
            if start < other.start {
                free.push(ValueRange {
                    start,
                    end: other.start,
                    location: range.location.clone(),
                });
            }
            start = other.end;
        }
        if start < range.end {
            free.push(ValueRange { start, ..range });
        }
    }
    ranges.extend(free);
    ranges.sort_by_key(|range| range.start);
}

/// Moves ranges: `to` says where their ends went.
pub(crate) fn moved(values: &mut [ValueLocations], to: impl Fn(u32) -> u32) {
    for range in values.iter_mut().flat_map(|value| &mut value.ranges) {
        (range.start, range.end) = (to(range.start), to(range.end));
    }
}
