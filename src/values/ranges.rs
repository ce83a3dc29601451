//! Ranges of code in which values are where.
//!
//! In: code in its final order, where its virtual registers are ([`Places`]), and what the source says ([`Sources`]).
//! Out: for each value of the source its ranges. Block by block: the instructions are parted into runs from which the
//! same is seen; then each holder is followed from one place to the next, and shown in those runs whose definition
//! dominates, in the source, both the instruction's own block and the way on from where it is now: whoever runs it
//! comes there, while an instruction may have been moved to where its own block is not run. Of a value that was copied
//! with a loop only that copy is shown which the instruction belongs to. What is seen is the same for all names of one
//! block and turn, so it is asked once for those.

use super::tracking::{Name, SourcePlace, Sources, Turn};
use super::{Location, ValueLocations, ValueRange};
use crate::linear::Linear;
use crate::regalloc::locations::{Places, WordsAt};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::Block;
use hashbrown::HashMap;
use std::ops::Range;

/// No number.
const NONE: u32 = u32::MAX;

/// The ranges of a function, in numbers of instructions.
pub(crate) fn ranges(code: &Linear, places: &Places, sources: &Sources) -> Vec<ValueLocations> {
    let views = Views::of(places, sources);
    let mut walk = Walk {
        places,
        sources,
        at: vec![(0, WordsAt::NOWHERE); places.holders.len()],
        active: Vec::new(),
        runs: Vec::new(),
        block: 0,
        first_run: 0,
        seen: vec![Seen::default(); views.kinds.len()],
        views,
        pieces: Vec::new(),
        of_holder: vec![(NONE, NONE); places.holders.len()],
    };
    for block in 0..code.block_count() {
        walk.block(code, block);
    }
    walk.finish()
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

/// Names of one block and turn are seen from the same places.
struct Views {
    /// A name of each kind.
    kinds: Vec<Name>,
    /// By holder, the kind of its name.
    of_holder: Vec<u32>,
}

impl Views {
    fn of(places: &Places, sources: &Sources) -> Views {
        let mut known: HashMap<(Block, Turn), u32> = HashMap::new();
        let mut views = Views {
            kinds: Vec::new(),
            of_holder: Vec::with_capacity(places.holders.len()),
        };
        let mut last: Option<((Block, Turn), u32)> = None;
        for holder in &places.holders {
            let name = &holder.name;
            // In a block that was not copied all turns are one.
            let turn = match sources.was_copied(name) {
                true => name.turn,
                false => Turn::default(),
            };
            let key = (name.block, turn);
            let kind = match last {
                Some((other, kind)) if other == key => kind,
                _ => *known.entry(key).or_insert_with(|| {
                    views.kinds.push(*name);
                    views.kinds.len() as u32 - 1
                }),
            };
            last = Some((key, kind));
            views.of_holder.push(kind);
        }
        views
    }
}

/// Where names of a kind are seen.
#[derive(Clone, Default)]
struct Seen {
    /// The block that this is about, from 1; 0 if nobody has asked.
    block: u32,
    /// In ascending order; they do not touch.
    ranges: Vec<Range<u32>>,
}

/// A holder is somewhere, and can be seen.
struct Piece {
    start: u32,
    end: u32,
    at: WordsAt,
    /// The next piece of its holder.
    next: u32,
}

struct Walk<'a> {
    places: &'a Places,
    sources: &'a Sources,
    views: Views,
    /// By holder, since when it is where.
    at: Vec<(u32, WordsAt)>,
    /// Holders that are somewhere in the block at hand, and perhaps others.
    active: Vec<u32>,
    /// Of all blocks up to the one at hand.
    runs: Vec<Run>,
    /// The block at hand, from 1, and its first run.
    block: u32,
    first_run: usize,
    /// By kind of name.
    seen: Vec<Seen>,
    pieces: Vec<Piece>,
    /// By holder, its first piece and its last one.
    of_holder: Vec<(u32, u32)>,
}

impl Walk<'_> {
    fn block(&mut self, code: &Linear, block: usize) {
        let positions = code.positions(block);
        let (start, end) = (positions.start as u32, positions.end as u32);
        // What several blocks of allocation became has what all of them have; that is not known.
        let Some(origin) = code.origin(block) else {
            return;
        };
        (self.block, self.first_run) = (block as u32 + 1, self.runs.len());
        if let Some(way_on) = self.sources.place(code.line(block).0) {
            self.part(code, block, way_on.block);
        }
        let places = self.places;
        for &(holder, at) in places.starts.get(origin.index()).into_iter().flatten() {
            self.at[holder as usize] = (start, at);
            self.active.push(holder);
        }
        let body = code.body(block);
        let changes = &places.changes;
        let first = changes.partition_point(|(index, ..)| *index < body.start);
        let changes = changes[first..].iter();
        for &(index, holder, at) in changes.take_while(|(index, ..)| *index < body.end) {
            let position = start + (index - body.start) + 1;
            let before = std::mem::replace(&mut self.at[holder as usize], (position, at));
            match before.1 {
                WordsAt::NOWHERE => self.active.push(holder),
                _ => self.was_at(holder, before, position),
            }
        }
        let mut active = std::mem::take(&mut self.active);
        for holder in active.drain(..) {
            let before = std::mem::replace(&mut self.at[holder as usize], (0, WordsAt::NOWHERE));
            self.was_at(holder, before, end);
        }
        self.active = active;
    }

    /// Parts a block into runs.
    fn part(&mut self, code: &Linear, block: usize, end: Block) {
        let first = self.runs.len();
        let mut last: Option<(u32, Option<SourcePlace>)> = None;
        for (entry, position) in code.insts(block).zip(code.positions(block)) {
            let number = entry.line.0;
            let own = match last {
                Some((other, place)) if other == number => place,
                _ => self.sources.place(number),
            };
            last = Some((number, own));
            let scope = Scope {
                end,
                own: own.map(|own| (own.block, own.turn)),
            };
            let position = position as u32;
            match self.runs[first..].last_mut() {
                Some(run) if run.scope == scope => run.end = position + 1,
                _ => self.runs.push(Run {
                    start: position,
                    end: position + 1,
                    scope,
                }),
            }
        }
    }

    /// A holder was somewhere up to `end`, in the block at hand.
    fn was_at(&mut self, holder: u32, (start, at): (u32, WordsAt), end: u32) {
        if at == WordsAt::NOWHERE || start >= end {
            return;
        }
        let kind = self.views.of_holder[holder as usize] as usize;
        self.look(kind);
        let ranges = &self.seen[kind].ranges;
        let first = ranges.partition_point(|range| range.end <= start);
        for range in ranges[first..].iter().take_while(|r| r.start < end) {
            let (start, end) = (range.start.max(start), range.end.min(end));
            let ends = &mut self.of_holder[holder as usize];
            if let Some(last) = self.pieces.get_mut(ends.1 as usize)
                && last.end == start
                && (last.at == at
                    || self.places.words(holder, last.at) == self.places.words(holder, at))
            {
                last.end = end;
                continue;
            }
            let index = self.pieces.len() as u32;
            self.pieces.push(Piece {
                start,
                end,
                at,
                next: NONE,
            });
            match ends.1 {
                NONE => ends.0 = index,
                last => self.pieces[last as usize].next = index,
            }
            ends.1 = index;
        }
    }

    /// Finds where in the runs of the block at hand the names of a kind are seen, if nobody has asked.
    fn look(&mut self, kind: usize) {
        if self.seen[kind].block == self.block {
            return;
        }
        let mut ranges = std::mem::take(&mut self.seen[kind].ranges);
        ranges.clear();
        let name = &self.views.kinds[kind];
        for run in &self.runs[self.first_run..] {
            if self.is_visible(name, &run.scope) {
                match ranges.last_mut().filter(|last| last.end == run.start) {
                    Some(last) => last.end = run.end,
                    None => ranges.push(run.start..run.end),
                }
            }
        }
        let block = self.block;
        self.seen[kind] = Seen { block, ranges };
    }

    fn is_visible(&self, name: &Name, here: &Scope) -> bool {
        let dominates = |block: Block| self.sources.dominates(name.block, block);
        dominates(here.end)
            && match here.own {
                Some((block, turn)) => dominates(block) && self.sources.is_of_turn(name, turn),
                None => !self.sources.was_copied(name),
            }
    }

    /// The ranges of all values.
    fn finish(mut self) -> Vec<ValueLocations> {
        let count = self.sources.values.len();
        // By value its holders, in order: the first, and behind each the next one.
        let mut first = vec![NONE; count];
        let mut next = vec![NONE; self.places.holders.len()];
        for (number, holder) in self.places.holders.iter().enumerate().rev() {
            let first = &mut first[holder.name.value as usize];
            next[number] = std::mem::replace(first, number as u32);
        }
        // What is always the same is seen in all blocks at once.
        (self.block, self.first_run) = (NONE, 0);
        let mut values: Vec<ValueLocations> = Vec::new();
        for ((source, ty), first) in self.sources.values.iter().zip(first) {
            let known = |holder: u32| (holder != NONE).then_some(holder);
            let holders = std::iter::successors(known(first), |last| known(next[*last as usize]));
            let ranges = self.of_value(holders);
            if !ranges.is_empty() {
                values.push(ValueLocations {
                    source: *source,
                    ty: *ty,
                    ranges,
                });
            }
        }
        values.sort_by_key(|value| value.source);
        values
    }

    /// The ranges of a value with these holders: the first of them that is seen says where it is. What is always the
    /// same counts where nothing else is known.
    fn of_value(&mut self, holders: impl Iterator<Item = u32> + Clone) -> Vec<ValueRange> {
        let mut ranges: Vec<ValueRange> = Vec::new();
        let mut placed = 0;
        for holder in holders.clone() {
            let mut next = self.of_holder[holder as usize].0;
            if next == NONE {
                continue;
            }
            let addend = self.places.holders[holder as usize].held.addend();
            let pieces = std::iter::from_fn(|| {
                let piece = self.pieces.get(next as usize)?;
                next = piece.next;
                let places = self.places.words(holder, piece.at).unwrap_or_default();
                Some(ValueRange {
                    start: piece.start,
                    end: piece.end,
                    location: Location {
                        places: places.into(),
                        addend,
                    },
                })
            });
            match placed {
                0 => ranges.extend(pieces),
                _ => add_where_free(&mut ranges, pieces),
            }
            placed += 1;
        }
        if placed > 1 {
            join(&mut ranges);
        }
        for holder in holders {
            let Some(location) = self.places.holders[holder as usize].held.always() else {
                continue;
            };
            let kind = self.views.of_holder[holder as usize] as usize;
            self.look(kind);
            let more = self.seen[kind].ranges.iter().map(|range| ValueRange {
                start: range.start,
                end: range.end,
                location: location.clone(),
            });
            add_where_free(&mut ranges, more);
        }
        ranges
    }
}

/// Makes one of ranges that touch and say the same.
fn join(ranges: &mut Vec<ValueRange>) {
    ranges.dedup_by(|next, last| {
        let is_one = last.end == next.start && last.location == next.location;
        if is_one {
            last.end = next.end;
        }
        is_one
    });
}

/// Adds ranges where there are none yet.
fn add_where_free(ranges: &mut Vec<ValueRange>, more: impl Iterator<Item = ValueRange>) {
    if ranges.is_empty() {
        ranges.extend(more);
        return;
    }
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
    if !free.is_empty() {
        ranges.extend(free);
        ranges.sort_by_key(|range| range.start);
    }
}

/// Moves ranges: `to` says where their ends went.
pub(crate) fn moved(values: &mut [ValueLocations], to: impl Fn(u32) -> u32) {
    for range in values.iter_mut().flat_map(|value| &mut value.ranges) {
        (range.start, range.end) = (to(range.start), to(range.end));
    }
}
