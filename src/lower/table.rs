//! Loads of tables from constant memory.
//!
//! A table is data that nobody writes, of which the module keeps a copy in its constant bank. A load at an offset that
//! is the same in all lanes reads it there: one LDC, whose word the linker completes, instead of an access to global
//! memory. Lanes with different offsets would be answered one after the other by a constant bank, so they go to global
//! memory, where the data object is.

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
use cranelift_codegen::ir::{GlobalValue, GlobalValueData, MemFlags, Type, Value};

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
        let table = (self.input.tables)(&self.data_name(place.symbol)?).filter(|t| t.in_bank)?;
        let size = ty.bytes();
        let last = (table.content.len() as i64).checked_sub(size.into())?;
        if !(0..=last).contains(&place.offset)
            || !(place.index.iter()).all(|&index| facts.uniformity.uniform(index))
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
        if !self.func.dfg.mem_flags[flags].notrap() {
            self.builder.keep_loads();
        }
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
            name: self.data_name(table).unwrap_or_default(),
            addend: address.offset,
        }));
        Unit
    }

    /// The name of a data object.
    fn data_name(&self, symbol: GlobalValue) -> Option<String> {
        match &self.func.global_values[symbol] {
            GlobalValueData::Symbol { name, .. } => Some((self.input.names)(name)),
            _ => None,
        }
    }
}
