//! 128 bits: high products from 64-bit products, division by a loop over the bits of the dividend.

use super::Expansion;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64, I128};
use cranelift_codegen::ir::{
    BlockArg, Inst, InstBuilder, InstructionData, Opcode, TrapCode, Value,
};

/// The expansion of an operation on i128 that the machine has no sequence for.
pub(super) fn expand(pos: &mut FuncCursor<'_>, inst: Inst) -> Option<Expansion> {
    let InstructionData::Binary {
        opcode,
        args: [x, y],
    } = pos.func.dfg.insts[inst]
    else {
        return None;
    };
    if pos.func.dfg.value_type(x) != I128 {
        return None;
    }
    match opcode {
        Opcode::Umulhi => Some(Expansion::Values(vec![high_product(pos, x, y)])),
        Opcode::Smulhi => {
            let product = high_product(pos, x, y);
            let product = subtract_if_negative(pos, product, x, y);
            Some(Expansion::Values(vec![subtract_if_negative(
                pos, product, y, x,
            )]))
        }
        Opcode::Udiv => Some(Expansion::Split(divide(pos, inst, x, y, false, true))),
        Opcode::Urem => Some(Expansion::Split(divide(pos, inst, x, y, false, false))),
        Opcode::Sdiv => Some(Expansion::Split(divide(pos, inst, x, y, true, true))),
        Opcode::Srem => Some(Expansion::Split(divide(pos, inst, x, y, true, false))),
        _ => None,
    }
}

/// A constant of 128 bits.
fn constant(pos: &mut FuncCursor<'_>, value: u128) -> Value {
    let low = pos.ins().iconst(I64, value as u64 as i64);
    let high = pos.ins().iconst(I64, (value >> 64) as u64 as i64);
    pos.ins().iconcat(low, high)
}

/// The product of two 64-bit values in 128 bits.
fn product(pos: &mut FuncCursor<'_>, x: Value, y: Value) -> Value {
    let low = pos.ins().imul(x, y);
    let high = pos.ins().umulhi(x, y);
    pos.ins().iconcat(low, high)
}

/// The high half of an unsigned product, by the school method on 64-bit digits. No sum overflows: (2^64 − 1)² + 2·(2^64 − 1) < 2^128.
fn high_product(pos: &mut FuncCursor<'_>, x: Value, y: Value) -> Value {
    let (x0, x1) = pos.ins().isplit(x);
    let (y0, y1) = pos.ins().isplit(y);
    let carry = pos.ins().umulhi(x0, y0);
    let carry = pos.ins().uextend(I128, carry);
    let first = product(pos, x0, y1);
    let first = pos.ins().iadd(first, carry);
    let (first_low, first_high) = pos.ins().isplit(first);
    let first_low = pos.ins().uextend(I128, first_low);
    let first_high = pos.ins().uextend(I128, first_high);
    let second = product(pos, x1, y0);
    let second = pos.ins().iadd(second, first_low);
    let (_, second_high) = pos.ins().isplit(second);
    let second_high = pos.ins().uextend(I128, second_high);
    let top = product(pos, x1, y1);
    let top = pos.ins().iadd(top, first_high);
    pos.ins().iadd(top, second_high)
}

/// `from` − (`sign` < 0 ? `what` : 0).
fn subtract_if_negative(pos: &mut FuncCursor<'_>, from: Value, sign: Value, what: Value) -> Value {
    let amount = pos.ins().iconst(I32, 127);
    let mask = pos.ins().sshr(sign, amount);
    let what = pos.ins().band(what, mask);
    pos.ins().isub(from, what)
}

/// Division bit by bit, from the highest one of the dividend down: the remainder takes in one bit and loses the divisor where it can.
///
/// The block is split before `inst`; the value returned is computed at the start of the second part, where the cursor is left.
fn divide(
    pos: &mut FuncCursor<'_>,
    inst: Inst,
    x: Value,
    y: Value,
    signed: bool,
    quotient: bool,
) -> Value {
    pos.ins().trapz(y, TrapCode::INTEGER_DIVISION_BY_ZERO);
    let zero = constant(pos, 0);
    let (dividend, divisor) = if signed {
        if quotient {
            let lowest = constant(pos, 1 << 127);
            let minus_one = constant(pos, u128::MAX);
            let is_lowest = pos.ins().icmp(IntCC::Equal, x, lowest);
            let is_minus_one = pos.ins().icmp(IntCC::Equal, y, minus_one);
            let overflow = pos.ins().band(is_lowest, is_minus_one);
            pos.ins().trapnz(overflow, TrapCode::INTEGER_OVERFLOW);
        }
        (pos.ins().iabs(x), pos.ins().iabs(y))
    } else {
        (x, y)
    };
    // Zeros above the dividend give no bits of the quotient; a dividend of zero still takes one turn.
    let zeros = pos.ins().clz(dividend);
    let zeros = pos.ins().ireduce(I32, zeros);
    let most = pos.ins().iconst(I32, 127);
    let zeros = pos.ins().umin(zeros, most);
    let start = pos.ins().ishl(dividend, zeros);
    let all = pos.ins().iconst(I32, 128);
    let turns = pos.ins().isub(all, zeros);

    let before = pos
        .current_block()
        .expect("the cursor is at an instruction");
    let (body, after) = (pos.func.dfg.make_block(), pos.func.dfg.make_block());
    pos.func.layout.split_block(after, inst);
    pos.func.layout.insert_block_after(body, before);
    let bits = pos.func.dfg.append_block_param(body, I128);
    let rest = pos.func.dfg.append_block_param(body, I128);
    let left = pos.func.dfg.append_block_param(body, I32);
    let result = pos.func.dfg.append_block_param(after, I128);

    pos.goto_bottom(before);
    let args = [start, zero, turns].map(BlockArg::Value);
    pos.ins().jump(body, &args);

    pos.goto_bottom(body);
    let one = pos.ins().iconst(I32, 1);
    let top = pos.ins().iconst(I32, 127);
    let next_bit = pos.ins().ushr(bits, top);
    let shifted = pos.ins().ishl(rest, one);
    let shifted = pos.ins().bor(shifted, next_bit);
    // A remainder whose top bit goes out is greater than any divisor.
    let out = pos.ins().icmp(IntCC::SignedLessThan, rest, zero);
    let reached = pos
        .ins()
        .icmp(IntCC::UnsignedGreaterThanOrEqual, shifted, divisor);
    let fits = pos.ins().bor(out, reached);
    let less = pos.ins().isub(shifted, divisor);
    let rest = pos.ins().select(fits, less, shifted);
    let bits = pos.ins().ishl(bits, one);
    let bit = pos.ins().uextend(I128, fits);
    let bits = pos.ins().bor(bits, bit);
    let minus_one = pos.ins().iconst(I32, -1i32 as u32 as i64);
    let left = pos.ins().iadd(left, minus_one);
    let again = [bits, rest, left].map(BlockArg::Value);
    let done = [BlockArg::Value(if quotient { bits } else { rest })];
    pos.ins().brif(left, body, &again, after, &done);

    pos.goto_inst(inst);
    if !signed {
        return result;
    }
    let sign = if quotient { pos.ins().bxor(x, y) } else { x };
    let zero = constant(pos, 0);
    let negative = pos.ins().icmp(IntCC::SignedLessThan, sign, zero);
    let negated = pos.ins().ineg(result);
    pos.ins().select(negative, negated, result)
}
