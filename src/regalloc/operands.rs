//! Colouring of one instruction: wide operands, guarded results, ordinary results.
//!
//! Before the instruction its wide sources are gathered, and results under a guard get registers that hold the values
//! kept; both at a time when all its sources are alive. Ordinary results come when the values that end here are gone.
//! Where no aligned run is free, values that have nothing to do with the instruction move away for its duration, and
//! results are copied to registers of their own behind it.

use super::colouring::{Scan, Site};
use super::liveness::position;
use super::parallel::Copy;
use super::pick::NoRegister;
use super::registers::{Numbers, RegisterSet};
use crate::isa::inst::OperandRef;
use crate::isa::table::Direction;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::vcode::{Block, Entry};
use smallvec::SmallVec;

type Values = SmallVec<[VReg; 4]>;

/// An instruction while it is being coloured.
struct Current<'e> {
    block: Block,
    at: u32,
    entry: &'e Entry<VReg>,
    /// Copies before and behind it.
    before: SmallVec<[Copy; 4]>,
    after: SmallVec<[Copy; 2]>,
    /// Entries in other registers than their values'.
    moved: SmallVec<[(u8, u8); 4]>,
    /// Registers that are written before the instruction.
    early: RegisterSet,
    /// Registers that no other result may be written to.
    held: RegisterSet,
    /// Results that are written to a run and copied from there: `(value, register of the run)`.
    detours: SmallVec<[(VReg, PReg); 4]>,
}

impl Scan<'_> {
    /// Gives the results of an instruction that is no call their registers.
    pub(super) fn instruction(
        &mut self,
        block: Block,
        index: u32,
        entry: &Entry<VReg>,
    ) -> Result<(), NoRegister> {
        let at = position(block, index);
        if !entry.inst.info().wide && self.code.else_values(entry).is_empty() {
            return self.plain_instruction(block, at, entry);
        }
        let mut now = Current {
            block,
            at,
            entry,
            before: SmallVec::new(),
            after: SmallVec::new(),
            moved: SmallVec::new(),
            early: RegisterSet::default(),
            held: RegisterSet::default(),
            detours: SmallVec::new(),
        };
        for operand in entry
            .inst
            .operands()
            .filter(|o| o.info.direction == Direction::In && o.regs.len() > 1)
        {
            self.gather_run(&mut now, &operand)?;
        }
        let kept = self.code.else_values(entry);
        let mut guarded: SmallVec<[(VReg, u8); 4]> = SmallVec::new();
        let mut number = 0;
        let guarding = results(entry).filter(|_| !kept.is_empty());
        for operand in guarding {
            let values = values_of(&operand);
            let kept_here: SmallVec<[Option<VReg>; 4]> = (0..values.len())
                .map(|i| kept.get(number + i).copied().flatten())
                .collect();
            number += values.len();
            if kept_here.iter().any(|k| k.is_some()) {
                self.guarded_result(&mut now, &operand, &values, &kept_here, &mut guarded)?;
            }
        }
        let occupied = self.picker.occupied;
        self.release_dying(block, at, entry);
        for &(v, c) in &guarded {
            self.picker.assign(v, c);
        }
        for operand in results(entry) {
            let values = values_of(&operand);
            if !self.coloured.contains(values[0]) {
                continue;
            }
            let done = guarded.iter().any(|(v, _)| *v == values[0])
                || now.detours.iter().any(|(v, _)| *v == values[0]);
            if !done {
                self.result(&mut now, &operand, &values)?;
            }
        }
        for &(v, from) in &now.detours {
            if self.live.is_dead(v) {
                continue;
            }
            let mut free = self.picker.free(v.class()).minus(*now.held.of(v.class()));
            if self.picker.free(v.class()).contains(from.number()) {
                free.insert(from.number());
            }
            let c = self.picker.pick(v, free)?;
            self.picker.assign(v, c);
            now.after.push(Copy {
                from,
                to: PReg::new(v.class(), c),
            });
        }
        now.after.retain(|c| c.from != c.to);
        if !now.before.is_empty() || !now.moved.is_empty() || !now.after.is_empty() {
            let site = Site {
                before: now.before,
                after: now.after,
                moved: now.moved,
                busy_before: occupied.union(&now.early),
                busy_after: self.picker.occupied.union(&now.held),
            };
            self.sites.push((index, site));
        }
        self.release_dead(entry);
        Ok(())
    }

    /// The same for an instruction without wide operands and values kept: its results take the place of the values that
    /// end in it.
    fn plain_instruction(
        &mut self,
        block: Block,
        at: u32,
        entry: &Entry<VReg>,
    ) -> Result<(), NoRegister> {
        for v in self.code.uses(entry) {
            if self.dies(v, at, block) {
                self.picker.release(v);
            }
        }
        let mut dead = false;
        let coloured = self.coloured;
        for v in entry.inst.definitions().filter(|v| coloured.contains(*v)) {
            let c = self.picker.pick(v, self.picker.free(v.class()))?;
            self.picker.assign(v, c);
            dead |= self.live.is_dead(v);
        }
        if dead {
            self.release_dead(entry);
        }
        Ok(())
    }

    /// Registers for results that keep other values when the guard is false: those of the values kept, where they end
    /// here.
    fn guarded_result(
        &mut self,
        now: &mut Current<'_>,
        operand: &OperandRef<'_, VReg>,
        values: &[VReg],
        kept: &[Option<VReg>],
        guarded: &mut SmallVec<[(VReg, u8); 4]>,
    ) -> Result<(), NoRegister> {
        let class = values[0].class();
        let choices: SmallVec<[(VReg, Numbers); 4]> = values
            .iter()
            .zip(kept)
            .map(|(&v, kept)| {
                let mut free = self.picker.free(class).minus(*now.early.of(class));
                if let Some(kept) = kept.filter(|&k| self.dies(k, now.at, now.block)) {
                    let c = self.picker.colour(kept);
                    if !now.early.of(class).contains(c) {
                        free.insert(c);
                    }
                }
                (v, free)
            })
            .collect();
        let (base, direct) = match self.picker.pick_run(&choices) {
            Ok(base) => (base, true),
            Err(error) if values.len() == 1 => return Err(error),
            Err(_) => (self.make_room(now, class, values.len())?, false),
        };
        for ((i, v), kept) in values.iter().enumerate().zip(kept) {
            let to = PReg::new(class, base + i as u8);
            now.early.insert(to);
            now.held.insert(to);
            if direct {
                guarded.push((*v, to.number()));
            } else {
                now.moved.push((operand.info.first + i as u8, to.number()));
                now.detours.push((*v, to));
            }
            if let Some(kept) = kept
                && self.register(*kept) != to
            {
                now.before.push(Copy {
                    from: self.register(*kept),
                    to,
                });
            }
        }
        Ok(())
    }

    /// Registers for results that need nothing of the past.
    fn result(
        &mut self,
        now: &mut Current<'_>,
        operand: &OperandRef<'_, VReg>,
        values: &[VReg],
    ) -> Result<(), NoRegister> {
        let class = values[0].class();
        let free = self.picker.free(class).minus(*now.held.of(class));
        let choices: SmallVec<[(VReg, Numbers); 4]> = values.iter().map(|&v| (v, free)).collect();
        match self.picker.pick_run(&choices) {
            Ok(base) => {
                for (v, c) in values.iter().zip(base..=u8::MAX) {
                    self.picker.assign(*v, c);
                }
                Ok(())
            }
            Err(error) if values.len() == 1 => Err(error),
            Err(_) => {
                let base = self.make_room(now, class, values.len())?;
                for (i, v) in values.iter().enumerate() {
                    let from = PReg::new(class, base + i as u8);
                    now.held.insert(from);
                    now.moved
                        .push((operand.info.first + i as u8, from.number()));
                    now.detours.push((*v, from));
                }
                Ok(())
            }
        }
    }

    /// Makes the values of a wide operand consecutive and aligned: where they are not, they are copied to a run of
    /// registers that are free, or hold values that are needed for nothing but this operand. As many as possible stay
    /// where they are.
    fn gather_run(
        &mut self,
        now: &mut Current<'_>,
        operand: &OperandRef<'_, VReg>,
    ) -> Result<(), NoRegister> {
        let values = values_of(operand);
        let Some(class) = values.first().map(|v| v.class()) else {
            return Ok(());
        };
        let width = values.len();
        let start = self.picker.colour(values[0]);
        let in_place = usize::from(start) % width == 0
            && values
                .iter()
                .zip(u16::from(start)..)
                .all(|(v, c)| u16::from(self.picker.colour(*v)) == c);
        if in_place {
            return Ok(());
        }
        let mut free = self.picker.free(class);
        for v in &values {
            let everywhere = self.code.uses(now.entry).filter(|u| u == v).count();
            let here = values.iter().filter(|u| *u == v).count();
            if everywhere == here && self.dies(*v, now.at, now.block) {
                free.insert(self.picker.colour(*v));
            }
        }
        let free = free.minus(*now.early.of(class));
        let copies = |base: u8| -> Option<usize> {
            let mut copies = 0;
            for (v, i) in values.iter().zip(0..) {
                let c = base.checked_add(i)?;
                if self.picker.colour(*v) == c {
                    continue;
                }
                if !free.contains(c) {
                    return None;
                }
                copies += 1;
            }
            Some(copies)
        };
        let stage = self.picker.first_stage(class);
        let last = (width - 1) as u8;
        let bases = (0..class.hardwired()).step_by(width);
        let best = bases
            .filter_map(|base| Some((copies(base)?, !stage.contains(base + last), base)))
            .min();
        let base = match best {
            Some((_, _, base)) => base,
            None => self.make_room(now, class, width)?,
        };
        for (i, v) in values.iter().enumerate() {
            let to = PReg::new(class, base + i as u8);
            now.early.insert(to);
            now.moved.push((operand.info.first + i as u8, to.number()));
            if self.register(*v) != to {
                now.before.push(Copy {
                    from: self.register(*v),
                    to,
                });
            }
        }
        Ok(())
    }

    /// An aligned run that may be written before the instruction: a free one, or one whose values are put elsewhere
    /// before the instruction and back behind it. Values that the instruction reads are left alone.
    fn make_room(
        &mut self,
        now: &mut Current<'_>,
        class: RegisterClass,
        width: usize,
    ) -> Result<u8, NoRegister> {
        let mut untouchable = now.early.of(class).union(*now.held.of(class));
        let here = |v: &VReg| v.class() == class && self.coloured.contains(*v);
        for v in self.code.uses(now.entry).filter(here) {
            untouchable.insert(self.picker.colour(v));
        }
        let free = self.picker.free(class).minus(untouchable);
        let movable = self.picker.all(class).minus(untouchable);
        let taken = |base: u8| {
            (base..=base + (width - 1) as u8)
                .filter(|&c| !free.contains(c))
                .count()
        };
        let base = movable
            .runs(width)
            .iter()
            .min_by_key(|&base| taken(base))
            .ok_or(NoRegister(class))?;
        let run = base..=base + (width - 1) as u8;
        let mut places = free.minus(Numbers::range(run.clone())).iter();
        for c in run.filter(|&c| !free.contains(c)) {
            let home = PReg::new(class, c);
            let place = PReg::new(class, places.next().ok_or(NoRegister(class))?);
            now.before.push(Copy {
                from: home,
                to: place,
            });
            now.after.push(Copy {
                from: place,
                to: home,
            });
            now.early.insert(place);
            now.early.insert(home);
            now.held.insert(place);
            now.held.insert(home);
        }
        Ok(base)
    }
}

/// Results in registers.
fn results(entry: &Entry<VReg>) -> impl Iterator<Item = OperandRef<'_, VReg>> {
    entry
        .inst
        .operands()
        .filter(|o| o.info.direction == Direction::Out && o.regs[0].is_some())
}

/// The values of an operand, those in hard-wired registers left out.
fn values_of(operand: &OperandRef<'_, VReg>) -> Values {
    let mut values = Values::new();
    for v in operand.regs.iter().flatten() {
        values.push(*v);
    }
    values
}
