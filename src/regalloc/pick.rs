//! Choosing a register for a value, or an aligned run for several.
//!
//! Preferences in order: the register of the value's web, its place in its run, the register that the calling
//! convention wants, the lowest register that no web or run will want while the value lives, the lowest at all.
//! Registers beside taken ones come first, so that aligned pairs stay whole. The first value of a web or run chooses
//! for all of it, as if they were alive already.

use super::constrain::pressure::Pressure;
use super::liveness::{Liveness, edge_arguments, end_position};
use super::registers::{CALLEE_SAVED, Numbers, RegisterSet};
use super::reservations::{Tables, disturbs, life};
use super::webs::{NONE, Webs};
use crate::abi;
use crate::isa::{Register, RegisterClass, VReg};
use crate::vcode::{Block, FunctionKind, Terminator, VCode};
use smallvec::SmallVec;

/// Arguments of an edge of which [`Picker::rivals`] looks at all chains (*assumed*; bounds the work).
const MOST_ARGUMENTS: usize = 16;

/// Edges back to the starts of loops up to which [`Picker::rivals`] is asked for (*assumed*; bounds the work).
const MOST_ROUNDS: usize = 8;

/// Values whose class has no register left, or no aligned run.
pub(super) struct NoRegister(pub RegisterClass);

/// Registers of the machine that may be chosen.
#[derive(Debug)]
pub(super) struct Picker<'a> {
    code: &'a VCode<VReg>,
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
    /// The same with those between them that are never given out.
    file: [Numbers; 3],
    /// Where to look, by class.
    areas: [Areas; 3],
    tables: &'a mut Tables,
    /// Blocks that pass values to the start of a loop for its next round; none where there are more than
    /// [`MOST_ROUNDS`].
    rounds: SmallVec<[Block; MOST_ROUNDS]>,
}

/// Registers to look at one set after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Areas {
    /// As many as are needed, up to the next step of occupancy: slack in it costs nothing and saves copies.
    tight: Numbers,
    /// What costs less than a copy.
    near: Numbers,
    all: Numbers,
}

impl Areas {
    /// The areas in pairs: what is no good in both of one is looked for in those of the next.
    fn pairs(&self) -> [[Numbers; 2]; 2] {
        [[self.tight, self.near], [self.all, Numbers::default()]]
    }
}

impl<'a> Picker<'a> {
    pub fn new(
        code: &'a VCode<VReg>,
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
        let file = all.map(|all| Numbers::below(all.last().map_or(0, |last| u32::from(last) + 1)));
        let step =
            |class: usize| (pressure.max_live[class] + 1).next_multiple_of(abi::REGISTER_STEP);
        let mut areas = RegisterClass::ALL.map(|class| {
            let all = all[class as usize];
            let tight = Numbers::below(step(class as usize)).and(all);
            Areas {
                tight,
                near: tight,
                all,
            }
        });
        if code.kind == FunctionKind::Device {
            // A callee-saved register costs a store and a load.
            let cheap = all[gpr].minus(CALLEE_SAVED);
            let areas = &mut areas[gpr];
            areas.tight = areas.tight.and(cheap);
            areas.near = Numbers::below(step(gpr).max(40)).and(cheap);
        }
        tables.clear();
        for &(v, register) in webs.hinted() {
            if !live.is_dead(v) {
                tables.hint(v.class(), register, life(live, webs, v));
            }
        }
        let jumps_back = |&block: &Block| match &code.blocks[block].terminator {
            Terminator::Jump { target, args } => *target <= block && !args.is_empty(),
            _ => false,
        };
        let mut rounds: SmallVec<[Block; MOST_ROUNDS]> = SmallVec::new();
        let back = code.blocks.keys().filter(jumps_back);
        rounds.extend(back.take(MOST_ROUNDS + 1));
        if rounds.len() > MOST_ROUNDS {
            rounds.clear();
        }
        Picker {
            code,
            rounds,
            live,
            pressure,
            webs,
            colour,
            occupied: RegisterSet::default(),
            used: RegisterSet::default(),
            all,
            file,
            areas,
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
            (true, RegisterClass::Gpr) => all.and(CALLEE_SAVED),
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
        self.areas[class as usize].near
    }

    /// Whether, seen from the position `now`, nothing will want register `c` while `v` lives.
    fn is_clear(&self, v: VReg, c: u8, now: u32) -> bool {
        let list = &self.tables.reserved[v.class() as usize][usize::from(c)];
        list.is_empty() || !disturbs(list, life(self.live, self.webs, v), now)
    }

    /// Whether besides the calling convention will not want register `c` for another value while `v` lives.
    fn is_undisturbed(&self, v: VReg, c: u8, now: u32) -> bool {
        let list = &self.tables.hinted[v.class() as usize][usize::from(c)];
        (list.is_empty() || !disturbs(list, life(self.live, self.webs, v), now))
            && self.is_clear(v, c, now)
    }

    /// The members of the web of `v` that have no registers yet.
    fn to_come(&self, v: VReg) -> impl Iterator<Item = VReg> + '_ {
        let members = self.webs.members(v);
        members.filter(|m| self.colour[m.index()] == NONE)
    }

    /// Registers of `free` that all members of a web may have.
    fn open_to_web(&self, v: VReg, free: Numbers) -> Numbers {
        let universes = self.to_come(v).map(|m| self.universe(m));
        universes.fold(free, Numbers::and)
    }

    /// Registers that hold nothing now, or nothing any more when the first value of a web is defined.
    fn free_for_web(&self, v: VReg) -> Numbers {
        let class = v.class();
        let mut free = self.free(class);
        let first = self.to_come(v).map(|m| self.live.def_position(m)).min();
        for c in self.occupied.of(class).iter() {
            let end = self.tables.occupant_end[class as usize].get(usize::from(c));
            if end.is_some_and(|&end| Some(end) <= first) {
                free.insert(c);
            }
        }
        free.and(self.all[class as usize])
    }

    /// A register for `v`, which is being defined, out of `free`.
    pub fn pick(&mut self, v: VReg, free: Numbers) -> Result<u8, NoRegister> {
        let class = v.class();
        let free = free.and(self.universe(v));
        let web = self.webs.colour(v);
        if web != NONE {
            if free.contains(web) {
                return Ok(web);
            }
        } else if let Some((run, offset)) = self.webs.run(v)
            && let Some(base) = self.choose_base(run, &[(v, free)])
        {
            return Ok(base + offset);
        }
        // The first of its web chooses for all.
        let choosing = web == NONE && self.webs.is_joined(v);
        let open = if choosing {
            self.open_to_web(v, free)
        } else {
            free
        };
        let now = self.live.def_position(v);
        let for_web = |c: u8, good: &dyn Fn(VReg, u8) -> bool| {
            if choosing {
                self.to_come(v).all(|m| good(m, c))
            } else {
                good(v, c)
            }
        };
        let hint = self.webs.hint(v);
        // A web that lives across calls has a register that callees keep, where that is free: all of it, or a loop
        // copies in every turn.
        let hinted = if open.is_empty() { free } else { open };
        if hint != NONE && hinted.contains(hint) && self.is_clear(v, hint, now) {
            return Ok(hint);
        }
        // Beside a register that is taken or never given out, not beside the end of the file.
        let beside = self.file[class as usize].minus(free).partners();
        let rivals = self.rivals(v);
        if !rivals.is_empty() {
            let [areas, _] = self.areas[class as usize].pairs();
            let best = areas.iter().find_map(|area| {
                let candidates = open.minus(rivals).and(*area);
                candidates.find(|c| self.is_undisturbed(v, c, now))
            });
            if let Some(c) = best {
                return Ok(c);
            }
        }
        for areas in self.areas[class as usize].pairs() {
            if !open.is_empty() && areas.iter().all(|area| open.and(*area).is_empty()) {
                continue;
            }
            let find = |good: &dyn Fn(u8) -> bool| {
                areas.iter().find_map(|area| {
                    let candidates = open.and(*area);
                    let first = candidates.and(beside).find(good);
                    first.or_else(|| candidates.minus(beside).find(good))
                })
            };
            let best = find(&|c| for_web(c, &|m, c| self.is_undisturbed(m, c, now)))
                .or_else(|| find(&|c| for_web(c, &|m, c| self.is_clear(m, c, now))))
                .or_else(|| find(&|c| self.is_clear(v, c, now)))
                .or_else(|| areas.iter().find_map(|area| free.and(*area).first()));
            if let Some(c) = best {
                return Ok(c);
            }
        }
        Err(NoRegister(class))
    }

    /// Registers in which `v` would change places with other values when a loop goes round: it is passed to a parameter
    /// whose register holds what moves on to these. A value that only moves costs one copy less than one that changes
    /// places.
    fn rivals(&self, v: VReg) -> Numbers {
        let mut moved_on = Numbers::default();
        // One that chooses for others, too, has more to see to.
        if self.rounds.is_empty() || self.webs.has_company(v) {
            return moved_on;
        }
        let rounds = self.rounds.iter().copied();
        let mut passing = rounds.filter(|&block| {
            let end = end_position(self.code, block);
            self.live.uses(v).binary_search(&end).is_ok()
        });
        let Some(block) = passing.next() else {
            return moved_on;
        };
        let same_class = |&(_, param): &(VReg, VReg)| param.class() == v.class();
        let edge = || {
            let arguments = edge_arguments(self.code, block).filter(same_class);
            arguments.take(MOST_ARGUMENTS)
        };
        let Some((_, target)) = edge().find(|(arg, _)| *arg == v) else {
            return moved_on;
        };
        let own = self.colour(target);
        if own == NONE {
            return moved_on;
        }
        moved_on.insert(own);
        loop {
            let before = moved_on;
            for (arg, param) in edge() {
                let (from, to) = (self.colour(arg), self.colour(param));
                if arg != v && from != NONE && to != NONE && moved_on.contains(from) {
                    moved_on.insert(to);
                }
            }
            if moved_on == before {
                moved_on.remove(own);
                return moved_on;
            }
        }
    }

    /// An aligned run for values that one operand defines together; each has registers of its own to choose from.
    pub fn pick_run(&mut self, values: &[(VReg, Numbers)]) -> Result<u8, NoRegister> {
        let width = values.len();
        let first = values[0].0;
        let class = first.class();
        if width == 1 {
            return self.pick(first, values[0].1);
        }
        let mut runs = self.all[class as usize];
        for (offset, (v, free)) in (0u8..).zip(values) {
            runs = runs.and(free.and(self.universe(*v)).below_by(offset));
        }
        let runs = runs.and(Numbers::aligned(width));
        for (offset, (v, _)) in (0u8..).zip(values) {
            let web = self.webs.colour(*v);
            if web != NONE
                && let Some(base) = web.checked_sub(offset)
                && runs.contains(base)
            {
                return Ok(base);
            }
        }
        if let Some((run, offset)) = self.webs.run(first) {
            let whole = (offset..)
                .zip(values)
                .all(|(place, (v, _))| self.webs.run(*v) == Some((run, place)));
            if whole
                && let Some(base) = self.choose_base(run, values).map(|base| base + offset)
                && runs.contains(base)
            {
                return Ok(base);
            }
        }
        let now = self.live.def_position(first);
        let clear = |base: u8| {
            let mut places = (base..=u8::MAX).zip(values);
            places.all(|(c, (v, _))| self.is_clear(*v, c, now))
        };
        for areas in self.areas[class as usize].pairs() {
            let candidates = areas.map(|area| runs.and(area));
            let best = candidates.iter().find_map(|c| c.find(clear));
            let any = || candidates.iter().find_map(|c| c.first());
            if let Some(base) = best.or_else(any) {
                return Ok(base);
            }
        }
        Err(NoRegister(class))
    }

    /// First register for a run of which `now` is being defined, such that the members of all its webs will find their
    /// places free.
    fn choose_base(&self, run: u32, now: &[(VReg, Numbers)]) -> Option<u8> {
        let info = *self.webs.run_info(run);
        if info.base != NONE {
            return None;
        }
        let (class, position) = (now[0].0.class(), self.live.def_position(now[0].0));
        let members = || (0u8..).zip(info.members).filter_map(|(o, m)| Some((o, m?)));
        let mut bases = Numbers::aligned(usize::from(info.width));
        for (offset, m) in members() {
            let web = self.webs.web(m);
            let colour = self.webs.colour(m);
            let open = if colour != NONE {
                Numbers::range(colour..=colour)
            } else {
                let here = now.iter().find(|(v, _)| self.webs.web(*v) == web);
                let free = here.map_or_else(|| self.free_for_web(m), |(_, free)| *free);
                self.open_to_web(m, free)
            };
            bases = bases.and(open.below_by(offset));
        }
        let fits = |base: u8, good: &dyn Fn(VReg, u8) -> bool| {
            members().all(|(offset, m)| {
                self.webs.colour(m) != NONE || self.to_come(m).all(|v| good(v, base + offset))
            })
        };
        let undisturbed = |v: VReg, c: u8| self.is_undisturbed(v, c, position);
        let clear = |v: VReg, c: u8| self.is_clear(v, c, position);
        for (offset, m) in members() {
            let hint = self.webs.hint(m);
            if hint != NONE
                && let Some(base) = hint.checked_sub(offset)
                && bases.contains(base)
                && fits(base, &clear)
            {
                return Some(base);
            }
        }
        // Copies of values that stand elsewhere will come to the places without members.
        let free = self.free(class);
        let gaps = (0u8..info.width).filter(|o| info.members[usize::from(*o)].is_none());
        let roomy = gaps.fold(bases, |bases, o| bases.and(free.below_by(o)));
        self.areas[class as usize].pairs().iter().find_map(|areas| {
            let find = |good: &dyn Fn(VReg, u8) -> bool| {
                areas.iter().find_map(|area| {
                    let whole = bases.and(area.and(area.below_by(info.width - 1)));
                    let first = whole.and(roomy).find(|base| fits(base, good));
                    first.or_else(|| whole.minus(roomy).find(|base| fits(base, good)))
                })
            };
            find(&undisturbed).or_else(|| find(&clear))
        })
    }

    /// Gives `v` the register `c`.
    pub fn assign(&mut self, v: VReg, c: u8) {
        let class = v.class() as usize;
        self.colour[v.index()] = c;
        self.occupied.of_mut(v.class()).insert(c);
        self.used.of_mut(v.class()).insert(c);
        self.tables.occupant_end[class][usize::from(c)] = self.live.end(v);
        if !self.webs.has_company(v) || !self.webs.set_colour(v, c) {
            return;
        }
        self.reserve(v, c);
        if let Some((run, offset)) = self.webs.run(v)
            && c >= offset
        {
            let info = *self.webs.run_info(run);
            let base = c - offset;
            if info.base == NONE && base.is_multiple_of(info.width) {
                self.webs.set_base(run, base);
                for (m, place) in info.members.iter().zip(base..=u8::MAX) {
                    if let Some(m) = m
                        && self.webs.set_colour(*m, place)
                    {
                        self.reserve(*m, place);
                    }
                }
            }
        }
    }

    /// Keeps the register `c` for the members to come of the web of `v`.
    fn reserve(&mut self, v: VReg, c: u8) {
        for m in self.webs.members(v) {
            if self.colour[m.index()] == NONE {
                let life = life(self.live, self.webs, m);
                self.tables.reserve(v.class(), c, life);
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
