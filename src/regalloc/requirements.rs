//! What a function needs of its allocator, in one walk.

use super::RegallocError;
use crate::isa::VReg;
use crate::isa::table::{Direction, Effects};
use crate::vcode::{Callee, Terminator, VCode};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Requirements {
    /// Whether values must be in registers that only a colouring can choose: pairs and quads, guarded results,
    /// addresses that are called.
    pub needs_colouring: bool,
    /// Whether it calls.
    pub calls: bool,
}

impl Requirements {
    /// Those of `code`.
    ///
    /// # Errors
    /// [`RegallocError::Implicit`] for an instruction with implicit registers.
    pub fn of(code: &VCode<VReg>) -> Result<Requirements, RegallocError> {
        let mut requirements = Requirements::default();
        for (block, data) in code.blocks.iter() {
            for entry in code.block_insts(block) {
                let info = entry.inst.info();
                let effects = info.optype.info().effects;
                if effects.intersects(Effects::ANY_GPR.union(Effects::PREDICATES)) {
                    return Err(RegallocError::Implicit {
                        function: code.name.clone(),
                        block,
                        form: info.name,
                    });
                }
                let is_call = effects.contains(Effects::CALL);
                requirements.calls |= is_call;
                // A call's result is the return address, which has a place of its own.
                let in_run = || {
                    info.wide
                        && entry.inst.operands().any(|o| {
                            let chosen = o.info.direction == Direction::In || !is_call;
                            o.regs.len() > 1 && o.regs[0].is_some() && chosen
                        })
                };
                let kept = || code.else_values(entry).iter().any(|v| v.is_some());
                requirements.needs_colouring = requirements.needs_colouring || in_run() || kept();
            }
            requirements.needs_colouring |= matches!(
                data.terminator,
                Terminator::TailCall {
                    callee: Callee::Registers(_),
                    ..
                }
            );
        }
        Ok(requirements)
    }
}
