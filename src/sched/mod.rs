//! Scheduling: the order of instructions, and the control bits that make the machine wait for what is not there yet.
//!
//! The machine issues a warp's instructions in order and checks nothing by itself. [`control`] computes stalls,
//! scoreboards and wait masks for code in its final order; [`crate::hazards`] checks them in the finished words.

pub mod access;
mod ahead;
mod alive;
mod boards;
pub mod control;
mod dependence;
mod early;
#[cfg(all(test, feature = "sim"))]
mod mutations;
pub mod order;
#[cfg(test)]
mod order_tests;
mod readers;
mod state;
mod synchronization;
#[cfg(test)]
mod tests;

use crate::isa::Control;
use crate::linear::Linear;

/// A function in its final order with control bits.
#[derive(Clone, Debug)]
pub struct Scheduled {
    code: Linear,
    /// Of all instructions, in order.
    controls: Vec<Control>,
}

impl Scheduled {
    /// The code.
    pub fn code(&self) -> &Linear {
        &self.code
    }

    /// Control bits of the instructions of a block.
    pub fn controls(&self, block: usize) -> &[Control] {
        &self.controls[self.code.positions(block)]
    }

    /// The code, and the control bits of all instructions in order.
    pub fn into_parts(self) -> (Linear, Vec<Control>) {
        (self.code, self.controls)
    }
}
