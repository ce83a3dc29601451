//! What an edge needs at the end of its predecessor: values that come back for the successor, parameters that begin at
//! their homes.

use super::plan::NONE;
use super::rewrite::Rewriter;
use crate::isa::{Register, RegisterClass, VReg};
use crate::regalloc::liveness::edge_arguments;
use crate::regalloc::moves;
use crate::vcode::{Block, SourceLine};
use hashbrown::HashMap;

/// Where a value that is to be stored comes from.
#[derive(Clone, Copy, Debug)]
enum StoreSource {
    /// A register.
    Name(VReg),
    /// A slot, by its offset from R1.
    Slot(u32),
    /// Nowhere: it is made again.
    Made(VReg),
}

impl Rewriter<'_> {
    /// The edge from `from` to `to`: brings back what is in registers there, stores parameters at their homes. Returns
    /// the arguments.
    pub(super) fn pass(&mut self, from: Block, to: Block, line: SourceLine) -> Vec<VReg> {
        let mut missing: Vec<VReg> = Vec::new();
        if self.flow.is_join(to) {
            self.plan
                .missing(self.old, from, to, |v, _| missing.push(v));
            missing.sort_unstable();
            missing.dedup();
        }
        let stored = self.stored(from, to);
        // What a store reads or overwrites comes back before it; the rest behind, where stores need no registers any
        // more.
        let early = |this: &Self, v: VReg| {
            let slot = this.plan.slot[v.index()];
            let read = |arg: VReg| arg == v;
            let written = |param: VReg| slot != NONE && this.plan.slot[param.index()] == slot;
            stored.iter().any(|(a, p)| read(*a) || written(*p))
        };
        let (first, second): (Vec<VReg>, Vec<VReg>) =
            missing.into_iter().partition(|v| early(self, *v));
        for v in &first {
            self.bring(*v, line);
        }
        self.fill_slots(from, &stored, &first, line);
        // Homes of predicates and uniform values as well.
        let mut homes: HashMap<VReg, VReg> = HashMap::new();
        for (arg, param) in edge_arguments(self.old, from) {
            if self.home.contains_key(&param) && self.plan.displaced_from(param).is_some() {
                let home = self.home_argument(arg, param, line);
                homes.insert(param, home);
            }
        }
        for v in &second {
            self.bring(*v, line);
        }
        let mut args = Vec::new();
        for (arg, param) in edge_arguments(self.old, from) {
            let displaced =
                param.class() == self.plan.class && self.plan.displaced_from(param).is_some();
            if !displaced {
                args.push(self.here(arg));
            } else if let Some(home) = homes.get(&param) {
                args.push(*home);
            }
        }
        args
    }

    /// Arguments that have to be stored to the slots of parameters.
    fn stored(&self, from: Block, to: Block) -> Vec<(VReg, VReg)> {
        let plan = self.plan;
        if plan.class != RegisterClass::Gpr || plan.displaced(self.old, to).next().is_none() {
            return Vec::new();
        }
        let edges = edge_arguments(self.old, from);
        edges
            .filter(|(_, p)| p.class() == plan.class && plan.housed[p.index()])
            .filter(|(_, p)| plan.displaced_from(*p).is_some())
            .filter(|(a, p)| !plan.shares_home(*a, *p))
            .filter(|(a, p)| {
                let in_slot = !plan.exit.has(from, *a) && plan.slot[a.index()] != NONE;
                !(in_slot && plan.slot[a.index()] == plan.slot[p.index()])
            })
            .collect()
    }

    /// The GPR that becomes the home of the parameter `param`.
    fn home_argument(&mut self, arg: VReg, param: VReg, line: SourceLine) -> VReg {
        if self.plan.shares_home(arg, param) {
            return self.home[&arg];
        }
        let copy = self.fresh(RegisterClass::Gpr);
        self.copy_to_gpr(copy, self.here(arg), line);
        copy
    }

    /// Stores arguments to the slots of parameters, all at the same time in effect. The values of `back` have just come
    /// back.
    fn fill_slots(
        &mut self,
        from: Block,
        stored: &[(VReg, VReg)],
        back: &[VReg],
        line: SourceLine,
    ) {
        let mut copies: Vec<(StoreSource, u32)> = Vec::new();
        for &(arg, param) in stored {
            let here =
                self.plan.exit.has(from, arg) || Some(arg) == self.pointer || back.contains(&arg);
            let source = if here {
                StoreSource::Name(self.here(arg))
            } else if self.plan.rematerializable.knows(arg) {
                StoreSource::Made(arg)
            } else {
                StoreSource::Slot(self.slot(arg))
            };
            copies.push((source, self.slot(param)));
        }
        // How many copies still read a slot.
        let mut readers: HashMap<u32, u32> = HashMap::new();
        for (source, _) in &copies {
            if let StoreSource::Slot(slot) = source {
                *readers.entry(*slot).or_default() += 1;
            }
        }
        // Values in registers first: they may be the last that hold them.
        copies.sort_by_key(|(source, to)| (!matches!(source, StoreSource::Name(_)), *to));
        let by_target: HashMap<u32, usize> =
            copies.iter().enumerate().map(|(i, c)| (c.1, i)).collect();
        let mut done = vec![false; copies.len()];
        for start in 0..copies.len() {
            let mut next = Some(start);
            while let Some(i) = next.take() {
                let (source, to) = copies[i];
                if done[i] || readers.get(&to).is_some_and(|n| *n > 0) {
                    break;
                }
                done[i] = true;
                self.fill_slot(source, to, line);
                if let StoreSource::Slot(slot) = source {
                    *readers.get_mut(&slot).expect("counted") -= 1;
                    next = by_target.get(&slot).copied();
                }
            }
        }
        // Cycles: the first slot is saved elsewhere.
        for start in 0..copies.len() {
            if done[start] {
                continue;
            }
            let shadow = self.shadow();
            let mut i = start;
            self.fill_slot(StoreSource::Slot(copies[start].1), shadow, line);
            while !done[i] {
                done[i] = true;
                let (source, to) = copies[i];
                let StoreSource::Slot(slot) = source else {
                    unreachable!("only slots are in cycles")
                };
                let closes = slot == copies[start].1;
                let source = if closes {
                    StoreSource::Slot(shadow)
                } else {
                    source
                };
                self.fill_slot(source, to, line);
                if !closes {
                    i = by_target[&slot];
                }
            }
        }
    }

    fn fill_slot(&mut self, source: StoreSource, to: u32, line: SourceLine) {
        let from = match source {
            StoreSource::Name(name) => name,
            StoreSource::Made(v) => self.bring_copy(v, line),
            StoreSource::Slot(slot) => {
                let copy = self.fresh(RegisterClass::Gpr);
                let inst = moves::spill_load(copy, self.pointer(), slot);
                self.push(inst, line);
                copy
            }
        };
        let inst = moves::spill_store(from, self.pointer(), to);
        self.push(inst, line);
    }

    fn shadow(&mut self) -> u32 {
        let frame = &mut self.code.frame;
        *self.shadow.get_or_insert_with(|| {
            frame.spill_bytes += 4;
            frame.spill_offset() + frame.spill_bytes - 4
        })
    }
}
