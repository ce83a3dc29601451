//! Values that stay in one register from the entry to the end, and that regalloc2 need not hear of.
//!
//! The stack pointer always; the return address in a function that does not call, where it comes and goes in the same
//! registers. (*Measured* over small functions: two values with four operands less save regalloc2 a tenth of its work.)

use super::{Guide, Request};
use crate::abi;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::regalloc::colouring::Site;
use crate::regalloc::constrain::pressure::stack_pointer;
use crate::regalloc::registers::Numbers;
use crate::vcode::{Block, Terminator};
use cranelift_codegen::entity::EntityRef;
use smallvec::SmallVec;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pinned(SmallVec<[(VReg, PReg); 3]>);

impl Pinned {
    /// Finds them.
    pub fn find(request: &Request<'_>, guide: &Guide<'_>) -> Pinned {
        let mut values = SmallVec::new();
        values.extend(stack_pointer(request.code).map(|v| (v, abi::STACK_POINTER)));
        if !request.calls
            && let Some(address) = return_address(request, guide)
        {
            values.extend(address.into_iter().zip(abi::RETURN_ADDRESS));
        }
        Pinned(values)
    }

    /// The values with their registers.
    pub fn iter(&self) -> impl Iterator<Item = (VReg, PReg)> + '_ {
        self.0.iter().copied()
    }

    /// The registers.
    pub fn registers(&self) -> Numbers {
        let mut registers = Numbers::default();
        self.0
            .iter()
            .for_each(|(_, r)| registers.insert(r.number()));
        registers
    }
}

/// The return address, if nothing but the ends of the function reads it, in the registers in which it came.
fn return_address(request: &Request<'_>, guide: &Guide<'_>) -> Option<[VReg; 2]> {
    let code = request.code;
    let comes_in = |r: PReg| code.entry.iter().find(|(_, at)| *at == r).map(|(v, _)| *v);
    let [low, high] = abi::RETURN_ADDRESS.map(comes_in);
    let address = [low?, high?];
    let wanted = abi::RETURN_ADDRESS.map(|r| r.number());
    let leaves_in_place = |block: Block| match guide.colouring {
        None => true,
        Some(colouring) => {
            let exit = colouring.exits[block.index()].address;
            exit.is_none_or(|there| there == wanted)
        }
    };
    if let Some(colouring) = guide.colouring {
        // Else other values have these registers meanwhile.
        if address.map(|v| colouring.colour[v.index()]) != wanted {
            return None;
        }
        // Where no run is free the colouring puts other values aside for an instruction.
        let aside = |(_, site): &(u32, Site)| {
            let copied = site.before.iter().chain(&site.after).map(|c| c.to.number());
            let mut taken = copied.chain(site.moved.iter().map(|m| m.1));
            taken.any(|n| abi::RETURN_ADDRESS.iter().any(|r| r.number() == n))
        };
        if colouring.sites.iter().any(aside) {
            return None;
        }
    }
    let mut ends = 0;
    for (block, data) in code.blocks.iter() {
        let passed = |v: VReg, r: PReg, values: &[(VReg, PReg)]| values.contains(&(v, r));
        let in_place = match &data.terminator {
            Terminator::Return { address: a, .. } => *a == address && leaves_in_place(block),
            Terminator::TailCall { values, .. } => address
                .iter()
                .zip(abi::RETURN_ADDRESS)
                .all(|(v, r)| passed(*v, r, values)),
            _ => continue,
        };
        if !in_place {
            return None;
        }
        ends += 1;
    }
    let gpr = |v: &VReg| v.class() == RegisterClass::Gpr;
    let only_there = |v: &VReg| request.live.use_count(*v) == ends;
    address
        .iter()
        .all(|v| gpr(v) && only_there(v))
        .then_some(address)
}
