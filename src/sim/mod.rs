//! The simulator: the default device, and the reference for what instructions mean.
//!
//! A machine of warps with 32 lanes at two speeds, and one that keeps memory in order only where code asks for it
//! ([`weak`]). *Functional*: decoded once, then run lane loop by lane loop. *Timed*: the same
//! instructions under an in-order issue model that counts cycles and finds hazards. Both compute the same values.
//!
//! In: an [`Image`], linked code with its constants, and a [`LaunchRequest`]. Out: a [`Report`] with counts, the
//! fault if there was one, hazards and findings. Nothing here panics on what a program does.
//!
//! The way of an instruction: [`decode`] resolves its word once and chooses what runs it over the lanes, [`execute`]
//! runs it in a [`warp`] on its [`memory`], [`launch`] lets warps and blocks take turns. [`semantics`] says what pure
//! operations compute. Three look on or change how it goes: [`timing`], [`check`] and [`weak`]. [`debug`] stops it
//! anywhere, and goes backwards.

pub(crate) mod check;
pub mod debug;
pub(crate) mod decode;
pub(crate) mod execute;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod semantics;
#[cfg(test)]
mod tests;
pub(crate) mod timing;
pub(crate) mod warp;
pub(crate) mod weak;

pub use crate::launch::{
    Fault, FaultKind, Finding, Hazard, Image, LaunchError, LaunchRequest, Progress, Report, Stats,
};
pub use decode::host::Simd;
pub use semantics::Reference;

/// Switches of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// Warp instructions that a warp may issue in a launch. With `check`, [`SimConfig::BUDGET`] stands for
    /// [`SimConfig::CHECKED_BUDGET`].
    pub budget: u64,
    /// Warp instructions that those blocks of a launch may have issued together which have not ended. What ends is not
    /// counted, so that a launch of many blocks may be as long as it takes. With `check`, [`SimConfig::LAUNCH_BUDGET`]
    /// stands for [`SimConfig::CHECKED_LAUNCH_BUDGET`], and an access that the lanes of a warp make one by one counts
    /// once for each word of each lane.
    pub launch_budget: u64,
    /// Count cycles and find hazards.
    pub timed: bool,
    /// In timed mode, count for each instruction what it cost ([`Report::profile`]).
    pub profile: bool,
    /// In timed mode, record so many events of the warps at most ([`Report::trace`]).
    pub trace_events: Option<usize>,
    /// Look for uninitialised reads, races, barriers reached by a part of the block and uniform writes in divergent
    /// code.
    pub check: bool,
    /// Perform accesses of memory out of order and let warps and blocks take turns at random, as the memory model
    /// allows; the same number, which is the seed, gives the same run. A mode of its own, on one thread of the host:
    /// `timed` and `check` count as off.
    pub weak: Option<u64>,
    /// Lanes of a warp that run together, 1 to 32: a warp of 32 threads runs as pieces of so many lanes, each a warp of
    /// its own for everything that lanes do together. Numbers of threads, lanes and warps stay as they are.
    pub warp_lanes: u32,
    /// Readings of the documents, and the seed that perturbs approximate instructions.
    pub semantics: semantics::Reference,
    /// Threads of the host that run the blocks of a launch; 0: as many as it runs at a time. One with `timed`, and
    /// where blocks may wait for each other (atomics on global memory), but without `deterministic`. What a launch
    /// writes and counts is the same, unless blocks race without atomics; with `check` also then, and so is what is
    /// found.
    pub threads: u32,
    /// The same launch on the same memory gives the same result. Without that, blocks of programs with atomics on
    /// global memory run on several threads too (`threads`), and what depends on who comes first depends on the host:
    /// who gets a lock or which piece of work, sums of floating-point numbers, counts, which fault is told. With
    /// `timed`, `check`, `weak` or `turns` it changes nothing.
    pub deterministic: bool,
    /// Which vector instructions of the host pure operations may use. Results are the same.
    pub simd: Simd,
    /// Local memory of a thread in bytes, a multiple of 16: the initial stack pointer.
    pub stack_bytes: u32,
    /// Bytes of device memory, at most.
    pub memory_bytes: u64,
    /// A seed: which warp of a block issues next, which group of its lanes, and for how many instructions, is random,
    /// but for `timed`. The same seed gives the same run. Without one, warps and groups take their turns in order.
    pub turns: Option<u64>,
}

impl SimConfig {
    /// The budget of a warp by default (assigned).
    pub const BUDGET: u64 = 1 << 24;
    /// The budget of a launch by default (assigned).
    pub const LAUNCH_BUDGET: u64 = 1 << 27;
    /// The default of a warp with `check`, where an instruction takes longer (assigned).
    pub const CHECKED_BUDGET: u64 = 1 << 21;
    /// The default of a launch with `check` (assigned).
    pub const CHECKED_LAUNCH_BUDGET: u64 = 1 << 22;

    /// Warp instructions that a warp may issue.
    pub(crate) fn warp_limit(&self) -> u64 {
        match self.budget {
            Self::BUDGET if self.check => Self::CHECKED_BUDGET,
            budget => budget,
        }
    }

    /// Warp instructions that blocks may issue together before they end.
    pub(crate) fn launch_limit(&self) -> u64 {
        match self.launch_budget {
            Self::LAUNCH_BUDGET if self.check => Self::CHECKED_LAUNCH_BUDGET,
            budget => budget,
        }
    }
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig {
            budget: Self::BUDGET,
            launch_budget: Self::LAUNCH_BUDGET,
            timed: false,
            profile: false,
            trace_events: None,
            check: false,
            weak: None,
            warp_lanes: warp::registers::LANES as u32,
            semantics: semantics::Reference::default(),
            threads: 0,
            deterministic: true,
            simd: Simd::default(),
            stack_bytes: 64 * 1024,
            memory_bytes: 4 << 30,
            turns: None,
        }
    }
}
