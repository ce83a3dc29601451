//! What both allocators need first: a function in SSA form in which everything has a chance of a register.
//!
//! In: a [`VCode<VReg>`]. Out: [`Constrained`], the same function with at most as many values of each class alive at once as the machine has
//! registers, and for each of its instructions where it comes from. A uniform value or a predicate that has to leave its registers becomes
//! a GPR value, what reads nothing is made again ([`again`]), the rest goes to local memory, each only where the registers do not suffice:
//!
//! 1. [`pressure`] tells whether all is well, which is the rule; the rest is not run then.
//! 2. [`flow`] and [`distance`] find loops, dominators and how far next uses are.
//! 3. [`spill`] walks through the blocks ([`walk`]) and decides where values are in registers: the [`plan`].
//! 4. [`homes`] decides where they are otherwise, and where they are stored.
//! 5. [`rewrite`] writes the code, [`edges`] what stands between blocks, [`tidy`] leaves out what nobody reads.

mod again;
mod distance;
mod edges;
mod flow;
mod homes;
pub(super) mod plan;
pub(crate) mod pressure;
pub(super) mod rewrite;
pub(super) mod spill;
mod tidy;
pub(super) mod uniform;
mod walk;

use super::check::ADDED;
use crate::isa::VReg;
use crate::vcode::VCode;

/// A function that has been constrained, to a degree that its maker knows.
#[derive(Debug)]
pub(super) struct Constrained {
    /// The function.
    pub code: VCode<VReg>,
    origins: Origins,
}

/// For each instruction its index in the function before, or [`ADDED`].
#[derive(Clone, Debug, Default)]
pub(super) struct Origins(Option<Vec<u32>>);

impl Origins {
    /// Where instruction `index` comes from.
    pub fn of(&self, index: u32) -> u32 {
        match &self.0 {
            Some(origin) => origin.get(index as usize).copied().unwrap_or(ADDED),
            None => index,
        }
    }
}

impl Constrained {
    /// A function that nothing has been done to.
    pub fn untouched(code: VCode<VReg>) -> Constrained {
        Constrained {
            code,
            origins: Origins(None),
        }
    }

    /// A function with other instructions than before, with their origins.
    pub fn rewritten(code: VCode<VReg>, origin: Vec<u32>) -> Constrained {
        debug_assert_eq!(code.insts.len(), origin.len());
        Constrained {
            code,
            origins: Origins(Some(origin)),
        }
    }
}
