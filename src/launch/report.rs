//! What came of a launch: counts, the fault, hazards, findings.

use super::fault::{AccessKind, Fault};
use super::place::{Place, Window};
use super::profile::Profile;
use super::trace::Trace;
use crate::isa::register::{PReg, Register, RegisterClass};
use std::fmt;

/// Counts of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Stats {
    /// Cycles in timed mode, else 0. CTAs that are not resident together count one after another.
    pub cycles: u64,
    /// Instructions issued by warps.
    pub warp_instructions: u64,
    /// The same times the lanes in which they ran.
    pub thread_instructions: u64,
    /// Hazards found in timed mode.
    pub hazards: u64,
    /// Faults: 0 or 1.
    pub faults: u64,
}

/// A register of any file, or a convergence barrier, as one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(u16);

impl Resource {
    /// Numbers are below this.
    pub const COUNT: usize = 0x401;

    /// Some general register, known only at run time.
    pub const ANY_GENERAL: Resource = Resource(0x400);

    /// A register.
    pub fn register(class: RegisterClass, number: u8) -> Self {
        Resource((class as u16) << 8 | u16::from(number))
    }

    /// A convergence barrier.
    pub fn barrier(number: u8) -> Self {
        Resource(0x300 | u16::from(number))
    }

    /// Its register file; none for a barrier and for [`Resource::ANY_GENERAL`].
    pub fn class(self) -> Option<RegisterClass> {
        RegisterClass::ALL.get(usize::from(self.0 >> 8)).copied()
    }

    /// Its number in its file.
    pub fn number(self) -> u8 {
        self.0 as u8
    }

    /// Its number among all.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Whether two may be the same.
    pub fn meets(self, other: Resource) -> bool {
        let general = |r: Resource| r == Self::ANY_GENERAL || r.class() == Some(RegisterClass::Gpr);
        self == other
            || ((self == Self::ANY_GENERAL || other == Self::ANY_GENERAL)
                && general(self)
                && general(other))
    }
}

impl From<PReg> for Resource {
    fn from(register: PReg) -> Self {
        Resource::register(register.class(), register.number())
    }
}

impl std::fmt::Display for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.class() {
            Some(class) => write!(f, "{}{}", class.prefix(), self.number()),
            None if *self == Self::ANY_GENERAL => f.write_str("R[]"),
            None => write!(f, "B{}", self.number()),
        }
    }
}

/// What a hazard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HazardKind {
    /// Read before the result has arrived.
    ReadAfterWrite,
    /// Overwritten before an earlier result has arrived.
    WriteAfterWrite,
    /// Overwritten while it may still be read.
    WriteAfterRead,
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HazardKind::ReadAfterWrite => "is read before the result has arrived that",
            HazardKind::WriteAfterWrite => "is overwritten before the result has arrived that",
            HazardKind::WriteAfterRead => {
                "is overwritten while it may still be read by the instruction that"
            }
        })
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// A register was used that nothing was written to. If that came from the stack, the finding's other place is the
    /// load.
    UndefinedRegister(Resource),
    /// Memory was read that nothing was written to, and the value used: for more than a copy. The finding's place is
    /// the use, its other one the load; the two are one for atomics and strong loads.
    UndefinedMemory {
        /// Where.
        window: Window,
        /// Offset in the window or the allocation.
        offset: u64,
        /// Size of the access.
        bytes: u32,
    },
    /// Two threads used the same byte, at least one writing and not both atomically, with nothing that orders them. The
    /// finding's other place is the earlier access.
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
    /// A uniform register was written in only a part of the warp's live lanes: the others were elsewhere, or their
    /// guard was false.
    DivergentUniformWrite {
        /// The register.
        register: Resource,
        /// The lanes that wrote.
        active: u32,
        /// The live lanes.
        live: u32,
    },
    /// BAR.SYNC was passed by a part of the block: the other threads had left before. The finding's other place is
    /// where the first left.
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
    /// An access to local memory below the stack pointer: to the frame of a function that has returned. The finding's
    /// other place is where it returned.
    DeadStack {
        /// What it does.
        access: AccessKind,
        /// Size of the access.
        bytes: u32,
    },
    /// An access by an address of another thread's stack, which means the own stack here. The finding's other place is
    /// where the other thread gave the address away.
    ForeignStack {
        /// What it does.
        access: AccessKind,
        /// Offset in local memory.
        offset: u64,
        /// Size of the access.
        bytes: u32,
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
                    "{bytes} bytes of {window} memory at offset {offset:#x} are used before anything was written to \
                     them"
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
                    "race on byte {address:#x} of {window} memory: nothing orders this {access} behind another \
                     thread's {earlier}"
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
                    "barrier {number} of the block is reached by {arrived} of its {threads} threads, the others have \
                     left, the first after {passed} barriers"
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
            FindingKind::DeadStack { access, bytes } => {
                write!(
                    f,
                    "{access} of {bytes} bytes below the stack pointer, in the frame of a function that has returned"
                )
            }
            FindingKind::ForeignStack {
                access,
                offset,
                bytes,
            } => {
                write!(
                    f,
                    "{access} of {bytes} bytes by an address of another thread's stack, which means offset {offset:#x} \
                     of the own one here"
                )
            }
        }
    }
}

/// A hazard: the control bits do not keep two instructions apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// What.
    pub kind: HazardKind,
    /// The register.
    pub register: Resource,
    /// The instruction that comes too early.
    pub place: Place,
    /// The earlier instruction: code address and text.
    pub earlier: (u32, String),
    /// Cycle of the issue.
    pub cycle: u64,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pc, text) = &self.earlier;
        write!(
            f,
            "{}: hazard: {} {} is at pc {pc:#x}: {text}",
            self.place, self.register, self.kind
        )
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What.
    pub kind: FindingKind,
    /// Where.
    pub place: Place,
    /// Where the other thread was, if two are involved: the earlier access of a race, the thread that left before a
    /// barrier. Or where a value was loaded that nobody wrote.
    pub other: Option<Place>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)?;
        match &self.other {
            Some(other) => write!(f, "; the other: {other}"),
            None => Ok(()),
        }
    }
}

/// What came of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Counts.
    pub stats: Stats,
    /// The fault that ended it.
    pub fault: Option<Fault>,
    /// Hazards of timed mode, each pair of instructions once, at most a hundred.
    pub hazards: Vec<Hazard>,
    /// What the checks found, each instruction or pair of instructions once, at most a hundred.
    pub findings: Vec<Finding>,
    /// Blocks that had begun and not ended, at most at one time: the launch took memory for so many.
    pub resident: u64,
    /// What every instruction cost, where the device was asked for it and counts cycles.
    pub profile: Option<Profile>,
    /// What every warp did, where the device was asked for it and counts cycles.
    pub trace: Option<Trace>,
}
