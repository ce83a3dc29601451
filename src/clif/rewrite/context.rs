//! What the rules of rewriting ask, and how they make instructions.

use super::BlockFacts;
use super::constants::{self, all_ones};
use super::rules::types::*;
use crate::constants::signed;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{
    Endianness, InstBuilder, InstBuilderBase, InstructionData, MemFlagsData, Opcode, Type, Value,
    types,
};

/// The context of the rules: where new instructions go.
pub struct Rewriter<'a, 'f, 'i> {
    /// In front of the instruction that is rewritten.
    pub(super) pos: FuncCursor<'f>,
    pub(super) block: &'a mut BlockFacts<'i>,
}

impl Rewriter<'_, '_, '_> {
    /// The type of a value and the instruction that it is the only result of.
    pub(super) fn definition(&self, value: Value) -> Option<(Type, InstructionData)> {
        let dfg = &self.pos.func.dfg;
        let value = dfg.resolve_aliases(value);
        let inst = dfg.value_def(value).inst()?;
        match dfg.inst_results(inst) {
            [_] => {
                let mut data = dfg.insts[inst];
                let operands: &mut [Value] = match &mut data {
                    InstructionData::Unary { arg, .. } => std::slice::from_mut(arg),
                    InstructionData::Binary { args, .. }
                    | InstructionData::IntCompare { args, .. }
                    | InstructionData::FloatCompare { args, .. }
                    | InstructionData::TernaryImm8 { args, .. } => args,
                    InstructionData::BinaryImm8 { arg, .. } => std::slice::from_mut(arg),
                    InstructionData::Ternary { args, .. } => args,
                    // Rules match nothing else that has operands.
                    _ => &mut [],
                };
                (operands.iter_mut()).for_each(|value| *value = dfg.resolve_aliases(*value));
                Some((dfg.value_type(value), data))
            }
            _ => None,
        }
    }

    /// The bits of a value as another type of the same size.
    fn reinterpreted(&mut self, ty: Type, value: Value) -> Value {
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.pos.ins().bitcast(ty, flags, value)
    }

    fn bits_of(&self, value: Value) -> Option<u64> {
        let (ty, data) = self.definition(value)?;
        constants::bits(ty, data)
    }

    /// What an amount is made from by operations that leave it the same modulo `width`.
    fn below_masks(&self, width: u64, mut amount: Value) -> Value {
        loop {
            let inner = match self.definition(amount) {
                Some((
                    _,
                    InstructionData::Unary {
                        opcode: Opcode::Uextend | Opcode::Sextend | Opcode::Ireduce,
                        arg,
                    },
                )) => arg,
                Some((
                    _,
                    InstructionData::Binary {
                        opcode: Opcode::Band,
                        args: [inner, mask],
                    },
                )) if self
                    .bits_of(mask)
                    .is_some_and(|mask| mask & (width - 1) == width - 1) =>
                {
                    inner
                }
                _ => return amount,
            };
            amount = self.pos.func.dfg.resolve_aliases(inner);
        }
    }

    /// The amount whose opposite modulo `width` this one is.
    fn opposite_of(&self, width: u64, amount: Value) -> Option<Value> {
        match self.definition(self.below_masks(width, amount))?.1 {
            InstructionData::Unary {
                opcode: Opcode::Ineg,
                arg,
            } => Some(self.below_masks(width, arg)),
            InstructionData::Binary {
                opcode: Opcode::Isub,
                args: [whole, part],
            } if self.bits_of(whole)?.is_multiple_of(width) => Some(self.below_masks(width, part)),
            _ => None,
        }
    }

    /// Two constants as amounts modulo a width, if they are opposite ones.
    fn opposite_numbers(&self, ty: Type, n: Value, m: Value) -> Option<u64> {
        let width = u64::from(ty.bits());
        let (n, m) = (self.bits_of(n)? % width, self.bits_of(m)? % width);
        (n + m).is_multiple_of(width).then_some(n)
    }
}

include!(concat!(env!("OUT_DIR"), "/clif_rules_context.rs"));

/// What the rules ask: methods of their context.
impl Rewriter<'_, '_, '_> {
    pub(super) fn inst_data_value(&mut self, value: Value) -> Option<(Type, InstructionData)> {
        self.definition(value)
    }

    pub(super) fn inst_data(&mut self, inst: cranelift_codegen::ir::Inst) -> InstructionData {
        self.pos.func.dfg.insts[inst]
    }

    pub(super) fn make_effect(&mut self, _: &InstructionData) -> cranelift_codegen::ir::Inst {
        unreachable!("no rule makes an instruction with an effect")
    }

    pub(super) fn make_inst(&mut self, ty: Type, data: &InstructionData) -> Value {
        let (inst, dfg) = self.pos.ins().build(*data, ty);
        dfg.first_result(inst)
    }

    // Types.

    pub(super) fn value_type(&mut self, value: Value) -> Type {
        self.pos.func.dfg.value_type(value)
    }

    pub(super) fn int_any(&mut self, ty: Type) -> Option<Type> {
        ty.is_int().then_some(ty)
    }

    pub(super) fn int_to_64(&mut self, ty: Type) -> Option<Type> {
        (ty.is_int() && ty.bits() <= 64).then_some(ty)
    }

    pub(super) fn int_of_words(&mut self, ty: Type) -> Option<Type> {
        matches!(ty, types::I32 | types::I64).then_some(ty)
    }

    pub(super) fn float_any(&mut self, ty: Type) -> Option<Type> {
        ty.is_float().then_some(ty)
    }

    // Constants.

    pub(super) fn bits(&mut self, value: Value) -> Option<u64> {
        self.bits_of(value)
    }

    pub(super) fn number(&mut self, value: Value) -> Option<i64> {
        let ty = self.pos.func.dfg.value_type(value);
        self.bits_of(value).map(|bits| signed(ty, bits as i64))
    }

    pub(super) fn int(&mut self, ty: Type, bits: u64) -> Value {
        // An immediate has the sign of its type.
        self.pos.ins().iconst(ty, signed(ty, bits as i64))
    }

    pub(super) fn float(&mut self, ty: Type, bits: u64) -> Value {
        let ins = self.pos.ins();
        match ty {
            types::F16 => ins.f16const(Ieee16::with_bits(bits as u16)),
            types::F32 => ins.f32const(Ieee32::with_bits(bits as u32)),
            _ => ins.f64const(Ieee64::with_bits(bits)),
        }
    }

    pub(super) fn u64_ones(&mut self, bits: u64) -> u64 {
        bits.count_ones().into()
    }

    pub(super) fn magnitude(&mut self, number: i64) -> u64 {
        number.unsigned_abs()
    }

    pub(super) fn leading_zeros(&mut self, ty: Type, bits: u64) -> u64 {
        u64::from(bits.leading_zeros() + ty.bits() - 64)
    }

    pub(super) fn trailing_zeros(&mut self, ty: Type, bits: u64) -> u64 {
        bits.trailing_zeros().min(ty.bits()).into()
    }

    pub(super) fn bits_reversed(&mut self, ty: Type, bits: u64) -> u64 {
        bits.reverse_bits() >> (64 - ty.bits())
    }

    pub(super) fn demoted(&mut self, ty: Type, value: Value) -> Option<u64> {
        let number = match self.definition(value)?.1 {
            InstructionData::UnaryIeee32 { imm, .. } => f64::from(f32::from_bits(imm.bits())),
            InstructionData::UnaryIeee64 { imm, .. } => f64::from_bits(imm.bits()),
            _ => return None,
        };
        constants::demoted(ty, number)
    }

    pub(super) fn exact_reciprocal(&mut self, value: Value) -> Option<u64> {
        let (ty, data) = self.definition(value)?;
        let bits = match data {
            InstructionData::UnaryIeee16 { imm, .. } => imm.bits().into(),
            InstructionData::UnaryIeee32 { imm, .. } => imm.bits().into(),
            InstructionData::UnaryIeee64 { imm, .. } => imm.bits(),
            _ => return None,
        };
        constants::exact_reciprocal(ty, bits)
    }

    pub(super) fn reciprocal_in_double(&mut self, value: Value) -> Option<u64> {
        match self.definition(value)?.1 {
            InstructionData::UnaryIeee32 { imm, .. } => constants::reciprocal_in_double(imm.bits()),
            _ => None,
        }
    }

    // Amounts and masks.

    pub(super) fn covers_amount(&mut self, ty: Type, mask: u64) -> bool {
        let low = u64::from(ty.bits()) - 1;
        mask & low == low
    }

    pub(super) fn opposite(&mut self, ty: Type, n: Value, m: Value) -> bool {
        let width = ty.bits().into();
        self.opposite_numbers(ty, n, m).is_some()
            || self.opposite_of(width, m) == Some(self.below_masks(width, n))
    }

    pub(super) fn opposite_constants(&mut self, ty: Type, n: Value, m: Value) -> bool {
        self.opposite_numbers(ty, n, m).is_some_and(|n| n != 0)
    }

    pub(super) fn distance(&mut self, from: u64, to: u64) -> u64 {
        to.wrapping_sub(from) % 32
    }

    pub(super) fn same_value(&mut self, a: Value, b: Value) -> bool {
        a == b
    }

    pub(super) fn complements(&mut self, ty: Type, a: u64, b: u64) -> bool {
        a ^ b == all_ones(ty)
    }

    pub(super) fn shifted_left(&mut self, ty: Type, bits: u64, by: u64) -> u64 {
        bits << (by % u64::from(ty.bits())) & all_ones(ty)
    }

    pub(super) fn is_within(&mut self, mask: u64, value: Value) -> bool {
        mask & !all_ones(self.value_type(value)) == 0
    }

    pub(super) fn is_all_of(&mut self, mask: u64, value: Value) -> bool {
        !mask & all_ones(self.value_type(value)) == 0
    }

    pub(super) fn sign_of(&mut self, sign: Value, value: Value) -> bool {
        matches!(self.inst_data_value(sign), Some((ty, InstructionData::Binary { opcode: Opcode::Sshr, args: [x, n] }))
            if x == value && self.bits_of(n).is_some_and(|n| n % u64::from(ty.bits()) == u64::from(ty.bits()) - 1))
    }

    pub(super) fn condition(&mut self, value: Value) -> Option<()> {
        let dfg = &self.pos.func.dfg;
        let inst = dfg.value_def(value).inst()?;
        let compares = match dfg.insts[inst].opcode() {
            Opcode::Icmp | Opcode::Fcmp => true,
            Opcode::UaddOverflow | Opcode::UsubOverflow => value != dfg.first_result(inst),
            _ => false,
        };
        (dfg.value_type(value) == types::I8 && compares).then_some(())
    }

    // Halves.

    pub(super) fn lane_of_halves(&mut self, value: Value) -> Option<(Value, u32)> {
        match self.definition(value)?.1 {
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            } if self.value_type(arg) == types::F16X2 => Some((arg, imm.into())),
            _ => None,
        }
    }

    pub(super) fn second_lane(&mut self, lane: u8) -> Option<()> {
        (lane == 1).then_some(())
    }

    pub(super) fn as_word(&mut self, value: Value) -> Value {
        self.reinterpreted(types::I32, value)
    }

    pub(super) fn as_halves(&mut self, value: Value) -> Value {
        self.reinterpreted(types::F16X2, value)
    }

    pub(super) fn complement_before(&mut self, value: Value) -> Option<Value> {
        let (_, data) = self.definition(value)?;
        let func = &*self.pos.func;
        self.block.complements.find(func, data)
    }

    pub(super) fn is_shifted(&mut self, value: Value, other: Value, by: u64) -> bool {
        // A constant part folds into the shifted one.
        if crate::constants::integer(self.pos.func, other).is_some() {
            return false;
        }
        let func = &*self.pos.func;
        let block = self.pos.current_block();
        block.is_some_and(|block| self.block.shifts.has(func, block, value, by))
    }

    // Carries.

    pub(super) fn summand(&mut self, sum: Value, part: Value) -> bool {
        self.is_summand(sum, part)
    }

    pub(super) fn carry_of(&mut self, sum: Value) -> Value {
        self.carry(sum)
    }

    pub(super) fn difference(&mut self, x: Value, y: Value) -> Option<Value> {
        self.known_difference(x, y)
    }

    pub(super) fn borrow_of(&mut self, difference: Value) -> Value {
        self.borrow(difference)
    }

    pub(super) fn comparison(&mut self, x: Value, y: Value) -> Option<Value> {
        self.known_comparison(x, y)
    }

    pub(super) fn difference_of(&mut self, comparison: Value) -> Value {
        self.difference_of_comparison(comparison)
    }

    pub(super) fn signed_sum(&mut self, x: Value, y: Value) -> Checked {
        self.pos.ins().sadd_overflow(x, y)
    }

    pub(super) fn signed_difference(&mut self, x: Value, y: Value) -> Checked {
        self.pos.ins().ssub_overflow(x, y)
    }

    pub(super) fn checked(&mut self, checked: Checked) -> (Value, Value) {
        checked
    }
}
