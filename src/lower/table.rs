//! Loads of tables from constant memory.
//!
//! A table is data that nobody writes, of which the module keeps a copy in its constant bank. A load at an offset that
//! is the same in all lanes reads it there: one LDC, whose word the linker completes, instead of an access to global
//! memory. Lanes with different offsets would be answered one after the other by a constant bank, so they go to global
//! memory, where the data object is. So do loads at offsets that may be differences of addresses.

use super::address::Address;
use super::source::Src;
use super::state::Lower;
use super::typed::Unit;
use crate::abi;
use crate::analysis::provenance::Space;
use crate::clif::tables::DataPlace;
use crate::isa::generated::Role;
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{GlobalValue, InstructionData, MemFlags, Opcode, Type, Value};

/// How deep the operations of an index are looked at (*assumed*).
const DEPTH: u32 = 6;

impl Lower<'_> {
    /// Where a load finds its bytes in a table of the constant bank.
    pub(super) fn in_table(
        &mut self,
        p: Value,
        offset: Offset32,
        ty: Type,
        flags: MemFlags,
    ) -> Option<Address> {
        if self.func.global_values.is_empty() {
            return None;
        }
        let facts = &self.input.facts;
        let place = DataPlace::of(self.func, facts.intrinsics, p, offset.into())?;
        let table = (self.input.tables)(&self.data_symbol(place.symbol).0).filter(|t| t.in_bank)?;
        let size = ty.bytes();
        let last = (table.content.len() as i64).checked_sub(size.into())?;
        if !(0..=last).contains(&place.offset)
            || !(place.index.iter())
                .all(|&index| facts.uniformity.uniform(index) && self.is_small(index, DEPTH))
        {
            return None;
        }
        let known = match place.index {
            _ if self.func.dfg.mem_flags[flags].aligned() || self.input.assume_aligned => {
                size.next_power_of_two()
            }
            Some(index) => facts.alignment.alignment(index, place.offset as i32),
            None => table.align.min(1 << place.offset.trailing_zeros().min(31)),
        };
        Some(Address {
            base: match place.index {
                Some(index) => self.src(index).low(),
                None => Src::wide_imm(0, 1),
            },
            offset: place.offset,
            space: Space::Global,
            slot: false,
            align: known.min(table.align),
            uniform: None,
            strong: false,
            table: Some(place.symbol),
        })
    }

    /// Whether an index is made of numbers of 32 bits: it is no difference of addresses, which leads to another object.
    fn is_small(&self, index: Value, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let below = |value: &Value| self.is_small(*value, depth);
        let mask = |value: Value| matches!(self.constant_of(value), Some(0..=0xffff_ffff));
        match self.def_data(index) {
            Some(InstructionData::Unary {
                opcode: Opcode::Uextend | Opcode::Sextend,
                arg,
            }) => self.type_of(arg).bits() <= 32,
            Some(InstructionData::Binary {
                opcode: Opcode::Band,
                args,
            }) => args.iter().any(|&value| mask(value)),
            Some(InstructionData::Binary {
                opcode: Opcode::Iadd | Opcode::Isub | Opcode::Imul | Opcode::Ishl,
                args,
            }) => args.iter().all(below),
            _ => mask(index),
        }
    }

    pub(super) fn may_fault(&mut self, flags: MemFlags, address: Address) -> Address {
        if !self.func.dfg.mem_flags[flags].notrap() {
            self.builder.keep_loads();
        }
        address
    }

    pub(super) fn table_of(&mut self, address: Address) -> Option<GlobalValue> {
        address.table
    }

    pub(super) fn constant_bank(&mut self) -> u32 {
        abi::CONSTANT_BANK.into()
    }

    pub(super) fn among_constants(&mut self, table: GlobalValue, address: Address) -> Unit {
        self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
            role: Role::Addr,
            kind: SymbolKind::Constant,
            name: self.data_symbol(table).0,
            addend: address.offset,
        }));
        Unit
    }
}
