//! Where holders are, written down: at the start of each block, and what changes behind its instructions.

use super::super::check::{StorageLocation, layout::Layout};
use super::before::Before;
use super::flow::Flow;
use super::{Places, WordsAt};
use crate::isa::VReg;
use crate::values::{Held, Place, Word};

/// What is written down of a block; nothing of those that nothing leads to.
#[derive(Clone, Default)]
pub(super) struct Recorded {
    /// As [`Places::starts`].
    start: Vec<(u32, WordsAt)>,
    /// As [`Places::changes`].
    changes: Vec<(u32, u32, WordsAt)>,
}

/// Writes down where holders are.
pub(super) struct Recorder<'a> {
    before: &'a Before,
    layout: &'a Layout,
    /// As [`Places::words`].
    words: Vec<Place>,
    /// By holder, where it was said to be last.
    shown: Vec<WordsAt>,
    /// Holders that were said to be somewhere in the block at hand.
    touched: Vec<u32>,
    /// By holder, at which point it was looked at last.
    looked: Vec<u32>,
    /// The number of the point at hand.
    point: u32,
    /// The block at hand.
    recorded: Recorded,
}

impl<'a> Recorder<'a> {
    pub fn new(before: &'a Before, layout: &'a Layout) -> Self {
        let count = before.holders.len();
        Recorder {
            before,
            layout,
            words: Vec::new(),
            shown: vec![WordsAt::NOWHERE; count],
            touched: Vec::new(),
            looked: vec![0; count],
            point: 0,
            recorded: Recorded::default(),
        }
    }

    /// What was written down of the block at hand.
    pub fn take(&mut self) -> Recorded {
        std::mem::take(&mut self.recorded)
    }

    /// What was written down of all blocks.
    pub fn places(self, blocks: Vec<Recorded>) -> Places {
        let mut places = Places {
            words: self.words,
            starts: Vec::with_capacity(blocks.len()),
            changes: Vec::with_capacity(blocks.iter().map(|b| b.changes.len()).sum()),
            ..Places::default()
        };
        for block in blocks {
            places.starts.push(block.start);
            places.changes.extend(block.changes);
        }
        places
    }

    /// All that is somewhere at the start of a block.
    pub fn start(&mut self, flow: &Flow<'_>) {
        for holder in self.touched.drain(..) {
            self.shown[holder as usize] = WordsAt::NOWHERE;
        }
        self.point += 1;
        for place in flow.state.occupied() {
            for number in flow.state.content(place) {
                for word in self.before.words.get(number as usize) {
                    if !self.is_new(word.holder) {
                        continue;
                    }
                    let at = self.find(flow, word.holder);
                    if at != WordsAt::NOWHERE {
                        self.shown[word.holder as usize] = at;
                        self.touched.push(word.holder);
                        self.recorded.start.push((word.holder, at));
                    }
                }
            }
        }
    }

    /// What has changed with instruction `index`.
    pub fn note(&mut self, flow: &mut Flow<'_>, index: u32) {
        if flow.touched.is_empty() && flow.changed.is_empty() {
            return;
        }
        self.point += 1;
        let (touched, changed) = (
            std::mem::take(&mut flow.touched),
            std::mem::take(&mut flow.changed),
        );
        for &number in &touched {
            for word in self.before.words.get(number as usize) {
                self.look(flow, word.holder, index);
            }
        }
        for &holder in &changed {
            self.look(flow, holder, index);
        }
        (flow.touched, flow.changed) = (touched, changed);
        flow.touched.clear();
        flow.changed.clear();
    }

    /// A holder may be elsewhere behind an instruction.
    fn look(&mut self, flow: &Flow<'_>, holder: u32, index: u32) {
        if !self.is_new(holder) {
            return;
        }
        let at = self.find(flow, holder);
        let shown = &mut self.shown[holder as usize];
        if *shown != at {
            if *shown == WordsAt::NOWHERE {
                self.touched.push(holder);
            }
            *shown = at;
            self.recorded.changes.push((index, holder, at));
        }
    }

    /// Whether a holder is looked at for the first time at the point at hand.
    fn is_new(&mut self, holder: u32) -> bool {
        let looked = &mut self.looked[holder as usize];
        std::mem::replace(looked, self.point) != self.point
    }

    /// Where a holder is, all of it.
    fn find(&mut self, flow: &Flow<'_>, holder: u32) -> WordsAt {
        if !flow.state.complete.has(holder) {
            return WordsAt::NOWHERE;
        }
        let start = self.words.len();
        let is_there = match &self.before.holders[holder as usize].held {
            Held::Predicate(register, opposite) => self.push(flow, *register, *opposite),
            Held::Words(words, _) => words.iter().all(|word| match word {
                Word::Register(register) => self.push(flow, *register, false),
                Word::Always(place) => {
                    self.words.push(*place);
                    true
                }
            }),
        };
        let found = &self.words[start..];
        let shown = self.shown[holder as usize];
        let is_same = is_there
            && shown != WordsAt::NOWHERE
            && self.words[shown.0 as usize..].starts_with(found);
        match (is_there, is_same) {
            (true, false) => WordsAt(start as u32),
            (true, true) => {
                self.words.truncate(start);
                shown
            }
            (false, _) => {
                self.words.truncate(start);
                WordsAt::NOWHERE
            }
        }
    }

    /// Adds the place of a virtual register, if it is somewhere.
    fn push(&mut self, flow: &Flow<'_>, register: VReg, opposite: bool) -> bool {
        let number = self.before.number(register);
        let found = number.and_then(|number| flow.state.find(number));
        let place = found.map(|found| place(found, self.layout, opposite));
        self.words.extend(place);
        place.is_some()
    }
}

/// A place of the machine as a debugger knows it.
fn place(location: StorageLocation, layout: &Layout, negated: bool) -> Place {
    match location.register() {
        Some(register) => Place::of_register(register, negated),
        None => Place::Frame(layout.offset_of(location)),
    }
}
