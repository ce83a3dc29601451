//! A warp: its registers, and its lanes in groups with a program counter each.
//!
//! Lanes that run together are a *group*. A divergent branch splits the current group; convergence barriers put groups together again.
//! One group runs at a time: until it waits or ends, at the latest until a backward jump or
//! [`GROUP_TURN`] instructions, then the next one that can, so that no group starves.
//!
//! Every lane has its own view of the sixteen convergence barriers, the mask of lanes it entered the region with. Where all lanes of a
//! mask agree, as in every program that sets a barrier before it waits, this is the barrier of the warp; where disjoint groups use the
//! same number at the same time (two sides of a branch), they do not disturb each other.

use super::calls::Calls;
use super::memory::Local;
use super::registers::{BITS, Column, LANES, Registers, lanes};
use smallvec::SmallVec;

/// Convergence barriers of a warp.
pub const BARRIERS: usize = 16;
/// Instructions after which another group of the warp gets its turn (assigned).
const GROUP_TURN: u32 = 256;

/// Why a group does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// It runs.
    Ready,
    /// At BSYNC of this barrier.
    AtBarrier(u8),
    /// At WARPSYNC with this mask.
    AtWarpSync(u32),
    /// At BAR.SYNC.
    AtCtaBarrier,
}

/// Lanes that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Index of the next instruction.
    pub pc: u32,
    /// The lanes, never none.
    pub mask: u32,
    /// Whether it runs.
    pub state: GroupState,
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
#[derive(Clone)]
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
    /// The calls that its threads are in.
    pub calls: Calls,
    /// For each barrier and lane the lanes it waits for.
    barriers: [Column; BARRIERS],
    groups: Vec<Group>,
    current: usize,
    turn: u32,
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
            calls: Calls::default(),
            barriers: [[0; 32]; BARRIERS],
            groups: Vec::new(),
            current: 0,
            turn: 0,
        }
    }

    /// Starts the lanes of `mask` at instruction `entry` with the first `count` general registers 0.
    pub fn start(&mut self, index: u32, mask: u32, entry: u32, count: usize) {
        self.registers.clear(count);
        self.local.reset();
        self.calls.clear();
        self.barriers = [[0; 32]; BARRIERS];
        (self.live, self.issued, self.index, self.current, self.turn) = (mask, 0, index, 0, 0);
        self.groups.clear();
        if mask != 0 {
            self.groups.push(Group {
                pc: entry,
                mask,
                state: GroupState::Ready,
            });
        }
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
        let first = (self.current + 1) % count.max(1);
        let next = (first..count).find(ready);
        self.current = next.or_else(|| (0..first).find(ready)).unwrap_or(0);
    }

    /// Splits the lanes outside `mask` off the current group; they go on with the next instruction. Returns whether lanes are left.
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
        }
        true
    }

    /// Splits the lanes of `mask`, which are not all of the current group, off it; they execute the same instruction later.
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
    pub fn set_barrier(&mut self, number: u8, mask: u32) {
        let views = &mut self.barriers[usize::from(number)];
        for (view, bit) in views.iter_mut().zip(BITS) {
            *view = if mask & bit != 0 { mask } else { *view };
        }
    }

    /// The mask in a lane's barrier.
    pub fn barrier(&self, number: u8, lane: usize) -> u32 {
        self.barriers[usize::from(number)][lane]
    }

    /// Sets the mask in a lane's barrier.
    pub fn write_barrier(&mut self, number: u8, lane: usize, mask: u32) {
        self.barriers[usize::from(number)][lane] = mask;
    }

    /// BSYNC: the lanes of `mask` wait until all lanes of their barrier are here or have exited.
    pub fn reconverge(&mut self, number: u8, mask: u32) {
        let group = self.group();
        if mask == group.mask {
            let views = self.barriers[usize::from(number)].iter().zip(BITS);
            let wanted = views.fold(0, |all, (view, bit)| {
                all | if mask & bit != 0 { *view } else { 0 }
            });
            if wanted & self.live & !mask == 0 {
                self.advance();
                return;
            }
        }
        if self.narrow(mask) {
            self.groups[self.current].state = GroupState::AtBarrier(number);
            self.release();
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

    /// Those lanes of a group that waits at a barrier whose regions are complete: all live lanes of the region wait at it. A region is a
    /// barrier's number and mask: a lane that waits at the same number for others (in a function that saved the barrier) is not there yet.
    fn complete(&self, number: u8, mask: u32) -> u32 {
        let views = &self.barriers[usize::from(number)];
        let alike = |region: u32| {
            let views = views.iter().zip(BITS);
            views.fold(0, |all, (view, bit)| {
                all | if *view == region { bit } else { 0 }
            })
        };
        let waiting = self.waiting_in(GroupState::AtBarrier(number));
        let (mut rest, mut free) = (mask, 0);
        while rest != 0 {
            let region = views[rest.trailing_zeros() as usize];
            let same = alike(region);
            if region & self.live & !(waiting & same) == 0 {
                free |= same & mask;
            }
            rest &= !same;
        }
        free
    }

    /// The lanes of groups in a state.
    fn waiting_in(&self, state: GroupState) -> u32 {
        let groups = self.groups.iter().filter(|g| g.state == state);
        groups.fold(0, |m, g| m | g.mask)
    }

    /// Lets waiting lanes go on whose wait is over; those that go on at the same place become one group.
    fn release(&mut self) {
        let mut free: SmallVec<[u32; LANES]> = SmallVec::new();
        free.extend(self.groups.iter().map(|group| match group.state {
            GroupState::AtBarrier(number) => self.complete(number, group.mask),
            // Lanes meet those that wait for the same lanes.
            GroupState::AtWarpSync(wanted)
                if wanted & self.live & !self.waiting_in(group.state) == 0 =>
            {
                group.mask
            }
            _ => 0,
        }));
        if free.iter().all(|lanes| *lanes == 0) {
            return;
        }
        let mut released: SmallVec<[Group; LANES]> = SmallVec::new();
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

    /// Instructions that the current group may issue before another one has its turn.
    #[inline(always)]
    pub(super) fn turn_left(&self) -> u32 {
        GROUP_TURN - self.turn
    }

    /// Goes on at an instruction after so many of the current group; `switch`: another group may have its turn.
    #[inline(always)]
    pub(super) fn go_on(&mut self, pc: u32, count: u32, switch: bool) {
        self.groups[self.current].pc = pc;
        self.turn += count;
        if switch || self.turn >= GROUP_TURN {
            self.next_group();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warp(mask: u32) -> Warp {
        let mut warp = Warp::new(Local::new(0, false));
        warp.start(0, mask, 0, 0);
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
