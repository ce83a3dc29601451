//! Control bits: stalls, wait masks and scoreboards.
//!
//! Takes code in its final order. What is still on its way at each point, on the worst path to it, is found by forward dataflow over the
//! blocks ([`State`]); each instruction then waits for what it needs of that: a stall on the instruction before it for results of fixed
//! latency (RAW, and WAW so that results arrive in the order of the writes), its wait mask for results of variable latency and for sources
//! that slow instructions still read (WAR). Which scoreboards are signalled is decided before ([`super::boards`]).
//!
//! Before control leaves for other code (CALL, RET, tail calls) everything is waited for, and the code that is entered, or come back
//! to, relies on that. Nothing is waited for before EXIT and TRAP: results on their way belong to nobody then. Nor before BAR and MEMBAR:
//! the memory system performs the accesses of a thread in the order of issue, and registers are not concerned.

use super::Scheduled;
use super::access::Accesses;
use super::boards::{assign, needs_no_read_board};
use super::state::{Boards, Needs, State};
use crate::emit::linear::{Linear, LinearBlock, LinearInst};
use crate::isa::control::SCOREBOARDS;
use crate::isa::{Control, Scoreboard, build};
use crate::vcode::SourceLine;
use std::collections::BTreeSet;

/// How much an instruction waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// For what it needs.
    #[default]
    Needed,
    /// For everything before it, to tell a mistake of scheduling from one elsewhere.
    Serial,
}

/// Adds control bits.
pub fn schedule(code: Linear, waiting: Waiting) -> Scheduled {
    let accesses: Vec<Vec<Accesses>> = code
        .blocks
        .iter()
        .map(|b| b.insts.iter().map(|i| Accesses::of(&i.inst)).collect())
        .collect();
    let blocks = match waiting {
        Waiting::Needed => Needed {
            boards: assign(&code, &accesses),
            code: &code,
            accesses: &accesses,
        }
        .run(),
        Waiting::Serial => accesses
            .iter()
            .map(|b| b.iter().map(serial).collect())
            .collect(),
    };
    with_controls(code, blocks)
}

/// What an instruction waits for and signals, before stalls are cut to what fits.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    /// Cycles until the next instruction.
    stall: u16,
    wait: u8,
    boards: Boards,
}

/// Waits for everything before it.
fn serial(accesses: &Accesses) -> Wish {
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
    Wish {
        stall: fixed.unwrap_or(1).max(1),
        wait: 0b11,
        boards,
    }
}

struct Needed<'a> {
    code: &'a Linear,
    accesses: &'a [Vec<Accesses>],
    boards: Vec<Vec<Boards>>,
}

impl Needed<'_> {
    fn run(&self) -> Vec<Vec<Wish>> {
        let count = self.code.blocks.len();
        // What is on its way when a block is entered; none for blocks that no path has reached yet.
        let mut entry: Vec<Option<Box<State>>> = vec![None; count];
        let mut wishes = vec![Vec::new(); count];
        if count == 0 {
            return wishes;
        }
        entry[0] = Some(Box::default());
        let mut dirty = BTreeSet::from([0]);
        while let Some(block) = dirty.pop_first() {
            let mut state = entry[block].clone().expect("a block that was entered");
            wishes[block] = self.block(block, &mut state);
            for next in self.code.successors(block) {
                let changed = match &mut entry[next] {
                    Some(old) => old.merge(&state),
                    empty => {
                        *empty = Some(state.clone());
                        true
                    }
                };
                if changed {
                    dirty.insert(next);
                }
            }
        }
        self.drop_read_boards(&mut wishes);
        wishes
    }

    /// Takes away the read scoreboards that nobody needs, now that it is known where the write scoreboards are waited for. No wait becomes
    /// needless: each is there for an instruction that nothing else tells of.
    fn drop_read_boards(&self, wishes: &mut [Vec<Wish>]) {
        for block in 0..wishes.len() {
            for index in 0..wishes[block].len() {
                let Boards { write, read } = wishes[block][index].boards;
                let waits = |b: usize, i: usize| wishes[b][i].wait;
                if write != 0
                    && read != 0
                    && needs_no_read_board(self.code, self.accesses, (block, index), write, waits)
                {
                    wishes[block][index].boards.read = 0;
                }
            }
        }
    }

    /// The wishes of a block's instructions; `state` becomes what is on its way when the next block is entered.
    fn block(&self, block: usize, state: &mut State) -> Vec<Wish> {
        let mut wishes: Vec<Wish> = Vec::with_capacity(self.accesses[block].len());
        let insts = &self.code.blocks[block].insts;
        for (index, access) in self.accesses[block].iter().enumerate() {
            let boards = self.boards[block][index];
            let Needs { cycles, mut wait } = state.needs(access);
            if let Some(previous) = wishes.last_mut() {
                previous.stall = previous.stall.max(cycles);
                state.advance(previous.stall);
            }
            let leaves = insts[index].leaves_function();
            if leaves {
                wait |= state.pending(wait);
            }
            state.waited(wait);
            state.issue(access, boards);
            let stall = if leaves { state.longest().max(1) } else { 1 };
            if leaves {
                // Who is called waits for everything before it comes back.
                *state = State::default();
            }
            wishes.push(Wish {
                stall,
                wait,
                boards,
            });
        }
        if let Some(last) = wishes.last_mut() {
            let next = self.code.successors(block);
            let first = next.iter().filter_map(|&b| self.accesses[b].first());
            last.stall = first
                .map(|a| state.needs(a).cycles)
                .fold(last.stall, u16::max);
            state.advance(last.stall);
        }
        wishes
    }
}

/// Code with the control bits that were wished for; stalls that are too long become several, by NOPs.
fn with_controls(code: Linear, wishes: Vec<Vec<Wish>>) -> Scheduled {
    let mut blocks = Vec::with_capacity(code.blocks.len());
    let mut controls = Vec::with_capacity(code.blocks.len());
    for (block, wishes) in code.blocks.into_iter().zip(wishes) {
        let mut out = LinearBlock::default();
        let mut list = Vec::with_capacity(wishes.len());
        for (inst, wish) in block.insts.into_iter().zip(wishes) {
            let mut control = control_of(wish);
            let rest = set_stall(&mut control, wish.stall);
            let (line, transfers) = (inst.line, inst.is_transfer() || inst.leaves_function());
            let place = out.insts.len();
            out.insts.push(inst);
            list.push(control);
            // Control may not come to what stands behind a branch: time passes before it.
            let place = if transfers { place } else { place + 1 };
            for (nop, control) in pauses(rest, line) {
                out.insts.insert(place, nop);
                list.insert(place, control);
            }
        }
        blocks.push(out);
        controls.push(list);
    }
    Scheduled {
        code: Linear { blocks, ..code },
        controls,
    }
}

fn control_of(wish: Wish) -> Control {
    let board = |mask: u8| {
        (0..SCOREBOARDS)
            .find(|b| mask >> b & 1 != 0)
            .and_then(Scoreboard::new)
    };
    let mut control = Control::default();
    control.set_wait(wish.wait);
    control.write = board(wish.boards.write);
    control.read = board(wish.boards.read);
    control
}

/// Sets as much of a stall as fits; the cycles that are left.
fn set_stall(control: &mut Control, cycles: u16) -> u16 {
    let now = cycles.min(u16::from(Control::MAX_STALL));
    control.set_stall(now as u8);
    cycles - now
}

/// NOPs that pass `cycles`.
fn pauses(mut cycles: u16, line: SourceLine) -> Vec<(LinearInst, Control)> {
    let mut out = Vec::new();
    while cycles > 0 {
        let mut control = Control::default();
        cycles = set_stall(&mut control, cycles);
        out.push((LinearInst::new(build::nop_x(), line), control));
    }
    out
}
