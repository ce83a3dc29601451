//! What stops a launch: breakpoints, watched memory, faults, the end.

use super::operand::{Condition, Look};
use super::session::WORD;
use super::state::{Machine, Next, State};
use crate::abi::LAUNCH_BANK;
use crate::launch::{AccessKind, Fault, Finding};
use crate::sim::warp::registers::{LANES, lanes};
use std::fmt;

/// A thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Thread {
    /// Number of its block in the grid, x first.
    pub block: u64,
    /// Number in its block, x first.
    pub thread: u32,
}

impl Thread {
    /// Number of its warp in the block.
    pub fn warp(self) -> u32 {
        self.thread / LANES as u32
    }

    /// Its lane in the warp.
    pub fn lane(self) -> usize {
        self.thread as usize % LANES
    }
}

/// Where a breakpoint is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A code address in bytes.
    Address(u32),
    /// The first instructions of the functions that the source calls so, behind what puts parameters into place, also
    /// where they were inlined; or the first instruction of the one with this symbol.
    Function(String),
    /// The first instructions of a line, or of what is inlined at it.
    Line {
        /// The file's name or the end of it; without one, any file whose name is not absolute.
        file: Option<String>,
        /// From 1.
        line: u32,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Address(address) => write!(f, "{address:#x}"),
            Place::Function(name) => f.write_str(name),
            Place::Line {
                file: Some(file),
                line,
            } => write!(f, "{file}:{line}"),
            Place::Line { file: None, line } => write!(f, "line {line}"),
        }
    }
}

/// Where a launch stops before it issues an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Breakpoint {
    /// The instruction.
    pub place: Place,
    /// Only in this block.
    pub block: Option<u64>,
    /// Only where this thread of a block comes by.
    pub thread: Option<u32>,
    /// Only where this holds in a lane that comes by.
    pub condition: Option<Condition>,
}

impl Breakpoint {
    /// For whoever comes by.
    pub fn at(place: Place) -> Breakpoint {
        Breakpoint {
            place,
            block: None,
            thread: None,
            condition: None,
        }
    }
}

/// A breakpoint that is set.
pub(super) struct SetBreakpoint {
    pub(super) id: u32,
    pub(super) breakpoint: Breakpoint,
    /// Indices of its instructions.
    pub(super) instructions: Vec<u32>,
}

impl SetBreakpoint {
    /// The lanes that stop at it.
    pub(super) fn lanes(&self, machine: &Machine, state: &State, next: Next, block: u64) -> u32 {
        let Breakpoint {
            block: wanted,
            thread,
            condition,
            ..
        } = &self.breakpoint;
        if !self.instructions.contains(&next.group.pc) || wanted.is_some_and(|b| b != block) {
            return 0;
        }
        let warp = state.warp(next);
        let mut mask = next.group.mask;
        if let Some(thread) = thread {
            let in_warp = thread / LANES as u32 == warp.index;
            mask &= u32::from(in_warp) << (*thread as usize % LANES);
        }
        let Some(condition) = condition else {
            return mask;
        };
        let look = Look {
            image: &machine.loaded.image,
            kernel: machine.request.kernel,
            bank: &machine.run.banks.banks[usize::from(LAUNCH_BANK)],
            warp,
            global: machine.global,
            shared: state.running[next.cta].shared(),
            pc: next.group.pc * WORD,
            kept: None,
        };
        let holding = lanes(mask).filter(|&lane| condition.holds(&look, lane));
        holding.fold(0, |all, lane| all | 1 << lane)
    }
}

/// A space of memory, and whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The device's.
    Global,
    /// A block's.
    Shared {
        /// Its number.
        block: u64,
    },
    /// A thread's.
    Local(Thread),
}

/// Which accesses of a watched place stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// Stores and atomics.
    Write,
    /// Loads and atomics.
    Read,
    /// All.
    Access,
}

impl Watch {
    pub(super) fn takes(self, kind: AccessKind) -> bool {
        match self {
            Watch::Write => kind != AccessKind::Load,
            Watch::Read => kind != AccessKind::Store,
            Watch::Access => true,
        }
    }
}

/// Memory at whose accesses a launch stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watchpoint {
    /// Where.
    pub space: Space,
    /// The address in global memory, else the offset.
    pub address: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Which accesses.
    pub watch: Watch,
}

/// An access to watched memory, which was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Number of the watchpoint.
    pub id: u32,
    /// What it did.
    pub kind: AccessKind,
    /// Who, the first of the lanes that did.
    pub thread: Thread,
    /// All lanes of the warp that did.
    pub lanes: u32,
    /// Code address of the instruction in bytes.
    pub pc: u32,
    /// What the first of the lanes accessed: address in global memory, else the offset.
    pub address: u64,
    /// Size of that.
    pub bytes: u32,
    /// What was there.
    pub old: u128,
    /// What is there now.
    pub new: u128,
}

/// Why a launch stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// It has not begun, or came back to its beginning.
    Beginning,
    /// What was asked for is done.
    Step,
    /// At a breakpoint, before the instruction.
    Breakpoint {
        /// Its number, the lowest of several.
        id: u32,
        /// The first thread that stops.
        thread: Thread,
        /// The lanes of its warp that stop.
        lanes: u32,
    },
    /// Behind an instruction that has accessed watched memory: its accesses, one for each watchpoint, never none.
    Watchpoint(Vec<Watched>),
    /// Behind an instruction or a barrier at which the checks have found something, never nothing.
    Finding(Vec<Finding>),
    /// Somebody asked for a pause.
    Paused,
    /// The kernel faulted.
    Fault(Box<Fault>),
    /// All blocks have ended.
    End,
}
