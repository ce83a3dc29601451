//! Tables: data that nobody writes, whose contents are known while the functions that read it are compiled.
//!
//! A load at a constant offset of a table is the constant that stands there. This is done behind the passes on loops,
//! which make indices constant. A load at an offset that is the same in all lanes is left to selection, which reads it
//! from constant memory (`lower::table`).

use crate::constants;
use crate::intrinsics::resolve::{Intrinsics, Namer, name_text};
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{
    Endianness, Function, GlobalValue, GlobalValueData, Inst, InstBuilder, InstructionData, Opcode,
    Value, types,
};
use std::sync::Arc;

/// What is known of a table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its bytes.
    pub content: Arc<[u8]>,
    /// Alignment in bytes, a power of two.
    pub align: u32,
    /// Whether the module has it in its constant bank as well.
    pub in_bank: bool,
}

/// Finds a table by the symbol of its data object.
pub type FindTable<'a> = dyn Fn(&str) -> Option<Table> + 'a;

/// A place in a data object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPlace {
    /// Its symbol.
    pub symbol: GlobalValue,
    /// Bytes behind the start that are computed.
    pub index: Option<Value>,
    /// Constant bytes behind that.
    pub offset: i64,
}

impl DataPlace {
    /// The place that an access of `address + offset` has: a symbol, constants, and at most one computed summand.
    pub fn of(
        func: &Function,
        intrinsics: &Intrinsics,
        address: Value,
        offset: i32,
    ) -> Option<DataPlace> {
        let mut index = None;
        let (mut value, mut total) = below_constants(func, intrinsics, address, offset.into())?;
        loop {
            match func.dfg.insts[func.dfg.value_def(value).inst()?] {
                InstructionData::UnaryGlobalValue {
                    opcode: Opcode::SymbolValue,
                    global_value,
                } => {
                    let GlobalValueData::Symbol { offset, .. } = func.global_values[global_value]
                    else {
                        return None;
                    };
                    return Some(DataPlace {
                        symbol: global_value,
                        index,
                        offset: total.checked_add(offset.bits())?,
                    });
                }
                InstructionData::Binary {
                    opcode: Opcode::Iadd,
                    args: [a, b],
                } if index.is_none() => {
                    let (first, bytes) = below_constants(func, intrinsics, a, total)?;
                    (value, total, index) = match is_symbol(func, first) {
                        true => (first, bytes, Some(b)),
                        false => {
                            let (second, bytes) = below_constants(func, intrinsics, b, total)?;
                            (second, bytes, Some(a))
                        }
                    };
                }
                _ => return None,
            }
        }
    }
}

fn is_symbol(func: &Function, value: Value) -> bool {
    let inst = func.dfg.value_def(value).inst();
    inst.is_some_and(|inst| func.dfg.insts[inst].opcode() == Opcode::SymbolValue)
}

/// What constants are added to, and their sum with `total`.
fn below_constants(
    func: &Function,
    intrinsics: &Intrinsics,
    value: Value,
    total: i64,
) -> Option<(Value, i64)> {
    let (mut value, mut total) = (value, total);
    while let Some(inst) = func.dfg.value_def(value).inst() {
        if let Some((promised, _)) = intrinsics.alignment(func, inst) {
            value = promised;
            continue;
        }
        let InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [a, b],
        } = func.dfg.insts[inst]
        else {
            break;
        };
        let (other, constant) = match (constants::integer(func, a), constants::integer(func, b)) {
            (_, Some(constant)) => (a, constant),
            (Some(constant), None) => (b, constant),
            (None, None) => break,
        };
        (value, total) = (other, total.checked_add(constant)?);
    }
    Some((value, total))
}

/// The operations that name data.
pub(super) const SYMBOLS: [Opcode; 1] = [Opcode::SymbolValue];

/// Replaces loads at constant offsets of tables; true if there was one.
pub(super) fn fold(
    func: &mut Function,
    intrinsics: &Intrinsics,
    namer: &Namer,
    find: &FindTable,
) -> bool {
    let table = |data: &GlobalValueData| match data {
        GlobalValueData::Symbol { name, .. } => find(&name_text(func, name, namer)?),
        _ => None,
    };
    let tables: Vec<Option<Table>> = func.global_values.values().map(table).collect();
    if tables.iter().all(Option::is_none) {
        return false;
    }
    let mut changed = false;
    let blocks: Vec<_> = func.layout.blocks().collect();
    for block in blocks {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            if let Some(bits) = content(func, intrinsics, &tables, inst) {
                changed |= replace(func, inst, bits);
            }
        }
    }
    changed
}

/// The bits that a load reads, if they are known.
fn content(
    func: &Function,
    intrinsics: &Intrinsics,
    tables: &[Option<Table>],
    inst: Inst,
) -> Option<u128> {
    let InstructionData::Load {
        opcode,
        arg,
        flags,
        offset,
    } = func.dfg.insts[inst]
    else {
        return None;
    };
    let place = DataPlace::of(func, intrinsics, arg, offset.into())?;
    let table = tables[place.symbol.index()].as_ref()?;
    let is_big = func.dfg.mem_flags[flags].explicit_endianness() == Some(Endianness::Big);
    if place.index.is_some() || is_big {
        return None;
    }
    let ty = func.dfg.value_type(func.dfg.first_result(inst));
    let bytes = match opcode {
        Opcode::Load => ty.bytes(),
        Opcode::Uload8 | Opcode::Sload8 => 1,
        Opcode::Uload16 | Opcode::Sload16 => 2,
        Opcode::Uload32 | Opcode::Sload32 => 4,
        _ => return None,
    };
    let start = usize::try_from(place.offset).ok()?;
    let read = table
        .content
        .get(start..start.checked_add(bytes as usize)?)?;
    Some(
        read.iter()
            .rev()
            .fold(0, |bits, &byte| bits << 8 | u128::from(byte)),
    )
}

/// Makes a load the constant that it reads; false for types that have none.
fn replace(func: &mut Function, inst: Inst, bits: u128) -> bool {
    let opcode = func.dfg.insts[inst].opcode();
    let ty = func.dfg.value_type(func.dfg.first_result(inst));
    let unsigned = |bits: i64| constants::unsigned(ty, bits) as i64;
    let signed = |width: u32| (bits as i64) << (64 - width) >> (64 - width);
    let has_constants =
        ty.is_int() && ty.bits() <= 64 || matches!(ty, types::F16 | types::F32 | types::F64);
    if !has_constants {
        return false;
    }
    let new = func.replace(inst);
    match (opcode, ty) {
        (Opcode::Sload8, _) => new.iconst(ty, unsigned(signed(8))),
        (Opcode::Sload16, _) => new.iconst(ty, unsigned(signed(16))),
        (Opcode::Sload32, _) => new.iconst(ty, unsigned(signed(32))),
        (_, types::F16) => new.f16const(Ieee16::with_bits(bits as u16)),
        (_, types::F32) => new.f32const(Ieee32::with_bits(bits as u32)),
        (_, types::F64) => new.f64const(Ieee64::with_bits(bits as u64)),
        _ => new.iconst(ty, unsigned(bits as i64)),
    };
    true
}
