//! What rules ask of CLIF: instructions, types and constants.

use super::rules::{ByteOrder, Lane, Shape, Width, Words};
use super::source::{Base, ValueSlice};
use super::state::Lower;
use crate::abi::is_representable;
use crate::analysis::definitions::words_of_bits;
use cranelift_codegen::ir::immediates::Uimm8;
use cranelift_codegen::ir::types::*;
use cranelift_codegen::ir::{
    Endianness, Inst, InstructionData, MemFlags, Opcode, Type, Value, ValueDef, ValueList,
};

/// Instructions, types and constants.
impl Lower<'_> {
    pub(super) fn inst_data_value(&mut self, inst: Inst) -> (Type, InstructionData) {
        let ty = self
            .func
            .dfg
            .inst_results(inst)
            .first()
            .map_or(INVALID, |&v| self.type_of(v));
        (ty, self.func.dfg.insts[inst])
    }

    pub(super) fn value_list_slice(&mut self, list: ValueList) -> ValueSlice {
        (list, 0)
    }

    pub(super) fn value_slice_unwrap(
        &mut self,
        (list, first): ValueSlice,
    ) -> Option<(Value, ValueSlice)> {
        list.get(first, &self.func.dfg.value_lists)
            .map(|v| (v, (list, first + 1)))
    }

    pub(super) fn def_inst(&mut self, value: Value) -> Option<Inst> {
        self.def_of(value)
    }

    pub(super) fn result(&mut self, inst: Inst) -> Value {
        self.func.dfg.first_result(inst)
    }

    pub(super) fn value_type(&mut self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    // Types.

    pub(super) fn width(&mut self, ty: Type) -> Width {
        match ty {
            F16 | F16X2 => Width::Half,
            F32 => Width::Single,
            F64 => Width::Double,
            _ if ty.is_int() && ty.bits() <= 32 => Width::Word,
            I64 => Width::TwoWords,
            I128 => Width::FourWords,
            _ if ty.is_vector() && is_representable(ty) => Width::Vector,
            _ => Width::Other,
        }
    }

    pub(super) fn shape(&mut self, ty: Type) -> Shape {
        match ty {
            I8 | I16 => Shape::Narrow,
            I32 => Shape::Int32,
            I64 => Shape::Int64,
            I128 => Shape::Int128,
            F16 => Shape::Float16,
            F16X2 => Shape::Float16x2,
            F32 => Shape::Float32,
            F64 => Shape::Float64,
            _ if !ty.is_vector() || !is_representable(ty) => Shape::Other,
            _ if ty.bits() <= 32 => Shape::Vector32,
            _ if ty.bits() == 64 => Shape::Vector64,
            _ => Shape::Vector128,
        }
    }

    pub(super) fn words(&mut self, ty: Type) -> Words {
        match ty.bits() {
            _ if !is_representable(ty) => Words::Other,
            0..=32 => Words::One,
            64 => Words::Two,
            128 => Words::Four,
            _ => Words::Other,
        }
    }

    pub(super) fn lane(&mut self, ty: Type) -> Lane {
        match ty.lane_bits() {
            8 => Lane::Bits8,
            16 => Lane::Bits16,
            32 => Lane::Bits32,
            64 => Lane::Bits64,
            _ => Lane::Other,
        }
    }

    pub(super) fn int_any(&mut self, ty: Type) -> Option<Type> {
        ty.is_int().then_some(ty)
    }

    pub(super) fn bits_any(&mut self, ty: Type) -> Option<Type> {
        is_representable(ty).then_some(ty)
    }

    pub(super) fn in_registers(&mut self, ty: Type) -> Option<()> {
        (ty.bits() <= 128 && !ty.is_dynamic_vector()).then_some(())
    }

    pub(super) fn bits_of(&mut self, ty: Type) -> u32 {
        ty.bits()
    }

    pub(super) fn lane_size(&mut self, ty: Type) -> u32 {
        ty.lane_bits()
    }

    pub(super) fn word_count(&mut self, ty: Type) -> u32 {
        words_of_bits(ty.bits()) as u32
    }

    // Constants, and how values are used.

    pub(super) fn constant(&mut self, value: Value) -> Option<i64> {
        self.signed_constant_of(value)
            .and_then(|v| i64::try_from(v).ok())
    }

    pub(super) fn truth(&mut self, value: Value) -> Option<()> {
        self.is_truth(value).then_some(())
    }

    /// Whether a value is computed in more turns than what reads it.
    pub(super) fn of_inner_loop(&mut self, value: Value) -> Option<()> {
        let home = match self.func.dfg.value_def(value) {
            ValueDef::Param(block, _) => Some(block),
            _ => self
                .def_of(value)
                .and_then(|inst| self.func.layout.inst_block(inst)),
        };
        let flow = self.input.facts.flow;
        let (home, here) = (flow.loop_depth(home?), flow.loop_depth(self.current?));
        (home > here).then_some(())
    }

    /// What extends a truth hands its number on.
    pub(super) fn one_if(&mut self, value: Value) -> Option<Value> {
        let truth = match self.def_data(value) {
            Some(InstructionData::Unary {
                opcode: Opcode::Uextend | Opcode::Sextend,
                arg,
            }) => arg,
            _ => value,
        };
        self.is_truth(truth).then_some(truth)
    }

    pub(super) fn once(&mut self, value: Value) -> Option<()> {
        self.is_used_once(value).then_some(())
    }

    pub(super) fn is_awaited(&mut self, inst: Inst) -> bool {
        let facts = &self.input.facts;
        let mut results = self.func.dfg.inst_results(inst).iter();
        facts.ordering.is_awaited(inst) || results.any(|&v| !facts.users.of(v).is_empty())
    }

    pub(super) fn shift_below_32(&mut self, amount: i64) -> Option<u32> {
        (0..32).contains(&amount).then_some(amount as u32)
    }

    pub(super) fn replaceable(&mut self, value: Value) -> bool {
        let here = self
            .def_of(value)
            .and_then(|inst| self.func.layout.inst_block(inst));
        let below = self.below_copies(self.src(value)).base;
        let plain = matches!(below, Base::Value { value: below, .. } if below == value);
        // What came in registers and is not wanted again, or is computed here.
        let comes = match self.func.dfg.value_def(value) {
            ValueDef::Param(block, _) => Some(block),
            _ => here,
        };
        self.is_used_once(value) && comes.is_some() && comes == self.current && plain
    }

    pub(super) fn highest_of(&mut self, value: Value) -> Option<()> {
        let limit = self.float_constant(value)?;
        let negative_zero = limit == 0.0 && limit.is_sign_negative();
        (!limit.is_nan() && !negative_zero).then_some(())
    }

    pub(super) fn lowest_of(&mut self, value: Value) -> Option<()> {
        let limit = self.float_constant(value)?;
        let positive_zero = limit == 0.0 && limit.is_sign_positive();
        (!limit.is_nan() && !positive_zero).then_some(())
    }

    pub(super) fn high_shift(&mut self, amount: i64) -> Option<u32> {
        (1..32).contains(&amount).then(|| 32 - amount as u32)
    }

    pub(super) fn complete(&mut self, up: i64, down: i64) -> bool {
        (1..32).contains(&up) && up + down == 32
    }

    pub(super) fn constant_amount(&mut self, ty: Type, n: Value) -> Option<u32> {
        self.constant_of(n).map(|c| c as u32 & (ty.lane_bits() - 1))
    }

    pub(super) fn amount64(&mut self, n: Value) -> Option<(u32, u32)> {
        self.constant_of(n)
            .map(|c| (c as u32 / 32 % 2, c as u32 % 32))
    }

    pub(super) fn amount128(&mut self, n: Value) -> Option<(u32, u32)> {
        self.constant_of(n)
            .map(|c| (c as u32 / 32 % 4, c as u32 % 32))
    }

    pub(super) fn lane_index(&mut self, lane: Uimm8) -> u32 {
        lane.into()
    }

    pub(super) fn reciprocal_bits(&mut self, value: u32) -> u32 {
        (1.0 / value as f32).to_bits()
    }

    pub(super) fn byte_order(&mut self, flags: MemFlags) -> ByteOrder {
        match self.func.dfg.mem_flags[flags].endianness(Endianness::Little) {
            Endianness::Little => ByteOrder::Little,
            Endianness::Big => ByteOrder::Big,
        }
    }
}
