//! What both allocators need first: a function in SSA form in which everything has a chance of a register.
//!
//! In: a [`VCode<VReg>`]. Out: [`Constrained`], the same function with at most as many values of each class alive at
//! once as the machine has registers, and for each of its instructions where it comes from. A uniform value or a
//! predicate that has to leave its registers becomes a GPR value, what reads nothing is rematerialized
//! ([`rematerialization`]), the rest is spilled to local memory, each only where the registers do not suffice:
//!
//! Before it parameters that nobody reads are dropped ([`unread`]).
//!
//! 1. [`pressure`] tells whether all is well, which is the rule; the rest is not run then.
//! 2. [`flow`] and [`distance`] find loops, dominators and how far next uses are.
//! 3. [`spill`] walks through the blocks ([`walk`]) and decides where values are in registers: the [`plan`].
//! 4. [`homes`] decides where they are otherwise, and where they are stored; predicates that leave together share a
//!    home ([`packs`]).
//! 5. [`rewrite`] writes the code, [`edges`] what stands between blocks, [`tidy`] leaves out what nobody reads.

pub(super) mod capacity;
mod distance;
mod edges;
mod flow;
mod homes;
mod packs;
pub(super) mod pinned;
pub(super) mod plan;
pub(crate) mod pressure;
mod rematerialization;
pub(super) mod rewrite;
pub(super) mod spill;
mod tidy;
pub(super) mod uniform;
pub(super) mod unread;
mod walk;

use super::check::ADDED;
use crate::isa::VReg;
use crate::vcode::VCode;

/// A function that has been constrained, to a degree that its maker knows.
#[derive(Debug)]
pub(super) struct Constrained {
    /// The function.
    pub code: VCode<VReg>,
    /// Where its instructions come from.
    pub origins: Origins,
}

/// For each instruction its index in the function before, or [`ADDED`].
#[derive(Clone, Debug)]
pub(super) enum Origins {
    /// Nobody wants to know.
    Unknown,
    /// The instructions are those before.
    Same,
    /// They are others.
    Of(Vec<u32>),
}

impl Origins {
    /// Whether they are recorded.
    pub fn are_recorded(&self) -> bool {
        !matches!(self, Origins::Unknown)
    }

    /// Where instruction `index` comes from.
    pub fn of(&self, index: u32) -> u32 {
        match self {
            Origins::Of(origin) => origin.get(index as usize).copied().unwrap_or(ADDED),
            Origins::Same | Origins::Unknown => index,
        }
    }

    /// Makes of indices in the function now, [`ADDED`] among them, indices in the function before.
    pub fn trace_back(&self, indices: &mut [u32]) {
        if matches!(self, Origins::Of(_)) {
            let known = indices.iter_mut().filter(|index| **index != ADDED);
            known.for_each(|index| *index = self.of(*index));
        }
    }
}

impl Constrained {
    /// A function that nothing has been done to; origins are recorded from here on, or not.
    pub fn untouched(code: VCode<VReg>, record: bool) -> Constrained {
        let origins = if record {
            Origins::Same
        } else {
            Origins::Unknown
        };
        Constrained { code, origins }
    }

    /// A function with other instructions than before, with their origins where they are recorded.
    pub fn rewritten(code: VCode<VReg>, origin: Option<Vec<u32>>) -> Constrained {
        debug_assert!(origin.as_ref().is_none_or(|o| o.len() == code.insts.len()));
        Constrained {
            code,
            origins: origin.map_or(Origins::Unknown, Origins::Of),
        }
    }
}
