//! An allocation: a register for every operand entry of a function, and the copies between its instructions.
//!
//! Both allocators end here, and [`super::write`] knows nothing else. Copies are kept as steps in the order in which
//! they run: regalloc2 hands over sequences, and the colouring's parallel copies are put in order when all its
//! registers are known ([`super::parallel`]).

use super::MOST_WORK;
use super::parallel::CopyStep;
use crate::isa::{PReg, Register, RegisterClass};
use crate::vcode::Block;
use cranelift_codegen::entity::EntityRef;
use thiserror::Error;

/// A place between the instructions of a function.
///
/// Each block's instructions and its terminator have numbers in order; the entry of the function, where arguments are
/// in the registers of the convention, is number 0. (These are regalloc2's numbers too.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProgramPoint(u32);

impl ProgramPoint {
    /// Behind the entry of the function.
    pub const ENTRY: ProgramPoint = ProgramPoint::behind(0);

    /// Before instruction `number`.
    pub const fn before(number: u32) -> ProgramPoint {
        ProgramPoint(2 * number)
    }

    /// Behind instruction `number`.
    pub const fn behind(number: u32) -> ProgramPoint {
        ProgramPoint(2 * number + 1)
    }
}

/// The number of instruction `index` of [`crate::vcode::VCode::insts`], which is in `block`; the terminator's index is
/// the end of the block's range.
pub(super) fn number(block: Block, index: u32) -> u32 {
    index + 1 + block.index() as u32
}

/// See the module. Kept between functions.
#[derive(Debug, Default)]
pub(super) struct Allocation {
    /// A register for each entry of [`crate::isa::Inst::regs`] that names a value and then for each predicate that is
    /// packed, instruction after instruction; behind those of a block the registers that its terminator reads in places
    /// of its own: guard, index, or low and high word of an address.
    pub registers: Vec<PReg>,
    /// What runs between the instructions, in order.
    pub steps: Vec<(ProgramPoint, CopyStep)>,
    /// How the registers were found.
    pub source: AllocationSummary,
}

/// How the registers of an allocation were found, in entries of [`Allocation::registers`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationSummary {
    /// All of them.
    pub entries: u32,
    /// Those that regalloc2 assigned.
    pub by_regalloc2: u32,
    /// Those of them that had to be in one register: entries of pairs and quads, guarded results.
    pub fixed: u32,
    /// Why regalloc2 was to assign them and did not.
    pub fallback: Option<Fallback>,
}

/// Why the colouring alone is the allocation where regalloc2 was to assign the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Fallback {
    /// The function is longer than [`super::MOST_WORK`].
    #[error("the function has more than {MOST_WORK} machine instructions")]
    Long,
    /// One of its instructions has more operands than regalloc2 has numbers for.
    #[error("an instruction has more operands than regalloc2 takes")]
    TooManyOperands,
    /// It refuses the statement of the function: a mistake of this compiler, which is an error where
    /// [`super::Options::verify`] is set.
    #[error("regalloc2 refuses the function, which is a mistake of this compiler")]
    Refused,
}

impl Allocation {
    /// Starts over.
    pub fn clear(&mut self) {
        self.registers.clear();
        self.steps.clear();
        self.source = AllocationSummary::default();
    }

    /// Whether a uniform register is written at a point for which `divergent` holds.
    pub fn writes_uniform(&self, mut divergent: impl FnMut(ProgramPoint) -> bool) -> bool {
        let uniform = |r: PReg| r.class() == RegisterClass::Uniform;
        self.steps.iter().any(|(point, step)| {
            let writes = match step {
                CopyStep::Move(copy) => uniform(copy.to),
                CopyStep::Swap(a, _) => uniform(*a),
            };
            writes && divergent(*point)
        })
    }
}
