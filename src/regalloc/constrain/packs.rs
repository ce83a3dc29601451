//! Predicates that leave their registers together share a home.
//!
//! One P2R writes the predicates of a pack to the bits of a GPR, each to the bit of its own register's number, which is
//! known when registers are; until then the instruction names its predicates in an
//! [attachment](crate::vcode::Attachment::Pack). A predicate that comes back by itself does so by a LOP3 that tests its
//! bit, which costs no more than the ISETP that an own home would need. So a pack pays from two members on: one
//! instruction instead of one each, and one GPR, which callees may have to keep. Nothing has to be in a certain
//! register for that, so any allocator can do it.
//!
//! Several that come back at one place do so by one R2P if they are wanted where they were when they left, and nothing
//! else is in a predicate: what an R2P does not select may be lost, as the document can be read in two ways. For that
//! they come back at the first place in a block where one is needed, or before it; the colouring is told to prefer the
//! registers where they were ([`super::super::preferences`]), and [`super::super::predicate_reloads`] replaces the
//! tests where it has done so.
//!
//! Predicates that become parameters at their homes have homes of their own: what they join is not one pack's.

use super::flow::Flow;
use super::plan::{BlockPoint, Eviction, Plan, Store, place};
use crate::isa::{RegisterClass, VReg};
use crate::regalloc::liveness::edge_arguments;
use crate::vcode::{Block, VCode};

/// A predicate that may be stored at any of several places of a block.
struct Range {
    block: Block,
    /// The first and the last instruction before which it is in its register.
    first: u32,
    last: u32,
    /// Its number in [`Plan::stores`].
    store: usize,
}

impl Plan {
    /// Lets predicates share homes, with one place where all of a pack are stored.
    pub(super) fn pack(&mut self, code: &VCode<VReg>, flow: &Flow, latest: &[Option<BlockPoint>]) {
        if self.class != RegisterClass::Predicate {
            return;
        }
        let mut ranges = self.ranges(code, flow, latest);
        ranges.sort_by_key(|r| (r.block, r.first));
        // All that have begun when the first of them has to leave.
        let mut open: Vec<Range> = Vec::new();
        for range in ranges {
            let ended = |r: &Range| r.block != range.block || r.last < range.first;
            if open.iter().any(ended) {
                self.close(&mut open);
            }
            open.push(range);
        }
        self.close(&mut open);
        if self.packs > 0 {
            let pack_of = &self.pack_of;
            self.stores
                .sort_by_key(|s| (s.block, s.index, pack_of[s.value.index()], s.value));
            self.bring_together(code);
        }
    }

    /// Makes a pack of what can be stored at one place, if that is more than one.
    fn close(&mut self, open: &mut Vec<Range>) {
        let last = open.iter().map(|r| r.last).min();
        if let (Some(last), 2..) = (last, open.len()) {
            for range in open.iter() {
                let store = &mut self.stores[range.store];
                store.index = last;
                self.pack_of[store.value.index()] = self.packs;
            }
            self.packs += 1;
        }
        open.clear();
    }

    /// Where the predicates that may share homes can be stored.
    fn ranges(&self, code: &VCode<VReg>, flow: &Flow, latest: &[Option<BlockPoint>]) -> Vec<Range> {
        let mut alone = vec![false; code.vreg_count as usize];
        for block in code.blocks.keys() {
            for (arg, param) in edge_arguments(code, block) {
                if self.housed[param.index()] && self.displaced_from(param).is_some() {
                    alone[arg.index()] = true;
                }
            }
        }
        let mut defined = vec![None; code.vreg_count as usize];
        for (v, place) in self.first_places(code) {
            defined[v.index()] = Some(place);
        }
        let leave = |e: &Eviction| (e.value, e.at.block, e.at.index());
        let mut leaves: Vec<_> = self.evictions.iter().map(leave).collect();
        leaves.sort_unstable();
        let mut ranges = Vec::new();
        for (number, store) in self.stores.iter().enumerate() {
            let Store {
                value,
                block,
                index,
            } = *store;
            let displaced = self.displaced_from(value).is_some();
            if alone[value.index()] || displaced || !flow.is_reachable(block) {
                continue;
            }
            let insts = &code.blocks[block].insts;
            // Where it is not defined it is in its register from the start: it cannot have come back before it is
            // stored.
            let first = match defined[value.index()] {
                Some((there, first)) if there == block => first,
                _ => insts.start,
            };
            let next = leaves.partition_point(|l| *l < (value, block, index));
            let leaves = leaves.get(next).filter(|l| (l.0, l.1) == (value, block));
            let read = latest[value.index()].filter(|p| p.block == block);
            let read = read.map_or(insts.end, BlockPoint::index);
            ranges.push(Range {
                block,
                first,
                last: leaves.map_or(read, |l| l.2.min(read)),
                store: number,
            });
        }
        ranges
    }

    /// Lets members of a pack come back together, at the first place in a block where one is needed or before it: where
    /// no other predicate is in a register, if there is room from there on.
    fn bring_together(&mut self, code: &VCode<VReg>) {
        let mut stored = vec![None; self.packs as usize];
        for s in &self.stores {
            if let Some(place) = stored.get_mut(self.pack_of[s.value.index()] as usize) {
                *place = Some(BlockPoint::before(s.block, s.index));
            }
        }
        let mut moved = vec![false; self.reloads.len()];
        let mut chosen = Vec::new();
        for i in 0..self.reloads.len() {
            let (v, at) = self.reloads[i];
            let pack = self.pack_of[v.index()];
            let Some(stored) = stored.get(pack as usize).copied().flatten() else {
                continue;
            };
            let Some(to) = self.empty_place(code, at, stored).filter(|_| !moved[i]) else {
                continue;
            };
            chosen.clear();
            // How many there are on the way at most.
            let (mut most, mut seen) = (0, place(to));
            for (j, (other, from)) in self.reloads.iter().enumerate().skip(i) {
                if moved[j] {
                    continue;
                }
                if from.block != at.block {
                    break;
                }
                // Those that are chosen are counted from where they would have come back.
                let between = self.crowds.most[seen..place(*from)].iter();
                most = between.copied().fold(most, u32::max);
                seen = place(*from);
                if most >= self.limit {
                    break;
                }
                let known = |k: &usize| self.reloads[*k].0 == *other;
                if self.pack_of[other.index()] != pack || chosen.iter().any(known) {
                    continue;
                }
                most += 1;
                chosen.push(j);
            }
            if chosen.len() < 2 {
                continue;
            }
            for j in chosen.drain(..) {
                moved[j] = true;
                let from = std::mem::replace(&mut self.reloads[j].1, to);
                let (start, end) = (place(to), place(from));
                let most = self.crowds.most[start..end].iter_mut();
                let before = self.crowds.before[start..=end].iter_mut().skip(1);
                most.chain(before).for_each(|crowd| *crowd += 1);
            }
        }
        let pack_of = &self.pack_of;
        self.reloads
            .sort_by_key(|(v, at)| (at.block, place(*at), pack_of[v.index()]));
    }

    /// The last place up to `at` in its block, and behind `stored`, where no predicate is in a register, with room for
    /// one more from there on.
    fn empty_place(
        &self,
        code: &VCode<VReg>,
        at: BlockPoint,
        stored: BlockPoint,
    ) -> Option<BlockPoint> {
        let first = match stored.block == at.block {
            true => stored.index(),
            false => code.blocks[at.block].insts.start,
        };
        let mut index = at.index();
        loop {
            let here = BlockPoint::before(at.block, index);
            let before = *self.crowds.before.get(place(here))?;
            if before == 0 {
                return Some(here);
            }
            index = index.checked_sub(1).filter(|i| *i >= first)?;
            let crowd = self.crowds.most[place(BlockPoint::before(at.block, index))];
            if crowd >= self.limit {
                return None;
            }
        }
    }
}
