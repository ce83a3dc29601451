//! Half precision: one number, and the packed pair that the device's HADD2, HMUL2 and HFMA2 work on.
//!
//! Stable Rust has no name for the type, so values are bit patterns behind a type. On the host the same operations are
//! computed through f32 and f64, which round to the same halves.

use crate::device;
use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// An IEEE half: 1 sign bit, 5 of exponent, 10 of fraction.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F16(u16);

/// Two halves in one register: element 0 in the low bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct F16x2(u32);

/// For each half of a pair, whether something holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mask16x2(u32);

impl F16 {
    /// Zero.
    pub const ZERO: F16 = F16(0);
    /// One.
    pub const ONE: F16 = F16(0x3c00);

    /// The half of a bit pattern.
    #[inline(always)]
    pub const fn from_bits(bits: u16) -> F16 {
        F16(bits)
    }

    /// Its bit pattern.
    #[inline(always)]
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest half, ties to even.
    #[inline(always)]
    pub fn from_f32(value: f32) -> F16 {
        F16(device::fdemote_f16(value))
    }

    /// The same value, exactly.
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        device::fpromote_f16(self.0)
    }

    /// self · b + c, rounded once.
    #[inline(always)]
    pub fn mul_add(self, b: F16, c: F16) -> F16 {
        F16(device::fma_f16(self.0, b.0, c.0))
    }

    /// The lesser; NaN if one of them is; -0 is less than 0.
    #[inline(always)]
    pub fn minimum(self, other: F16) -> F16 {
        F16(device::fmin_f16(self.0, other.0))
    }

    /// The greater; NaN if one of them is.
    #[inline(always)]
    pub fn maximum(self, other: F16) -> F16 {
        F16(device::fmax_f16(self.0, other.0))
    }

    /// Without its sign.
    #[inline(always)]
    pub fn abs(self) -> F16 {
        F16(self.0 & 0x7fff)
    }
}

impl F16x2 {
    /// The pair of a bit pattern.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> F16x2 {
        F16x2(bits)
    }

    /// Its bit pattern.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The pair of two halves.
    #[inline(always)]
    pub const fn new(low: F16, high: F16) -> F16x2 {
        F16x2(low.0 as u32 | (high.0 as u32) << 16)
    }

    /// One half twice.
    #[inline(always)]
    pub const fn splat(value: F16) -> F16x2 {
        F16x2::new(value, value)
    }

    /// Two floats, each rounded to the nearest half.
    #[inline(always)]
    pub fn from_f32(low: f32, high: f32) -> F16x2 {
        F16x2::new(F16::from_f32(low), F16::from_f32(high))
    }

    /// Element 0.
    #[inline(always)]
    pub const fn low(self) -> F16 {
        F16(self.0 as u16)
    }

    /// Element 1.
    #[inline(always)]
    pub const fn high(self) -> F16 {
        F16((self.0 >> 16) as u16)
    }

    /// self · b + c per half, rounded once: HFMA2.
    #[inline(always)]
    pub fn mul_add(self, b: F16x2, c: F16x2) -> F16x2 {
        F16x2(device::fma_f16x2(self.0, b.0, c.0))
    }

    /// self · b + c per half, rounded once, and results below 0 to 0; −0 and NaN stay: HFMA2 with `.RELU`.
    #[inline(always)]
    pub fn mul_add_relu(self, b: F16x2, c: F16x2) -> F16x2 {
        F16x2(device::hfma2_f16x2_relu(self.0, b.0, c.0))
    }

    /// self · b + c per half, rounded once, cut to [0, 1]; 0 of −0 and of NaN: HFMA2 with `.SAT`.
    #[inline(always)]
    pub fn mul_add_saturating(self, b: F16x2, c: F16x2) -> F16x2 {
        F16x2(device::hfma2_f16x2_sat(self.0, b.0, c.0))
    }

    /// The lesser per half; NaN if one of them is.
    #[inline(always)]
    pub fn minimum(self, other: F16x2) -> F16x2 {
        F16x2(device::fmin_f16x2(self.0, other.0))
    }

    /// The greater per half; NaN if one of them is.
    #[inline(always)]
    pub fn maximum(self, other: F16x2) -> F16x2 {
        F16x2(device::fmax_f16x2(self.0, other.0))
    }

    /// Between two bounds, per half.
    #[inline(always)]
    pub fn clamp(self, low: F16x2, high: F16x2) -> F16x2 {
        self.maximum(low).minimum(high)
    }

    /// Without their signs.
    #[inline(always)]
    pub fn abs(self) -> F16x2 {
        F16x2(self.0 & 0x7fff_7fff)
    }

    /// 2 to the power of each half, approximate on the device.
    #[inline(always)]
    pub fn exp2_fast(self) -> F16x2 {
        F16x2(device::ex2_f16x2(self.0))
    }

    /// The hyperbolic tangent of each half, approximate on the device.
    #[inline(always)]
    pub fn tanh_fast(self) -> F16x2 {
        F16x2(device::tanh_f16x2(self.0))
    }

    /// Where self < other.
    #[inline(always)]
    pub fn lanes_lt(self, other: F16x2) -> Mask16x2 {
        Mask16x2(device::fcmp_lt_f16x2(self.0, other.0))
    }

    /// Where self <= other.
    #[inline(always)]
    pub fn lanes_le(self, other: F16x2) -> Mask16x2 {
        Mask16x2(device::fcmp_le_f16x2(self.0, other.0))
    }

    /// Where self == other.
    #[inline(always)]
    pub fn lanes_eq(self, other: F16x2) -> Mask16x2 {
        Mask16x2(device::fcmp_eq_f16x2(self.0, other.0))
    }
}

impl Mask16x2 {
    /// Ones in each half for which it holds.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// Per half: `yes` where it holds, else `no`.
    #[inline(always)]
    pub fn select(self, yes: F16x2, no: F16x2) -> F16x2 {
        F16x2(yes.0 & self.0 | no.0 & !self.0)
    }
}

macro_rules! operators {
    ($type:ident $($operator:ident $method:ident $assign:ident $assigned:ident $function:ident),*) => {
        $(
            impl $operator for $type {
                type Output = $type;
                #[inline(always)]
                fn $method(self, other: $type) -> $type {
                    $type(device::$function(self.0, other.0))
                }
            }
            impl $assign for $type {
                #[inline(always)]
                fn $assigned(&mut self, other: $type) {
                    *self = self.$method(other);
                }
            }
        )*
    };
}

operators!(
    F16
    Add add AddAssign add_assign fadd_f16,
    Sub sub SubAssign sub_assign fsub_f16,
    Mul mul MulAssign mul_assign fmul_f16
);
operators!(
    F16x2
    Add add AddAssign add_assign fadd_f16x2,
    Sub sub SubAssign sub_assign fsub_f16x2,
    Mul mul MulAssign mul_assign fmul_f16x2
);

impl Neg for F16 {
    type Output = F16;
    #[inline(always)]
    fn neg(self) -> F16 {
        F16(self.0 ^ 0x8000)
    }
}

impl Neg for F16x2 {
    type Output = F16x2;
    #[inline(always)]
    fn neg(self) -> F16x2 {
        F16x2(self.0 ^ 0x8000_8000)
    }
}

impl PartialEq for F16 {
    #[inline(always)]
    fn eq(&self, other: &F16) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl PartialOrd for F16 {
    #[inline(always)]
    fn partial_cmp(&self, other: &F16) -> Option<Ordering> {
        self.to_f32().partial_cmp(&other.to_f32())
    }
}

impl From<F16> for f32 {
    #[inline(always)]
    fn from(value: F16) -> f32 {
        value.to_f32()
    }
}

impl fmt::Debug for F16 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f32().fmt(f)
    }
}

impl fmt::Debug for F16x2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.low(), self.high()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_through_f32() {
        for bits in 0..=u16::MAX {
            let half = F16::from_bits(bits);
            if half.to_f32().is_nan() {
                assert!(F16::from_f32(half.to_f32()).to_f32().is_nan());
            } else {
                assert_eq!(F16::from_f32(half.to_f32()).to_bits(), bits);
            }
        }
    }

    #[test]
    fn halves_round_to_even() {
        assert_eq!(F16::from_f32(2049.0).to_f32(), 2048.0);
        assert_eq!(F16::from_f32(2051.0).to_f32(), 2052.0);
        assert_eq!(F16::from_f32(65519.0).to_f32(), 65504.0);
        assert!(F16::from_f32(65520.0).to_f32().is_infinite());
        assert_eq!(F16::from_f32(2.0f32.powi(-25)).to_bits(), 0);
        assert_eq!(F16::from_f32(2.0f32.powi(-25) * 1.5).to_bits(), 1);
        assert_eq!(F16::from_f32(-0.0).to_bits(), 0x8000);
    }

    #[test]
    fn pairs_compute_per_half() {
        let pair = F16x2::from_f32(1.5, -2.0);
        assert_eq!(format!("{:?}", pair * pair + pair), "(3.75, 2.0)");
        assert_eq!(
            pair.mul_add_relu(F16x2::splat(F16::ONE), F16x2::default()),
            F16x2::from_f32(1.5, 0.0)
        );
        let (one, not) = (F16x2::splat(F16::ONE), F16x2::from_f32(-0.0, f32::NAN));
        let bits = |pair: F16x2| [pair.low(), pair.high()].map(F16::to_bits);
        let addend = F16x2::from_f32(-0.0, 0.0);
        let kept = not.mul_add_relu(one, addend);
        assert!(
            bits(kept)[0] == 0x8000 && kept.high().to_f32().is_nan(),
            "{kept:?}"
        );
        assert_eq!(bits(not.mul_add_saturating(one, addend)), [0, 0]);
        assert_eq!(
            bits(F16x2::from_f32(2.0, 0.5).mul_add_saturating(one, addend)),
            [0x3c00, 0x3800]
        );
        let zero = F16x2::default();
        assert_eq!(
            pair.lanes_lt(zero).select(zero, pair),
            F16x2::from_f32(1.5, 0.0)
        );
    }
}
