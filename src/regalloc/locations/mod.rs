//! Where virtual registers are in allocated code.
//!
//! In: the function as it came, the code that has been allocated, for each of its instructions where that comes from,
//! and the [`Holder`]s: virtual registers that hold values of the source. Out: for each holder whether the machine has
//! it, and where, at every instruction ([`Places`]).
//!
//! Nothing is asked of the allocator, so all of them are followed alike: what it does is seen in its code. What has to
//! be known of the function is taken down before it is changed ([`before`]). Then there is a forward data flow
//! ([`flow`]) over what the places of the machine hold ([`state`]), which is written down ([`record`]). An instruction
//! that was there before puts its results into its registers; copies, stores to the spill area and loads from it hand
//! on what they read; whatever else is written is lost. Where control meets, a place holds what it holds on all ways
//! in; a parameter is the argument that each of them passes.
//!
//! A value is the one that its definition gave last. The definition of a word takes the word from all places that it
//! was in, and makes the whole value unknown until its last word is there, or a debugger would show halves of two
//! turns.

mod before;
mod flow;
mod lists;
mod record;
mod state;

use super::check::{ADDED, layout::Layout};
use crate::isa::PReg;
use crate::values::{Held, Holder, Place};
use crate::vcode::VCode;
pub(super) use before::Before;
use before::ResultAt;

/// Where the words of a holder are: where they begin in the table of words ([`Places::words`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordsAt(u32);

impl WordsAt {
    /// Nowhere.
    pub const NOWHERE: WordsAt = WordsAt(u32::MAX);
}

/// Where holders are.
#[derive(Debug, Default)]
pub struct Places {
    /// The holders.
    pub holders: Vec<Holder>,
    /// Words of holders, those of one next to each other.
    words: Vec<Place>,
    /// By block, those that are somewhere at its start.
    pub starts: Vec<Vec<(u32, WordsAt)>>,
    /// What changes behind instructions, in their order: the instruction, the holder, where it is now.
    pub changes: Vec<(u32, u32, WordsAt)>,
}

impl Places {
    /// The words of a holder; none if it is nowhere.
    pub fn words(&self, holder: u32, at: WordsAt) -> Option<&[Place]> {
        let start = at.0 as usize;
        let count = word_count(&self.holders[holder as usize].held);
        self.words.get(start..start.checked_add(count)?)
    }
}

/// Words of a holder; a predicate is one.
fn word_count(held: &Held) -> usize {
    match held {
        Held::Words(words, _) => words.len(),
        Held::Predicate(..) => 1,
    }
}

/// What is put where by an instruction that was there before.
#[derive(Clone, Copy, Debug)]
struct Definition {
    /// The instruction of the allocated code.
    index: u32,
    /// The number of the virtual register.
    number: u32,
    register: PReg,
}

/// The results of the instructions that were there before, by the instructions that give them now.
#[derive(Debug, Default)]
pub(super) struct Definitions(Vec<Definition>);

impl Definitions {
    /// Those of `after`, of whose instructions `origin` has the index in the code before.
    pub fn of(before: &Before, after: &VCode<PReg>, origin: &[u32]) -> Definitions {
        let mut found = Vec::new();
        for (index, &origin) in (0..).zip(origin).filter(|(_, origin)| **origin != ADDED) {
            let results = before.results.get(origin as usize);
            if results.is_empty() {
                continue;
            }
            let mut operands = after.insts[index as usize].inst.definitions();
            // How many operands have been looked at.
            let mut seen = 0;
            for &(number, at) in results {
                let register = match at {
                    ResultAt::Register(register) => Some(register),
                    ResultAt::Operand(place) => {
                        let register = operands.nth(usize::from(place - seen));
                        seen = place + 1;
                        register
                    }
                };
                found.extend(register.map(|register| Definition {
                    index,
                    number,
                    register,
                }));
            }
        }
        Definitions(found)
    }

    /// Instructions are done by others, each first one of `moved` by the second; then those that are `gone` are left
    /// out.
    pub fn moved(&mut self, moved: impl Iterator<Item = (u32, u32)>, gone: &[bool]) {
        let mut left = 0;
        let mut places: Vec<u32> = (gone.iter())
            .map(|gone| {
                let place = left;
                left += u32::from(!gone);
                place
            })
            .collect();
        for (from, to) in moved {
            places[from as usize] = places[to as usize];
        }
        for found in &mut self.0 {
            found.index = places[found.index as usize];
        }
        self.0.sort_by_key(|found| found.index);
    }
}

/// Finds where holders are in `after`.
///
/// # Errors
/// When the frames of the two do not belong together.
pub(super) fn find(
    before: Before,
    after: &VCode<PReg>,
    definitions: Definitions,
) -> Result<Places, String> {
    let layout = Layout::new(&before.frame, &after.frame)?;
    let places = flow::places(&before, after, &layout, definitions);
    Ok(Places {
        holders: before.holders,
        ..places
    })
}
