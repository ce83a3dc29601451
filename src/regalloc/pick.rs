//! Choosing a register for a value, or an aligned run for several.
//!
//! Preferences in order: the register of the value's web, its place in its run, the register that the calling convention wants, the
//! lowest register that no web or run will want while the value lives, the lowest at all. Registers beside taken ones come first, so that
//! aligned pairs stay whole.

use super::constrain::pressure::Pressure;
use super::liveness::Liveness;
use super::registers::{Numbers, RegisterSet};
use super::webs::{NONE, Webs};
use crate::abi;
use crate::isa::{Register, RegisterClass, VReg};
use crate::vcode::{FunctionKind, VCode};

/// Values whose class has no register left, or no aligned run.
pub(super) struct NoRegister(pub RegisterClass);

/// Registers of the machine that may be chosen.
#[derive(Debug)]
pub(super) struct Picker<'a> {
    pub live: &'a Liveness,
    pub pressure: &'a Pressure,
    pub webs: &'a mut Webs,
    /// The register of every value that has one.
    pub colour: &'a mut Vec<u8>,
    /// Registers that hold values which are alive here.
    pub occupied: RegisterSet,
    /// Registers given to any value so far.
    pub used: RegisterSet,
    all: [Numbers; 3],
    /// Masks to try one after the other, by class.
    stages: [[Numbers; 2]; 3],
    tables: &'a mut Tables,
}

/// What is known of each register, by class and number; kept between functions.
#[derive(Debug)]
pub(super) struct Tables {
    /// Positions at which webs and runs will want the register, ascending.
    wanted: [Vec<Vec<u32>>; 3],
    /// Positions at which values begin that the calling convention wants in the register, ascending.
    hinted: [Vec<Vec<u32>>; 3],
    /// Registers of which a list is not empty.
    touched: Vec<(usize, u8)>,
    /// Where the life of the register's present value ends.
    occupant_end: [Vec<u32>; 3],
}

impl Default for Tables {
    fn default() -> Self {
        let size = |class: RegisterClass| usize::from(class.hardwired());
        Tables {
            wanted: RegisterClass::ALL.map(|class| vec![Vec::new(); size(class)]),
            hinted: RegisterClass::ALL.map(|class| vec![Vec::new(); size(class)]),
            touched: Vec::new(),
            occupant_end: RegisterClass::ALL.map(|class| vec![0; size(class)]),
        }
    }
}

impl Tables {
    fn clear(&mut self) {
        for (class, c) in self.touched.drain(..) {
            self.wanted[class][usize::from(c)].clear();
            self.hinted[class][usize::from(c)].clear();
        }
        self.occupant_end.iter_mut().for_each(|list| list.fill(0));
    }

    /// Notes that a web or run wants a register for a value that is defined at `position`.
    fn want(&mut self, class: RegisterClass, c: u8, position: u32) {
        note(&mut self.wanted, &mut self.touched, (class, c), position);
    }

    /// Notes that the calling convention wants a register for a value that is defined at `position`.
    fn hint(&mut self, class: RegisterClass, c: u8, position: u32) {
        note(&mut self.hinted, &mut self.touched, (class, c), position);
    }
}

/// Adds a position to the list of a register.
fn note(
    lists: &mut [Vec<Vec<u32>>; 3],
    touched: &mut Vec<(usize, u8)>,
    (class, c): (RegisterClass, u8),
    position: u32,
) {
    if let Some(list) = lists[class as usize].get_mut(usize::from(c)) {
        touched.push((class as usize, c));
        let place = list.partition_point(|&p| p < position);
        list.insert(place, position);
    }
}

impl<'a> Picker<'a> {
    pub fn new(
        code: &VCode<VReg>,
        gpr_limit: u8,
        live: &'a Liveness,
        pressure: &'a Pressure,
        webs: &'a mut Webs,
        tables: &'a mut Tables,
        colour: &'a mut Vec<u8>,
    ) -> Self {
        colour.clear();
        colour.resize(code.vreg_count as usize, NONE);
        let mut all = RegisterClass::ALL.map(|class| Numbers::below(u32::from(class.hardwired())));
        let gpr = RegisterClass::Gpr as usize;
        all[gpr] = Numbers::below(u32::from(gpr_limit));
        all[gpr].remove(abi::STACK_POINTER.number());
        let mut stages = RegisterClass::ALL.map(|class| {
            // Slack up to the next step of occupancy costs nothing and saves copies.
            let needed = pressure.max_live[class as usize] + 1;
            let step = Numbers::below(needed.next_multiple_of(abi::REGISTER_STEP));
            [step.and(all[class as usize]), all[class as usize]]
        });
        if code.kind == FunctionKind::Device {
            // A callee-saved register costs a store and a load.
            let saved = Numbers::range(abi::CALLEE_SAVED);
            let cheap = all[gpr].minus(saved);
            let near = cheap.and(Numbers::below(
                (pressure.max_live[gpr] + 1)
                    .next_multiple_of(abi::REGISTER_STEP)
                    .max(40),
            ));
            stages[gpr] = [near, all[gpr]];
        }
        tables.clear();
        for &(v, register) in webs.hinted() {
            if !live.is_dead(v) {
                tables.hint(v.class(), register, live.def_position(v));
            }
        }
        Picker {
            live,
            pressure,
            webs,
            colour,
            occupied: RegisterSet::default(),
            used: RegisterSet::default(),
            all,
            stages,
            tables,
        }
    }

    /// The register of a value that has one.
    pub fn colour(&self, v: VReg) -> u8 {
        self.colour[v.index()]
    }

    /// Registers that a value may have at all.
    fn universe(&self, v: VReg) -> Numbers {
        let all = self.all[v.class() as usize];
        match (self.pressure.across_call[v.index()], v.class()) {
            (false, _) => all,
            (true, RegisterClass::Gpr) => all.and(Numbers::range(abi::CALLEE_SAVED)),
            // Callees keep neither predicates nor uniform registers.
            (true, _) => Numbers::default(),
        }
    }

    /// Registers of a class that hold nothing, those that may not be chosen included.
    pub fn free(&self, class: RegisterClass) -> Numbers {
        self.all[class as usize].minus(*self.occupied.of(class))
    }

    /// Registers of a class that may be chosen at all.
    pub fn all(&self, class: RegisterClass) -> Numbers {
        self.all[class as usize]
    }

    /// Registers to prefer first, by class.
    pub fn first_stage(&self, class: RegisterClass) -> Numbers {
        self.stages[class as usize][0]
    }

    /// Whether nothing will want register `c` while `v`, defined at `position`, lives.
    fn is_clear(&self, v: VReg, c: u8, position: u32) -> bool {
        let wanted = &self.tables.wanted[v.class() as usize][usize::from(c)];
        let next = wanted.partition_point(|&p| p <= position);
        wanted.get(next).is_none_or(|&p| p > self.live.end(v))
    }

    /// Whether besides the calling convention will not want register `c` for another value while `v`, defined at `position`, lives.
    fn is_undisturbed(&self, v: VReg, c: u8, position: u32) -> bool {
        let hinted = &self.tables.hinted[v.class() as usize][usize::from(c)];
        let next = hinted.partition_point(|&p| p <= position);
        // Where `v` ends the other may begin.
        hinted.get(next).is_none_or(|&p| p >= self.live.end(v)) && self.is_clear(v, c, position)
    }

    /// A register for `v`, defined at `position`, out of `free`.
    pub fn pick(&mut self, v: VReg, position: u32, free: Numbers) -> Result<u8, NoRegister> {
        let class = v.class();
        let free = free.and(self.universe(v));
        let web = self.webs.colour(v);
        if web != NONE && free.contains(web) {
            return Ok(web);
        }
        if let Some((run, offset)) = self.webs.run(v) {
            let base = self.webs.run_info(run).base;
            if base == NONE {
                if let Some(base) = self.choose_base(run, position, &[(v, free)]) {
                    return Ok(base + offset);
                }
            } else if free.contains(base + offset) && self.is_clear(v, base + offset, position) {
                return Ok(base + offset);
            }
        }
        let hint = self.webs.hint(v);
        if hint != NONE && free.contains(hint) && self.is_clear(v, hint, position) {
            return Ok(hint);
        }
        let last = self.all[class as usize].last().unwrap_or(0);
        for stage in &self.stages[class as usize] {
            let candidates = free.and(*stage);
            // Beside a register that is taken, not beside the end of the file.
            let beside_taken = |c: &u8| c ^ 1 <= last && !free.contains(c ^ 1);
            let find = |good: &dyn Fn(u8) -> bool| {
                let mut beside = candidates.iter().filter(beside_taken);
                let first = beside.find(|&c| good(c));
                first.or_else(|| candidates.iter().find(|&c| good(c)))
            };
            let best = find(&|c| self.is_undisturbed(v, c, position))
                .or_else(|| find(&|c| self.is_clear(v, c, position)))
                .or_else(|| candidates.iter().next());
            if let Some(c) = best {
                return Ok(c);
            }
        }
        Err(NoRegister(class))
    }

    /// An aligned run for values that one operand defines together at `position`; each has registers of its own to choose from.
    pub fn pick_run(
        &mut self,
        values: &[(VReg, Numbers)],
        position: u32,
    ) -> Result<u8, NoRegister> {
        let width = values.len();
        let first = values[0].0;
        let class = first.class();
        if width == 1 {
            return self.pick(first, position, values[0].1);
        }
        let fits = |this: &Self, base: u8| {
            usize::from(base) % width == 0
                && values.iter().enumerate().all(|(i, (v, free))| {
                    let c = base.checked_add(i as u8);
                    c.is_some_and(|c| free.contains(c) && this.universe(*v).contains(c))
                })
        };
        for (i, (v, _)) in values.iter().enumerate() {
            let web = self.webs.colour(*v);
            if web != NONE
                && let Some(base) = web.checked_sub(i as u8)
                && fits(self, base)
            {
                return Ok(base);
            }
        }
        if let Some((run, offset)) = self.webs.run(first) {
            let info = self.webs.run_info(run);
            let (base, members) = (info.base, info.members);
            let whole = values
                .iter()
                .enumerate()
                .all(|(i, (v, _))| members.get(usize::from(offset) + i) == Some(&Some(*v)));
            if whole {
                let base = if base == NONE {
                    self.choose_base(run, position, values)
                } else {
                    Some(base)
                };
                if let Some(base) = base.map(|b| b + offset)
                    && fits(self, base)
                {
                    return Ok(base);
                }
            }
        }
        let mut runs = values[0].1;
        for (i, (v, free)) in values.iter().enumerate() {
            let mut shifted = Numbers::default();
            for c in free
                .and(self.universe(*v))
                .iter()
                .filter(|&c| usize::from(c) % width == i)
            {
                shifted.insert(c - i as u8);
            }
            runs = runs.and(shifted);
        }
        for stage in &self.stages[class as usize] {
            let candidates = runs.and(*stage);
            let clear = |base: &u8| {
                values
                    .iter()
                    .enumerate()
                    .all(|(i, (v, _))| self.is_clear(*v, base + i as u8, position))
            };
            if let Some(base) = candidates
                .iter()
                .find(clear)
                .or_else(|| candidates.iter().next())
            {
                return Ok(base);
            }
        }
        Err(NoRegister(class))
    }

    /// First register for a run of which `now` is being defined at `position`, such that the other members will find their places free.
    fn choose_base(&mut self, run: u32, position: u32, now: &[(VReg, Numbers)]) -> Option<u8> {
        let info = self.webs.run_info(run).clone();
        let class = now[0].0.class();
        let width = info.width;
        let members: Vec<(u8, VReg)> = (0..width)
            .filter_map(|o| info.members[usize::from(o)].map(|m| (o, m)))
            .collect();
        let fits = |this: &Self, base: u8| {
            members.iter().all(|&(offset, m)| {
                let Some(c) = base.checked_add(offset) else {
                    return false;
                };
                if let Some((_, free)) = now.iter().find(|(v, _)| *v == m) {
                    return free.contains(c)
                        && this.universe(m).contains(c)
                        && this.is_clear(m, c, position);
                }
                let present = this.colour(m);
                if present != NONE {
                    return present == c;
                }
                let table = class as usize;
                this.universe(m).contains(c)
                    && (!this.occupied.of(class).contains(c)
                        || this.live.def_position(m) > position
                            && this.tables.occupant_end[table][usize::from(c)]
                                <= this.live.def_position(m))
                    && this.is_clear(m, c, position)
            })
        };
        for &(offset, m) in &members {
            for wish in [self.webs.colour(m), self.webs.hint(m)] {
                if wish != NONE
                    && let Some(base) = wish.checked_sub(offset)
                    && base % width == 0
                    && fits(self, base)
                {
                    return Some(base);
                }
            }
        }
        let stages = &self.stages[class as usize];
        stages.iter().find_map(|stage| {
            stage
                .iter()
                .map(|c| c & !(width - 1))
                .filter(|base| stage.contains(base + (width - 1)))
                .find(|&base| fits(self, base))
        })
    }

    /// Gives `v`, defined at `position`, the register `c`.
    pub fn assign(&mut self, v: VReg, c: u8) {
        let class = v.class() as usize;
        self.colour[v.index()] = c;
        self.occupied.of_mut(v.class()).insert(c);
        self.used.of_mut(v.class()).insert(c);
        self.tables.occupant_end[class][usize::from(c)] = self.live.end(v);
        if self.webs.set_colour(v, c) {
            for &m in self.webs.members(v) {
                if self.colour[m.index()] == NONE {
                    self.tables.want(v.class(), c, self.live.def_position(m));
                }
            }
        }
        if let Some((run, offset)) = self.webs.run(v) {
            let info = self.webs.run_info(run);
            if info.base == NONE && c >= offset && (c - offset).is_multiple_of(info.width) {
                let base = c - offset;
                let members = info.members;
                self.webs.set_base(run, base);
                for (m, place) in members.iter().zip(base..) {
                    if let Some(m) = m
                        && self.colour[m.index()] == NONE
                    {
                        self.tables
                            .want(v.class(), place, self.live.def_position(*m));
                    }
                }
            }
        }
    }

    /// Starts a block whose live-in values all have registers.
    pub fn enter(&mut self, live_in: impl Iterator<Item = VReg>) -> Result<(), VReg> {
        self.occupied = RegisterSet::default();
        for v in live_in {
            let c = self.colour(v);
            if c == NONE {
                return Err(v);
            }
            self.occupied.of_mut(v.class()).insert(c);
            if let Some(end) = self.tables.occupant_end[v.class() as usize].get_mut(usize::from(c))
            {
                *end = self.live.end(v);
            }
        }
        Ok(())
    }

    /// The value's life ends here.
    pub fn release(&mut self, v: VReg) {
        let c = self.colour(v);
        self.occupied.of_mut(v.class()).remove(c);
    }
}
