//! What the calling convention wants where.

use crate::abi;
use crate::isa::VReg;
use crate::vcode::{Terminator, VCode};

/// Calls `add` with every value that the calling convention has a register for, that register, and how much that
/// matters.
pub(super) fn hints(code: &VCode<VReg>, mut add: impl FnMut(VReg, u8, u32)) {
    for (v, r) in &code.entry {
        add(*v, r.number(), 0);
    }
    for (block, data) in code.blocks.iter() {
        for entry in code.block_insts(block) {
            if let Some(call) = code.call(entry) {
                for (v, r) in call.uses.iter().chain(&call.defs) {
                    add(*v, r.number(), data.loop_depth + 1);
                }
            }
        }
        match &data.terminator {
            Terminator::Return { address, values } => {
                for (v, r) in values {
                    add(*v, r.number(), data.loop_depth + 1);
                }
                for (v, r) in address.iter().zip(abi::RETURN_ADDRESS) {
                    add(*v, r.number(), 0);
                }
            }
            Terminator::TailCall { values, .. } => {
                for (v, r) in values {
                    add(*v, r.number(), data.loop_depth + 1);
                }
            }
            _ => {}
        }
    }
}
