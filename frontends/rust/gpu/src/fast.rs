//! The device's approximate functions: one special instruction each, and about 22 good bits. On the host the exact
//! ones.

use crate::device;

/// 2^x.
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    device::ex2_f32(x)
}

/// The logarithm of base 2.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    device::lg2_f32(x)
}

/// 1 / x.
#[inline(always)]
pub fn recip(x: f32) -> f32 {
    device::rcp_f32(x)
}

/// 1 / the square root of x.
#[inline(always)]
pub fn rsqrt(x: f32) -> f32 {
    device::rsq_f32(x)
}

/// The square root.
#[inline(always)]
pub fn sqrt(x: f32) -> f32 {
    device::sqrt_f32(x)
}

/// The sine of an angle in radians.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    device::sin_f32(x)
}

/// The cosine of an angle in radians.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    device::cos_f32(x)
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    device::tanh_f32(x)
}
