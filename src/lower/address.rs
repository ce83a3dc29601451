//! Addresses: a base, an offset, and what is known of them.

use super::source::{Base, Regs, Src};
use super::state::Lower;
use super::typed::Operand;
use crate::abi::{self, OFFSETS};
use crate::analysis::provenance::Space;
use crate::analysis::window::{self, Passed, Surroundings};
use crate::vcode::Offer;
use cranelift_codegen::ir::{GlobalValue, InstructionData, MemFlags, Opcode, Type, Value, types};

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
    /// A uniform pair added to the base: a pointer parameter, or a pointer that lives there.
    pub uniform: Option<Regs>,
    /// Other threads may use the place at the same time: its instructions are STRONG.
    pub strong: bool,
    /// The data object of which the module's constant bank has a copy: base and offset count from its start.
    pub table: Option<GlobalValue>,
}

impl Address {
    /// Whether instructions have room for the offset.
    pub(super) fn is_near(self) -> bool {
        self.slot || OFFSETS.contains(&self.offset)
    }

    /// The address `bytes` further on.
    pub(super) fn plus(self, bytes: u32) -> Address {
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
        let mut space = self.input.facts.provenance.space(self.func, value);
        if space == Space::Shared && !self.stays_in_window(value, offset.into()) {
            space = Space::Generic;
        }
        let (mut base, mut total) = (self.without_promises(value), i64::from(offset));
        while let Some((inner, add)) = self.plus_constant(base) {
            let Some(sum) = total.checked_add(add).filter(|s| OFFSETS.contains(s)) else {
                break;
            };
            (base, total) = (self.without_promises(inner), sum);
        }
        let src = match space {
            // In the window that the instruction knows.
            Space::Shared => self.src(base).low(),
            _ => self.src(base),
        };
        let address = Address {
            base: src,
            offset: total,
            space,
            slot: false,
            align,
            uniform: None,
            strong: false,
            table: None,
        };
        if let Some(InstructionData::StackAddr {
            stack_slot, offset, ..
        }) = self.def_data(base)
        {
            let slot = self.slots[cranelift_codegen::entity::EntityRef::index(stack_slot)];
            let offset = i64::from(slot) + i64::from(i32::from(offset)) + total;
            // Beyond local memory the frame would not fit into the bits with it.
            if offset.unsigned_abs() <= abi::MAX_LOCAL.into() {
                return Address {
                    base: self.stack_pointer().source().src(),
                    offset,
                    space: Space::Local,
                    slot: true,
                    ..address
                };
            }
        }
        if let Some(constant) = src.as_imm() {
            // An absolute address: RZ and an offset when it is small.
            let bits = 32 * u32::from(src.words);
            let absolute = ((constant as i128) << (128 - bits) >> (128 - bits)) as i64;
            if let Some(sum) = absolute.checked_add(total).filter(|s| OFFSETS.contains(s)) {
                return Address {
                    base: Src::wide_imm(0, src.words),
                    offset: sum,
                    ..address
                };
            }
        }
        match space {
            Space::Local => Address {
                base: src.low(),
                ..address
            },
            _ => address,
        }
    }

    /// Whether an address of shared memory is what its low word says, or a word from the start.
    fn stays_in_window(&self, address: Value, offset: i64) -> bool {
        if self.func.dfg.value_type(address) == types::I32 {
            return true;
        }
        let around = Surroundings {
            func: self.func,
            intrinsics: self.input.facts.intrinsics,
            at: None,
            passed: &Passed::default(),
        };
        let extent = window::extent(&around, address, false);
        extent.is_some_and(|extent| extent.stays_inside(offset))
    }

    /// [`Lower::address`], [with a pointer in uniform registers](Lower::with_uniform).
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

    /// The address with a pointer in uniform registers that is added to a computed offset left to the access, which
    /// saves the carry chain. A parameter is read there; an offset that is a product or a shift is better added to it
    /// by its own operation, which reads it as it is. Of a pointer that may live there the sum is computed as well.
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
            let scaled = self.extended_product(index).is_some()
                || (self.is_used_once(index)
                    && matches!(
                        self.def_data(index),
                        Some(InstructionData::Binary {
                            opcode: Opcode::Ishl,
                            ..
                        })
                    ));
            let index_src = self.src(index);
            if index_src.is_special() {
                continue;
            }
            let source = self.src(pointer);
            if let Base::Value { value, .. } = source.base {
                if self.may_be_uniform(pointer) && !self.may_be_uniform(index) {
                    let uniform = self.uniform_of(value);
                    self.offer_sum(sum, uniform, index_src);
                }
            } else if !scaled && let Some(uniform) = self.uniform_pointer(source) {
                if self.may_be_uniform(index) {
                    self.offer_sum(sum, uniform, index_src);
                    return address;
                }
                return Address {
                    base: index_src,
                    uniform: Some(uniform),
                    ..address
                };
            }
        }
        address
    }

    /// Says that an access may add a pointer in uniform registers to an index by itself.
    fn offer_sum(&mut self, sum: Value, pointer: Regs, index: Src) {
        let Base::Value { value, word } = self.below_copies(index).base else {
            return;
        };
        let offer = Offer {
            general: self.regs_of(sum).as_slice().into(),
            uniform: pointer.as_slice().into(),
            index: Some(self.word_regs(value, word, 2).as_slice().into()),
        };
        self.builder.offer(offer);
    }

    /// The uniform registers of a pointer parameter.
    fn uniform_pointer(&mut self, pointer: Src) -> Option<Regs> {
        match pointer.base {
            _ if pointer.words != 2 => None,
            Base::Constant {
                bank: abi::LAUNCH_BANK,
                offset,
            } => Some(self.uniform_parameter(offset)),
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
}
