//! Control bits: stalls, wait masks and scoreboards.

use super::Scheduled;
use super::access::Accesses;
use crate::emit::linear::{Linear, LinearBlock, LinearInst};
use crate::isa::{Control, Form, PInst, Scoreboard};
use crate::vcode::SourceLine;

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
    let _ = waiting;
    serial(code)
}

/// Every instruction waits until all before it are complete.
fn serial(code: Linear) -> Scheduled {
    let board = |n| Scoreboard::new(n).expect("a scoreboard");
    let mut blocks = Vec::with_capacity(code.blocks.len());
    let mut controls = Vec::with_capacity(code.blocks.len());
    for block in code.blocks {
        let mut out = LinearBlock::default();
        let mut list = Vec::new();
        for inst in block.insts {
            let accesses = Accesses::of(&inst.inst);
            let fixed = if accesses.variable {
                0
            } else {
                accesses.writes.iter().map(|w| w.latency).max().unwrap_or(0)
            };
            let mut control = Control::default();
            control.set_wait(0b11);
            control.write = (accesses.variable && !accesses.writes.is_empty()).then(|| board(0));
            control.read = (!accesses.slow_reads.is_empty()).then(|| board(1));
            let line = inst.line;
            let rest = set_stall(&mut control, fixed.max(1));
            out.insts.push(inst);
            list.push(control);
            for (nop, control) in pauses(rest, line) {
                out.insts.push(nop);
                list.push(control);
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
        out.push((LinearInst::new(PInst::new(Form::NOP_X), line), control));
    }
    out
}
