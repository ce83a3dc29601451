//! 128 bits: high products from 64-bit products, division digit by digit.

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
        Opcode::Umulhi => Some(Expansion::Value(high_product(pos, x, y))),
        Opcode::Smulhi => {
            let product = high_product(pos, x, y);
            let product = subtract_if_negative(pos, product, x, y);
            Some(Expansion::Value(subtract_if_negative(pos, product, y, x)))
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

/// The high half of an unsigned product, by the school method on 64-bit digits. No sum overflows: (2^64 − 1)² + 2·(2^64
/// − 1) < 2^128.
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

/// The four words of a 128-bit value, lowest first.
fn words_of(pos: &mut FuncCursor<'_>, value: Value) -> [Value; 4] {
    let (low, high) = pos.ins().isplit(value);
    let (a, b) = pos.ins().isplit(low);
    let (c, d) = pos.ins().isplit(high);
    [a, b, c, d]
}

/// The 128-bit value of four words, lowest first.
fn of_words(pos: &mut FuncCursor<'_>, [a, b, c, d]: [Value; 4]) -> Value {
    let low = pos.ins().iconcat(a, b);
    let high = pos.ins().iconcat(c, d);
    pos.ins().iconcat(low, high)
}

/// A word times four words, modulo 2^128.
fn word_product(pos: &mut FuncCursor<'_>, word: Value, by: [Value; 4]) -> Value {
    let word = pos.ins().uextend(I64, word);
    let mut carry: Option<Value> = None;
    let words = by.map(|digit| {
        let digit = pos.ins().uextend(I64, digit);
        let mut product = pos.ins().imul(word, digit);
        if let Some(carry) = carry {
            let carry = pos.ins().uextend(I64, carry);
            product = pos.ins().iadd(product, carry);
        }
        let (low, high) = pos.ins().isplit(product);
        carry = Some(high);
        low
    });
    of_words(pos, words)
}

/// A divisor made ready: shifted up until its highest bit is bit 126, if it was not above that, and the reciprocal of
/// its upper half.
struct Divisor {
    shift: Value,
    shifted: Value,
    reciprocal: Value,
}

impl Divisor {
    /// Let D be the upper half of the shifted divisor, plus one. From the quotient of 2^64 − 1 and the highest word
    /// plus one comes a lower bound w of 2^126 / D, off by less than 2^-29 of it. One step of Newton's method, w +
    /// w·(2^126 − w·D) / 2^126, leaves less than 2^-58, and a lower bound.
    fn new(pos: &mut FuncCursor<'_>, divisor: Value) -> Self {
        let zeros = pos.ins().clz(divisor);
        let zeros = pos.ins().ireduce(I32, zeros);
        let one = pos.ins().iconst(I32, 1);
        let zeros = pos.ins().umax(zeros, one);
        let shift = pos.ins().isub(zeros, one);
        let shifted = pos.ins().ishl(divisor, shift);
        let (_, upper) = pos.ins().isplit(shifted);
        let (_, top) = pos.ins().isplit(upper);
        let top = pos.ins().uextend(I64, top);
        let above = pos.ins().iadd_imm_s(top, 1);
        let ones = pos.ins().iconst(I64, -1);
        let first = pos.ins().udiv(ones, above);
        let first = pos.ins().ishl_imm_u(first, 30);
        let product = product(pos, first, upper);
        let addend = pos.ins().uextend(I128, first);
        let product = pos.ins().iadd(product, addend);
        let goal = constant(pos, 1 << 126);
        let error = pos.ins().isub(goal, product);
        // Less than 2^97, so the bits from 33 on are 64.
        let error = pos.ins().ushr_imm_u(error, 33);
        let error = pos.ins().ireduce(I64, error);
        let more = pos.ins().umulhi(first, error);
        let more = pos.ins().ushr_imm_u(more, 29);
        let reciprocal = pos.ins().iadd(first, more);
        Self {
            shift,
            shifted,
            reciprocal,
        }
    }
}

/// Division by four digits of 32 bits, as on paper.
///
/// Dividend and divisor are shifted up together. The remainder so far, r, is less than the divisor d; with the next
/// digit u of the dividend it makes n = r·2^32 + u, and the digit of the quotient is n / d. The upper half of r times
/// the reciprocal, cut to an integer, is that digit or one less: what is left out on the way is below 2^-26 in all.
/// Hence n − q·d < 2·d, which has no more than 128 bits, as d is below 2^127, or n is below 2^128 when the divisor was
/// not shifted. One comparison makes the digit exact. The words that the dividend leaves free take the digits of the
/// quotient.
///
/// The block is split before `inst`; the value returned is computed at the start of the second part, where the cursor
/// is left.
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
    let Divisor {
        shift,
        shifted,
        reciprocal,
    } = Divisor::new(pos, divisor);
    // The dividend shifted up has 256 bits; the upper half is less than the divisor.
    let digits = pos.ins().ishl(dividend, shift);
    let half = pos.ins().ushr_imm_u(dividend, 1);
    let most = pos.ins().iconst(I32, 127);
    let down = pos.ins().isub(most, shift);
    let rest = pos.ins().ushr(half, down);
    let rest_words = words_of(pos, rest);
    let digit_words = words_of(pos, digits);
    let divisor_words = words_of(pos, shifted);
    let turns = pos.ins().iconst(I32, 4);

    let before = pos
        .current_block()
        .expect("the cursor is at an instruction");
    let (body, after) = (pos.func.dfg.make_block(), pos.func.dfg.make_block());
    pos.func.layout.split_block(after, inst);
    pos.func.layout.insert_block_after(body, before);
    let mut parameter = |block| pos.func.dfg.append_block_param(block, I32);
    let rest = [(); 4].map(|()| parameter(body));
    let digits = [(); 4].map(|()| parameter(body));
    let left = parameter(body);
    let result = [(); 4].map(|()| parameter(after));

    pos.goto_bottom(before);
    let args: Vec<BlockArg> = [&rest_words[..], &digit_words, &[turns]]
        .concat()
        .into_iter()
        .map(BlockArg::Value)
        .collect();
    pos.ins().jump(body, &args);

    pos.goto_bottom(body);
    let upper = pos.ins().iconcat(rest[2], rest[3]);
    let digit = pos.ins().umulhi(upper, reciprocal);
    let digit = pos.ins().ushr_imm_u(digit, 30);
    let digit = pos.ins().ireduce(I32, digit);
    let taken = word_product(pos, digit, divisor_words);
    let next = of_words(pos, [digits[3], rest[0], rest[1], rest[2]]);
    let next = pos.ins().isub(next, taken);
    let one_more = pos
        .ins()
        .icmp(IntCC::UnsignedGreaterThanOrEqual, next, shifted);
    let less = pos.ins().isub(next, shifted);
    let next = pos.ins().select(one_more, less, next);
    let rest = words_of(pos, next);
    let one_more = pos.ins().uextend(I32, one_more);
    let digit = pos.ins().iadd(digit, one_more);
    let digits = [digit, digits[0], digits[1], digits[2]];
    let left = pos.ins().iadd_imm_s(left, -1);
    let again: Vec<BlockArg> = [&rest[..], &digits, &[left]]
        .concat()
        .into_iter()
        .map(BlockArg::Value)
        .collect();
    let done = if quotient { digits } else { rest }.map(BlockArg::Value);
    pos.ins().brif(left, body, &again, after, &done);

    pos.goto_inst(inst);
    let mut result = of_words(pos, result);
    if !quotient {
        result = pos.ins().ushr(result, shift);
    }
    if !signed {
        return result;
    }
    let sign = if quotient { pos.ins().bxor(x, y) } else { x };
    let negative = pos.ins().icmp(IntCC::SignedLessThan, sign, zero);
    let negated = pos.ins().ineg(result);
    pos.ins().select(negative, negated, result)
}
