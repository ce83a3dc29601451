//! Loads, stores, stack slots.

use super::Lower;
use super::address::Address;
use super::context::generated_code::{
    constructor_join_bytes, constructor_join_halves, constructor_load_piece,
};
use super::typed::Gpr;
use crate::abi::{self, Redzone};
use crate::error::{Error, Place, Problem};
use crate::isa::generated::LoadSize;
use crate::remarks::Missed;
use cranelift_codegen::ir::StackSlot;
use cranelift_codegen::ir::immediates::Offset32;
use smallvec::SmallVec;

/// Name of the stack slots in symbol attachments; the frame layout knows the offset.
pub const SLOTS: &str = crate::vcode::Frame::SLOTS;

/// The order of bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest first, the machine's own.
    Little,
    /// The highest first.
    Big,
}

/// A part of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramePart {
    /// A place in a stack slot.
    Slot(StackSlot, Offset32),
    /// The caller's frame: where the stack pointer was at entry.
    Incoming,
}

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

    /// Bytes of the widest access that is known to be aligned, in an access of `bytes` bytes.
    pub(super) fn piece(&mut self, address: Address, bytes: u32) -> u32 {
        let whole = bytes.min(16);
        let piece = address.align.min(whole);
        if piece < whole {
            let line = self.builder.line();
            let space = address.space;
            self.remarks.missed(line, Missed::WholeAccess, || {
                let pieces = bytes / piece;
                format!(
                    "{bytes} bytes of {space} memory are {pieces} accesses, as their address is known to be a multiple of {piece} only; \
                     the flag `aligned` or %gpu_assume_aligned can promise more"
                )
            });
        }
        piece
    }

    /// A word of `bytes` bytes from pieces of one or two bytes.
    pub(super) fn load_split_word(&mut self, address: Address, piece: u32, bytes: u32) -> Gpr {
        let (size, step) = if piece == 1 {
            (LoadSize::U8, 1)
        } else {
            (LoadSize::U16, 2)
        };
        let mut parts: SmallVec<[Gpr; 4]> = SmallVec::new();
        for at in (0..bytes).step_by(step) {
            parts.push(constructor_load_piece(self, address.plus(at), &size).into());
        }
        match *parts {
            [one] => one,
            [low, high] if step == 2 => constructor_join_halves(self, low.source(), high.source()),
            [low, high] => constructor_join_bytes(self, low.source(), high.source()),
            [a, b, c, d] => {
                let low = constructor_join_bytes(self, a.source(), b.source());
                let high = constructor_join_bytes(self, c.source(), d.source());
                constructor_join_halves(self, low.source(), high.source())
            }
            _ => unreachable!("a word has one, two or four parts"),
        }
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

/// Accesses in pieces, and where the frame is.
macro_rules! memory_methods {
    () => {
        fn load_bytes(&mut self, address: Address, ty: Type) -> Regs {
            let bytes = ty.bytes();
            let piece = self.piece(address, bytes);
            let mut words: SmallVec<[VReg; 4]> = SmallVec::new();
            let mut at = 0;
            while at < bytes {
                let here = address.plus(at);
                let (size, step) = match piece.min(bytes - at) {
                    16 => (LoadSize::W128, 16),
                    8.. => (LoadSize::W64, 8),
                    4.. => (LoadSize::W32, 4),
                    small => {
                        let step = (bytes - at).min(4);
                        words.push(self.load_split_word(here, small, step).reg());
                        at += step;
                        continue;
                    }
                };
                words.extend_from_slice(
                    generated_code::constructor_load_piece(self, here, &size).as_slice(),
                );
                at += step;
            }
            Regs::new(&words)
        }
        fn store_bytes(&mut self, address: Address, ty: Type, data: Src) -> Unit {
            let bytes = ty.bytes();
            let piece = self.piece(address, bytes);
            let mut at = 0;
            while at < bytes {
                let here = address.plus(at);
                let word = (at / 4) as u8;
                let (size, step, part) = match piece.min(bytes - at) {
                    16 => (StoreSize::W128, 16, data.slice(word, 4)),
                    8.. => (StoreSize::W64, 8, data.slice(word, 2)),
                    4.. => (StoreSize::W32, 4, data.slice(word, 1)),
                    small => {
                        let (size, step) = if small == 1 {
                            (StoreSize::U8, 1)
                        } else {
                            (StoreSize::U16, 2)
                        };
                        let part = data.slice(word, 1);
                        let part = match at % 4 * 8 {
                            0 => part,
                            shift => {
                                let amount = Word::imm(shift);
                                generated_code::constructor_shift_right(
                                    self,
                                    Word::new(part),
                                    amount,
                                )
                                .source()
                                .src()
                            }
                        };
                        (size, step, part)
                    }
                };
                generated_code::constructor_store_piece(self, here, &size, part);
                at += step;
            }
            Unit
        }
        fn among_slots(&mut self, address: Address) -> Unit {
            if address.slot {
                self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
                    role: Role::Addr,
                    kind: SymbolKind::AbsoluteLow,
                    name: $crate::lower::memory::SLOTS.to_string(),
                    addend: address.offset,
                }));
            }
            Unit
        }
        fn filled_by_frame(&mut self, part: &FramePart) -> Unit {
            let (part, addend) = match *part {
                FramePart::Slot(slot, offset) => {
                    let start = self.slots[cranelift_codegen::entity::EntityRef::index(slot)];
                    (
                        $crate::lower::memory::SLOTS,
                        i64::from(start) + i64::from(i32::from(offset)),
                    )
                }
                FramePart::Incoming => ($crate::lower::call::INCOMING, 0),
            };
            self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
                role: Role::B,
                kind: SymbolKind::AbsoluteLow,
                name: part.to_string(),
                addend,
            }));
            Unit
        }
        fn byte_order(&mut self, flags: MemFlags) -> ByteOrder {
            match self.func.dfg.mem_flags[flags].endianness(Endianness::Little) {
                Endianness::Little => ByteOrder::Little,
                Endianness::Big => ByteOrder::Big,
            }
        }
        fn local_window(&mut self) -> u32 {
            ($crate::abi::LOCAL_WINDOW >> 32) as u32
        }
    };
}
pub(super) use memory_methods;
