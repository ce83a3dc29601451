//! The limits of conversions from floats to integers.

use super::rules::{DoubleLimits, SingleLimits};
use super::state::Lower;
use crate::isa::generated::FCMPOp;
use cranelift_codegen::ir::Type;

/// What does not fit an integer of `bits` bits after truncation: numbers less than the first (or equal to it, as the
/// comparison says), and at or above the last. Both are numbers of a format of `precision` bits.
pub(super) fn limits(bits: u32, signed: bool, precision: u32) -> (FCMPOp, f64, f64) {
    let power = |n: u32| 2f64.powi(n as i32);
    if !signed {
        return (FCMPOp::Le, -1.0, power(bits));
    }
    let lowest = -power(bits - 1);
    // The next integer below the lowest, where the format has it.
    if bits <= precision {
        (FCMPOp::Le, lowest - 1.0, -lowest)
    } else {
        (FCMPOp::Lt, lowest, -lowest)
    }
}

/// The bits of an integer type that F2I converts to.
pub(super) fn word_or_two(ty: Type) -> Option<u32> {
    (ty.is_int() && ty.bits() <= 64).then_some(ty.bits())
}

/// The limits of conversions from floats to integers.
impl Lower<'_> {
    pub(super) fn single_limits(&mut self, ty: Type, signed: bool) -> Option<SingleLimits> {
        let bits = word_or_two(ty)?;
        let (below, lowest, highest) = limits(bits, signed, f32::MANTISSA_DIGITS);
        let [lowest, highest] = [lowest, highest].map(|x| (x as f32).to_bits());
        Some(SingleLimits::Limits {
            below,
            lowest,
            highest,
        })
    }

    pub(super) fn double_limits(&mut self, ty: Type, signed: bool) -> Option<DoubleLimits> {
        let bits = word_or_two(ty)?;
        let (below, lowest, highest) = limits(bits, signed, f64::MANTISSA_DIGITS);
        let [lowest, highest] = [lowest, highest].map(f64::to_bits);
        Some(DoubleLimits::Limits {
            below,
            lowest,
            highest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits against the host's own truncation of numbers around them.
    #[test]
    fn limits_separate_what_fits() {
        for precision in [24, 53] {
            for bits in [8, 16, 32, 64] {
                for signed in [false, true] {
                    let (below, low, high) = limits(bits, signed, precision);
                    let (min, max) = if signed {
                        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
                    } else {
                        (0, (1i128 << bits) - 1)
                    };
                    let neighbours = |x: f64| match precision {
                        53 => [x.next_down(), x, x.next_up()],
                        _ => {
                            let x = x as f32;
                            [x.next_down(), x, x.next_up()].map(f64::from)
                        }
                    };
                    for x in neighbours(low).into_iter().chain(neighbours(high)) {
                        let too_low = match below {
                            FCMPOp::Le => x <= low,
                            FCMPOp::Lt => x < low,
                            other => panic!("{other:?}"),
                        };
                        let fits = (min..=max).contains(&(x.trunc() as i128));
                        assert_eq!(too_low || x >= high, !fits, "{x:e} {bits} {signed}");
                    }
                }
            }
        }
    }
}
