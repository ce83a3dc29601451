//! What the checks find, as values and as text.

use crate::sim::fault::{AccessKind, Window};
use crate::sim::footprint::Resource;
use std::fmt;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// A register was read that nothing was written to.
    UndefinedRegister(Resource),
    /// Memory was read that nothing was written to.
    UndefinedMemory {
        /// Where.
        window: Window,
        /// Offset in the window or the allocation.
        offset: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// Two threads used the same byte, at least one writing and not both atomically, with nothing that orders them. The finding's other
    /// place is the earlier access.
    Race {
        /// Global or shared memory.
        window: Window,
        /// Address of the byte in global memory, or its offset in shared memory.
        address: u64,
        /// What the later one does.
        access: AccessKind,
        /// What the earlier one does.
        earlier: AccessKind,
    },
    /// A uniform register was written in only a part of the warp's live lanes: the others were elsewhere, or their guard was false.
    DivergentUniformWrite {
        /// The register.
        register: Resource,
        /// The lanes that wrote.
        active: u32,
        /// The live lanes.
        live: u32,
    },
    /// BAR.SYNC was passed by a part of the block: the other threads had left before. The finding's other place is where the first left.
    PartialBarrier {
        /// Threads at the barrier.
        arrived: u32,
        /// Threads of the block.
        threads: u32,
        /// Which barrier of the block it is, from 1.
        number: u32,
        /// Barriers that the thread that left first had passed.
        passed: u32,
    },
    /// An access to local memory outside of the stack slots that are next to it.
    StackOverrun {
        /// What it does.
        access: AccessKind,
        /// Size of the access.
        bytes: u32,
        /// Whether it is the frame of the function that the instruction is in, else that of a caller.
        own: bool,
        /// Number of the slot below.
        below: Option<u32>,
        /// Number of the slot above.
        above: Option<u32>,
    },
    /// BSYNC of a barrier that the lane never set: no BSSY was on its path.
    UnsetBarrier {
        /// Number of the barrier.
        barrier: u8,
    },
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindingKind::UndefinedRegister(register) => {
                write!(f, "{register} is read before anything was written to it")
            }
            FindingKind::UndefinedMemory {
                window,
                offset,
                bytes,
            } => {
                write!(
                    f,
                    "{bytes} bytes of {window} memory at offset {offset:#x} are read before anything was written to them"
                )
            }
            FindingKind::Race {
                window,
                address,
                access,
                earlier,
            } => {
                write!(
                    f,
                    "race on byte {address:#x} of {window} memory: nothing orders this {access} behind another thread's {earlier}"
                )
            }
            FindingKind::DivergentUniformWrite {
                register,
                active,
                live,
            } => {
                write!(
                    f,
                    "{register} is written by the lanes {active:#010x} only, {live:#010x} are live"
                )
            }
            FindingKind::PartialBarrier {
                arrived,
                threads,
                number,
                passed,
            } => {
                write!(
                    f,
                    "barrier {number} of the block is reached by {arrived} of its {threads} threads, the others have left, the first after {passed} barriers"
                )
            }
            FindingKind::StackOverrun {
                access,
                bytes,
                own,
                below,
                above,
            } => {
                let frame = if *own { "this function" } else { "a caller" };
                write!(
                    f,
                    "{access} of {bytes} bytes in the frame of {frame} is out of bounds: "
                )?;
                match (below, above) {
                    (Some(below), Some(above)) => write!(f, "between ss{below} and ss{above}"),
                    (Some(below), None) => write!(f, "behind ss{below}"),
                    (None, Some(above)) => write!(f, "before ss{above}"),
                    (None, None) => write!(f, "in no slot"),
                }
            }
            FindingKind::UnsetBarrier { barrier } => {
                write!(f, "B{barrier} was never set on the way here")
            }
        }
    }
}

/// A place inside the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Coordinates of the CTA.
    pub block: [u32; 3],
    /// Thread index in the CTA.
    pub thread: u32,
    /// Index of the instruction.
    pub pc: u32,
}

/// A finding inside the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFinding {
    /// What.
    pub kind: FindingKind,
    /// Where.
    pub at: Spot,
    /// Where the other thread was, if two are involved.
    pub other: Option<Spot>,
}
