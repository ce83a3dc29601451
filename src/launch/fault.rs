//! Faults: why a launch stopped, as a value.
//!
//! After a fault the device and all its memory stay usable.

use super::allocation::Near;
pub use super::calls::Frame;
use super::code::Turning;
use super::place::{Place, Window, triple};
use super::wait::{SHOWN_WAITS, Wait};
use crate::isa::Illegal;
use crate::text::count;
use cranelift_codegen::ir::TrapCode;
use serde::{Serialize, Serializer};
use std::fmt;
use std::num::NonZeroU8;
use std::time::Duration;
use thiserror::Error;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one step.
    Atomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic",
        })
    }
}

/// The reason of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Error, Serialize)]
#[non_exhaustive]
pub enum FaultKind {
    /// An address in no allocation, or past the end of its window.
    #[error("{access} of {} at {address:#x} is out of bounds of {window} memory", count(*bytes, "byte"))]
    OutOfBounds {
        /// What was tried.
        access: AccessKind,
        /// Where.
        window: Window,
        /// Address in global memory, or offset in the window.
        address: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// An address that is no multiple of the access' size.
    #[error("{access} of {bytes} bytes at {address:#x} in {window} memory is misaligned")]
    Misaligned {
        /// What was tried.
        access: AccessKind,
        /// Where.
        window: Window,
        /// Address in global memory, or offset in the window.
        address: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// A store or an atomic to data that was declared read-only.
    #[error("{access} of {} at {address:#x} to read-only data", count(*bytes, "byte"))]
    ReadOnly {
        /// What was tried.
        access: AccessKind,
        /// Address in global memory.
        address: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// The stack, which grows down in local memory, went below offset 0.
    #[error(
        "stack overflow: {access} at local offset {offset} with a stack of {limit} bytes; if no recursion is endless, \
         raise `--stack` or `SimConfig::stack_bytes`"
    )]
    StackOverflow {
        /// What was tried.
        access: AccessKind,
        /// Local offset, negative.
        offset: i32,
        /// Bytes of local memory of a thread.
        limit: u32,
    },
    /// A constant bank that does not exist or is shorter.
    #[error("read of {} at c[{bank:#x}][{offset:#x}] is out of bounds", count(*bytes, "byte"))]
    ConstantOutOfBounds {
        /// Bank.
        bank: u8,
        /// Byte offset.
        offset: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// A constant offset that is no multiple of the access' size.
    #[error("read of {bytes} bytes at c[{bank:#x}][{offset:#x}] is misaligned")]
    ConstantMisaligned {
        /// Bank.
        bank: u8,
        /// Byte offset.
        offset: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// A word that is no instruction.
    #[error("illegal instruction: {0}")]
    IllegalInstruction(
        #[from]
        #[serde(serialize_with = "as_text")]
        Illegal,
    ),
    /// Control went to an address that is no instruction of the module.
    #[error("jump to {target:#x}, which is no instruction of the module")]
    BadJump {
        /// Code address.
        target: u64,
    },
    /// SETGPR or GETGPR of a register that does not exist (errata I-83).
    #[error("register index {index} is out of range")]
    RegisterIndex {
        /// Sum of the uniform register and the offset.
        index: i64,
    },
    /// TRAP.
    #[error("trap {code} ({})", trap_name(*.code))]
    Trap {
        /// Cranelift's trap code.
        code: u8,
    },
    /// A warp ran too long.
    #[error(
        "instruction budget of a warp exhausted: it issued {limit} instructions; if this is no endless loop, raise \
         `--budget` or `SimConfig::budget`"
    )]
    BudgetExhausted {
        /// Warp instructions a warp may issue.
        limit: u64,
    },
    /// The blocks that have not ended ran too long.
    #[error(
        "instruction budget of the launch exhausted: {running} of {blocks} blocks have issued {limit} instructions \
         together without ending, \
         {ended} have ended; if this is no endless loop and no wait for a block that has not begun, raise \
         `--launch-budget` or \
         `SimConfig::launch_budget`"
    )]
    LaunchBudgetExhausted {
        /// Warp instructions that blocks may issue together before they end.
        limit: u64,
        /// Blocks that have begun and not ended.
        running: u64,
        /// Blocks that have ended.
        ended: u64,
        /// Blocks of the launch.
        blocks: u64,
    },
    /// Every thread that has begun does the same again and again, or waits for those that do, and none of them changes
    /// memory. Found under checks.
    #[error(
        "endless: no thread of {} can go on, {ended} of {blocks} have ended{}",
        count(*running, "block"), no_room(*next, blocks - ended - running)
    )]
    Endless {
        /// Blocks that have begun and not ended.
        running: u64,
        /// Blocks that have ended.
        ended: u64,
        /// Blocks of the launch.
        blocks: u64,
        /// The first block that has not begun: it waits until one that has begun ends.
        next: Option<[u32; 3]>,
    },
    /// Somebody asked the launch to end.
    #[error("cancelled: {ended} of {blocks} blocks have ended")]
    Cancelled {
        /// Blocks that have ended.
        ended: u64,
        /// Blocks of the launch.
        blocks: u64,
    },
    /// The launch took longer than it may.
    #[error("time limit of {limit:?} exceeded: {ended} of {blocks} blocks have ended")]
    TimeLimit {
        /// What it may take.
        limit: Duration,
        /// Blocks that have ended.
        ended: u64,
        /// Blocks of the launch.
        blocks: u64,
    },
    /// Only a part of the warp's live lanes came to BAR.SYNC.
    #[error(
        "barrier divergence: lanes {arrived:#010x} of the live lanes {live:#010x} are at the barrier"
    )]
    BarrierDivergence {
        /// Lanes that arrived together.
        arrived: u32,
        /// Lanes that have not exited.
        live: u32,
    },
    /// Two warps wait at different BAR.SYNCs.
    #[error(
        "barrier divergence: thread {other_thread} of the block waits at another barrier, at pc {other_pc:#x}"
    )]
    DifferentBarriers {
        /// Thread index in the block of the other warp's first waiting lane.
        other_thread: u32,
        /// Code address in bytes of the other BAR.SYNC.
        other_pc: u32,
    },
    /// No lane of the warp can go on.
    #[error("deadlock: lanes {waiting:#010x} wait for lanes that never come")]
    Deadlock {
        /// The waiting lanes.
        waiting: u32,
    },
    /// WARPSYNC waits for certain lanes of the warp that do not run together with these.
    #[error(
        "the lanes {missing:#010x} are waited for and run apart; raise `--warp-lanes` or `SimConfig::warp_lanes`"
    )]
    LanesApart {
        /// The lanes that never come.
        missing: u32,
    },
    /// A shuffle reads a lane that does not take part.
    #[error("shuffle reads lane {source_lane}, which is not active")]
    InactiveLane {
        /// The lane that is read.
        source_lane: u8,
    },
}

/// Which blocks have not begun.
fn no_room(next: Option<[u32; 3]>, blocks: u64) -> String {
    next.map_or(String::new(), |[x, y, z]| {
        let blocks = count(blocks, "block");
        format!(", {blocks} from ({x},{y},{z}) on will not begin before those that have begun end")
    })
}

/// Why a word is illegal, in words.
fn as_text<S: Serializer>(illegal: &Illegal, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(illegal)
}

/// Cranelift's name of a trap code.
fn trap_name(code: u8) -> String {
    NonZeroU8::new(code).map_or("no trap code".to_string(), |code| {
        TrapCode::from_raw(code).to_string()
    })
}

/// Calls that a fault prints (*assumed*: of a deeper recursion the rest is alike).
const SHOWN_CALLS: usize = 16;

/// A launch stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Why.
    pub kind: FaultKind,
    /// Where.
    pub place: Place,
    /// General registers of the thread that are not 0: number and value.
    pub registers: Vec<(u8, u32)>,
    /// Predicates of the thread, P0 in bit 0.
    pub predicates: u8,
    /// The calls that the thread is in, the innermost first, at most 256; none in the kernel itself.
    pub calls: Vec<Frame>,
    /// How many calls the thread is in.
    pub depth: usize,
    /// Where a launch that could not go on was: who waited for whom, at most 64. Places in memory are known to checks
    /// only.
    pub waits: Vec<Wait>,
    /// Of an access out of bounds of global memory, the nearest allocation. The [`Device`](crate::driver::Device) knows
    /// it.
    pub near: Option<Near>,
    /// Of a launch that was ended from outside or took too long, which warp ran, and in which loop.
    pub turning: Option<Turning>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.turning {
            None => write!(f, "{}: {}", self.place, self.kind)?,
            Some(turning) => {
                let (kernel, block) = (&self.place.kernel, triple(self.place.block));
                write!(
                    f,
                    "kernel {kernel}, block {block}, {turning}: {}",
                    self.kind
                )?;
                write!(f, "\n  it was at {}", self.place)?;
            }
        }
        if let Some(near) = &self.near {
            write!(f, "\n  {near}")?;
        }
        let shown = self.calls.len().min(SHOWN_CALLS);
        for frame in &self.calls[..shown] {
            write!(f, "\n  called from {frame}")?;
        }
        match self.depth.saturating_sub(shown) {
            0 => {}
            left => write!(f, "\n  and {}", more(left, "call"))?,
        }
        for wait in self.waits.iter().take(SHOWN_WAITS) {
            write!(f, "\n  {wait}")?;
        }
        match self.waits.len().saturating_sub(SHOWN_WAITS) {
            0 => Ok(()),
            left => write!(f, "\n  and {}", more(left, "wait")),
        }
    }
}

/// `1 more call`, `2 more calls`.
fn more(left: usize, what: &str) -> String {
    count(left as u64, &format!("more {what}"))
}

impl std::error::Error for Fault {}
