//! The context of the ISLE rules: extractors over CLIF, operands, and the Rust sequences that rules call.

use super::divide::Part;
use super::shift::Shift;
use super::source::{
    InstOutput, Output, Outputs, PSrc, PredicateSet, Regs, Source, Src, words_of_bits,
};
use super::{Lower, integer, vector};
use crate::isa::VReg;
use crate::isa::{Optype, Role};
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::*;
use cranelift_codegen::ir::{
    BlockCall, Inst, InstructionData, MemFlags, StackSlot, TrapCode, Type, Value, ValueList,
};
use generated_code::{Context, Product};
use smallvec::SmallVec;

/// The rules, compiled.
pub mod generated_code {
    #![allow(
        missing_docs,
        unused_variables,
        unused_imports,
        unused_mut,
        unreachable_code,
        unreachable_patterns,
        dead_code
    )]
    #![allow(
        clippy::all,
        irrefutable_let_patterns,
        non_snake_case,
        non_camel_case_types
    )]

    pub use super::super::source::{InstOutput, Outputs, PSrc, PredicateSet, Regs, Src};
    use crate::isa::generated::*;
    pub use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
    pub use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64, Imm64, Offset32, Uimm8};
    pub use cranelift_codegen::ir::types::*;
    pub use cranelift_codegen::ir::{
        AtomicRmwOp, BlockCall, Constant, DynamicStackSlot, ExceptionTable, FuncRef, GlobalValue,
        Immediate, Inst, InstructionData, JumpTable, MemFlags, MemFlagsData, Opcode, SigRef,
        StackSlot, TrapCode, Type, Value, ValueList,
    };
    extern crate alloc;

    /// `[Value; 2]`.
    pub type ValueArray2 = [Value; 2];
    /// `[Value; 3]`.
    pub type ValueArray3 = [Value; 3];
    /// `[BlockCall; 2]`.
    pub type BlockArray2 = [BlockCall; 2];
    /// A list of values from a position on.
    pub type ValueSlice = (ValueList, usize);

    /// Types by how many words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Width {
        /// Integers of at most a word.
        Word,
        /// Integers of more.
        Wide,
        /// f16, f16x2.
        Half,
        /// f32.
        Single,
        /// f64.
        Double,
        /// Other vectors up to 128 bits.
        Vector,
        /// The rest.
        Other,
    }

    /// Types by exact shape.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Shape {
        Narrow,
        Int32,
        Int64,
        Int128,
        Float16,
        Float16x2,
        Float32,
        Float64,
        Vector32,
        Vector64,
        Vector128,
        Other,
    }

    /// The product of two extended words, or of one and a constant.
    #[derive(Clone, Copy, Debug)]
    pub struct Product {
        /// Both are sign-extended.
        pub signed: bool,
        /// First factor, below 64 bits.
        pub a: Value,
        /// Second factor.
        pub b: Factor,
    }

    /// The second factor of a [`Product`].
    #[derive(Clone, Copy, Debug)]
    pub enum Factor {
        /// An extended value.
        Value(Value),
        /// A constant that fits a word of the product's signedness.
        Constant(u32),
    }

    include!(concat!(env!("OUT_DIR"), "/options.rs"));
    include!(concat!(env!("OUT_DIR"), "/rules.rs"));
}

use generated_code::{BlockArray2, Factor, ValueArray2, ValueArray3, ValueSlice};

include!(concat!(env!("OUT_DIR"), "/operations.rs"));

/// Applies the first rule that matches.
pub(super) fn lower_instruction(context: &mut Lower<'_>, inst: Inst) -> Option<InstOutput> {
    generated_code::constructor_lower(context, inst)
}

use crate::isa::generated::*;
use generated_code::*;

impl Context for Lower<'_> {
    operation_methods!();
    cranelift_codegen::isle_numerics_methods!();

    // Cranelift's data.

    fn inst_data_value(&mut self, inst: Inst) -> (Type, InstructionData) {
        let ty = self
            .func
            .dfg
            .inst_results(inst)
            .first()
            .map_or(INVALID, |&v| self.type_of(v));
        (ty, self.func.dfg.insts[inst])
    }
    fn value_list_slice(&mut self, list: ValueList) -> ValueSlice {
        (list, 0)
    }
    fn value_slice_unwrap(&mut self, (list, first): ValueSlice) -> Option<(Value, ValueSlice)> {
        list.get(first, &self.func.dfg.value_lists)
            .map(|v| (v, (list, first + 1)))
    }
    fn unpack_value_array_2(&mut self, array: &ValueArray2) -> (Value, Value) {
        (array[0], array[1])
    }
    fn pack_value_array_2(&mut self, a: Value, b: Value) -> ValueArray2 {
        [a, b]
    }
    fn unpack_value_array_3(&mut self, array: &ValueArray3) -> (Value, Value, Value) {
        (array[0], array[1], array[2])
    }
    fn pack_value_array_3(&mut self, a: Value, b: Value, c: Value) -> ValueArray3 {
        [a, b, c]
    }
    fn unpack_block_array_2(&mut self, array: &BlockArray2) -> (BlockCall, BlockCall) {
        (array[0], array[1])
    }
    fn pack_block_array_2(&mut self, a: BlockCall, b: BlockCall) -> BlockArray2 {
        [a, b]
    }
    fn def_inst(&mut self, value: Value) -> Option<Inst> {
        self.def_of(value)
    }
    fn value_type(&mut self, value: Value) -> Type {
        self.type_of(value)
    }

    // Types.

    fn width(&mut self, ty: Type) -> Width {
        match ty {
            F16 | F16X2 => Width::Half,
            F32 => Width::Single,
            F64 => Width::Double,
            _ if ty.is_int() && ty.bits() <= 32 => Width::Word,
            _ if ty.is_int() => Width::Wide,
            _ if ty.is_vector() && Self::is_representable(ty) => Width::Vector,
            _ => Width::Other,
        }
    }
    fn shape(&mut self, ty: Type) -> Shape {
        match ty {
            I8 | I16 => Shape::Narrow,
            I32 => Shape::Int32,
            I64 => Shape::Int64,
            I128 => Shape::Int128,
            F16 => Shape::Float16,
            F16X2 => Shape::Float16x2,
            F32 => Shape::Float32,
            F64 => Shape::Float64,
            _ if !ty.is_vector() || !Self::is_representable(ty) => Shape::Other,
            _ if ty.bits() <= 32 => Shape::Vector32,
            _ if ty.bits() == 64 => Shape::Vector64,
            _ => Shape::Vector128,
        }
    }
    fn int_any(&mut self, ty: Type) -> Option<Type> {
        ty.is_int().then_some(ty)
    }
    fn bits_any(&mut self, ty: Type) -> Option<Type> {
        Self::is_representable(ty).then_some(ty)
    }
    fn ty_bits(&mut self, ty: Type) -> u32 {
        ty.bits()
    }
    fn constant(&mut self, value: Value) -> Option<i64> {
        self.signed_constant_of(value)
            .and_then(|v| i64::try_from(v).ok())
    }
    fn truth(&mut self, value: Value) -> Option<()> {
        self.is_truth(value).then_some(())
    }
    fn once(&mut self, value: Value) -> Option<()> {
        self.is_used_once(value).then_some(())
    }
    fn shift_below_32(&mut self, amount: i64) -> Option<u32> {
        (0..32).contains(&amount).then_some(amount as u32)
    }

    // Operands and results.

    fn src(&mut self, value: Value) -> Src {
        Lower::src(self, value)
    }
    fn int_src(&mut self, value: Value) -> Src {
        Lower::int_src(self, value)
    }
    fn float_src(&mut self, value: Value) -> Src {
        Lower::float_src(self, value)
    }
    fn half_src(&mut self, value: Value) -> Src {
        Lower::half_src(self, value)
    }
    fn zero_extended(&mut self, value: Value) -> Src {
        Lower::zero_extended(self, value)
    }
    fn sign_extended(&mut self, value: Value) -> Src {
        Lower::sign_extended(self, value)
    }
    fn predicate(&mut self, value: Value) -> PSrc {
        self.predicate_of(value)
    }
    fn imm(&mut self, value: u32) -> Src {
        Src::imm(value)
    }
    fn zero(&mut self) -> Src {
        Src::ZERO
    }
    fn negated(&mut self, src: Src) -> Src {
        src.negated()
    }
    fn complemented(&mut self, src: Src) -> Src {
        src.complemented()
    }
    fn reg_src(&mut self, regs: Regs) -> Src {
        Src::regs(regs)
    }
    fn low(&mut self, src: Src) -> Src {
        src.low()
    }
    fn high(&mut self, src: Src) -> Src {
        src.high()
    }
    fn true_predicate(&mut self) -> PSrc {
        PSrc::TRUE
    }
    fn false_predicate(&mut self) -> PSrc {
        PSrc::FALSE
    }
    fn not_predicate(&mut self, p: PSrc) -> PSrc {
        p.negate()
    }
    fn out_d(&mut self, outputs: Outputs) -> Regs {
        outputs.d()
    }
    fn out_pu(&mut self, outputs: Outputs) -> PSrc {
        outputs.pu()
    }
    fn out_pv(&mut self, outputs: Outputs) -> PSrc {
        outputs.pv()
    }
    fn output(&mut self, regs: Regs) -> InstOutput {
        SmallVec::from_slice(&[Output::Regs(regs)])
    }
    fn output_predicate(&mut self, p: PSrc) -> InstOutput {
        SmallVec::from_slice(&[Output::Predicate(p)])
    }
    fn output_pair(&mut self, a: Regs, b: Regs) -> InstOutput {
        SmallVec::from_slice(&[Output::Regs(a), Output::Regs(b)])
    }
    fn output_none(&mut self) -> InstOutput {
        SmallVec::new()
    }
    fn output_src(&mut self, src: Src) -> InstOutput {
        let regs = self.gpr(src);
        SmallVec::from_slice(&[Output::Regs(regs)])
    }

    // Integer.

    fn constant_output(&mut self, inst: Inst) -> InstOutput {
        let value = self.func.dfg.first_result(inst);
        let src = Lower::src(self, value);
        let bits = src.as_imm().unwrap_or_default();
        let mut regs = SmallVec::<[VReg; 4]>::new();
        for word in 0..u32::from(src.words) {
            regs.push(self.immediate((bits >> (32 * word)) as u32));
        }
        self.output(Regs::new(&regs))
    }
    fn extended_product(&mut self, value: Value) -> Option<Product> {
        self.product_of(value)
    }
    fn extended_product_of(&mut self, inst: Inst) -> Option<Product> {
        self.product_of(self.func.dfg.first_result(inst))
    }
    fn multiply_wide_add(&mut self, product: Product, addend: Src) -> Regs {
        let itype = if product.signed {
            IType::S32
        } else {
            IType::U32
        };
        let extend = |this: &mut Self, v| {
            if product.signed {
                this.sign_extended(v)
            } else {
                this.zero_extended(v)
            }
        };
        let a = extend(self, product.a);
        let b = match product.b {
            Factor::Value(v) => extend(self, v),
            Factor::Constant(c) => Src::imm(c),
        };
        self.multiply_wide(itype, a, b, addend).0
    }
    fn add_word(&mut self, a: Src, b: Src) -> Regs {
        Regs::one(self.add(a, b))
    }
    fn add_wide(&mut self, a: Src, b: Src) -> Regs {
        Lower::add_wide(self, a, b)
    }
    fn subtract_wide(&mut self, a: Src, b: Src) -> Regs {
        Lower::subtract_wide(self, a, b)
    }
    fn multiply_add(&mut self, a: Src, b: Src, c: Src) -> Regs {
        Regs::one(Lower::multiply_add(self, a, b, c))
    }
    fn multiply_high(&mut self, a: Src, b: Src, itype: &IType) -> Regs {
        Regs::one(Lower::multiply_high(self, a, b, *itype))
    }
    fn multiply64(&mut self, a: Src, b: Src) -> Regs {
        Lower::multiply64(self, a, b)
    }
    fn shift_right(&mut self, x: Src, n: Src, signed: bool) -> Regs {
        Regs::one(Lower::shift_right(self, x, n, signed, false))
    }
    fn min_max(&mut self, a: Src, b: Src, itype: &IType, minimum: bool) -> Regs {
        Regs::one(Lower::min_max(self, a, b, *itype, minimum))
    }
    fn concat(&mut self, low: Regs, high: Regs) -> Regs {
        low.concat(high)
    }
    fn src_regs(&mut self, src: Src) -> Regs {
        self.gpr(src)
    }
    fn wide_zero(&mut self, ty: Type) -> Src {
        Src::wide_imm(0, words_of_bits(ty.bits()) as u8)
    }
    fn extend_unsigned(&mut self, ty: Type, value: Value) -> Regs {
        self.extend(ty, value, false)
    }
    fn extend_signed(&mut self, ty: Type, value: Value) -> Regs {
        self.extend(ty, value, true)
    }
    fn reduce(&mut self, ty: Type, value: Value) -> Regs {
        let src = Lower::src(self, value).slice(0, words_of_bits(ty.bits()) as u8);
        self.gpr(src)
    }
    fn join(&mut self, ty: Type, low: Value, high: Value) -> Regs {
        let (low, high) = (Lower::src(self, low), Lower::src(self, high));
        match ty.bits() {
            16 => Regs::one(self.permute(low, high, Src::imm(vector::LOW_BYTES))),
            32 => Regs::one(self.permute(low, high, Src::imm(vector::LOW_HALVES))),
            _ => self.gpr(low).concat(self.gpr(high)),
        }
    }
    fn split(&mut self, value: Value) -> InstOutput {
        let bits = self.type_of(value).bits();
        let src = Lower::src(self, value);
        let half = src.words / 2;
        let (low, high) = if half == 0 {
            let down = Src::imm(bits / 2);
            let high = Lower::shift_right(self, src, down, false, false);
            (self.gpr(src), Regs::one(high))
        } else {
            (
                self.gpr(src.slice(0, half)),
                self.gpr(src.slice(half, half)),
            )
        };
        self.output_pair(low, high)
    }

    // Wide, counting, overflowing and dividing integers; lanes.

    fn limits(&mut self, least: i64, greatest: i64) -> Option<I2IDType> {
        match (least, greatest) {
            (-0x80, 0x7f) => Some(I2IDType::S8),
            (0, 0xff) => Some(I2IDType::U8),
            (-0x8000, 0x7fff) => Some(I2IDType::S16),
            (0, 0xffff) => Some(I2IDType::U16),
            _ => None,
        }
    }
    fn field_width(&mut self, up: u32, down: u32) -> Option<u32> {
        (up == down && up > 0).then(|| 32 - up)
    }
    fn compare_mask(&mut self, cc: &IntCC, x: Value, y: Value) -> Regs {
        Regs::one(Lower::compare_mask(self, *cc, x, y))
    }

    fn absolute_wide(&mut self, x: Src) -> Regs {
        let magnitude = self.magnitude(x);
        self.gpr(magnitude)
    }
    fn multiply128(&mut self, a: Src, b: Src) -> Regs {
        Lower::multiply128(self, a, b)
    }
    fn multiply_high64(&mut self, a: Src, b: Src, signed: bool) -> Regs {
        Lower::multiply_high64(self, a, b, signed)
    }
    fn shift_left_words(&mut self, x: Value, n: Value) -> Regs {
        self.shift_words(x, n, Shift::Left)
    }
    fn shift_right_words(&mut self, x: Value, n: Value, signed: bool) -> Regs {
        let shift = if signed {
            Shift::RightSigned
        } else {
            Shift::Right
        };
        self.shift_words(x, n, shift)
    }
    fn rotate_words(&mut self, x: Value, n: Value, left: bool) -> Regs {
        let shift = if left {
            Shift::RotateLeft
        } else {
            Shift::RotateRight
        };
        self.shift_words(x, n, shift)
    }
    fn repeated(&mut self, ty: Type, x: Value) -> Regs {
        let selector = if ty.bits() == 8 { 0 } else { 0x1010 };
        let x = Lower::src(self, x);
        Regs::one(self.permute(x, Src::ZERO, Src::imm(selector)))
    }
    fn leading_zeros(&mut self, ty: Type, x: Value) -> Regs {
        Lower::leading_zeros(self, ty, x)
    }
    fn leading_signs(&mut self, ty: Type, x: Value) -> Regs {
        Lower::leading_signs(self, ty, x)
    }
    fn trailing_zeros(&mut self, ty: Type, x: Value) -> Regs {
        Lower::trailing_zeros(self, ty, x)
    }
    fn ones(&mut self, ty: Type, x: Value) -> Regs {
        Lower::ones(self, ty, x)
    }
    fn reverse_bytes(&mut self, ty: Type, x: Value) -> Regs {
        let src = Lower::src(self, x);
        Lower::reverse_bytes(self, src, ty.bytes())
    }
    fn reverse_bits(&mut self, ty: Type, x: Value) -> Regs {
        Lower::reverse_bits(self, ty, x)
    }
    fn add_overflow(&mut self, ty: Type, x: Value, y: Value, c: PSrc, signed: bool) -> InstOutput {
        Self::with_overflow(self.add_overflowing(ty, x, y, c, signed))
    }
    fn subtract_overflow(
        &mut self,
        ty: Type,
        x: Value,
        y: Value,
        borrow: PSrc,
        signed: bool,
    ) -> InstOutput {
        Self::with_overflow(self.subtract_overflowing(ty, x, y, borrow, signed))
    }
    fn multiply_overflow(&mut self, ty: Type, x: Value, y: Value, signed: bool) -> InstOutput {
        Self::with_overflow(self.multiply_overflowing(ty, x, y, signed))
    }
    fn add_or_trap(&mut self, ty: Type, x: Value, y: Value, code: &TrapCode) -> Regs {
        let (sum, overflow) = self.add_overflowing(ty, x, y, PSrc::FALSE, false);
        self.guarded_trap(overflow, code.as_raw().get());
        sum
    }
    fn quotient(&mut self, ty: Type, x: Value, y: Value, signed: bool) -> Option<Regs> {
        self.divide(ty, x, y, signed, Part::Quotient)
    }
    fn remainder(&mut self, ty: Type, x: Value, y: Value, signed: bool) -> Option<Regs> {
        self.divide(ty, x, y, signed, Part::Remainder)
    }
    fn splat_lanes(&mut self, ty: Type, x: Value) -> Regs {
        self.splat(ty, x)
    }
    fn insert_lanes(&mut self, inst: Inst) -> Regs {
        let vector = self.func.dfg.first_result(inst);
        Lower::insert_lanes(self, vector)
    }
    fn extract_lane(&mut self, vector: Value, lane: Uimm8) -> Regs {
        Lower::extract_lane(self, vector, lane)
    }
    fn shuffle_bytes(&mut self, a: Value, b: Value, mask: Immediate) -> Regs {
        let mask: SmallVec<[u8; 16]> = self.func.dfg.immediates[mask].as_slice().into();
        self.shuffle(a, b, &mask)
    }
    fn packed_sum(&mut self, ty: Type, x: Src, y: Src, subtract: bool) -> Regs {
        Lower::packed_sum(self, ty, x, y, subtract)
    }
    fn packed_shift(&mut self, ty: Type, x: Value, n: Value, left: bool) -> Regs {
        Lower::packed_shift(self, ty, x, n, left)
    }
    fn packed_shift_signed(&mut self, x: Value, n: Value) -> Regs {
        Lower::packed_shift_signed(self, x, n)
    }
    fn any_true(&mut self, vector: Value) -> PSrc {
        Lower::any_true(self, vector)
    }
    fn high_bits(&mut self, ty: Type, vector: Value) -> Regs {
        Lower::high_bits(self, ty, vector)
    }

    // Logic and shifts.

    fn logic_tree(&mut self, inst: Inst) -> Regs {
        self.logic_of(inst)
    }
    fn predicate_logic(&mut self, x: Value, y: Value, table: u8) -> PSrc {
        let (x, y) = (self.predicate_of(x), self.predicate_of(y));
        PSrc::new(Lower::predicate_logic(self, x, y, PSrc::TRUE, table))
    }
    fn amount(&mut self, ty: Type, n: Value) -> Src {
        self.shift_amount(ty, n)
    }
    fn shift_left_wrap(&mut self, x: Src, n: Src) -> Regs {
        Regs::one(self.shift_left(x, n, true))
    }
    fn shift_right_wrap(&mut self, x: Src, n: Src, signed: bool) -> Regs {
        Regs::one(Lower::shift_right(self, x, n, signed, true))
    }
    fn shift_left64(&mut self, x: Value, n: Value) -> Regs {
        Lower::shift_left64(self, x, n)
    }
    fn shift_right64(&mut self, x: Value, n: Value, signed: bool) -> Regs {
        Lower::shift_right64(self, x, n, signed)
    }
    fn rotate_word(&mut self, x: Src, n: Src, left: bool) -> Regs {
        let direction = if left { SHFDir::L } else { SHFDir::R };
        let part = if left { LOHI::Hi } else { LOHI::Lo };
        let x = Src::regs(self.gpr(x));
        Regs::one(self.funnel(direction, part, CWMode::W, SHFDType::U32, x, n, x))
    }
    fn rotate64(&mut self, x: Value, n: Value, left: bool) -> Regs {
        Lower::rotate64(self, x, n, left)
    }

    // Comparisons and selections.

    fn compare(&mut self, cc: &IntCC, x: Value, y: Value) -> PSrc {
        Lower::compare(self, *cc, x, y)
    }
    fn select_wide(&mut self, p: PSrc, x: Src, y: Src) -> Regs {
        Lower::select_wide(self, p, x, y)
    }
    fn mask_of(&mut self, ty: Type, p: PSrc) -> Regs {
        let word = self.select_word(p, Src::imm(u32::MAX), Src::ZERO);
        Regs::new(&[word; 4][..words_of_bits(ty.bits())])
    }

    // Floats.

    fn flip_sign(&mut self, ty: Type, x: Value) -> Regs {
        self.change_sign(ty, x, integer::TABLE_A ^ integer::TABLE_B, false)
    }
    fn clear_sign(&mut self, ty: Type, x: Value) -> Regs {
        self.change_sign(ty, x, integer::TABLE_A & integer::TABLE_B, true)
    }

    fn compare_float(&mut self, cc: &FloatCC, x: Value, y: Value) -> PSrc {
        Lower::compare_float(self, *cc, x, y)
    }
    fn float_condition(&mut self, cc: &FloatCC) -> FCMPOp {
        super::float::condition(*cc)
    }
    fn round_float(&mut self, x: Value, rnd: &IRound) -> Regs {
        Lower::round_float(self, x, *rnd)
    }
    fn copy_sign(&mut self, ty: Type, x: Value, y: Value) -> Regs {
        Lower::copy_sign(self, ty, x, y)
    }
    fn divide_single(&mut self, x: Value, y: Value) -> Regs {
        Lower::divide_single(self, x, y)
    }
    fn divide_double(&mut self, x: Value, y: Value) -> Regs {
        Lower::divide_double(self, x, y)
    }
    fn divide_half(&mut self, x: Value, y: Value) -> Regs {
        let (x, y) = (self.one_half(x), self.one_half(y));
        Regs::one(self.half_quotient(x, y))
    }
    fn divide_halves(&mut self, x: Value, y: Value) -> Regs {
        Lower::divide_halves(self, x, y)
    }
    fn root_single(&mut self, x: Value) -> Regs {
        Lower::root_single(self, x)
    }
    fn root_double(&mut self, x: Value) -> Regs {
        Lower::root_double(self, x)
    }
    fn root_half(&mut self, x: Value) -> Regs {
        let x = self.one_half(x);
        Regs::one(Lower::half_root(self, x))
    }
    fn root_halves(&mut self, x: Value) -> Regs {
        Lower::root_halves(self, x)
    }

    // Conversions.

    fn cast_bits(&mut self, ty: Type, flags: MemFlags, x: Value) -> InstOutput {
        let regs = Lower::cast_bits(self, ty, flags, x);
        self.output_src(regs)
    }
    fn convert_format(&mut self, ty: Type, x: Value) -> Option<Regs> {
        Lower::convert_format(self, ty, x)
    }
    fn integer_to_float(&mut self, ty: Type, x: Value, signed: bool) -> Option<Regs> {
        Lower::integer_to_float(self, ty, x, signed)
    }
    fn float_to_integer(&mut self, ty: Type, x: Value, signed: bool) -> Option<Regs> {
        Lower::float_to_integer(self, ty, x, signed)
    }
    fn float_to_integer_checked(&mut self, ty: Type, x: Value, signed: bool) -> Option<Regs> {
        Lower::float_to_integer_checked(self, ty, x, signed)
    }

    // Atomics.

    fn atomic_of(&mut self, inst: Inst) -> Option<InstOutput> {
        self.atomic(inst)
    }
    fn fence_output(&mut self) -> InstOutput {
        self.fence();
        SmallVec::new()
    }

    // Memory and calls.

    fn load_of(&mut self, inst: Inst) -> Option<InstOutput> {
        self.load(inst)
    }
    fn store_of(&mut self, inst: Inst) -> Option<InstOutput> {
        self.store(inst)
    }
    fn stack_address(&mut self, slot: StackSlot, offset: Offset32) -> Regs {
        Lower::stack_address(self, slot, offset.into())
    }
    fn call_of(&mut self, inst: Inst) -> Option<InstOutput> {
        match self.input.facts.intrinsics.of_call(self.func, inst) {
            Some(intrinsic) => self.intrinsic(inst, intrinsic),
            None => self.call(inst),
        }
    }
    fn stack_pointer_address(&mut self) -> Regs {
        let pointer = self.stack_pointer();
        self.local_address(pointer)
    }
    fn frame_pointer_address(&mut self) -> Regs {
        self.frame_address(super::call::INCOMING, 0)
    }
    fn function_address(&mut self, callee: FuncRef) -> Regs {
        let name = self.function_name(callee);
        self.data_address(&name, 0)
    }
    fn symbol_of(&mut self, inst: Inst) -> Option<InstOutput> {
        self.symbol(inst)
    }
    fn trap_if(&mut self, p: PSrc, code: &TrapCode) -> InstOutput {
        self.guarded_trap(p, code.as_raw().get());
        SmallVec::new()
    }
}
