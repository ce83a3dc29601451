//! Where a CLIF value lives: the registers that were made for it.

use super::source::Regs;
use crate::isa::VReg;

/// The homes of a value, each made when somebody asks for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Home {
    pub(super) regs: Option<Run>,
    pub(super) predicate: Option<VReg>,
    pub(super) uniform: Option<Run>,
}

/// Registers made together: `first` and those numbered behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first: VReg,
    pub(super) len: u8,
}

impl Run {
    /// Those of the words `first .. first + len`.
    pub(super) fn slice(self, first: usize, len: usize) -> Regs {
        debug_assert!(first + len <= usize::from(self.len));
        match len {
            1 => Regs::one(self.first.behind(first)),
            _ => Regs::from_fn(len, |word| self.first.behind(first + word)),
        }
    }

    pub(super) fn regs(self) -> Regs {
        self.slice(0, self.len.into())
    }
}

impl Home {
    /// Whether somebody reads the value.
    pub(super) fn is_asked(&self) -> bool {
        self.is_asked_by_lanes() || self.uniform.is_some()
    }

    /// Whether somebody reads the value from a general register or a predicate.
    pub(super) fn is_asked_by_lanes(&self) -> bool {
        self.regs.is_some() || self.predicate.is_some()
    }

    /// Whether somebody reads the value from uniform registers.
    pub(super) fn is_asked_uniform(&self) -> bool {
        self.uniform.is_some()
    }
}
