//! What finished words wait for without need.
//!
//! A bit of a wait mask, or a scoreboard that an instruction signals, is redundant when the code is still verified
//! without it ([`super::verify`]). Most need no trial: one pass over all paths finds the bits that are the only thing
//! between two instructions that touch the same register. What is left is taken away one at a time, in the order of the
//! code; what can be done without stays away, so that of two that stand in for each other one is reported.
//!
//! Shares nothing with the computation of the control bits. Meant for tests: a trial follows all paths.

use super::order;
use super::verify::{Flights, Hazard, Op, follow, offset, operations, step};
use crate::emit::Code;
use crate::isa::Scoreboard;
use crate::isa::control::SCOREBOARDS;
use std::collections::BTreeSet;
use std::fmt;

/// What can be done without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RedundancyKind {
    /// The bit of this scoreboard in the wait mask.
    Wait(u8),
    /// The scoreboard that tells that the results have arrived.
    Write,
    /// The scoreboard that tells that the sources have been read.
    Read,
}

impl fmt::Display for RedundancyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedundancyKind::Wait(board) => write!(f, "need not wait for scoreboard {board}"),
            RedundancyKind::Write => f.write_str("need not signal its results"),
            RedundancyKind::Read => f.write_str("need not signal that its sources were read"),
        }
    }
}

/// Control bits that can be done without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redundancy {
    /// Which.
    pub kind: RedundancyKind,
    /// Byte offset of the instruction.
    pub offset: u32,
    /// The instruction.
    pub instruction: String,
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}: {} {}", self.offset, self.instruction, self.kind)
    }
}

/// What a function waits for, or signals, without need, in the order of the code. Nothing where the verifier finds
/// hazards.
pub fn redundancies(code: &Code) -> Vec<Redundancy> {
    let mut hazards = BTreeSet::new();
    let mut ops = operations(code, &mut hazards);
    if !hazards.is_empty() {
        return Vec::new();
    }
    let Some(needed) = evidence(&ops) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for index in 0..ops.len() {
        for kind in kinds(&ops[index]) {
            if needed.contains(&(index, kind)) {
                continue;
            }
            let control = ops[index].control;
            take(&mut ops[index], kind);
            if holds(&ops) && order::holds(code, &ops) {
                found.push(Redundancy {
                    kind,
                    offset: offset(index),
                    instruction: ops[index].inst.to_string(),
                });
            } else {
                ops[index].control = control;
            }
        }
    }
    found
}

/// The bits of an instruction that might be redundant. Scoreboards first: who waits for one that nobody signals need
/// not.
fn kinds(op: &Op) -> Vec<RedundancyKind> {
    let control = op.control;
    let boards = [
        control.read.map(|_| RedundancyKind::Read),
        control.write.map(|_| RedundancyKind::Write),
    ];
    let waits = (0..SCOREBOARDS).filter(|b| control.wait() >> b & 1 != 0);
    (boards.into_iter().flatten())
        .chain(waits.map(RedundancyKind::Wait))
        .collect()
}

/// Takes a bit away.
fn take(op: &mut Op, kind: RedundancyKind) {
    match kind {
        RedundancyKind::Wait(board) => op.control.set_wait(op.control.wait() & !(1 << board)),
        RedundancyKind::Write => op.control.write = None,
        RedundancyKind::Read => op.control.read = None,
    }
}

/// Whether the code is verified.
fn holds(ops: &[Op]) -> bool {
    let mut hazards: BTreeSet<Hazard> = BTreeSet::new();
    let mut good = true;
    follow(ops, |index, state| {
        // After the first hazard there is nothing to follow any more.
        if good {
            step(ops, index, state, &mut hazards);
            good = hazards.is_empty();
        } else {
            state.clear();
        }
    });
    good
}

/// Bits that two instructions need that touch the same register; none where there are hazards.
fn evidence(ops: &[Op]) -> Option<BTreeSet<(usize, RedundancyKind)>> {
    let mut hazards = BTreeSet::new();
    let mut needed = BTreeSet::new();
    follow(ops, |index, state| {
        needs(ops, index, state, &mut needed);
        step(ops, index, state, &mut hazards);
    });
    hazards.is_empty().then_some(needed)
}

/// What is needed at one instruction: where only one scoreboard stands between it and an instruction on its way.
fn needs(
    ops: &[Op],
    index: usize,
    state: &Flights,
    needed: &mut BTreeSet<(usize, RedundancyKind)>,
) {
    let op = &ops[index];
    for (&earlier, flight) in state.iter().filter(|(e, _)| ops[**e].is_variable()) {
        let before = &ops[earlier];
        let [write, read] = [before.control.write, before.control.read];
        let mut note = |board: Option<Scoreboard>, kind| {
            if let Some(board) = board.filter(|b| op.waits_for(Some(*b))) {
                needed.insert((index, RedundancyKind::Wait(board.number())));
                needed.insert((earlier, kind));
            }
        };
        if flight.results && op.needs_results(before) {
            note(write, RedundancyKind::Write);
        }
        if flight.sources && op.needs_sources(before) && write != read {
            match (op.waits_for(write), op.waits_for(read)) {
                (true, false) => note(write, RedundancyKind::Write),
                (false, true) => note(read, RedundancyKind::Read),
                _ => {}
            }
        }
    }
}
