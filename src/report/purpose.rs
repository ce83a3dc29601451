//! Instructions that are there for the allocator: copies, and what brings values to memory and back.

use crate::abi::STACK_POINTER;
use crate::isa::operand::PT;
use crate::isa::table::{Effects, OperandInfo};
use crate::isa::{Optype, PInst, Role, build};
use serde::Serialize;
use std::ops::Range;

/// Truth table of PLOP3 for its first operand (documents 002, PLOP3: bit 4a + 2b + c).
const FIRST: u8 = 0xf0;

/// What an instruction is there for, where that is not the program's own work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Copies registers to registers of the same file.
    Copy,
    /// Stores to a spill slot, or saves a register of the caller's.
    Spill,
    /// Loads from a spill slot, or restores a register.
    Reload,
}

impl Purpose {
    /// That of an instruction of a function whose spill slots are these bytes from R1; none for the program's own.
    pub fn of(inst: &PInst, spills: &Range<u32>) -> Option<Purpose> {
        if is_copy(inst) {
            return Some(Purpose::Copy);
        }
        if !frame_offset(inst).is_some_and(|at| spills.contains(&at)) {
            return None;
        }
        let stores = inst.optype().info().effects.contains(Effects::STORE);
        Some(if stores {
            Purpose::Spill
        } else {
            Purpose::Reload
        })
    }
}

/// Whether it copies registers and does nothing else. What brings constants and parameters to registers copies nothing,
/// and neither does what moves values from one class to another.
fn is_copy(inst: &PInst) -> bool {
    let mut read =
        (inst.operands()).filter(|operand| inst.info().reads >> operand.info.first & 1 == 1);
    match inst.optype() {
        Optype::MOV | Optype::UMOV => {
            let result = inst.operand(Role::D).and_then(|o: &OperandInfo| o.class);
            read.any(|operand| {
                operand.info.role != Role::Pg
                    && operand.info.class == result
                    && operand.regs.iter().any(Option::is_some)
            })
        }
        Optype::PLOP3 => match (inst.reg(Role::Pu), inst.reg(Role::Pa)) {
            (Some(to), Some(from)) => {
                let mut copy: PInst = build::plop3_x(to, from, PT, PT, FIRST);
                let (guard, negated) = inst.guard();
                copy.set_guard(guard, negated);
                *inst == copy
            }
            _ => false,
        },
        _ => false,
    }
}

/// The offset from R1 of an access to local memory there.
fn frame_offset(inst: &PInst) -> Option<u32> {
    let effects = inst.optype().info().effects;
    let local = effects.contains(Effects::LOCAL) && inst.reg(Role::A) == Some(STACK_POINTER);
    let offset = inst.number(Role::Addr).filter(|_| local)?;
    u32::try_from(offset).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::PReg;
    use crate::isa::generated::{MOVW, mov, umov};

    #[test]
    fn copies_are_told_from_what_brings_values_to_registers() {
        let [r4, r5] = [4, 5].map(PReg::gpr);
        let [ur4, ur5] = [4, 5].map(PReg::uniform);
        let [p0, p1] = [0, 1].map(PReg::predicate);
        let wide = mov::Options::new(MOVW::W32);
        let mut guarded: PInst = build::mov_r(wide, r4, r5);
        guarded.set_guard(Some(p1), true);
        let copies = [
            build::mov_r(wide, r4, r5),
            guarded,
            build::umov_u(umov::Options::new(MOVW::W32), ur4, ur5),
            build::plop3_x(p0, p1, PT, PT, FIRST),
        ];
        assert!(copies.iter().all(is_copy));
        let others: [PInst; 4] = [
            build::mov_i(wide, r4, 7),
            build::mov_u(wide, r4, ur5),
            build::plop3_x(p0, p1, p0, PT, FIRST),
            build::plop3_x(p0, p1, PT, PT, 0x0f),
        ];
        assert!(!others.iter().any(is_copy));
    }
}
