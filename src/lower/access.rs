//! What the rules ask of the address of an access.

use super::address::Address;
use super::rules::Reach;
use super::source::Src;
use super::state::Lower;
use super::typed::{Gpr, Gpr2, Operand, USrc64, Word, Word64};
use crate::analysis::provenance::Space;
use crate::isa::generated::AccessOrder;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{MemFlags, Type, Value};

/// Addresses, of ordinary and of atomic accesses.
impl Lower<'_> {
    pub(super) fn place(
        &mut self,
        p: Value,
        offset: Offset32,
        ty: Type,
        flags: MemFlags,
    ) -> Address {
        let address = self.address_of_access(p, offset.into(), ty.bytes(), flags);
        // What may fault is not left out, whether or not somebody reads it. An access among the stack slots cannot.
        let end = i64::from(self.frame.slot_bytes) - i64::from(ty.bytes());
        let in_slots = address.slot && (0..=end).contains(&address.offset);
        if !self.func.dfg.mem_flags[flags].notrap() && !in_slots {
            self.builder.keep_loads();
        }
        address
    }

    pub(super) fn atomic_place(&mut self, p: Value, ty: Type, flags: MemFlags) -> Option<Address> {
        let address = self.address_of_access(p, 0, ty.bytes(), flags);
        self.atomic_access(address, ty)
    }

    pub(super) fn swap_place(&mut self, p: Value, ty: Type, flags: MemFlags) -> Option<Address> {
        let address = self.address(p, 0, ty.bytes(), flags);
        self.atomic_access(address, ty)
    }

    pub(super) fn word_everywhere(&mut self, p: Value) -> Address {
        let address = self.address_with(p, 0, 4);
        match address.space {
            Space::Local | Space::Shared => Address {
                base: self.src(p),
                offset: 0,
                space: Space::Generic,
                slot: false,
                ..address
            },
            _ => self.with_uniform(address),
        }
    }

    pub(super) fn address_reach(&mut self, address: Address) -> Reach {
        let Address { base, offset, .. } = address;
        match base.words {
            _ if address.is_near() => Reach::Near,
            1 => Reach::Far(Word::new(base), offset as u32),
            _ => Reach::Far64(Word64::new(base), offset as u64),
        }
    }

    pub(super) fn based_on(&mut self, address: Address, base: Gpr) -> Address {
        Address {
            base: base.source().src(),
            offset: 0,
            ..address
        }
    }

    pub(super) fn based_on64(&mut self, address: Address, base: Gpr2) -> Address {
        Address {
            base: base.source().src(),
            offset: 0,
            ..address
        }
    }

    pub(super) fn address_space(&mut self, address: Address) -> Space {
        address.space
    }

    pub(super) fn address_alignment(&mut self, address: Address) -> u32 {
        address.align
    }

    pub(super) fn address_base(&mut self, address: Address) -> Word {
        Word::new(address.base.low())
    }

    pub(super) fn address_base64(&mut self, address: Address) -> Word64 {
        Word64::new(address.base)
    }

    pub(super) fn address_offset(&mut self, address: Address) -> i32 {
        if address.slot {
            0
        } else {
            address.offset as i32
        }
    }

    pub(super) fn address_uniform(&mut self, address: Address) -> USrc64 {
        USrc64::new(address.uniform.map_or(Src::wide_imm(0, 2), Src::regs))
    }

    pub(super) fn address_order(&mut self, address: Address) -> AccessOrder {
        if address.strong {
            AccessOrder::Strong
        } else {
            AccessOrder::Weak
        }
    }
}
