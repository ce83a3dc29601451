//! Races: two accesses of different threads to the same byte, one of which writes and one of which is not atomic, with nothing that
//! orders them.
//!
//! For each aligned word of memory a cell keeps the accesses that a later one may race with (shadow memory, as in FastTrack): the last
//! plain write, the last strong write, and the reads since then that no later read stands for. Reads of the lanes of one instruction are one
//! record. An access takes the place of an earlier one where whoever races with the earlier one and comes behind this one races with this one
//! too: a plain write of all before it, a strong one of what is strong, a read of earlier reads of its own thread and of those before the
//! CTA's last barrier. Cells come to be, in pages, when a word is first used, and live as long as the launch (shared memory: as the CTA), so
//! that blocks that are not resident together are judged like those that are.

use super::order::{Order, Threads};
use crate::launch::AccessKind;
use crate::sim::registers::{LANES, lanes};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Words of a page (assigned).
const PAGE: u64 = 256;
/// Accesses to a word that are kept, at most (assigned): of the readers of a block every warp's.
const KEPT: usize = 64;

/// Accesses of lanes of a warp to bytes of a word.
#[derive(Clone, Copy, Debug)]
struct Touch {
    /// Number in the launch.
    warp: u32,
    lanes: u32,
    stamp: u32,
    pc: u32,
    bytes: u8,
    kind: AccessKind,
    wrote: bool,
    strong: bool,
}

/// An access of a thread now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// Thread in its CTA.
    pub thread: u32,
    /// Index of the instruction.
    pub pc: u32,
    /// What the instruction does.
    pub kind: AccessKind,
    /// Whether it writes.
    pub wrote: bool,
    /// Whether it is atomic or STRONG.
    pub strong: bool,
}

/// The earlier of two accesses that race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Earlier {
    /// Number of its warp in the launch.
    pub warp: u32,
    /// Its lane.
    pub lane: u32,
    /// Index of its instruction.
    pub pc: u32,
    /// What its instruction does.
    pub kind: AccessKind,
    /// The first byte of the word that both use.
    pub byte: u32,
}

type Cell = SmallVec<[Touch; 2]>;

/// The cells of a memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    /// First cell of each page.
    pages: HashMap<u64, usize>,
    cells: Vec<Cell>,
    /// The page used last and its first cell.
    last: Option<(u64, usize)>,
}

impl Shadow {
    fn cell(&mut self, word: u64) -> &mut Cell {
        let page = word / PAGE;
        let first = match self.last {
            Some((last, first)) if last == page => first,
            _ => {
                let end = self.cells.len();
                let first = *self.pages.entry(page).or_insert(end);
                if first == end {
                    self.cells.resize(end + PAGE as usize, Cell::new());
                }
                first
            }
        };
        self.last = Some((page, first));
        &mut self.cells[first + (word % PAGE) as usize]
    }

    /// Notes an access to the bytes of the mask `bytes` of a word, of which those in `same` keep their value; the earlier access that it
    /// races with, if any.
    pub fn touch(
        &mut self,
        order: &Order,
        threads: &Threads,
        now: Use,
        word: u64,
        (bytes, same): (u8, u8),
    ) -> Option<Earlier> {
        let (warp, lane) = (
            order.warp_number(threads, now.thread / LANES as u32),
            now.thread as usize % LANES,
        );
        let (own, stamp) = (1u32 << lane, order.stamp());
        let cell = self.cell(word);
        let mut found = None;
        let mut merged = false;
        cell.retain(|touch| {
            let common = touch.bytes & bytes;
            if common == 0 {
                return true;
            }
            let atomic = touch.strong && now.strong;
            if (touch.wrote || now.wrote) && !atomic && found.is_none() {
                // Threads that store what is there already with the instruction that stored it.
                let repeated = touch.pc == now.pc
                    && touch.kind == AccessKind::Store
                    && now.kind == AccessKind::Store
                    && common & !same == 0;
                let others = if touch.warp == warp {
                    touch.lanes & !own
                } else {
                    touch.lanes
                };
                let racing = || {
                    lanes(others).find(|other| {
                        !order.is_known(threads, now.thread, touch.warp, *other, touch.stamp)
                    })
                };
                if !repeated && let Some(other) = racing() {
                    found = Some(Earlier {
                        warp: touch.warp,
                        lane: other as u32,
                        pc: touch.pc,
                        kind: touch.kind,
                        byte: common.trailing_zeros(),
                    });
                }
            }
            // A strong access says nothing of how a plain one stands to the strong ones to come.
            if now.strong && !touch.strong {
                return true;
            }
            if now.wrote {
                touch.bytes &= !bytes;
                return touch.bytes != 0;
            }
            if touch.wrote || touch.bytes & !bytes != 0 {
                return true;
            }
            if touch.warp == warp {
                let alike = (touch.pc, touch.stamp, touch.bytes, touch.strong)
                    == (now.pc, stamp, bytes, now.strong);
                if alike && touch.kind == now.kind {
                    touch.lanes |= own;
                    merged = true;
                } else {
                    touch.lanes &= !own;
                }
                return touch.lanes != 0;
            }
            !order.is_before_barrier(threads, touch.warp, touch.stamp)
        });
        if !merged {
            if cell.len() >= KEPT {
                let read = cell.iter().position(|touch| !touch.wrote);
                cell.remove(read.unwrap_or(0));
            }
            cell.push(Touch {
                warp,
                lanes: own,
                stamp,
                pc: now.pc,
                bytes,
                kind: now.kind,
                wrote: now.wrote,
                strong: now.strong,
            });
        }
        found
    }
}
