//! Comparison, minimum and maximum of floating-point numbers: one set of rules for all formats (document 000, HSETP2
//! and HMNMX2).

use super::operands::*;
use super::softfloat::Format;
use std::cmp::Ordering;

/// How two numbers compare; `None` if one is NaN. The zeros are equal.
#[inline(always)]
pub fn order(format: Format, a: u64, b: u64) -> Option<Ordering> {
    if format.is_nan(a) || format.is_nan(b) {
        return None;
    }
    if (a | b) & (format.sign() - 1) == 0 {
        return Some(Ordering::Equal);
    }
    Some(rank(format, a).cmp(&rank(format, b)))
}

/// A number that grows with the value of `bits`, −0 below +0. No NaN.
#[inline(always)]
fn rank(format: Format, bits: u64) -> i64 {
    let magnitude = (bits & (format.sign() - 1)) as i64;
    if bits & format.sign() != 0 {
        -1 - magnitude
    } else {
        magnitude
    }
}

/// Whether the comparison holds. With a NaN the plain ones are false and those with U true.
#[inline(always)]
pub fn holds(cmp: FCMPOp, order: Option<Ordering>) -> bool {
    let Some(order) = order else {
        return matches!(
            cmp,
            FCMPOp::Equ
                | FCMPOp::Neu
                | FCMPOp::Ltu
                | FCMPOp::Leu
                | FCMPOp::Gtu
                | FCMPOp::Geu
                | FCMPOp::Nan
        );
    };
    match cmp {
        FCMPOp::Eq | FCMPOp::Equ => order.is_eq(),
        FCMPOp::Ne | FCMPOp::Neu => order.is_ne(),
        FCMPOp::Lt | FCMPOp::Ltu => order.is_lt(),
        FCMPOp::Le | FCMPOp::Leu => order.is_le(),
        FCMPOp::Gt | FCMPOp::Gtu => order.is_gt(),
        FCMPOp::Ge | FCMPOp::Geu => order.is_ge(),
        FCMPOp::Nan => false,
        FCMPOp::Num => true,
    }
}

/// The result of a comparison combined with the input predicate.
#[inline(always)]
pub fn combine(comparison: bool, lop: LOPOp, pp: bool) -> bool {
    match lop {
        LOPOp::And => comparison & pp,
        LOPOp::Or => comparison | pp,
        LOPOp::Xor => comparison ^ pp,
    }
}

/// The minimum of `a` and `b` where `minimum` holds, else the maximum; −0 is below +0.
///
/// With `.NAN` a NaN makes the result NaN; without it the other operand is the result, and NaN only if both are.
#[inline(always)]
pub fn select(format: Format, a: u64, b: u64, minimum: bool, nan: NAN) -> u64 {
    match (format.is_nan(a), format.is_nan(b)) {
        (false, false) => {
            if (rank(format, a) < rank(format, b)) == minimum {
                a
            } else {
                b
            }
        }
        (true, false) if nan == NAN::NoNan => b,
        (false, true) if nan == NAN::NoNan => a,
        _ => format.nan,
    }
}
