//! Where a launch is between two instructions.
//!
//! Blocks begin and take turns as in [`crate::sim::launch`]: one after another, or those that may wait for each other
//! side by side. There a turn is a loop; here the place in it is data, so that it can be left at every instruction,
//! kept and taken up again.

use crate::launch::{Fault, FaultKind, LaunchRequest, Stats};
use crate::sim::check::Checker;
use crate::sim::execute::stop::Stopped;
use crate::sim::launch::Loaded;
use crate::sim::launch::cta::{Cta, Run};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::global::Table;
use crate::sim::warp::{Group, Warp};
use std::hash::{Hash, Hasher};

/// What stays the same while a launch goes on.
pub(super) struct Machine<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) run: Run<'a>,
    pub(super) request: LaunchRequest<'a>,
    pub(super) global: &'a Table,
    /// Blocks that are resident together.
    pub(super) resident: u64,
}

/// The warp that issues next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    /// Its block, among those that run.
    pub(super) cta: usize,
    /// Its place in the block.
    pub(super) warp: usize,
    /// The lanes and the instruction.
    pub(super) group: Group,
}

/// Where a launch is.
#[derive(Default)]
pub(super) struct State {
    /// Blocks that have begun and not ended, in the order of their turns.
    pub(super) running: Vec<Cta>,
    /// Whose turn it is.
    current: usize,
    /// Whether a turn has begun.
    in_turn: bool,
    /// Instructions of the launch at which the budget ends this turn.
    turn_end: u64,
    /// Whether all blocks that are resident together have had their first turn.
    in_round: bool,
    /// The next block that begins.
    next_block: u64,
    /// The end of those that are resident together.
    batch_end: u64,
    pub(super) ended: u64,
    ended_instructions: u64,
    pub(super) stats: Stats,
    pub(super) fault: Option<Fault>,
    /// Most blocks that were resident together.
    pub(super) most_resident: u64,
    /// Rooms that ended blocks have left, and how many there are: checks know blocks by their rooms.
    free: Vec<usize>,
    rooms: usize,
    /// What looks on, if checks are on.
    pub(super) checker: Option<Checker>,
}

impl State {
    /// Before the first instruction.
    pub(super) fn new(checker: Option<Checker>) -> State {
        State {
            checker,
            ..State::default()
        }
    }

    /// How much the checks have found.
    pub(super) fn findings(&self) -> usize {
        self.checker
            .as_ref()
            .map_or(0, |checker| checker.findings.len())
    }

    /// The same once more.
    pub(super) fn copy(&self) -> State {
        State {
            running: self.running.iter().map(Cta::copy).collect(),
            fault: self.fault.clone(),
            free: self.free.clone(),
            checker: self.checker.clone(),
            ..*self
        }
    }

    /// What it has, but for what the checks know and what a fault says.
    pub(super) fn hash(&self, state: &mut impl Hasher) {
        self.running.hash(state);
        (self.current, self.in_turn, self.turn_end, self.in_round).hash(state);
        (self.next_block, self.batch_end).hash(state);
        (self.ended, self.ended_instructions).hash(state);
        (self.stats, self.most_resident, self.fault.is_some()).hash(state);
        (&self.free, self.rooms, self.findings()).hash(state);
    }

    /// Bytes that a copy takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.running
            .iter()
            .map(|cta| cta.bytes() + cta.shared().data().len())
            .sum()
    }

    /// Instructions that were issued.
    pub(super) fn position(&self) -> u64 {
        self.stats.warp_instructions
    }

    /// Whether a block has begun, and perhaps ended.
    pub(super) fn has_begun(&self, block: u64) -> bool {
        block < self.next_block
    }

    pub(super) fn warp(&self, next: Next) -> &Warp {
        &self.running[next.cta].warps[next.warp]
    }

    /// Goes to where an instruction can be issued: lets blocks begin and end and barriers open. None where the launch
    /// has ended or faulted.
    pub(super) fn next(&mut self, machine: &Machine) -> Option<Next> {
        while self.fault.is_none() {
            if !self.in_turn && !self.begin_turn(machine) {
                return None;
            }
            let cta = &mut self.running[self.current];
            match cta.next_warp() {
                Some(_) if self.stats.warp_instructions >= self.turn_end => self.exhaust(machine),
                Some((warp, _)) => {
                    return Some(Next {
                        cta: self.current,
                        warp,
                        group: cta.warps[warp].group(),
                    });
                }
                None => match cta.settle(self.checker.as_mut()) {
                    Ok(false) if self.stats.warp_instructions >= self.turn_end => {
                        self.exhaust(machine);
                    }
                    Ok(has_ended) => self.end_turn(machine, has_ended),
                    Err(stopped) => self.stop(machine, stopped),
                },
            }
        }
        None
    }

    /// Issues the instruction that is next.
    pub(super) fn issue(&mut self, machine: &Machine, next: Next) {
        let cta = &mut self.running[next.cta];
        let checker = self.checker.as_mut();
        let result = cta.run_warp(
            next.warp,
            &machine.run,
            machine.global,
            &mut self.stats,
            checker,
            1,
        );
        if let Err(stopped) = result {
            self.stop(machine, stopped);
        }
    }

    /// Gives a block its turn; false where none is left.
    fn begin_turn(&mut self, machine: &Machine) -> bool {
        let blocks = machine.run.shape.blocks();
        if self.in_round && self.running.is_empty() {
            // All that were resident together have ended.
            self.in_round = false;
        }
        if !self.in_round {
            if self.running.is_empty() && self.next_block == self.batch_end {
                self.batch_end = (self.next_block + machine.resident).min(blocks);
            }
            if self.next_block < self.batch_end {
                let room = self.free.pop().unwrap_or_else(|| {
                    self.rooms += 1;
                    self.rooms - 1
                });
                if let Some(checker) = &mut self.checker {
                    checker.start(room, self.next_block);
                }
                let mut cta = Cta::new(&machine.run, room);
                let block = Shape::coordinates(machine.run.shape.grid, self.next_block);
                cta.start(&machine.run, block);
                cta.keep_registers();
                self.running.push(cta);
                self.next_block += 1;
                self.current = self.running.len() - 1;
            } else if self.running.is_empty() {
                return false;
            } else {
                (self.in_round, self.current) = (true, 0);
            }
        }
        if let Some(checker) = &mut self.checker {
            checker.enter(self.running[self.current].room);
        }
        self.most_resident = self.most_resident.max(self.running.len() as u64);
        let issued = self.stats.warp_instructions;
        let left = machine.run.config.launch_limit();
        let left = left.saturating_sub(issued - self.ended_instructions);
        self.turn_end = issued.saturating_add(left);
        self.in_turn = true;
        true
    }

    /// Takes the turn from a block.
    fn end_turn(&mut self, machine: &Machine, has_ended: bool) {
        self.in_turn = false;
        if has_ended {
            let cta = self.running.remove(self.current);
            self.ended += 1;
            self.ended_instructions += cta.issued();
            self.free.push(cta.room);
            if let Some(checker) = &mut self.checker {
                checker.accesses = 0;
            }
        } else if self.in_round {
            self.current += 1;
        }
        if self.in_round && self.current >= self.running.len() {
            // All have had their turn.
            self.current = 0;
            let Machine {
                loaded,
                run,
                request,
                ..
            } = machine;
            let endless = (self.checker.as_ref()).and_then(|checker| {
                loaded.endless(run, request, checker, &self.running, self.ended)
            });
            if let Some(fault) = endless {
                self.fail(machine, fault);
            }
        }
    }

    /// The budget of the launch is used up.
    fn exhaust(&mut self, machine: &Machine) {
        let kind = FaultKind::LaunchBudgetExhausted {
            limit: machine.run.config.launch_limit(),
            running: self.running.len() as u64,
            ended: self.ended,
            blocks: machine.run.shape.blocks(),
        };
        let stopped = self.running[self.current].stop(kind);
        self.stop(machine, stopped);
    }

    /// An instruction, or a block, ends the launch.
    fn stop(&mut self, machine: &Machine, stopped: Stopped) {
        let cta = &self.running[self.current];
        let fault = (machine.loaded).fault(cta, &machine.run, &machine.request, stopped);
        self.fail(machine, fault);
    }

    /// The launch ends here.
    fn fail(&mut self, machine: &Machine, mut fault: Fault) {
        // Who waits for whom is told in the order of the turns, as of a launch.
        let checker = self.checker.as_ref();
        (machine.loaded).add_waits(
            &mut fault,
            &machine.request,
            &self.running,
            checker,
            machine.global,
        );
        self.fault = Some(fault);
        self.stats.faults = 1;
    }
}
