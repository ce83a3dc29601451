//! Addresses, loads, stores, stack slots.

use super::Lower;
use super::call::INCOMING;
use super::context::generated_code::{
    FramePart, constructor_join_bytes, constructor_join_halves, constructor_load_piece,
    constructor_shift_right, constructor_store_piece,
};
use super::source::{Base, Regs, Src};
use super::typed::{Gpr, Operand, Word};
use crate::abi::{self, Redzone};
use crate::analysis::provenance::Space;
use crate::error::{Error, Place, Problem};
use crate::isa::generated::{LoadSize, StoreSize};
use crate::isa::{Role, VReg};
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::{InstructionData, MemFlags, Opcode, Type, Value, types};
use smallvec::SmallVec;

/// Name of the stack slots in symbol attachments; the frame layout knows the offset.
pub const SLOTS: &str = "$frame.slots";

/// Offsets that fit the signed 24 bits of an address with any piece of an access behind them.
const OFFSETS: std::ops::Range<i64> = -(1 << 23)..(1 << 23) - 16;

/// An address: a register operand and a constant offset.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Base, one word for shared and local memory, two otherwise.
    pub base: Src,
    /// Byte offset in the instruction, or in the stack slots.
    pub offset: i64,
    /// Which instructions reach it.
    pub space: Space,
    /// The base is R1 and the offset counts from the stack slots.
    pub slot: bool,
    /// Proven alignment of the address in bytes.
    pub align: u32,
    /// A uniform pair added to the base: a kernel's pointer parameter.
    pub uniform: Option<Regs>,
    /// Other threads may use the place at the same time: its instructions are STRONG.
    pub strong: bool,
}

impl Address {
    /// Whether instructions have room for the offset.
    pub(super) fn is_near(self) -> bool {
        self.slot || OFFSETS.contains(&self.offset)
    }

    /// The address `bytes` further on.
    fn plus(self, bytes: u32) -> Address {
        let align = if bytes == 0 {
            self.align
        } else {
            self.align.min(1 << bytes.trailing_zeros())
        };
        Address {
            offset: self.offset + i64::from(bytes),
            align,
            ..self
        }
    }
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

    /// The address of a memory operand, with constants and stack slots folded into the offset.
    pub(super) fn address(
        &mut self,
        value: Value,
        offset: i32,
        size: u32,
        flags: MemFlags,
    ) -> Address {
        let data = self.func.dfg.mem_flags[flags];
        let align = if data.aligned() || self.input.assume_aligned {
            size.next_power_of_two()
        } else {
            self.input.facts.alignment.alignment(value, offset)
        };
        self.address_with(value, offset, align)
    }

    /// [`Lower::address`] of known alignment.
    pub(super) fn address_with(&mut self, value: Value, offset: i32, align: u32) -> Address {
        let space = self.input.facts.provenance.space(self.func, value);
        let (mut base, mut total) = (value, i64::from(offset));
        while let Some((inner, add)) = self.plus_constant(base) {
            let Some(sum) = total.checked_add(add).filter(|s| OFFSETS.contains(s)) else {
                break;
            };
            (base, total) = (inner, sum);
        }
        if let Some(InstructionData::StackAddr {
            stack_slot, offset, ..
        }) = self.def_data(base)
        {
            let slot = self.slots[cranelift_entity::EntityRef::index(stack_slot)];
            let offset = i64::from(slot) + i64::from(i32::from(offset)) + total;
            // Beyond local memory the frame would not fit into the bits with it.
            if offset.unsigned_abs() <= abi::MAX_LOCAL.into() {
                return Address {
                    base: Src::reg(self.stack_pointer()),
                    offset,
                    space: Space::Local,
                    slot: true,
                    align,
                    uniform: None,
                    strong: false,
                };
            }
        }
        let src = self.src(base);
        if let Some(constant) = src.as_imm() {
            // An absolute address: RZ and an offset when it is small.
            let bits = self.type_of(base).bits();
            let absolute = ((constant as i128) << (128 - bits) >> (128 - bits)) as i64;
            if let Some(sum) = absolute.checked_add(total).filter(|s| OFFSETS.contains(s)) {
                return Address {
                    base: Src::wide_imm(0, src.words),
                    offset: sum,
                    space,
                    slot: false,
                    align,
                    uniform: None,
                    strong: false,
                };
            }
        }
        let base = match space {
            Space::Local => src.low(),
            _ => src,
        };
        Address {
            base,
            offset: total,
            space,
            slot: false,
            align,
            uniform: None,
            strong: false,
        }
    }

    /// [`Lower::address`], [with a pointer parameter in uniform registers](Lower::with_uniform).
    pub(super) fn address_of_access(
        &mut self,
        value: Value,
        offset: i32,
        size: u32,
        flags: MemFlags,
    ) -> Address {
        let address = self.address(value, offset, size, flags);
        self.with_uniform(address)
    }

    /// The address with a pointer in uniform registers that is added to a computed offset left to the access, which saves the carry chain: a
    /// parameter, or a value that lives there. An offset that is a product or a shift is better added to a parameter by its
    /// own operation, which reads the parameter as it is.
    pub(super) fn with_uniform(&mut self, address: Address) -> Address {
        if let Some(uniform) = self.uniform_pointer(address.base) {
            return Address {
                base: Src::wide_imm(0, 2),
                uniform: Some(uniform),
                ..address
            };
        }
        let Base::Value {
            value: sum,
            word: 0,
        } = address.base.base
        else {
            return address;
        };
        if address.base.words != 2 || address.slot {
            return address;
        }
        let Some(InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [x, y],
        }) = self.def_data(sum)
        else {
            return address;
        };
        for (pointer, index) in [(x, y), (y, x)] {
            let scaled = self.product_of(index).is_some()
                || (self.is_used_once(index)
                    && matches!(
                        self.def_data(index),
                        Some(InstructionData::Binary {
                            opcode: Opcode::Ishl,
                            ..
                        })
                    ));
            let source = self.src(pointer);
            let scaled = scaled && !matches!(source.base, Base::Uniform { .. });
            if !scaled
                && !self.src(index).is_special()
                && let Some(uniform) = self.uniform_pointer(source)
            {
                return Address {
                    base: self.src(index),
                    uniform: Some(uniform),
                    ..address
                };
            }
        }
        address
    }

    /// The uniform registers of a pointer: one that lives there, or a parameter.
    fn uniform_pointer(&mut self, pointer: Src) -> Option<Regs> {
        match pointer.base {
            _ if pointer.words != 2 => None,
            Base::Uniform { value, word } => Some(self.uniform_of(value).slice(word.into(), 2)),
            Base::Constant {
                bank: abi::LAUNCH_BANK,
                offset,
            } => Some(self.uniform_parameter(offset)),
            _ => None,
        }
    }

    fn plus_constant(&self, value: Value) -> Option<(Value, i64)> {
        match self.def_data(value)? {
            InstructionData::Binary {
                opcode: Opcode::Iadd,
                args: [a, b],
            } => {
                let constant = |v| {
                    self.signed_constant_of(v)
                        .and_then(|c| i64::try_from(c).ok())
                };
                constant(b)
                    .map(|c| (a, c))
                    .or_else(|| constant(a).map(|c| (b, c)))
            }
            _ => None,
        }
    }

    /// What an atomic access of a type's size needs of its address; none of more than 64 bits.
    pub(super) fn atomic_access(&mut self, address: Address, ty: Type) -> Option<Address> {
        if ty.bits() > 64 {
            return None;
        }
        // It may fault, and takes part in an order, whether or not somebody reads the result.
        self.builder.keep_loads();
        Some(Address {
            align: ty.bytes(),
            strong: address.space != Space::Local,
            ..address
        })
    }

    /// Says of the instruction before that its immediate is where a part of the frame is, from R1 on.
    pub(super) fn fill_by_frame(&mut self, part: FramePart) {
        let (part, addend) = match part {
            FramePart::Slot(slot, offset) => {
                let start = self.slots[cranelift_entity::EntityRef::index(slot)];
                (SLOTS, i64::from(start) + i64::from(i32::from(offset)))
            }
            FramePart::Incoming => (INCOMING, 0),
        };
        self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
            role: Role::B,
            kind: SymbolKind::AbsoluteLow,
            name: part.to_string(),
            addend,
        }));
    }

    /// Says of the instruction before that its offset counts from the stack slots, if the address does.
    pub(super) fn attach_slot(&mut self, address: Address) {
        if address.slot {
            self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
                role: Role::Addr,
                kind: SymbolKind::AbsoluteLow,
                name: SLOTS.to_string(),
                addend: address.offset,
            }));
        }
    }

    /// Loads `bytes` bytes, zero-extended to whole words, in pieces of proven alignment.
    pub(super) fn load_bytes(&mut self, address: Address, bytes: u32) -> Regs {
        let piece = address.align.min(16).min(bytes);
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
            words.extend_from_slice(constructor_load_piece(self, here, &size).as_slice());
            at += step;
        }
        Regs::new(&words)
    }

    /// A word of `bytes` bytes from pieces of one or two bytes.
    fn load_split_word(&mut self, address: Address, piece: u32, bytes: u32) -> Gpr {
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

    /// Stores the low `bytes` bytes of a value in pieces of proven alignment.
    pub(super) fn store_bytes(&mut self, address: Address, bytes: u32, data: Src) {
        let piece = address.align.min(16).min(bytes);
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
                            constructor_shift_right(self, Word::new(part), amount)
                                .source()
                                .src()
                        }
                    };
                    (size, step, part)
                }
            };
            constructor_store_piece(self, here, &size, part);
            at += step;
        }
    }

    /// Whether a type is held in registers as a whole.
    pub(super) fn is_representable(ty: Type) -> bool {
        ty.bits() <= 128 && !ty.is_dynamic_vector() && ty != types::F128
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
