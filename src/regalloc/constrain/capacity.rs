//! What the machine can hold at once.

use crate::abi;
use crate::isa::RegisterClass;
use crate::regalloc::MIN_GPRS;

/// Values that the widest instruction reads or writes at once: a quad, an address and a guarded result.
const SMALLEST: u32 = 7;

/// How many values of each class may be alive at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::regalloc) struct Capacity {
    /// By class.
    pub registers: [u32; 3],
    /// GPR values across a call.
    pub across_call: u32,
}

impl Capacity {
    /// What a machine with `gpr_limit` GPRs can hold; one predicate is left for exchanges.
    pub fn new(gpr_limit: u8) -> Capacity {
        let saved = u32::from(gpr_limit)
            .saturating_sub(u32::from(*abi::CALLEE_SAVED.start()))
            .min(abi::CALLEE_SAVED.len() as u32);
        let mut registers = [0; 3];
        registers[RegisterClass::Gpr as usize] = u32::from(gpr_limit) - 1;
        registers[RegisterClass::Uniform as usize] =
            u32::from(RegisterClass::Uniform.hardwired()) - 1;
        registers[RegisterClass::Predicate as usize] =
            u32::from(RegisterClass::Predicate.hardwired()) - 1;
        Capacity {
            registers,
            across_call: saved,
        }
    }

    /// Lowers what a class may hold; false when too little would be left for any instruction.
    pub fn shrink(&mut self, class: RegisterClass) -> bool {
        let registers = &mut self.registers[class as usize];
        let (step, least) = match class {
            // With few registers each one less is another chance for a run between the operands of an instruction.
            RegisterClass::Gpr if *registers <= u32::from(MIN_GPRS) => (1, SMALLEST),
            RegisterClass::Gpr => (2, SMALLEST),
            RegisterClass::Predicate => (1, 4),
            // What stands in the way may be few values of many: in steps that soon come down to them.
            RegisterClass::Uniform => ((*registers / 4).max(1), 4),
        };
        *registers = registers.saturating_sub(step);
        if class == RegisterClass::Gpr {
            self.across_call = self.across_call.saturating_sub(1);
        }
        *registers >= least
    }

    /// Values of a class that may live across a call: callees keep neither predicates nor uniform registers.
    pub fn across(&self, class: RegisterClass) -> u32 {
        match class {
            RegisterClass::Gpr => self.across_call,
            RegisterClass::Uniform | RegisterClass::Predicate => 0,
        }
    }
}
