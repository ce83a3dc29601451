//! The machine's conventions: memory windows, constant bank 0, registers of calls (all *assigned*).

use crate::isa::PReg;
use cranelift_codegen::ir::{Type, types};
use cranelift_codegen::isa::CallConv;

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

/// Offsets that fit the signed 24 bits of an address with any piece of an access behind them.
pub const OFFSETS: std::ops::Range<i64> = -(1 << 23)..(1 << 23) - 16;

/// The constant bank of launch data and parameters.
pub const LAUNCH_BANK: u8 = 0;
/// The constant bank of module constants.
pub const CONSTANT_BANK: u8 = 3;
/// Most bytes of module constants.
pub const MAX_CONSTANTS: u32 = 64 * 1024;

/// Shared memory that one CTA can have, static and dynamic together, in bytes (assigned).
pub const MAX_SHARED: u32 = 228 * 1024;

/// Most threads of a block (*assigned*).
pub const MAX_THREADS: u64 = 1024;

/// Alignment of allocations of global memory in bytes (assigned).
#[cfg(any(feature = "driver", feature = "sim"))]
pub const ALLOCATION_ALIGN: u64 = 256;

/// Local memory that one thread can have in bytes (assigned): every offset from R1 in a frame fits into the 24 bits of
/// an instruction.
pub const MAX_LOCAL: u32 = 4 << 20;
/// Alignment of R1, and so the largest that a stack slot can have, in bytes.
pub const STACK_ALIGNMENT: u32 = 16;

/// The stack pointer: byte offset in local memory, grows down, 16-aligned.
pub const STACK_POINTER: PReg = PReg::gpr(1);
/// Return address, low and high word.
pub const RETURN_ADDRESS: [PReg; 2] = [PReg::gpr(2), PReg::gpr(3)];
/// First and last register of arguments and results.
pub const ARGUMENTS: std::ops::RangeInclusive<u8> = 4..=15;
/// First and last register of arguments by the tail-call convention. The two behind them are for the address that is
/// jumped to: with few registers all others have arguments or what callees keep.
pub const TAIL_ARGUMENTS: std::ops::RangeInclusive<u8> = 4..=13;
/// Bytes of its caller's frame that a function of the tail-call convention owns at least, so that it can jump to
/// functions with more arguments than its own (*assigned*; a jump with more becomes a call).
pub const TAIL_ARGUMENT_BYTES: u32 = 256;
/// Registers that a callee keeps.
pub const CALLEE_SAVED: std::ops::RangeInclusive<u8> = 16..=31;
/// Highest register number that may be allocated (*assigned*: errata G-07 leaves the top to be confirmed).
pub const MAX_GPR: u8 = 254;
/// Registers are given to warps in steps of this many (*assigned*).
pub const REGISTER_STEP: u32 = 8;

/// Whether a type is held in registers as a whole.
pub fn is_representable(ty: Type) -> bool {
    ty.bits() <= 128 && !ty.is_dynamic_vector() && ty != types::F128
}

/// Where an argument or a result of a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In registers, low word first.
    Registers {
        /// Number of the first one.
        first: u8,
        /// How many.
        words: u8,
    },
    /// On the stack, at this offset from the caller's R1 at the call.
    Stack(u32),
}

/// The registers of a [`Place::Registers`].
pub fn registers(first: u8, words: u8) -> impl Iterator<Item = PReg> {
    (first..first + words).map(PReg::gpr)
}

/// Gives a list of values their places, one after the other.
///
/// Values of two words start at an even register, of four at a multiple of four; the first that does not fit goes to
/// the stack and takes all later ones with it, so that the order of places is the order of arguments.
#[derive(Clone, Copy, Debug)]
pub struct Placer {
    /// The next free register.
    next: u32,
    /// The register behind the last.
    end: u32,
    /// Bytes of stack in use.
    stack: u32,
}

impl Placer {
    /// Before the first argument of a function with this convention.
    pub fn arguments(convention: CallConv) -> Self {
        Self::between(match convention {
            CallConv::Tail => TAIL_ARGUMENTS,
            _ => ARGUMENTS,
        })
    }

    /// Before the first result.
    pub fn results() -> Self {
        Self::between(ARGUMENTS)
    }

    fn between(registers: std::ops::RangeInclusive<u8>) -> Self {
        Placer {
            next: u32::from(*registers.start()),
            end: u32::from(*registers.end()) + 1,
            stack: 0,
        }
    }

    /// The place of the next value, of so many words.
    pub fn place(&mut self, words: u32) -> Place {
        let align = words.next_power_of_two();
        let first = self.next.next_multiple_of(align);
        if self.stack == 0 && first + words <= self.end {
            self.next = first + words;
            return Place::Registers {
                first: first as u8,
                words: words as u8,
            };
        }
        self.next = self.end;
        let offset = self.stack.next_multiple_of(4 * align);
        self.stack = offset + 4 * words;
        Place::Stack(offset)
    }

    /// Bytes of stack that the values so far take.
    pub fn stack_bytes(self) -> u32 {
        self.stack.next_multiple_of(16)
    }
}

/// Offsets of kernel parameters in constant bank 0: in order, naturally aligned, 16 for 128 bits. Sizes are in bytes.
/// The second value is the end of the last one.
pub fn parameter_offsets(sizes: impl IntoIterator<Item = u32>) -> (Vec<u32>, u32) {
    let (mut next, mut offsets) = (bank0::PARAMETERS, Vec::new());
    for size in sizes {
        next = next.next_multiple_of(size.next_power_of_two().clamp(1, 16));
        offsets.push(next);
        next += size;
    }
    (offsets, next)
}

/// Bytes of a redzone beside the padding of a slot (assigned).
pub const REDZONE_BYTES: u32 = 32;

/// A part of a function's frame that nothing may use: what is next to its stack slots, where it was compiled with
/// `stack_redzones`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Redzone {
    /// Byte offset from R1, as it is between prologue and epilogue.
    pub offset: u32,
    /// Its size.
    pub bytes: u32,
    /// Number of the stack slot below it.
    pub below: Option<u32>,
    /// Number of the stack slot above it.
    pub above: Option<u32>,
}
