//! Where values are when they are not in registers, and where they are stored.
//!
//! A value is stored once: right behind its definition, or at a place where it leaves its register if that dominates
//! all places where it comes back and does not run more often. A parameter that begins at its home is stored by the
//! predecessors, unless its argument is there already: values that become one another share a home where their lives do
//! not overlap. What is never stored at the same time shares a slot.

use super::flow::Flow;
use super::plan::{BlockPoint, NONE, Plan, Store};
use super::pressure::stack_pointer;
use crate::isa::{RegisterClass, VReg};
use crate::regalloc::liveness::{Liveness, edge_arguments};
use crate::vcode::{Block, VCode};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Largest product of the sizes of two groups that are compared member by member (*assumed*).
const MERGE_WORK: usize = 4096;

impl Plan {
    /// Decides homes and stores.
    pub(super) fn settle(&mut self, code: &VCode<VReg>, live: &Liveness, flow: Flow) {
        let mut demand = Demand {
            code,
            flow: &flow,
            latest: vec![None; code.vreg_count as usize],
            work: Vec::new(),
        };
        for i in 0..self.reloads.len() {
            let (v, at) = self.reloads[i];
            self.returns_at(&mut demand, v, at);
        }
        for i in 0..self.home_reads.len() {
            let (v, at) = self.home_reads[i];
            self.split[v.index()] = true;
            demand.add(self, v, at);
        }
        let mut missing = Vec::new();
        for block in code.blocks.keys() {
            for from in flow.predecessors(block).filter(|_| flow.is_join(block)) {
                missing.clear();
                self.missing(code, from, block, |v, _| missing.push(v));
                for v in &missing {
                    self.returns_at(&mut demand, *v, BlockPoint::end(code, from));
                }
            }
            let displaced: Vec<VReg> = self.displaced(code, block).map(|(_, v)| v).collect();
            for v in displaced {
                self.split[v.index()] = true;
            }
        }
        self.fill_parameters(&mut demand);
        self.share_homes(&mut demand, live);
        let latest = demand.latest;
        self.place_stores(code, live, &flow, &latest);
        self.pack(code, &flow, &latest);
        self.assign_slots(code, live);
        self.flow = Some(flow);
    }

    /// A value comes back.
    fn returns_at(&mut self, demand: &mut Demand<'_>, v: VReg, at: BlockPoint) {
        self.split[v.index()] = true;
        self.note_return(v, at.block, demand.flow);
        if !self.rematerializable.knows(v) || self.displaced_from(v).is_some() {
            demand.add(self, v, at);
        }
    }

    /// Lets the arguments of parameters that begin at their homes be stored there.
    fn fill_parameters(&mut self, demand: &mut Demand<'_>) {
        let (code, flow) = (demand.code, demand.flow);
        while let Some((param, block)) = demand.work.pop() {
            for from in flow.predecessors(block) {
                for (arg, _) in edge_arguments(code, from).filter(|(_, p)| *p == param) {
                    let there = self.exit.has(from, arg);
                    // What can be made again is made for the store.
                    let made = self.class == RegisterClass::Gpr && self.rematerializable.knows(arg);
                    if !there && !made && Some(arg) != stack_pointer(code) {
                        self.split[arg.index()] = true;
                        demand.add(self, arg, BlockPoint::end(code, from));
                    }
                }
            }
        }
    }

    /// Joins the homes of parameters and their arguments, from frequent to rare edges.
    fn share_homes(&mut self, demand: &mut Demand<'_>, live: &Liveness) {
        let (code, flow) = (demand.code, demand.flow);
        let mut feedback = Vec::new();
        for block in code.blocks.keys() {
            for (arg, param) in edge_arguments(code, block) {
                let housed = self.housed[arg.index()] && self.housed[param.index()];
                if housed && self.displaced_from(param).is_some() {
                    feedback.push((block, arg, param));
                }
            }
        }
        feedback.sort_by(|a, b| flow.frequency(b.0).total_cmp(&flow.frequency(a.0)));
        let mut members: Vec<Vec<VReg>> = Vec::new();
        for (from, arg, param) in feedback {
            if self.class == RegisterClass::Gpr && !self.join(&mut members, code, live, arg, param)
            {
                continue;
            }
            if self.exit.has(from, arg) {
                demand.add(self, arg, BlockPoint::end(code, from));
            }
        }
    }

    /// Gives two values one home; false if they are alive at the same time.
    fn join(
        &mut self,
        members: &mut Vec<Vec<VReg>>,
        code: &VCode<VReg>,
        live: &Liveness,
        a: VReg,
        b: VReg,
    ) -> bool {
        let mut group = |v: VReg| {
            let place = &mut self.group[v.index()];
            if *place == NONE {
                *place = members.len() as u32;
                members.push(vec![v]);
            }
            *place
        };
        let (ga, gb) = (group(a), group(b));
        if ga == gb {
            return true;
        }
        let (left, right) = (&members[ga as usize], &members[gb as usize]);
        if left.len() * right.len() > MERGE_WORK {
            return false;
        }
        let meets = |x: VReg, y: VReg| {
            live.def_position(x) == live.def_position(y)
                || live.is_live_after(code, x, live.def_position(y), live.def_block(y))
        };
        let clash = |x: VReg, y: VReg| meets(x, y) || meets(y, x);
        if left.iter().any(|&x| right.iter().any(|&y| clash(x, y))) {
            return false;
        }
        let (keep, gone) = if left.len() >= right.len() {
            (ga, gb)
        } else {
            (gb, ga)
        };
        let moved = std::mem::take(&mut members[gone as usize]);
        for v in &moved {
            self.group[v.index()] = keep;
        }
        members[keep as usize].extend(moved);
        true
    }

    /// Whether `arg` is at the home of `param` already.
    pub(super) fn shares_home(&self, arg: VReg, param: VReg) -> bool {
        self.housed[arg.index()]
            && (self.class != RegisterClass::Gpr
                || self.group[arg.index()] != NONE
                    && self.group[arg.index()] == self.group[param.index()])
    }

    /// Decides where each value is stored.
    fn place_stores(
        &mut self,
        code: &VCode<VReg>,
        live: &Liveness,
        flow: &Flow,
        latest: &[Option<BlockPoint>],
    ) {
        let mut place: Vec<Option<BlockPoint>> = vec![None; code.vreg_count as usize];
        for eviction in &self.evictions {
            let v = eviction.value;
            let Some(latest) = latest[v.index()] else {
                continue;
            };
            let often = flow.frequency(eviction.at.block);
            let best = place[v.index()].map_or(live.def_block(v), |p| p.block);
            if often <= flow.frequency(best) && eviction.at.dominates(latest, flow) {
                place[v.index()] = Some(eviction.at);
            }
        }
        for (v, store) in self.first_places(code) {
            let (block, index) = match place[v.index()] {
                Some(at) => (at.block, at.index()),
                None => store,
            };
            self.stores.push(Store {
                value: v,
                block,
                index,
            });
        }
        self.stores.sort_by_key(|s| (s.block, s.index, s.value));
    }

    /// Values that are stored, with the place behind their definitions.
    pub(super) fn first_places(&self, code: &VCode<VReg>) -> Vec<(VReg, (Block, u32))> {
        let mut places = Vec::new();
        let stored = |v: &VReg| self.housed[v.index()];
        for (block, data) in code.blocks.iter() {
            let start = (block, data.insts.start);
            if block == code.entry_block() {
                let entry = code.entry.iter().map(|(v, _)| *v).filter(stored);
                places.extend(entry.map(|v| (v, start)));
            }
            let params = data.params.iter().copied().filter(stored);
            let params = params.filter(|v| self.displaced_from(*v).is_none());
            places.extend(params.map(|v| (v, start)));
            for (index, entry) in data.insts.clone().zip(code.block_insts(block)) {
                let defined = code.definitions(entry).filter(stored);
                places.extend(defined.map(|v| (v, (block, index + 1))));
            }
        }
        places
    }

    /// Gives every group of values a slot; groups whose lives do not overlap in the order of blocks may have the same.
    fn assign_slots(&mut self, code: &VCode<VReg>, live: &Liveness) {
        if self.class != RegisterClass::Gpr {
            return;
        }
        let stored = self.first_places(code).into_iter().map(|(v, _)| v);
        let displaced = code
            .blocks
            .keys()
            .flat_map(|block| self.displaced(code, block).map(|(_, v)| v))
            .filter(|v| self.housed[v.index()]);
        let values: Vec<VReg> = stored.chain(displaced).collect();
        let mut ranges: Vec<(u32, u32, u32)> = Vec::new();
        let mut range_of: Vec<u32> = vec![NONE; code.vreg_count as usize];
        let mut housed = Vec::new();
        for v in values {
            let group = self.group[v.index()];
            // Groups are numbered below the number of values, so their numbers serve as indices as well.
            let known = match group {
                NONE => NONE,
                group => range_of[group as usize],
            };
            let (start, end) = (live.def_position(v), live.end(v));
            let range = if known == NONE {
                ranges.push((start, end, ranges.len() as u32));
                ranges.len() as u32 - 1
            } else {
                let range = &mut ranges[known as usize];
                range.0 = range.0.min(start);
                range.1 = range.1.max(end);
                known
            };
            if group != NONE {
                range_of[group as usize] = range;
            }
            housed.push((v, range));
        }
        ranges.sort_unstable();
        let mut slots = vec![0; ranges.len()];
        let mut busy: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        for (start, end, range) in ranges {
            let slot = match busy.peek() {
                Some(Reverse((until, slot))) if *until < start => {
                    let slot = *slot;
                    busy.pop();
                    slot
                }
                _ => {
                    self.slots += 1;
                    self.slots - 1
                }
            };
            slots[range as usize] = slot;
            busy.push(Reverse((end, slot)));
        }
        for (v, range) in housed {
            self.slot[v.index()] = slots[range as usize];
        }
    }
}

/// Values that need a home.
struct Demand<'a> {
    code: &'a VCode<VReg>,
    flow: &'a Flow,
    /// By value: the last place that dominates all places where its home is read.
    latest: Vec<Option<BlockPoint>>,
    /// Parameters at their homes, with their blocks, whose arguments have not been looked at.
    work: Vec<(VReg, Block)>,
}

impl Demand<'_> {
    /// The home of `v` is read at `at`.
    fn add(&mut self, plan: &mut Plan, v: VReg, at: BlockPoint) {
        let latest = &mut self.latest[v.index()];
        *latest = Some(match *latest {
            Some(known) => known.common(at, self.code, self.flow),
            None => at,
        });
        if !std::mem::replace(&mut plan.housed[v.index()], true)
            && let Some(block) = plan.displaced_from(v)
        {
            self.work.push((v, block));
        }
    }
}
