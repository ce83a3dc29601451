//! A warp: its registers, and its lanes in groups with a program counter each.
//!
//! Lanes that run together are a *group*. A divergent branch splits the current group; convergence barriers put groups
//! together again. One group runs at a time: until it waits or ends, at the latest until a backward jump or
//! [`GROUP_TURN`] instructions, then the next one that can, so that no group starves.
//!
//! Every lane has its own view of the sixteen convergence barriers, the mask of lanes it entered the region with. Where
//! all lanes of a mask agree, as in every program that sets a barrier before it waits, this is the barrier of the warp;
//! where disjoint groups use the same number at the same time (two sides of a branch), they do not disturb each other.

pub(crate) mod calls;
pub(crate) mod group;
pub(crate) mod registers;
pub(crate) mod rounds;

pub use self::group::{BARRIERS, Group, GroupState};

use self::group::{Standing, View, Views};
use crate::isa::random::Random;
use crate::sim::decode::program::{Broadcast, Program};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::banks::Banks;
use crate::sim::memory::local::Local;
use crate::sim::warp::calls::Calls;
use crate::sim::warp::registers::{Column, LANE, LANES, Registers, THREADS, lanes};
use crate::sim::warp::rounds::Rounds;
use smallvec::SmallVec;

/// Instructions after which another group of the warp gets its turn (assigned).
pub(super) const GROUP_TURN: u32 = 256;

/// The number of instructions of a random turn, most often a few, of groups and of warps (assigned).
pub(super) fn random_turn(random: &mut Random) -> u32 {
    let most = 1 << random.below(7);
    1 + random.below(most) as u32
}

/// What a warp as a whole can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpState {
    /// Issue.
    Ready,
    /// Nothing until the CTA's barrier opens.
    AtCtaBarrier,
    /// Nothing any more.
    Done,
    /// Nothing, and no other warp can help.
    Stuck,
}

/// A warp.
#[derive(Clone, Hash)]
pub struct Warp {
    /// Its registers.
    pub registers: Registers,
    /// Local memory of its threads.
    pub local: Local,
    /// Lanes that have not exited.
    pub live: u32,
    /// Instructions issued.
    pub issued: u64,
    /// Number of its 32 threads in the CTA: thread / 32. Pieces of a warp share it.
    pub index: u32,
    /// Lanes of those 32 threads that are in other pieces.
    pub apart: u32,
    /// The calls that its threads are in.
    pub calls: Calls,
    /// Whether it goes round in a circle, as far as checks know.
    pub(super) rounds: Rounds,
    /// Whether constant banks are shorter than what instructions of its program read.
    pub(super) lacks_constants: bool,
    /// The lanes' views of each barrier.
    barriers: [Views; BARRIERS],
    /// The barriers that any lane has set: a mask.
    set: u16,
    groups: Vec<Group>,
    current: usize,
    turn: u32,
    /// Where turns of groups are random, what decides on them.
    random: Option<Random>,
}

impl Warp {
    /// A warp without live lanes.
    pub fn new(local: Local) -> Warp {
        Warp {
            registers: Registers::new(),
            local,
            live: 0,
            issued: 0,
            index: 0,
            apart: 0,
            calls: Calls::default(),
            rounds: Rounds::default(),
            lacks_constants: false,
            barriers: Default::default(),
            set: 0,
            groups: Vec::with_capacity(LANES),
            current: 0,
            turn: 0,
            random: None,
        }
    }

    /// Makes it a warp of a launch: the one of this number in its CTA, for as many [`Warp::start`]s as there are.
    pub fn prepare(&mut self, index: u32, program: &Program, banks: &Banks, block: [u32; 3]) {
        self.index = index;
        self.lacks_constants = false;
        for Broadcast { column, source } in &program.constants {
            match source.fixed(banks) {
                Ok(value) => *self.registers.column_mut(*column) = [value; LANES],
                Err(_) => self.lacks_constants = true,
            }
        }
        for lane in 0..LANES {
            let thread = Shape::coordinates(block, u64::from(index) * LANES as u64 + lane as u64);
            for (column, value) in (THREADS..).zip(thread) {
                self.registers.column_mut(column)[lane] = value;
            }
            self.registers.column_mut(LANE)[lane] = lane as u32;
        }
    }

    /// Starts the lanes of `mask` at instruction `entry` with the first `count` general registers 0.
    pub fn start(&mut self, mask: u32, entry: u32, count: usize) {
        self.registers.clear(count);
        self.local.reset();
        self.calls.clear();
        self.rounds = Rounds::default();
        for barrier in lanes(self.set.into()) {
            self.barriers[barrier].clear();
        }
        self.set = 0;
        (self.live, self.issued, self.current, self.turn) = (mask, 0, 0, 0);
        self.groups.clear();
        if mask != 0 {
            self.groups.push(Group {
                pc: entry,
                mask,
                state: GroupState::Ready,
            });
        }
    }

    /// Gives its groups turns at random, or in order.
    pub fn take_turns(&mut self, random: Option<Random>) {
        self.random = random;
    }

    /// What it can do.
    pub fn state(&self) -> WarpState {
        match self.groups.get(self.current) {
            None => WarpState::Done,
            Some(group) => match group.state {
                GroupState::Ready => WarpState::Ready,
                _ if self
                    .groups
                    .iter()
                    .all(|g| g.state == GroupState::AtCtaBarrier) =>
                {
                    WarpState::AtCtaBarrier
                }
                _ => WarpState::Stuck,
            },
        }
    }

    /// The group that issues next; only when the state is [`WarpState::Ready`].
    #[inline(always)]
    pub fn group(&self) -> Group {
        self.groups[self.current]
    }

    /// Its groups.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Whether its current group has issued nothing since it got its turn.
    pub(super) fn begins_turn(&self) -> bool {
        self.turn == 0
    }

    /// Where it is.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            groups: self.groups.clone(),
            current: self.current,
            live: self.live,
            turn: self.turn,
            barriers: self.barriers.clone(),
        }
    }

    /// Whether it is there.
    pub(super) fn is_standing(&self, there: &Standing) -> bool {
        (self.current, self.live, self.turn) == (there.current, there.live, there.turn)
            && self.groups == there.groups
            && self.barriers == there.barriers
    }

    /// Goes on to the next instruction.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.groups[self.current].pc += 1;
        self.turn += 1;
        if self.turn >= GROUP_TURN {
            self.next_group();
        }
    }

    /// Gives the next group that can run its turn; the current one again if there is no other.
    fn next_group(&mut self) {
        self.turn = 0;
        let count = self.groups.len();
        if count == 1 {
            self.current = 0;
            return;
        }
        let ready = |i: &usize| self.groups[*i].state == GroupState::Ready;
        if let Some(random) = &mut self.random {
            self.turn = GROUP_TURN - random_turn(random);
            let skipped = random.below((0..count).filter(ready).count().max(1));
            self.current = (0..count).filter(ready).nth(skipped).unwrap_or(0);
            return;
        }
        let first = match self.current + 1 {
            first if first < count => first,
            // Groups may have gone since.
            first => first.checked_rem(count).unwrap_or(0),
        };
        let next = (first..count).find(ready);
        self.current = next.or_else(|| (0..first).find(ready)).unwrap_or(0);
    }

    /// Gives one of the groups that can run its turn, if there is one: `choice` modulo their number.
    pub(super) fn choose_group(&mut self, choice: usize) {
        let ready = |i: &usize| self.groups[*i].state == GroupState::Ready;
        let count = (0..self.groups.len()).filter(ready).count();
        let choice = choice.checked_rem(count);
        let chosen = choice.and_then(|n| (0..self.groups.len()).filter(ready).nth(n));
        if let Some(group) = chosen {
            (self.current, self.turn) = (group, 0);
        }
    }

    /// Splits the lanes outside `mask` off the current group; they go on with the next instruction. Returns whether
    /// lanes are left.
    pub fn narrow(&mut self, mask: u32) -> bool {
        let group = &mut self.groups[self.current];
        let rest = group.mask & !mask;
        if mask & group.mask == 0 {
            self.advance();
            return false;
        }
        if rest != 0 {
            let pc = group.pc + 1;
            group.mask &= mask;
            self.groups.push(Group {
                pc,
                mask: rest,
                state: GroupState::Ready,
            });
            self.shorten_turn();
        }
        true
    }

    /// The turn of a group that has just parted from others, which was alone and may be long, becomes a random one.
    fn shorten_turn(&mut self) {
        if let Some(random) = &mut self.random {
            self.turn = self.turn.max(GROUP_TURN - random_turn(random));
        }
    }

    /// Splits the lanes of `mask`, which are not all of the current group, off it; they execute the same instruction
    /// later.
    pub fn leave_here(&mut self, mask: u32) {
        let group = &mut self.groups[self.current];
        let rest = group.mask & mask;
        if rest != 0 {
            let pc = group.pc;
            group.mask &= !rest;
            self.groups.push(Group {
                pc,
                mask: rest,
                state: GroupState::Ready,
            });
        }
    }

    /// Sends the lanes of `mask` to an instruction, the others of the current group to the next one.
    pub fn jump(&mut self, mask: u32, target: u32) {
        if !self.narrow(mask) {
            return;
        }
        let group = &mut self.groups[self.current];
        let backward = target <= group.pc;
        group.pc = target;
        self.turn += 1;
        if backward || self.turn >= GROUP_TURN {
            self.next_group();
        }
    }

    /// Sends each lane of `mask` to its own instruction, the others of the current group to the next one.
    pub fn jump_lanes(&mut self, mask: u32, targets: &Column) {
        let mut rest = mask;
        while rest != 0 {
            let target = targets[rest.trailing_zeros() as usize];
            let same = lanes(rest)
                .filter(|lane| targets[*lane] == target)
                .fold(0, |m, lane| m | 1 << lane);
            rest &= !same;
            if rest == 0 {
                self.jump(mask & same, target);
                return;
            }
            let group = &mut self.groups[self.current];
            group.mask &= !same;
            self.groups.push(Group {
                pc: target,
                mask: same,
                state: GroupState::Ready,
            });
        }
        self.advance();
    }

    /// BSSY: the lanes of `mask` form a region with the current group's lanes of `mask`.
    #[inline]
    pub fn set_barrier(&mut self, number: u8, mask: u32) {
        self.set_views(number, mask, mask);
    }

    /// Lets lanes see a region.
    fn set_views(&mut self, number: u8, lanes: u32, region: u32) {
        self.set |= 1 << number;
        let views = &mut self.barriers[usize::from(number)];
        views.retain(|view| {
            view.lanes &= !lanes;
            view.lanes != 0
        });
        match views.iter_mut().find(|view| view.region == region) {
            Some(view) => view.lanes |= lanes,
            None => views.push(View { lanes, region }),
        }
    }

    /// The mask in a lane's barrier.
    pub fn barrier(&self, number: u8, lane: usize) -> u32 {
        let mut views = self.barriers[usize::from(number)].iter();
        let view = views.find(|view| view.lanes >> lane & 1 != 0);
        view.map_or(0, |view| view.region)
    }

    /// Sets the mask in a lane's barrier.
    pub fn write_barrier(&mut self, number: u8, lane: usize, mask: u32) {
        self.set_views(number, 1 << lane, mask);
    }

    /// BSYNC: the lanes of `mask` wait until all lanes of their barrier are here or have exited.
    #[inline]
    pub fn reconverge(&mut self, number: u8, mask: u32) {
        if mask == self.group().mask {
            let views = &self.barriers[usize::from(number)];
            let wanted = views.iter().filter(|view| view.lanes & mask != 0);
            let wanted = wanted.fold(0, |all, view| all | view.region);
            if wanted & self.live & !mask == 0 {
                self.advance();
                return;
            }
        }
        if self.narrow(mask) {
            self.groups[self.current].state = GroupState::AtBarrier(number);
            // Who waits elsewhere, or for others, waits on.
            if self.complete(number, mask) != 0 {
                self.release();
            }
            self.next_group();
        }
    }

    /// WARPSYNC: the lanes of `mask` wait until all lanes of `wanted` wait likewise or have exited.
    pub fn warp_sync(&mut self, mask: u32, wanted: u32) {
        if self.narrow(mask) {
            self.groups[self.current].state = GroupState::AtWarpSync(wanted);
            self.release();
            self.next_group();
        }
    }

    /// BAR.SYNC of all live lanes; they go on at [`Warp::open_cta_barrier`].
    pub fn wait_at_cta_barrier(&mut self) {
        self.groups[self.current].state = GroupState::AtCtaBarrier;
    }

    /// The CTA's barrier has opened.
    pub fn open_cta_barrier(&mut self) {
        for group in self
            .groups
            .iter_mut()
            .filter(|g| g.state == GroupState::AtCtaBarrier)
        {
            group.pc += 1;
            group.state = GroupState::Ready;
        }
    }

    /// EXIT: the lanes of `mask` end.
    pub fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        if self.narrow(mask) {
            self.groups.swap_remove(self.current);
            self.current = self.current.min(self.groups.len().saturating_sub(1));
            self.release();
            self.next_group();
        }
    }

    /// Lanes that wait for anything.
    pub fn waiting(&self) -> u32 {
        self.groups
            .iter()
            .filter(|g| g.state != GroupState::Ready)
            .fold(0, |m, g| m | g.mask)
    }

    /// Those lanes of a group that waits at a barrier whose regions are complete: all live lanes of the region wait at
    /// it. A region is a barrier's number and mask: a lane that waits at the same number for others (in a function that
    /// saved the barrier) is not there yet.
    fn complete(&self, number: u8, mask: u32) -> u32 {
        let waiting = self.waiting_in(GroupState::AtBarrier(number));
        let (mut rest, mut free) = (mask, 0);
        for view in &self.barriers[usize::from(number)] {
            if view.region & self.live & !(waiting & view.lanes) == 0 {
                free |= view.lanes & mask;
            }
            rest &= !view.lanes;
        }
        free | rest
    }

    /// The lanes of groups in a state.
    fn waiting_in(&self, state: GroupState) -> u32 {
        let groups = self.groups.iter().filter(|g| g.state == state);
        groups.fold(0, |m, g| m | g.mask)
    }

    /// Lets waiting lanes go on whose wait is over; those that go on at the same place become one group.
    fn release(&mut self) {
        // Groups have a lane at least, so there are no more of them than lanes.
        let (mut free, mut any) = ([0; LANES], 0);
        for (free, group) in free.iter_mut().zip(&self.groups) {
            *free = match group.state {
                GroupState::AtBarrier(number) => self.complete(number, group.mask),
                // Lanes meet those that wait for the same lanes.
                GroupState::AtWarpSync(wanted)
                    if wanted & self.live & !self.waiting_in(group.state) == 0 =>
                {
                    group.mask
                }
                _ => 0,
            };
            any |= *free;
        }
        if any == 0 {
            return;
        }
        let mut released: SmallVec<[Group; 4]> = SmallVec::new();
        for (group, free) in self.groups.iter_mut().zip(free) {
            if free == 0 {
                continue;
            }
            match released.iter_mut().find(|r| r.pc == group.pc + 1) {
                Some(r) => r.mask |= free,
                None => released.push(Group {
                    pc: group.pc + 1,
                    mask: free,
                    state: GroupState::Ready,
                }),
            }
            group.mask &= !free;
        }
        self.groups.retain(|group| group.mask != 0);
        self.groups.extend(released);
    }

    /// Where the current group is, with the instructions that it may issue before another one has its turn.
    #[inline(always)]
    pub(super) fn position(&self) -> (Group, u32) {
        (self.group(), GROUP_TURN - self.turn)
    }

    /// The current group is at an instruction, and may issue so many before another one has its turn; with none left
    /// that one has it.
    #[inline(always)]
    pub(super) fn set_position(&mut self, pc: u32, left: u32) {
        self.groups[self.current].pc = pc;
        self.turn = GROUP_TURN - left;
        if left == 0 {
            self.next_group();
        }
    }

    /// Whether its live lanes run in more than one group.
    #[inline(always)]
    pub(super) fn is_split(&self) -> bool {
        self.groups.len() != 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warp(mask: u32) -> Warp {
        let mut warp = Warp::new(Local::new(0, false));
        warp.start(mask, 0, 0);
        warp
    }

    #[test]
    fn both_sides_of_a_branch_meet_again() {
        let mut w = warp(u32::MAX);
        w.set_barrier(0, u32::MAX);
        w.advance();
        w.jump(0xFF, 10);
        assert_eq!(
            w.group(),
            Group {
                pc: 10,
                mask: 0xFF,
                state: GroupState::Ready
            }
        );
        w.reconverge(0, 0xFF);
        assert_eq!(
            w.group(),
            Group {
                pc: 2,
                mask: !0xFF,
                state: GroupState::Ready
            },
            "the other side runs"
        );
        w.jump(!0xFF, 10);
        w.reconverge(0, !0xFF);
        assert_eq!(
            w.group(),
            Group {
                pc: 11,
                mask: u32::MAX,
                state: GroupState::Ready
            }
        );
    }

    #[test]
    fn lanes_that_exit_are_not_waited_for() {
        let mut w = warp(0xF);
        w.set_barrier(3, 0xF);
        w.jump(0x3, 5);
        w.reconverge(3, 0x3);
        assert_eq!(w.group().mask, 0xC);
        w.exit(0x4);
        assert_eq!(
            w.group(),
            Group {
                pc: 2,
                mask: 0x8,
                state: GroupState::Ready
            },
            "a guarded exit goes on"
        );
        w.exit(0x8);
        assert_eq!(
            w.group(),
            Group {
                pc: 6,
                mask: 0x3,
                state: GroupState::Ready
            }
        );
        w.exit(0x3);
        assert_eq!((w.state(), w.live), (WarpState::Done, 0));
    }

    #[test]
    fn both_sides_may_use_the_same_inner_barrier() {
        let mut w = warp(0xF);
        w.set_barrier(0, 0xF);
        w.jump(0x3, 10);
        w.set_barrier(1, 0x3);
        w.next_group();
        assert_eq!(w.group().mask, 0xC);
        w.set_barrier(1, 0xC);
        w.reconverge(1, 0xC);
        assert_eq!(
            w.group(),
            Group {
                pc: 2,
                mask: 0xC,
                state: GroupState::Ready
            },
            "does not wait for the other side"
        );
        w.next_group();
        w.reconverge(1, 0x3);
        assert_eq!(w.group().pc, 11);
    }

    #[test]
    fn a_barrier_that_nobody_reaches_is_a_deadlock() {
        let mut w = warp(0x3);
        w.set_barrier(0, 0x3);
        w.set_barrier(1, 0x3);
        w.jump(0x1, 10);
        w.reconverge(0, 0x1);
        w.reconverge(1, 0x2);
        assert_eq!((w.state(), w.waiting()), (WarpState::Stuck, 0x3));
    }

    #[test]
    fn warp_sync_joins_groups() {
        let mut w = warp(0x7);
        w.jump(0x1, 4);
        w.warp_sync(0x1, 0x7);
        assert_eq!(w.group().mask, 0x6);
        w.jump(0x6, 4);
        w.warp_sync(0x6, 0x7);
        assert_eq!(
            w.group(),
            Group {
                pc: 5,
                mask: 0x7,
                state: GroupState::Ready
            }
        );
    }

    #[test]
    fn lanes_that_wait_for_different_lanes_do_not_wait_for_each_other() {
        let mut w = warp(0xF);
        w.leave_here(0xC);
        w.warp_sync(0x1, 0x3);
        assert_eq!(
            w.group(),
            Group {
                pc: 0,
                mask: 0xC,
                state: GroupState::Ready
            }
        );
        w.warp_sync(0xC, 0xC);
        // Lane 1 was left behind its guard and never comes to the first one.
        let waiting = w.waiting();
        assert_eq!(waiting, 0x1, "{waiting:#x}");
    }

    #[test]
    fn lanes_return_to_different_places() {
        let mut w = warp(0x7);
        let mut targets = [0; 32];
        targets[..3].copy_from_slice(&[20, 30, 20]);
        w.jump_lanes(0x7, &targets);
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push((w.group().pc, w.group().mask));
            w.next_group();
        }
        seen.sort();
        assert_eq!(seen, [(20, 0x5), (30, 0x2)]);
    }
}
