//! The context of the ISLE rules: extractors over CLIF, operands, and the Rust sequences that rules call.

use super::source::{Base, Halves, InstOutput, Output, PSrc, Regs, Source, Src, words_of_bits};
use super::{Lower, vector};
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

    pub use super::super::logic::Tree;
    pub use super::super::memory::Address;
    pub use super::super::source::{InstOutput, PSrc, Regs, Src};
    pub use super::super::typed::*;
    pub use super::super::vector::{Insertions, Picks};
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
        /// Integers of two.
        TwoWords,
        /// Integers of four.
        FourWords,
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

    /// Types by the bits of a lane.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Lane {
        /// 8.
        Bits8,
        /// 16.
        Bits16,
        /// 32.
        Bits32,
        /// 64.
        Bits64,
        /// Another number.
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

    /// The product of values of at most a word that are extended to 64 bits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Product {
        /// Of two values.
        Values {
            /// How they are extended.
            itype: IType,
            /// First factor, before it is extended.
            a: Value,
            /// Second factor.
            b: Value,
        },
        /// Of a value and a constant.
        Scaled {
            /// How the value is extended.
            itype: IType,
            /// The value, before it is extended.
            a: Value,
            /// The constant, extended likewise.
            by: u32,
        },
    }

    include!(concat!(env!("OUT_DIR"), "/modes.rs"));
    include!(concat!(env!("OUT_DIR"), "/rules.rs"));
}

use generated_code::{BlockArray2, ValueArray2, ValueArray3, ValueSlice};

include!(concat!(env!("OUT_DIR"), "/constructors.rs"));

/// Applies the first rule that matches.
pub(super) fn lower_instruction(context: &mut Lower<'_>, inst: Inst) -> Option<InstOutput> {
    if context.defines_truth(inst) {
        let truth = generated_code::constructor_lower_truth(context, inst)?;
        return Some(smallvec![Output::Predicate(truth)]);
    }
    if let [value] = *context.func.dfg.inst_results(inst)
        && context.plan.is_uniform(value)
    {
        return generated_code::constructor_lower_uniform(context, inst);
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
            I64 => Width::TwoWords,
            I128 => Width::FourWords,
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
    fn lane(&mut self, ty: Type) -> Lane {
        match ty.lane_bits() {
            8 => Lane::Bits8,
            16 => Lane::Bits16,
            32 => Lane::Bits32,
            64 => Lane::Bits64,
            _ => Lane::Other,
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
    fn uniform_word(&mut self, value: Value) -> USrc {
        USrc::new(self.src(value))
    }
    fn uniform_word64(&mut self, value: Value) -> USrc64 {
        USrc64::new(self.src(value))
    }
    fn uniform_amount(&mut self, value: Value) -> USrc {
        USrc::new(self.src(value).low())
    }
    fn uniform_imm(&mut self, value: u32) -> USrc {
        Word::imm(value).into()
    }
    fn uniform_low(&mut self, x: USrc64) -> USrc {
        USrc::new(x.src().low())
    }
    fn uniform_high(&mut self, x: USrc64) -> USrc {
        USrc::new(x.src().high())
    }
    fn uniform_int(&mut self, x: USrc) -> UISrc {
        x.into()
    }
    fn uniform_int64(&mut self, x: USrc64) -> UISrc64 {
        x.into()
    }
    fn minus_uniform(&mut self, x: UISrc) -> UISrc {
        UISrc::new(x.src().negated())
    }
    fn minus_uniform64(&mut self, x: UISrc64) -> UISrc64 {
        UISrc64::new(x.src().negated())
    }
    fn uniform_pair(&mut self, low: Ugpr, high: Ugpr) -> Ugpr2 {
        low.regs().concat(high.regs()).into()
    }
    fn uniform_zero64(&mut self) -> USrc64 {
        USrc64::new(Src::wide_imm(0, 2))
    }
    fn output_ugpr(&mut self, x: Ugpr) -> InstOutput {
        x.into()
    }
    fn output_ugpr2(&mut self, x: Ugpr2) -> InstOutput {
        x.into()
    }
    fn output_uniform_word(&mut self, x: USrc) -> InstOutput {
        smallvec![Output::Regs(self.uniform_words(x.src()))]
    }
    fn block_register(&mut self, inst: Inst) -> Option<SReg> {
        self.block_register_of(inst)
    }
    fn uniform_comparison(&mut self, x: Value, y: Value) -> Option<bool> {
        self.compares_uniform(x, y).then_some(true)
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

    fn immediate(&mut self, x: Word) -> Option<u32> {
        self.below_copies(x.src()).as_imm().map(|n| n as u32)
    }
    fn immediate64(&mut self, x: Word64) -> Option<u64> {
        self.below_copies(x.src()).as_imm().map(|n| n as u64)
    }
    fn immediate128(&mut self, x: Word128) -> Option<u128> {
        self.below_copies(x.src()).as_imm()
    }
    fn zero_above(&mut self, x: Word64) -> Option<Word> {
        let high = self.below_copies(x.src().high());
        (high.as_imm() == Some(0)).then(|| Word::new(x.src().low()))
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
    fn sum4_of(&mut self, x: Gpr4Carry) -> Gpr4 {
        x.regs
    }
    fn carry4_of(&mut self, x: Gpr4Carry) -> PSrc {
        x.predicate.source()
    }
    fn pair_sums(&mut self, low: GprCarry, high: GprCarry) -> Gpr2Carry {
        Gpr2Carry {
            regs: self.pair(low.regs, high.regs),
            predicate: high.predicate,
        }
    }
    fn quad_sums(&mut self, low: Gpr2Carry, high: Gpr2Carry) -> Gpr4Carry {
        Gpr4Carry {
            regs: self.quad(low.regs, high.regs),
            predicate: high.predicate,
        }
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
        self.logic_word(a.src(), b.src(), c.src(), table)
    }
    fn logic3_test(&mut self, a: NotSrc, b: NotSrc, c: NotSrc, table: u8) -> PSrc {
        self.logic_predicate(a.src(), b.src(), c.src(), table)
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
            regs.push(Lower::immediate(self, (bits >> (32 * word)) as u32));
        }
        smallvec![Output::Regs(Regs::new(&regs))]
    }
    fn extended_product(&mut self, value: Value) -> Option<Product> {
        self.product_of(value)
    }
    fn extended_product_of(&mut self, inst: Inst) -> Option<Product> {
        self.product_of(self.func.dfg.first_result(inst))
    }
    fn wide_zero(&mut self, ty: Type) -> Src {
        Src::wide_imm(0, words_of_bits(ty.bits()) as u8)
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
    fn absolute(&mut self, value: u32) -> u32 {
        value.cast_signed().unsigned_abs()
    }
    fn reciprocal_bits(&mut self, value: u32) -> u32 {
        (1.0 / value as f32).to_bits()
    }
    fn nth_word(&mut self, x: Value, word: u32) -> Word {
        Word::new(self.src(x).slice(word as u8, 1))
    }
    fn nth_pair(&mut self, x: Value, word: u32) -> Word64 {
        Word64::new(self.src(x).slice(word as u8, 2))
    }
    fn lane_index(&mut self, lane: Uimm8) -> u32 {
        lane.into()
    }
    fn insertions(&mut self, inst: Inst) -> Insertions {
        self.insertions_of(self.func.dfg.first_result(inst))
    }
    fn inserted(&mut self, lanes: Insertions, lane: u32) -> Option<Value> {
        lanes.inserted(lane)
    }
    fn word_below(&mut self, lanes: Insertions, word: u32) -> Word {
        Word::new(self.words_below(lanes, word, 1))
    }
    fn pair_below(&mut self, lanes: Insertions, word: u32) -> Word64 {
        Word64::new(self.words_below(lanes, word, 2))
    }
    fn limits_of_lanes(&mut self, lanes: Insertions, word: u32) -> Option<I2IPDType> {
        self.limits_of_word(lanes, word)
    }
    fn limited_lane(&mut self, lanes: Insertions, lane: u32) -> Option<Value> {
        self.limited(lanes, lane).map(|(value, _)| value)
    }
    fn picks(&mut self, a: Value, b: Value, mask: Immediate, word: u32) -> Picks {
        self.picks_of_word(a, b, mask, word as usize)
    }

    // Logic and shifts.

    fn tree_of(&mut self, inst: Inst) -> Tree {
        Lower::tree_of(self, inst)
    }
    fn tree32(&mut self, tree: Tree) -> (Word, Word, Word, u8) {
        let [a, b, c] = self.leaves(tree, 1).map(Word::new);
        (a, b, c, tree.table)
    }
    fn tree64(&mut self, tree: Tree) -> (Word64, Word64, Word64, u8) {
        let [a, b, c] = self.leaves(tree, 2).map(Word64::new);
        (a, b, c, tree.table)
    }
    fn tree128(&mut self, tree: Tree) -> (Word128, Word128, Word128, u8) {
        let [a, b, c] = self.leaves(tree, 4).map(Word128::new);
        (a, b, c, tree.table)
    }

    fn constant_amount(&mut self, ty: Type, n: Value) -> Option<u32> {
        self.constant_of(n).map(|c| c as u32 & (ty.lane_bits() - 1))
    }
    fn amount64(&mut self, n: Value) -> Option<(u32, u32)> {
        self.constant_of(n)
            .map(|c| (c as u32 / 32 % 2, c as u32 % 32))
    }
    fn amount128(&mut self, n: Value) -> Option<(u32, u32)> {
        self.constant_of(n)
            .map(|c| (c as u32 / 32 % 4, c as u32 % 32))
    }
    fn in_register(&mut self, x: Word) -> bool {
        match self.below_copies(x.src()).base {
            Base::Imm(value) => value == 0,
            Base::Constant { .. } | Base::Uniform { .. } => false,
            Base::Value { .. } | Base::Regs(_) => true,
        }
    }
    fn same_word(&mut self, a: Word, b: Word) -> bool {
        a == b
    }

    // Floats.

    fn low_lane(&mut self, vector: Value) -> HalfSrc {
        let [low, _] = self.both_halves(vector);
        HalfSrc::new(low)
    }
    fn high_lane(&mut self, vector: Value) -> HalfSrc {
        let [_, high] = self.both_halves(vector);
        HalfSrc::new(high)
    }

    // Conversions.

    fn big_endian(&mut self, flags: MemFlags) -> bool {
        self.func.dfg.mem_flags[flags].endianness(Endianness::Little) == Endianness::Big
    }
    fn lane_bits(&mut self, ty: Type) -> u32 {
        ty.lane_bits()
    }
    fn single_limits(&mut self, ty: Type, signed: bool) -> Option<SingleLimits> {
        super::convert::single_limits(ty, signed)
    }
    fn double_limits(&mut self, ty: Type, signed: bool) -> Option<DoubleLimits> {
        super::convert::double_limits(ty, signed)
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
