//! Shadow memory: for each word of a memory the accesses that a later one may race with.
//!
//! Arrays beside the memory, in pages that come to be when one of their words is first used. A word has three records
//! of 32 bits (epochs, as in FastTrack): the last plain write, and two reads since then. A record is the number of an
//! *event* and a lane; an event is a warp, an instruction and the time, and all lanes of an access have one. So words
//! that lanes beside each other have used have consecutive records, and an access of a whole warp is compared with them
//! at once.
//!
//! Two reads are enough where only the barriers of CTAs order anything and one CTA runs at a time ([`Means`]): a read
//! of another CTA races with whoever writes later, and of two threads of the own CTA one is not the writer. Where this
//! does not hold, and where parts of words or strong accesses are concerned, the word gets a [`Cell`], until a plain
//! write of the whole word.
//!
//! Events that no record names any more are dropped from time to time, so their number is bounded by that of the
//! records.

use super::race::{Cell, Earlier, Means, Now, Relation, Touch, Uses};
use crate::launch::AccessKind;
use crate::sim::warp::registers::LANES;
use smallvec::SmallVec;

/// Words of a page (assigned).
pub(super) const PAGE: usize = 256;
/// Memories whose pages get a place at once (assigned).
const GROUP: usize = 64;
/// Bits of a record for the lane.
const LANE_BITS: u32 = LANES.trailing_zeros();
/// Events that there can be: of other bits there are no more.
const MAX_EVENTS: usize = 1 << (u32::BITS - LANE_BITS);
/// Events before some are dropped, at least (assigned).
const FEW_EVENTS: usize = 1 << 16;
/// Places for the events noted last, by instruction (assigned).
const RECENT: usize = 64;
/// In place of the first read: the second one is the index of a cell.
const IN_CELL: u32 = u32::MAX;
/// All bytes of a word.
const WHOLE: u8 = 0xF;
/// A word's records.
const RECORDS: usize = 3;

/// Records of the words of a page: of the last plain write, and of two reads; 0: none.
type Page = Box<[[u32; PAGE]; RECORDS]>;
const WRITE: usize = 0;
const READS: [usize; 2] = [1, 2];

/// By memory of a group its pages, by number.
type Group = [Vec<Option<Page>>; GROUP];

/// The pages of memories, as far as they exist. A launch uses few of the allocations that there are, so places for
/// pages are made in groups of memories.
#[derive(Clone, Debug, Default)]
struct Pages {
    groups: Vec<Option<Box<Group>>>,
}

impl Pages {
    /// A page, if there is one.
    #[inline(always)]
    fn get(&self, memory: usize, page: usize) -> Option<&Page> {
        let group = self.groups.get(memory / GROUP)?.as_ref()?;
        group[memory % GROUP].get(page)?.as_ref()
    }

    /// A page that there is.
    #[inline(always)]
    fn known(&mut self, memory: usize, page: usize) -> &mut Page {
        let group = self.groups[memory / GROUP].as_mut();
        let pages = &mut group.expect("it was made")[memory % GROUP];
        pages[page].as_mut().expect("it was made")
    }

    /// The place of a page.
    fn place(&mut self, memory: usize, page: usize) -> &mut Option<Page> {
        let group = memory / GROUP;
        if self.groups.len() <= group {
            self.groups.resize_with(group + 1, || None);
        }
        let group =
            self.groups[group].get_or_insert_with(|| Box::new([const { Vec::new() }; GROUP]));
        let pages = &mut group[memory % GROUP];
        if pages.len() <= page {
            pages.resize_with(page + 1, || None);
        }
        &mut pages[page]
    }

    /// Pages that exist: memory and number.
    fn iter(&self) -> impl Iterator<Item = (usize, usize, &Page)> {
        let groups = (0..).step_by(GROUP).zip(&self.groups);
        groups.flat_map(|(first, group)| {
            let memories = (first..).zip(group.iter().flat_map(|group| group.iter()));
            memories.flat_map(|(memory, pages)| {
                let pages = pages.iter().enumerate();
                pages.filter_map(move |(number, page)| Some((memory, number, page.as_ref()?)))
            })
        })
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Page> {
        let groups = self.groups.iter_mut().flatten();
        let memories = groups.flat_map(|group| group.iter_mut());
        memories.flat_map(|pages| pages.iter_mut().flatten())
    }
}

/// Accesses of a warp by an instruction at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    /// Number in the launch.
    warp: u32,
    stamp: u32,
    pc: u32,
}

/// The shadow of memories: of the allocations, or of the shared memory of a CTA.
#[derive(Clone, Debug)]
pub(super) struct Shadow {
    memories: Pages,
    /// By number; the first one is none.
    events: Vec<Event>,
    recent: [u32; RECENT],
    /// Events at which some are dropped.
    full: usize,
    pages: usize,
    cells: Vec<Cell>,
    /// Cells that are not used.
    vacant: Vec<u32>,
    means: Means,
    /// Everything was forgotten once.
    forgetful: bool,
}

/// What is known of events that were looked at before.
#[derive(Clone, Copy)]
struct Memo {
    event: u32,
    relation: Relation,
}

/// An event of what happens now, and what is known of others: many words have the same.
#[derive(Clone, Copy)]
pub(super) struct Present {
    /// The first record of its lanes.
    event: u32,
    memos: [Memo; RECORDS],
}

/// Looks at a word.
struct Looking<'a> {
    now: &'a Now<'a>,
    events: &'a [Event],
    memos: &'a mut [Memo; RECORDS],
}

impl Looking<'_> {
    #[inline(always)]
    fn relation(&mut self, which: usize, record: u32) -> Relation {
        let event = record >> LANE_BITS;
        let memo = &mut self.memos[which];
        if memo.event != event {
            let Event { warp, stamp, .. } = self.events[event as usize];
            *memo = Memo {
                event,
                relation: self.now.relation(warp, stamp),
            };
        }
        memo.relation
    }

    /// Whether a record is no access, or one that is ordered before what a lane does now for the simplest of reasons.
    #[inline(always)]
    fn is_clear(&mut self, which: usize, record: u32, lane: usize) -> bool {
        record == 0
            || match self.relation(which, record) {
                Relation::Before => true,
                Relation::Own => record as usize % LANES == lane,
                Relation::Beside | Relation::Elsewhere => false,
            }
    }

    /// The access of a record, if what a lane does now races with it.
    #[cold]
    fn race(&self, which: usize, record: u32, lane: usize, same: bool) -> Option<Earlier> {
        let Event { warp, stamp, pc } = self.events[(record >> LANE_BITS) as usize];
        let other = record as usize % LANES;
        let write = which == WRITE;
        // Threads that store what is there already with the instruction that stored it.
        let repeated = write && self.now.wrote && pc == self.now.pc && same;
        let races = !repeated && !self.now.is_behind(lane, warp, other, stamp);
        races.then_some(Earlier {
            warp,
            lane: other as u32,
            pc,
            kind: kind_of(which),
            byte: 0,
        })
    }
}

impl Looking<'_> {
    /// The first access of a word's records that what a lane writes now races with.
    #[cold]
    fn first_race(&mut self, records: [u32; RECORDS], lane: usize, same: bool) -> Option<Earlier> {
        (0..RECORDS)
            .filter(|which| !self.is_clear(*which, records[*which], lane))
            .collect::<SmallVec<[usize; RECORDS]>>()
            .into_iter()
            .find_map(|which| self.race(which, records[which], lane, same))
    }
}

fn kind_of(which: usize) -> AccessKind {
    if which == WRITE {
        AccessKind::Store
    } else {
        AccessKind::Load
    }
}

/// Words `first..` of the lanes of a row have records of one event, each with its lane, or none: the first record, if
/// that is so.
#[inline(always)]
fn row<const N: usize>(records: &[u32]) -> Option<u32> {
    let first = records[0];
    let step = if first == 0 { 0 } else { 1 };
    let mut differs = first % LANES as u32;
    for (word, record) in records.iter().enumerate() {
        differs |= record ^ first.wrapping_add(step * (word / N) as u32);
    }
    (differs == 0).then_some(first)
}

impl Shadow {
    /// Of memory that nobody has used, in a launch with these means of order.
    pub fn new(means: Means) -> Shadow {
        Shadow {
            memories: Pages::default(),
            events: vec![Event::default()],
            recent: [0; RECENT],
            full: FEW_EVENTS,
            pages: 0,
            cells: Vec::new(),
            vacant: Vec::new(),
            means,
            forgetful: false,
        }
    }

    /// Of memory that nobody has used.
    pub fn reset(&mut self) {
        for page in self.memories.iter_mut() {
            page.iter_mut().for_each(|records| records.fill(0));
        }
        self.events.truncate(1);
        self.recent = [0; RECENT];
        self.cells.clear();
        self.vacant.clear();
    }

    /// What happens now, for all the words that it is about.
    pub fn present(&mut self, now: &Now) -> Present {
        let nothing = Memo {
            event: 0,
            relation: Relation::Before,
        };
        Present {
            event: self.event(now),
            memos: [nothing; RECORDS],
        }
    }

    /// The number of what happens now as the first record of its lanes.
    fn event(&mut self, now: &Now) -> u32 {
        let event = Event {
            warp: now.number(),
            stamp: now.order.stamp(),
            pc: now.pc,
        };
        let slot = now.pc as usize % RECENT;
        let last = self.recent[slot];
        let known = self.events[last as usize];
        if last != 0 && (known.warp, known.stamp, known.pc) == (event.warp, event.stamp, event.pc) {
            return last << LANE_BITS;
        }
        if self.events.len() >= self.full {
            self.drop_events();
        }
        let number = self.events.len() as u32;
        self.events.push(event);
        self.recent[slot] = number;
        number << LANE_BITS
    }

    /// How many events are kept.
    #[cfg(test)]
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Drops the events that no record names.
    fn drop_events(&mut self) {
        let mut numbers = vec![0u32; self.events.len()];
        // Words with a cell have no records.
        for (_, _, page) in self.memories.iter() {
            for word in (0..PAGE).filter(|word| page[READS[0]][*word] != IN_CELL) {
                for records in page.iter() {
                    numbers[(records[word] >> LANE_BITS) as usize] = 1;
                }
            }
        }
        numbers[0] = 1;
        let mut kept = 0;
        for (number, event) in numbers.iter_mut().zip(0..) {
            if *number != 0 {
                self.events[kept as usize] = self.events[event];
                *number = kept;
                kept += 1;
            }
        }
        self.events.truncate(kept as usize);
        for page in self.memories.iter_mut() {
            for word in 0..PAGE {
                if page[READS[0]][word] == IN_CELL {
                    continue;
                }
                for records in page.iter_mut() {
                    let (event, lane) = (records[word] >> LANE_BITS, records[word] % LANES as u32);
                    records[word] = numbers[event as usize] << LANE_BITS | lane;
                }
            }
        }
        self.recent = [0; RECENT];
        // So that this takes a small part of the time: it looks at every word.
        let words = self.pages * PAGE;
        self.full = FEW_EVENTS
            .max(2 * self.events.len())
            .max(words / 4)
            .min(MAX_EVENTS - 1);
        if self.events.len() >= self.full {
            self.reset();
            self.forgetful = true;
        }
    }

    /// Makes sure that there is a page.
    #[inline(always)]
    fn need(&mut self, memory: usize, page: usize) {
        if self.memories.get(memory, page).is_none() {
            self.make(memory, page);
        }
    }

    #[cold]
    fn make(&mut self, memory: usize, page: usize) {
        let records = vec![[0; PAGE]; RECORDS].into_boxed_slice();
        let records = records.try_into();
        let records = records.unwrap_or_else(|_| unreachable!("as many as asked for"));
        *self.memories.place(memory, page) = Some(records);
        self.pages += 1;
    }

    /// Notes a plain access of all lanes to `N` whole words each, one lane behind the other from a word on, if nothing
    /// speaks against it: nobody else has used them since the last barrier in a way that could matter. If not, nothing
    /// is done.
    #[inline(always)]
    pub fn touch_row<const N: usize>(
        &mut self,
        now: &Now,
        memory: usize,
        first: usize,
        present: &mut Present,
    ) -> bool {
        let event = present.event;
        let (page, word) = (first / PAGE, first % PAGE);
        if word + N * LANES > PAGE {
            return false;
        }
        self.need(memory, page);
        let page = self.memories.known(memory, page);
        let mut looking = Looking {
            now,
            events: &self.events,
            memos: &mut present.memos,
        };
        let [writes, one, two] = &mut **page;
        let words = word..word + N * LANES;
        let (writes, one, two) = (
            &mut writes[words.clone()],
            &mut one[words.clone()],
            &mut two[words],
        );
        let mut clear = |which: usize, records: &[u32]| {
            row::<N>(records).is_some_and(|record| looking.is_clear(which, record, 0))
        };
        if !clear(WRITE, writes) || !clear(READS[0], one) || !clear(READS[1], two) {
            return false;
        }
        let target = if now.wrote { &mut *writes } else { &mut *one };
        for (word, record) in target.iter_mut().enumerate() {
            *record = event + (word / N) as u32;
        }
        if now.wrote {
            one.fill(0);
        }
        two.fill(0);
        true
    }

    /// Whether two lanes of a warp that read a word stand for all that read it at once: nothing orders one of them that
    /// does not order all.
    pub fn two_stand_for_all(&self) -> bool {
        self.means.apart && self.means.barriers
    }

    /// Notes a plain access of a lane to a whole word; the earlier access that it races with, if any. `same`: whether
    /// the word keeps its value.
    #[inline(always)]
    pub fn touch_word(
        &mut self,
        now: &Now,
        memory: usize,
        word: usize,
        (present, lane): (&mut Present, usize),
        same: impl FnOnce() -> bool,
    ) -> Option<Earlier> {
        let event = present.event;
        let (number, at) = (word / PAGE, word % PAGE);
        self.need(memory, number);
        let page = self.memories.known(memory, number);
        let records = [page[WRITE][at], page[READS[0]][at], page[READS[1]][at]];
        if records[READS[0]] == IN_CELL {
            let bytes = (WHOLE, if same() { WHOLE } else { 0 });
            return self.touch_cell(now, memory, word, (event, lane), bytes);
        }
        let mut looking = Looking {
            now,
            events: &self.events,
            memos: &mut present.memos,
        };
        // Written out, since this is what checks spend their time on.
        let own = event | lane as u32;
        let [write, one, two] = records;
        let is_behind_write = looking.is_clear(WRITE, write, lane);
        let is_free = looking.is_clear(READS[0], one, lane);
        let is_free_too = looking.is_clear(READS[1], two, lane);
        if now.wrote {
            let mut found = None;
            if !(is_behind_write & is_free & is_free_too) {
                found = looking.first_race(records, lane, same());
            }
            (page[WRITE][at], page[READS[0]][at], page[READS[1]][at]) = (own, 0, 0);
            return found;
        }
        let found = match is_behind_write {
            true => None,
            false => looking.race(WRITE, write, lane, false),
        };
        if is_free {
            page[READS[0]][at] = own;
            if is_free_too && two != 0 {
                page[READS[1]][at] = 0;
            }
        } else if is_free_too {
            page[READS[1]][at] = own;
        } else if !(self.means.apart
            && (self.means.barriers
                || looking.relation(READS[0], one) == Relation::Elsewhere
                || looking.relation(READS[1], two) == Relation::Elsewhere))
        {
            // Otherwise whoever writes later races with one of the two.
            self.inflate(memory, word);
            return self.touch_cell(now, memory, word, (event, lane), (WHOLE, 0));
        }
        found
    }

    /// Notes an access of a lane to the bytes of a mask of a word, of which those in `same` keep their value; the
    /// earlier access that it races with, if any.
    pub fn touch(
        &mut self,
        now: &Now,
        memory: usize,
        word: usize,
        lane: usize,
        (bytes, same): (u8, u8),
    ) -> Option<Earlier> {
        if bytes == WHOLE && !now.strong {
            let mut present = self.present(now);
            let same = || same == WHOLE;
            return self.touch_word(now, memory, word, (&mut present, lane), same);
        }
        self.need(memory, word / PAGE);
        if self.memories.known(memory, word / PAGE)[READS[0]][word % PAGE] != IN_CELL {
            self.inflate(memory, word);
        }
        // No whole word is written plainly, so there is no event to record.
        self.touch_cell(now, memory, word, (0, lane), (bytes, same))
    }

    /// Gives a word a cell with what its records say.
    fn inflate(&mut self, memory: usize, word: usize) {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.cells.push(Cell::default());
            self.cells.len() as u32 - 1
        });
        let (number, at) = (word / PAGE, word % PAGE);
        let page = self.memories.known(memory, number);
        let cell = &mut self.cells[index as usize];
        *cell = Cell::default();
        for (which, records) in page.iter().enumerate().filter(|(_, r)| r[at] != 0) {
            let Event { warp, stamp, pc } = self.events[(records[at] >> LANE_BITS) as usize];
            cell.push(Touch {
                warp,
                lanes: 1 << (records[at] as usize % LANES),
                stamp,
                pc,
                bytes: WHOLE,
                kind: kind_of(which),
                wrote: which == WRITE,
                strong: false,
            });
        }
        (page[WRITE][at], page[READS[0]][at], page[READS[1]][at]) = (0, IN_CELL, index);
    }

    fn touch_cell(
        &mut self,
        now: &Now,
        memory: usize,
        word: usize,
        (event, lane): (u32, usize),
        bytes: (u8, u8),
    ) -> Option<Earlier> {
        let (number, at) = (word / PAGE, word % PAGE);
        let index = self.memories.known(memory, number)[READS[1]][at];
        let found = self.cells[index as usize].touch(now, lane, bytes, self.means);
        if now.wrote && !now.strong && bytes.0 == WHOLE {
            // This one has taken the place of all.
            let own = event | lane as u32;
            let page = self.memories.known(memory, number);
            (page[WRITE][at], page[READS[0]][at], page[READS[1]][at]) = (own, 0, 0);
            self.cells[index as usize] = Cell::default();
            self.vacant.push(index);
        }
        found
    }

    /// What the bytes of a word were used for.
    fn uses(&self, page: &Page, at: usize) -> Uses {
        let [write, one, two] = page.each_ref().map(|records| records[at]);
        match (write, one) {
            (_, IN_CELL) => self.cells[two as usize].uses(),
            _ => Uses {
                read: if one | two != 0 { WHOLE } else { 0 },
                written: if write != 0 { WHOLE } else { 0 },
                ..Uses::default()
            },
        }
    }

    /// The words that were written: allocation, number, and the bytes as a mask.
    pub fn written(&self) -> impl Iterator<Item = (usize, usize, u8)> {
        self.memories
            .iter()
            .flat_map(move |(memory, number, page)| {
                (0..PAGE).filter_map(move |at| {
                    let uses = self.uses(page, at);
                    let bytes = uses.written | uses.changed;
                    (bytes != 0).then_some((memory, number * PAGE + at, bytes))
                })
            })
    }

    /// Whether all that was noted was forgotten once, since there was too much of it.
    pub fn is_forgetful(&self) -> bool {
        self.forgetful
    }

    /// Whether threads race that nothing orders, one of which is noted in one of these shadows and one in another.
    pub fn race(all: &[Shadow]) -> bool {
        if all.iter().any(|shadow| shadow.forgetful) {
            return true;
        }
        all.iter().enumerate().any(|(index, shadow)| {
            let (before, from) = all.split_at(index);
            shadow.memories.iter().any(|(memory, number, _)| {
                let mut seen = before.iter().map(|shadow| &shadow.memories);
                let is_seen = seen.any(|memories| memories.get(memory, number).is_some());
                !is_seen && Self::race_in(from, memory, number)
            })
        })
    }

    /// As `race`, in a page.
    fn race_in(all: &[Shadow], memory: usize, number: usize) -> bool {
        let has_page = |shadow: &&Shadow| shadow.memories.get(memory, number).is_some();
        let mut having = all.iter().filter(has_page);
        let Some(first) = having.next() else {
            return false;
        };
        let others: Vec<&Shadow> = having.collect();
        if others.is_empty() {
            return false;
        }
        let of = |shadow: &Shadow, at: usize| match shadow.memories.get(memory, number) {
            Some(page) => shadow.uses(page, at),
            None => Uses::default(),
        };
        (0..PAGE).any(|at| {
            let mut before = of(first, at);
            others.iter().any(|shadow| {
                let uses = of(shadow, at);
                let races = before.race(uses);
                before = before.or(uses);
                races
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a hundred thousand allocations a launch has places for those that it uses, and for a few beside them.
    #[test]
    fn places_are_made_in_groups() {
        let page = || Some(Box::new([[0; PAGE]; RECORDS]));
        let mut pages = Pages::default();
        *pages.place(100_000, 3) = page();
        *pages.place(7, 0) = page();
        assert_eq!(pages.groups.iter().flatten().count(), 2);
        assert!(pages.get(100_000, 3).is_some());
        for (memory, number) in [(100_000, 2), (100_000, 4), (99_999, 3), (200_000, 3)] {
            assert!(pages.get(memory, number).is_none());
        }
        pages.known(7, 0)[WRITE][5] = 9;
        let made: Vec<_> = pages
            .iter()
            .map(|(memory, number, page)| (memory, number, page[WRITE][5]))
            .collect();
        assert_eq!(made, [(7, 0, 9), (100_000, 3, 0)]);
        assert_eq!(pages.iter_mut().count(), 2);
    }
}
