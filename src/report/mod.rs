//! What there is to see of finished code: blocks and how they hang together, registers alive, when instructions issue,
//! how long blocks take. For reports (`clif-util explore`, `--cycles`); nothing of the code depends on it.
//!
//! [`report`] takes code with control bits ([`Scheduled`]) and what the calls and ends of the function read and write
//! by convention ([`Conventions`], which only allocated code still says), and makes a [`CodeReport`], which
//! serializes. [`liveness`] says which registers are alive where, [`model`] when instructions issue, [`purpose`] which
//! instructions are the allocator's.

pub mod liveness;
pub mod model;
#[cfg(all(test, feature = "driver", feature = "sim"))]
mod model_tests;
pub mod purpose;
#[cfg(test)]
mod tests;

use crate::analysis::graph::{Dominators, Loops};
use crate::isa::encode::WORD_BYTES;
use crate::isa::{Optype, PReg};
use crate::linear::Linear;
use crate::sched::Scheduled;
use crate::sched::access::{AccessLists, Resource};
use crate::vcode::Entry;
use liveness::{Liveness, ResourceSet};
use model::Timeline;
use purpose::Purpose;
use serde::Serialize;

pub use liveness::Conventions;

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstructionReport {
    /// Byte offset in the function.
    pub offset: u32,
    /// Its text without control bits.
    pub text: String,
    /// The control bits as the assembler reads them.
    pub control: String,
    /// Number of its place in the source; 0 where it has none.
    pub source: u32,
    /// What it is there for, if not for a line of the source.
    pub purpose: Option<Purpose>,
    /// Cycle of its issue from the start of its block, one warp alone.
    pub issue: u64,
    /// For each scoreboard that it raises, until which cycle.
    pub raises: Vec<(u8, u64)>,
    /// Scoreboards that it waits for.
    pub waits: Vec<u8>,
    /// Registers that it reads.
    pub reads: Vec<String>,
    /// Registers that it writes.
    pub writes: Vec<String>,
    /// Registers that are alive behind it.
    pub alive: Vec<String>,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlockReport {
    /// Index of its first instruction.
    pub first: usize,
    /// Number of its instructions.
    pub count: usize,
    /// Cycles from its first issue until the first of the next block, one warp alone.
    pub cycles: u64,
    /// Blocks that may come next.
    pub successors: Vec<usize>,
    /// The last block that every way to it passes; none for the entry and what is never reached.
    pub dominator: Option<usize>,
    /// Loops around it.
    pub depth: u32,
    /// The first block of the innermost loop around it.
    pub header: Option<usize>,
    /// Lanes may be elsewhere while it runs.
    pub divergent: bool,
    /// Convergence barriers that it sets (BSSY), each with the block where its lanes meet.
    pub sets: Vec<(String, Option<usize>)>,
    /// Convergence barriers that it waits at (BSYNC).
    pub meets: Vec<String>,
    /// Registers that are alive at its start.
    pub alive: Vec<String>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeReport {
    /// Its name.
    pub name: String,
    /// Its blocks in the order of the code.
    pub blocks: Vec<BlockReport>,
    /// Its instructions in the order of the code.
    pub instructions: Vec<InstructionReport>,
}

/// Reports on a function.
pub fn report(scheduled: &Scheduled, conventions: &Conventions) -> CodeReport {
    let code = scheduled.code();
    let mut accesses = AccessLists::default();
    accesses.fill(code);
    let graph = code.graph();
    let dominators = Dominators::new(&graph, 0);
    let loops = Loops::new(&graph, &dominators);
    let liveness = Liveness::new(code, &accesses, conventions);
    let starts = liveness.starts(&graph, &dominators);
    let spills = code.frame.spill_offset()..code.frame.spill_offset() + code.frame.spill_bytes;
    let mut instructions = Vec::with_capacity(code.len());
    let mut blocks = Vec::with_capacity(code.block_count());
    for block in 0..code.block_count() {
        let positions = code.positions(block);
        let timeline = Timeline::of(scheduled, &accesses, block);
        let alive = liveness.through(block, &starts);
        let entries = code.insts(block).zip(scheduled.controls(block));
        for (index, (entry, control)) in entries.enumerate() {
            let access = accesses.get(positions.start + index);
            let issued = &timeline.issued[index];
            let names = |resources: &mut dyn Iterator<Item = Resource>| {
                let mut set = ResourceSet::default();
                resources.for_each(|resource| set.insert(resource));
                set.names()
            };
            instructions.push(InstructionReport {
                offset: ((positions.start + index) * WORD_BYTES) as u32,
                text: entry.inst.to_string(),
                control: control.to_string().trim().to_owned(),
                source: entry.line.0,
                purpose: Purpose::of(&entry.inst, &spills),
                issue: issued.at,
                raises: issued.raises.to_vec(),
                waits: (0..8).filter(|s| control.wait() >> s & 1 != 0).collect(),
                reads: names(&mut access.reads.iter().copied()),
                writes: names(&mut access.writes.iter().map(|write| write.resource)),
                alive: alive[index].names(),
            });
        }
        let inner = loops.innermost(block);
        blocks.push(BlockReport {
            first: positions.start,
            count: positions.len(),
            cycles: timeline.cycles,
            successors: code.successors(block).collect(),
            dominator: dominators.immediate(block).filter(|&d| d != block),
            depth: loops.depth(block),
            header: inner.map(|index| loops.all()[index].header),
            divergent: code.is_divergent(block),
            sets: named(code, &accesses, block, Optype::BSSY)
                .flat_map(|(names, entry)| {
                    let place = code.label_block(entry);
                    names.into_iter().map(move |name| (name, place))
                })
                .collect(),
            meets: named(code, &accesses, block, Optype::BSYNC)
                .flat_map(|(names, _)| names)
                .collect(),
            alive: starts[block].names(),
        });
    }
    CodeReport {
        name: code.name.clone(),
        blocks,
        instructions,
    }
}

/// The instructions of an optype in a block, each with the names of the registers and barriers that it reads or writes.
fn named<'a>(
    code: &'a Linear,
    accesses: &'a AccessLists,
    block: usize,
    optype: Optype,
) -> impl Iterator<Item = (Vec<String>, &'a Entry<PReg>)> {
    let entries = code.insts(block).zip(code.positions(block));
    let of = entries.filter(move |(entry, _)| entry.inst.optype() == optype);
    of.map(|(entry, position)| {
        let access = accesses.get(position);
        let mut set = ResourceSet::default();
        access.reads.iter().for_each(|r| set.insert(*r));
        access.writes.iter().for_each(|w| set.insert(w.resource));
        let names = set.names().into_iter();
        // A guard is no barrier.
        (names.filter(|name| name.starts_with('B')).collect(), entry)
    })
}
