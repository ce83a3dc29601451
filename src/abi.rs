//! The machine's conventions: memory windows, constant bank 0, registers of calls (design.md sections 5 and 6; all *assigned*).

use crate::isa::PReg;

/// Start of the window of the CTA's shared memory in generic addresses.
pub const SHARED_WINDOW: u64 = 0x0100_0000_0000_0000;
/// Start of the window of the thread's local memory in generic addresses.
pub const LOCAL_WINDOW: u64 = 0x0200_0000_0000_0000;
/// Addresses below are never mapped.
pub const LOWEST_ADDRESS: u64 = 64 * 1024;

/// Byte offsets in constant bank 0.
pub mod bank0 {
    /// Threads of a block in x; y and z follow.
    pub const BLOCK_SIZE: u32 = 0x0;
    /// Blocks of the grid in x; y and z follow.
    pub const GRID_SIZE: u32 = 0xc;
    /// Dynamic shared memory in bytes.
    pub const DYNAMIC_SHARED: u32 = 0x18;
    /// Initial value of R1: the end of local memory.
    pub const STACK_POINTER: u32 = 0x28;
    /// First kernel parameter.
    pub const PARAMETERS: u32 = 0x160;
    /// Most bytes of parameters.
    pub const MAX_PARAMETERS: u32 = 4096;
}

/// The constant bank of launch data and parameters.
pub const LAUNCH_BANK: u8 = 0;
/// The constant bank of module constants.
pub const CONSTANT_BANK: u8 = 3;
/// Most bytes of module constants.
pub const MAX_CONSTANTS: u32 = 64 * 1024;

/// The stack pointer: byte offset in local memory, grows down, 16-aligned.
pub const STACK_POINTER: PReg = PReg::gpr(1);
/// Return address, low and high word.
pub const RETURN_ADDRESS: [PReg; 2] = [PReg::gpr(2), PReg::gpr(3)];
/// First and last register of arguments and results.
pub const ARGUMENTS: std::ops::RangeInclusive<u8> = 4..=15;
/// Registers that a callee keeps.
pub const CALLEE_SAVED: std::ops::RangeInclusive<u8> = 16..=31;
/// Highest register number that may be allocated (errata G-07 leaves the top to be confirmed; design.md section 8 says 254).
pub const MAX_GPR: u8 = 254;
