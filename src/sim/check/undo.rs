//! What global memory held before a launch wrote there.
//!
//! Blocks that are checked on several threads run as if nothing ordered them, which is right as long as none of them
//! uses what another one writes. Where that turns out not to be so, the launch is taken back and run on one thread.
//! Pages are saved when the first of their bytes is about to be written, whoever comes first. Only what the launch
//! wrote is put back: the host may use the rest of a page meanwhile.

use super::shadow::Shadow;
use crate::sim::memory::global::Table;
use crate::sim::memory::words::Saved;
use std::sync::OnceLock;

/// Bytes of a page (assigned).
const PAGE: usize = 4096;
/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// Pages of the allocations as they were before the launch, as far as it writes there.
#[derive(Debug)]
pub struct Undo {
    memories: Vec<Box<[OnceLock<Saved>]>>,
}

impl Undo {
    /// For a launch that works on these allocations.
    pub fn new(table: &Table) -> Undo {
        let pages = |bytes: usize| (0..bytes.div_ceil(PAGE)).map(|_| OnceLock::new());
        Undo {
            memories: table.sizes().map(|bytes| pages(bytes).collect()).collect(),
        }
    }

    /// Bytes of an allocation are about to be written.
    #[inline]
    pub(super) fn save(&self, table: &Table, memory: usize, start: usize, bytes: usize) {
        for page in start / PAGE..(start + bytes).div_ceil(PAGE) {
            self.memories[memory][page]
                .get_or_init(|| table.words(memory).saved(page * PAGE, PAGE));
        }
    }

    /// Puts back what was written according to the shadow of those who wrote.
    pub(super) fn put_back(&self, table: &Table, shadow: &Shadow) {
        if shadow.is_forgetful() {
            self.put_all_back(table);
        }
        for (memory, word, bytes) in shadow.written() {
            let (page, at) = (word / (PAGE / WORD), word % (PAGE / WORD));
            if let Some(saved) = self.memories[memory][page].get() {
                table.words(memory).put_back(word, bytes, saved, at);
            }
        }
    }
    /// Puts back all that was saved.
    fn put_all_back(&self, table: &Table) {
        for (memory, pages) in self.memories.iter().enumerate() {
            let saved = pages.iter().enumerate();
            for (page, saved) in saved.filter_map(|(page, saved)| Some((page, saved.get()?))) {
                for at in 0..saved.len() {
                    let word = page * (PAGE / WORD) + at;
                    table.words(memory).put_back(word, 0xF, saved, at);
                }
            }
        }
    }
}
