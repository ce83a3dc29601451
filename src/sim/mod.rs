//! The simulator: the default device, and the reference for what instructions mean.
//!
//! A machine of warps with 32 lanes at two speeds. *Functional*: decoded once, then run lane loop by lane loop. *Timed*: the same
//! instructions under an in-order issue model that counts cycles and finds hazards. Both compute the same values.
//!
//! In: an [`image::Image`], linked code with its constants, and a [`launch::LaunchRequest`]. Out: a [`launch::Report`] with counts, the
//! fault if there was one, hazards and findings. Nothing here panics on what a program does.
//!
//! The way of an instruction: [`decoded`] and [`action`] resolve its word once, [`execute`] runs it in a warp ([`warp`], [`registers`], [`access`],
//! [`memory`], [`global`], [`words`], [`bytes`], [`atomic`], [`convergent`]), [`cta`] lets warps take turns, [`launch`] the CTAs. [`check`] and [`timed`],
//! with [`pending`], look on, [`progress`] lets others do so.

pub mod access;
pub mod action;
pub mod atomic;
pub mod bytes;
pub mod check;
pub mod convergent;
pub mod cta;
pub mod decoded;
pub mod execute;
pub mod fault;
pub mod footprint;
pub mod global;
pub mod image;
pub mod launch;
pub mod memory;
pub mod pending;
pub mod progress;
pub mod registers;
pub mod semantics;
#[cfg(test)]
mod tests;
pub mod timed;
pub mod warp;
pub mod words;

pub use fault::{Fault, FaultKind};
pub use global::{Global, Table};
pub use image::Image;
pub use launch::{Finding, Hazard, LaunchError, LaunchRequest, Loaded, Report};
pub use progress::Progress;

/// Switches of the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// Warp instructions that a warp may issue in a launch.
    pub budget: u64,
    /// Warp instructions that those blocks of a launch may have issued together which have not ended. What ends is not counted, so
    /// that a launch of many blocks may be as long as it takes.
    pub launch_budget: u64,
    /// Count cycles and find hazards.
    pub timed: bool,
    /// Look for uninitialised reads, races, barriers reached by a part of the block and uniform writes in divergent code.
    pub check: bool,
    /// Lanes of a warp that run together, 1 to 32: a warp of 32 threads runs as pieces of so many lanes, each a warp of its own for everything
    /// that lanes do together. Numbers of threads, lanes and warps stay as they are.
    pub warp_lanes: u32,
    /// Readings of the documents, and the seed that perturbs approximate instructions.
    pub semantics: semantics::Reference,
    /// Local memory of a thread in bytes, a multiple of 16: the initial stack pointer.
    pub stack_bytes: u32,
    /// Bytes of device memory, at most.
    pub memory_bytes: u64,
}

impl Default for SimConfig {
    fn default() -> Self {
        SimConfig {
            budget: 1 << 24,
            launch_budget: 1 << 27,
            timed: false,
            check: false,
            warp_lanes: registers::LANES as u32,
            semantics: semantics::Reference::default(),
            stack_bytes: 64 * 1024,
            memory_bytes: 4 << 30,
        }
    }
}

/// Counts of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
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
