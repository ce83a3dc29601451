//! Values that want the same register (webs) and values that want neighbouring ones (runs).
//!
//! A web holds block parameters with their arguments and guarded results with the values that they keep, as long as no member is alive
//! where another is defined: then all of them can have one register and the copies between them vanish. A run holds the values of wide
//! operands at their offsets in an aligned pair or quad. Both are wishes: what the colouring cannot grant costs a copy.

use super::constrain::pressure::stack_pointer;
use super::liveness::{Liveness, edge_arguments};
use crate::isa::table::Direction;
use crate::isa::{Register, VReg};
use crate::vcode::{Terminator, VCode};
use smallvec::SmallVec;

/// No register, no run.
pub(super) const NONE: u8 = u8::MAX;
const NO_RUN: u32 = u32::MAX;
/// Largest product of the sizes of two webs that are compared member by member (*assumed*; keeps the work linear in practice).
const MERGE_WORK: usize = 4096;

/// Values for one aligned run of registers.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// 2 or 4.
    pub width: u8,
    /// The value wanted at each offset.
    pub members: [Option<VReg>; 4],
    /// First register, once chosen; [`NONE`] before.
    pub base: u8,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Webs {
    parent: Vec<u32>,
    /// Members of the web, at its root.
    members: Vec<SmallVec<[VReg; 2]>>,
    /// The web's register at its root.
    colour: Vec<u8>,
    /// A register that the calling convention wants for a member, at its root.
    hint: Vec<u8>,
    hint_depth: Vec<u32>,
    /// Values with registers of the calling convention.
    hinted: Vec<(VReg, u8)>,
    run_of: Vec<(u32, u8)>,
    runs: Vec<Run>,
}

impl Webs {
    /// Builds webs and runs, from the innermost loops outwards.
    pub fn compute(&mut self, code: &VCode<VReg>, live: &Liveness) {
        let values = code.vreg_count as usize;
        self.parent.clear();
        self.parent.extend(0..values as u32);
        self.members.clear();
        self.members.resize(values, SmallVec::new());
        for list in [&mut self.colour, &mut self.hint] {
            list.clear();
            list.resize(values, NONE);
        }
        self.hint_depth.clear();
        self.hint_depth.resize(values, 0);
        self.run_of.clear();
        self.run_of.resize(values, (NO_RUN, 0));
        self.runs.clear();
        let pinned = stack_pointer(code);
        self.join_webs(code, live, pinned);
        self.collect_hints(code);
        self.pass_hints_on(code, live);
        self.collect_runs(code, pinned);
    }

    fn join_webs(&mut self, code: &VCode<VReg>, live: &Liveness, pinned: Option<VReg>) {
        let mut wishes: Vec<(u32, VReg, VReg)> = Vec::new();
        for (block, data) in code.blocks.iter() {
            wishes.extend(
                edge_arguments(code, block).map(|(arg, param)| (data.loop_depth, param, arg)),
            );
            for entry in code.block_insts(block) {
                if entry.attachment.is_none() {
                    continue;
                }
                for (result, kept) in entry.inst.definitions().zip(code.else_values(entry)) {
                    wishes.extend(kept.map(|kept| (data.loop_depth, result, kept)));
                }
            }
        }
        wishes.sort_by_key(|w| std::cmp::Reverse(w.0));
        for (_, a, b) in wishes {
            if Some(a) != pinned && Some(b) != pinned {
                self.join(code, live, a, b);
            }
        }
    }

    fn join(&mut self, code: &VCode<VReg>, live: &Liveness, a: VReg, b: VReg) {
        let (ra, rb) = (self.root(a), self.root(b));
        if ra == rb {
            return;
        }
        let size = |r: u32| self.members[r as usize].len().max(1);
        if size(ra) * size(rb) > MERGE_WORK {
            return;
        }
        let list = |r: u32, v: VReg| -> SmallVec<[VReg; 2]> {
            let members = &self.members[r as usize];
            // A web of one has no list.
            if members.is_empty() {
                SmallVec::from_slice(&[v])
            } else {
                members.clone()
            }
        };
        let (left, right) = (list(ra, a), list(rb, b));
        let meets = |x: VReg, y: VReg| {
            let at = live.def_position(y);
            live.is_live_after(code, x, at, live.def_block(y)) && live.def_position(x) != at
        };
        let clash = |x: VReg, y: VReg| {
            meets(x, y) || meets(y, x) || live.def_position(x) == live.def_position(y)
        };
        if left.iter().any(|&x| right.iter().any(|&y| clash(x, y))) {
            return;
        }
        let (keep, gone) = if left.len() >= right.len() {
            (ra, rb)
        } else {
            (rb, ra)
        };
        self.parent[gone as usize] = keep;
        let mut all = left;
        all.extend(right);
        self.members[keep as usize] = all;
        self.members[gone as usize] = SmallVec::new();
    }

    fn root(&mut self, v: VReg) -> u32 {
        let mut i = v.index() as u32;
        while self.parent[i as usize] != i {
            let up = self.parent[self.parent[i as usize] as usize];
            self.parent[i as usize] = up;
            i = up;
        }
        i
    }

    fn collect_hints(&mut self, code: &VCode<VReg>) {
        self.hinted.clear();
        for (v, r) in &code.entry {
            self.add_hint(*v, r.number(), 0);
        }
        for (block, data) in code.blocks.iter() {
            for entry in code.block_insts(block) {
                if let Some(call) = code.call(entry) {
                    for (v, r) in call.uses.iter().chain(&call.defs) {
                        self.add_hint(*v, r.number(), data.loop_depth + 1);
                    }
                }
            }
            match &data.terminator {
                Terminator::Return { address, values } => {
                    for (v, r) in values {
                        self.add_hint(*v, r.number(), data.loop_depth + 1);
                    }
                    for (v, r) in address.iter().zip(crate::abi::RETURN_ADDRESS) {
                        self.add_hint(*v, r.number(), 0);
                    }
                }
                Terminator::TailCall { values, .. } => {
                    for (v, r) in values {
                        self.add_hint(*v, r.number(), data.loop_depth + 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn add_hint(&mut self, v: VReg, register: u8, depth: u32) {
        let root = self.root(v) as usize;
        if self.hint[root] == NONE || self.hint_depth[root] < depth {
            self.hint[root] = register;
            self.hint_depth[root] = depth;
        }
        self.hinted.push((v, register));
    }

    /// Lets a value that ends where another one with a hint begins have the same hint: what is computed from it in steps can stay in
    /// one register.
    fn pass_hints_on(&mut self, code: &VCode<VReg>, live: &Liveness) {
        if self.hinted.is_empty() {
            return;
        }
        for entry in code.insts.iter().rev() {
            let mut results = entry.inst.definitions();
            let (Some(result), None) = (results.next(), results.next()) else {
                continue;
            };
            let hint = self.hint(result);
            if hint == NONE {
                continue;
            }
            let mut ending = entry
                .inst
                .uses()
                .filter(|v| v.class() == result.class() && live.uses(*v).len() == 1);
            if let Some(v) = ending.next() {
                let root = self.root(v) as usize;
                if self.hint[root] == NONE {
                    self.hint[root] = hint;
                }
            }
        }
    }

    /// Values that the calling convention gives registers, with those.
    pub fn hinted(&self) -> &[(VReg, u8)] {
        &self.hinted
    }

    fn collect_runs(&mut self, code: &VCode<VReg>, pinned: Option<VReg>) {
        let mut wanted: Vec<(u32, bool, SmallVec<[VReg; 4]>)> = Vec::new();
        for (block, data) in code.blocks.iter() {
            for entry in code.block_insts(block) {
                if !entry.inst.info().wide {
                    continue;
                }
                for operand in entry.inst.operands().filter(|o| o.regs.len() > 1) {
                    let regs: SmallVec<[VReg; 4]> =
                        operand.regs.iter().copied().flatten().collect();
                    if regs.len() == operand.regs.len() {
                        wanted.push((
                            data.loop_depth,
                            operand.info.direction == Direction::Out,
                            regs,
                        ));
                    }
                }
            }
            if let Terminator::Return { address, .. } = &data.terminator {
                wanted.push((data.loop_depth, false, SmallVec::from_slice(address)));
            }
        }
        // Results first: their run is no wish.
        wanted.sort_by_key(|(depth, result, _)| (!result, std::cmp::Reverse(*depth)));
        for (_, _, regs) in wanted {
            let distinct = regs.iter().enumerate().all(|(i, r)| !regs[..i].contains(r));
            if distinct && !regs.iter().any(|r| Some(*r) == pinned) {
                self.join_run(&regs);
            }
        }
    }

    /// Puts `regs` at consecutive offsets of one run if that agrees with the runs they are in.
    fn join_run(&mut self, regs: &[VReg]) {
        let width = regs.len();
        let largest = regs
            .iter()
            .enumerate()
            .filter(|(_, r)| self.run_of[r.index()].0 != NO_RUN)
            .max_by_key(|(_, r)| self.runs[self.run_of[r.index()].0 as usize].width);
        let (mut run, target, shift) = match largest {
            Some((i, r))
                if usize::from(self.runs[self.run_of[r.index()].0 as usize].width) >= width =>
            {
                let (target, offset) = self.run_of[r.index()];
                let Some(shift) = usize::from(offset).checked_sub(i) else {
                    return;
                };
                (self.runs[target as usize].clone(), target, shift)
            }
            _ => {
                let run = Run {
                    width: width as u8,
                    members: [None; 4],
                    base: NONE,
                };
                (run, self.runs.len() as u32, 0)
            }
        };
        if shift % width != 0 || shift + width > usize::from(run.width) {
            return;
        }
        for (i, r) in regs.iter().enumerate() {
            let (source, offset) = self.run_of[r.index()];
            let members: SmallVec<[(usize, VReg); 4]> = if source == NO_RUN {
                SmallVec::from_slice(&[(shift + i, *r)])
            } else {
                let other = &self.runs[source as usize];
                let Some(by) = (shift + i).checked_sub(usize::from(offset)) else {
                    return;
                };
                if by % usize::from(other.width) != 0
                    || by + usize::from(other.width) > usize::from(run.width)
                {
                    return;
                }
                other
                    .members
                    .iter()
                    .enumerate()
                    .filter_map(|(o, m)| m.map(|m| (by + o, m)))
                    .collect()
            };
            for (place, member) in members {
                match run.members[place] {
                    Some(present) if present != member => return,
                    _ => run.members[place] = Some(member),
                }
            }
        }
        for (offset, member) in run.members.iter().enumerate() {
            if let Some(member) = member {
                self.run_of[member.index()] = (target, offset as u8);
            }
        }
        match self.runs.get_mut(target as usize) {
            Some(place) => *place = run,
            None => self.runs.push(run),
        }
    }

    /// The web's register.
    pub fn colour(&mut self, v: VReg) -> u8 {
        let root = self.root(v);
        self.colour[root as usize]
    }

    /// Gives the web of `v` a register unless it has one; true if it is new.
    pub fn set_colour(&mut self, v: VReg, colour: u8) -> bool {
        let root = self.root(v) as usize;
        let new = self.colour[root] == NONE;
        if new {
            self.colour[root] = colour;
        }
        new
    }

    /// Members of the web; empty when it has one.
    pub fn members(&mut self, v: VReg) -> &[VReg] {
        let root = self.root(v);
        &self.members[root as usize]
    }

    /// The register that the calling convention wants for the web.
    pub fn hint(&mut self, v: VReg) -> u8 {
        let root = self.root(v);
        self.hint[root as usize]
    }

    /// The run of a value: its number and the value's offset.
    pub fn run(&self, v: VReg) -> Option<(u32, u8)> {
        let (run, offset) = self.run_of[v.index()];
        (run != NO_RUN).then_some((run, offset))
    }

    /// A run by number.
    pub fn run_info(&self, run: u32) -> &Run {
        &self.runs[run as usize]
    }

    /// Sets the first register of a run.
    pub fn set_base(&mut self, run: u32, base: u8) {
        self.runs[run as usize].base = base;
    }
}
