//! Constants that rules read and compute.

use crate::constants::unsigned;
use cranelift_codegen::ir::{InstructionData, Opcode, Type, types};

/// All bits of an integer type of at most 64 bits.
pub(super) fn all_ones(ty: Type) -> u64 {
    u64::MAX >> (64 - ty.lane_bits().min(64))
}

/// The bits of an integer constant of at most 64 bits.
pub(super) fn bits(ty: Type, data: InstructionData) -> Option<u64> {
    match data {
        InstructionData::UnaryImm {
            opcode: Opcode::Iconst,
            imm,
        } if ty.bits() <= 64 => Some(unsigned(ty, imm.bits())),
        _ => None,
    }
}

/// How a float format lays its exponent out: bits of the fraction, and of the exponent.
fn layout(ty: Type) -> Option<(u32, u32)> {
    match ty {
        types::F16 => Some((10, 5)),
        types::F32 => Some((23, 8)),
        types::F64 => Some((52, 11)),
        _ => None,
    }
}

/// The bits of a number in a narrower format; none of a NaN, whose bits CLIF leaves open.
pub(super) fn demoted(ty: Type, number: f64) -> Option<u64> {
    let single = number as f32;
    match ty {
        _ if number.is_nan() => None,
        types::F32 => Some(single.to_bits().into()),
        // Rounded once: through f32 if that loses nothing.
        types::F16 if f64::from(single) == number => {
            Some(half::f16::from_f32(single).to_bits().into())
        }
        _ => None,
    }
}

/// The bits of the reciprocal of an f32 as f64, if they are off by at most 2^-54 of it.
pub(super) fn reciprocal_in_double(float: u32) -> Option<u64> {
    let c = f64::from(f32::from_bits(float));
    if !c.is_finite() || c == 0.0 {
        return None;
    }
    let r = 1.0 / c;
    // Exact: the product of 24 and 53 bits less one has at most 53.
    let error = c.mul_add(r, -1.0).abs();
    (error <= 2f64.powi(-54)).then(|| r.to_bits())
}

/// The bits of the reciprocal of a float, if both are powers of two and normal.
pub(super) fn exact_reciprocal(ty: Type, float: u64) -> Option<u64> {
    let (fraction, exponent_bits) = layout(ty)?;
    let largest = (1u64 << exponent_bits) - 1;
    let sign = float >> (fraction + exponent_bits) << (fraction + exponent_bits);
    let magnitude = float ^ sign;
    let exponent = magnitude >> fraction;
    // Twice the bias less the exponent: of a normal number 1 to `largest` − 1.
    let reciprocal = (largest - 1).checked_sub(exponent)?;
    let is_power = magnitude == exponent << fraction && exponent > 0;
    (is_power && reciprocal > 0).then_some(sign | reciprocal << fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_demoted_once() {
        let half = |number: f64| demoted(types::F16, number);
        assert_eq!(half(-0.0), Some(0x8000));
        assert_eq!(half(65519.0), Some(0x7bff));
        assert_eq!(half(65520.0), Some(0x7c00));
        assert_eq!(half(2f64.powi(-24)), Some(1));
        assert_eq!(half(2f64.powi(-25)), Some(0), "to even");
        assert_eq!(half(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), None);
        assert_eq!(half(f64::NAN), None);
        let single = 1.0 + 2f64.powi(-24) + 2f64.powi(-40);
        assert_eq!(demoted(types::F32, single), Some(0x3f80_0001));
    }

    #[test]
    fn reciprocals_of_powers_of_two_are_exact() {
        for bits in (0..=u16::MAX).map(|high| u32::from(high) << 16) {
            let x = f32::from_bits(bits);
            let exact = exact_reciprocal(types::F32, bits.into());
            let expected = (x.is_normal() && bits & 0x7f_ffff == 0)
                .then(|| 1.0 / x)
                .filter(|r| r.is_normal())
                .map(|r| u64::from(r.to_bits()));
            assert_eq!(exact, expected, "{x:e}");
        }
        assert_eq!(
            exact_reciprocal(types::F64, 8f64.to_bits()),
            Some(0.125f64.to_bits())
        );
        assert_eq!(exact_reciprocal(types::F16, 0xc000), Some(0xb800));
        assert_eq!(exact_reciprocal(types::F32, 3f32.to_bits().into()), None);
    }
}

#[cfg(test)]
mod double_reciprocals {
    use super::reciprocal_in_double;

    /// The product in f64 that takes the place of a quotient by `c`, rounded to f32.
    fn quotient(x: f32, r: f64) -> f32 {
        (f64::from(x) * r) as f32
    }

    /// All significands of normal dividends, and all subnormal results that are next to a midpoint.
    #[test]
    fn products_with_reciprocals_are_quotients() {
        for c in [3.0f32, 5.0, 10.0, 0.1, 255.0, 1e-40] {
            let Some(r) = reciprocal_in_double(c.to_bits()).map(f64::from_bits) else {
                continue;
            };
            for significand in 0..1u32 << 23 {
                // Normal dividends, and those around the smallest normal number.
                for exponent in [0u32, 1, 2, 127] {
                    let x = f32::from_bits(exponent << 23 | significand);
                    let (a, b) = (quotient(x, r), x / c);
                    assert!(a.to_bits() == b.to_bits(), "{x:e} / {c:e}: {a:e}, {b:e}");
                }
            }
        }
    }

    #[test]
    fn what_has_no_such_reciprocal_is_refused() {
        for c in [0.0, -0.0, f32::INFINITY, f32::NAN] {
            assert_eq!(reciprocal_in_double(c.to_bits()), None, "{c}");
        }
        assert!(reciprocal_in_double(3.0f32.to_bits()).is_some());
    }

    /// Without the bound on its error a reciprocal takes some midpoint between subnormal results to the wrong side.
    #[test]
    fn the_bound_is_needed() {
        let refused = (3u32..1000).step_by(2).map(|odd| 2 * odd).filter(|c| {
            let bits = (*c as f32).to_bits();
            reciprocal_in_double(bits).is_none()
        });
        // Odd multiples of half the smallest number, times c.
        let goes_wrong = |c: u32| {
            let r = 1.0 / f64::from(c);
            let mut dividends = (1..1u32 << 12).step_by(2).map(|half| half * (c / 2));
            dividends.any(|x| {
                let x = f32::from_bits(x);
                quotient(x, r).to_bits() != (x / c as f32).to_bits()
            })
        };
        let (mut all, mut wrong) = (0, 0);
        for c in refused {
            all += 1;
            wrong += u32::from(goes_wrong(c));
        }
        assert!(wrong > 0, "{wrong} of {all}");
    }
}
