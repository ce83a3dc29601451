//! What the device holds, in one table, and how much of it a kernel leaves to others.
//!
//! The compiler takes from it how many registers a kernel with launch bounds may use, the simulator how many blocks are
//! resident together, a launch what it refuses. All numbers are *assigned*.

use crate::abi;
use std::fmt;

/// Threads of a warp.
pub const WARP_THREADS: u32 = 32;

/// The table. A driver of another device may have another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Warps that are resident together in a multiprocessor, at most.
    pub warps: u32,
    /// Blocks that are, at most.
    pub blocks: u32,
    /// Registers of a multiprocessor.
    pub registers: u32,
    /// A thread gets registers in steps of so many.
    pub register_step: u32,
    /// Shared memory of a multiprocessor in bytes; a block may have all of it.
    pub shared_bytes: u32,
    /// Threads of a block, at most.
    pub block_threads: u32,
}

impl DeviceProperties {
    /// The machine that the compiler compiles for and the simulator is.
    pub const ASSIGNED: DeviceProperties = DeviceProperties {
        multiprocessors: 16,
        warps: 64,
        blocks: 32,
        registers: 65_536,
        register_step: abi::REGISTER_STEP,
        shared_bytes: abi::MAX_SHARED,
        block_threads: abi::MAX_THREADS as u32,
    };

    /// How many blocks of so many threads are resident together in a multiprocessor, if a thread has so many registers
    /// and a block so many bytes of shared memory, static and dynamic.
    pub fn occupancy(&self, threads: u32, registers: u32, shared_bytes: u32) -> Occupancy {
        let block_warps = threads.div_ceil(WARP_THREADS).max(1);
        let thread_registers =
            u64::from(registers.max(1)).next_multiple_of(self.register_step.into());
        let block_threads = u64::from(block_warps) * u64::from(WARP_THREADS);
        let block_registers = thread_registers.saturating_mul(block_threads);
        let by_registers = u64::from(self.registers) / block_registers;
        let limits = [
            (Limit::Warps, self.warps / block_warps),
            (Limit::Blocks, self.blocks),
            (Limit::Registers, by_registers as u32),
            (
                Limit::Shared,
                self.shared_bytes
                    .checked_div(shared_bytes)
                    .unwrap_or(u32::MAX),
            ),
        ];
        let [first, rest @ ..] = limits;
        let (limit, blocks) =
            rest.into_iter().fold(
                first,
                |least, next| if next.1 < least.1 { next } else { least },
            );
        let blocks = if threads > self.block_threads {
            0
        } else {
            blocks
        };
        Occupancy {
            blocks,
            warps: blocks * block_warps,
            most_warps: self.warps,
            limit,
        }
    }

    /// The registers that a thread may have so that `blocks` blocks of `threads` threads are resident together; none if
    /// they cannot be, whatever it has.
    pub fn registers_for(&self, threads: u32, blocks: u32) -> Option<u32> {
        let block_warps = threads.div_ceil(WARP_THREADS).max(1);
        let warps = block_warps.checked_mul(blocks.max(1))?;
        if warps > self.warps || blocks > self.blocks || threads > self.block_threads {
            return None;
        }
        Some(self.registers_of_warps(warps))
    }

    /// The registers that a thread may have so that so many warps are resident together.
    pub(crate) const fn registers_of_warps(&self, warps: u32) -> u32 {
        let registers = self.registers / (warps * WARP_THREADS);
        registers / self.register_step * self.register_step
    }

    /// The registers that launch bounds leave a thread; none without bounds.
    ///
    /// # Errors
    /// Why the bounds cannot be kept.
    pub(crate) fn register_limit(
        &self,
        max_threads: Option<u32>,
        min_blocks: Option<u32>,
        shared_bytes: u32,
    ) -> Result<Option<u32>, String> {
        if max_threads.is_none() && min_blocks.is_none() {
            return Ok(None);
        }
        let threads = max_threads.unwrap_or(self.block_threads);
        let blocks = min_blocks.unwrap_or(1);
        if threads == 0 || threads > self.block_threads {
            let most = self.block_threads;
            return Err(format!("max_threads={threads} is not from 1 to {most}"));
        }
        if blocks == 0 || blocks > self.blocks {
            let most = self.blocks;
            return Err(format!("min_blocks={blocks} is not from 1 to {most}"));
        }
        let shared = self.shared_bytes;
        if u64::from(shared_bytes) * u64::from(blocks) > u64::from(shared) {
            return Err(format!(
                "{blocks} blocks with {shared_bytes} bytes of shared memory each do not fit into the {shared} bytes of \
                 a multiprocessor"
            ));
        }
        match self.registers_for(threads, blocks) {
            Some(registers) => Ok(Some(registers)),
            None => Err(format!(
                "{blocks} blocks of {threads} threads are more than the {} warps of a multiprocessor",
                self.warps
            )),
        }
    }
}

/// What keeps more blocks from being resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Warps.
    Warps,
    /// Blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
}

/// How much of a multiprocessor a kernel fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occupancy {
    /// Blocks that are resident together; 0 if not even one is.
    pub blocks: u32,
    /// Their warps.
    pub warps: u32,
    /// Warps that could be.
    pub most_warps: u32,
    /// What there is too little of for one more.
    pub limit: Limit,
}

impl fmt::Display for Occupancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Occupancy {
            blocks,
            warps,
            most_warps,
            limit,
        } = self;
        let limit = match limit {
            Limit::Warps => "warps",
            Limit::Blocks => "blocks",
            Limit::Registers => "registers",
            Limit::Shared => "shared memory",
        };
        let plural = if *blocks == 1 { "" } else { "s" };
        write!(
            f,
            "{blocks} block{plural}, {warps} of {most_warps} warps, limited by {limit}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: DeviceProperties = DeviceProperties::ASSIGNED;

    #[test]
    fn the_scarcest_limits_the_blocks() {
        for (threads, registers, shared, blocks, limit) in [
            (32, 16, 0, 32, Limit::Blocks),
            (64, 32, 0, 32, Limit::Warps),
            (1024, 32, 0, 2, Limit::Warps),
            (1024, 33, 0, 1, Limit::Registers),
            (1024, 65, 0, 0, Limit::Registers),
            (256, 64, 0, 4, Limit::Registers),
            (256, 8, 100 << 10, 2, Limit::Shared),
            (33, 8, 0, 32, Limit::Warps),
        ] {
            let found = TABLE.occupancy(threads, registers, shared);
            assert_eq!(found.blocks, blocks, "{threads} {registers} {shared}");
            if blocks != 32 || limit == Limit::Blocks {
                assert_eq!(found.limit, limit, "{threads} {registers} {shared}");
            }
            assert!(found.warps <= TABLE.warps);
        }
        assert_eq!(
            TABLE.occupancy(256, 64, 0).to_string(),
            "4 blocks, 32 of 64 warps, limited by registers"
        );
    }

    /// The registers for a number of blocks are the most with which so many are resident.
    #[test]
    fn registers_are_the_most_that_leave_room() {
        for threads in (32..=1024).step_by(96) {
            for blocks in 1..=32 {
                let Some(registers) = TABLE.registers_for(threads, blocks) else {
                    assert!(TABLE.occupancy(threads, 1, 0).blocks < blocks);
                    continue;
                };
                assert!(TABLE.occupancy(threads, registers, 0).blocks >= blocks);
                assert!(TABLE.occupancy(threads, registers + 1, 0).blocks < blocks);
            }
        }
        assert_eq!(TABLE.registers_for(1025, 1), None);
        assert_eq!(TABLE.registers_for(32, u32::MAX), None);
    }
}
