//! Where the cycles of a launch went: counts for each instruction, and what every warp did in every cycle.
//!
//! Both are made by a driver that counts cycles, when it is asked to. A cycle of a warp from its start to its end is
//! either an issue of an instruction or a stall of the one that it would issue next, for one reason of a closed list
//! ([`Stall`]); so for each instruction issues and stalls together are the time that warps spent at it.

use crate::isa::Optype;
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::sync::LazyLock;

/// Bytes of a sector, in which global and local memory are transferred (*assumed*).
pub const SECTOR_BYTES: u64 = 32;
/// Banks of shared memory, of four bytes each (*assumed*).
pub const BANKS: usize = 32;

/// Why a warp does not issue an instruction in a cycle.
///
/// The first four are the machine's; behind them comes a reason for every class of the latency table that scoreboards
/// signal: the instruction waits for one of that class, for its result or until it has read its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stall(u8);

/// The names of all reasons, and that of each optype's scoreboard by its number.
static REASONS: LazyLock<(Vec<String>, Vec<Stall>)> = LazyLock::new(|| {
    let mut names: Vec<String> = ["stall", "fence", "barrier", "not_selected"]
        .map(String::from)
        .into();
    let of = Optype::ALL.iter().map(|optype| {
        let latency = optype.info().latency;
        if !latency.variable {
            return Stall::FIXED;
        }
        let name = latency.class.to_ascii_lowercase();
        let known = names.iter().position(|other| *other == name);
        let index = known.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        Stall(index as u8)
    });
    let of = of.collect();
    (names, of)
});

impl Stall {
    /// The stall of the instruction before, which covers results of fixed latency.
    pub const FIXED: Stall = Stall(0);
    /// The fence before is not over.
    pub const FENCE: Stall = Stall(1);
    /// Other warps of the block have not arrived. Counted at the barrier itself.
    pub const BARRIER: Stall = Stall(2);
    /// Nothing keeps it; the scheduler has issued another warp's instruction.
    pub const NOT_SELECTED: Stall = Stall(3);

    /// Waiting for a scoreboard that an instruction of this optype has raised.
    pub fn scoreboard(optype: Optype) -> Stall {
        REASONS.1[optype as usize]
    }

    /// All reasons.
    pub fn all() -> impl Iterator<Item = Stall> {
        (0..REASONS.0.len()).map(|index| Stall(index as u8))
    }

    /// Its name: that of the latency class in lower case for scoreboards.
    pub fn name(self) -> &'static str {
        &REASONS.0[usize::from(self.0)]
    }
}

/// Cycles for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stalls(Vec<u64>);

impl Stalls {
    /// Adds cycles.
    pub fn add(&mut self, stall: Stall, cycles: u64) {
        let index = usize::from(stall.0);
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += cycles;
    }

    /// Cycles for one reason.
    pub fn of(&self, stall: Stall) -> u64 {
        self.0.get(usize::from(stall.0)).copied().unwrap_or(0)
    }

    /// The reasons that took time, with their cycles.
    pub fn iter(&self) -> impl Iterator<Item = (Stall, u64)> + '_ {
        let all = self.0.iter().enumerate().filter(|(_, cycles)| **cycles > 0);
        all.map(|(index, cycles)| (Stall(index as u8), *cycles))
    }

    /// Cycles for all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Serialize for Stalls {
    /// A map from names to cycles, without those that took none.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (stall, cycles) in self.iter() {
            map.serialize_entry(stall.name(), &cycles)?;
        }
        map.end()
    }
}

/// What one instruction cost in a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct InstructionProfile {
    /// Its code address in bytes.
    pub address: u32,
    /// Its text.
    pub text: String,
    /// The function that it is in.
    pub function: Option<String>,
    /// Its bytes from the start of that.
    pub offset: u32,
    /// The file that it comes from, where lines are known.
    pub file: Option<String>,
    /// The line that it comes from; 0 is unknown.
    pub line: u32,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Counts of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// How often a warp has issued it.
    pub issues: u64,
    /// In how many lanes it ran, of all issues together.
    pub lanes: u64,
    /// Cycles that warps waited before it.
    pub stalls: Stalls,
    /// Bytes that its lanes asked for of global, shared or local memory.
    pub bytes: u64,
    /// Sectors of 32 bytes that those of global and local memory lie in, counted for each issue.
    pub sectors: u64,
    /// Turns of shared memory more than without bank conflicts.
    pub bank_conflicts: u64,
}

/// What every instruction of a launch cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Profile {
    /// The kernel.
    pub kernel: String,
    /// Cycles of the launch.
    pub cycles: u64,
    /// Those instructions that were issued or waited for, by address.
    pub instructions: Vec<InstructionProfile>,
}
