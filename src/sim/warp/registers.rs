//! The registers of a warp.
//!
//! A general register is a *column*, 32 lanes side by side. Sources that are no general registers have columns of their
//! own, so that the lane loop reads every source the same way: immediates and constant memory are broadcast when the
//! launch begins, as far as there are columns, uniform registers before each instruction. RZ is a column of zeros for
//! readers and a column nobody reads for writers. Numbers of threads are columns too.

use crate::isa::Role;
use std::hash::{Hash, Hasher};

/// Lanes of a warp.
pub const LANES: usize = 32;
/// A value for each lane.
pub type Column = [u32; LANES];

/// The bit of each lane in a mask: what a loop over lanes takes instead of a shift.
pub const BITS: Column = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// General registers that exist: R0 to R254.
pub const GENERAL: usize = 255;
/// First of eight columns of zeros: RZ as a source.
pub const ZERO: u16 = 256;
/// First of four columns that nobody reads: RZ as a destination.
pub const DISCARD: u16 = 264;
/// First column of sources that are broadcast before an instruction, four for each operand.
pub const BROADCAST: u16 = 268;
/// First column of sources that stay the same for a launch.
pub const CONSTANTS: u16 = 300;
/// First of three columns with the coordinates of the threads in their block.
pub const THREADS: u16 = 508;
/// The column of the lanes' numbers.
pub const LANE: u16 = 511;
/// Columns, a power of two so that an index needs no bounds check.
const COLUMNS: usize = 512;
/// Number of URZ.
pub const URZ: usize = 63;
/// Number of PT.
pub const PT: usize = 7;

/// Where an operand's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// First column; a uniform destination's register; a predicate's number.
    pub column: u16,
    /// Width in 32-bit words; 0 for an operand the form does not have.
    pub words: u8,
    /// A predicate's `!`.
    pub invert: bool,
}

impl Operand {
    /// An operand that the form does not have: reads as 0 and as true, cannot be written.
    pub const ABSENT: Operand = Operand {
        column: ZERO + PT as u16,
        words: 0,
        invert: false,
    };
}

/// The operands of an instruction by role.
pub type Operands = [Operand; Role::COUNT];

/// A column where the host's caches want it.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Aligned(Column);

/// The register files of a warp.
#[derive(Clone)]
pub struct Registers {
    columns: Box<[Aligned; COLUMNS]>,
    /// UR0 to UR62, and URZ, always 0.
    pub uniform: [u32; 64],
    /// P0 to P6 as lane masks, and PT, all ones.
    pub predicates: [u32; 8],
}

impl Hash for Registers {
    /// What a launch changes: columns of constants stay.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let general = self.columns[..GENERAL].iter();
        general.for_each(|Aligned(column)| column.hash(state));
        (self.uniform, self.predicates).hash(state);
    }
}

impl Default for Registers {
    fn default() -> Self {
        Registers::new()
    }
}

impl Registers {
    /// Bytes of the columns.
    pub const BYTES: usize = size_of::<[Aligned; COLUMNS]>();

    /// All registers 0.
    pub fn new() -> Self {
        let columns = vec![Aligned([0; LANES]); COLUMNS].into_boxed_slice();
        let mut registers = Registers {
            columns: columns
                .try_into()
                .unwrap_or_else(|_| unreachable!("as many as asked for")),
            uniform: [0; 64],
            predicates: [0; 8],
        };
        registers.predicates[PT] = u32::MAX;
        registers
    }

    /// Sets the first `count` general registers, the uniform ones and the predicates to 0.
    pub fn clear(&mut self, count: usize) {
        self.columns[..count.min(GENERAL)].fill(Aligned([0; LANES]));
        self.uniform = [0; 64];
        self.predicates = [0; 8];
        self.predicates[PT] = u32::MAX;
    }

    /// A column.
    #[inline(always)]
    pub fn column(&self, index: u16) -> &Column {
        &self.columns[index as usize & (COLUMNS - 1)].0
    }

    /// A column to write.
    #[inline(always)]
    pub fn column_mut(&mut self, index: u16) -> &mut Column {
        &mut self.columns[index as usize & (COLUMNS - 1)].0
    }

    /// Overwrites a column in the lanes of `mask`.
    #[inline(always)]
    pub fn set_column(&mut self, index: u16, values: &Column, mask: u32) {
        blend(self.column_mut(index), values, mask);
    }

    /// The lanes in which a predicate operand holds.
    #[inline(always)]
    pub fn holds(&self, operand: Operand) -> u32 {
        self.predicates[operand.column as usize & 7] ^ if operand.invert { u32::MAX } else { 0 }
    }

    /// 64 bits of a lane; the high word is 0 where the operand has one word.
    #[inline(always)]
    pub fn pair(&self, operand: Operand, lane: usize) -> u64 {
        let high = if operand.words < 2 {
            ZERO
        } else {
            operand.column + 1
        };
        let [low, high] = [operand.column, high].map(|column| self.column(column)[lane]);
        u64::from(low) | u64::from(high) << 32
    }

    /// Writes as many words as the operand has.
    #[inline(always)]
    pub fn set_words(&mut self, operand: Operand, lane: usize, words: [u32; 4]) {
        for (i, word) in words.into_iter().enumerate().take(operand.words as usize) {
            self.column_mut(operand.column + i as u16)[lane] = word;
        }
    }

    /// As many words as the operand has, the others 0.
    #[inline(always)]
    pub fn words(&self, operand: Operand, lane: usize) -> [u32; 4] {
        let mut words = [0; 4];
        for (i, word) in words.iter_mut().enumerate().take(operand.words as usize) {
            *word = self.column(operand.column + i as u16)[lane];
        }
        words
    }

    /// Sets a predicate in the lanes of `mask` to those of `value`; PT stays.
    #[inline(always)]
    pub fn set_predicate(&mut self, operand: Operand, mask: u32, value: u32) {
        let number = operand.column as usize & 7;
        if operand.words != 0 && number != PT {
            let old = self.predicates[number];
            self.predicates[number] = (old & !mask) | (value & mask);
        }
    }

    /// Sets a uniform register; URZ stays.
    #[inline(always)]
    pub fn set_uniform(&mut self, number: usize, value: u32) {
        if number < URZ {
            self.uniform[number] = value;
        }
    }
}

/// Overwrites a column in the lanes of `mask`.
#[inline(always)]
pub fn blend(column: &mut Column, values: &Column, mask: u32) {
    if mask == u32::MAX {
        *column = *values;
        return;
    }
    // By masks of bits: of a condition the host's compiler would make 32 branches.
    let mut keep = [0; LANES];
    for (keep, bit) in keep.iter_mut().zip(&BITS) {
        *keep = if mask & bit != 0 { 0 } else { u32::MAX };
    }
    for ((old, new), keep) in column.iter_mut().zip(values).zip(&keep) {
        *old = *old & keep | new & !keep;
    }
}

/// The lanes of a mask, in order.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}
