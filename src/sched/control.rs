//! Control bits: stalls, wait masks and scoreboards.
//!
//! Takes code in its final order. What is still on its way at each point, on the worst path to it, is found by forward
//! dataflow over the blocks ([`InFlight`]); each instruction then waits for what it needs of that: a stall on the
//! instruction before it for results of fixed latency (RAW, and WAW so that results arrive in the order of the writes),
//! its wait mask for results of variable latency and for sources that slow instructions still read (WAR). Which
//! scoreboards are signalled is decided before ([`super::boards`]).
//!
//! Before control leaves for other code (CALL, RET, tail calls) everything is waited for, and the code that is entered,
//! or come back to, relies on that. Nothing is waited for before EXIT and TRAP: results on their way belong to nobody
//! then. Nor before BAR and MEMBAR: they see to what was issued before them themselves. An access that has to be
//! performed behind an ordered one waits for that one's scoreboard, as if it read its result ([`super::access`]).

use super::Scheduled;
use super::access::{AccessLists, Accesses};
use super::boards::{self, assign, needs_no_read_board};
use super::state::{Border, InFlight, Needs};
use super::synchronization::{Boards, Synchronization};
use crate::isa::{Control, PReg, Scoreboard, build};
use crate::linear::{Linear, is_transfer};
use crate::vcode::{Entry, SourceLine};

/// How much an instruction waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// For what it needs.
    #[default]
    Needed,
    /// For everything before it, to tell a mistake of scheduling from one elsewhere.
    Serial,
}

/// Memory that is kept between functions.
#[derive(Debug, Default)]
pub struct ControlBuffers {
    accesses: AccessLists,
    boards: boards::BoardBuffers,
    state: InFlight,
    /// By instruction.
    synchronizations: Vec<Synchronization>,
    /// By block, what is on its way when it is entered.
    borders: Vec<Border>,
    /// What is on its way when a block is left.
    border: Border,
    /// Blocks to be looked at (again).
    dirty: Vec<bool>,
    /// Blocks that were looked at.
    seen: Vec<bool>,
    /// Empty: for the control bits of the next function.
    controls: Vec<Control>,
}

impl ControlBuffers {
    /// Takes back the memory of control bits that are no longer needed.
    pub fn give_back(&mut self, mut controls: Vec<Control>) {
        controls.clear();
        self.controls = controls;
    }
}

/// Adds control bits.
pub fn schedule(mut code: Linear, waiting: Waiting, scratch: &mut ControlBuffers) -> Scheduled {
    scratch.accesses.fill(&code);
    scratch.synchronizations.clear();
    match waiting {
        Waiting::Needed => scratch.synchronize(&code),
        Waiting::Serial => {
            let ControlBuffers {
                accesses,
                synchronizations,
                ..
            } = scratch;
            synchronizations.extend(accesses.iter().map(|access| serial(&access)));
        }
    }
    let mut controls = std::mem::take(&mut scratch.controls);
    controls.extend(
        scratch
            .synchronizations
            .iter()
            .map(|synchronization| control_of(*synchronization)),
    );
    if (scratch.synchronizations.iter())
        .any(|synchronization| synchronization.stall > u16::from(Control::MAX_STALL))
    {
        controls = pause(&mut code, &scratch.synchronizations, &controls);
    }
    Scheduled { code, controls }
}

/// Waits for everything before it.
fn serial(accesses: &Accesses<'_>) -> Synchronization {
    let fixed = accesses
        .writes
        .iter()
        .filter(|_| !accesses.variable)
        .map(|w| w.latency)
        .max();
    let boards = Boards {
        write: u8::from(accesses.variable && !accesses.writes.is_empty()),
        read: u8::from(!accesses.slow_reads.is_empty()) << 1,
    };
    Synchronization {
        stall: fixed.unwrap_or(1).max(1),
        wait: 0b11,
        boards,
    }
}

impl ControlBuffers {
    /// Makes the synchronizations of instructions that wait for what they need.
    fn synchronize(&mut self, code: &Linear) {
        let ControlBuffers {
            accesses,
            boards,
            state,
            synchronizations,
            ..
        } = self;
        state.clear();
        assign(code, accesses, state, synchronizations, boards);
        if !self.is_straight(code) {
            self.follow_paths(code);
        }
        self.drop_read_boards(code);
    }

    /// Whether code runs from its first instruction to its last and leaves the function only there.
    fn is_straight(&self, code: &Linear) -> bool {
        code.block_count() == 1
            && code.successors(0).next().is_none()
            && !self.accesses.any_leaves_early()
    }

    /// Makes the waits right on all paths; scoreboards are given.
    fn follow_paths(&mut self, code: &Linear) {
        let count = code.block_count();
        if count == 0 {
            return;
        }
        if self.borders.len() < count {
            self.borders.resize_with(count, Border::default);
        }
        self.borders[..count].iter_mut().for_each(Border::clear);
        if !self.reach_all(code) {
            return;
        }
        // Blocks behind it were told what that wait sees to. Again, with what blocks leave in the end known from the
        // start.
        let again = self.left_by_blocks(code);
        self.borders[..count].iter_mut().for_each(Border::clear);
        for (block, border) in again {
            self.borders[block].merge(&border);
        }
        self.reach_all(code);
    }

    /// Looks at blocks until nothing changes; whether a block that had been looked at has got another wait.
    fn reach_all(&mut self, code: &Linear) -> bool {
        let count = code.block_count();
        self.dirty.clear();
        self.dirty.resize(count, false);
        self.borders[0].reached = true;
        self.dirty[0] = true;
        self.seen.clear();
        self.seen.resize(count, false);
        let mut late = false;
        // The first block that is dirty.
        let mut block = 0;
        while block < count {
            if !std::mem::replace(&mut self.dirty[block], false) {
                block += 1;
                continue;
            }
            self.state.enter(&self.borders[block]);
            let other_waits = self.block(code, block);
            late |= std::mem::replace(&mut self.seen[block], true) && other_waits;
            self.state.leave(&mut self.border);
            let mut first = block + 1;
            for next in code.successors(block) {
                if self.borders[next].merge(&self.border) || !self.seen[next] {
                    self.dirty[next] = true;
                    first = first.min(next);
                }
            }
            block = first;
        }
        late
    }

    /// What blocks leave for those behind them, which are given.
    fn left_by_blocks(&mut self, code: &Linear) -> Vec<(usize, Border)> {
        let mut left = Vec::new();
        for block in 0..code.block_count() {
            if !self.borders[block].reached {
                continue;
            }
            self.state.enter(&self.borders[block]);
            self.block(code, block);
            self.state.leave(&mut self.border);
            for next in code.successors(block) {
                let mut border = Border::default();
                border.merge(&self.border);
                left.push((next, border));
            }
        }
        left
    }

    /// Takes away the read scoreboards that nobody needs, now that it is known where the write scoreboards are waited
    /// for. No wait becomes needless: each is there for an instruction that nothing else tells of.
    fn drop_read_boards(&mut self, code: &Linear) {
        for block in 0..code.block_count() {
            for position in code.positions(block) {
                let Boards { write, read } = self.synchronizations[position].boards;
                if write != 0
                    && read != 0
                    && needs_no_read_board(
                        code,
                        &self.accesses,
                        (block, position),
                        write,
                        &self.synchronizations,
                    )
                {
                    self.synchronizations[position].boards.read = 0;
                }
            }
        }
    }

    /// Makes the synchronizations of a block's instructions; the state becomes what is on its way when the next block
    /// is entered. Whether an instruction waits for others than before.
    fn block(&mut self, code: &Linear, block: usize) -> bool {
        let ControlBuffers {
            accesses,
            state,
            synchronizations,
            ..
        } = self;
        let range = code.positions(block);
        let synchronizations = &mut synchronizations[range.clone()];
        let mut other_waits = false;
        for (index, position) in range.enumerate() {
            let access = accesses.get(position);
            let Needs { cycles, mut wait } = state.needs(&access);
            if let Some(previous) = index.checked_sub(1) {
                let previous = &mut synchronizations[previous];
                previous.stall = previous.stall.max(cycles);
                state.advance(previous.stall);
            }
            if access.leaves {
                wait |= state.pending(wait);
            }
            state.waited(wait);
            state.issue(&access, synchronizations[index].boards);
            other_waits |= wait != synchronizations[index].wait;
            synchronizations[index].wait = wait;
            synchronizations[index].stall = 1;
            if access.leaves {
                synchronizations[index].stall = state.longest().max(1);
                // Who is called waits for everything before it comes back.
                state.clear();
            }
        }
        if let Some(last) = synchronizations.last_mut() {
            for next in code.successors(block) {
                let first = accesses.get(code.positions(next).start);
                last.stall = last.stall.max(state.needs(&first).cycles);
            }
            state.advance(last.stall);
        }
        other_waits
    }
}

/// Makes stalls that are too long several, by NOPs; the control bits of the code with them.
fn pause(
    code: &mut Linear,
    synchronizations: &[Synchronization],
    controls: &[Control],
) -> Vec<Control> {
    let mut insts: Vec<Entry<PReg>> = Vec::with_capacity(code.len());
    let mut out = Vec::with_capacity(code.len());
    let mut lens = Vec::with_capacity(code.block_count());
    let mut places: Vec<u32> = Vec::with_capacity(code.len());
    for block in 0..code.block_count() {
        let start = insts.len();
        for (entry, position) in code.insts(block).zip(code.positions(block)) {
            let place = insts.len();
            insts.push(*entry);
            out.push(controls[position]);
            // Control may not come to what stands behind a branch: time passes before it.
            let transfers = is_transfer(&entry.inst) || code.leaves_function(entry);
            let place = if transfers { place } else { place + 1 };
            let rest = synchronizations[position]
                .stall
                .saturating_sub(u16::from(Control::MAX_STALL));
            for (nop, control) in pauses(rest, entry.line) {
                insts.insert(place, nop);
                out.insert(place, control);
            }
            let last = insts.len() - 1;
            places.push(if transfers { last } else { place - 1 } as u32);
        }
        lens.push((insts.len() - start) as u32);
    }
    code.replace_insts(insts, &lens, &places);
    out
}

fn control_of(synchronization: Synchronization) -> Control {
    // Of no scoreboard 8, which is none.
    let board = |mask: u8| Scoreboard::new(mask.trailing_zeros() as u8);
    let mut control = Control::default();
    set_stall(&mut control, synchronization.stall);
    control.set_wait(synchronization.wait);
    control.write = board(synchronization.boards.write);
    control.read = board(synchronization.boards.read);
    control
}

/// Sets as much of a stall as fits; the cycles that are left.
fn set_stall(control: &mut Control, cycles: u16) -> u16 {
    let now = cycles.min(u16::from(Control::MAX_STALL));
    control.set_stall(now as u8);
    cycles - now
}

/// NOPs that pass `cycles`.
fn pauses(mut cycles: u16, line: SourceLine) -> Vec<(Entry<PReg>, Control)> {
    let mut out = Vec::new();
    while cycles > 0 {
        let mut control = Control::default();
        cycles = set_stall(&mut control, cycles);
        let nop = Entry::new(build::nop_x(), line);
        out.push((nop, control));
    }
    out
}
