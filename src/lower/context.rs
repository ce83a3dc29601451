//! The context of the ISLE rules: extractors over CLIF, operands, and the Rust sequences that rules call.

use super::divide::Part;
use super::shift::Shift;
use super::source::{Base, Halves, InstOutput, Output, PSrc, Regs, Source, Src, words_of_bits};
use super::{Lower, integer, vector};
use crate::isa::Role;
use crate::isa::VReg;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::*;
use cranelift_codegen::ir::{
    BlockCall, Endianness, Inst, InstructionData, MemFlags, TrapCode, Type, Value, ValueList,
};
use generated_code::{Context, Product};
use smallvec::{SmallVec, smallvec};

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

    pub use super::super::memory::Address;
    pub use super::super::source::{InstOutput, PSrc, Regs, Src};
    pub use super::super::typed::*;
    pub use crate::analysis::provenance::Space;
    pub use crate::clif::intrinsics::Lowering;
    use crate::isa::generated::*;
    pub use crate::vcode::SymbolKind;
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

    /// Types by words.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Words {
        /// At most one.
        One,
        /// Two.
        Two,
        /// Four.
        Four,
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

    /// What a global value stands for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Symbol {
        /// A thread or launch value, by its special register.
        Special(SReg),
        /// The kernel's shared memory.
        Shared,
        /// A data object.
        Data,
    }

    /// What has an absolute address.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Object {
        /// Data.
        Data(GlobalValue),
        /// A function.
        Function(FuncRef),
    }

    /// How far the offset of an address is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reach {
        /// Instructions have room for it.
        Near,
        /// The base, one word, and the offset to be added.
        Far(Word, u32),
        /// The base, two words, and the offset to be added.
        Far64(Word64, u64),
    }

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

    include!(concat!(env!("OUT_DIR"), "/modes.rs"));
    include!(concat!(env!("OUT_DIR"), "/rules.rs"));
}

use generated_code::{BlockArray2, Factor, ValueArray2, ValueArray3, ValueSlice};

include!(concat!(env!("OUT_DIR"), "/constructors.rs"));

/// Applies the first rule that matches.
pub(super) fn lower_instruction(context: &mut Lower<'_>, inst: Inst) -> Option<InstOutput> {
    if context.defines_truth(inst) {
        let truth = generated_code::constructor_lower_truth(context, inst)?;
        return Some(smallvec![Output::Predicate(truth)]);
    }
    generated_code::constructor_lower(context, inst)
}

use crate::isa::generated::*;
use generated_code::*;

impl Context for Lower<'_> {
    emitting_methods!();
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
    fn words(&mut self, ty: Type) -> Words {
        match ty.bits() {
            _ if !Self::is_representable(ty) => Words::Other,
            0..=32 => Words::One,
            64 => Words::Two,
            128 => Words::Four,
            _ => Words::Other,
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

    // Sources.

    fn word(&mut self, value: Value) -> Word {
        Word::new(self.src(value))
    }
    fn word64(&mut self, value: Value) -> Word64 {
        Word64::new(self.src(value))
    }
    fn word128(&mut self, value: Value) -> Word128 {
        Word128::new(self.src(value))
    }
    fn any_src(&mut self, value: Value) -> Src {
        self.src(value)
    }
    fn first_word(&mut self, value: Value) -> Word {
        Word::new(self.src(value).low())
    }
    fn integer(&mut self, value: Value) -> ISrc {
        ISrc::new(self.int_src(value))
    }
    fn single_src(&mut self, value: Value) -> FSrc {
        FSrc::new(self.float_src(value))
    }
    fn double_src(&mut self, value: Value) -> DSrc {
        DSrc::new(self.float_src(value))
    }
    fn halves(&mut self, value: Value) -> HSrc {
        HSrc::new(self.half_src(value))
    }
    fn half_of(&mut self, value: Value) -> HalfSrc {
        HalfSrc::new(self.one_half(value))
    }
    fn imm(&mut self, value: u32) -> Word {
        Word::imm(value)
    }
    fn imm64(&mut self, value: u64) -> Word64 {
        Word64::new(Src::wide_imm(value.into(), 2))
    }
    fn zero(&mut self) -> Word {
        Word::imm(0)
    }
    fn zero128(&mut self) -> Word128 {
        Word128::new(Src::wide_imm(0, 4))
    }
    fn always(&mut self) -> PSrc {
        PSrc::TRUE
    }
    fn never(&mut self) -> PSrc {
        PSrc::FALSE
    }
    fn not(&mut self, p: PSrc) -> PSrc {
        p.negate()
    }
    fn low(&mut self, x: Word64) -> Word {
        Word::new(x.src().low())
    }
    fn high(&mut self, x: Word64) -> Word {
        Word::new(x.src().high())
    }
    fn low64(&mut self, x: Word128) -> Word64 {
        Word64::new(x.src().slice(0, 2))
    }
    fn high64(&mut self, x: Word128) -> Word64 {
        Word64::new(x.src().slice(2, 2))
    }
    fn plain_int(&mut self, x: Word) -> ISrc {
        x.into()
    }
    fn plain_int64(&mut self, x: Word64) -> ISrc64 {
        x.into()
    }
    fn plain_not(&mut self, x: Word) -> NotSrc {
        x.into()
    }
    fn plain_not64(&mut self, x: Word64) -> NotSrc64 {
        x.into()
    }
    fn plain_single(&mut self, x: Word) -> FSrc {
        x.into()
    }
    fn plain_double(&mut self, x: Word64) -> DSrc {
        x.into()
    }
    fn plain_halves(&mut self, x: Word) -> HSrc {
        x.into()
    }
    fn low_half(&mut self, x: Word) -> HalfSrc {
        x.into()
    }
    fn high_half(&mut self, x: Word) -> HalfSrc {
        HalfSrc::new(Src {
            halves: Halves::High,
            ..x.src()
        })
    }
    fn any_word(&mut self, x: Word) -> Src {
        x.src()
    }
    fn any_word64(&mut self, x: Word64) -> Src {
        x.src()
    }
    fn any_word128(&mut self, x: Word128) -> Src {
        x.src()
    }
    fn minus(&mut self, x: ISrc) -> ISrc {
        ISrc::new(x.src().negated())
    }
    fn minus64(&mut self, x: ISrc64) -> ISrc64 {
        ISrc64::new(x.src().negated())
    }
    fn complement(&mut self, x: NotSrc) -> NotSrc {
        NotSrc::new(x.src().complemented())
    }
    fn minus_single(&mut self, x: FSrc) -> FSrc {
        FSrc::new(x.src().negated())
    }
    fn abs_single(&mut self, x: FSrc) -> FSrc {
        FSrc::new(x.src().absolute())
    }
    fn minus_double(&mut self, x: DSrc) -> DSrc {
        DSrc::new(x.src().negated())
    }
    fn abs_double(&mut self, x: DSrc) -> DSrc {
        DSrc::new(x.src().absolute())
    }
    fn minus_halves(&mut self, x: HSrc) -> HSrc {
        HSrc::new(x.src().negated())
    }

    // Results.

    fn sum_of(&mut self, x: GprCarry) -> Gpr {
        x.regs
    }
    fn carry_of(&mut self, x: GprCarry) -> PSrc {
        x.predicate.source()
    }
    fn sum2_of(&mut self, x: Gpr2Carry) -> Gpr2 {
        x.regs
    }
    fn carry2_of(&mut self, x: Gpr2Carry) -> PSrc {
        x.predicate.source()
    }
    fn register_of(&mut self, x: GprPred) -> Gpr {
        x.regs
    }
    fn predicate_of(&mut self, x: GprPred) -> PSrc {
        x.predicate.source()
    }
    fn first_of(&mut self, x: PredPair) -> PSrc {
        x.first.source()
    }
    fn pred_src(&mut self, x: Pred) -> PSrc {
        x.source()
    }
    fn low_reg(&mut self, x: Gpr2) -> Gpr {
        x.low()
    }
    fn high_reg(&mut self, x: Gpr2) -> Gpr {
        x.high()
    }
    fn low_regs(&mut self, x: Gpr4) -> Gpr2 {
        x.regs().slice(0, 2).into()
    }
    fn high_regs(&mut self, x: Gpr4) -> Gpr2 {
        x.regs().slice(2, 2).into()
    }
    fn pair(&mut self, low: Gpr, high: Gpr) -> Gpr2 {
        low.regs().concat(high.regs()).into()
    }
    fn quad(&mut self, low: Gpr2, high: Gpr2) -> Gpr4 {
        low.regs().concat(high.regs()).into()
    }
    fn gpr_word(&mut self, x: Gpr) -> Word {
        x.source()
    }
    fn gpr2_word(&mut self, x: Gpr2) -> Word64 {
        x.source()
    }
    fn gpr4_word(&mut self, x: Gpr4) -> Word128 {
        x.source()
    }
    fn to_gpr(&mut self, x: Word) -> Gpr {
        self.gpr(x.src()).into()
    }
    fn to_gpr2(&mut self, x: Word64) -> Gpr2 {
        self.gpr(x.src()).into()
    }
    fn to_gpr4(&mut self, x: Word128) -> Gpr4 {
        self.gpr(x.src()).into()
    }
    fn logic3(&mut self, a: NotSrc, b: NotSrc, c: NotSrc, table: u8) -> Gpr {
        Gpr::new([Lower::logic3(self, a.src(), b.src(), c.src(), table)])
    }
    fn logic3_test(&mut self, a: NotSrc, b: NotSrc, c: NotSrc, table: u8) -> PSrc {
        Lower::logic3_test(self, a.src(), b.src(), c.src(), table)
    }
    fn gpr_regs(&mut self, x: Gpr) -> Regs {
        x.regs()
    }
    fn gpr2_regs(&mut self, x: Gpr2) -> Regs {
        x.regs()
    }
    fn output(&mut self, regs: Regs) -> InstOutput {
        smallvec![Output::Regs(regs)]
    }
    fn output_gpr(&mut self, x: Gpr) -> InstOutput {
        x.into()
    }
    fn output_gpr2(&mut self, x: Gpr2) -> InstOutput {
        x.into()
    }
    fn output_gpr4(&mut self, x: Gpr4) -> InstOutput {
        x.into()
    }
    fn output_unit(&mut self, _: Unit) -> InstOutput {
        InstOutput::new()
    }
    fn output_none(&mut self) -> InstOutput {
        InstOutput::new()
    }
    fn output_both(&mut self, mut first: InstOutput, second: InstOutput) -> InstOutput {
        first.extend(second);
        first
    }
    fn output_and_truth(&mut self, mut result: InstOutput, truth: PSrc) -> InstOutput {
        result.push(Output::Predicate(truth));
        result
    }

    // Extension and truths.

    fn zeros_above(&mut self, value: Value) -> Option<()> {
        self.has_zeros_above(value).then_some(())
    }
    fn bits_of(&mut self, ty: Type) -> u32 {
        ty.bits()
    }
    fn signed_lane(&mut self, byte: u32, bits: u32) -> u32 {
        vector::signed_lane(byte, bits)
    }
    fn lane_word(&mut self, vector: Value, lane: Uimm8) -> Word {
        let word = self.lane_bit(vector, lane) / 32;
        Word::new(Lower::src(self, vector).slice(word as u8, 1))
    }
    fn lane_byte(&mut self, vector: Value, lane: Uimm8) -> u32 {
        self.lane_bit(vector, lane) % 32 / 8
    }
    fn word_of_constant(&mut self, value: i64) -> u32 {
        value as u32
    }
    fn known_truth(&mut self, value: Value) -> Option<bool> {
        self.constant_of(value).map(|bits| bits != 0)
    }
    fn truth_predicate(&mut self, value: Value) -> PSrc {
        self.predicate_of(value)
    }
    fn logic_word(&mut self, value: Value) -> Option<(NotSrc, NotSrc, NotSrc, u8)> {
        self.tested_tree(value)
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
        smallvec![Output::Regs(Regs::new(&regs))]
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
    fn add_wide(&mut self, a: Src, b: Src) -> Regs {
        Lower::add_wide(self, a, b)
    }
    fn subtract_wide(&mut self, a: Src, b: Src) -> Regs {
        Lower::subtract_wide(self, a, b)
    }
    fn multiply_add(&mut self, a: Word, b: Word, c: ISrc) -> Gpr {
        Gpr::new([Lower::multiply_add(self, a.src(), b.src(), c.src())])
    }
    fn multiply_high(&mut self, a: Src, b: Src, itype: &IType) -> Regs {
        Regs::one(Lower::multiply_high(self, a, b, *itype))
    }
    fn multiply64(&mut self, a: Src, b: Src) -> Regs {
        Lower::multiply64(self, a, b)
    }
    fn min_max(&mut self, a: Src, b: Src, itype: &IType, minimum: bool) -> Regs {
        Regs::one(Lower::min_max(self, a, b, *itype, minimum))
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
        smallvec![Output::Regs(low), Output::Regs(high)]
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
    fn repeated(&mut self, ty: Type, x: Value) -> Gpr {
        let selector = if ty.bits() == 8 { 0 } else { 0x1010 };
        let x = Lower::src(self, x);
        Gpr::new([self.permute(x, Src::ZERO, Src::imm(selector))])
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
    fn amount(&mut self, ty: Type, n: Value) -> Word {
        Word::new(self.shift_amount(ty, n))
    }
    fn shift_left_wrap(&mut self, x: Word, n: Word) -> Gpr {
        Gpr::new([self.shift_left(x.src(), n.src(), true)])
    }
    fn shift_right_wrap(&mut self, x: Word, n: Word, signed: bool) -> Gpr {
        Gpr::new([Lower::shift_right(self, x.src(), n.src(), signed, true)])
    }
    fn shift_left64(&mut self, x: Value, n: Value) -> Regs {
        Lower::shift_left64(self, x, n)
    }
    fn shift_right64(&mut self, x: Value, n: Value, signed: bool) -> Regs {
        Lower::shift_right64(self, x, n, signed)
    }
    fn rotate_word(&mut self, x: Word, n: Word, left: bool) -> Gpr {
        let (x, n) = (x.src(), n.src());
        let direction = if left { SHFDir::L } else { SHFDir::R };
        let part = if left { LOHI::Hi } else { LOHI::Lo };
        let x = Src::regs(self.gpr(x));
        Gpr::new([self.funnel(direction, part, CWMode::W, SHFDType::U32, x, n, x)])
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
        smallvec![Output::Regs(self.gpr(regs))]
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

    fn atomic_place(&mut self, p: Value, ty: Type, flags: MemFlags) -> Option<Address> {
        let address = self.address_of_access(p, 0, ty.bytes(), flags);
        self.atomic_access(address, ty)
    }
    fn swap_place(&mut self, p: Value, ty: Type, flags: MemFlags) -> Option<Address> {
        let address = self.address(p, 0, ty.bytes(), flags);
        self.atomic_access(address, ty)
    }
    fn word_everywhere(&mut self, p: Value) -> Address {
        let address = self.address_with(p, 0, 4);
        match address.space {
            Space::Local => Address {
                base: Lower::src(self, p),
                offset: 0,
                space: Space::Generic,
                slot: false,
                ..address
            },
            _ => self.with_uniform(address),
        }
    }
    fn nothing(&mut self) -> Unit {
        Unit
    }
    fn can_move(&mut self, flags: MemFlags) -> Option<()> {
        self.func.dfg.mem_flags[flags].can_move().then_some(())
    }
    fn asked(&mut self, inst: Inst) -> bool {
        self.is_asked(self.func.dfg.first_result(inst))
    }

    // Intrinsics and symbols.

    fn intrinsic(&mut self, inst: Inst) -> Option<(Lowering, ValueList)> {
        let InstructionData::Call { args, .. } = self.func.dfg.insts[inst] else {
            return None;
        };
        let intrinsic = self.input.facts.intrinsics.of_call(self.func, inst)?;
        Some((intrinsic.lowering, args))
    }
    fn launch_size(&mut self, register: &SReg) -> Option<Word> {
        let base = super::intrinsic::launch_size(*register)?;
        Some(Word::new(Src { base, ..Src::ZERO }))
    }
    fn no_register(&mut self, value: Value) -> Option<()> {
        let src = self.below_copies(Lower::src(self, value));
        matches!(src.base, Base::Imm(_) | Base::Constant { .. }).then_some(())
    }
    fn lanes_come_apart(&mut self) -> bool {
        let facts = &self.input.facts;
        let apart = |block| facts.uniformity.divergent_block(block);
        facts.meetings.any_late() && self.current.is_some_and(apart)
    }
    fn trap_of_user(&mut self) -> TrapCode {
        TrapCode::unwrap_user(1)
    }
    fn symbol(&mut self, global_value: GlobalValue) -> Option<Symbol> {
        self.symbol_kind(global_value)
    }
    fn shared_window(&mut self) -> u64 {
        crate::abi::SHARED_WINDOW
    }
    fn filled_by_linking(&mut self, object: &Object, kind: &SymbolKind) -> Unit {
        self.fill_by_linking(*object, *kind);
        Unit
    }

    // Memory and calls.

    fn place(&mut self, p: Value, offset: Offset32, ty: Type, flags: MemFlags) -> Address {
        let address = self.address_of_access(p, offset.into(), ty.bytes(), flags);
        // What may fault is not left out, whether or not somebody reads it. An access among the stack slots cannot.
        let end = i64::from(self.frame.slot_bytes) - i64::from(ty.bytes());
        let in_slots = address.slot && (0..=end).contains(&address.offset);
        if !self.func.dfg.mem_flags[flags].notrap() && !in_slots {
            self.builder.keep_loads();
        }
        address
    }
    fn address_reach(&mut self, address: Address) -> Reach {
        let Address { base, offset, .. } = address;
        match base.words {
            _ if address.is_near() => Reach::Near,
            1 => Reach::Far(Word::new(base), offset as u32),
            _ => Reach::Far64(Word64::new(base), offset as u64),
        }
    }
    fn based_on(&mut self, address: Address, base: Gpr) -> Address {
        Address {
            base: base.source().src(),
            offset: 0,
            ..address
        }
    }
    fn based_on64(&mut self, address: Address, base: Gpr2) -> Address {
        Address {
            base: base.source().src(),
            offset: 0,
            ..address
        }
    }
    fn address_space(&mut self, address: Address) -> Space {
        match address.space {
            Space::Constant => Space::Generic,
            space => space,
        }
    }
    fn address_alignment(&mut self, address: Address) -> u32 {
        address.align
    }
    fn address_base(&mut self, address: Address) -> Word {
        Word::new(address.base.low())
    }
    fn address_base64(&mut self, address: Address) -> Word64 {
        Word64::new(address.base)
    }
    fn address_offset(&mut self, address: Address) -> i32 {
        if address.slot {
            0
        } else {
            address.offset as i32
        }
    }
    fn address_uniform(&mut self, address: Address) -> USrc64 {
        USrc64::new(address.uniform.map_or(Src::wide_imm(0, 2), Src::regs))
    }
    fn address_order(&mut self, address: Address) -> AccessOrder {
        if address.strong {
            AccessOrder::Strong
        } else {
            AccessOrder::Weak
        }
    }
    fn no_uniform(&mut self) -> USrc {
        USrc::new(Src::ZERO)
    }
    fn among_slots(&mut self, address: Address) -> Unit {
        self.attach_slot(address);
        Unit
    }
    fn load_bytes(&mut self, address: Address, ty: Type) -> Regs {
        Lower::load_bytes(self, address, ty.bytes())
    }
    fn store_bytes(&mut self, address: Address, ty: Type, data: Src) -> Unit {
        Lower::store_bytes(self, address, ty.bytes(), data);
        Unit
    }
    fn byte_order(&mut self, flags: MemFlags) -> ByteOrder {
        match self.func.dfg.mem_flags[flags].endianness(Endianness::Little) {
            Endianness::Little => ByteOrder::Little,
            Endianness::Big => ByteOrder::Big,
        }
    }
    fn word_count(&mut self, ty: Type) -> u32 {
        words_of_bits(ty.bits()) as u32
    }
    fn lane_size(&mut self, ty: Type) -> u32 {
        ty.lane_bits()
    }
    fn in_registers(&mut self, ty: Type) -> Option<()> {
        (ty.bits() <= 128 && !ty.is_dynamic_vector()).then_some(())
    }
    fn local_window(&mut self) -> u32 {
        (crate::abi::LOCAL_WINDOW >> 32) as u32
    }
    fn filled_by_frame(&mut self, part: &FramePart) -> Unit {
        self.fill_by_frame(*part);
        Unit
    }
    fn stack_pointer(&mut self) -> Gpr {
        Gpr::new([Lower::stack_pointer(self)])
    }
    fn one_register(&mut self, regs: Regs) -> Gpr {
        regs.into()
    }
    fn two_registers(&mut self, regs: Regs) -> Gpr2 {
        regs.into()
    }
    fn four_registers(&mut self, regs: Regs) -> Gpr4 {
        regs.into()
    }
    fn gpr4_regs(&mut self, x: Gpr4) -> Regs {
        x.regs()
    }
    fn regs_any(&mut self, x: Regs) -> Src {
        Src::regs(x)
    }
    fn call_of(&mut self, inst: Inst) -> Option<InstOutput> {
        self.call(inst)
    }
    fn trap_if(&mut self, p: PSrc, code: &TrapCode) -> InstOutput {
        self.guarded_trap(p, code.as_raw().get());
        SmallVec::new()
    }
}
