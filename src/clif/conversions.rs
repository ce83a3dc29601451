//! Conversions between floats and 128-bit integers, by those of 64 bits.
//!
//! Takes a function after verification; leaves no conversion with an i128 in it.
//!
//! - To a float: the integer is shifted up until its leading bit is bit 127; the upper 64 bits, with a bit for all that
//!   is below them, round to the float once, which then is multiplied by a power of two. f16 holds nothing above 2^16,
//!   so there a word is enough.
//! - From a float, which f64 holds exactly: the upper half is the integral part of x / 2^64, the lower what is left
//!   over of x. Both limit themselves to their range; beyond 2^128 the lower one has to be told. Signed conversions
//!   take the magnitude and put the sign back.
//! - The trapping ones check first, for NaN and then for the range.

use super::contents::Contents;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::Ieee64;
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, TrapCode, Type, Value,
    types,
};

/// Expands the conversions of `func` with 128-bit integers. True if there are any.
pub fn expand(func: &mut Function, contents: &Contents) -> bool {
    if !contents.has_wide_integers() {
        return false;
    }
    let found: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .filter(|inst| is_wide(func, *inst))
        .collect();
    for &inst in &found {
        replace(func, inst);
    }
    !found.is_empty()
}

fn is_wide(func: &Function, inst: Inst) -> bool {
    let InstructionData::Unary { opcode, arg } = func.dfg.insts[inst] else {
        return false;
    };
    let (from, to) = (
        func.dfg.value_type(arg),
        func.dfg.value_type(func.dfg.first_result(inst)),
    );
    // CLIF also lets vectors pass here.
    let is_float = |ty| matches!(ty, types::F16 | types::F32 | types::F64);
    match opcode {
        Opcode::FcvtFromSint | Opcode::FcvtFromUint => from == types::I128 && is_float(to),
        Opcode::FcvtToSint | Opcode::FcvtToUint | Opcode::FcvtToSintSat | Opcode::FcvtToUintSat => {
            to == types::I128 && is_float(from)
        }
        _ => false,
    }
}

fn replace(func: &mut Function, inst: Inst) {
    let (opcode, arg) = match func.dfg.insts[inst] {
        InstructionData::Unary { opcode, arg } => (opcode, arg),
        _ => return,
    };
    let old = func.dfg.first_result(inst);
    let ty = func.dfg.value_type(old);
    let location = func.srcloc(inst);
    let mut cursor = FuncCursor::new(func).at_inst(inst);
    cursor.set_srcloc(location);
    let pos = &mut cursor;
    let new = match opcode {
        Opcode::FcvtFromUint => from_unsigned(pos, ty, arg),
        Opcode::FcvtFromSint => from_signed(pos, ty, arg),
        Opcode::FcvtToUint | Opcode::FcvtToUintSat => {
            let x = widened(pos, arg);
            if opcode == Opcode::FcvtToUint {
                check(pos, x, -1.0, FloatCC::LessThanOrEqual, power(128));
            }
            to_unsigned(pos, x)
        }
        _ => {
            let x = widened(pos, arg);
            if opcode == Opcode::FcvtToSint {
                check(pos, x, -power(127), FloatCC::LessThan, power(127));
            }
            to_signed(pos, x)
        }
    };
    func.dfg.clear_results(inst);
    func.layout.remove_inst(inst);
    func.dfg.change_to_alias(old, new);
}

fn power(n: i32) -> f64 {
    2f64.powi(n)
}

fn constant(pos: &mut FuncCursor, x: f64) -> Value {
    pos.ins().f64const(Ieee64::with_float(x))
}

/// A float as f64.
fn widened(pos: &mut FuncCursor, x: Value) -> Value {
    if pos.func.dfg.value_type(x) == types::F64 {
        x
    } else {
        pos.ins().fpromote(types::F64, x)
    }
}

/// Traps for NaN, and for numbers that compare so with `low` or are at or above `high`.
fn check(pos: &mut FuncCursor, x: Value, low: f64, cc: FloatCC, high: f64) {
    let nan = pos.ins().fcmp(FloatCC::Unordered, x, x);
    pos.ins().trapnz(nan, TrapCode::BAD_CONVERSION_TO_INTEGER);
    let low = constant(pos, low);
    let high = constant(pos, high);
    let below = pos.ins().fcmp(cc, x, low);
    let above = pos.ins().fcmp(FloatCC::GreaterThanOrEqual, x, high);
    let outside = pos.ins().bor(below, above);
    pos.ins().trapnz(outside, TrapCode::INTEGER_OVERFLOW);
}

fn to_unsigned(pos: &mut FuncCursor, x: Value) -> Value {
    let down = constant(pos, power(-64));
    let scaled = pos.ins().fmul(x, down);
    let upper = pos.ins().trunc(scaled);
    let high = pos.ins().fcvt_to_uint_sat(types::I64, upper);
    let up = constant(pos, -power(64));
    let rest = pos.ins().fma(upper, up, x);
    let low = pos.ins().fcvt_to_uint_sat(types::I64, rest);
    let limit = constant(pos, power(128));
    let over = pos.ins().fcmp(FloatCC::GreaterThanOrEqual, x, limit);
    let ones = pos.ins().iconst(types::I64, -1);
    let low = pos.ins().select(over, ones, low);
    pos.ins().iconcat(low, high)
}

fn to_signed(pos: &mut FuncCursor, x: Value) -> Value {
    let magnitude = pos.ins().fabs(x);
    let unsigned = to_unsigned(pos, magnitude);
    let zero = constant(pos, 0.0);
    let negative = pos.ins().fcmp(FloatCC::LessThan, x, zero);
    let limit = constant(pos, power(127));
    let over = pos
        .ins()
        .fcmp(FloatCC::GreaterThanOrEqual, magnitude, limit);
    // 2^127, or one less for positive numbers.
    let none = pos.ins().iconst(types::I64, 0);
    let sign = pos.ins().iconst(types::I64, i64::MIN);
    let most_negative = pos.ins().iconcat(none, sign);
    let most_positive = pos.ins().bnot(most_negative);
    let negated = pos.ins().ineg(unsigned);
    let down = pos.ins().select(over, most_negative, negated);
    let up = pos.ins().select(over, most_positive, unsigned);
    pos.ins().select(negative, down, up)
}

fn from_signed(pos: &mut FuncCursor, ty: Type, x: Value) -> Value {
    let magnitude = pos.ins().iabs(x);
    let unsigned = from_unsigned(pos, ty, magnitude);
    let negated = pos.ins().fneg(unsigned);
    let (_, high) = pos.ins().isplit(x);
    let zero = pos.ins().iconst(types::I64, 0);
    let negative = pos.ins().icmp(IntCC::SignedLessThan, high, zero);
    pos.ins().select(negative, negated, unsigned)
}

fn from_unsigned(pos: &mut FuncCursor, ty: Type, x: Value) -> Value {
    if ty == types::F16 {
        // From 65,520 on the result is infinite.
        let limit = pos.ins().iconst(types::I64, 1 << 17);
        let zero = pos.ins().iconst(types::I64, 0);
        let wide_limit = pos.ins().iconcat(limit, zero);
        let over = pos.ins().icmp(IntCC::UnsignedGreaterThan, x, wide_limit);
        let (low, _) = pos.ins().isplit(x);
        let limited = pos.ins().select(over, limit, low);
        return pos.ins().fcvt_from_uint(ty, limited);
    }
    let zeros = pos.ins().clz(x);
    let shifted = pos.ins().ishl(x, zeros);
    let (low, high) = pos.ins().isplit(shifted);
    let zero = pos.ins().iconst(types::I64, 0);
    let rest = pos.ins().icmp(IntCC::NotEqual, low, zero);
    let sticky = pos.ins().uextend(types::I64, rest);
    let upper = pos.ins().bor(high, sticky);
    let rounded = pos.ins().fcvt_from_uint(ty, upper);
    // 2^(64 - zeros); of zero, which has 128 zeros, any power will do.
    let count = pos.ins().ireduce(types::I64, zeros);
    let flags = MemFlagsData::new();
    let scale = if ty == types::F64 {
        let bias = pos.ins().iconst(types::I64, 1023 + 64);
        let exponent = pos.ins().isub(bias, count);
        let bits = pos.ins().ishl_imm_u(exponent, 52);
        pos.ins().bitcast(types::F64, flags, bits)
    } else {
        let bias = pos.ins().iconst(types::I64, 127 + 64);
        let exponent = pos.ins().isub(bias, count);
        let narrow = pos.ins().ireduce(types::I32, exponent);
        let bits = pos.ins().ishl_imm_u(narrow, 23);
        pos.ins().bitcast(types::F32, flags, bits)
    };
    pos.ins().fmul(rounded, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_wide_conversion_is_left() {
        let mut text = String::from(
            "function %f(i128, f16, f32, f64) -> i128 {\nblock0(v0: i128, v1: f16, v2: f32, v3: f64):\n",
        );
        let mut next = 10;
        for ty in ["f16", "f32", "f64"] {
            for sign in ["s", "u"] {
                text += &format!("    v{next} = fcvt_from_{sign}int.{ty} v0\n");
                next += 1;
            }
        }
        for source in ["v1", "v2", "v3"] {
            for operation in ["sint", "uint", "sint_sat", "uint_sat"] {
                text += &format!("    v{next} = fcvt_to_{operation}.i128 {source}\n");
                next += 1;
            }
        }
        text += "    return v17\n}\n";
        let mut func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
        let contents = Contents::of(&func);
        assert!(expand(&mut func, &contents));
        crate::clif::verify(&func).unwrap();
        let left = func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
            .filter(|inst| is_wide(&func, *inst))
            .count();
        assert_eq!(left, 0);
    }
}
