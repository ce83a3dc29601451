//! Vectors lane by lane.
//!
//! A result is put together from its lanes: `scalar_to_vector` of lane 0, then `insertlane`s, which lowering turns into
//! a few byte permutations. What lowering does on whole registers (bitwise operations, sums, `splat`, `shuffle`, packed
//! halves, …) stays.

use super::{bytes, known};
use crate::constants::integer;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::types::{F16, F16X2, F128, I8, I16, I32};
use cranelift_codegen::ir::{
    Endianness, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value,
};
use smallvec::SmallVec;

/// Widest vectors that are looked at.
const MAX_BITS: u32 = 128;

/// The value of an instruction on vectors, one lane at a time; none if it stays as it is.
pub(super) fn expand(pos: &mut FuncCursor<'_>, inst: Inst) -> Option<Value> {
    let opcode = pos.func.dfg.insts[inst].opcode();
    let result = pos.func.dfg.inst_results(inst).first().copied()?;
    let ty = pos.func.dfg.value_type(result);
    let args: SmallVec<[Value; 4]> = pos.func.dfg.inst_args(inst).into();
    let vector = |ty: Type| ty.is_vector() && ty.bits() <= MAX_BITS;
    let types: SmallVec<[Type; 4]> = args.iter().map(|&a| pos.func.dfg.value_type(a)).collect();
    let scalar_blend = opcode == Opcode::Blendv && ty.bits() <= MAX_BITS && ty != F128;
    if !vector(ty) && !types.iter().any(|&t| vector(t)) && !scalar_blend {
        return None;
    }
    if types.iter().any(|&t| t.bits() > MAX_BITS) || ty.bits() > MAX_BITS {
        return None;
    }
    if let Some(value) = load_and_widen(pos, inst, opcode, ty) {
        return Some(value);
    }
    if bytes::has_lanes_in_words(ty)
        && types.first() == Some(&ty)
        && let Some(value) = bytes::expand(pos, inst, ty)
    {
        return Some(value);
    }
    let sign_mask =
        opcode == Opcode::Sshr && bytes::has_lanes_in_words(ty) && is_sign_mask(pos, args[1], ty);
    let mut expander = Expander { pos, ty };
    match opcode {
        Opcode::VallTrue => Some(expander.all_true(args[0])),
        Opcode::Snarrow | Opcode::Unarrow | Opcode::Uunarrow => {
            Some(expander.narrow(opcode, args[0], args[1]))
        }
        Opcode::SwidenLow => Some(expander.widen(args[0], true, false)),
        Opcode::SwidenHigh => Some(expander.widen(args[0], true, true)),
        Opcode::UwidenLow => Some(expander.widen(args[0], false, false)),
        Opcode::UwidenHigh => Some(expander.widen(args[0], false, true)),
        Opcode::IaddPairwise => Some(expander.add_pairs(args[0], args[1])),
        Opcode::X86Pmaddubsw => Some(expander.multiply_add_pairs(args[0], args[1])),
        Opcode::Fvdemote => Some(expander.demote(args[0])),
        Opcode::FvpromoteLow => Some(expander.promote(args[0])),
        Opcode::Swizzle | Opcode::X86Pshufb => {
            Some(expander.swizzle(args[0], args[1], opcode == Opcode::X86Pshufb))
        }
        // Signs as masks: lowering does it by a permutation.
        Opcode::Sshr if sign_mask => None,
        _ if has_packed_halves(opcode)
            && types[0].lane_type() == F16
            && types[0].lane_count() > 2 =>
        {
            expander.by_pairs(inst, &args)
        }
        _ if is_lane_wise(opcode, types.first().copied().unwrap_or(ty))
            && types[0].lane_count() == ty.lane_count() =>
        {
            expander.lane_wise(inst, &args)
        }
        _ => None,
    }
}

/// Whether a shift of lanes leaves their signs alone.
fn is_sign_mask(pos: &FuncCursor<'_>, amount: Value, ty: Type) -> bool {
    let highest = ty.lane_bits() - 1;
    integer(pos.func, amount).is_some_and(|amount| amount as u32 & highest == highest)
}

/// Whether lowering has the operation on two halves at once.
fn has_packed_halves(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::Fadd
            | Opcode::Fsub
            | Opcode::Fmul
            | Opcode::Fma
            | Opcode::Fmin
            | Opcode::Fmax
            | Opcode::Fdiv
            | Opcode::Sqrt
            | Opcode::Ceil
            | Opcode::Floor
            | Opcode::Trunc
            | Opcode::Nearest
            | Opcode::Fcmp
    )
}

/// Whether each lane of the result is computed from the same lane of the operands, the first of which has type `ty`,
/// and lowering has no rule for the whole vector.
fn is_lane_wise(opcode: Opcode, ty: Type) -> bool {
    match opcode {
        _ if has_packed_halves(opcode) => ty != F16X2,
        Opcode::Ishl | Opcode::Ushr => ty.lane_bits() > 32,
        Opcode::Sshr => ty.lane_bits() != 32,
        Opcode::Iabs
        | Opcode::Imul
        | Opcode::Umulhi
        | Opcode::Smulhi
        | Opcode::Udiv
        | Opcode::Sdiv
        | Opcode::Urem
        | Opcode::Srem
        | Opcode::Smin
        | Opcode::Smax
        | Opcode::Umin
        | Opcode::Umax
        | Opcode::AvgRound
        | Opcode::UaddSat
        | Opcode::SaddSat
        | Opcode::UsubSat
        | Opcode::SsubSat
        | Opcode::SqmulRoundSat
        | Opcode::X86Pmulhrsw
        | Opcode::Rotl
        | Opcode::Rotr
        | Opcode::Popcnt
        | Opcode::Clz
        | Opcode::Ctz
        | Opcode::Cls
        | Opcode::Bitrev
        | Opcode::Icmp
        | Opcode::FcvtFromSint
        | Opcode::FcvtFromUint
        | Opcode::FcvtToSint
        | Opcode::FcvtToUint
        | Opcode::FcvtToSintSat
        | Opcode::FcvtToUintSat
        | Opcode::Blendv => true,
        _ => false,
    }
}

/// `uload8x8` and its like: the narrow vector, then its lanes extended.
fn load_and_widen(pos: &mut FuncCursor<'_>, inst: Inst, opcode: Opcode, ty: Type) -> Option<Value> {
    let signed = match opcode {
        Opcode::Sload8x8 | Opcode::Sload16x4 | Opcode::Sload32x2 => true,
        Opcode::Uload8x8 | Opcode::Uload16x4 | Opcode::Uload32x2 => false,
        _ => return None,
    };
    let InstructionData::Load {
        arg, flags, offset, ..
    } = pos.func.dfg.insts[inst]
    else {
        return None;
    };
    let narrow = ty.split_lanes()?;
    let narrow = narrow.lane_type().by(ty.lane_count())?;
    let flags: MemFlagsData = pos.func.dfg.mem_flags[flags];
    let offset: Offset32 = offset;
    let loaded = pos.ins().load(narrow, flags, arg, offset);
    let mut expander = Expander { pos, ty };
    let lanes = (0..ty.lane_count()).map(|i| i as u8).collect::<Vec<_>>();
    let lanes = lanes
        .into_iter()
        .map(|i| {
            let lane = expander.lane(loaded, i);
            expander.extend(lane, ty.lane_type(), signed)
        })
        .collect::<Vec<_>>();
    Some(expander.build(&lanes))
}

/// Expands one instruction whose (first) result has type `ty`.
struct Expander<'a, 'f> {
    pos: &'a mut FuncCursor<'f>,
    ty: Type,
}

impl Expander<'_, '_> {
    fn type_of(&self, value: Value) -> Type {
        self.pos.func.dfg.value_type(value)
    }

    fn lane(&mut self, vector: Value, index: u8) -> Value {
        match known::lane(self.pos.func, vector, index) {
            Some(lane) => lane,
            None => self.pos.ins().extractlane(vector, index),
        }
    }

    fn constant(&mut self, ty: Type, value: i64) -> Value {
        let bits = ty.bits();
        let value = if bits == 64 {
            value
        } else {
            value & ((1 << bits) - 1)
        };
        self.pos.ins().iconst(ty, value)
    }

    /// The vector of these lanes; a single lane is a scalar.
    fn build(&mut self, lanes: &[Value]) -> Value {
        if let ([lane], false) = (lanes, self.ty.is_vector()) {
            return *lane;
        }
        let mut vector = self.pos.ins().scalar_to_vector(self.ty, lanes[0]);
        for (i, &lane) in lanes.iter().enumerate().skip(1) {
            vector = self.pos.ins().insertlane(vector, lane, i as u8);
        }
        vector
    }

    /// The bits of a scalar.
    fn as_integer(&mut self, value: Value) -> Value {
        let ty = self.type_of(value);
        if ty.is_int() {
            return value;
        }
        let flags = MemFlagsData::new();
        self.pos.ins().bitcast(ty.as_int(), flags, value)
    }

    fn extend(&mut self, value: Value, to: Type, signed: bool) -> Value {
        if self.type_of(value) == to {
            value
        } else if signed {
            self.pos.ins().sextend(to, value)
        } else {
            self.pos.ins().uextend(to, value)
        }
    }

    fn lane_wise(&mut self, inst: Inst, args: &[Value]) -> Option<Value> {
        let data = self.pos.func.dfg.insts[inst];
        let mut lanes = Vec::new();
        for i in 0..self.ty.lane_count() as u8 {
            let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
            for &arg in args {
                let lane = if self.type_of(arg).is_vector() {
                    self.lane(arg, i)
                } else {
                    arg
                };
                operands.push(lane);
            }
            lanes.push(self.scalar(&data, &operands)?);
        }
        Some(self.build(&lanes))
    }

    /// An operation on halves, two of them at a time: in the words of the vector.
    fn by_pairs(&mut self, inst: Inst, args: &[Value]) -> Option<Value> {
        let data = self.pos.func.dfg.insts[inst];
        let opcode = data.opcode();
        let little = MemFlagsData::new().with_endianness(Endianness::Little);
        let words = I32.by(self.ty.bits() / 32)?;
        let count = words.lane_count() as u8;
        let args: SmallVec<[SmallVec<[Value; 4]>; 4]> =
            args.iter().map(|&arg| self.pairs(arg, words)).collect();
        let mut results: SmallVec<[Value; 4]> = SmallVec::new();
        for word in 0..usize::from(count) {
            let pair: SmallVec<[Value; 4]> = args.iter().map(|pairs| pairs[word]).collect();
            let ins = self.pos.ins();
            let (done, _) = match data {
                InstructionData::FloatCompare { cond, .. } => {
                    ins.FloatCompare(opcode, F16X2, cond, pair[0], pair[1])
                }
                InstructionData::Unary { .. } => ins.Unary(opcode, F16X2, pair[0]),
                InstructionData::Binary { .. } => ins.Binary(opcode, F16X2, pair[0], pair[1]),
                InstructionData::Ternary { .. } => {
                    ins.Ternary(opcode, F16X2, pair[0], pair[1], pair[2])
                }
                _ => return None,
            };
            let done = self.pos.func.dfg.first_result(done);
            results.push(self.pos.ins().bitcast(I32, little, done));
        }
        let whole = Expander {
            pos: self.pos,
            ty: words,
        }
        .build(&results);
        Some(self.pos.ins().bitcast(self.ty, little, whole))
    }

    /// The words of a vector of halves, as pairs of them.
    fn pairs(&mut self, vector: Value, words: Type) -> SmallVec<[Value; 4]> {
        let count = words.lane_count() as u8;
        if let Some(half) = known::repeated(self.pos.func, vector) {
            let pair = self.pos.ins().splat(F16X2, half);
            return SmallVec::from_elem(pair, count.into());
        }
        let little = MemFlagsData::new().with_endianness(Endianness::Little);
        let whole = self.pos.ins().bitcast(words, little, vector);
        let pair = |word| {
            let word = self.lane(whole, word);
            match known::bits_of(self.pos.func, word, F16X2) {
                Some(pair) => pair,
                None => self.pos.ins().bitcast(F16X2, little, word),
            }
        };
        (0..count).map(pair).collect()
    }

    /// The operation on one lane.
    fn scalar(&mut self, data: &InstructionData, args: &[Value]) -> Option<Value> {
        let lane = self.ty.lane_type();
        let opcode = data.opcode();
        if let Some(value) = self.vector_only(opcode, args) {
            return Some(value);
        }
        let ins = self.pos.ins();
        let (inst, _) = match *data {
            InstructionData::IntCompare { cond, .. } => {
                let holds = ins.icmp(cond, args[0], args[1]);
                return Some(self.pos.ins().bmask(lane, holds));
            }
            InstructionData::FloatCompare { cond, .. } => {
                let holds = ins.fcmp(cond, args[0], args[1]);
                return Some(self.pos.ins().bmask(lane, holds));
            }
            InstructionData::Unary { .. } => ins.Unary(opcode, lane, args[0]),
            InstructionData::Binary { .. } => ins.Binary(opcode, lane, args[0], args[1]),
            InstructionData::Ternary { .. } => ins.Ternary(opcode, lane, args[0], args[1], args[2]),
            _ => return None,
        };
        Some(self.pos.func.dfg.first_result(inst))
    }

    /// Operations that CLIF has on vectors only.
    fn vector_only(&mut self, opcode: Opcode, args: &[Value]) -> Option<Value> {
        let lane = self.ty.lane_type();
        let bits = i64::from(lane.bits());
        match opcode {
            Opcode::UaddSat | Opcode::UsubSat | Opcode::SaddSat | Opcode::SsubSat if bits < 32 => {
                Some(self.saturated(opcode, args[0], args[1]))
            }
            Opcode::UaddSat => {
                let (sum, over) = self.pos.ins().uadd_overflow(args[0], args[1]);
                let limit = self.constant(lane, -1);
                Some(self.pos.ins().select(over, limit, sum))
            }
            Opcode::UsubSat => {
                let (difference, over) = self.pos.ins().usub_overflow(args[0], args[1]);
                let limit = self.constant(lane, 0);
                Some(self.pos.ins().select(over, limit, difference))
            }
            Opcode::SaddSat | Opcode::SsubSat => {
                let (result, over) = if opcode == Opcode::SaddSat {
                    self.pos.ins().sadd_overflow(args[0], args[1])
                } else {
                    self.pos.ins().ssub_overflow(args[0], args[1])
                };
                // The limit on the side of the first operand.
                let amount = self.constant(I32, bits - 1);
                let sign = self.pos.ins().sshr(args[0], amount);
                let greatest = self.constant(lane, i64::MAX >> (64 - bits));
                let limit = self.pos.ins().bxor(sign, greatest);
                Some(self.pos.ins().select(over, limit, result))
            }
            // (a + b + 1) / 2 without the carry.
            Opcode::AvgRound => {
                let either = self.pos.ins().bor(args[0], args[1]);
                let different = self.pos.ins().bxor(args[0], args[1]);
                let one = self.constant(I32, 1);
                let half = self.pos.ins().ushr(different, one);
                Some(self.pos.ins().isub(either, half))
            }
            Opcode::SqmulRoundSat | Opcode::X86Pmulhrsw => {
                let wide = lane.double_width()?;
                let a = self.extend(args[0], wide, true);
                let b = self.extend(args[1], wide, true);
                let product = self.pos.ins().imul(a, b);
                let half = self.constant(wide, 1 << (bits - 2));
                let rounded = self.pos.ins().iadd(product, half);
                let amount = self.constant(I32, bits - 1);
                let mut result = self.pos.ins().sshr(rounded, amount);
                if opcode == Opcode::SqmulRoundSat {
                    let greatest = self.constant(wide, i64::MAX >> (64 - bits));
                    result = self.pos.ins().smin(result, greatest);
                }
                Some(self.pos.ins().ireduce(lane, result))
            }
            Opcode::Blendv => {
                let control = self.as_integer(args[0]);
                let amount = self.constant(I32, bits - 1);
                let sign = self.pos.ins().ushr(control, amount);
                Some(self.pos.ins().select(sign, args[1], args[2]))
            }
            _ => None,
        }
    }

    /// A saturating sum or difference of narrow lanes: exact in 32 bits, then limited.
    fn saturated(&mut self, opcode: Opcode, x: Value, y: Value) -> Value {
        let lane = self.ty.lane_type();
        let bits = lane.bits();
        let signed = matches!(opcode, Opcode::SaddSat | Opcode::SsubSat);
        let (x, y) = (self.extend(x, I32, signed), self.extend(y, I32, signed));
        let exact = match opcode {
            Opcode::UaddSat | Opcode::SaddSat => self.pos.ins().iadd(x, y),
            _ => self.pos.ins().isub(x, y),
        };
        let (least, greatest) = if signed {
            (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits))
        } else {
            (0, (1 << bits) - 1)
        };
        let greatest = self.constant(I32, greatest);
        let least = self.constant(I32, least);
        let limited = self.pos.ins().smin(exact, greatest);
        let limited = self.pos.ins().smax(limited, least);
        self.pos.ins().ireduce(lane, limited)
    }

    fn all_true(&mut self, vector: Value) -> Value {
        let ty = self.type_of(vector);
        let mut all: Option<Value> = None;
        for i in 0..ty.lane_count() as u8 {
            let lane = self.lane(vector, i);
            let lane = self.as_integer(lane);
            let zero = self.constant(ty.lane_type().as_int(), 0);
            let set = self.pos.ins().icmp(IntCC::NotEqual, lane, zero);
            all = Some(match all {
                Some(all) => self.pos.ins().band(all, set),
                None => set,
            });
        }
        all.expect("a vector has lanes")
    }

    fn narrow(&mut self, opcode: Opcode, x: Value, y: Value) -> Value {
        let (wide, lane) = (self.type_of(x).lane_type(), self.ty.lane_type());
        let bits = lane.bits();
        let mut lanes = Vec::new();
        for vector in [x, y] {
            for i in 0..self.type_of(x).lane_count() as u8 {
                let value = self.lane(vector, i);
                let limited = match opcode {
                    Opcode::Snarrow => {
                        let greatest = self.constant(wide, i64::MAX >> (64 - bits));
                        let least = self.constant(wide, i64::MIN >> (64 - bits));
                        let value = self.pos.ins().smin(value, greatest);
                        self.pos.ins().smax(value, least)
                    }
                    Opcode::Unarrow => {
                        let greatest = self.constant(wide, (u64::MAX >> (64 - bits)) as i64);
                        let least = self.constant(wide, 0);
                        let value = self.pos.ins().smin(value, greatest);
                        self.pos.ins().smax(value, least)
                    }
                    _ => {
                        let greatest = self.constant(wide, (u64::MAX >> (64 - bits)) as i64);
                        self.pos.ins().umin(value, greatest)
                    }
                };
                lanes.push(self.pos.ins().ireduce(lane, limited));
            }
        }
        self.build(&lanes)
    }

    fn widen(&mut self, x: Value, signed: bool, high: bool) -> Value {
        let count = self.ty.lane_count() as u8;
        let first = if high { count } else { 0 };
        let mut lanes = Vec::new();
        for i in 0..count {
            let lane = self.lane(x, first + i);
            lanes.push(self.extend(lane, self.ty.lane_type(), signed));
        }
        self.build(&lanes)
    }

    fn add_pairs(&mut self, x: Value, y: Value) -> Value {
        let mut lanes = Vec::new();
        for vector in [x, y] {
            for i in (0..self.ty.lane_count() as u8).step_by(2) {
                let (a, b) = (self.lane(vector, i), self.lane(vector, i + 1));
                lanes.push(self.pos.ins().iadd(a, b));
            }
        }
        self.build(&lanes)
    }

    /// Unsigned bytes times signed bytes, neighbours added with saturation.
    fn multiply_add_pairs(&mut self, x: Value, y: Value) -> Value {
        let mut lanes = Vec::new();
        for i in (0..2 * self.ty.lane_count() as u8).step_by(2) {
            let mut sum: Option<Value> = None;
            for j in [i, i + 1] {
                let (a, b) = (self.lane(x, j), self.lane(y, j));
                let (a, b) = (self.extend(a, I32, false), self.extend(b, I32, true));
                let product = self.pos.ins().imul(a, b);
                sum = Some(match sum {
                    Some(sum) => self.pos.ins().iadd(sum, product),
                    None => product,
                });
            }
            let sum = sum.expect("two products");
            let greatest = self.constant(I32, i64::from(i16::MAX));
            let least = self.constant(I32, i64::from(i16::MIN));
            let sum = self.pos.ins().smin(sum, greatest);
            let sum = self.pos.ins().smax(sum, least);
            lanes.push(self.pos.ins().ireduce(I16, sum));
        }
        self.build(&lanes)
    }

    /// The lanes of a narrower float type, zeros above.
    fn demote(&mut self, x: Value) -> Value {
        let lane = self.ty.lane_type();
        let count = self.type_of(x).lane_count() as u8;
        let mut lanes = Vec::new();
        for i in 0..count {
            let value = self.lane(x, i);
            lanes.push(self.pos.ins().fdemote(lane, value));
        }
        // Lanes that are not inserted are zero.
        self.build(&lanes)
    }

    fn promote(&mut self, x: Value) -> Value {
        let lane = self.ty.lane_type();
        let mut lanes = Vec::new();
        for i in 0..self.ty.lane_count() as u8 {
            let value = self.lane(x, i);
            lanes.push(self.pos.ins().fpromote(lane, value));
        }
        self.build(&lanes)
    }

    /// Bytes of `x` by the numbers in `indices`: 16 and more give zero; as pshufb reads them, only those from 128 on.
    fn swizzle(&mut self, x: Value, indices: Value, masked: bool) -> Value {
        let wide = self.pos.ins().bitcast(
            cranelift_codegen::ir::types::I128,
            MemFlagsData::new().with_endianness(cranelift_codegen::ir::Endianness::Little),
            x,
        );
        let mut lanes = Vec::new();
        for i in 0..self.ty.lane_count() as u8 {
            let index = self.lane(indices, i);
            let three = self.constant(I32, 3);
            let bits = self.pos.ins().uextend(I32, index);
            let bits = self.pos.ins().ishl(bits, three);
            let shifted = self.pos.ins().ushr(wide, bits);
            let byte = self.pos.ins().ireduce(I8, shifted);
            let end = self.constant(I8, if masked { 128 } else { 16 });
            let inside = self.pos.ins().icmp(IntCC::UnsignedLessThan, index, end);
            let zero = self.constant(I8, 0);
            lanes.push(self.pos.ins().select(inside, byte, zero));
        }
        self.build(&lanes)
    }
}
