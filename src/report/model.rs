//! How long blocks take, as the control bits and the latency table say.
//!
//! Takes code with control bits. The model is one warp alone on its scheduler: an instruction issues when the stall of
//! the one before it is over and the scoreboards that it waits for are zero, and a scoreboard is zero when the latest
//! of what signals it has had the latency of the table – for memory an assumption, since no cache and no contention is
//! in it. Waiting at a barrier for other warps takes no time. That is the model of the timed simulator with one warp,
//! so that code without branches takes exactly as long there if no guard is false in all lanes: then nothing is
//! signalled late. Several warps fill each other's gaps; a block takes between the sum of what they issue and what the
//! model says of one.
//!
//! A block by itself begins with nothing on its way. A loop's turn is that on its longest path, and is what each of
//! many turns takes: what is on its way at the end of a turn is waited for in the next.

use crate::analysis::graph::{Dominators, Loop, Loops};
use crate::isa::control::SCOREBOARDS;
use crate::isa::encode::WORD_BYTES;
use crate::isa::{Control, Optype};
use crate::sched::Scheduled;
use crate::sched::access::{AccessLists, Accesses};
use crate::vcode::SourceLine;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;

/// Turns that are walked until one takes as long as all that follow (*measured*: the second does in all files of
/// tests).
const TURNS: usize = 4;

/// How long a block of a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCycles {
    /// Byte offset of its first instruction in the function.
    pub offset: u32,
    /// The first line of the source that is known of its instructions; 0 if none is.
    pub line: u32,
    /// Its instructions.
    pub instructions: u32,
    /// Cycles from the issue of its first instruction until the first of the next block could issue, if nothing is on
    /// its way at the start.
    pub cycles: u32,
    /// Of the first block of an innermost loop in the order of the code: the cycles of a turn on the longest path.
    pub turn: Option<u32>,
}

/// How long the blocks of a function take, in the order of the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCycles {
    /// Its name.
    pub name: String,
    /// Its blocks.
    pub blocks: Vec<BlockCycles>,
    /// The blocks of each loop, as numbers from 0: of those of an inner loop the outer one has all.
    pub loops: Vec<Vec<u32>>,
}

impl fmt::Display for FunctionCycles {
    /// A line for the function and one for each block.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: cycles of one warp alone", self.name)?;
        for block in &self.blocks {
            write!(f, "  {:#06x}", block.offset)?;
            if block.line > 0 {
                write!(f, ", line {}", block.line)?;
            }
            let (insts, cycles) = (block.instructions, block.cycles);
            write!(f, ": {insts} instructions, {cycles} cycles")?;
            if let Some(turn) = block.turn {
                write!(f, ", {turn} cycles a turn of the loop")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Finds how long the blocks of a function take.
pub fn cycles(scheduled: &Scheduled) -> FunctionCycles {
    let code = scheduled.code();
    let mut accesses = AccessLists::default();
    accesses.fill(code);
    let model = Model {
        scheduled,
        accesses,
    };
    let blocks = (0..code.block_count()).map(|block| {
        let lines = code.insts(block).map(|entry| entry.line);
        let known = lines.filter(|line| *line != SourceLine::default()).min();
        let positions = code.positions(block);
        BlockCycles {
            offset: (positions.start * WORD_BYTES) as u32,
            line: known.unwrap_or_default().0,
            instructions: positions.len() as u32,
            cycles: model.walk(&mut Clock::default(), block) as u32,
            turn: None,
        }
    });
    let mut blocks: Vec<BlockCycles> = blocks.collect();
    let graph = code.graph();
    let dominators = Dominators::new(&graph, 0);
    let loops = Loops::new(&graph, &dominators);
    for (index, l) in loops.all().iter().enumerate() {
        if !loops.is_innermost(index) {
            continue;
        }
        let order = dominators.reverse_postorder().iter().copied();
        let order = order.filter(|&b| loops.contains(index, b));
        let path = longest_path(scheduled, l, order, &blocks);
        let first = l.nodes.iter().copied().min().unwrap_or(l.header);
        blocks[first].turn = Some(model.turn(&path) as u32);
    }
    let nodes = |l: &Loop| {
        let mut nodes: Vec<u32> = l.nodes.iter().map(|&node| node as u32).collect();
        nodes.sort_unstable();
        nodes
    };
    FunctionCycles {
        name: code.name.clone(),
        blocks,
        loops: loops.all().iter().map(nodes).collect(),
    }
}

/// The longest way through a loop from its header to an edge back there, by what its blocks take by themselves. `order`
/// are its nodes in reverse postorder.
fn longest_path(
    scheduled: &Scheduled,
    l: &Loop,
    order: impl Iterator<Item = usize>,
    blocks: &[BlockCycles],
) -> Vec<usize> {
    let code = scheduled.code();
    // By block the cycles from the header to its end, and the block before it on the way.
    let mut best: Vec<Option<(u64, usize)>> = vec![None; blocks.len()];
    let mut latch: Option<(u64, usize)> = None;
    best[l.header] = Some((u64::from(blocks[l.header].cycles), l.header));
    for block in order {
        let Some((cycles, _)) = best[block] else {
            continue;
        };
        for next in code.successors(block) {
            if next == l.header {
                latch = latch.max(Some((cycles, block)));
            } else if l.nodes.contains(&next) {
                let way = (cycles + u64::from(blocks[next].cycles), block);
                best[next] = best[next].max(Some(way));
            }
        }
    }
    let mut path: Vec<usize> = latch.map(|(_, block)| block).into_iter().collect();
    while let Some(&last) = path.last()
        && last != l.header
        && path.len() <= blocks.len()
        && let Some((_, before)) = best[last]
    {
        path.push(before);
    }
    path.reverse();
    path
}

/// The time of a warp.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// The next instruction may issue.
    now: u64,
    /// By scoreboard when it is zero.
    zero: [u64; SCOREBOARDS as usize],
}

impl Clock {
    /// Passes an instruction.
    fn pass(&mut self, optype: Optype, access: &Accesses<'_>, control: &Control) -> Issued {
        let awaited = (0..SCOREBOARDS).filter(|s| control.wait() >> s & 1 != 0);
        let zero = awaited.map(|s| self.zero[usize::from(s)]);
        let at = zero.fold(self.now, u64::max);
        let latency = &optype.info().latency;
        let results = access.writes.iter().map(|w| w.latency).max();
        let signals = [
            (control.write, results.unwrap_or(latency.result)),
            (control.read, access.sources),
        ];
        let mut raises = SmallVec::new();
        for (scoreboard, cycles) in signals {
            if let Some(scoreboard) = scoreboard {
                let zero = &mut self.zero[usize::from(scoreboard.number())];
                *zero = (*zero).max(at + u64::from(cycles));
                raises.push((scoreboard.number(), at + u64::from(cycles)));
            }
        }
        // The figure of a fence is the time it holds the warp.
        let held = match optype {
            Optype::MEMBAR => latency.result,
            _ => 1,
        };
        self.now = at + u64::from(held.max(u16::from(control.stall())));
        Issued { at, raises }
    }
}

/// When an instruction issues.
#[derive(Clone, Debug)]
pub(super) struct Issued {
    /// Cycle.
    pub at: u64,
    /// The scoreboards that it raises, each with the cycle from which on it does not keep it from being zero.
    pub raises: SmallVec<[(u8, u64); 2]>,
}

/// When the instructions of a block issue, nothing being on its way at its start.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    /// By instruction.
    pub issued: Vec<Issued>,
    /// Cycles until the first of the next block.
    pub cycles: u64,
}

impl Timeline {
    /// Walks a block.
    pub fn of(scheduled: &Scheduled, accesses: &AccessLists, block: usize) -> Timeline {
        let mut clock = Clock::default();
        let code = scheduled.code();
        let insts = code.insts(block).zip(code.positions(block));
        let issued = insts
            .zip(scheduled.controls(block))
            .map(|((entry, position), control)| {
                clock.pass(entry.inst.optype(), &accesses.get(position), control)
            })
            .collect();
        Timeline {
            issued,
            cycles: clock.now,
        }
    }
}

/// The code with what is read and written.
struct Model<'a> {
    scheduled: &'a Scheduled,
    accesses: AccessLists,
}

impl Model<'_> {
    /// Walks a block; the cycles that it takes.
    fn walk(&self, clock: &mut Clock, block: usize) -> u64 {
        let start = clock.now;
        let code = self.scheduled.code();
        let controls = self.scheduled.controls(block);
        for ((entry, position), control) in
            (code.insts(block)).zip(code.positions(block)).zip(controls)
        {
            clock.pass(entry.inst.optype(), &self.accesses.get(position), control);
        }
        clock.now - start
    }

    /// What a turn on a path takes after some.
    fn turn(&self, path: &[usize]) -> u64 {
        let mut clock = Clock::default();
        let turns = (0..TURNS).map(|_| path.iter().map(|&b| self.walk(&mut clock, b)).sum());
        turns.last().unwrap_or(0)
    }
}
