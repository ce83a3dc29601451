//! The frame of a function: where its stack slots are, and the stack pointer.

use super::address::Address;
use super::rules::FramePart;
use super::source::Regs;
use super::state::Lower;
use super::typed::{Gpr, Unit};
use crate::abi::{self, Redzone};
use crate::error::{Error, Place, Problem};
use crate::isa::{RegisterClass, Role};
use crate::vcode::{Attachment, Frame, SymbolKind, SymbolUse};
use cranelift_codegen::entity::EntityRef;

/// Name of the stack slots in symbol attachments; the frame layout knows the offset.
pub const SLOTS: &str = Frame::SLOTS;

/// Name of the incoming stack arguments in symbol attachments; the frame layout knows the offset.
pub const INCOMING: &str = Frame::INCOMING;

impl Lower<'_> {
    /// Gives every stack slot its offset in the slot area, in order.
    pub(super) fn lay_out_slots(&mut self) {
        let mut end = 0u64;
        let mut zones = Vec::new();
        let mut below = None;
        for (slot, data) in self.func.sized_stack_slots.iter() {
            if data.align_shift > abi::STACK_ALIGNMENT.trailing_zeros() as u8 {
                let problem = Problem::Unsupported {
                    item: format!("{slot} aligned to 2^{} bytes", data.align_shift),
                    remedy: format!(
                        "slots are aligned to at most {} bytes; align the address in a larger slot",
                        abi::STACK_ALIGNMENT
                    ),
                };
                self.errors
                    .push(Error::new(problem, Place::of_function(self.func)));
            }
            let watched = self.input.stack_redzones && data.size > 0;
            if watched {
                let above = Some(slot.as_u32());
                end = redzone(&mut zones, end, below, above);
                below = above;
            }
            // Too large an offset is only met where there is an error.
            self.slots.push(end as u32);
            if self.input.tracking.is_some() {
                let is_kept = data.size > 0;
                self.frame.slots.push(is_kept.then_some(end as u32));
            }
            end += u64::from(data.size);
            if !watched {
                end = end.next_multiple_of(abi::STACK_ALIGNMENT.into());
            }
        }
        if below.is_some() {
            end = redzone(&mut zones, end, below, None);
        }
        if end > abi::MAX_LOCAL.into() {
            let message = format!(
                "the stack slots take {end} bytes of at most {}; keep the data in global memory",
                abi::MAX_LOCAL
            );
            self.errors.push(Error::new(
                Problem::Limit(message),
                Place::of_function(self.func),
            ));
            return;
        }
        self.frame.slot_bytes = end as u32;
        self.frame.redzones = zones;
    }

    /// R1 as a register of this function.
    pub(super) fn stack_pointer(&mut self) -> Gpr {
        self.frame.uses_pointer = true;
        let reg = match self.stack_pointer {
            Some(reg) => reg,
            None => {
                let reg = self.builder.vreg(RegisterClass::Gpr);
                self.stack_pointer = Some(reg);
                self.entry.push((reg, abi::STACK_POINTER));
                reg
            }
        };
        Regs::one(reg).into()
    }

    pub(super) fn among_slots(&mut self, address: Address) -> Unit {
        if address.slot {
            self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
                role: Role::Addr,
                kind: SymbolKind::AbsoluteLow,
                name: SLOTS.to_string(),
                addend: address.offset,
            }));
        }
        Unit
    }

    pub(super) fn filled_by_frame(&mut self, part: &FramePart) -> Unit {
        let (part, addend) = match *part {
            FramePart::Slot(slot, offset) => {
                let start = self.slots[slot.index()];
                (SLOTS, i64::from(start) + i64::from(i32::from(offset)))
            }
        };
        self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
            role: Role::B,
            kind: SymbolKind::AbsoluteLow,
            name: part.to_string(),
            addend,
        }));
        Unit
    }

    pub(super) fn local_window(&mut self) -> u32 {
        (abi::LOCAL_WINDOW >> 32) as u32
    }
}

/// Adds a redzone from the end of a slot's bytes on; where the next slot begins.
fn redzone(zones: &mut Vec<Redzone>, start: u64, below: Option<u32>, above: Option<u32>) -> u64 {
    let end = start.next_multiple_of(abi::STACK_ALIGNMENT.into()) + u64::from(abi::REDZONE_BYTES);
    // Too large an offset is only met where there is an error.
    zones.push(Redzone {
        offset: start as u32,
        bytes: (end - start) as u32,
        below,
        above,
    });
    end
}
